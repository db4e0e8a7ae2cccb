"""The search for starts where samples and parameters are many: what it costs, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.estimation.starts import GivenStarts
from moestat.solvers.problem import Objective, Problem

SLACK = 0.1


@pytest.fixture
def rows(monkeypatch):
    """Passes, by number of rows: with the Hessian, and with the gradient alone."""
    seen: dict[int, list[int]] = {}
    evaluate = Problem.evaluate_part

    def counted(self, request, rows):
        own = seen.setdefault(self.data.size, [0, 0])
        answer = evaluate(self, request, rows)
        own[request.objective is Objective.SCORE] += getattr(answer, "passes", 1)
        return answer

    monkeypatch.setattr(Problem, "evaluate_part", counted)
    return seen


@pytest.mark.parametrize(
    ("k", "d", "seed", "passes"),
    [
        (2, 12, 10, {1000: [173, 0]}),
        (3, 20, 1, {1290: [126, 943]}),
        (5, 8, 2, {1000: [178, 1457], 4000: [235, 3279]}),
    ],
    ids=["two experts", "twenty inputs", "first runs disagree"],
)
def test_large_search_ends_early_at_the_maximum(rows, k, d, seed, passes):
    """Passes over parts of the rows, and the maximum that a start at the truth reaches."""
    family = moestat.family("gaussian", gate="softmax", n_experts=k, n_features=d)
    theta = np.random.default_rng(seed).normal(scale=1.5, size=family.n_params)
    blocks = family.unpack(theta)
    theta = family.pack(blocks | {"nu": np.abs(blocks["nu"]) + 0.2})
    X, y = moestat.sample(family, theta, 6000, rng=seed, design=moestat.Uniform(-2, 2))
    found = moestat.fit(family, X, y, rng=0, threads=1)
    for n, counts in passes.items():
        assert rows[n] == pytest.approx(counts, rel=SLACK), n
    best = moestat.fit(family, X, y, starts=[GivenStarts([theta])])
    assert found.log_likelihood >= best.log_likelihood - 1e-6


def test_runs_to_classes_of_one_input_look_at_nodes_of_all_rows(rows):
    """On 12,000 of these rows the highest maximum is one that is 32 lower on all of them."""
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_classes=3)
    theta = 1.5 * np.random.default_rng(3).standard_normal(family.n_params)
    X, y = moestat.sample(family, theta, 300_000, rng=3, design=moestat.Uniform(-2, 2))
    found = moestat.fit(family, X, y, rng=0, threads=1)
    assert max(set(rows) - {300_000}) <= 3 * 4 * 2048
    assert found.certificate.passes < 2.0
    assert found.certificate.n_starts == 3
    best = moestat.fit(family, X, y, starts=[GivenStarts([theta])])
    assert found.log_likelihood >= best.log_likelihood - 1e-6


def test_optima_are_ranked_on_more_rows_than_the_search_looks_at():
    """Of 4000 of these rows another maximum is the highest, with three of ten seeds."""
    family = moestat.family("gaussian", gate="softmax", n_experts=3)
    blocks = family.unpack(np.random.default_rng(5).standard_normal(family.n_params))
    blocks = {name: 1.5 * block for name, block in blocks.items()}
    theta = family.pack(blocks | {"nu": np.abs(blocks["nu"]) + 0.2})
    X, y = moestat.sample(family, theta, 100_000, rng=6, design=moestat.Uniform(-2, 2))
    heights = [moestat.fit(family, X, y, rng=seed).log_likelihood for seed in (0, 3, 7)]
    assert heights == pytest.approx(3 * [-224984.276], abs=1e-2)
