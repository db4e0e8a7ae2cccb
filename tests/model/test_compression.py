"""Gauss compression keeps moments, weights and the likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moestat
from moestat.estimation.starts import RandomStarts, TruthStarts
from moestat.model.compression import gauss_compress


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 400),
    panels=st.integers(1, 5),
    nodes=st.integers(1, 5),
)
def test_moments_of_every_class_are_kept(seed, n, panels, nodes):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=n), 1) + np.linspace(0, 0.01, n)
    y = rng.integers(0, 3, size=n)
    weight = rng.exponential(size=n) * (rng.random(n) > 0.2) + 1e-3
    at, label, mass = gauss_compress(x, y, weight, panels, nodes)
    assert np.all(mass > 0)
    assert mass.sum() == pytest.approx(weight.sum(), rel=1e-12)
    assert at.min() >= x.min() - 1e-12
    assert at.max() <= x.max() + 1e-12
    for s in range(3):
        for power in range(2 * nodes):
            exact = weight[y == s] @ x[y == s] ** power
            size = weight[y == s] @ np.abs(x[y == s]) ** power
            kept = mass[label == s] @ at[label == s] ** power
            assert kept == pytest.approx(exact, abs=1e-8 * max(size, 1e-300) + 1e-10)


@pytest.mark.parametrize("scale", [1.0, 6.0])
def test_likelihood_is_kept_to_rounding(scale, truth):
    family, theta = truth("sigmoid")
    X, y = moestat.sample(family, theta, 50_000, rng=0)
    x, label, mass = gauss_compress(X[:, 0], y - 1, np.ones(len(y)), 32, 4)
    assert x.size <= 256
    rng = np.random.default_rng(1)
    for _ in range(5):
        point = np.clip(theta + scale * rng.normal(size=theta.size), family.lower, family.upper)
        full = family.log_density(point, X, y).sum()
        short = mass @ family.log_density(point, x, label + 1)
        assert short == pytest.approx(full, abs=1e-8)


def test_newton_ends_on_all_the_data(truth):
    """The certificate of a compressed fit is computed without compression."""
    family, theta = truth("softmax")
    X, y = moestat.sample(family, theta, 30_000, rng=0)
    result = moestat.fit(family, X, y, rng=0, starts=[RandomStarts(4)])
    assert result.certificate.passes >= 1.0
    assert result.certificate.passes < result.certificate.iterations
    assert result.log_likelihood == pytest.approx(
        family.log_density(result.params, X, y).sum(), rel=1e-13
    )


def test_equal_inputs_are_one_row_of_each_class():
    # A panel of width 0 has written past the end of the moments.
    x, y, weight = np.full(400, 0.3), np.arange(400) % 3, np.ones(400)
    at, label, mass = gauss_compress(x, y, weight, 8, 4)
    np.testing.assert_allclose(at, 0.3)
    np.testing.assert_array_equal(label, [0, 1, 2])
    np.testing.assert_allclose(mass, [134.0, 133.0, 133.0])


def test_ties_are_grouped_without_loss(truth):
    family, theta = truth("sigmoid")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, size=(3000, 1)) / 5.0
    y = rng.integers(1, 3, size=3000)
    weight = rng.integers(0, 3, size=3000).astype(float)
    short = moestat.compress(X, y, weight)
    assert short.lossless
    assert short.weight.size == 40
    assert short.weight.sum() == weight.sum()
    assert short.y.dtype == y.dtype
    full = weight @ family.log_density(theta, X, y)
    kept = short.weight @ family.log_density(theta, short.X, short.y)
    assert kept == pytest.approx(full, rel=1e-13)
    assert short.error_bound(family, theta) == 0.0
    assert short.summary() == "3000 rows as 40: ties grouped, nothing lost"


def test_rows_of_several_inputs_and_real_responses_are_grouped_only():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(500, 2)).astype(float)
    assert moestat.compress(X, rng.integers(0, 2, size=500)).weight.size == 18
    assert moestat.compress(X, rng.normal(size=500)).weight.size == 500
    short = moestat.compress(np.arange(20_000.0), np.repeat([0.5, 1.5], 10_000))
    assert short.lossless


@pytest.mark.parametrize("panels", [8, 32, 256])
@pytest.mark.parametrize("scale", [0.0, 2.0, 8.0])
def test_the_bound_holds(panels, scale, truth):
    family, theta = truth("sigmoid")
    X, y = moestat.sample(family, theta, 40_000, rng=0, design=moestat.Uniform(-4, 4))
    short = moestat.compress(X, y, panels=panels)
    assert short.mass.sum() == pytest.approx(40_000)
    rng = np.random.default_rng(1)
    for _ in range(5):
        point = np.clip(theta + scale * rng.normal(size=theta.size), family.lower, family.upper)
        full = family.log_density(point, X, y).sum()
        kept = short.weight @ family.log_density(point, short.X, short.y)
        assert abs(kept - full) <= short.error_bound(family, point) + 1e-13 * abs(full)


def test_a_kink_needs_a_panel_edge(truth):
    family, theta = truth("sigmoid-euclidean")
    X, y = moestat.sample(family, theta, 40_000, rng=0, design=moestat.Uniform(-4, 4))
    kinks = family.unpack(theta)["alpha"].ravel()
    without = moestat.compress(X, y, panels=61)
    with_edges = moestat.compress(X, y, panels=61, edges=kinks)
    full = family.log_density(theta, X, y).sum()
    errors = [
        abs(short.weight @ family.log_density(theta, short.X, short.y) - full)
        for short in (without, with_edges)
    ]
    bounds = [short.error_bound(family, theta) for short in (without, with_edges)]
    assert errors[0] <= bounds[0]
    assert errors[1] <= bounds[1] + 1e-8
    assert bounds[1] < 1e-3 * bounds[0]
    assert bounds[0] > 1e-3


def test_fits_to_compressed_data_are_fits_to_all(truth):
    family, theta = truth("softmax")
    X, y = moestat.sample(family, theta, 60_000, rng=0, design=moestat.Uniform(-4, 4))
    starts = [TruthStarts(family, theta, 1, 0.0)]
    short = moestat.fit(family, X, y, starts=starts, rng=0, compress="auto")
    full = moestat.fit(family, X, y, starts=starts, rng=0)
    assert short.certificate.certified
    assert short.weight.size == 60_000  # the result has the weights of all rows
    assert short.nobs == pytest.approx(full.nobs)
    assert short.log_likelihood == pytest.approx(full.log_likelihood, abs=1e-6)
    assert short.params == pytest.approx(full.params, abs=1e-5)


def test_a_kink_sends_the_fit_back_to_all_the_data(truth):
    family, theta = truth("sigmoid-euclidean")
    X, y = moestat.sample(family, theta, 60_000, rng=0, design=moestat.Uniform(-4, 4))
    starts = [TruthStarts(family, theta, 1, 0.0)]
    result = moestat.fit(family, X, y, starts=starts, rng=0, compress="auto")
    assert result.weight.size == 60_000
    with pytest.raises(ValueError, match="compress must be"):
        moestat.fit(family, X, y, compress="always")


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="y must have shape"):
        moestat.compress([1.0, 2.0], [1])
    with pytest.raises(ValueError, match="NaN"):
        moestat.compress([1.0, np.nan], [1, 2])
    with pytest.raises(ValueError, match="nodes must be at most 8"):
        moestat.compress([1.0, 2.0], [1, 2], nodes=9)
