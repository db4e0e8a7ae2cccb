"""Results and stores that older versions wrote are opened, and gone on with."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import moestat
from moestat.sweep import load_spec, open_store
from moestat.sweep.__main__ import main
from tests.kept.make import data

HERE = Path(__file__).parent


@pytest.mark.parametrize("path", sorted(HERE.glob("result-*.npz")), ids=lambda path: path.stem)
def test_a_result_says_what_it_said(path):
    result = moestat.load(path)
    assert result.certificate.certified
    X, y = data()
    assert np.isclose(
        result.log_likelihood, moestat.log_likelihood(result.family, result.theta, X, y)
    )
    again = moestat.fit(result.family, X, y, rng=0)
    assert np.isclose(result.log_likelihood, again.log_likelihood, rtol=1e-10)
    # A fit of a family by itself has its experts in any order.
    result, again = (
        each.relabel(1 + np.argsort(-np.mean(each.responsibilities, axis=0)))
        for each in (result, again)
    )
    assert np.allclose(result.bse, again.bse, rtol=1e-5)
    assert np.allclose(result.predict(X), again.predict(X), rtol=1e-5)
    assert str(result.summary())


@pytest.mark.parametrize("path", sorted(HERE.glob("store-*.sqlite")), ids=lambda path: path.stem)
def test_a_store_is_gone_on_with(path, tmp_path, monkeypatch):
    old, new = tmp_path / "old.sqlite", tmp_path / "new.sqlite"
    shutil.copy(path, old)
    with open_store(old) as store:
        kept = {(r.n, r.replicate): r for r in store.records()}
        assert len(kept) == 4
        assert store.spec == load_spec(HERE / "kept.toml")
    for store in (old, new):
        options = ["--out", str(store), "--executor", "serial"]
        monkeypatch.setattr("sys.argv", ["sweep", "run", str(HERE / "kept.toml"), *options])
        with pytest.raises(SystemExit, match=r"^0$"):
            main()
    with open_store(old) as store, open_store(new) as other:
        there = {(r.n, r.replicate): r for r in store.records()}
        here = {(r.n, r.replicate): r for r in other.records()}
    assert set(there) == set(here)
    assert len(there) == 6
    for place, record in there.items():
        if place in kept:
            assert record == kept[place]
        assert record.key == here[place].key
        # Either version may stop before a step that gains less than 1e-9, and is then within
        # sqrt(2e-9) of a standard error, 4.5e-5, of the maximum.
        assert np.isclose(record.loss, here[place].loss, rtol=1e-4)
        assert np.isclose(record.log_likelihood, here[place].log_likelihood, rtol=1e-10)
