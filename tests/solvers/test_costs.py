"""Passes over the data that fits of fixed seeds take: what tuning constants are there for.

Counts are the same wherever rounding is (`STANDARD` has the few that differ by it); a machine of
another kind may need a few more.  A change that saves passes lowers the number here, and one that
costs more than a tenth has to say why.
"""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat import Lattice
from moestat.compiler.jit import LOWERING
from moestat.estimation.starts import MeasureStarts, TruthStarts
from moestat.solvers import (
    EM,
    SQUAREM,
    GaussNewtonBFGS,
    LevenbergMarquardt,
    MomentNewton,
    MomentSquares,
    Newton,
    Search,
)

SLACK = 0.1
ACROSS_KINKS = 0.5
"""There the path of a fit hangs on rounding: two processors took 225 and 167 passes."""

WIDE = Lattice(-4, 4, nodes=32)
GRID = Lattice(-1, 1, nodes=8)


def classes(gate, n, extra, solver, noise, seeds, experts=2):
    """Fits of `extra` more experts to counts of classes on a lattice."""
    rng = np.random.default_rng(11)
    family = moestat.family("multinomial", gate=gate, n_experts=experts, n_classes=3)
    theta = family.pin(rng.normal(size=family.n_params))
    for seed in range(seeds):
        X, y, weight = moestat.sample_weighted(family, theta, n, rng=seed, design=WIDE)
        start = [MeasureStarts(family, theta, 1, noise)]
        options = {"sample_weight": weight, "starts": start, "rng": seed, "solver": solver}
        yield moestat.fit(family.with_experts(experts + extra), X, y, **options)


def responses(gate, n, extra, solver, noise, seeds):
    """Fits to rows with Gaussian responses."""
    family = moestat.family("gaussian", gate=gate, n_experts=2)
    theta = family.pin(np.random.default_rng(4).normal(size=family.n_params))
    for seed in range(seeds):
        X, y = moestat.sample(family, theta, n, rng=seed, design=moestat.Uniform(-2, 2))
        starts = [MeasureStarts(family, theta, 2, noise)]
        options = {"starts": starts, "rng": seed, "solver": solver}
        yield moestat.fit(family.with_experts(2 + extra), X, y, **options)


def many_parameters(n, solver, noise, seeds):
    """Fits of 168 parameters."""
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_features=6, n_classes=12)
    theta = family.pin(np.random.default_rng(5).normal(size=family.n_params))
    for seed in range(seeds):
        X, y = moestat.sample(family, theta, n, rng=seed, design=moestat.Uniform(-2, 2))
        starts = [MeasureStarts(family, theta, 2, noise)]
        yield moestat.fit(family, X, y, starts=starts, rng=seed, solver=solver)


def functions(activation, n, extra, solver, noise, seeds):
    """Least-squares fits to node means, or to rows where experts have kinks."""
    expert = {"name": "activation", "activation": activation, "weighted": False}
    options = {"gate": "softmax-quadratic", "expert": expert, "n_features": 2}
    family = moestat.family("least-squares", n_experts=2, **options)
    theta = family.pin(np.random.default_rng(1).normal(size=family.n_params))
    for seed in range(seeds):
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


def kinked(n, solver, seeds):
    family = moestat.family("multinomial", gate="sigmoid-euclidean", n_experts=2, n_classes=2)
    theta = family.pin(np.random.default_rng(3).normal(size=family.n_params))
    for seed in range(seeds):
        X, y = moestat.sample(family, theta, n, rng=seed, design=moestat.Uniform(-2, 2))
        starts = [TruthStarts(family, theta, 1, 0.1)]
        yield moestat.fit(family, X, y, starts=starts, rng=seed, solver=solver)


def jumps(n, solver, seeds):
    family = moestat.family("gaussian", gate="competition-top", n_experts=2)
    theta = family.pack({"a": [2.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.16]})
    for seed in range(seeds):
        X, y = moestat.sample(family, theta, n, rng=seed, design=moestat.Uniform(-2, 2))
        starts = [TruthStarts(family, theta, 1, 0.05)]
        yield moestat.fit(family, X, y, starts=starts, rng=seed, solver=solver)


CASES = {
    "newton": (lambda: classes("softmax", 1e6, 1, Newton(), 0.1, 6), 834.0),
    "newton, rows": (lambda: responses("softmax", 40_000, 1, Newton(), 0.1, 2), 45.4),
    "newton, many parameters": (lambda: many_parameters(1500, Newton(), 0.6, 3), 134.0),
    "em": (lambda: classes("softmax", 1e4, 0, EM(), 0.5, 4), 1369.0),
    "em, rows": (lambda: responses("softmax", 2000, 0, EM(), 0.2, 2), 66.0),
    "squarem": (lambda: classes("softmax", 1e4, 0, SQUAREM(), 0.5, 4), 2841.0),
    "moments, 1e8": (lambda: classes("softmax", 1e8, 1, MomentNewton(), 0.1, 10), 782.0),
    "moments, 1e12": (lambda: classes("softmax", 1e12, 1, MomentNewton(), 0.1, 10), 1100.0),
    "moments, 1e14": (lambda: classes("sigmoid", 1e14, 1, MomentNewton(), 0.1, 10), 1103.0),
    "moments of three": (lambda: classes("softmax", 1e12, 2, MomentNewton(), 0.1, 6), 1058.0),
    "moments, rows": (
        lambda: responses("competition-free", 4000, 1, MomentNewton(), 0.1, 4),
        105.0,
    ),
    "levenberg-marquardt": (
        lambda: functions("gelu", 1e10, 0, LevenbergMarquardt(), 1.0, 6),
        150.0,
    ),
    "levenberg-marquardt, 1e12": (
        lambda: functions("gelu", 1e12, 0, LevenbergMarquardt(), 1.0, 4),
        100.0,
    ),
    "gauss-newton-bfgs": (lambda: functions("gelu", 1e6, 0, GaussNewtonBFGS(), 1.0, 8), 911.0),
    "gauss-newton-bfgs, kinks": (
        lambda: functions("relu", 3000, 0, GaussNewtonBFGS(), 0.1, 3),
        264.0,
    ),
    "moment-squares": (lambda: functions("gelu", 1e12, 1, MomentSquares(), 0.1, 4), 351.0),
    "kinks": (lambda: kinked(3000, Newton(), 5), 300.0),
    "kinks in moments": (lambda: kinked(5000, MomentNewton(), 6), 255.0),
    "search": (lambda: jumps(400, Search(), 2), 5686.0),
}

# Across kinks and along valleys the path of a fit hangs on rounding, which is another one where
# kernels are compiled in numba's standard way.
STANDARD = {"moments of three": 1123.0}

# EM stops at a relative change, short of the maximum.
UNCERTIFIED = ("em", "em, rows", "squarem")


@pytest.mark.parametrize("case", CASES)
def test_passes(case):
    fits, pinned = CASES[case]
    if LOWERING == "standard":
        pinned = STANDARD.get(case, pinned)
    found = list(fits())
    passes = sum(result.certificate.passes for result in found)
    assert case in UNCERTIFIED or all(result.certificate.certified for result in found)
    slack = ACROSS_KINKS if "kinks" in case else SLACK
    assert (1.0 - slack) * pinned <= passes <= (1.0 + slack) * pinned
