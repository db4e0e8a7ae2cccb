"""Values, scores and Hessians of the loops against a plain-NumPy oracle."""

from __future__ import annotations

import numpy as np
import pytest

from moestat.metrics.information import score_rows
from moestat.solvers.problem import Evaluation, Objective, Problem, Request, Rows
from tests import oracle
from tests.kinds import KINDS, kind_id, known, make, random_response, random_theta

SIZES = [(1, 1, 2), (2, 1, 2), (3, 1, 4), (2, 2, 3), (4, 3, 2), (2, 5, 5)]
FEW_SIZES = [(1, 1, 2), (3, 2, 3)]


every_kind = pytest.mark.parametrize("kind", KINDS, ids=kind_id)
every_case = pytest.mark.parametrize(
    ("kind", "k", "d", "K"),
    [
        pytest.param(kind, *size, id=f"{kind_id(kind)}-{size}")
        for kind in KINDS
        for size in (SIZES if kind[2] == "linear" else FEW_SIZES)
    ],
)


def random_problem(kind, k, d, K, n=700, seed=0):
    rng = np.random.default_rng([seed, k, d, K])
    family = make(kind, k, d, K)
    theta = random_theta(family, rng)
    X = rng.uniform(-2, 2, size=(n, d))
    y = random_response(family, rng, n)
    weight = rng.exponential(size=n)
    encoded = family.likelihood.encode(y, family.n_classes)
    sample = Rows(np.ascontiguousarray(X.T), encoded, weight)
    return family, theta, X, y, weight, Problem(family, sample)


@every_case
def test_value_and_score_match_the_oracle(kind, k, d, K):
    family, theta, X, y, weight, problem = random_problem(kind, k, d, K)
    here = problem.evaluate(Request(Objective.OBSERVED, theta))
    assert -here.value == pytest.approx(oracle.log_likelihood(family, theta, X, y, weight), 1e-12)
    exact = oracle.score(family, theta, X, y, weight)
    assert np.allclose(-here.gradient, exact, rtol=0, atol=1e-11 * np.abs(exact).max())


@every_case
def test_hessian_matches_differences_of_the_exact_score(kind, k, d, K):
    family, theta, X, y, weight, problem = random_problem(kind, k, d, K)
    hessian = -problem.evaluate(Request(Objective.OBSERVED, theta)).hessian
    # Along random directions a wrong entry shows like in its own column, at a fraction of the cost.
    directions = np.random.default_rng(8).standard_normal((3, theta.size))
    directions[:, list(known(family))] = 0.0
    # Of two steps the one that no sample's switch of atoms or kink spoils.
    errors = []
    for h in (1e-5, 1e-7):
        steps = h * directions
        ends = [
            [oracle.score(family, theta + sign * step, X, y, weight) for step in steps]
            for sign in (1.0, -1.0)
        ]
        numeric = np.subtract(*ends) / (2 * h)
        errors.append(np.abs(directions @ hessian - numeric).max() / np.abs(hessian).max())
        if errors[0] <= 1e-7:
            break
    assert np.array_equal(hessian, hessian.T)
    assert min(errors) <= 1e-7


