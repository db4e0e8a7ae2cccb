"""Passes over the data that fits take: what tuning constants are there for.

The path of one fit hangs on rounding, which differs between processors.  Each case has twelve data
sets, and the median of their passes is compared with the one recorded here, which is the same to
within a few percent for code compiled for processors without FMA, with AVX2 and with AVX-512, each
with OpenBLAS's kernels for it (`python -m tests.processors --costs`).  A change that costs more
than a quarter has to say why; one that saves passes lowers the number here.
"""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat import Lattice
from moestat.estimation.starts import MeasureStarts, TruthStarts
from moestat.solvers import (
    EM,
    SQUAREM,
    GaussNewtonBFGS,
    LevenbergMarquardt,
    MomentNewton,
    MomentSquares,
    Newton,
    PieceSearch,
)
from tests.kinds import each_run

SETS = 12
"""Data sets of a case."""

DEARER = 1.25
"""Largest median of passes, in units of the recorded one."""

ACROSS_KINKS = 1.6
"""The same where fits go across kinks: medians on three processors differ by a third there."""

MOST = 0.9
"""Share of the fits that have a certificate, at least."""

WIDE = Lattice(-4, 4, nodes=32)
GRID = Lattice(-1, 1, nodes=8)


def classes(gate, n, extra, solver, noise, experts=2):
    """Fits of `extra` more experts to counts of classes on a lattice."""
    rng = np.random.default_rng(11)
    family = moestat.family("multinomial", gate=gate, n_experts=experts, n_classes=3)
    theta = family.pin(rng.normal(size=family.n_params))
    for seed in range(SETS):
        X, y, weight = moestat.sample_weighted(family, theta, n, rng=seed, design=WIDE)
        start = [MeasureStarts(family, theta, 1, noise)]
        options = {"sample_weight": weight, "starts": start, "rng": seed, "solver": solver}
        yield moestat.fit(family.with_experts(experts + extra), X, y, **options)


def responses(gate, n, extra, solver, noise):
    """Fits to rows with Gaussian responses."""
    family = moestat.family("gaussian", gate=gate, n_experts=2)
    theta = family.pin(np.random.default_rng(4).normal(size=family.n_params))
    for seed in range(SETS):
        X, y = moestat.sample(family, theta, n, rng=seed, design=moestat.Uniform(-2, 2))
        starts = [MeasureStarts(family, theta, 2, noise)]
        options = {"starts": starts, "rng": seed, "solver": solver}
        yield moestat.fit(family.with_experts(2 + extra), X, y, **options)


def many_parameters(n, solver, noise):
    """Fits of 168 parameters."""
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_features=6, n_classes=12)
    theta = family.pin(np.random.default_rng(5).normal(size=family.n_params))
    for seed in range(SETS):
        X, y = moestat.sample(family, theta, n, rng=seed, design=moestat.Uniform(-2, 2))
        starts = [MeasureStarts(family, theta, 2, noise)]
        yield moestat.fit(family, X, y, starts=starts, rng=seed, solver=solver)


def functions(activation, n, extra, solver, noise):
    """Least-squares fits to node means, or to rows where experts have kinks."""
    expert = {"name": "activation", "activation": activation, "weighted": False}
    options = {"gate": "softmax-quadratic", "expert": expert, "n_features": 2}
    family = moestat.family("least-squares", n_experts=2, **options)
    theta = family.pin(np.random.default_rng(1).normal(size=family.n_params))
    for seed in range(SETS):
        if activation == "relu":
            X, y = moestat.sample(
                family, theta, n, rng=seed, design=moestat.Uniform(-1, 1), noise=0.1
            )
            weight = None
        else:
            X, y, weight = moestat.sample_weighted(
                family, theta, n, rng=seed, design=GRID, noise=0.01
            )
        options = {"sample_weight": weight, "rng": 0, "solver": solver}
        starts = [MeasureStarts(family, theta, 2, noise)]
        yield moestat.fit(family.with_experts(2 + extra), X, y, starts=starts, **options)


