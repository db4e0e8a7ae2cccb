"""Solvers against each other, against independent libraries and against theory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import moestat
from moestat.estimation.starts import RandomStarts, SplitStarts, TruthStarts
from moestat.model.compression import gauss_compress
from moestat.solvers import EM, Newton
from moestat.solvers.certificate import certify
from moestat.solvers.driver import drive
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.rules import GAIN_LIMIT
from moestat.solvers.trust_region.region import box_step, free_coordinates
from tests import oracle
from tests.conftest import WELL_CONDITIONED, WIDE


def problem_of(family, X, y):
    n = len(y)
    return Problem(family, Rows(np.ascontiguousarray(X.T), y - 1, np.ones(n)))


@pytest.mark.parametrize("gate", WELL_CONDITIONED)
@pytest.mark.parametrize("k", [2, 3])
def test_em_never_lowers_the_likelihood(gate, k, truth):
    family, theta = truth(gate)
    X, y = moestat.sample(family, theta, 2000, rng=3, design=WIDE)
    fitted = family.with_experts(k)
    problem = problem_of(fitted, X, y)
    starts = TruthStarts(family, theta, 2, 0.5).draw(problem, np.random.default_rng(0))
    for start in starts:
        inside = np.clip(fitted.pin(start), fitted.lower, fitted.upper)
        solver = EM(tolerance=1e-9, max_iterations=200)
        own = Problem(fitted, problem.data)
        (solution,) = drive([solver.steps(own, inside)], [own])
        path = np.array(solution.path)
        assert path.size > 5
        assert np.all(np.diff(path) >= -1e-10 * np.abs(path[:-1]))


@pytest.mark.parametrize("gate", WELL_CONDITIONED)
def test_em_run_long_reaches_newtons_optimum(gate):
    """On 20,000 samples, compressed so that thousands of EM iterations cost a second."""
    family = moestat.family("multinomial", gate=gate, n_experts=2, n_classes=3)
    gates = {
        "sigmoid": {"gamma": [0.5, 0.0], "alpha": [-2.0, 3.0], "beta": [1.0, 0.5]},
        "softmax": {"beta0": [0.5, 0.0], "beta1": [-2.0, 0.0]},
        "sigmoid-euclidean": {
            "gamma": [0.5, 0.0],
            "alpha": [-4.0, 4.0],
            "beta": [-3.0, -2.0],
            "tau": 1.0,
        },
    }
    gates["sigmoid-inner"] = {**gates["sigmoid"], "tau": 1.0}
    experts = {"a": [[[-2], [1]], [[2], [-1]]], "b": [[1, -1], [-1, 1.5]]}
    theta = family.pack({**gates[gate], **experts})
    X, y = moestat.sample(family, theta, 20_000, rng=5, design=moestat.Uniform(-3, 3))
    x, label, weight = gauss_compress(X[:, 0], y - 1, np.ones(len(y)), 32, 4)
    options = {"starts": [TruthStarts(family, theta, 1, 0.05)], "sample_weight": weight, "rng": 0}
    newton = moestat.fit(family, x, label + 1, solver=Newton(), **options)
    em = EM(tolerance=1e-15, max_iterations=20_000)
    slow = moestat.fit(family, x, label + 1, solver=em, **options)
    assert newton.certificate.certified
    assert slow.certificate.iterations > 20 * newton.certificate.iterations
    if family.gate.kink is None:
        assert slow.log_likelihood == pytest.approx(newton.log_likelihood, rel=1e-8)
    else:  # EM ends at a kink that its M-step cannot leave; Newton looks beyond
        assert slow.log_likelihood < newton.log_likelihood < slow.log_likelihood + 1.0


@pytest.mark.parametrize("gate", WELL_CONDITIONED)
def test_no_independent_optimiser_finds_more(gate, truth):
    """scipy's bounded L-BFGS on the oracle's likelihood, from the same starts and from the fit."""
    family, theta = truth(gate)
    X, y = moestat.sample(family, theta, 1500, rng=7, design=WIDE)
    ones = np.ones(len(y))
    fitted = moestat.fit(
        family, X, y, starts=[TruthStarts(family, theta, 12, 0.1), RandomStarts(3)], rng=0
    )
    assert fitted.certificate.certified

    def objective(point):
        value = oracle.log_likelihood(family, point, X, y, ones)
        return -value, -oracle.score(family, point, X, y, ones)

    bounds = list(zip(*family.box_at(fitted.params), strict=True))
    lower, upper = family.box_at(fitted.params)
    for start in (np.clip(family.pin(theta), lower, upper), fitted.params):
        found = minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B")
        assert -found.fun <= fitted.log_likelihood + GAIN_LIMIT


@pytest.mark.parametrize("K", [2, 3, 5])
def test_one_expert_is_multinomial_logistic_regression(K):
    from statsmodels.discrete.discrete_model import MNLogit

    rng = np.random.default_rng(K)
    family = moestat.family("multinomial", gate="softmax", n_experts=1, n_features=2, n_classes=K)
    X, y = moestat.sample(family, rng.normal(size=family.n_params), 3000, rng=rng)
    ours = moestat.fit(family, X, y, rng=0)
    # statsmodels takes the first class as the reference: ours, the last, is recoded to 0.
    recoded = np.where(y == K, 0, y)
    design = np.column_stack([np.ones(len(y)), X])
    theirs = MNLogit(recoded, design).fit(disp=0, tol=1e-12, maxiter=200)
    assert ours.log_likelihood == pytest.approx(theirs.llf, rel=1e-12)
    coefficients = np.vstack([ours.blocks["b"], ours.blocks["a"][0].T])
    assert np.allclose(coefficients, theirs.params, atol=1e-6)
    positions = np.concatenate(
        [np.r_[b, a] for b, a in zip(family.blocks["b"][0], family.blocks["a"][0], strict=True)]
    )
    assert np.allclose(ours.bse[positions], np.asarray(theirs.bse).T.ravel(), rtol=1e-5)


@pytest.mark.parametrize("gate", WELL_CONDITIONED)
def test_estimate_is_within_four_standard_errors_at_a_million(gate, truth):
    family, theta = truth(gate)
    X, y = moestat.sample(family, theta, 1_000_000, rng=11, design=WIDE)
    result = moestat.fit(family, X, y, starts=[TruthStarts(family, theta, 1, 0.05)], rng=0)
    assert result.certificate.certified
    assert result.certificate.active == ()
    # The fit carries the labels of its start: put the truth's atoms in its order.
    order = np.argsort(np.argsort(result.blocks["a"][:, 0, 0]))
    atoms, shared = family.split(theta)
    reference = family.pin(family.join(atoms[order], shared))
    if family.gate.scaling:  # the fit's scale is where its start was: compare at that scale
        held = family.blocks[family.gate.scaling[-1]]
        factor = result.params[held] / reference[held]
        for name in family.gate.scaling:
            reference[family.blocks[name]] *= factor
    error = result.params - reference
    identified = result.free
    assert identified.sum() == family.n_free_params
    assert np.all(np.abs(error[identified]) < 4 * result.bse[identified])


def test_threads_do_not_change_the_result(truth):
    family, theta = truth("sigmoid")
    data = [moestat.sample(family, theta, 15_000, rng=seed, design=WIDE) for seed in range(3)]
    runs = [
        moestat.fit_many(
            family,
            data,
            solver=EM(),
            starts=[TruthStarts(family, theta, 2, 0.1)],
            rng=4,
            threads=threads,
        )
        for threads in (1, 3)
    ]
    for one, other in zip(*runs, strict=True):
        assert np.array_equal(one.params, other.params)
        assert one.log_likelihood == other.log_likelihood


def test_split_starts_depend_on_the_data_not_on_a_truth(truth):
    family, theta = truth("softmax")
    X, y = moestat.sample(family, theta, 4000, rng=2, design=WIDE)
    result = moestat.fit(family, X, y, starts=[SplitStarts(4)], rng=0)
    best = moestat.fit(family, X, y, starts=[TruthStarts(family, theta, 1, 0.0)], rng=0)
    assert result.certificate.certified
    assert result.log_likelihood == pytest.approx(best.log_likelihood, abs=1e-5)


def test_truth_starts_leave_no_cell_empty(truth):
    family, theta = truth("sigmoid")
    fitted = family.with_experts(4)
    X, y = moestat.sample(family, theta, 500, rng=2, design=WIDE)
    rule = TruthStarts(family, theta, 200, 0.0)
    starts = rule.draw(problem_of(fitted, X, y), np.random.default_rng(0))
    atoms = theta.reshape(2, -1)
    sizes = set()
    for start in starts.reshape(200, 4, -1):
        counts = tuple(int(np.sum(np.all(start == atom, axis=1))) for atom in atoms)
        assert sum(counts) == 4
        sizes.add(counts)
    assert sizes == {(1, 3), (2, 2), (3, 1)}


def test_box_step_minimises_the_model():
    """Against a dense search of the ball and the box in two dimensions, definite or not."""
    rng = np.random.default_rng(0)
    angles = np.linspace(0, 2 * np.pi, 721)
    for trial in range(40):
        root = rng.normal(size=(2, 2))
        hessian = root + root.T if trial % 2 else root @ root.T
        gradient = rng.normal(size=2)
        square = rng.normal(size=(2, 2))
        metric = square @ square.T + 0.1 * np.eye(2)
        radius = rng.uniform(0.2, 2.0)
        wide = np.full(2, 1e3)
        move = box_step(np.zeros(2), gradient, hessian, metric, -wide, wide, radius)
        assert move.length <= radius * (1 + 1e-6)
        factor = np.linalg.inv(np.linalg.cholesky(metric)).T
        lengths = np.linspace(0, radius, 200)
        circle = np.stack([np.cos(angles), np.sin(angles)])
        points = np.einsum("ij,ja,r->iar", factor, circle, lengths).reshape(2, -1)
        model = gradient @ points + 0.5 * np.einsum("ip,ij,jp->p", points, hessian, points)
        assert -move.decrease <= model.min() + 1e-3 * abs(model.min())
        tight = rng.uniform(0.05, 0.3, size=2)
        held = box_step(np.zeros(2), gradient, hessian, metric, -tight, tight, radius)
        assert np.all(np.abs(held.step) <= tight * (1 + 1e-12))
        assert held.decrease > 0


def test_coordinates_on_an_edge_are_free_only_inwards():
    theta, lower, upper = np.array([0.0, 0.0, 1.0, 0.5, 0.0]), np.zeros(5), np.ones(5)
    upper[4] = 0.0
    gradient = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    assert free_coordinates(theta, gradient, lower, upper).tolist() == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_certificate_refuses_a_saddle(truth):
    """Two equal atoms are a stationary point of the over-specified likelihood, not a maximum."""
    family, theta = truth("softmax")
    X, y = moestat.sample(family, theta, 5000, rng=2, design=WIDE)
    single = moestat.fit(family.with_experts(1), X, y, rng=0)
    double = np.tile(single.params, 2)
    problem = problem_of(family, X, y)
    here = problem.evaluate(Request(Objective.OBSERVED, double))
    assert np.abs(here.gradient).max() < 1e-4
    metric = problem.metric(double)
    certificate = certify(problem, double, here, metric, "converged", 0)
    assert not certificate.certified
    assert certificate.inertia[2] > 0


def test_certificate_refuses_an_early_stop(truth):
    family, theta = truth("sigmoid")
    X, y = moestat.sample(family, theta, 20_000, rng=2, design=WIDE)
    starts = [TruthStarts(family, theta, 1, 0.3)]
    early = moestat.fit(family, X, y, solver=EM(max_iterations=3), starts=starts, rng=0)
    late = moestat.fit(family, X, y, solver=Newton(), starts=starts, rng=0)
    assert early.certificate.status == "iteration limit"
    assert not early.certificate.certified
    assert early.certificate.gain > 1e-3
    assert late.certificate.certified
    assert late.log_likelihood > early.log_likelihood
