"""What a part of the rows may and may not do: show where to look, but never lead below a start."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.estimation.search.agreement import search_of
from moestat.estimation.starts import GivenStarts, RandomStarts
from moestat.solvers import MomentSquares, Newton
from moestat.solvers.problem import Problem
from tests.estimation.test_large_searches import random_lines

N = 9000


def regression(seed, n=N, activation="tanh"):
    """Two experts with a quadratic gate, and a family of three: (family, X, y)."""
    expert = {"name": "activation", "activation": activation, "weighted": False}
    options = {"gate": "softmax-quadratic", "expert": expert, "n_features": 1}
    family = moestat.family("least-squares", n_experts=3, **options)
    truth = family.with_experts(2)
    theta = truth.pin(1.5 * np.random.default_rng(seed).normal(size=truth.n_params))
    X, y = moestat.sample(truth, theta, n, rng=seed, noise=0.1, design=moestat.Uniform(-1, 1))
    return family, X, y


def lines(seed, k, n=N, d=1):
    """As many Gaussian experts as the truth has: (family, X, y)."""
    rng = np.random.default_rng(seed)
    family = moestat.family("gaussian", gate="softmax", n_experts=k, n_features=d)
    blocks = family.unpack(1.5 * rng.standard_normal(family.n_params))
    theta = family.pack(blocks | {"nu": np.abs(blocks["nu"]) + 0.2})
    X, y = moestat.sample(family, theta, n, rng=seed + 1, design=moestat.Uniform(-2, 2))
    return family, X, y


@pytest.mark.parametrize(
    ("make", "seed", "solver"),
    [
        (lambda: regression(1), 1, MomentSquares()),
        (lambda: regression(2), 0, MomentSquares()),
        (lambda: random_lines(5, 402, 1.0, N)[:3], 1, Newton()),
    ],
    ids=["curves", "other curves", "lines"],
)
def test_a_fit_ends_no_lower_than_it_begins(make, seed, solver, monkeypatch):
    """The maximum of every fourth row led away from that of all: 1.5 to 4.6 units lower."""
    family, X, y = make()
    first = moestat.fit(family, X, y, starts=[RandomStarts(1)], rng=seed, solver=solver)
    again = [GivenStarts([first.params])]
    end = moestat.fit(family, X, y, starts=again, solver=solver)
    assert end.log_likelihood >= first.log_likelihood - 1e-5
    if isinstance(solver, Newton):  # moments of close atoms no longer need it
        monkeypatch.setattr(Problem, "has_doubtful_previews", lambda self: False)
        without = moestat.fit(family, X, y, starts=again, solver=solver)
        assert without.log_likelihood < first.log_likelihood - 1.0


@pytest.mark.parametrize("seed", range(3))
def test_default_fits_do_not_depend_on_threads(seed):
    """Neither their starts nor their ends, to the last bit."""
    family, X, y = lines(seed, 3)
    one, two = (moestat.fit(family, X, y, rng=seed, threads=t) for t in (1, 2))
    assert np.array_equal(one.params, two.params)
    assert one.certificate.n_starts == two.certificate.n_starts


def test_fits_skip_previews_that_the_search_has_seen(monkeypatch):
    """The search looks at all of 9000 rows; a preview of 2250 would only lead back."""
    seen = set()
    evaluate = Problem.evaluate_part

    def counted(self, request, rows):
        if self.data.size == N:
            seen.add(self.data.levels[request.level].size)
        return evaluate(self, request, rows)

    monkeypatch.setattr(Problem, "evaluate_part", counted)
    # The comparison with one expert fewer is a fit of its own.
    monkeypatch.setattr("moestat.estimation.fitting.fit.with_order", lambda result: result)
    family, X, y = lines(0, 3)
    moestat.fit(family, X, y, starts=[search_of(searches=1)], rng=0)
    assert seen == {N}
    moestat.fit(family, X, y, starts=[RandomStarts(1)], rng=0)
    assert seen == {N // 4, N}
