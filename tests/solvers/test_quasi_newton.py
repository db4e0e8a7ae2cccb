"""BFGS from the curvature of complete data: Newton's maxima, saddles, the box, and its defaults."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.estimation.search.agreement import search_of
from moestat.estimation.search.runs import default_solver
from moestat.estimation.starts import GivenStarts
from moestat.solvers import Newton, QuasiNewton, make_solver
from moestat.solvers.bfgs import bfgs_steps, complete_curvature
from moestat.solvers.driver import drive
from moestat.solvers.problem import (
    Evaluation,
    Objective,
    Problem,
    Request,
    Rows,
    Value,
)
from moestat.solvers.quasi_newton import MANY, _without_signs
from moestat.solvers.trust_region.region import Region

FAMILIES = {
    "gaussian": ("gaussian", "softmax", {}),
    "classes": ("multinomial", "softmax", {"n_classes": 3}),
    "competition": ("gaussian", "competition-free", {}),
    "sigmoid": ("multinomial", "sigmoid", {"n_classes": 3}),
    "counts": ("poisson", "softmax", {}),
}


def drawn(name, n=3000, d=2, k=2, seed=3, scale=1.0):
    likelihood, gate, options = FAMILIES[name]
    family = moestat.family(likelihood, gate=gate, n_experts=k, n_features=d, **options)
    truth = family.pin(scale * np.random.default_rng(seed).normal(size=family.n_params))
    X, y = moestat.sample(family, truth, n, rng=1, design=moestat.Uniform(-1, 1))
    response = family.likelihood.encode(y, family.n_classes)
    return Problem(family, Rows(np.ascontiguousarray(X.T), response, np.ones(n))), truth


def solve(solver, problem, start):
    fresh = problem.restart()
    (solution,) = drive([solver.steps(fresh, start)], [fresh], threads=1)
    return solution


@pytest.mark.parametrize("name", FAMILIES)
def test_the_score_is_the_gradient_without_the_hessian(name):
    problem, truth = drawn(name)
    score = problem.evaluate(Request(Objective.SCORE, truth))
    whole = problem.evaluate(Request(Objective.OBSERVED, truth))
    assert score.value == pytest.approx(whole.value, rel=1e-14)
    np.testing.assert_allclose(score.gradient, whole.gradient, rtol=1e-12, atol=1e-10)
    assert not hasattr(score, "hessian")


@pytest.mark.parametrize("name", FAMILIES)
def test_it_ends_at_newtons_maximum(name):
    problem, truth = drawn(name)
    newton = solve(Newton(), problem, truth)
    near = newton.theta + 0.1 * np.random.default_rng(0).normal(size=truth.size)
    ours = solve(QuasiNewton(), problem, problem.family.pin(near))
    assert ours.certificate.status == "converged"
    assert ours.certificate.certified
    assert newton.certificate.certified
    assert ours.log_likelihood == pytest.approx(newton.log_likelihood, abs=1e-5)
    np.testing.assert_allclose(ours.theta, newton.theta, atol=2e-2)


def test_it_needs_few_hessians():
    problem, truth = drawn("classes", n=4000, d=6, k=4, scale=0.7)
    start = truth + 0.3 * np.random.default_rng(0).normal(size=truth.size)
    asked = []

    def counted(solver):
        steps = solver.steps(problem.restart(), start)
        answer = None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration as stop:
                return stop.value
            asked.append(request.objective)
            answer = fresh.evaluate(request)

    fresh = problem.restart()
    assert counted(QuasiNewton()).certificate.certified
    assert asked.count(Objective.OBSERVED) <= 6
    assert fresh.passes - len(asked) >= 20


def test_it_leaves_a_saddle():
    problem, truth = drawn("gaussian", k=1)
    family, X = problem.family.with_experts(2), problem.data.X
    noise = 0.5 * np.random.default_rng(1).normal(size=problem.data.size)
    y = np.where(X[0] > 0.0, 2.0 * X[1], -2.0 * X[1]) + noise
    double = Problem(family, Rows(X, y, problem.data.weight))
    # Both atoms at the best single expert of these data: the gradient vanishes.
    one = solve(QuasiNewton(), Problem(problem.family, double.data), truth)
    atoms, shared = problem.family.split(one.theta)
    saddle = family.join(np.vstack([atoms, atoms]), shared)
    gradient = double.evaluate(Request(Objective.SCORE, saddle)).gradient
    assert np.abs(gradient).max() < 1e-2
    left = solve(QuasiNewton(), double, saddle)
    assert left.certificate.certified
    assert left.log_likelihood > one.log_likelihood + 100.0


def test_separated_classes_end_on_the_edge_of_the_box():
    family = moestat.family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    X = np.linspace(-1.0, 1.0, 200)
    y = (X > 0.0).astype(int) + 1
    problem = Problem(family, Rows(X[None, :], family.likelihood.encode(y, 2), np.ones(X.size)))
    start = family.pin(np.zeros(family.n_params))
    ours, newton = (solve(s, problem, start) for s in (QuasiNewton(), Newton()))
    lower, upper = family.box_at(start)
    assert ((ours.theta >= lower) & (ours.theta <= upper)).all()
    assert ours.log_likelihood == pytest.approx(newton.log_likelihood, abs=1e-4)


def test_steps_end_at_their_number():
    problem, truth = drawn("classes", scale=0.5)
    start = problem.family.pin(truth + 1.0)
    ended = solve(QuasiNewton(max_iterations=3), problem, start)
    assert ended.certificate.status == "iteration limit"
    assert ended.certificate.iterations <= 4
    (found,) = drive([bfgs_steps(problem, start, -1, 3)], [problem])
    assert found[2] == 3
    assert found[1].value < problem.evaluate(Request(Objective.VALUE, start)).value


def test_threads_do_not_change_the_fit():
    family = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=3)
    truth = family.pin(np.random.default_rng(2).normal(size=family.n_params))
    X, y = moestat.sample(family, truth, 60_000, rng=1, design=moestat.Uniform(-1, 1))
    options = {"solver": QuasiNewton(), "starts": [GivenStarts([truth])], "rng": 0}
    one, two = (moestat.fit(family, X, y, threads=threads, **options) for threads in (1, 2))
    assert np.array_equal(one.params, two.params)
    assert one.certificate.certified


def test_it_takes_a_prior():
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    X, y = moestat.sample(family, np.zeros(family.n_params), 400, rng=0)
    options = {"prior": moestat.Prior(), "rng": 0}
    ours, newton = (moestat.fit(family, X, y, solver=s, **options) for s in (QuasiNewton(), None))
    assert ours.log_likelihood == pytest.approx(newton.log_likelihood, abs=1e-3)
    np.testing.assert_allclose(ours.params, newton.params, atol=5e-2)


def test_many_parameters_have_it_by_default():
    few = moestat.family("gaussian", gate="softmax", n_experts=2)
    many = few.with_experts(MANY)
    assert isinstance(default_solver(many), QuasiNewton)
    assert type(default_solver(few)) is Newton
    assert isinstance(make_solver("quasi-newton"), QuasiNewton)


def test_the_default_search_finds_a_truth_of_many_parameters():
    family = moestat.family("multinomial", gate="softmax", n_experts=3, n_features=6, n_classes=4)
    assert family.n_params > MANY
    truth = family.pin(1.5 * np.random.default_rng(4).normal(size=family.n_params))
    X, y = moestat.sample(family, truth, 8000, rng=1, design=moestat.Uniform(-2, 2))
    near = moestat.fit(family, X, y, starts=[GivenStarts([truth])], rng=0)
    found = moestat.fit(family, X, y, starts=[search_of(searches=1)], rng=0)
    assert found.certificate.certified
    assert found.log_likelihood >= near.log_likelihood - 1e-2


@pytest.mark.parametrize("entry", [np.nan, -1e6])
def test_a_curvature_that_is_not_one_is_made_definite(entry):
    problem, truth = drawn("gaussian")
    size = truth.size
    asked = complete_curvature(problem, truth, -1)
    assert next(asked).objective is Objective.EXPECTATION
    assert asked.send(Value(0.0)).objective is Objective.COMPLETE
    with pytest.raises(StopIteration) as ended:
        asked.send(Evaluation(0.0, np.zeros(size), np.full((size, size), entry)))
    assert np.linalg.eigvalsh(ended.value.value)[0] > 0.0


@pytest.mark.parametrize(("held", "top"), [(0, 14.0), (3, 14.0), (3, -5.0)])
def test_a_hessian_of_many_scales_gives_a_definite_matrix_over_any_coordinates(held, top):
    rng, size = np.random.default_rng(0), 80
    for _ in range(10):
        scale = 10.0 ** rng.uniform(-3.0, 3.0, size)
        basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
        curvatures = 10.0 ** rng.uniform(-6.0, top, size) * rng.choice([-1.0, 1.0], size)
        hessian = (basis * curvatures) @ basis.T * np.outer(scale, scale)
        metric = np.kron(np.eye(size // 2), [[1.0, 0.9], [0.9, 1.0]]) * np.outer(scale, scale)
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
        lower[:held] = upper[:held] = 0.0
        zero = np.zeros(size)
        region = Region(zero, zero, hessian, metric, lower, upper)
        matrix = _without_signs(region, hessian, metric)
        assert len(region.at) == size - held
        for at in (np.arange(size), rng.permutation(size)[: size // 2]):
            np.linalg.cholesky(matrix[np.ix_(at, at)])


@pytest.mark.parametrize("name", FAMILIES)
def test_the_known_last_step_is_taken_where_curvatures_have_digits(name):
    """The tolerance is a gain; the step that is left doubles the right digits of the estimate."""
    problem, truth = drawn(name)
    finest = solve(Newton(tolerance=1e-13), problem, truth)
    left = Region(
        finest.theta,
        np.zeros(truth.size),
        finest.information,
        problem.metric(finest.theta),
        *problem.family.box_at(finest.theta),
    )
    assert left.is_plain()
    lower, upper = problem.family.box_at(finest.theta)
    moved = finest.theta + 1e-2 * np.random.default_rng(0).normal(size=truth.size)
    start = problem.family.pin(np.clip(moved, lower, upper))
    for solver in (Newton(), QuasiNewton(tolerance=1e-9)):
        found = solve(solver, problem, start)
        assert found.certificate.status == "converged"
        assert np.max(np.abs(found.theta - finest.theta)) < 1e-8


def test_no_step_is_taken_along_a_curvature_that_rounding_may_have_made():
    problem, _ = drawn("gaussian")
    P = problem.family.n_params
    bent = np.diag(np.append(np.ones(P - 1), 1e-9))
    box = np.full(P, -np.inf), np.full(P, np.inf)
    assert Region(np.zeros(P), np.zeros(P), np.eye(P), np.eye(P), *box).is_plain()
    assert not Region(np.zeros(P), np.zeros(P), bent, np.eye(P), *box).is_plain()
