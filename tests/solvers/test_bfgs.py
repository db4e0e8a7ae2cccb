"""BFGS as one compiled loop between two matrices: the same steps as from pass to pass."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.solvers.bfgs import bfgs_steps
from moestat.solvers.driver import drive
from moestat.solvers.problem import Objective, Problem, Request, Rows, Run

CASES = {
    "lines": ("gaussian", {"n_experts": 3, "n_features": 4}),
    "classes": ("multinomial", {"n_experts": 3, "n_features": 3, "n_classes": 3}),
    "counts": ("poisson", {"n_experts": 2, "n_features": 2}),
}


def problem_of(case, n=1500):
    name, options = CASES[case]
    family = moestat.family(name, gate="softmax", **options)
    rng = np.random.default_rng(3)
    theta = family.pin(np.clip(rng.normal(size=family.n_params), -1.5, 1.5))
    theta = np.clip(theta, family.lower, family.upper)
    X, y = moestat.sample(family, theta, n, rng=1, design=moestat.Uniform(-2, 2))
    code = family.likelihood.encode(y, family.n_classes)
    start = np.clip(
        family.pin(theta + 0.3 * rng.normal(size=theta.size)), family.lower, family.upper
    )
    return Problem(family, Rows(np.ascontiguousarray(X.T), code, np.ones(n))), start


def both(problem, start, most, tolerance=1e-2):
    """Ends of the compiled loop and of the steps from pass to pass, with their passes."""
    found = []
    for is_for in (staticmethod(Run.is_for), staticmethod(lambda *_: False)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "is_for", is_for)
            own = problem.restart()
            steps = bfgs_steps(own, start, -1, most, tolerance)
            found.append((*drive([steps], [own], threads=1)[0], own.passes))
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("most", [1, 8, 300])
def test_steps_are_those_from_pass_to_pass(case, most):
    problem, start = problem_of(case)
    one, other = both(problem, start, most)
    assert one[2] == other[2] <= most
    assert one[3] == other[3]
    assert np.allclose(one[0], other[0], rtol=1e-6, atol=1e-6)
    assert one[1].value == pytest.approx(other[1].value, rel=1e-11)
    scale = np.abs(other[1].gradient).max()
    assert np.allclose(one[1].gradient, other[1].gradient, atol=1e-3 * scale + 1e-5)
    exact = problem.evaluate(Request(Objective.SCORE, one[0]))
    assert exact.value == pytest.approx(one[1].value, rel=1e-12)
    assert np.allclose(exact.gradient, one[1].gradient, atol=1e-8 * (1.0 + scale))


def test_steps_stay_inside_the_box():
    options = {"n_experts": 2, "n_classes": 3, "n_features": 2, "bounds": {"a": (-1.0, 0.5)}}
    family = moestat.family("multinomial", gate="softmax", **options)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2, 400))
    code = family.likelihood.encode((X[0] > 0.0).astype(int) + (X[1] > 0.5) + 1, 3)
    problem = Problem(family, Rows(X, code, np.ones(400)))
    start = family.pin(0.1 * rng.normal(size=family.n_params))
    lower, upper = family.box_at(start)
    one, other = both(problem, start, 400, tolerance=1e-7)
    assert ((one[0] == lower) | (one[0] == upper))[lower < upper].any()
    assert ((one[0] >= lower) & (one[0] <= upper)).all()
    assert one[1].value == pytest.approx(other[1].value, abs=1e-4)


def test_nothing_moves_where_the_gradient_is_not_a_number():
    problem, start = problem_of("classes")
    start[-1] = np.nan
    one, other = both(problem, start, 20)
    assert one[2] == other[2] == 0
    assert np.array_equal(one[0], start, equal_nan=True)
