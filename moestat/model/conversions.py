"""Packed parameters as mixing measures and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import short
from moestat.model.layout import ParameterLayout
from moestat.model.measure import MixingMeasure

__all__ = ["measure_of", "parameters_of"]


def measure_of(layout: ParameterLayout, theta: Any) -> MixingMeasure:
    """The mixing measure of packed parameters (P,); every atom carries the shared ones.

    The mass of an atom is the exponential of the gate's mass block, of a gate whose weights are
    not normalised its logistic function, and a constant for a gate without such a block.
    """
    gate, k = layout.gate, layout.n_experts
    blocks = layout.unpack(theta)
    if gate.mass is None:
        masses = np.full(k, gate.fixed_mass(k))
    elif gate.normalised:
        masses = np.exp(blocks.pop(gate.mass))
    else:
        masses = 1.0 / (1.0 + np.exp(-blocks[gate.mass]))
    return MixingMeasure(
        masses,
        {name: np.full(k, b) if b.ndim == 0 else b for name, b in blocks.items()},
        expert_blocks=layout.expert_blocks,
        symmetry=layout.expert.symmetry,
    )


def parameters_of(layout: ParameterLayout, measure: MixingMeasure) -> FloatArray:
    """Packed parameters (P,) of a measure with as many atoms, the inverse of `measure_of`."""
    gate, blocks = layout.gate, dict(measure.atoms)
    if gate.mass is not None:
        if gate.normalised:
            blocks[gate.mass] = np.log(measure.masses)
    elif np.any(measure.masses != gate.fixed_mass(layout.n_experts)):
        raise ValueError(
            f"gate {gate.name!r} gives every atom the mass"
            f" {gate.fixed_mass(layout.n_experts):g}, got {short(measure.masses)}"
        )
    for name, positions in layout.blocks.items():
        if positions.ndim == 0 and name in blocks:
            if np.ptp(blocks[name]) > 0:
                raise ValueError(
                    f"block {name!r} is shared by all atoms, got {short(blocks[name])}"
                )
            blocks[name] = blocks[name][0]
    return layout.pack(blocks)
