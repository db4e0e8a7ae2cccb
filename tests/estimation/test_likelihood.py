"""The log-likelihood at any parameters, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import moestat
from tests import oracle
from tests.kinds import (
    EACH_REGRESSION,
    KINDS,
    REGRESSION,
    each_run,
    kind_id,
    known,
    make,
    random_response,
    random_theta,
)

SMOOTH = [kind for kind in KINDS if "top" not in kind_id(kind)]


def case(kind, n=40):
    rng = np.random.default_rng(3)
    family = make(kind, 3, 2, 3)
    return (
        family,
        random_theta(family, rng),
        rng.uniform(-2, 2, size=(n, 2)),
        random_response(family, rng, n),
        rng.exponential(size=n),
    )


@pytest.mark.parametrize("kind", KINDS, ids=kind_id)
def test_densities_match_the_oracle(kind):
    family, theta, X, y, weight = case(kind)
    exact = oracle.log_likelihood(family, theta, X, y, weight)
    assert moestat.log_likelihood(family, theta, X, y, weight) == pytest.approx(exact, rel=1e-11)
    score = moestat.score(family, theta, X, y, weight)
    exact = oracle.score(family, theta, X, y, weight)
    assert np.allclose(score, exact, rtol=0, atol=1e-10 * np.abs(exact).max())
    pi = moestat.gate_probabilities(family, theta, X)
    tau = moestat.responsibilities(family, theta, X, y)
    assert np.allclose(pi.sum(axis=1), 1.0)
    assert np.allclose(tau.sum(axis=1), 1.0)
    blocks = oracle.blocks_of(family, theta)
    joint = pi.T * np.exp(oracle.expert_log_densities(family, blocks, X, y))
    assert np.allclose(tau.T * np.exp(family.log_density(theta, X, y)), joint, atol=1e-12)


def profile(family, theta, X, y, weight):
    """Gaussian log-likelihood of a regression function at its best variance."""
    variance = weight @ (y - oracle.regression(family, theta, X)) ** 2 / weight.sum()
    return -0.5 * weight.sum() * (np.log(2 * np.pi * variance) + 1)


@pytest.mark.parametrize("kind", each_run(REGRESSION, EACH_REGRESSION, kind_id))
def test_regression_functions_have_a_likelihood_with_the_variance_profiled_out(kind):
    family, theta, X, y, weight = case(kind)
    exact = profile(family, theta, X, y, weight)
    assert moestat.log_likelihood(family, theta, X, y, weight) == pytest.approx(exact, rel=1e-11)
    slope = np.empty(theta.size)
    for j in range(theta.size):
        moved = theta.astype(complex)
        moved[j] += 1e-30j
        slope[j] = profile(family, moved, X, y, weight).imag / 1e-30
    score = moestat.score(family, theta, X, y, weight)
    assert np.allclose(score, slope, rtol=0, atol=1e-9 * np.abs(slope).max())
    weights = oracle.weights(family, oracle.blocks_of(family, theta), X)
    assert np.allclose(moestat.gate_probabilities(family, theta, X), weights.T, atol=1e-12)
    with pytest.raises(ValueError, match="does not determine which expert a response comes from"):
        moestat.responsibilities(family, theta, X, y)


@pytest.mark.parametrize(
    "kind", each_run([*SMOOTH, *REGRESSION], [*SMOOTH, *EACH_REGRESSION], kind_id)
)
def test_hessians_are_the_derivatives_of_scores(kind):
    family, theta, X, y, weight = case(kind)
    hessian = moestat.hessian(family, theta, X, y, weight)
    numeric = np.zeros_like(hessian)
    for j, step in enumerate(1e-6 * np.eye(theta.size)):
        if j in known(family):
            continue
        up = moestat.score(family, theta + step, X, y, weight)
        numeric[j] = (up - moestat.score(family, theta - step, X, y, weight)) / 2e-6
    assert np.allclose(hessian, numeric, rtol=0, atol=1e-6 * np.abs(numeric).max())


def test_frames_and_weights_are_read_as_in_a_fit():
    family, theta, X, y, _ = case(("gaussian", "softmax", "linear"))
    frame = pd.DataFrame(X)  # columns without names are positions
    whole = moestat.log_likelihood(family, theta, frame, y)
    assert whole == moestat.log_likelihood(family, theta, X, y)
    twice = moestat.log_likelihood(family, theta, X, y, np.full(len(y), 2.0))
    assert twice == pytest.approx(2.0 * whole, rel=1e-13)


@pytest.mark.parametrize(
    "function",
    [moestat.log_likelihood, moestat.score, moestat.hessian, moestat.responsibilities],
)
def test_bad_arguments_are_named(function):
    family, theta, X, y, _ = case(("gaussian", "softmax", "linear"))
    for arguments, message in [
        ((None, theta, X, y), "family must be a family from moestat.family, got None"),
        (("gaussian", theta, X, y), "family must be a family from moestat.family, got 'gaussian'"),
        ((family, theta[1:], X, y), r"params must have shape \(21\), got \(20,\)"),
        ((family, theta, X[:, :1], y), r"X must have shape \(any, 2\)"),
        ((family, theta, X, y[1:]), "X has 40 samples but y has 39"),
        ((family, theta, X, None), "y is missing"),
    ]:
        with pytest.raises(ValueError, match=message):
            function(*arguments)
