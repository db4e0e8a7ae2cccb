"""A fit to blocks or a source that ended early goes on from the file that it kept."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import re
import signal
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from moestat import Blocks, fit_blocks, fit_formula
from moestat.base.warnings import MoEWarning

N, PARTS = 3000, 5


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, N)
    first = rng.random(N) < 1 / (1 + np.exp(-3 * x))
    return x, np.where(first, 1 + x, -2 * x) + 0.4 * rng.normal(size=N)


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """The sample is smaller than the rows, so that climbs on all rows take some passes."""
    monkeypatch.setattr("moestat.estimation.rows.block_rows.SAMPLED", 700)


class Reading:
    """Blocks that do something at one of their readings."""

    def __init__(self, rows, at, act):
        self.rows, self.at, self.act, self.count = rows, at, act, 0

    def __call__(self, number):
        self.count += 1
        if self.count == self.at:
            self.act()
        own = slice(number * N // PARTS, (number + 1) * N // PARTS)
        return self.rows[0][own], self.rows[1][own]


HOW = {"n_experts": 2, "rng": 0, "threads": 1}


def kill_oneself():
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt():
    raise KeyboardInterrupt


def fit_in_child(rows, at, path):
    fit_blocks("gaussian", Blocks(Reading(rows, at, kill_oneself), PARTS), resume=path, **HOW)


def at_the_end(rows, monkeypatch=None):
    reading = Reading(rows, -1, None)
    return fit_blocks("gaussian", Blocks(reading, PARTS), **HOW), reading.count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child that is killed is forked")
def test_a_killed_fit_goes_on_without_a_search(rows, tmp_path):
    path, (whole, reads) = tmp_path / "fit.json", at_the_end(rows)
    child = multiprocessing.get_context("fork").Process(
        target=fit_in_child, args=(rows, reads - PARTS - 2, path)
    )
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    assert len(json.loads(path.read_text())["points"]) >= 1
    reading = Reading(rows, -1, None)
    found = fit_blocks("gaussian", Blocks(reading, PARTS), resume=path, **HOW)
    assert np.max(np.abs(found.theta - whole.theta)) < 1e-8
    assert found.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)
    assert found.certificate.certified
    assert reading.count <= reads
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []


def test_after_an_interrupt_the_same_call_goes_on(rows, tmp_path):
    path, (whole, reads) = tmp_path / "fit.json", at_the_end(rows)
    blocks = Blocks(Reading(rows, reads - PARTS - 2, interrupt), PARTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        try:
            partial = fit_blocks("gaussian", blocks, resume=path, **HOW)
            assert "InterruptedWarning" in partial.kinds
        except KeyboardInterrupt:
            pass  # no start had ended
    assert path.exists()
    found = fit_blocks("gaussian", blocks, resume=path, **HOW)
    assert np.max(np.abs(found.theta - whole.theta)) < 1e-8


def test_a_file_of_another_fit_is_refused(rows, tmp_path):
    path, (_, reads) = tmp_path / "fit.json", at_the_end(rows)
    blocks = Blocks(Reading(rows, reads - PARTS - 2, interrupt), PARTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        with contextlib.suppress(KeyboardInterrupt):
            fit_blocks("gaussian", blocks, resume=path, **HOW)
    other = Blocks(Reading((rows[0], 2.0 * rows[1]), -1, None), PARTS)
    for given, options in ((other, HOW), (blocks, {**HOW, "n_experts": 1})):
        with pytest.raises(
            ValueError, match=r"resume: '.*fit.json' belongs to another fit: its model"
        ):
            fit_blocks("gaussian", given, resume=path, **options)
    path.write_text("no file of ours")
    with pytest.raises(ValueError, match="belongs to another fit"):
        fit_blocks("gaussian", blocks, resume=path, **HOW)
    with pytest.raises(ValueError, match="resume"):
        fit_blocks("gaussian", blocks, resume=3, **HOW)


def failing_after(count):
    """A rename that fails after so many files."""
    rename, done = Path.replace, []

    def replace(self, target):
        done.append(target)
        if len(done) > count:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(self, target)

    return replace


def test_a_disk_that_fails_at_the_beginning_is_told_before_the_fit(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "replace", failing_after(0))
    with pytest.raises(ValueError, match=r"resume: '.*fit.json' cannot be written: Input/output"):
        fit_blocks("gaussian", Blocks(Reading(rows, 0, None), PARTS), resume=tmp_path / "fit.json")
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fails_later_does_not_end_the_fit(rows, tmp_path, monkeypatch, caplog):
    blocks = Blocks(Reading(rows, 0, None), PARTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        whole = fit_blocks("gaussian", blocks, **HOW)
        monkeypatch.setattr(Path, "replace", failing_after(1))
        found = fit_blocks("gaussian", blocks, resume=tmp_path / "fit.json", **HOW)
    assert np.array_equal(found.theta, whole.theta)
    assert "cannot be written: Input/output error; it has the points of an earlier" in caplog.text
    assert not list(tmp_path.iterdir())


def test_rows_in_memory_have_no_file(rows):
    table = {"x": rows[0], "y": rows[1]}
    with pytest.raises(
        ValueError, match="resume: available only for sources that are read in parts"
    ):
        fit_formula("y ~ x", table, resume="fit.json")


def test_a_lost_scheduler_leaves_the_estimate_so_far(rows, tmp_path):
    distributed = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"x": rows[0], "y": rows[1]})
    path = tmp_path / "fit.json"
    whole = fit_formula("y ~ x", frame, n_experts=2, rng=0)

    def cluster_of():
        return distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        )

    def slow(x):
        time.sleep(0.05)
        return x

    how = {"n_experts": 2, "rng": 0, "resume": path}
    lost = cluster_of()

    def lose():
        while not path.exists():
            time.sleep(0.005)
        lost.close()

    with distributed.Client(lost):
        thread = threading.Thread(target=lose)
        thread.start()
        with pytest.raises(BaseException):  # noqa: B017, PT011
            fit_formula("y ~ slow(x)", dd.from_pandas(frame, npartitions=4), **how)
        thread.join()
    assert path.exists()
    with cluster_of() as cluster, distributed.Client(cluster):
        found = fit_formula("y ~ slow(x)", dd.from_pandas(frame, npartitions=4), **how)
    assert np.max(np.abs(found.theta - whole.theta)) < 1e-8
    assert not path.exists()


def test_passes_say_how_far_they_are(rows, caplog, monkeypatch):
    monkeypatch.setattr("moestat.estimation.progress._SECONDS_BETWEEN_PASSES", 0.0)
    table = pd.DataFrame({"x": rows[0]})
    cut = [slice(600 * i, 600 * (i + 1)) for i in range(5)]
    blocks = Blocks(lambda i: (table[cut[i]], rows[1][cut[i]]), 5, ("x",), "y")
    with caplog.at_level("INFO", logger="moestat"):
        fit_formula("y ~ x", blocks, n_experts=2, rng=0)
    said = [record.getMessage() for record in caplog.records]
    assert any(re.match(r"first pass: 20% of 3000 rows, .* a second, .* left", s) for s in said)
    assert any(re.match(r"pass for \d starts?: 40% of 3000 rows", s) for s in said), said
