"""What a family declares, as far as an analysis needs it."""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.designs import Design, Uniform
from moestat.model.family import Family
from moestat.theory.explorer._nodes import _bends, _kinks

__all__ = [
    "are_distinct",
    "blocks_of",
    "has_corners",
    "heat_block",
    "heat_text",
    "linear_blocks",
    "no_cells",
    "rows_needed",
]


def rows_needed(family: Family) -> int:
    """Samples: half as many again as there are functions of second order in two cells."""
    p = family.n_atom_params + 1
    pairs = min(family.n_experts, 2)
    functions = family.n_params + pairs * p * (p + 1) // 2
    return int(1.4 * functions) + 12


def are_distinct(family: Family, theta: FloatArray) -> bool:
    """Whether no two experts of the truth are equal.

    The proof that normal cells of m atoms have no order above 2m needs it: the terms of two equal
    experts are one function, so that their cells mix.
    """
    channels = range(family.first_expert_channel, len(family.channels))
    places = [
        np.concatenate([family.index[i, c] + np.arange(family.width[c]) for c in channels])
        for i in range(family.n_experts)
    ]
    return len({tuple(theta[each].tolist()) for each in places}) == family.n_experts


def has_corners(family: Family, theta: FloatArray, design: Design) -> bool:
    """Whether a corner of the gate or of a mean lies among the inputs."""
    if family.gate.kink is None and not family.has_kinked_mean:
        return False
    if family.n_features > 1:
        return True
    X = design.quadrature(1, 64)[0]
    low, high = float(X.min()), float(X.max())
    return bool(
        _kinks(family, theta, low, high).size or _bends(family, theta, Uniform(low, high)).size
    )


def blocks_of(family: Family) -> list[str]:
    """Blocks of parameters, in the order of the family, but for the masses."""
    mass = family.gate.mass if family.gate.normalised else None
    return [
        name
        for name, at in family.blocks.items()
        if name != mass and np.any(family.lower[np.ravel(at)] < family.upper[np.ravel(at)])
    ]


def no_cells(family: Family, n_experts: int) -> str:
    """Why there is no measure of more atoms with the truth's density; empty where there is."""
    if family.gate.normalised and family.gate.mass is None:
        return "the gate has no masses: atoms cannot share that of one"
    return ""


def linear_blocks(family: Family) -> set[str]:
    """Blocks in which the mean of an expert is linear."""
    if family.expert.block is not None:
        return set(family.expert.symmetry.linear_in)
    first, count = family.layout[1], family.layout[2]
    return {
        name
        for channel in family.channels[first : first + count]
        for name in (channel.intercept, channel.slope)
        if name is not None
    }


def heat_block(family: Family) -> str | None:
    """The block of a normal mean's intercept, where the density solves a heat equation in it."""
    if family.likelihood.name != "gaussian" or family.expert.block is not None:
        return None
    channel = family.likelihood.channels[-1]
    free = family.lower < family.upper
    at = np.ravel(family.blocks.get(channel.intercept, np.zeros(0, dtype=int)))
    if channel.shared or family.gate.reads_response or not at.size or not free[at].all():
        return None
    return family.channels[family.layout[1]].intercept


def heat_text(family: Family, block: str) -> str:
    return f"∂²p/∂{block}² = 2 ∂p/∂{family.likelihood.channels[-1].intercept}"
