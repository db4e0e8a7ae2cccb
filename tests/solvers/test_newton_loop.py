"""Newton's iteration as one compiled loop: the same steps as from pass to pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import moestat
from moestat.estimation.data.priors import Prior
from moestat.solvers.driver import drive
from moestat.solvers.problem import Evaluation, Objective, Problem, Request, Rows, Run
from moestat.solvers.trust_region.newton_loop import newton_steps

CASES = {
    "lines": ("gaussian", {"gate": "softmax", "n_experts": 3, "n_features": 2}),
    "classes": ("multinomial", {"gate": "sigmoid", "n_experts": 2, "n_classes": 3}),
    "counts": ("poisson", {"gate": "softmax", "n_experts": 2}),
    "competition": ("gaussian", {"gate": "competition", "n_experts": 2}),
}


def problem_of(case, n=1500):
    name, options = CASES[case]
    family = moestat.family(name, **options)
    theta = family.pin(np.clip(np.random.default_rng(3).normal(size=family.n_params), -1.5, 1.5))
    theta = np.clip(theta, family.lower, family.upper)
    X, y = moestat.sample(family, theta, n, rng=1, design=moestat.Uniform(-2, 2))
    data = Rows(
        np.ascontiguousarray(X.T), family.likelihood.encode(y, family.n_classes), np.ones(n)
    )
    return Problem(family, data), theta


def both(problem, start, objective, tolerance=1e-9, iterations=200):
    """Ends of the one loop and of the iteration from pass to pass, and their passes."""
    found = []
    for is_for in (Run.is_for, lambda *_: False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "is_for", staticmethod(is_for))
            own = replace(problem.restart(), _tau=problem.tau)
            steps = newton_steps(own, objective, start, tolerance, iterations)
            end = drive([steps], [own], threads=1)[0]
            found.append((end.theta, end, end.status, end.iterations, own.passes))
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("iterations", [0, 3, 200])
def test_steps_are_those_from_pass_to_pass(case, iterations):
    problem, theta = problem_of(case)
    family = problem.family
    start = theta + 0.3 * np.random.default_rng(5).normal(size=theta.size)
    start = np.clip(family.pin(start), family.lower, family.upper)
    one, other = both(problem, start, Objective.OBSERVED, iterations=iterations)
    assert one[2:] == other[2:]
    assert np.allclose(one[0], other[0], rtol=1e-9, atol=1e-9)
    assert one[1].value == pytest.approx(other[1].value, rel=1e-12)
    for name in ("gradient", "hessian"):
        expected = getattr(other[1], name)
        assert np.allclose(getattr(one[1], name), expected, atol=1e-6 * np.abs(expected).max())


def iterations_at_a_corner(size, sign=1.0):
    """Iterations from .3 to the corner of ``size |x|``, with curvatures of a sign beside it."""
    problem, _ = problem_of("lines", n=40_000)
    bounds = np.eye(1), np.array([-1.0]), np.array([1.0])
    begin = np.array([0.3])
    steps = newton_steps(problem, Objective.OBSERVED, begin, 1e-15, 200, bounds=bounds)
    request = next(steps)
    try:
        while True:
            x = request.theta
            bent = np.array([[sign * size]])
            here = Evaluation(float(size * abs(x[0])), size * np.sign(x), bent)
            request = steps.send(here)
    except StopIteration as stop:
        ran = stop.value
    assert ran.status == "stalled"
    return ran.iterations


def test_steps_that_gain_nothing_are_few_at_a_maximum():
    """Elsewhere the region shrinks until nothing is left of it."""
    assert iterations_at_a_corner(1e-5) == 9
    assert iterations_at_a_corner(1e-5, sign=-1.0) > 20
    assert iterations_at_a_corner(1e-2) > 20


def test_given_responsibilities_are_read():
    problem, theta = problem_of("classes")
    problem.evaluate(Request(Objective.EXPECTATION, theta))
    one, other = both(problem, theta, Objective.COMPLETE)
    assert one[2:] == other[2:]
    assert np.allclose(one[0], other[0], rtol=1e-9, atol=1e-9)
    assert one[1].value < problem.evaluate(Request(Objective.COMPLETE, theta)).value


def test_a_metric_that_is_not_definite_raises():
    problem, theta = problem_of("lines")
    bounds = -np.eye(theta.size), *problem.family.box_at(theta)
    run = newton_steps(problem, Objective.OBSERVED, theta, 1.0, 9, bounds=bounds)
    with pytest.raises(np.linalg.LinAlgError, match="metric"):
        drive([run], [problem], threads=1)


def test_a_model_that_is_not_finite_raises():
    problem, theta = problem_of("lines")
    theta[0] = np.nan
    run = newton_steps(problem, Objective.OBSERVED, theta, 1.0, 9)
    with pytest.raises(np.linalg.LinAlgError, match="range of float64"):
        drive([run], [problem], threads=1)


def test_it_is_for_few_plain_rows():
    problem, _ = problem_of("lines")
    assert Run.is_for(problem, -1)
    data = problem.data
    frozen = data.X.copy()
    frozen.flags.writeable = False
    assert not Run.is_for(problem.replace_data(replace(data, X=frozen)), -1)
    assert not Run.is_for(problem.replace_data(replace(data, X=np.asfortranarray(data.X))), -1)
    assert not Run.is_for(problem.replace_data(replace(data, whole=True)), -1)
    many, _ = problem_of("lines", n=40_000)
    assert not Run.is_for(many, -1)
    assert Run.is_for(many, 0)


def test_a_penalty_is_not_left_out():
    """A mode differs from the maximum on the few rows that the loop would take."""
    family = moestat.family("gaussian", gate="softmax", n_experts=1)
    theta = family.pack({"beta0": [0], "beta1": [0], "a": [2.0], "b": [1.0], "nu": [0.1]})
    X, y = moestat.sample(family, theta, 50, rng=0)
    free = moestat.fit(family, X, y, rng=0)
    pulled = moestat.fit(family, X, y, rng=0, prior=Prior())
    assert not np.allclose(free.params, pulled.params, rtol=1e-4)


def test_runs_share_threads():
    """Ends of many runs at once, on any number of threads, are those of each alone."""
    problem, theta = problem_of("lines", n=4000)
    rng = np.random.default_rng(0)
    family = problem.family
    starts = [
        np.clip(theta + 0.2 * rng.normal(size=theta.size), family.lower, family.upper)
        for _ in range(40)
    ]

    def ends(threads):
        problems = [problem.restart() for _ in starts]
        runs = [
            newton_steps(p, Objective.OBSERVED, s, 1e-9, 20)
            for s, p in zip(starts, problems, strict=True)
        ]
        return drive(runs, problems, threads=threads)

    for one, other in zip(ends(1), ends(2), strict=True):
        assert np.array_equal(one.theta, other.theta)
        assert one.passes == other.passes


def test_a_request_to_run_says_so_itself():
    problem, theta = problem_of("lines")
    with pytest.raises(NotImplementedError):
        Run(Objective.OBSERVED, theta).execute(problem)
