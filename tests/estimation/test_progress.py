"""Long calls say how far they are, and leave what they have when a signal interrupts them."""

from __future__ import annotations

import logging
import os
import signal
from contextlib import contextmanager
from itertools import count

import numpy as np
import pytest

import moestat
from moestat.base.warnings import InterruptedWarning
from moestat.estimation.progress import LOG, Report
from moestat.estimation.starts import RandomStarts
from moestat.solvers.driver import until

rng = np.random.default_rng(0)
x = rng.uniform(-2, 2, 300)
y = np.abs(x) + 0.3 * rng.normal(size=300)
table = {"x": x, "y": y}


@pytest.fixture(scope="module")
def one():
    return moestat.fit("gaussian", x, y, n_experts=1, rng=0)


@pytest.fixture(autouse=True)
def ctrl_c_raises():
    """Without job control a shell has what it starts with & ignore SIGINT, pytest included."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def interrupted_at(words):
    """Send the signal of Ctrl-C when the log first has these words."""
    waiting = [words]

    class Handler(logging.Handler):
        def emit(self, record):
            if waiting and waiting[0] in record.getMessage():
                waiting.clear()
                os.kill(os.getpid(), signal.SIGINT)

    handler, level = Handler(), LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(level)


@pytest.fixture
def interrupted_after(monkeypatch):
    """Send the signal of Ctrl-C after so many steps."""

    def at(steps):
        def count(self, done):
            if done >= steps:
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(Report, "count", count)

    return at


def test_a_fit_ends_with_the_best_start_so_far_and_says_so():
    whole = moestat.fit("gaussian", x, y, n_experts=4, n_starts=8, risk=0.01, rng=0)
    with interrupted_at("batch 2:"), pytest.warns(InterruptedWarning, match="interrupted"):
        cut = moestat.fit("gaussian", x, y, n_experts=4, n_starts=8, risk=0.01, rng=0)
    assert cut.certificate.certified
    assert cut.certificate.n_starts < whole.certificate.n_starts
    assert "the fit was interrupted" in " ".join(str(cut.summary()).split())


def test_a_fit_begins_to_have_a_result_with_its_first_runs():
    with interrupted_at("runs of"), pytest.warns(InterruptedWarning, match="interrupted"):
        cut = moestat.fit("gaussian", x, y, n_experts=4, rng=0)
    assert cut.certificate.n_starts <= 3


def test_more_time_does_not_end_lower(monkeypatch):
    """A search whose time is over keeps its best run; the clock counts how often it is read."""
    F = moestat.family("gaussian", gate="softmax", n_experts=5, n_features=2)
    draws = np.random.default_rng(1)
    typical = {name: 1.5 * block for name, block in F.unpack(draws.normal(size=35)).items()}
    theta = F.pack(typical | {"nu": np.abs(typical["nu"] / 1.5) + 0.2})
    data = moestat.sample(F, theta, 3000, rng=2, design=moestat.Uniform(-2, 2))
    heights = []
    for limit in (8.0, 16.0, 22.0, 30.0, 40.0, 54.0):
        ticks = count(1.0)
        monkeypatch.setattr("moestat.solvers.driver.time.monotonic", lambda t=ticks: next(t))
        with pytest.warns(InterruptedWarning, match="reached its time_limit"):
            cut = moestat.fit(F, *data, rng=0, threads=1, time_limit=limit)
        heights.append(cut.llf)
    assert np.diff(heights).min() > -0.01
    assert heights[-1] > heights[0] + 10.0


def test_a_start_that_time_has_stopped_counts_where_it_is_higher(monkeypatch):
    """The lower start has ended when the time is over, and the higher one has just begun."""
    F = moestat.family("gaussian", gate="softmax", n_experts=4)
    fits = [moestat.fit(F, x, y, starts=[RandomStarts(1)], rng=seed) for seed in range(6)]
    fits = [each for each in fits if each.certificate.certified]
    low, high = (choose(fits, key=lambda each: each.llf) for choose in (min, max))
    assert high.llf > low.llf + 0.1
    from moestat.estimation.fit import batches

    kept = batches.attempt

    def attempt(iterations, problems, target):
        ends = kept(iterations[:1], problems[:1], target)
        with until(-np.inf):
            return ends + kept(iterations[1:], problems[1:], target)

    monkeypatch.setattr(batches, "attempt", attempt)
    starts = [moestat.starts.GivenStarts([low.theta, high.theta])]
    with pytest.warns(InterruptedWarning, match="reached its time_limit"):
        cut = moestat.fit(F, x, y, starts=starts, rng=0)
    assert cut.llf == pytest.approx(high.llf, abs=1e-6)


def test_a_fit_that_has_found_nothing_raises():
    with interrupted_at("climbing on"), pytest.raises(KeyboardInterrupt):
        moestat.fit("gaussian", x, y, starts=[RandomStarts(2)], rng=0)


def test_of_several_starts_those_that_have_ended_count(monkeypatch):
    """The signal comes when one start has ended and others have not."""
    F = moestat.family("gaussian", gate="softmax", n_experts=2)
    best = moestat.fit(F, x, y, rng=0)
    from moestat.estimation.fit import batches

    kept = batches.attempt

    def attempt(iterations, problems, target):
        ends = kept(iterations[:1], problems[:1], target)
        os.kill(os.getpid(), signal.SIGINT)
        return ends + kept(iterations[1:], problems[1:], target)

    monkeypatch.setattr(batches, "attempt", attempt)
    starts = [moestat.starts.GivenStarts([best.theta]), RandomStarts(3)]
    with pytest.warns(InterruptedWarning, match="that were finished, 1, and"):
        cut = moestat.fit(F, x, y, starts=starts, rng=0)
    assert cut.llf == pytest.approx(best.llf, abs=1e-6)
    with pytest.raises(KeyboardInterrupt):  # of a batch there is no partial result
        moestat.fit_many(F, [(x, y)], starts=starts, rng=0)


def test_a_bootstrap_has_the_replicates_so_far(one, interrupted_after):
    whole = one.bootstrap(128, rng=0)
    assert not whole.interrupted
    interrupted_after(64)
    with pytest.warns(InterruptedWarning, match="64 resamples"):
        cut = one.bootstrap(128, rng=0)
    assert cut.interrupted
    assert np.array_equal(cut.replicates, whole.replicates[:64])
    assert "64 of 128 resamples entered" in str(cut)
    assert "interrupted" in str(cut)
    assert np.all(np.isfinite(cut.bse))


def test_a_test_of_the_order_has_the_resamples_so_far(one, interrupted_after):
    two = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
    interrupted_after(1)
    with pytest.warns(InterruptedWarning, match="4 resamples"):
        cut = moestat.bootstrap_lrt(one, two, 99, rng=0)
    assert cut.interrupted
    entered = cut.replicates.size
    assert entered + cut.n_left_out == 4
    assert cut.pvalue == pytest.approx(1 / (1 + entered))
    assert f"({entered} of 99 resamples" in str(cut)
    assert "interrupted" in str(cut)


@pytest.mark.parametrize("how", [{"y": y, "X": x}, {"X": ["y ~ x | 1", "y ~ x"], "data": table}])
def test_a_selection_has_the_models_so_far(how):
    """The signal comes while a fit searches, which is not for the fit to answer."""
    with interrupted_at("batch 3:"), pytest.warns(InterruptedWarning, match="interrupted"):
        cut = moestat.select("gaussian", k=(1, 4), n_starts=8, rng=0, **how)
    assert len(cut.results) == 1
    assert "interrupted before" in str(cut)
    assert "interrupted" in repr(cut)
    assert 4 in (cut.left[0] if isinstance(cut.left[0], tuple) else cut.left)


def test_estimators_do_not_answer_so_that_searches_over_them_end():
    pytest.importorskip("sklearn")
    from moestat.estimation.fitting.estimators import MoERegressor

    with interrupted_at("batch 3:"), pytest.raises(KeyboardInterrupt):
        MoERegressor(4, random_state=0).fit(x[:, None], y)


def test_steps_and_the_log_are_shown_when_asked_for(one, capsys):
    moestat.fit("gaussian", x, y, n_experts=4, rng=0)
    assert capsys.readouterr().err == ""
    one.bootstrap(20, rng=0, verbose=True)
    assert "bootstrap: 20 of 20 resamples" in capsys.readouterr().err
    moestat.select("gaussian", x, y, k=(1, 2), folds=2, rng=0, verbose=True)
    assert "select: 2 of 2 fits" in capsys.readouterr().err
    moestat.fit("gaussian", x, y, n_experts=2, rng=0, verbose=True)
    said = capsys.readouterr().err
    assert "fit: 12 runs of at most" in said
    assert "fit: done" in said
    moestat.em_test(np.arange(9), verbose=True)
    assert "em_test: 3 of 3 shares" in capsys.readouterr().err
    assert LOG.level == logging.NOTSET
    assert not LOG.handlers
    with pytest.raises(ValueError, match="verbose must be True or False, got 'yes'"):
        one.bootstrap(20, verbose="yes")
