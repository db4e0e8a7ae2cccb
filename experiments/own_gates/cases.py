"""Five families with members of one's own, and a truth of each drawn by a seed fixed before."""

from __future__ import annotations

import numpy as np

import moestat
from experiments.own_gates.members import register
from moestat.base.types import FloatArray
from moestat.model.family import Family

__all__ = ["CASES", "truth_of"]

CASES = {
    "hyperbolic-linear": ("gaussian", "own-hyperbolic", "linear"),
    "wave-linear": ("gaussian", "own-wave", "linear"),
    "cauchy-bent": ("gaussian", "own-cauchy", "own-bent"),
    "softmax-arch": ("gaussian", "softmax", "own-arch"),
    "hyperbolic-bent": ("gaussian", "own-hyperbolic", "own-bent"),
}
"""Name -> likelihood, gate and expert."""

_SEED = 20270101


def truth_of(name: str) -> tuple[Family, FloatArray]:
    """The family with two experts and its truth, rounded to two digits."""
    register()
    likelihood, gate, expert = CASES[name]
    family = moestat.family(likelihood, gate=gate, expert=expert, n_experts=2)
    theta = family.typical(rng=_SEED + list(CASES).index(name))
    blocks = {k: np.round(v, 2) for k, v in family.unpack(theta).items()}
    return family, family.pin(family.pack(blocks))
