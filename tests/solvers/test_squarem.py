"""Accelerated EM: monotone, to the same optimum, in far fewer E-steps."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.estimation.starts import TruthStarts
from moestat.solvers import EM, SQUAREM, Newton
from moestat.solvers.driver import drive
from moestat.solvers.problem import Problem, Rows
from tests.conftest import MEDIUM, WELL_CONDITIONED, WIDE


def run(solver, family, data, start):
    """The solution and the number of E-steps from one start."""
    problem = Problem(family, data)
    inside = np.clip(family.pin(start), family.lower, family.upper)
    (solution,) = drive([solver.steps(problem, inside)], [problem])
    return solution


@pytest.mark.parametrize("gate", WELL_CONDITIONED)
def test_never_lowers_the_likelihood_nor_leaves_the_box(gate, truth):
    family, theta = truth(gate)
    X, y = moestat.sample(family, theta, 2000, rng=3, design=WIDE)
    fitted = family.with_experts(3)
    data = Rows(np.ascontiguousarray(X.T), y - 1, np.ones(2000))
    rng = np.random.default_rng(0)
    for start in TruthStarts(family, theta, 2, 0.5).draw(Problem(fitted, data), rng):
        solution = run(SQUAREM(max_iterations=150), fitted, data, start)
        path = np.array(solution.path)
        assert path.size > 5
        assert np.all(np.diff(path) >= -1e-10 * np.abs(path[:-1]))
        assert np.all(solution.theta >= fitted.lower)
        assert np.all(solution.theta <= fitted.upper)
        pinned = fitted.lower == fitted.upper
        assert np.array_equal(solution.theta[pinned], fitted.lower[pinned])


def test_far_fewer_e_steps_than_em_to_newtons_optimum(gaussian_truth):
    """Over-specified, where EM is slowest."""
    family, theta = gaussian_truth("softmax")
    X, y = moestat.sample(family, theta, 2000, rng=1, design=MEDIUM)
    fitted = family.with_experts(3)
    data = Rows(np.ascontiguousarray(X.T), y, np.ones(2000))
    rng = np.random.default_rng(0)
    (start,) = TruthStarts(family, theta, 1, 0.3).draw(Problem(fitted, data), rng)
    newton = run(Newton(), fitted, data, start)
    quick = run(SQUAREM(tolerance=1e-11, max_iterations=3000), fitted, data, start)
    slow = run(EM(tolerance=1e-11, max_iterations=3000), fitted, data, start)
    assert newton.certificate.certified
    assert quick.log_likelihood == pytest.approx(newton.log_likelihood, abs=1e-3)
    assert quick.certificate.iterations < 0.3 * slow.certificate.iterations
    assert quick.log_likelihood > slow.log_likelihood
