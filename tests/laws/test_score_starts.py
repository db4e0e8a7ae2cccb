"""The score process in the direction of a further atom, against differences, and its starts."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.estimation.data.data import Data
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.run import RunningFit
from moestat.estimation.search.runs import run_each
from moestat.estimation.starts import ScoreStarts
from moestat.estimation.starts.score import ScoreProcess, choose
from moestat.solvers.driver import Cores
from tests.kinds import KINDS, REGRESSION, each_run, kind_id, make, random_response, random_theta

CASES = each_run(KINDS, KINDS, kind_id, [kind_id(kind) for kind in KINDS[::12]])
MASS = 1e-5


def problem_of(family, X, y):
    job = FitJob(family, Data.of(family, X, y), rng=0)
    return RunningFit.in_own_box(job, Cores(1)).original


@pytest.mark.parametrize("kind", CASES)
def test_the_derivative_in_the_mass_is_that_of_differences(kind):
    family = make(kind, 3, 2, 3)
    if not ScoreProcess.supports(family):
        pytest.skip("atoms of this family have no mass of their own")
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 2)), random_response(family, rng, 60)
    data = problem_of(family, X, y).data
    theta = random_theta(family, rng)
    atoms, shared = family.split(theta)
    smaller = family.with_experts(2)
    process = ScoreProcess(smaller, smaller.join(atoms[:2], shared), data)
    light = atoms.copy()
    light[2, family.mass_column] += np.log(MASS)
    with_atom = family.rowwise(family.join(light, shared), data.X, data.y)[2]
    without = smaller.rowwise(process.theta, data.X, data.y)[2]
    (rates,) = process.directions(atoms[2:])
    difference = (with_atom - without) / MASS
    # In other rows the atom counts for more than the rest even with this mass.
    near = np.abs(difference) < 1e-2 / MASS
    assert near.mean() > 0.5
    size = np.maximum(1.0, np.abs(rates[near]))
    assert np.allclose(difference[near] / size, rates[near] / size, atol=1e-2)


def gaussian(n_experts):
    box = {"nu": (0.01, 10.0)}
    return moestat.family("gaussian", gate="softmax", n_experts=n_experts, bounds=box)


THREE = gaussian(3)
TRUTH = THREE.pack(
    {
        "beta0": [0.3, -1.0, 0],
        "beta1": [1, 0, 0],
        "a": [2, 0.5, -1.5],
        "b": [1, 4, -1],
        "nu": [0.25, 0.04, 0.16],
    }
)


@pytest.fixture(scope="module")
def problem():
    X, y = moestat.sample(THREE, TRUTH, 600, rng=0, design=moestat.Uniform(-2, 2))
    return problem_of(THREE, X, y)


@pytest.fixture(scope="module")
def two(problem):
    """The best fit with two experts, and its height."""
    start = THREE.split(TRUTH)
    pairs = [np.delete(start[0], i, axis=0) for i in range(3)]
    smaller = gaussian(2)
    points = np.array([smaller.join(pair, start[1]) for pair in pairs])
    of_two = type(problem)(smaller, problem.data)
    return max(run_each(of_two, points, 200), key=lambda run: run.height)


def test_gains_rise_from_the_fit_and_copies_of_its_atoms_have_none(problem, two):
    process = ScoreProcess(gaussian(2), two.theta, problem.data)
    missing = THREE.split(TRUTH)[0][1:2]
    copies = gaussian(2).split(two.theta)[0]
    gains = process.gains(np.vstack([missing, copies]))
    assert gains[0] > 5.0
    assert np.all(gains[1:] < 0.1)
    # Of one atom, whatever its mass, and however the atoms are divided into batches.
    heavy = missing.copy()
    heavy[:, THREE.mass_column] += 3.0
    assert process.gains(heavy)[0] == pytest.approx(gains[0], rel=1e-6)


def test_starts_reach_the_expert_that_a_smaller_fit_leaves_out(problem, two):
    rule = ScoreStarts(gaussian(2), two.theta, 4)
    starts = rule.draw(problem, np.random.default_rng(0))
    ends = run_each(problem, starts, 200)
    (true,) = run_each(problem, TRUTH[None], 200)
    assert true.height > two.height + 20.0
    assert max(end.height for end in ends) >= true.height - 0.01


def test_the_mass_of_a_start_is_one_step_of_newtons_method(problem, two):
    process = ScoreProcess(gaussian(2), two.theta, problem.data)
    missing = THREE.split(TRUTH)[0][1:2]
    (d,), weight = process.directions(missing), problem.data.weight
    (chosen,) = choose(process, missing, 1)
    step = np.exp(chosen - missing[0])[THREE.mass_column]
    assert step == pytest.approx((weight @ d) / (weight @ d**2))
    assert np.array_equal(np.delete(chosen, 0), np.delete(missing[0], 0))


def test_chosen_atoms_do_not_rise_in_one_direction(problem, two):
    process = ScoreProcess(gaussian(2), two.theta, problem.data)
    missing = THREE.split(TRUTH)[0][1]
    other = missing + np.array([0, 0, -2.0, 0, 1.0])
    atoms = np.array([missing, missing + 1e-3, other])
    chosen = choose(process, atoms, 2)
    assert np.allclose(chosen[:, 1:], atoms[[int(np.argmax(process.gains(atoms[:2]))), 2], 1:])


def test_more_missing_experts_are_added_together(problem, two):
    larger = gaussian(4)
    starts = ScoreStarts(gaussian(2), two.theta, 3).draw(
        type(problem)(larger, problem.data), np.random.default_rng(0)
    )
    assert starts.shape == (3, larger.n_params)
    assert np.all((starts >= larger.lower) & (starts <= larger.upper))


def test_families_whose_atoms_have_no_mass_are_not_supported():
    families = [
        moestat.family("gaussian", gate={"name": "softmax-top", "active": 1}, n_experts=3),
        moestat.family("gaussian", gate="competition", n_experts=3),
        make(REGRESSION[0], 3, 1, 1),
    ]
    assert not any(map(ScoreProcess.supports, families))
