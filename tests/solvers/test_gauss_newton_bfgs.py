"""BFGS in the Gauss-Newton metric: kinks, saddles, the box, and what its certificate says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import moestat
from moestat.estimation.starts import MeasureStarts, TruthStarts
from moestat.solvers import GaussNewtonBFGS, LevenbergMarquardt
from moestat.solvers.driver import drive
from moestat.solvers.least_squares.gauss_newton import (
    feature_metric,
    fitted_levels,
    last_look,
    least_squares_solution,
)
from moestat.solvers.least_squares.gauss_newton_bfgs import _inverse_inside, _root
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.trust_region.region import eigenbasis_step
from moestat.sweep.run.cell import run_cell
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import parse_spec

WIDE = moestat.Uniform(-1, 1)
LINEAR = {"name": "polynomial", "degree": 1}
RELU = {"name": "activation", "activation": "relu", "weighted": False}


def problem_of(expert, n, noise=0.01, k=2, d=2):
    family = moestat.family(
        "least-squares", gate="sigmoid-quadratic", expert=expert, n_experts=k, n_features=d
    )
    truth = np.random.default_rng(3).normal(size=family.n_params)
    # Every expert is active on a part of the inputs.
    truth[family.blocks["alpha"]] = np.resize([1.0, -0.5, 0.4, 1.2], (k, d))
    truth[family.blocks["beta"]] = np.resize([0.2, -0.1], k)
    X, y = moestat.sample(family, truth, n, rng=1, design=WIDE, noise=noise)
    return Problem(family, Rows(np.ascontiguousarray(X.T), y, np.ones(n))), truth


def solve(problem, start, **options):
    fresh = Problem(problem.family, problem.data)
    (solution,) = drive([GaussNewtonBFGS(**options).steps(fresh, start)], [fresh])
    return solution


@pytest.fixture(scope="module")
def kinked():
    problem, truth = problem_of(RELU, 1500)
    start = truth + 0.3 * np.random.default_rng(5).normal(size=truth.size)
    return problem, start, solve(problem, start)


def test_a_fit_between_kinks_is_certified(kinked):
    _, _, solution = kinked
    certificate = solution.certificate
    assert certificate.certified
    assert certificate.kinks > 0
    assert 0.0 < certificate.reach <= 1e-2
    assert certificate.inertia[2] == 0


def test_nothing_near_a_certified_kinked_fit_is_better(kinked):
    problem, _, solution = kinked
    metric = feature_metric(problem)
    rng, base = np.random.default_rng(0), solution.log_likelihood
    size = problem.data.size
    for length in (1e-4, 1e-3, 1e-2, 1e-1):
        for _ in range(100):
            step = rng.normal(size=solution.theta.size)
            step *= length / np.sqrt(step @ metric @ step)
            value = problem.evaluate(Request(Objective.RESIDUALS, solution.theta + step)).value
            height = -0.5 * size * (np.log(2 * np.pi * 2 * value / size) + 1)
            assert height < base + 1e-3


def test_the_gradient_alone_would_not_certify_it(kinked):
    problem, _, solution = kinked
    here = problem.evaluate(Request(Objective.GAUSS_NEWTON, solution.theta))
    variance = 2 * here.value / problem.data.size
    gain = 0.5 * here.gradient @ np.linalg.solve(here.hessian, here.gradient) / variance
    assert gain > 1e-4 > solution.certificate.gain


def test_a_fit_that_was_stopped_is_not_certified(kinked):
    problem, start, solution = kinked
    stopped = solve(problem, start, max_iterations=5)
    assert stopped.certificate.status == "iteration limit"
    assert not stopped.certificate.certified
    assert stopped.certificate.gain > 1e-4
    assert stopped.log_likelihood < solution.log_likelihood - 1.0


def test_levenberg_marquardt_stops_short_at_kinks_and_says_so(kinked):
    problem, start, solution = kinked
    (other,) = drive([LevenbergMarquardt().steps(problem, start)], [problem])
    assert other.certificate.status == "stalled"
    assert other.certificate.passes < 1000  # of which each iteration takes one or two
    assert not other.certificate.certified
    assert other.log_likelihood < solution.log_likelihood + 1e-3


def test_coordinates_without_curvature_do_not_stop_levenberg_marquardt():
    """Shift all inputs of a ReLU below its kink: the expert is 0 and its derivatives are 0."""
    problem, truth = problem_of(RELU, 800)
    start = truth.copy()
    start[problem.family.blocks["beta"][0]] = -20.0
    (dead,) = drive([LevenbergMarquardt().steps(problem, start)], [problem])
    before = problem.evaluate(Request(Objective.RESIDUALS, start)).value
    after = problem.evaluate(Request(Objective.RESIDUALS, dead.theta)).value
    assert after < 0.5 * before


def test_a_saddle_is_left_along_its_negative_curvature():
    problem, _ = problem_of(LINEAR, 3000)
    family = problem.family
    X, y = problem.data.X.T, problem.data.y
    single = moestat.fit(family.with_experts(1), X, y, rng=0)
    atoms, shared = single.family.split(single.params)
    saddle = family.join(np.repeat(atoms, 2, axis=0), shared)
    for name in ("alpha", "beta"):
        saddle[family.blocks[name]] /= 2.0  # two halves of the best one
    here = drive([_look(problem, saddle)], [problem])[0]
    assert here.certificate.gradient < 1e-4
    assert here.certificate.inertia[2] > 0
    assert not here.certificate.certified
    free = solve(problem, saddle)
    assert free.certificate.certified
    assert free.certificate.inertia[2] == 0
    assert free.log_likelihood > single.log_likelihood + 10.0


def _look(problem, theta):
    here = yield last_look(problem, theta)
    return least_squares_solution(problem, theta, here, "looked at", 0)


def test_the_fit_keeps_to_the_box():
    problem, truth = problem_of(LINEAR, 2000)
    family = moestat.family(
        "least-squares",
        gate="sigmoid-quadratic",
        expert=LINEAR,
        n_experts=2,
        n_features=2,
        bounds={"b": (-0.5, 0.5)},
    )
    start = np.clip(truth, family.lower, family.upper)
    inside = Problem(family, problem.data)
    solution = solve(inside, start)
    assert np.all((solution.theta >= family.lower) & (solution.theta <= family.upper))
    assert solution.certificate.certified
    assert solution.certificate.active
    here = inside.evaluate(Request(Objective.GRADIENT, solution.theta))
    pull = here.gradient * np.where(solution.theta >= family.upper, 1.0, -1.0)
    on_edge = (solution.theta <= family.lower) | (solution.theta >= family.upper)
    assert np.all(pull[on_edge] < 0.0)


def test_previews_lead_to_the_same_certificate():
    problem, truth = problem_of(LINEAR, 40_000)
    assert [level.preview for level in problem.data.levels] == [True, True, False]
    solution = solve(problem, truth)
    assert solution.certificate.certified
    whole = Problem(problem.family, problem.data)
    here = whole.evaluate(Request(Objective.GRADIENT, solution.theta))
    assert here.value == pytest.approx(
        whole.evaluate(Request(Objective.RESIDUALS, solution.theta)).value, rel=1e-12
    )


def test_a_part_of_the_data_that_cannot_determine_the_parameters_is_left_out():
    """A preview has a row of 16 or more; ten rows a parameter are asked for."""
    few, many = (problem_of(LINEAR, 40_000, k=k, d=d)[0] for k, d in ((2, 1), (8, 8)))
    assert few.family.n_params < 100 < 250 < many.family.n_params
    previews = [[data.preview for _, data in fitted_levels(p)] for p in (few, many)]
    assert previews[0].count(True) > previews[1].count(True)
    assert all(seen[-1] is False for seen in previews)


def test_the_region_step_leaves_a_saddle():
    values, slope = np.array([-2.0, 1.0]), np.array([0.0, 0.5])
    step = eigenbasis_step(values, slope, 1.0)
    assert np.linalg.norm(step) == pytest.approx(1.0)
    assert -(slope @ step + 0.5 * values @ step**2) > 0.9
    assert eigenbasis_step(np.empty(0), np.empty(0), 1.0).size == 0


def test_coordinates_are_held_in_an_inverse():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(5, 5))
    matrix = root @ root.T + np.eye(5)
    inside = np.array([True, False, True, True, False])
    held = _inverse_inside(np.linalg.inv(matrix), inside)
    assert np.allclose(held, np.linalg.inv(matrix[np.ix_(inside, inside)]))


def test_a_matrix_rounded_by_more_than_its_least_curvature():
    """An atom too many at n = 1e14: the matrix is singular but for rounding."""
    small, truth = problem_of(LINEAR, 100, k=2)
    design = moestat.Lattice(-1.0, 1.0, nodes=8)
    X, y, weight = moestat.sample_weighted(
        small.family, truth, 1e14, rng=0, design=design, noise=0.01
    )
    fitted = small.family.with_experts(3)
    problem = Problem(fitted, Rows(np.ascontiguousarray(X.T), y, weight))
    (start,) = MeasureStarts(small.family, truth, 1, 1e-7).draw(problem, np.random.default_rng(0))
    certificate = solve(problem, start, max_iterations=20).certificate
    assert np.isfinite(certificate.gain)


def test_truth_starts_and_fit_use_it_by_default():
    problem, truth = problem_of(RELU, 800, k=1)
    X, y = problem.data.X.T, problem.data.y
    rule = TruthStarts(problem.family, truth, 2, 0.05)
    result = moestat.fit(problem.family, X, y, starts=[rule], rng=0)
    assert result.solver == "gauss-newton-bfgs"
    assert result.certificate.certified


def test_the_root_of_an_inverse_that_rounding_made_indefinite():
    rng = np.random.default_rng(8)
    scale = 10.0 ** rng.uniform(-9, 0, 6)
    basis = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    sound = (basis * np.array([1.0, 0.5, 0.3, 1e-3, 1e-8, 0.0])) @ basis.T
    for least in (1e-17, -1e-15):
        inverse = (sound + least * np.outer(basis[:, 5], basis[:, 5])) * np.outer(scale, scale)
        inverse = 0.5 * (inverse + inverse.T)
        root = _root(inverse)
        size = np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
        np.testing.assert_allclose(root @ root.T / size, inverse / size, rtol=0, atol=1e-13)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(inverse)


@pytest.mark.slow
def test_steps_across_kinks_end_where_a_certificate_holds():
    """Without them such fits stall some 1e-6 units below their maximum."""
    certified = []
    for name, n in (("attention_table1", 3162), ("attention_partial", 10_000)):
        text = (Path(moestat.__file__).parents[1] / "experiments" / f"{name}.toml").read_text()
        wanted = f"sigmoid, dense, relu | n={n} | replicate="
        cells = [cell for cell in plan_cells(parse_spec(text)) if cell.key.startswith(wanted)]
        certified += [run_cell(text, cell).certified for cell in cells]
    assert len(certified) == 10
    # Rounding decides of single fits: each processor has one or two others that are not.
    assert sum(certified) >= 8
