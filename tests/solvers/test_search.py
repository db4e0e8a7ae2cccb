"""The search over smooth pieces, against exact maxima, brute force and another likelihood."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.estimation.starts import TruthStarts
from moestat.solvers import EM, Newton, PieceSearch
from moestat.solvers.driver import drive
from moestat.solvers.problem import Objective, Problem, Request, Rows, Value
from moestat.solvers.search import _Model
from tests import oracle
from tests.conftest import MEDIUM
from tests.kinds import each_run

THREE = {"a": [[2.0], [-1.5], [0.3]], "b": [1.0, -1.0, 2.0], "nu": [0.25, 0.16, 0.09]}
TWO = {name: value[:2] for name, value in THREE.items()}
CASES = {
    "competition 1 of 2": ({"name": "competition-top", "active": 1}, TWO),
    "competition 2 of 3": ({"name": "competition-top", "active": 2}, THREE),
    "softmax 1 of 2": (
        {"name": "softmax-top", "active": 1},
        {"beta0": [0.3, 0.0], "beta1": [[1.0], [0.0]], **TWO},
    ),
    "softmax 2 of 3": (
        {"name": "softmax-top", "active": 2},
        {"beta0": [0.3, 0.5, 0.0], "beta1": [[1.0], [-0.7], [0.0]], **THREE},
    ),
}


def case(name, n, seed):
    gate, blocks = CASES[name]
    family = moestat.family("gaussian", gate=gate, n_experts=len(blocks["b"]))
    theta = family.pack(blocks)
    return family, theta, *moestat.sample(family, theta, n, rng=seed, design=MEDIUM)


def problem_of(family, X, y):
    return Problem(family, Rows(np.ascontiguousarray(X.T), y, np.ones(len(y))))


def run(solver, family, X, y, start):
    problem = problem_of(family, X, y)
    inside = np.clip(family.pin(start), family.lower, family.upper)
    (solution,) = drive([solver.steps(problem, inside)], [problem])
    return solution


@pytest.mark.parametrize("name", each_run(CASES, ["softmax 1 of 2", "competition 1 of 2"]))
def test_starts_agree_above_the_truth(name):
    for seed in range(3):
        family, theta, X, y = case(name, 1000, seed)
        starts = TruthStarts(family, theta, 3, 0.05)
        result = moestat.fit(family, X, y, starts=[starts], rng=seed)
        assert result.solver == "search"
        assert result.certificate.status == "searched"
        assert result.certificate.certified
        assert result.certificate.agreement == 1.0
        assert result.log_likelihood > family.log_density(theta, X, y).sum()


@pytest.mark.parametrize("name", CASES)
def test_random_probes_of_the_oracle_find_no_more(name):
    """Dense random steps of all lengths, scaled by the information, on the likelihood by hand."""
    family, theta, X, y = case(name, 500, 11)
    best = run(PieceSearch(), family, X, y, theta)
    ones = np.ones(len(y))
    height = oracle.log_likelihood(family, best.theta, X, y, ones)
    assert best.log_likelihood == pytest.approx(height, rel=1e-12)
    free = np.flatnonzero(family.lower < family.upper)
    values, vectors = np.linalg.eigh(best.information[np.ix_(free, free)])
    axes = vectors / np.sqrt(np.maximum(np.abs(values), 0.01 * len(y)))
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(3000):
        u = rng.normal(size=free.size) * np.exp(2.0 * rng.normal(size=free.size))
        u *= 4.0 * 10.0 ** rng.uniform(-6, 0) / np.linalg.norm(u)
        point = best.theta.copy()
        point[free] += axes @ u
        point = np.clip(point, family.lower, family.upper)
        gains.append(oracle.log_likelihood(family, point, X, y, ones) - height)
    assert max(gains) < 1e-3
    assert min(gains) < -1.0


@pytest.mark.parametrize("seed", range(4))
def test_one_of_two_softmax_experts_is_the_best_split_of_the_line(seed):
    """With one active atom the gate is a threshold: two regressions for each of n - 1 splits."""
    family, theta, X, y = case("softmax 1 of 2", 300, seed)
    result = moestat.fit(family, X, y, starts=[TruthStarts(family, theta, 2, 0.1)], rng=seed)
    order = np.argsort(X[:, 0])
    x, y = X[order, 0], y[order]

    def height(part):
        design = np.column_stack([np.ones(x[part].size), x[part]])
        coefficients, *_ = np.linalg.lstsq(design, y[part], rcond=None)
        nu = np.mean((y[part] - design @ coefficients) ** 2)
        return -0.5 * x[part].size * (np.log(2 * np.pi * nu) + 1.0)

    splits = [height(slice(0, j)) + height(slice(j, None)) for j in range(20, 281)]
    assert result.log_likelihood == pytest.approx(max(splits), abs=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_newton_and_em_stay_behind_and_are_not_certified(name):
    family, theta, X, y = case(name, 1000, 5)
    starts = [TruthStarts(family, theta, 1, 0.05)]
    best = moestat.fit(family, X, y, starts=starts, rng=0)
    for solver in (Newton(), EM()):
        inside = moestat.fit(family, X, y, solver=solver, starts=starts, rng=0)
        assert inside.log_likelihood < best.log_likelihood - 0.1
        assert not inside.certificate.certified


@pytest.mark.parametrize("gate", ["softmax", "competition", "competition-top"])
def test_without_jumps_it_is_newton(gate):
    active = {"active": 2} if gate.endswith("top") else {}
    smooth = moestat.family("gaussian", gate={"name": gate, **active}, n_experts=2)
    assert not smooth.has_jumps
    lines = {"beta0": [0.3, 0.0], "beta1": [[1.0], [0.0]], **TWO}
    theta = smooth.pack({name: lines[name] for name in smooth.blocks})
    X, y = moestat.sample(smooth, theta, 500, rng=1, design=MEDIUM)
    ours, newton = (run(solver, smooth, X, y, theta) for solver in (PieceSearch(), Newton()))
    assert np.array_equal(ours.theta, newton.theta)
    assert ours.certificate == newton.certificate


def test_the_result_depends_on_nothing_but_data_and_start():
    family, theta, X, y = case("competition 2 of 3", 1000, 2)
    start = theta + 0.05
    alone = run(PieceSearch(), family, X, y, start)
    for threads in (1, 2):
        sets = [(X, y), (X[::-1], 1.1 * y[::-1]), (X, y)]
        problems = [problem_of(family, *data) for data in sets]
        iterations = [PieceSearch().steps(problem, start) for problem in problems]
        first, other, last = drive(iterations, problems, threads)
        assert np.array_equal(first.theta, alone.theta)
        assert np.array_equal(last.theta, alone.theta)
        assert not np.array_equal(other.theta, alone.theta)


def test_a_search_that_ends_early_says_so():
    family, theta, X, y = case("competition 2 of 3", 1000, 2)
    solution = run(PieceSearch(max_iterations=1), family, X, y, theta)
    assert solution.certificate.status == "iteration limit"
    assert solution.certificate.iterations == 1
    assert not solution.certificate.certified
    loose = run(PieceSearch(tolerance=5.0), family, X, y, theta + 0.05)
    best = run(PieceSearch(), family, X, y, theta + 0.05)
    assert loose.log_likelihood < best.log_likelihood
    assert best.certificate.certified
    assert best.certificate.gain <= 1e-4


@pytest.mark.parametrize("name", CASES)
def test_the_model_knows_where_the_likelihood_jumps(name):
    family, theta, X, y = case(name, 2000, 3)
    problem = problem_of(family, X, y)
    here = problem.evaluate(Request(Objective.OBSERVED, theta))
    model = _Model(problem, problem.data, theta, here, 4.0)
    rng = np.random.default_rng(0)
    active = family.gate_probabilities(theta, X) > 0.0
    assert 20 < model.y.size < 1000
    for _ in range(50):
        v = rng.normal(size=model.axes.shape[1])
        u = v * rng.uniform(0.0, 4.0) / np.linalg.norm(v)
        moved = np.flatnonzero(
            np.any((family.gate_probabilities(model.place(u), X) > 0) != active, 1)
        )
        assert np.all(np.isin(moved, model.ties.rows))
        small = 0.2 * u
        exact = here.value - problem.evaluate(Request(Objective.VALUE, model.place(small))).value
        assert model.gain(small) == pytest.approx(exact, abs=0.02)
        crossed = model.ties.gap + model.ties.normal @ small < 0.0
        promise = -small @ model.gradient - 0.5 * small**2 @ model.curvature
        promise += np.sum(model.ties.jump[crossed] + model.ties.trend[crossed] @ small)
        assert promise == pytest.approx(exact, abs=0.1)


def test_a_value_is_that_of_the_objective_and_leaves_responsibilities_alone():
    family, theta, X, y = case("competition 2 of 3", 500, 3)
    problem = problem_of(family, X, y)
    tau = np.full((3, 500), 1 / 3)
    problem.assign(tau)
    value = problem.evaluate(Request(Objective.VALUE, theta))
    assert value.value == pytest.approx(problem.evaluate(Request(Objective.OBSERVED, theta)).value)
    assert type(value) is Value
    assert problem._tau is tau


@pytest.mark.parametrize("activation", ["silu", "softplus"])
def test_curved_experts_and_other_responses(activation):
    """Ties that are not linear in the parameters, in two inputs."""
    family = moestat.family(
        "gaussian",
        gate={"name": "competition-top", "active": 1, "activation": activation},
        expert={"name": "polynomial", "degree": 2},
        n_experts=2,
        n_features=2,
    )
    rng = np.random.default_rng(4)
    theta = np.where(family.lower > -5, np.log(0.1), rng.normal(size=family.n_params))
    X, y = moestat.sample(family, theta, 600, rng=4, design=MEDIUM)
    starts = [TruthStarts(family, theta, 2, 0.02)]
    result = moestat.fit(family, X, y, starts=starts, rng=0)
    assert result.certificate.status == "searched"
    assert result.log_likelihood > family.log_density(theta, X, y).sum()


def test_the_old_name_of_the_class_is_found_for_one_release():
    with pytest.warns(FutureWarning, match=r"old name of moestat\.solvers\.PieceSearch"):
        from moestat.solvers import Search
    assert Search is PieceSearch
