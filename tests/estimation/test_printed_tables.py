"""Tables of selections, bootstraps and dendrograms: aligned, named, narrow, without zeros."""

from __future__ import annotations

import numpy as np
import pytest

import moestat


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 200)
    y = np.where(rng.random(200) < 0.5, 2 + x, -2 - x) + 0.3 * rng.normal(size=200)
    return {"x": x, "y": y}


def test_a_selection_of_formulas_has_a_head_for_each_column_and_fits_a_terminal(data):
    formulas = ["y ~ x | 1", "y ~ x | x"]
    found = moestat.select("gaussian", formulas, data=data, k=(1, 2), rng=0)
    head, *rows = str(found).splitlines()[:5]
    assert head.split()[0] == "formula"
    assert {len(head)} == {len(row) for row in rows}
    assert len(head) <= 80
    frame = found.to_frame()
    assert list(frame["formula"]) == [key[0] for key in found.results]
    assert list(frame["bic"]) == list(found.table["bic"])


def test_a_bootstrap_names_its_rows_and_leaves_out_the_reference(data):
    result = moestat.fit("gaussian", data["x"], data["y"], n_experts=2, rng=0)
    found = result.bootstrap(5, rng=0)
    frame = found.summary_frame()
    assert "beta0[2]" not in frame.index
    assert set(frame.index) < set(found.names)
    ends = found.conf_int()[[found.names.index(name) for name in frame.index]]
    np.testing.assert_array_equal(frame[["conf_low", "conf_high"]], ends)
    lines = str(found).splitlines()[1 : 2 + len(frame)]
    assert len({len(line) for line in lines}) == 1


def test_a_dendrogram_prints_its_mergers(data):
    result = moestat.fit("gaussian", data["x"], data["y"], n_experts=3, rng=0)
    tree = moestat.dendrogram(result)
    lines = repr(tree).splitlines()
    assert len(lines) == 2 + len(tree.merges)
    assert str(tree.n_experts) in lines[0]
    assert len({len(line) for line in lines[2:]}) == 1
