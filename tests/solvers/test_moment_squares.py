"""Least squares in the moments: over-specified fits of large samples, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.estimation.starts import GivenStarts, MeasureStarts, TruthStarts
from moestat.solvers import GaussNewtonBFGS, LevenbergMarquardt, MomentSquares, NewtonSquares
from moestat.solvers.least_squares.gauss_newton import least_squares_solution
from moestat.solvers.problem import Objective, Problem, Request, Rows

GRID = moestat.Lattice(-1.0, 1.0, nodes=10)
GELU = {"name": "activation", "activation": "gelu", "weighted": False}


def regression(gate, expert, n_experts=2):
    return moestat.family(
        "least-squares", gate=gate, expert=expert, n_experts=n_experts, n_features=2
    )


@pytest.mark.parametrize("gate", ["sigmoid-quadratic", "softmax-quadratic"])
def test_over_specified_fits_are_certified_and_need_few_iterations(gate):
    family = regression(gate, GELU)
    theta = family.pin(np.random.default_rng(0).normal(size=family.n_params))
    iterations, heights = np.zeros(2), np.zeros(2)
    for seed in range(3):
        X, y, weight = moestat.sample_weighted(
            family, theta, 1e14, rng=seed, design=GRID, noise=0.01
        )
        for j, solver in enumerate((LevenbergMarquardt(), MomentSquares())):
            starts = [MeasureStarts(family, theta, 2, 0.1)]
            options = {"sample_weight": weight, "starts": starts, "rng": 0, "solver": solver}
            result = moestat.fit(family.with_experts(3), X, y, **options)
            iterations[j] += result.certificate.iterations
            heights[j] += result.log_likelihood
        assert result.certificate.certified
    assert iterations[1] < 0.6 * iterations[0]
    assert heights[1] > heights[0] - 9.0  # there is more than one maximum


def test_exact_data_are_fitted_to_rounding_errors():
    family = regression("softmax-quadratic", {"name": "activation", "activation": "tanh"})
    theta = family.pin(np.random.default_rng(3).normal(size=family.n_params))
    X = np.random.default_rng(4).uniform(-1, 1, (400, 2))
    y = family.regression(theta, np.ascontiguousarray(X.T))[0]
    starts = [TruthStarts(family, theta, 2, 0.05)]
    result = moestat.fit(family, X, y, solver=MomentSquares(), starts=starts, rng=0)
    assert result.certificate.certified
    assert result.residual_variance < 1e-24


def test_units_of_the_response_change_nothing():
    family = regression("sigmoid-quadratic", {"name": "polynomial", "degree": 1})
    theta = family.pin(np.random.default_rng(5).normal(size=family.n_params))
    X, y, weight = moestat.sample_weighted(family, theta, 1e8, rng=1, design=GRID, noise=0.5)
    start = theta + 0.3 * np.random.default_rng(6).normal(size=theta.size)
    options = {"sample_weight": weight, "solver": MomentSquares(), "rng": 0}
    found = [
        moestat.fit(family, X, y, starts=[GivenStarts([at])], **options) for at in (start, theta)
    ]
    # Far from the minimum residuals are large, and so are the units that steps begin with.
    heights = [result.log_likelihood for result in found]
    assert heights[0] == pytest.approx(heights[1], abs=1e-4)
    assert all(result.certificate.certified for result in found)


def test_experts_with_kinks_are_refused():
    relu = {"name": "activation", "activation": "relu", "weighted": False}
    family = regression("softmax-quadratic", relu)
    theta = family.pin(np.ones(family.n_params))
    X, y = moestat.sample(family, theta, 500, rng=0, design=moestat.Uniform(-1, 1), noise=0.1)
    with pytest.raises(ValueError, match="'moment-squares' needs second derivatives"):
        moestat.fit(family, X, y, solver=MomentSquares(), rng=0)


def test_a_fit_a_hair_inside_its_bound_is_certified():
    """What the box leaves no room for is no gain."""
    family = moestat.family(
        "least-squares", gate="softmax", n_experts=1, bounds={"b": (-30.0, 0.5)}
    )
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=400)
    y = 1.0 + 2.0 * x + 0.1 * rng.normal(size=x.size)
    fit = moestat.fit(family, x, y, solver=MomentSquares(), rng=0)
    assert "b[1]" in " ".join(fit.certificate.active)
    at = int(family.blocks["b"].ravel()[0])
    assert fit.params[at] == 0.5
    theta = fit.params.copy()
    theta[at] -= 1e-9
    problem = Problem(family, Rows(x[None, :], y, np.ones(x.size)))
    here = problem.evaluate(Request(Objective.NEWTON, theta))
    certificate = least_squares_solution(problem, theta, here, "converged", 0).certificate
    assert abs(here.gradient[at]) * 1e-9 < 1e-4 < abs(here.gradient[at])
    assert certificate.gain < 1e-4
    assert certificate.certified
    # Where there is room, there is a gain.
    theta[at] -= 0.1
    here = problem.evaluate(Request(Objective.NEWTON, theta))
    assert least_squares_solution(problem, theta, here, "converged", 0).certificate.gain > 1.0


@pytest.mark.parametrize(
    "solver",
    [LevenbergMarquardt(), GaussNewtonBFGS(), MomentSquares(), NewtonSquares()],
    ids=lambda solver: solver.name,
)
@pytest.mark.parametrize("start", ["corner", "default"])
def test_a_corner_of_the_box_without_a_way_down_is_the_end(solver, start):
    """No coordinate can move: halving a step that gains nothing would never end."""
    box = {"a": (-1.0, 1.0), "b": (-1.0, 0.0)}
    family = moestat.family("least-squares", gate="softmax", n_experts=1, bounds=box)
    X, y = moestat.sample(family, [0, 0, 1.0, 0.0], 400, rng=0, noise=0.01)
    corner = {"corner": [GivenStarts([[0.0, 0.0, 1.0, 0.0]])], "default": None}
    y = y + 2.0 * X[:, 0] + 3.0
    result = moestat.fit(family, X, y, solver=solver, starts=corner[start], rng=0)
    assert result.certificate.certified
    assert set(result.certificate.active) == {"a[1,0]", "b[1]"}