@every_kind
@pytest.mark.parametrize("size", [(1, 1, 2), (3, 2, 3)], ids=str)
def test_information_sums_the_outer_products_of_the_scores(kind, size):
    family, theta, X, _y, weight, problem = random_problem(kind, *size, n=201)
    found = problem.evaluate(Request(Objective.INFORMED, theta))
    rows = score_rows(family, theta, X, problem.data.y, np.sqrt(weight))
    expected = rows.T @ rows
    assert np.allclose(found.information, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    assert np.array_equal(found.information, found.information.T)


@every_kind
def test_information_leaves_the_derivatives_as_they_are(kind):
    _family, theta, _X, _y, _weight, problem = random_problem(kind, 3, 2, 3)
    found = problem.evaluate(Request(Objective.INFORMED, theta))
    observed = problem.evaluate(Request(Objective.OBSERVED, theta))
    assert found.value == observed.value
    assert np.array_equal(found.gradient, observed.gradient)
    assert np.array_equal(found.hessian, observed.hessian)
    assert type(observed) is Evaluation


@every_kind
def test_complete_data_objective(kind):
    """Q has the score of the likelihood where tau was computed, and a consistent Hessian."""
    family, theta, _X, _y, _weight, problem = random_problem(kind, 3, 2, 3)
    observed = problem.evaluate(Request(Objective.OBSERVED, theta))
    problem.evaluate(Request(Objective.EXPECTATION, theta))
    complete = problem.evaluate(Request(Objective.COMPLETE, theta))
    scale = max(1.0, float(np.abs(complete.hessian).max()))
    assert np.allclose(complete.gradient, observed.gradient, atol=1e-9)
    h = 1e-6
    for j in set(range(theta.size)) - known(family):
        step = np.zeros(theta.size)
        step[j] = h
        up = problem.evaluate(Request(Objective.COMPLETE, theta + step))
        down = problem.evaluate(Request(Objective.COMPLETE, theta - step))
        if not (np.isfinite(up.value) and np.isfinite(down.value)):
            continue  # an atom that has a share of a sample fell out of its top K
        slope = (up.value - down.value) / (2 * h)
        assert slope == pytest.approx(complete.gradient[j], abs=1e-6 * scale)
        numeric = (up.gradient - down.gradient) / (2 * h)
        assert np.allclose(numeric, complete.hessian[j], atol=1e-6 * scale)


@every_kind
@pytest.mark.parametrize("n", [1, 32, 33, 96, 97, 400])
def test_block_edges(kind, n):
    family, theta, X, y, weight, problem = random_problem(kind, 2, 2, 3, n=n)
    here = problem.evaluate(Request(Objective.OBSERVED, theta))
    assert -here.value == pytest.approx(oracle.log_likelihood(family, theta, X, y, weight), 1e-12)


@every_kind
def test_no_samples_have_no_gate_probabilities(kind):
    family, theta, *_ = random_problem(kind, 2, 2, 3, n=1)
    assert family.gate_probabilities(theta, np.empty((0, 2))).shape == (0, 2)


@every_kind
def test_weights_are_counts(kind):
    family, theta, X, _, _, problem = random_problem(kind, 2, 1, 2, n=300)
    counts = np.random.default_rng(0).integers(0, 4, size=300)
    design, encoded = problem.data.X, problem.data.y
    weighted = Problem(family, Rows(design, encoded, counts.astype(float)))
    rows = np.repeat(np.arange(300), counts)
    repeated = Problem(
        family, Rows(np.ascontiguousarray(X[rows].T), encoded[rows], np.ones(rows.size))
    )
    one, other = (p.evaluate(Request(Objective.OBSERVED, theta)) for p in (weighted, repeated))
    scale = max(1.0, float(np.abs(one.hessian).max()))
    assert one.value == pytest.approx(other.value, rel=1e-13)
    assert np.allclose(one.gradient, other.gradient, atol=1e-12 * scale)
    assert np.allclose(one.hessian, other.hessian, atol=1e-12 * scale)


@pytest.mark.parametrize("kind", [k for k in KINDS if k[0] == "multinomial"], ids=kind_id)
def test_extreme_parameters_stay_finite(kind):
    """Scores of +-1e4 on the edge of any box neither overflow nor turn into NaN."""
    family, theta, _X, _y, _, problem = random_problem(kind, 3, 2, 3)
    here = problem.evaluate(Request(Objective.OBSERVED, 1e4 * theta))
    assert np.isfinite(here.value)
    assert np.all(np.isfinite(here.gradient))
    assert np.all(np.isfinite(here.hessian))
    row = family.rowwise(1e4 * theta, problem.data.X, problem.data.y)
    assert np.allclose(row[0].sum(axis=0), 1.0)
    assert np.allclose(row[1].sum(axis=0), 1.0)
