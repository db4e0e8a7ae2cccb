"""Predictions that are written part by part are those of a table in memory."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat import fit_formula

pq = pytest.importorskip("pyarrow.parquet")

N = 1200


@pytest.fixture(scope="module")
def frame():
    """Two groups of responses, by a number and a word; rows have names."""
    rng = np.random.default_rng(0)
    x, word = rng.uniform(-2, 2, N), rng.choice(["a", "b"], N)
    y = np.where(x + rng.normal(size=N) > 0, 2 + x, -1 - x) + (word == "b") + rng.normal(size=N)
    made = pd.DataFrame({"y": y, "x": x, "word": word, "up": np.where(y > 0, "yes", "no")})
    return made.set_index(pd.Index([f"row {i}" for i in range(N)], name="id"))


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    """The rows in five row groups."""
    made = tmp_path_factory.mktemp("rows") / "rows.parquet"
    frame.to_parquet(made, row_group_size=250)
    return made


@pytest.fixture(scope="module")
def result(frame):
    return fit_formula("y ~ x + word | x", frame, n_experts=2, rng=0)


@pytest.fixture(scope="module")
def classes(frame):
    return fit_formula("up ~ x", frame, family="multinomial", n_experts=1, rng=0)


def parts(folder):
    return [pd.read_parquet(file) for file in sorted(folder.glob("part-*.parquet"))]


@pytest.mark.parametrize(
    ("which", "options", "columns"),
    [
        ("mean", {}, ["mean"]),
        ("gate", {}, ["gate[1]", "gate[2]"]),
        ("experts", {}, ["experts[1]", "experts[2]"]),
        ("variance", {}, ["variance"]),
        ("quantile", {"q": [0.1, 0.9]}, ["quantile[0.1]", "quantile[0.9]"]),
    ],
)
def test_parts_are_in_the_order_of_the_source_with_its_index(
    which, options, columns, result, frame, path, tmp_path
):
    folder = result.predict(path, which, to=tmp_path / "out", **options)
    made = parts(folder)
    assert [len(part) for part in made] == [250, 250, 250, 250, 200]
    whole = pd.concat(made)
    assert list(whole.columns) == ["id", *columns]
    assert whole["id"].tolist() == frame.index.tolist()
    expected = np.asarray(result.predict(frame, which, **options)).reshape(N, -1)
    assert whole[columns].to_numpy() == pytest.approx(expected, rel=1e-12)
    # Nothing but the parts and the record is left.
    assert len(list(folder.iterdir())) == 6


def test_classes_and_their_probabilities(classes, frame, path, tmp_path):
    named = pd.concat(parts(classes.predict(path, to=tmp_path / "classes")))
    assert named["class"].tolist() == np.asarray(classes.predict(frame)).tolist()
    chances = pd.concat(parts(classes.predict(path, "proba", to=tmp_path / "proba")))
    assert list(chances.columns) == ["id", "proba[no]", "proba[yes]"]
    with pytest.raises(ValueError, match="'experts' of classes has several values for each row"):
        classes.predict(path, "experts", to=tmp_path / "experts")


def test_other_sources(result, frame, path, tmp_path):
    pl, dd = pytest.importorskip("polars"), pytest.importorskip("dask.dataframe")
    expected = np.asarray(result.predict(frame))
    sources = {
        "polars": pl.scan_parquet(path),
        "dask": dd.from_pandas(frame, npartitions=3, sort=False),
        "pandas": frame,
    }
    for name, source in sources.items():
        whole = pd.concat(parts(result.predict(source, to=tmp_path / name)))
        assert whole["mean"].to_numpy() == pytest.approx(expected, rel=1e-12)
        if name != "polars":
            assert whole["id"].tolist() == frame.index.tolist()


def test_a_fit_to_blocks_with_names_predicts_to_files(frame, path, tmp_path):
    blocks = moestat.Blocks.from_parquet(path, X=["x"], y="y")
    found = moestat.fit_blocks("gaussian", blocks, n_experts=2, rng=0)
    whole = pd.concat(parts(found.predict(path, to=tmp_path / "out")))
    assert whole["mean"].to_numpy() == pytest.approx(found.predict(frame[["x"]]), rel=1e-12)


KILLED = """
import os, signal
import moestat
from moestat.estimation.results import source_predictions

