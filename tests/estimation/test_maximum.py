"""The search for the maximum: starts, evidence, and what it finds beside the old default."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import moestat
from moestat.estimation.data.data import Data
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.run import RunningFit
from moestat.estimation.search.maximum import MaximumStarts, _coarsest, _log_odds_to, _Smaller
from moestat.estimation.search.runs import run_each
from moestat.estimation.starts import GivenStarts, TruthStarts
from moestat.solvers.driver import Cores
from moestat.solvers.problem import Objective, Request

TRUTH = moestat.family("gaussian", gate="softmax", n_experts=2)
THETA = TRUTH.pack(
    {"beta0": [0.3, 0], "beta1": [1, 0], "a": [2, -1.5], "b": [1, -1], "nu": [0.25, 0.16]}
)


def data(n, seed, family=TRUTH, theta=THETA):
    return moestat.sample(family, theta, n, rng=seed, design=moestat.Uniform(-2, 2))


def job(family, X, y, rules, seed=0):
    return FitJob(family, Data.of(family, X, y), starts=rules, rng=seed)


def fitted(*args, **options):
    (result,) = fit_jobs([job(*args, **options)], Cores(1))
    assert not isinstance(result, Exception)
    return result


@pytest.fixture
def smaller():
    family = TRUTH.with_experts(4)
    problem = RunningFit.in_own_box(job(family, *data(400, 0), None), Cores(1)).original
    return _Smaller(problem, THETA, 2)


def test_every_allocation_of_the_further_atoms_comes_in_turn(smaller):
    assert list(islice(smaller._allocations, 4)) == [(0, 0), (0, 1), (1, 1), (0, 0)]


def test_copies_share_the_masses_and_leave_the_density_as_it_is(smaller):
    X, y = data(50, 1)
    family = smaller.family
    for extra in ((0, 0), (0, 1), (1, 1)):
        copied = family.log_density(smaller._copy(extra), X, y)
        assert np.allclose(copied, TRUTH.log_density(THETA, X, y), atol=1e-10)


def test_added_experts_have_small_mean_weights(smaller):
    rng = np.random.default_rng(0)
    X = smaller.problem.data.X.T
    shares = [
        smaller.family.gate_probabilities(smaller.add_small(rng), X)[:, 2:].sum(axis=1).mean()
        for _ in range(20)
    ]
    assert 0.003 < min(shares) < max(shares) < 0.3
    assert _log_odds_to(0.5, np.full(3, 0.25)) == pytest.approx(np.log(3), abs=0.01)


@pytest.mark.parametrize(("n", "rows"), [(80, 80), (4000, 80), (60_000, None)])
def test_nodes_stand_for_the_rows_of_classes(n, rows):
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    theta = np.array([1.0, 3.0, 0.0, 2.0, 0.0, 0.0, 1.0, -1.0])
    X, y = data(n, 2, family, theta)
    problem = RunningFit.in_own_box(job(family, X, y, None), Cores(1)).original
    coarse = _coarsest(problem)
    assert coarse.data.weight.sum() == pytest.approx(n)
    assert coarse.data.size <= (rows or problem.data.levels[0].size)
    heights = [
        -each.restart().evaluate(Request(Objective.VALUE, theta)).value
        for each in (coarse, problem)
    ]
    assert heights[0] == pytest.approx(heights[1], abs=0.01)


def test_runs_end_in_the_order_of_their_starts_as_each_does_alone(smaller):
    rng = np.random.default_rng(0)
    starts = np.array([smaller.split(rng) for _ in range(5)])
    together = run_each(smaller.problem, starts, 50)
    alone = [run_each(smaller.problem, start[None], 50)[0] for start in starts]
    assert [run.height for run in together] == [run.height for run in alone]
    assert all(np.array_equal(a.theta, b.theta) for a, b in zip(together, alone, strict=True))
    assert len({run.height for run in together}) > 1


def test_flat_directions_have_the_least_curvature(smaller):
    rng = np.random.default_rng(0)
    start = smaller._copy((0, 1))
    family, data_ = smaller.family, smaller.problem.data

    def height(theta):
        return float(family.rowwise(theta, data_.X, data_.y)[2].sum())

    def curvature(direction):
        step = 1e-3 * direction
        return height(start) - 0.5 * (height(start + step) + height(start - step))

    unit, free = smaller._unit, family.lower < family.upper
    others = [np.where(free, unit * rng.standard_normal(unit.size), 0.0) for _ in range(10)]
    others = [other / np.linalg.norm(other[free] / unit[free]) for other in others]
    flattest = max(curvature(direction) for direction in smaller._flattest(start))
    assert flattest < min(curvature(other) for other in others)


def test_the_certificate_counts_runs_and_has_the_height_near_the_truth():
    family = TRUTH.with_experts(3)
    X, y = data(400, 3)
    found = fitted(family, X, y, [MaximumStarts(TRUTH, THETA)])
    certificate = found.certificate
    assert certificate.n_starts == 17
    assert 1 <= round(certificate.n_starts * certificate.agreement) <= 17
    assert certificate.above_near_truth is not None
    assert certificate.above_near_truth >= -1e-6
    assert certificate.p_higher is not None
    assert 0.0 < certificate.p_higher < 1.0
    assert certificate.as_dict()["above_near_truth"] == certificate.above_near_truth
    near = fitted(family, X, y, [TruthStarts(TRUTH, THETA, 3)])
    assert near.certificate.above_near_truth is None
    assert "above_near_truth" not in near.certificate.as_dict()


def test_the_search_finds_higher_maxima_than_starts_near_the_truth():
    family, gains = TRUTH.with_experts(3), []
    for seed in range(8):
        X, y = data(500, seed)
        near, best = (
            fitted(family, X, y, [rule], seed=seed)
            for rule in (TruthStarts(TRUTH, THETA, 3), MaximumStarts(TRUTH, THETA))
        )
        gains.append(best.llf - near.llf)
    assert sum(gain > 0.01 for gain in gains) >= 2
    assert np.mean(gains) > 0.0


def test_with_as_many_experts_as_the_truth_there_is_nothing_to_allocate():
    X, y = data(400, 0)
    found = fitted(TRUTH, X, y, [MaximumStarts(TRUTH, THETA, 4)])
    again = fitted(TRUTH, X, y, [GivenStarts(THETA[None])])
    assert found.llf >= again.llf - 1e-6
    assert found.certificate.n_starts == 7
