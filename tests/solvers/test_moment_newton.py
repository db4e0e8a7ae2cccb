"""Newton in the moments of merging atoms: the chart is what it says, and fits are better for it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy

import moestat
from moestat.estimation.starts import GivenStarts, TruthStarts
from moestat.solvers import MomentNewton, Newton
from moestat.solvers.driver import drive
from moestat.solvers.merging_atoms.corrector import Ridge
from moestat.solvers.merging_atoms.kinks import _open_box
from moestat.solvers.merging_atoms.moments import MomentChart, Moments, Path
from moestat.solvers.merging_atoms.steps import _Model, _objective, _Proposal, moment_steps
from moestat.solvers.problem import (
    Evaluation,
    InformedEvaluation,
    Objective,
    Problem,
    Request,
    Rows,
)
from moestat.solvers.trust_region.kinks import kink_locations, one_sided
from moestat.solvers.trust_region.region import BoxStep, Region
from tests.conftest import GAUSSIAN_TRUTHS, compact_fit

MEDIUM = moestat.Lattice(-2.0, 2.0, nodes=16)
WIDE = moestat.Lattice(-4.0, 4.0, nodes=32)


def merging(gate, truth, rng, close=0.2):
    """Three atoms, two of them close, of random parameters near a truth."""
    family, theta = truth(gate)
    fitted = family.with_experts(3)
    split = np.concatenate([theta[: family.n_atom_params], theta])
    split = split + close * rng.normal(size=split.size)
    return fitted, fitted.pin(split)


def chart_of(family, theta, merges):
    """The chart of some mergers, close or not."""
    pairs = np.array(merges, dtype=np.int64).reshape(-1, 2)
    return MomentChart(Moments(family, np.eye(theta.size)), theta, pairs)


def moments(family, theta, cell, rest):
    """Log-mass relative to the atom `rest`, mean and second moment of the atoms of a cell."""
    atoms = family.split(theta)[0]
    column = family.mass_column
    others = np.delete(np.arange(family.n_atom_params), column)
    mass, location = atoms[np.array(cell), column], atoms[np.ix_(cell, others)]
    total = np.logaddexp.reduce(mass)
    share = np.exp(mass - total)
    mean = share @ location
    apart = location - mean
    # The translations of a softmax gate: slopes count relative to the other atom's, too.
    shift = np.zeros(family.n_atom_params)
    for name in family.gate.translations:
        at = family.blocks[name][0] % family.n_atom_params
        shift[at] = atoms[rest, at]
    return total - shift[column], mean - shift[others], (apart.T * share) @ apart


def splitting(family, theta, i, j):
    """The velocity by which mass goes from j to i, without a change of their first moments."""
    atoms = family.split(theta)[0]
    column = family.mass_column
    others = np.delete(np.arange(family.n_atom_params), column)
    share = 1.0 / (1.0 + np.exp(atoms[j, column] - atoms[i, column]))
    apart = atoms[i, others] - atoms[j, others]
    step = np.zeros_like(theta)
    move = family.split(step)[0]
    move[i, column], move[j, column] = 1.0 - share, -share
    move[i, others], move[j, others] = -0.5 * (1.0 - share) * apart, -0.5 * share * apart
    return step


@pytest.mark.parametrize("gate", ["sigmoid", "softmax"])
@pytest.mark.parametrize("pair", [(1, 0), (2, 0)])
def test_mass_moves_between_two_atoms_without_moving_their_moments(gate, pair, truth):
    family, theta = merging(gate, truth, np.random.default_rng(0))
    chart = chart_of(family, theta, (pair,))
    rest = ({0, 1, 2} - set(pair)).pop()
    before = moments(family, theta, pair, rest)
    for scale in (0.1, -1.0, 3.0):
        end = chart.path(scale * splitting(family, theta, *pair)).end
        assert not np.allclose(end, theta, atol=0.01)
        for a, b in zip(moments(family, end, pair, rest), before, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-13)


@pytest.mark.parametrize("gate", ["sigmoid", "softmax"])
def test_mass_moves_between_three_atoms_without_moving_their_moments(gate, truth):
    """From the third atom to the two that have merged, which scatter less for it."""
    small, at = truth(gate)
    family, cell = small.with_experts(4), (0, 1, 2)
    rng = np.random.default_rng(7)
    atom, rest = np.split(at, [small.n_atom_params])
    theta = family.pin(
        np.concatenate([np.tile(atom, 3), rest]) + 0.2 * rng.normal(size=2 * at.size)
    )
    # Three atoms as two, the merged one in the place of the first.
    i, j, last = 1, 0, 2
    chart = chart_of(family, theta, ((i, j), (4, last)))
    column = family.mass_column
    others = np.delete(np.arange(family.n_atom_params), column)
    merged = family.split(theta)[0].copy()
    share = 1.0 / (1.0 + np.exp(merged[j, column] - merged[i, column]))
    apart = merged[i, others] - merged[j, others]
    mean = merged[j, others] + share * apart
    merged[0, column] = np.logaddexp(merged[i, column], merged[j, column])
    merged[0, others] = mean
    shared = family.split(theta)[1]
    move = family.split(splitting(family, family.join(merged, shared), 0, last))[0]
    # The two follow the merged atom, and come nearer to each other as it gains mass.
    step = np.zeros_like(theta)
    atoms = family.split(step)[0]
    atoms[last] = move[last]
    for member in (i, j):
        atoms[member, column] = move[0, column]
        offset = family.split(theta)[0][member, others] - mean
        atoms[member, others] = move[0, others] - 0.5 * move[0, column] * offset
    before = moments(family, theta, cell, 3)
    for scale in (0.1, -1.0, 2.0):
        end = chart.path(scale * step).end
        assert not np.allclose(end, theta, atol=0.01)
        for a, b in zip(moments(family, end, cell, 3), before, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-13)


@pytest.mark.parametrize("merges", [(), ((1, 0),), ((2, 1),), ((1, 0), (3, 2)), ((2, 1), (3, 0))])
def test_a_path_has_the_velocity_it_reports(merges, truth):
    rng = np.random.default_rng(1)
    family, theta = merging("softmax", truth, rng)
    chart = chart_of(family, theta, merges)
    step = family.pin(0.5 * rng.normal(size=theta.size))
    h = 1e-4
    before, after = (chart.path((1.0 + s) * step).end for s in (-h, h))
    np.testing.assert_allclose(chart.path(step).velocity, (after - before) / (2 * h), atol=1e-7)
    # A short step is the step itself.
    np.testing.assert_allclose(chart.path(1e-8 * step).end - theta, 1e-8 * step, atol=1e-14)


@pytest.mark.parametrize("gate", ["sigmoid", "softmax"])
def test_the_model_in_the_moments_is_of_second_order(gate, truth):
    """The pinned reference atom may be one of the two: the likelihood does not feel the pinning."""
    rng = np.random.default_rng(2)
    family, theta = merging(gate, truth, rng)
    small, at = truth(gate)
    X, y, weight = moestat.sample_weighted(small, at, 1000, rng=0, design=WIDE)
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y - 1, weight))
    here = problem.evaluate(Request(Objective.OBSERVED, theta))
    for merges in (((1, 0),), ((2, 1),), ((2, 0),), ((1, 0), (3, 2)), ((2, 1), (3, 0))):
        chart = chart_of(family, theta, merges)
        step = family.pin(2.0 * rng.normal(size=theta.size))
        h = 5e-4
        values = [
            problem.evaluate(Request(Objective.VALUE, chart.path(s * step).end)).value
            for s in (-h, 0.0, h)
        ]
        slope = (values[2] - values[0]) / (2 * h)
        curvature = (values[2] - 2 * values[1] + values[0]) / h**2
        assert slope == pytest.approx(here.gradient @ step, rel=1e-4)
        model = step @ (here.hessian + chart.curvature(here.gradient)) @ step
        assert curvature == pytest.approx(model, rel=1e-3, abs=1e-2)
        assert abs(step @ chart.curvature(here.gradient) @ step) > 0.05


def test_atoms_on_a_bound_or_far_apart_do_not_merge(truth):
    family, theta = merging("sigmoid", truth, np.random.default_rng(3))
    metric, box = np.eye(theta.size), (family.lower, family.upper)
    assert Moments(family, metric).merges(theta, *box).tolist() == [[1, 0]]
    assert Moments(family, 100 * metric).merges(theta, *box).size == 0
    atoms = np.delete(family.split(theta)[0], int(family.blocks["gamma"][0]), axis=1)
    assert Moments(family, metric).closest(theta) == pytest.approx(
        np.linalg.norm(atoms[0] - atoms[1])
    )
    assert Moments(family.with_experts(1), metric).closest(theta) == np.inf
    held = theta.copy()
    held[family.blocks["alpha"][0]] = family.upper[family.blocks["alpha"][0]]
    held[family.blocks["alpha"][1]] = family.upper[family.blocks["alpha"][1]] - 0.1
    assert Moments(family, metric).merges(held, *box).size == 0


@pytest.mark.parametrize(
    ("places", "merges"),
    [
        ((0.0, 0.4, 0.41, 5.0), [(2, 1), (4, 0)]),  # the mean of the two is close to the third
        ((0.0, 5.0, 0.3, 5.1), [(3, 1), (2, 0)]),
        ((0.0, 0.9, 1.8, 2.7), [(1, 0), (3, 2)]),  # the means are too far apart
        ((0.0, 2.0, 4.0, 6.0), []),
    ],
)
def test_the_closest_atoms_merge_first(places, merges, truth):
    family, _ = truth("sigmoid")
    family = family.with_experts(4)
    theta = np.zeros(family.n_params)
    theta[family.blocks["beta"].ravel()] = places
    found = Moments(family, np.eye(theta.size)).merges(theta, family.lower, family.upper)
    assert list(map(tuple, found)) == merges


@pytest.mark.parametrize("gate", ["sigmoid", "softmax"])
def test_exact_fits_are_newtons(gate, truth):
    family, theta = truth(gate)
    X, y = moestat.sample(family, theta, 3000, rng=4, design=moestat.Uniform(-4, 4))
    _agree(family, theta, X, y)


def test_a_start_with_two_equal_atoms_is_left(truth):
    """The distance of the closest atoms, 0, is not taken for a first step bound."""
    family, theta = truth("softmax")
    X, y, weight = moestat.sample_weighted(family, theta, 1e8, rng=3, design=MEDIUM)
    fitted = family.with_experts(3)
    both = fitted.pin(np.concatenate([theta[: family.n_atom_params], theta]))
    result = moestat.fit(
        fitted, X, y, sample_weight=weight, starts=[GivenStarts(both[None])], solver=MomentNewton()
    )
    assert result.certificate.certified
    assert result.llf > family.log_density(theta, X, y) @ weight + 1.0


def test_gates_without_free_masses_have_no_moments_but_valleys(gaussian_truth):
    family, theta = gaussian_truth("competition")
    assert Moments(family, np.eye(theta.size)).merges(theta, family.lower, family.upper).size == 0
    X, y = moestat.sample(family, theta, 500, rng=0, design=moestat.Uniform(-2, 2))
    _agree(family, theta, X, y)


def _agree(family, theta, X, y):
    options = {"starts": [TruthStarts(family, theta, 2, 0.1)], "rng": 0}
    plain = moestat.fit(family, X, y, solver=Newton(), **options)
    moment = moestat.fit(family, X, y, solver=MomentNewton(), **options)
    assert moment.certificate.certified
    assert moment.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-6)


@pytest.mark.parametrize("kind", ["classes", "normal"])
def test_over_specified_fits_need_few_passes_where_newton_needs_many(kind, truth):
    if kind == "classes":
        (family, theta), design, n = truth("sigmoid"), WIDE, 1e12
    else:
        bounds = {"nu": (0.05, 10.0)}  # no atom narrower than the lattice of responses
        family = moestat.family("gaussian", gate="softmax", n_experts=2, bounds=bounds)
        theta, design, n = family.pack(GAUSSIAN_TRUTHS["softmax"]), MEDIUM, 1e9
    passes = {"newton": 0.0, "moment-newton": 0.0}
    for seed in (1, 2):
        X, y, weight = moestat.sample_weighted(family, theta, n, rng=seed, design=design)
        heights = []
        for solver in (Newton(), MomentNewton()):
            result = moestat.fit(
                family.with_experts(3),
                X,
                y,
                sample_weight=weight,
                solver=solver,
                starts=[TruthStarts(family, theta, 3, 0.1)],
                rng=0,
            )
            passes[solver.name] += result.certificate.passes
            heights.append(result.log_likelihood)
        assert result.certificate.certified
        assert heights[1] > heights[0] - 3.0  # there is more than one maximum
    assert passes["moment-newton"] < 0.5 * passes["newton"]


@pytest.mark.parametrize("gate", ["softmax", "sigmoid"])
def test_cells_of_three_are_certified_at_a_trillion_samples(gate, truth):
    family, theta = truth(gate)
    X, y, weight = moestat.sample_weighted(family, theta, 1e12, rng=3, design=WIDE)
    fitted = family.with_experts(4)
    atom, rest = np.split(theta, [family.n_atom_params])
    rng = np.random.default_rng(0)
    starts = [
        fitted.pin(np.concatenate([np.tile(atom, 3), rest]) + 0.1 * rng.normal(size=2 * theta.size))
        for _ in range(3)
    ]
    options = {"sample_weight": weight, "starts": [GivenStarts(starts)]}
    result = moestat.fit(fitted, X, y, solver=MomentNewton(), **options)
    assert result.certificate.certified
    problem = Problem(fitted, Rows(np.ascontiguousarray(X.T), y - 1, weight))
    at_truth = problem.evaluate(Request(Objective.VALUE, _embedded(fitted, family, theta)))
    assert result.log_likelihood > -at_truth.value


def _box(family):
    return family.lower, family.upper


def _embedded(fitted, family, theta):
    """The truth as a fit whose first true atom is split into three equal ones."""
    atoms, shared = family.split(theta)
    split = np.concatenate([np.repeat(atoms[:1], 3, axis=0), atoms[1:]])
    column = family.mass_column
    split[:3, column] -= np.log(3.0)
    return fitted.pin(fitted.join(split, shared))


def test_the_likelihood_never_falls_from_step_to_step(truth):
    family, theta = merging("softmax", truth, np.random.default_rng(5))
    small, at = truth("softmax")
    X, y, weight = moestat.sample_weighted(small, at, 1e10, rng=0, design=WIDE)
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y - 1, weight))
    metric = problem.metric(theta)
    values = []
    for passes in range(1, 80, 3):
        steps = moment_steps(problem, theta, metric, *_box(family), 1e-9, passes)
        values.append(drive([steps], [problem])[0][1].value)
    assert values[-1] < values[0] - 1e3
    assert np.all(np.diff(values) <= 1e-14 * abs(values[0]))


def test_steps_are_no_longer_than_their_promise_is_worth(truth):
    """Rounding makes a slope and a curvature of what is flat."""
    family, theta = truth("sigmoid")
    metric, wide = np.eye(theta.size), np.full(theta.size, 1e3)
    curvatures = np.full(theta.size, 1e12)
    slopes = np.full(theta.size, 1e3)
    curvatures[3], slopes[3] = 1e-3, 1e-5
    here = Evaluation(0.0, slopes, np.diag(curvatures))
    moments = Moments(family, 1e6 * metric)  # no atoms are close
    model = _Model(moments, theta, here, metric, -wide, wide)
    assert model.step(1.0, 1e-16).length > 1e-3
    move = model.shortest_step(1.0)
    assert move.length < 1e-7
    assert move.decrease >= 0.9 * model.step(1.0, 1e-16).decrease


def _axes(rng):
    """A metric (4, 4), and axes that are orthonormal in it, with their duals."""
    root = rng.normal(size=(4, 4))
    metric = root @ root.T + np.eye(4)
    _, axes = scipy.linalg.eigh(np.diag(rng.normal(size=4)), metric)
    return metric, axes, metric @ axes


def _ridge(metric, here):
    zero, wide = np.zeros(4), np.full(4, 1e3)
    return Ridge(Region(zero, zero, here.hessian, metric, -wide, wide), here)


def test_corrections_undo_what_a_step_has_done_in_stiff_directions():
    rng = np.random.default_rng(6)
    metric, axes, dual = _axes(rng)
    noise = dual @ np.diag([0.0, 1.0, -2.0, 3.0]) @ dual.T
    before = dual @ np.diag([1e6, 1e5, 1.0, -1.0]) @ dual.T
    ridge = _ridge(metric, InformedEvaluation(0.0, np.zeros(4), before, before - noise))
    # A step has turned the axes, and off the ridge the Hessian means nothing.
    turn = scipy.linalg.expm(0.3 * rng.normal(size=(4, 4)))
    turn, _ = np.linalg.qr(turn)
    axes, dual = axes @ turn, dual @ turn
    curvature = dual @ np.diag([0.9e6, 1.2e5, 30.0, 0.2]) @ dual.T
    far = curvature + dual @ np.diag([1e4, -3e5, 2e5, -200.0]) @ dual.T
    apart = axes @ np.array([1e-3, -2e-3, 0.7, 0.3])
    there = InformedEvaluation(0.0, curvature @ apart, far, curvature - noise)
    predicted_reduction = 0.5 * 1e3 * 0.12**2
    back = ridge.correction(apart, there, 1.0, predicted_reduction)
    np.testing.assert_allclose(dual.T @ (apart + back.step), [0, 0, 0.7, 0.3], atol=1e-9)
    assert back.decrease == pytest.approx(0.5 * (0.9e6 * 1e-6 + 1.2e5 * 4e-6))
    np.testing.assert_allclose(axes.T @ back.gradient, [0, 0, 21, 0.06], atol=1e-6)
    assert ridge.correction(apart, there, 1e-3, 0.0).length == pytest.approx(1e-3, rel=2e-3)
    # What costs less than the predicted reduction over a small part of the step is not stiff.
    stiffest = ridge.correction(apart, there, 1.0, 0.5 * 2e5 * 0.32**2)
    np.testing.assert_allclose(dual.T @ (apart + stiffest.step), [0, -2e-3, 0.7, 0.3], atol=1e-9)
    nowhere = ridge.correction(apart, there, 1.0, 1e5)
    assert nowhere.length == nowhere.decrease == 0.0
    np.testing.assert_array_equal(nowhere.step, 0.0)
    np.testing.assert_array_equal(nowhere.gradient, there.gradient)


def test_each_turn_of_corrections_takes_fewer_directions():
    rng = np.random.default_rng(10)
    metric, axes, dual = _axes(rng)
    # Stiff in the first turn, up to the second, up to the third, and always.
    edge = 1e3 / 0.32**2
    stiffness = edge * np.array([3.0, 30.0, 300.0, 1e4])
    curvature = dual @ np.diag(stiffness) @ dual.T
    ridge = _ridge(metric, InformedEvaluation(0.0, np.zeros(4), curvature, curvature))
    apart = axes @ np.full(4, 1e-3)
    there = InformedEvaluation(0.0, curvature @ apart, curvature, curvature)
    for turn, left in enumerate([0, 1, 2, 3, 3, 3, 3]):
        back = ridge.correction(apart, there, 1.0, 0.5 * 1e3, turn)
        # Couplings of up to 1e-4 of the least stiff curvature count as none.
        expected = 1e-3 * (np.arange(4) < left)
        np.testing.assert_allclose(dual.T @ (apart + back.step), expected, atol=1e-7)


def test_corrections_trust_the_smaller_noise():
    """Where the Hessian has come nearer to the information than it was, it is the better one."""
    rng = np.random.default_rng(7)
    metric, axes, dual = _axes(rng)
    information = dual @ np.diag([1e6, 1e5, 1e4, 1e3]) @ dual.T
    noise = dual @ np.diag([900.0, -700.0, 500.0, 300.0]) @ dual.T
    ridge = _ridge(metric, InformedEvaluation(0.0, np.zeros(4), information + noise, information))
    apart = axes @ np.array([1e-3, -2e-3, 3e-3, 1e-3])
    for part in (0.5, -0.5, 2.0, -2.0):
        hessian = information + part * noise
        trusted = hessian if abs(part) < 1.0 else information + noise
        there = InformedEvaluation(0.0, trusted @ apart, hessian, information)
        back = ridge.correction(apart, there, 1.0, 0.0)
        np.testing.assert_allclose(back.step, -apart, atol=1e-9)
        np.testing.assert_allclose(back.gradient, 0.0, atol=1e-6)


def test_corrections_leave_more_to_the_step_where_the_noise_is():
    rng = np.random.default_rng(8)
    metric, axes, dual = _axes(rng)
    apart, predicted_reduction = axes @ np.array([1e-2, 0.0, 0.0, 1e-2]), 0.5 * 1e3
    # Along the last axis 20% of the step's length costs its predicted reduction.
    information = dual @ np.diag([1e9, 1e8, 1e7, 1e3 / 0.2**2]) @ dual.T
    moved = []
    for size in (1e3, 1e7):
        hessian = information + size * dual @ np.diag([1.0, 1.0, 1.0, 0.0]) @ dual.T
        here = InformedEvaluation(0.0, hessian @ apart, hessian, information)
        back = _ridge(metric, here).correction(apart, here, 1.0, predicted_reduction)
        moved.append(dual.T @ (apart + back.step))
    np.testing.assert_allclose(moved, [[0, 0, 0, 0], [0, 0, 0, 1e-2]], atol=1e-9)


def test_corrections_go_by_the_hessian_where_the_information_is_dear():
    few, many = (Rows(np.zeros((1, n)), np.zeros(n), np.ones(n)) for n in (1000, 1001))
    assert (_objective(few), _objective(many)) == (Objective.INFORMED, Objective.OBSERVED)
    rng = np.random.default_rng(9)
    metric, axes, dual = _axes(rng)
    before = dual @ np.diag([1e6, 1e5, 1e4, 1e3]) @ dual.T
    hessian = dual @ np.diag([2e6, 5e4, 3e4, 4e3]) @ dual.T
    apart = axes @ np.array([1e-3, -2e-3, 3e-3, 1e-3])
    back = _ridge(metric, Evaluation(0.0, np.zeros(4), before)).correction(
        apart, Evaluation(0.0, hessian @ apart, hessian), 1.0, 0.5 * 1e4 * 0.32**2
    )
    np.testing.assert_allclose(dual.T @ (apart + back.step), [0, 0, 0, 1e-3], atol=1e-9)


def test_corrections_stay_in_the_box():
    theta, slope = np.zeros(2), np.array([-1.0, 0.0])
    lower, upper = np.full(2, -1.0), np.array([0.0, 1.0])
    hessian = np.array([[2e4, 9e3], [9e3, 1e4]])
    here = InformedEvaluation(0.0, slope, hessian, hessian)
    ridge = Ridge(Region(theta, slope, hessian, np.eye(2), lower, upper), here)
    there = InformedEvaluation(0.0, np.array([-1.0, -1.0]), hessian, hessian)
    # The first coordinate is held by its bound, and the second moves as if it were alone.
    np.testing.assert_allclose(ridge.correction(theta, there, 1.0, 0.0).step, [0.0, 1e-4])


@pytest.mark.parametrize(
    ("slope", "square", "cube", "part"),
    [
        (-1.5, 1.0, 2.5, 1.0 / 3.0),
        (-2.0, 0.5, 30.0, 0.143),
        (-1.0, 40.0, 1.0, 0.1),  # shorter steps would be too timid
        (-1.0, 0.7, 0.0, 0.6),
        (-1.0, -5.0, -3.0, 0.5),  # falls for ever
    ],
)
def test_a_failed_step_is_cut_to_where_a_cubic_is_lowest(slope, square, cube, part):
    predicted_reduction, at = 7.0, np.array([2.0])
    here = SimpleNamespace(gradient=np.array([predicted_reduction * slope]))
    proposal = _Proposal(
        SimpleNamespace(current=here),
        BoxStep(np.ones(1), predicted_reduction, 1.0),
        Path(at, np.ones(1)),
    )
    end = np.array([predicted_reduction * (slope + 2.0 * square + 3.0 * cube)])
    ratio = -(slope + square + cube)
    assert proposal.shortened(at, end, ratio) == pytest.approx(part, abs=1e-3)
    assert proposal.shortened(at, end, -np.inf) == 0.5


def test_corrections_converge_at_once_where_the_model_nearly_fits(truth):
    """From a billion units of log-likelihood off the ridge, with the ridge where it came from."""
    family, theta = truth("softmax")
    X, y, weight = moestat.sample_weighted(family, theta, 1e14, rng=0, design=WIDE)
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y - 1, weight))
    metric, box = problem.metric(theta), _box(family)
    (theta, status, *_), here = drive(
        [moment_steps(problem, theta, metric, *box, 1e-9, 100)], [problem]
    )[0]
    assert status == "converged"
    model = _Model(Moments(family, metric), theta, here, metric, *box)
    point = theta + 0.05 * np.random.default_rng(1).normal(size=theta.size) * (box[0] < box[1])
    predicted = []
    for _ in range(5):
        there = problem.evaluate(Request(Objective.INFORMED, point))
        back = model.ridge.correction(point, there, 1.0, 1e-9)
        predicted.append(back.decrease)
        point = point + back.step
    assert predicted[0] > 1e8
    assert np.all(np.diff(predicted) < 0.0)
    # What is left of n units is squared by the last of them, and a constant.
    assert predicted[-1] / 1e14 < 1e4 * (predicted[-2] / 1e14) ** 2
    assert predicted[-1] < 1e-6


def test_likelihoods_with_jumps_are_climbed_as_newton_does(gaussian_truth):
    family, theta = gaussian_truth("softmax-top")
    X, y = moestat.sample(family, theta, 500, rng=0, design=moestat.Uniform(-2, 2))
    options = {"starts": [TruthStarts(family, theta, 2, 0.1)], "rng": 0}
    results = [moestat.fit(family, X, y, solver=s(), **options) for s in (Newton, MomentNewton)]
    np.testing.assert_array_equal(results[0].params, results[1].params)
    assert results[0].certificate.inertia == results[1].certificate.inertia


def test_atoms_merge_between_kinks(truth):
    """Both locations of the merging atoms lie in one cell of the lattice, or in two."""
    family, theta = truth("sigmoid-euclidean")
    certified, heights = {}, {}
    for solver in (Newton(max_iterations=600), MomentNewton(max_iterations=600)):
        results = []
        for seed in range(3):
            X, y, weight = moestat.sample_weighted(family, theta, 1e13, rng=seed, design=WIDE)
            starts = [TruthStarts(family, theta, 2, 0.1)]
            options = {"sample_weight": weight, "starts": starts, "rng": 0, "solver": solver}
            results.append(compact_fit(family.with_experts(4), X, y, **options))
        certified[solver.name] = sum(result.certificate.certified for result in results)
        heights[solver.name] = np.array([result.log_likelihood for result in results])
    assert certified == {"newton": 0, "moment-newton": 3}
    assert (heights["moment-newton"] > heights["newton"] - 0.01).all()


@pytest.mark.parametrize("seed", [24])
def test_promises_across_kinks_are_tried(truth, seed):
    """The model in the moments predicts hundreds of units here, by a step across kinks."""
    family, theta = truth("sigmoid-euclidean")
    X, y, weight = moestat.sample_weighted(family, theta, 1e13, rng=seed, design=WIDE)
    starts = [TruthStarts(family, theta, 2, 0.1)]
    options = {"sample_weight": weight, "starts": starts, "rng": 0, "solver": MomentNewton()}
    certificate = compact_fit(family.with_experts(4), X, y, **options).certificate
    assert certificate.certified
    assert certificate.reach < 1.0


def test_maxima_on_a_kink_are_found_from_beside_it(truth):
    """With a location a hair's breadth off the kink that holds it, curvatures are negative."""
    family, theta = truth("sigmoid-euclidean")
    kinks = 0
    for seed in range(4):
        X, y, weight = moestat.sample_weighted(family, theta, 1e7, rng=seed, design=WIDE)
        starts = [TruthStarts(family, theta, 2, 0.1)]
        options = {"sample_weight": weight, "starts": starts, "rng": 0, "solver": MomentNewton()}
        certificate = compact_fit(family.with_experts(4), X, y, **options).certificate
        assert certificate.certified
        kinks += certificate.kinks
    assert kinks > 0


def test_cells_between_kinks_are_open(truth):
    family, theta = truth("sigmoid-euclidean")
    X, y = moestat.sample(family, theta, 300, rng=1, design=moestat.Uniform(-4, 4))
    problem = Problem(family, Rows(np.ascontiguousarray(X.T), y - 1, np.ones(300)))
    samples = np.sort(X[:, 0])
    for at in kink_locations(family):
        before, after = samples[samples < theta[at]].max(), samples[samples > theta[at]].min()
        here = problem.evaluate(Request(Objective.OBSERVED, theta))
        cell = one_sided(problem, -1, theta, here, problem.metric(theta), 1.0)
        lower, upper = _open_box(problem, cell)
        assert before < lower[at] < before + 1e-8 * (after - before)
        assert after > upper[at] > after - 1e-8 * (after - before)
        rest = np.delete(np.arange(theta.size), kink_locations(family))
        np.testing.assert_array_equal(lower[rest], family.lower[rest])
        np.testing.assert_array_equal(upper[rest], family.upper[rest])
