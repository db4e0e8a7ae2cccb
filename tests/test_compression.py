"""Gauss compression keeps moments, weights and the likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moestat
from moestat.compression import gauss_compress


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
    result = moestat.fit(family, X, y, rng=0)
    assert result.certificate.passes >= 1.0
    assert result.certificate.passes < result.certificate.iterations
    assert result.log_likelihood == pytest.approx(
        family.log_density(result.params, X, y).sum(), rel=1e-13
    )
