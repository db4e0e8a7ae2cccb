"""Parts of a pass: the same sums whatever the number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from moestat import family, fit, sample
from moestat.estimation.starts import GivenStarts
from moestat.solvers.driver import Cores
from moestat.solvers.problem import Objective, Problem, Request, Rows


def problem_of(n, d=2, weight=None):
    model = family("gaussian", gate="softmax", n_experts=2, n_features=d)
    theta = np.clip(np.random.default_rng(0).normal(size=model.n_params), model.lower, model.upper)
    X, y = sample(model, theta, n, rng=1)
    weight = np.ones(n) if weight is None else weight
    data = Rows(np.ascontiguousarray(X.reshape(n, d).T), y, weight)
    return Problem(model, data), theta


@pytest.mark.parametrize(
    "objective", [Objective.VALUE, Objective.OBSERVED, Objective.INFORMED, Objective.COMPLETE]
)
def test_sums_do_not_depend_on_threads(objective):
    problem, theta = problem_of(40_001, weight=np.linspace(0.5, 1.5, 40_001))
    if objective is Objective.COMPLETE:
        problem.evaluate(Request(Objective.EXPECTATION, theta))
    request = Request(objective, theta)
    assert len(problem.parts(request)) == 8
    whole = problem.evaluate_part(request, slice(0, 40_001))
    found = []
    for threads in (1, 2, 3):
        with Cores(threads).session([problem]) as answer:
            found += answer([(problem, request)])
    for name, value in vars(found[0]).items():
        assert all(np.array_equal(value, getattr(other, name)) for other in found[1:])
        expected = getattr(whole, name)
        assert np.allclose(value, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_a_fit_with_its_previews_does_not_depend_on_threads():
    problem, theta = problem_of(60_000, d=5)
    (rough, fine, _), n_params = problem.data.levels, theta.size
    assert (len(rough.parts(n_params)), len(fine.parts(n_params))) == (1, 4)
    data = problem.data
    found = [
        fit(problem.family, data.X.T, data.y, starts=[GivenStarts([theta])], threads=threads)
        for threads in (1, 2, 3)
    ]
    for other in found[1:]:
        assert np.array_equal(found[0].theta, other.theta)
        assert found[0].log_likelihood == other.log_likelihood


def test_a_pass_in_parts_is_one_pass():
    problem, theta = problem_of(40_000)
    problem.evaluate(Request(Objective.OBSERVED, theta))
    assert problem.passes == 1.0


@pytest.mark.parametrize(("n", "n_params", "count"), [(0, 5, 1), (30_000, 5, 1), (40_000, 200, 1)])
def test_few_rows_are_one_part(n, n_params, count):
    rows = Rows(np.zeros((1, n)), np.zeros(n), np.ones(n)).parts(n_params)
    assert len(rows) == count
    assert rows[0] == slice(0, n)
