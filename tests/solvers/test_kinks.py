"""Kinks of the Euclidean gate: one-sided derivatives, the model across them, and the maximum."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moestat
from moestat.estimation.starts import TruthStarts
from moestat.solvers import EM, Newton
from moestat.solvers.driver import drive
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.rules import GAIN_LIMIT
from moestat.solvers.trust_region.corners import Corners, best_cell
from moestat.solvers.trust_region.kinks import KinkModel, has_kinks, kinked_steps
from moestat.solvers.trust_region.newton_loop import newton_steps
from tests.conftest import WELL_CONDITIONED, WIDE, compact_fit


def problem_of(family, X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return Problem(family, Rows(np.ascontiguousarray(X.T), y - 1, weight))


def data_of(truth, n, seed):
    family, theta = truth("sigmoid-euclidean")
    return family, theta, *moestat.sample(family, theta, n, rng=seed, design=WIDE)


def model_at(problem, theta, reach=1.0):
    here = problem.evaluate(Request(Objective.OBSERVED, theta))
    return KinkModel(problem, -1, theta, here, problem.metric(theta), reach), here


def value_at(problem, theta):
    return problem.evaluate(Request(Objective.OBSERVED, theta)).value


def test_only_the_euclidean_gate_with_one_input_has_kinks(truth):
    for gate in WELL_CONDITIONED:
        family, _ = truth(gate)
        problem = Problem(family, Rows(np.zeros((1, 1)), np.zeros(1, dtype=np.int64), np.ones(1)))
        assert has_kinks(problem.family) == (gate == "sigmoid-euclidean")
        wide = replace(problem, family=replace(family, n_features=2))
        assert not has_kinks(wide.family)


@pytest.mark.parametrize("atom", [0, 1])
def test_one_sided_derivatives_at_a_sample(truth, atom):
    family, theta, X, y = data_of(truth, 300, 1)
    X[10:13] = X[10]  # a kink of three samples
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 300)
    problem = problem_of(family, X, y, weight)
    j = family.blocks["alpha"].ravel()[atom]
    theta = theta.copy()
    theta[j] = X[10, 0]
    model, here = model_at(problem, theta)
    corners = model.corners[atom]
    step = 1e-6
    for side in (1, -1):
        moved = theta.copy()
        moved[j] += side * step
        found = (value_at(problem, moved) - here.value) / (side * step)
        assert found == pytest.approx(here.gradient[j] - side * corners.at_origin, abs=1e-4)
    assert abs(corners.at_origin) > 0.01


def test_the_cell_at_a_kink_is_the_one_where_the_model_falls():
    corners = Corners(0.0, -1.0, 1.0, np.array([-0.5, 0.0, 0.5]), np.array([0.1, 2.0, 0.1]))
    right, left = corners.cell(0.0, -1.0), corners.cell(0.0, 3.0)
    assert (right.low, right.high, right.kink_slope) == (0.0, 0.5, 2.0)
    assert (left.low, left.high, left.kink_slope) == (-0.5, 0.0, -2.0)
    assert corners.cell(0.2, 9.0) == right


def test_decreases_across_kinks_are_known_from_both_ends(truth):
    """To a precision that a model from one end has not: the rest of it is no quadratic."""
    family, theta, X, y = data_of(truth, 20_000, 5)
    problem = problem_of(family, X, y)
    rng = np.random.default_rng(3)
    model, here = model_at(problem, theta)
    errors = []
    for ends_on_a_kink in (False, True):
        for _ in range(5):
            point = theta + 1e-2 * rng.normal(size=theta.size)
            if ends_on_a_kink:
                at = model.at[0]
                point[at] = X[np.abs(X[:, 0] - point[at]).argmin(), 0]
            there = problem.evaluate(Request(Objective.OBSERVED, point))
            step = point - theta
            kinks = sum(
                corners.added(float(point[j]))[0]
                for j, corners in zip(model.at, model.corners, strict=True)
            )
            assert abs(kinks) > 1e-4
            decrease = here.value - there.value
            errors.append(
                (
                    model.decrease_to(point, there) - decrease,
                    kinks - step @ here.gradient - 0.5 * step @ here.hessian @ step - decrease,
                )
            )
    both, one = np.abs(errors).max(axis=0)
    assert both < 0.1 * one
    assert both < 0.02


@pytest.mark.parametrize("atom", [0, 1])
def test_model_follows_the_likelihood_across_many_kinks(truth, atom):
    """Two hundred samples within 1e-4 of a location: the smooth part is linear there."""
    family, theta, X, y = data_of(truth, 600, 2)
    rng = np.random.default_rng(3)
    alpha = theta[family.blocks["alpha"].ravel()[atom]]
    X[:200, 0] = alpha + rng.uniform(-1e-4, 1e-4, 200)
    X[0, 0] = alpha
    problem = problem_of(family, X, y)
    model, here = model_at(problem, theta)
    corners, j = model.corners[atom], model.at[atom]
    for place in alpha + rng.uniform(-1e-4, 1e-4, 40):
        moved = theta.copy()
        moved[j] = place
        u = place - alpha
        cell = corners.cell(place, 0.0)
        assert cell.low <= place <= cell.high
        assert not np.any((cell.low < X[:, 0]) & (cell.high > X[:, 0]))
        smooth = here.value + here.gradient[j] * u + 0.5 * here.hessian[j, j] * u * u
        change = value_at(problem, moved) - here.value
        added = cell.kink_slope * u + cell.offset
        assert here.value + change == pytest.approx(smooth - added, abs=3e-7)
    # Without the kinks the model is off by far more.
    assert np.ptp(corners.offset) > 1e-5


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(0, 12),
    curvature=st.sampled_from([-3.0, 0.0, 0.5, 20.0]),
    radius=st.sampled_from([0.05, 0.5, 2.0]),
)
@settings(max_examples=200, deadline=None)
def testbest_cell_is_the_best_place(seed, m, curvature, radius):
    rng = np.random.default_rng(seed)
    x, half, slope = np.sort(rng.uniform(-1, 1, m)), rng.normal(size=m), rng.normal()
    origin = float(rng.choice([0.1, *x])) if m else 0.1

    def objective(place):
        """From the definition: every sample that is passed adds 2 S times the way beyond it."""
        u = place - origin
        low, high = min(origin, place), max(origin, place)
        passed = np.where(x == origin, 1.0, np.where((x > low) & (x < high), 2.0, 0.0))
        return slope * u + 0.5 * curvature * u * u - np.sum(passed * half * np.abs(place - x))

    corners = Corners(origin, -1.5, 1.5, x, half)
    low, high = max(origin - radius, -1.5), min(origin + radius, 1.5)
    value, place = best_cell(
        corners.edge, corners.kink_slope, corners.offset, origin, low, high, slope, curvature
    )
    assert low <= place <= high
    assert value == pytest.approx(objective(place), abs=1e-10)
    assert corners.best(slope, curvature, radius) == place
    for other in [low, high, *x[(x >= low) & (x <= high)], *np.linspace(low, high, 400)]:
        assert value <= objective(float(other)) + 1e-10


def test_climb_is_monotone_and_ends_at_its_lowest_value(truth):
    family, theta, X, y = data_of(truth, 3000, 4)
    fitted = family.with_experts(3)
    problem = problem_of(fitted, X, y)
    start = TruthStarts(family, theta, 1, 0.3).draw(problem, np.random.default_rng(0))[0]
    start = np.clip(fitted.pin(start), fitted.lower, fitted.upper)
    climb = kinked_steps(problem, 0, start, problem.metric(start), 1e-9, 3000)
    seen = []
    request = next(climb)
    while True:
        seen.append(problem.evaluate(request))
        try:
            request = climb.send(seen[-1])
        except StopIteration as stop:
            (_, status, _, reach, *_), here = stop.value
            break
    assert status == "converged"
    assert 0.0 < reach <= 1.0
    assert here.value == min(evaluation.value for evaluation in seen)
    assert here.value < seen[0].value


def fitted_and_best_of_all_cells(seed):
    """Log-likelihood of a fit, and the highest over every pair of cells, Newton in each."""
    rng = np.random.default_rng(seed)
    family = moestat.family("multinomial", gate="sigmoid-euclidean", n_experts=2, n_classes=3)
    gate = {"gamma": [0.0, 0.0], "alpha": [2.0, -2.5], "beta": [-1.0, -0.5], "tau": 0.5}
    experts = {"a": [[-1.5, 3.0], [2.5, 0.5]], "b": [[-2.0, 0.5], [-0.5, 0.5]]}
    theta = family.pack({**gate, **experts})
    points = np.sort(rng.uniform(-3, 3, 30))
    counts = rng.multinomial(100, family.probabilities(theta, points)).astype(float).ravel()
    seen = counts > 0
    X, y = np.repeat(points, 3)[seen, None], np.tile([1, 2, 3], 30)[seen]
    weight = counts[seen]
    rules = [TruthStarts(family, theta, 2, 0.1)]
    fitted = moestat.fit(family, X, y, sample_weight=weight, starts=rules, rng=0)
    assert fitted.certificate.certified

    problem = problem_of(family, X, y, weight)
    metric, at = problem.metric(theta), family.blocks["alpha"].ravel()
    edges = itertools.pairwise(np.concatenate([[-4.0], points, [4.0]]))
    iterations = []
    for cells in itertools.product(edges, repeat=2):
        lower, upper = family.lower.copy(), family.upper.copy()
        # Just inside, where the derivatives are those of the cell.
        lower[at] = [low + 1e-9 for low, _ in cells]
        upper[at] = [high - 1e-9 for _, high in cells]
        start = np.clip(theta, lower, upper)
        bounds = metric, lower, upper
        iterations.append(
            newton_steps(problem, Objective.OBSERVED, start, 1e-8, 300, bounds=bounds)
        )
    ends = drive(iterations, [problem] * len(iterations), threads=1)
    return fitted.log_likelihood, max(-end.value for end in ends)


@pytest.mark.slow
def test_brute_force_over_all_cells_seldom_finds_more():
    """Two locations among thirty distinct inputs; a fit from two starts is a local maximum."""
    found = np.array([fitted_and_best_of_all_cells(seed) for seed in range(6)])
    assert np.all(found[:, 0] <= found[:, 1] + 1e-5)
    assert np.sum(found[:, 0] >= found[:, 1] - 1e-5) >= 4


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_fits_are_certified_and_kinks_are_maxima(truth, k):
    """Moving a location that is held at a kink lowers the likelihood on both sides."""
    held = 0
    for seed in range(5):
        family, theta, X, y = data_of(truth, 3000, seed)
        fitted = family.with_experts(k)
        starts = [TruthStarts(family, theta, 2, 0.1)]
        result = moestat.fit(fitted, X, y, starts=starts, rng=seed)
        assert result.certificate.certified
        assert result.certificate.status == "converged"
        assert 0.0 < result.certificate.reach <= 1.0
        problem = problem_of(fitted, X, y)
        # In units of their own locations and samples are equal; back in the user's to rounding.
        at_kink = [
            j
            for j in fitted.blocks["alpha"].ravel()
            if np.abs(X[:, 0] - result.params[j]).min() <= 1e-14
        ]
        assert len(at_kink) >= result.certificate.kinks
        held += result.certificate.kinks
        for j, side in itertools.product(fitted.blocks["alpha"].ravel(), (1, -1)):
            for step in (1e-7, 1e-5, 1e-3):
                moved = result.params.copy()
                moved[j] += side * step
                assert -value_at(problem, moved) <= result.log_likelihood + GAIN_LIMIT
        assert ("Held at a kink" in str(result.summary(details=True))) == (
            result.certificate.kinks > 0
        )
    assert held > 0


def test_the_certificate_sees_a_gain_across_kinks(truth):
    """Newton that ignores kinks stops between them; the certificate knows of the better cell."""
    family, theta, X, y = data_of(truth, 10_000, 5)
    problem = problem_of(family, X, y)
    ends = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        start = TruthStarts(family, theta, 1, 0.05).draw(problem, rng)[0]
        start = np.clip(family.pin(start), family.lower, family.upper)
        em = EM(tolerance=1e-7, max_iterations=60)
        (rough,) = drive([em.steps(problem, start)], [problem], threads=1)
        assert not rough.certificate.certified
        newton = Newton().steps(problem, rough.theta)
        (fine,) = drive([newton], [problem], threads=1)
        assert fine.certificate.certified
        gained = fine.log_likelihood - rough.log_likelihood
        assert gained > GAIN_LIMIT
        assert rough.certificate.gain == pytest.approx(gained, rel=0.5)
        ends.append(fine.log_likelihood)
    assert np.ptp(ends) < 1e-4


def test_repeated_rows_count_as_weights(truth):
    family, theta, X, y = data_of(truth, 800, 6)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    starts = [TruthStarts(family, theta, 1, 0.05)]
    one = compact_fit(family, X, y, starts=starts, sample_weight=times, rng=0)
    other = compact_fit(family, np.repeat(X, times, 0), np.repeat(y, times), starts=starts, rng=0)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-6)
    assert one.certificate.kinks == other.certificate.kinks