def kinked(n, solver):
    family = moestat.family("multinomial", gate="sigmoid-euclidean", n_experts=2, n_classes=2)
    theta = family.pin(np.random.default_rng(3).normal(size=family.n_params))
    for seed in range(SETS):
        X, y = moestat.sample(family, theta, n, rng=seed, design=moestat.Uniform(-2, 2))
        starts = [TruthStarts(family, theta, 1, 0.1)]
        yield moestat.fit(family, X, y, starts=starts, rng=seed, solver=solver)


def jumps(n, solver):
    family = moestat.family("gaussian", gate="competition-top", n_experts=2)
    theta = family.pack({"a": [2.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.16]})
    for seed in range(SETS):
        X, y = moestat.sample(family, theta, n, rng=seed, design=moestat.Uniform(-2, 2))
        starts = [TruthStarts(family, theta, 1, 0.05)]
        yield moestat.fit(family, X, y, starts=starts, rng=seed, solver=solver)


CASES = {
    "newton": (lambda: classes("softmax", 1e6, 1, Newton(), 0.1), 158.0),
    "newton, rows": (lambda: responses("softmax", 40_000, 1, Newton(), 0.1), 21.6),
    "newton, many parameters": (lambda: many_parameters(1500, Newton(), 0.6), 54.0),
    "em": (lambda: classes("softmax", 1e4, 0, EM(), 0.5), 328.0),
    "em, rows": (lambda: responses("softmax", 2000, 0, EM(), 0.2), 48.5),
    "squarem": (lambda: classes("softmax", 1e4, 0, SQUAREM(), 0.5), 914.0),
    "moments, 1e8": (lambda: classes("softmax", 1e8, 1, MomentNewton(), 0.1), 74.0),
    "moments, 1e12": (lambda: classes("softmax", 1e12, 1, MomentNewton(), 0.1), 99.5),
    "moments, 1e14": (lambda: classes("sigmoid", 1e14, 1, MomentNewton(), 0.1), 115.0),
    "moments of three": (lambda: classes("softmax", 1e12, 2, MomentNewton(), 0.1), 129.0),
    "moments, rows": (lambda: responses("competition-free", 4000, 1, MomentNewton(), 0.1), 25.0),
    "levenberg-marquardt": (lambda: functions("gelu", 1e10, 0, LevenbergMarquardt(), 1.0), 25.0),
    "gauss-newton-bfgs": (lambda: functions("gelu", 1e6, 0, GaussNewtonBFGS(), 1.0), 111.0),
    "gauss-newton-bfgs, kinks": (lambda: functions("relu", 3000, 0, GaussNewtonBFGS(), 0.1), 104.0),
    "moment-squares": (lambda: functions("gelu", 1e12, 1, MomentSquares(), 0.1), 91.0),
    "kinks": (lambda: kinked(3000, Newton()), 30.0),
    "kinks in moments": (lambda: kinked(5000, MomentNewton()), 27.0),
    "search": (lambda: jumps(400, PieceSearch()), 1985.0),
}

# EM stops at a relative change, short of the maximum.
UNCERTIFIED = ("em", "em, rows", "squarem")


EACH_RUN = (
    *("newton, rows", "em, rows", "squarem", "moments, 1e12", "gauss-newton-bfgs", "kinks"),
    *("levenberg-marquardt", "moment-squares", "search"),
)
"""One case of each solver."""


@pytest.mark.parametrize("case", each_run(CASES, EACH_RUN))
def test_passes(case):
    fits, recorded = CASES[case]
    ends = [result.certificate for result in fits()]
    assert case in UNCERTIFIED or np.mean([end.certified for end in ends]) >= MOST
    limit = ACROSS_KINKS if "kinks" in case else DEARER
    assert np.median([end.passes for end in ends]) <= limit * recorded
