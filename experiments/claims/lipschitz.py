"""Densities of the papers are Lipschitz in their parameters, with constants written out.

Behind the covering and bracketing numbers of Pham et al. (2026), Lemma 2, and Nguyen et al. (2025),
Lemma K.2: a grid of mesh eps on a bounded set of p parameters has of order eps^-p points.
"""

from __future__ import annotations

import math

import numpy as np

from experiments.claims.evidence import InequalityEvidence
from moestat.model.family import Family, family

__all__ = ["TRIALS"]

_SEED = 22
_DRAWS = 200
_REACH = 2.0
"""Inputs lie within this of 0."""
_NARROW = 0.1
"""Smallest variance."""


def _classes() -> InequalityEvidence:
    """sum_s |p - p'| <= max_i of the change of a gate's logarithm, plus that of an expert's."""
    fitted = family("multinomial", gate="sigmoid", n_experts=3, n_classes=3)
    rng, worst = np.random.default_rng(_SEED), -math.inf
    for _ in range(_DRAWS):
        first, second, x = _near(fitted, rng)
        moved = {name: np.abs(first[name] - second[name]) for name in first}
        gate = np.max(moved["gamma"] + _REACH * moved["alpha"][:, 0] + moved["beta"])
        expert = np.max(_REACH * moved["a"][:, 0] + moved["b"])
        p = [fitted.probabilities(fitted.pack(each), x) for each in (first, second)]
        worst = max(worst, np.abs(p[0] - p[1]).sum(axis=1).max() - gate - expert)
    return InequalityEvidence(float(worst), _DRAWS, "random pairs, k = 3, three classes")


def _lines() -> InequalityEvidence:
    """|p - p'| is at most the change of weights over sqrt(2 pi nu) plus that of the normals."""
    fitted = family("gaussian", gate="competition-free", n_experts=3)
    rng, worst = np.random.default_rng(_SEED), -math.inf
    peak = 1 / math.sqrt(2 * math.pi * _NARROW)
    for _ in range(_DRAWS):
        first, second, x = _near(fitted, rng)
        y = rng.normal(scale=3.0, size=x.size)
        moved = {name: np.abs(first[name] - second[name]) for name in first}
        answer = _REACH * moved["a"][:, 0] + moved["b"]
        weights = np.max(moved["c"] + answer) * peak
        normals = math.exp(-0.5) * answer / math.sqrt(_NARROW) + moved["nu"] / (2 * _NARROW)
        p = [np.exp(fitted.log_density(fitted.pack(each), x, y)) for each in (first, second)]
        worst = max(worst, np.abs(p[0] - p[1]).max() - weights - peak * np.max(normals))
    return InequalityEvidence(float(worst), _DRAWS, "random pairs, N = 3, lines, masses free")


def _near(fitted: Family, rng: np.random.Generator) -> tuple[dict, dict, np.ndarray]:
    """Two measures, near each other or far apart, and inputs."""
    blocks = fitted.unpack(rng.normal(size=fitted.n_params))
    step, size = fitted.unpack(rng.normal(size=fitted.n_params)), 10.0 ** rng.uniform(-4, 0)
    other = {name: value + size * step[name] for name, value in blocks.items()}
    for each in (blocks, other):
        if "nu" in each:
            each["nu"] = _NARROW + np.abs(each["nu"])
    return blocks, other, rng.uniform(-_REACH, _REACH, 50)


TRIALS = {"mlmoe lemma-2": _classes, "compete lemma-k.2": _lines}
"""What evaluates the inequality behind a lemma, by paper and lemma."""
