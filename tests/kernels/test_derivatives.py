"""Values, scores and Hessians of the loops against a plain-NumPy oracle."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.gates import GATES
from moestat.solvers._driver import Problem, Request, Sample
from tests import oracle

SIZES = [(1, 1, 2), (2, 1, 2), (3, 1, 4), (2, 2, 3), (4, 3, 2), (2, 5, 5)]


def random_problem(gate, k, d, K, n=700, seed=0):
    rng = np.random.default_rng([seed, k, d, K])
    family = moestat.family("multinomial", gate=gate, n_experts=k, n_features=d, n_classes=K)
    theta = rng.normal(size=family.n_params)
    theta = np.where(family.lower > 0, 0.5 + np.abs(theta), theta)
    X = rng.uniform(-2, 2, size=(n, d))
    y = rng.integers(1, K + 1, size=n)
    weight = rng.exponential(size=n)
    sample = Sample(np.ascontiguousarray(X.T), y - 1, weight)
    return family, theta, X, y, weight, Problem(family, sample)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(("k", "d", "K"), SIZES)
def test_value_and_score_match_the_oracle(gate, k, d, K):
    family, theta, X, y, weight, problem = random_problem(gate, k, d, K)
    here = problem.evaluate(Request("observed", theta))
    assert -here.value == pytest.approx(oracle.log_likelihood(family, theta, X, y, weight), 1e-12)
    exact = oracle.score(family, theta, X, y, weight)
    assert np.allclose(-here.gradient, exact, rtol=0, atol=1e-11 * np.abs(exact).max())


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(("k", "d", "K"), SIZES)
def test_hessian_matches_differences_of_the_exact_score(gate, k, d, K):
    family, theta, X, y, weight, problem = random_problem(gate, k, d, K)
    hessian = -problem.evaluate(Request("observed", theta)).hessian
    h = 1e-5
    numeric = np.empty_like(hessian)
    for j in range(theta.size):
        step = np.zeros(theta.size)
        step[j] = h
        up = oracle.score(family, theta + step, X, y, weight)
        down = oracle.score(family, theta - step, X, y, weight)
        numeric[j] = (up - down) / (2 * h)
    assert np.array_equal(hessian, hessian.T)
    assert np.abs(hessian - numeric).max() <= 1e-7 * np.abs(numeric).max()


@pytest.mark.parametrize("gate", GATES)
def test_complete_data_objective(gate):
    """Q has the score of the likelihood where tau was computed, and a consistent Hessian."""
    _family, theta, _X, _y, _weight, problem = random_problem(gate, 3, 2, 3)
    observed = problem.evaluate(Request("observed", theta))
    problem.evaluate(Request("expectation", theta))
    complete = problem.evaluate(Request("complete", theta))
    assert np.allclose(complete.gradient, observed.gradient, atol=1e-9)
    h = 1e-5
    for j in range(theta.size):
        step = np.zeros(theta.size)
        step[j] = h
        up = problem.evaluate(Request("complete", theta + step))
        down = problem.evaluate(Request("complete", theta - step))
        assert (up.value - down.value) / (2 * h) == pytest.approx(complete.gradient[j], abs=1e-4)
        numeric = (up.gradient - down.gradient) / (2 * h)
        assert np.allclose(numeric, complete.hessian[j], atol=1e-5)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("n", [1, 255, 256, 257])
def test_block_edges(gate, n):
    family, theta, X, y, weight, problem = random_problem(gate, 2, 2, 3, n=n)
    here = problem.evaluate(Request("observed", theta))
    assert -here.value == pytest.approx(oracle.log_likelihood(family, theta, X, y, weight), 1e-12)


@pytest.mark.parametrize("gate", GATES)
def test_weights_are_counts(gate):
    family, theta, X, y, _, _ = random_problem(gate, 2, 1, 2, n=300)
    counts = np.random.default_rng(0).integers(0, 4, size=300)
    weighted = Problem(family, Sample(np.ascontiguousarray(X.T), y - 1, counts.astype(float)))
    rows = np.repeat(np.arange(300), counts)
    repeated = Problem(
        family, Sample(np.ascontiguousarray(X[rows].T), y[rows] - 1, np.ones(rows.size))
    )
    one, other = (p.evaluate(Request("observed", theta)) for p in (weighted, repeated))
    assert one.value == pytest.approx(other.value, rel=1e-13)
    assert np.allclose(one.gradient, other.gradient, atol=1e-10)
    assert np.allclose(one.hessian, other.hessian, atol=1e-10)


@pytest.mark.parametrize("gate", GATES)
def test_extreme_parameters_stay_finite(gate):
    """Scores of +-1e4 on the edge of any box neither overflow nor turn into NaN."""
    family, theta, _X, _y, _, problem = random_problem(gate, 3, 2, 3)
    here = problem.evaluate(Request("observed", 1e4 * theta))
    assert np.isfinite(here.value)
    assert np.all(np.isfinite(here.gradient))
    assert np.all(np.isfinite(here.hessian))
    row = family.rowwise(1e4 * theta, problem.data.X, problem.data.y)
    assert np.allclose(row[0].sum(axis=0), 1.0)
    assert np.allclose(row[1].sum(axis=0), 1.0)
