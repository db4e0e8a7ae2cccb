"""Least squares: sums of squares, Levenberg-Marquardt against scipy, certificates, results."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import moestat
from moestat.estimation.starts import TruthStarts, make_starts
from moestat.solvers import GaussNewtonBFGS, LevenbergMarquardt, MomentSquares, Newton, squares
from moestat.solvers.driver import drive
from moestat.solvers.problem import Objective, Problem, Request, Rows, Value, ValueGradient
from moestat.solvers.squares import CHUNK
from tests import oracle
from tests.kinds import EACH_REGRESSION, REGRESSION, each_run, kind_id, make, random_theta

WIDE = moestat.Uniform(-1, 1)
LINEAR = {"name": "polynomial", "degree": 1}
RELU = {"name": "activation", "activation": "relu", "weighted": False}
TANH = {"name": "activation", "activation": "tanh"}


def squares_family(gate, expert, k=2, d=2):
    return moestat.family("least-squares", gate=gate, expert=expert, n_experts=k, n_features=d)


def truth_of(family, seed=0):
    rng = np.random.default_rng(seed)
    return family.pin(rng.normal(size=family.n_params))


@pytest.mark.parametrize("kind", each_run(REGRESSION, EACH_REGRESSION, kind_id))
@pytest.mark.parametrize("n", [1, CHUNK, 2 * CHUNK + 3])
def test_squares_match_the_oracle(kind, n, monkeypatch):
    monkeypatch.setattr(squares, "CACHED", 0)  # so that chunks are as short as they can be
    rng = np.random.default_rng(n)
    family = make(kind, 3, 2)
    theta = family.pin(random_theta(family, rng))
    X, y, weight = rng.uniform(-2, 2, (n, 2)), rng.normal(size=n), rng.exponential(size=n)
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y, weight))
    here = problem.evaluate(Request(Objective.GAUSS_NEWTON, theta))
    r = oracle.regression(family, theta, X) - y
    J = oracle.jacobian(family, theta, X) * (family.lower < family.upper)
    scale = np.abs(J).max() ** 2 * weight.sum()
    assert here.value == pytest.approx(0.5 * weight @ r**2, rel=1e-12)
    assert np.allclose(here.gradient, J.T @ (weight * r), rtol=0, atol=1e-11 * scale)
    assert np.allclose(here.hessian, (J.T * weight) @ J, rtol=0, atol=1e-12 * scale)
    alone = problem.evaluate(Request(Objective.RESIDUALS, theta))
    assert alone.value == pytest.approx(here.value, rel=1e-12)
    assert type(alone) is Value


# Compiling is what these cost: one of each sort of gate and of expert.
BENT = [
    ("least-squares", "sigmoid-quadratic", {"name": "polynomial", "degree": 3}),
    ("least-squares", "sigmoid-quadratic", {"name": "ffn", "hidden": 2}),
    ("least-squares", "softmax-quadratic", TANH),
    ("least-squares", "softmax-partial", "linear"),
    ("least-squares", "sigmoid-inner", "linear"),
]


@pytest.mark.parametrize("kind", BENT, ids=kind_id)
def test_the_hessian_matches_differences_of_gradients(kind, monkeypatch):
    monkeypatch.setattr(squares, "CACHED", 0)
    rng = np.random.default_rng(4)
    family, n = make(kind, 3, 2), CHUNK + 40
    theta = family.pin(random_theta(family, rng))
    X, y, weight = rng.uniform(-2, 2, (2, n)), rng.normal(size=n), rng.exponential(size=n)
    problem = Problem(family, Rows(X, y, weight))
    here, gram = (
        problem.evaluate(Request(what, theta))
        for what in (Objective.NEWTON, Objective.GAUSS_NEWTON)
    )
    assert here.value == pytest.approx(gram.value, rel=1e-12)
    slopes = problem.evaluate(Request(Objective.GRADIENT, theta))
    assert slopes.value == pytest.approx(gram.value, rel=1e-12)
    assert type(slopes) is ValueGradient
    for one in (here, slopes):
        assert np.allclose(one.gradient, gram.gradient, rtol=1e-9, atol=1e-9)
    numeric, h = np.zeros_like(here.hessian), 1e-5
    for j in np.flatnonzero(family.lower < family.upper):
        step = h * (np.arange(theta.size) == j)
        ends = [
            problem.evaluate(Request(Objective.GRADIENT, theta + s * step)).gradient
            for s in (1, -1)
        ]
        numeric[:, j] = (ends[0] - ends[1]) / (2 * h)
    size = np.abs(numeric).max()
    assert np.allclose(here.hessian, numeric, rtol=0, atol=1e-7 * size)
    # The residuals' own part is there and is not small.
    assert np.abs(here.hessian - gram.hessian).max() > 1e-3 * size


def scipy_minimum(family, X, y, start):
    free = family.lower < family.upper
    design = np.ascontiguousarray(X.T)

    def residual(values):
        theta = np.zeros(family.n_params)
        theta[free] = values
        return family.regression(theta, design)[0] - y

    box = family.lower[free], family.upper[free]
    options = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "x_scale": "jac", "max_nfev": 2000}
    return optimize.least_squares(residual, np.clip(start[free], *box), bounds=box, **options), free


@pytest.mark.parametrize(
    ("gate", "expert"),
    [
        ("sigmoid-quadratic", LINEAR),
        ("softmax-quadratic", TANH),
        ("sigmoid-partial", "linear"),
        ("softmax-partial", LINEAR),
        ("softmax", "linear"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "solver", [LevenbergMarquardt(), GaussNewtonBFGS(), MomentSquares()], ids=lambda s: s.name
)
def test_minimum_agrees_with_scipy(solver, gate, expert):
    family = squares_family(gate, expert)
    truth = truth_of(family)
    X, y = moestat.sample(family, truth, 1500, rng=1, design=WIDE, noise=0.01)
    start = family.pin(truth + 0.05 * np.random.default_rng(2).normal(size=truth.size))
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y, np.ones(len(y))))
    (solution,) = drive([solver.steps(problem, start)], [problem])
    assert solution.certificate.certified
    theirs, free = scipy_minimum(family, X, y, start)
    mine = problem.evaluate(Request(Objective.RESIDUALS, solution.theta)).value
    # Gains are in units of the residual variance, half the sum of squares over n / 2.  The steps of
    # one solver may end in a neighbouring minimum, whose likelihood hardly differs.
    least = 0.1 if solver.name == "moment-squares" else solver.tolerance
    assert mine <= theirs.cost * (1 + 1e-10) + least * 2 * mine / 1500
    polished, _ = scipy_minimum(family, X, y, solution.theta)
    assert polished.cost == pytest.approx(mine, rel=1e-9)
    inner = np.all((solution.theta[free] > -29.9) & (solution.theta[free] < 29.9))
    if inner:
        assert np.allclose(polished.x, solution.theta[free], atol=2e-2)


def test_a_minimum_on_the_edge_of_the_box():
    family = moestat.family("least-squares", gate="softmax", n_experts=1, bounds={"a": (-1.0, 1.0)})
    X, y = moestat.sample(family, [0, 0, 0.5, 3.0], 400, rng=0, design=WIDE, noise=0.01)
    result = moestat.fit(family, X, y, rng=0)
    assert result.certificate.certified
    assert result.certificate.active == ("a[1,0]",)
    assert result.blocks["a"].item() == pytest.approx(1.0, abs=1e-14)
    assert result.blocks["b"].item() == pytest.approx(np.mean(y - X[:, 0]), abs=1e-5)


def test_results_are_those_of_linear_regression():
    family = moestat.family("least-squares", gate="softmax", n_experts=1, n_features=2)
    truth = [0, 0, 0, 1, 2, -1]
    X, y = moestat.sample(family, truth, 500, rng=3, design=WIDE, noise=0.25)
    result = moestat.fit(family, X, y, rng=0)
    design = np.column_stack([np.ones(500), X])
    beta, rss = np.linalg.lstsq(design, y)[:2]
    assert np.allclose(result.params[3:], beta, atol=1e-9)
    assert result.residual_variance == pytest.approx(rss.item() / 500, rel=1e-10)
    assert result.rsquared == pytest.approx(1 - rss.item() / 500 / y.var(), rel=1e-10)
    covariance = rss.item() / 500 * np.linalg.inv(design.T @ design)
    assert np.allclose(result.cov_params()[3:, 3:], covariance, rtol=1e-8)
    assert np.all(result.cov_params()[:3] == 0)
    assert np.allclose(result.predict(X), design @ beta)
    log_density = (
        -0.5 * np.log(2 * np.pi * rss.item() / 500) - (y - design @ beta) ** 2 * 250 / rss.item()
    )
    assert result.log_likelihood == pytest.approx(log_density.sum(), rel=1e-12)
    assert result.bic - result.aic == pytest.approx(4 * (np.log(500) - 2))
    centred = np.column_stack([np.ones(500), X - X.mean(axis=0)])
    scaled = centred / np.linalg.norm(centred, axis=0)
    assert np.allclose(result.singular_values, np.linalg.svd(scaled)[1][::-1], rtol=1e-8)
    assert "Residual variance" in str(result.summary())


def test_noiseless_data_are_fitted_to_rounding():
    family = squares_family("sigmoid-quadratic", LINEAR)
    truth = truth_of(family, seed=4)
    X, y = moestat.sample(family, truth, 2000, rng=1, design=WIDE, noise=0.0)
    result = moestat.fit(family, X, y, starts=[TruthStarts(family, truth, 1, 0.02)], rng=0)
    assert np.sqrt(result.residual_variance) < 1e-12 * np.std(y)
    one, other = family.canonical(result.params), family.canonical(truth)
    assert np.allclose(one, other, atol=1e-6)


def test_weights_are_counts():
    family = squares_family("sigmoid-partial", "linear", d=1)
    truth = truth_of(family, seed=2)
    X, y = moestat.sample(family, truth, 300, rng=1, design=WIDE, noise=0.01)
    counts = np.random.default_rng(0).integers(0, 4, size=300)
    starts = [TruthStarts(family, truth, 1, 0.01)]
    rows = np.repeat(np.arange(300), counts)
    weighted = moestat.fit(family, X, y, sample_weight=counts, starts=starts, rng=0)
    repeated = moestat.fit(family, X[rows], y[rows], starts=starts, rng=0)
    assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood, abs=1e-5)
    assert weighted.residual_variance == pytest.approx(repeated.residual_variance, rel=1e-7)


def test_starts_that_come_nearer_with_the_sample_size():
    family = squares_family("sigmoid-quadratic", RELU, k=1)
    truth = truth_of(family)
    (rule,) = make_starts({"truth": 1, "noise": 3.0, "decay": 0.5}, family, truth)
    gaps = []
    for n in (100, 10_000):
        problem = Problem(family, Rows(np.zeros((2, n)), np.zeros(n), np.ones(n)))
        gaps.append(rule.draw(problem, np.random.default_rng(1))[0] - truth)
    assert np.allclose(gaps[0], 10 * gaps[1])
    assert np.linalg.norm(gaps[0]) > 0.1
    with pytest.raises(ValueError, match="starts: decay belongs to truth-centred starts"):
        make_starts({"random": 1, "decay": 0.5})


@pytest.mark.parametrize("expert", [RELU, LINEAR], ids=str)
def test_default_starts_find_a_small_truth(expert):
    family = squares_family("sigmoid-quadratic", expert, k=1, d=1)
    X, y = moestat.sample(family, truth_of(family, 1), 2000, rng=0, design=WIDE, noise=1e-4)
    result = moestat.fit(family, X, y, rng=0)
    assert result.residual_variance < 1.1e-4


def test_solvers_refuse_what_they_are_not_for():
    family = moestat.family("gaussian", gate="softmax")
    X = np.linspace(0, 1, 50)
    with pytest.raises(ValueError, match="is for likelihood 'least-squares'"):
        moestat.fit(family, X, np.sin(9 * X), solver=LevenbergMarquardt(), rng=0)
    squares = moestat.family("least-squares", gate="softmax")
    with pytest.raises(ValueError, match="is for densities, not for likelihood 'least-squares'"):
        moestat.fit(squares, X, np.sin(9 * X), solver=Newton(), rng=0)


def test_noise_of_a_truth_is_checked():
    family = moestat.family("least-squares", gate="softmax")
    theta = np.zeros(family.n_params)
    with pytest.raises(ValueError, match="noise: a least-squares family needs"):
        moestat.sample(family, theta, 10)
    with pytest.raises(ValueError, match="noise must be a number"):
        moestat.sample(family, theta, 10, noise=-1.0)
    with pytest.raises(ValueError, match="noise: the multinomial likelihood has its own"):
        moestat.sample(moestat.family(), np.zeros(10), 10, noise=1.0)
