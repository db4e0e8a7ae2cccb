"""The search for the maximum: starts, evidence, and what it finds beside the old default."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.estimation.data.data import Data
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.run import RunningFit
from moestat.estimation.search.maximum import MaximumStarts
from moestat.estimation.search.runs import run_each
from moestat.estimation.starts import CopyStarts, GivenStarts, TruthStarts
from moestat.solvers.driver import Cores
from tests.kinds import GAUSSIAN, MULTINOMIAL, OTHERS

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
def problem():
    family = TRUTH.with_experts(4)
    return RunningFit.in_own_box(job(family, *data(400, 0), None), Cores(1)).original


def test_copies_share_the_masses_and_leave_the_density_as_it_is(problem):
    X, y = data(50, 1)
    copies = CopyStarts(TRUTH, THETA, 4).copies(problem.family)
    for copied in copies:
        density = problem.family.log_density(copied, X, y)
        assert np.allclose(density, TRUTH.log_density(THETA, X, y), atol=1e-10)
    atoms = [problem.family.split(copied)[0][:, 2:] for copied in copies]
    at_first = [int(np.sum(np.all(each == each[0], axis=1))) for each in atoms]
    assert at_first == [3, 2, 1, 3]


def test_runs_end_in_the_order_of_their_starts_as_each_does_alone(problem):
    starts = CopyStarts(TRUTH, THETA, 5).draw(problem, np.random.default_rng(0))
    together = run_each(problem, starts, 50)
    alone = [run_each(problem, start[None], 50)[0] for start in starts]
    assert [run.height for run in together] == [run.height for run in alone]
    assert all(np.array_equal(a.theta, b.theta) for a, b in zip(together, alone, strict=True))
    assert len({run.height for run in together}) > 1


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


@pytest.mark.parametrize("kind", [*GAUSSIAN, *MULTINOMIAL, *OTHERS], ids=str)
def test_no_search_ends_below_the_truth(kind):
    likelihood, gate, expert = kind
    sizes = {"n_classes": 3} if likelihood == "multinomial" else {}
    truth = moestat.family(likelihood, gate=gate, expert=expert, n_experts=2, **sizes)
    told = 0
    for seed in range(20):
        theta = truth.typical(np.random.default_rng(seed))
        X, y = data(300, seed, truth, theta)
        if truth.rowwise(theta, np.ascontiguousarray(X.T), y)[0].mean(axis=1).min() < 0.2:
            continue  # an expert on a few rows collapses
        # As two pairs the truth has a place in the models without free masses, too.
        family = truth.with_experts(4)
        far = MaximumStarts(truth, theta, count=1, near=1, noise=30.0)
        found = fitted(family, X, y, [far])
        gain = family.log_density(found.theta, X, y) - truth.log_density(theta, X, y)
        assert gain.sum() > -1e-6
        told += 1
        if told == 3:
            break
    assert told == 3