write = source_predictions._write

def killing(*arguments):
    if arguments[-2] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    write(*arguments)

source_predictions._write = killing
source_predictions.available_cpus = lambda: 1  # one part after the other
moestat.load({fit!r}).predict({path!r}, to={to!r})
"""


def test_a_call_that_was_killed_goes_on_where_it_was(result, frame, path, tmp_path):
    result.save(tmp_path / "fit.moe")
    folder = tmp_path / "out"
    text = KILLED.format(fit=str(tmp_path / "fit.moe"), path=str(path), to=str(folder))
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], check=False)
    assert ended.returncode == -signal.SIGKILL
    there = {file: file.stat().st_mtime_ns for file in folder.glob("part-*.parquet")}
    assert len(there) == 3
    (folder / ".part-00003.parquet.half.tmp").write_bytes(b"half a part")
    result.predict(path, to=folder)
    whole = pd.concat(parts(folder))
    assert whole["mean"].to_numpy() == pytest.approx(np.asarray(result.predict(frame)), rel=1e-12)
    assert {file: file.stat().st_mtime_ns for file in there} == there
    assert len(list(folder.iterdir())) == 6


def test_a_disk_on_which_files_cannot_be_renamed_is_told_in_a_sentence(
    result, frame, path, tmp_path, monkeypatch
):
    """No half of a part is left, and the same call writes what is missing."""
    folder, rename = tmp_path / "out", Path.replace

    def fails(self, target):
        if "part-00002" in str(target):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(ValueError, match=r"to: part-00002.parquet cannot be written: Stale file"):
        result.predict(path, to=folder)
    assert not list(folder.glob(".*.tmp"))
    assert not (folder / "part-00002.parquet").exists()
    monkeypatch.undo()
    result.predict(path, to=folder)
    whole = pd.concat(parts(folder))
    assert whole["mean"].to_numpy() == pytest.approx(np.asarray(result.predict(frame)), rel=1e-12)


def test_another_fit_or_source_is_not_mixed_in(result, classes, frame, path, tmp_path):
    folder = tmp_path / "out"
    result.predict(path, to=folder)
    for other, which in ((classes, None), (result, "gate")):
        with pytest.raises(ValueError, match="holds predictions of another fit or of another"):
            other.predict(path, which, to=folder)
    again = tmp_path / "again.parquet"
    frame.to_parquet(again, row_group_size=250)
    os.utime(again, ns=(1, 1))
    with pytest.raises(ValueError, match="holds predictions of another fit or of another source"):
        result.predict(again, to=folder)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="full' is not empty"):
        result.predict(path, to=tmp_path / "full")


def test_what_cannot_be_predicted_is_refused_by_name(result, frame, tmp_path):
    lost = frame.drop(columns="word")
    with pytest.raises(ValueError, match="X has no column 'word'; it has y, x, up"):
        result.predict(lost, to=tmp_path / "a")
    gaps = frame.copy()
    gaps.iloc[700, 1] = np.nan
    gaps.to_parquet(tmp_path / "gaps.parquet", row_group_size=250)
    message = (
        r"gaps.parquet, row group 2: data: column 'x' has 1 missing values, the first in row 200"
    )
    with pytest.raises(ValueError, match=message):
        result.predict(tmp_path / "gaps.parquet", to=tmp_path / "b")
    new = frame.assign(word="c")
    with pytest.raises(ValueError, match="'c', which is not in the data of the fit"):
        result.predict(new, to=tmp_path / "c")
    with pytest.raises(ValueError, match="to: only predictions that depend on inputs alone"):
        result.predict(frame, "cdf", y=0.0, to=tmp_path / "d")
    with pytest.raises(ValueError, match="to: is for a source or a table with names"):
        result.predict(frame[["x"]].to_numpy(), to=tmp_path / "e")
    plain = moestat.fit("gaussian", frame["x"].to_numpy(), frame["y"].to_numpy(), n_experts=1)
    with pytest.raises(ValueError, match="the inputs of the fit have no names"):
        plain.predict(frame, to=tmp_path / "f")
