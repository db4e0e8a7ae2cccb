"""The default estimate is the maximum to which the highest mode leads; other ends are listed."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import moestat
from moestat.base.warnings import MoEWarning

pytestmark = pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 2))
    first = rng.random(500) < 1 / (1 + np.exp(-2 * X[:, 0]))
    y = np.where(first, 1 + X[:, 1], -1 - X[:, 1]) + 0.4 * rng.normal(size=500)
    return X, y


@pytest.fixture(scope="module")
def result(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        return moestat.fit("gaussian", *rows, n_experts=3, rng=1)


def test_the_first_end_is_the_fit_and_has_the_highest_mode(rows, result):
    mode = moestat.fit("gaussian", *rows, n_experts=3, prior="weak", rng=1)
    ends = result.ends
    assert ends.log_likelihood[0] == pytest.approx(result.llf, abs=1e-6)
    # The mode has a higher posterior density than the maximum to which it leads.
    assert mode.log_posterior >= ends.log_posterior.max() - 1e-6
    assert mode.llf <= result.llf


def test_each_end_can_be_had_as_a_fit(result):
    for j, height in enumerate(result.ends.log_likelihood):
        other = result.at_end(j)
        assert other.llf == pytest.approx(height, abs=0.01)
        assert other.certificate.certified
    for j in (len(result.ends), True):
        with pytest.raises(ValueError, match="j must be a row of the table ends"):
            result.at_end(j)


def test_the_first_end_is_the_fit_in_any_order_and_where_time_was_over(rows, result):
    """A climb from it put experts into another order, and went on from where time was over."""
    moved = result.relabel([3, 1, 2])
    stopped = moestat.fit("gaussian", *rows, n_experts=4, time_limit=0.3, rng=1)
    for fit in (moved, stopped) if stopped.seen is not None else (moved,):
        first = fit.at_end(0)
        assert np.array_equal(first.theta, fit.theta)
        assert first.llf == pytest.approx(fit.ends.log_likelihood[0], abs=1e-6)
    other = result.named({1: "low", 2: "middle", 3: "high"}).at_end(1)
    assert other.experts.own is None  # another end has other experts


def test_ends_have_their_likelihood_and_posterior_density():
    """Of weighted rows; both sums by NumPy."""
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(150, 2)), rng.normal(size=150)
    weight = rng.integers(1, 4, 150).astype(float)
    y = np.where(rng.random(150) < 0.5, X[:, 0], -X[:, 0]) + 0.6 * y
    how = {"n_experts": 3, "sample_weight": weight, "risk": 0.01, "rng": 0}
    found = moestat.fit("gaussian", X, y, **how)
    heights, posteriors = [], []
    share = weight / weight.sum()
    middle, level = share @ X, share @ y
    scale = np.sqrt(share @ (X - middle) ** 2)
    spread = np.sqrt(share @ (y - level) ** 2)
    for theta in found.seen.theta:
        parts = found.family.unpack(theta)
        gate = parts["beta0"] + X @ parts["beta1"].T
        gate = gate - logsumexp(gate, axis=1, keepdims=True)
        mean = parts["b"] + X @ parts["a"].T
        density = norm.logpdf(y[:, None], mean, np.sqrt(parts["nu"]))
        heights.append(weight @ logsumexp(gate + density, axis=1))
        at = parts["beta0"] + parts["beta1"] @ middle
        slopes = (parts["beta1"] - parts["beta1"].mean(axis=0)) * scale
        own, moves = (
            (parts["b"] + parts["a"] @ middle - level) / spread,
            parts["a"] * scale / spread,
        )
        squares = ((at - at.mean()) ** 2).sum() + (own**2).sum()
        log_prior = -squares / (2 * 10.0**2) - ((slopes**2).sum() + (moves**2).sum()) / (2 * 2.5**2)
        log_prior -= (2.5 * np.log(parts["nu"]) + spread**2 / 9 / (2 * parts["nu"])).sum()
        posteriors.append(heights[-1] + log_prior)
    assert len(heights) > 1
    assert np.allclose(found.ends.log_likelihood, heights, rtol=0, atol=1e-4)
    constant = found.ends.log_posterior - posteriors
    assert np.allclose(constant, constant[0], rtol=0, atol=1e-4)


def test_a_note_says_where_an_end_is_higher(result):
    higher = result.ends.log_likelihood.max() > result.llf + 0.01
    summary = " ".join(str(result.summary()).split())
    assert ("also saw an end whose log-likelihood is higher" in summary) == higher
    assert higher


def test_ends_are_saved(result, tmp_path):
    result.save(tmp_path / "fit.npz")
    again = moestat.load(tmp_path / "fit.npz")
    pd.testing.assert_frame_equal(again.ends, result.ends)


def test_ends_of_other_units_and_of_copies_are_the_same(rows, result):
    X, y = rows
    other = moestat.fit("gaussian", X, 10 * y + 3, n_experts=3, rng=1)
    shift = 500 * np.log(10)
    assert other.llf == pytest.approx(result.llf - shift, abs=0.01)
    assert other.ends.log_likelihood[0] == pytest.approx(other.llf, abs=1e-6)
    twice = moestat.fit("gaussian", X, y, n_experts=2, sample_weight=np.full(500, 2), rng=1)
    once = moestat.fit("gaussian", X, y, n_experts=2, rng=1)
    assert twice.llf == pytest.approx(2 * once.llf, abs=0.01)


def test_fits_without_a_search_for_modes_know_no_ends(rows):
    X, y = rows
    for options in ({"n_experts": 1}, {"n_experts": 2, "maximum": "highest"}):
        with pytest.raises(ValueError, match="ends: known only of fits of several experts"):
            _ = moestat.fit("gaussian", X, y, rng=0, **options).ends
    with pytest.raises(ValueError, match="maximum must be one of 'regular', 'highest'"):
        moestat.fit("gaussian", X, y, maximum="largest")


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_modes_that_lead_to_a_collapsed_expert_are_said():
    """A quarter of the rows lie on a line exactly, where an expert alone has no bound."""
    told = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=50)
        y = np.where(rng.random(50) < 0.5, 1.0 + 2.0 * x, -1.0 - x) + 0.4 * rng.normal(size=50)
        y[:12] = 2.0 + x[:12]
        result = moestat.fit("gaussian", x, y, n_experts=3, rng=0)
        for text in (str(result.summary()), str(result.explain())):
            told.append("where the likelihood has no bound: the fit is" in " ".join(text.split()))
            assert told[-1] == (result.seen.collapsed > 0)
        mode = moestat.fit("gaussian", x, y, n_experts=3, rng=0, prior="weak")
        assert mode.log_posterior > result.ends.log_posterior[0] - 0.01
    assert any(told)
    assert not all(told)
