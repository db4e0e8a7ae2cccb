"""Mixing measures: the atoms with masses that the theory speaks about."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_numbers, check_kind, short
from moestat.model.members import Symmetry

if TYPE_CHECKING:
    from moestat.model.layout import ParameterLayout

__all__ = ["MixingMeasure", "measure_of", "parameters_of"]


@doors
@dataclass(frozen=True)
class MixingMeasure:
    """A discrete measure ``G = sum_i m_i delta_(theta_i)`` over the parameters of one expert.

    Parameters
    ----------
    masses : ndarray of shape (k,)
        Positive masses, ``exp(gamma_i)`` or ``exp(beta0_i)``.
    atoms : mapping of str to ndarray of shape (k, ...)
        The other blocks of each atom: ``alpha`` (k, d), ``beta`` (k,), ``a`` (k, K - 1, d),
        ``b`` (k, K - 1) for the modified sigmoid gate.  Classes are contrasts to the last one.
    expert_blocks : tuple of str
        Blocks that are parameters of the expert's mean; empty where that is not known.
    symmetry : Symmetry
        Moves of those blocks that leave the mean as it is.

    Raises
    ------
    ValueError
        If a block has another number of atoms, a mass is not positive or a value not finite.

    Notes
    -----
    Pham et al. (2026), Sec. 3: ``G* = sum_i exp(gamma_i*) delta_(alpha_i*, beta_i*, a_i*, b_i*)``.

    Examples
    --------
    >>> import numpy as np
    >>> G = MixingMeasure(np.array([1.0, 0.5]), {"beta": np.array([0.0, 2.0])})
    >>> G.n_atoms, G.total_mass
    (2, 1.5)
    """

    masses: FloatArray
    atoms: Mapping[str, FloatArray]
    expert_blocks: tuple[str, ...] = field(default=(), repr=False)
    symmetry: Symmetry = field(default=Symmetry(), repr=False)

    def __post_init__(self) -> None:
        masses = as_numbers("masses", self.masses)
        check_kind("atoms", self.atoms, Mapping, "a table of blocks")
        if masses.ndim != 1 or masses.size == 0:
            raise ValueError(f"masses must have shape (k,) with k >= 1, got {masses.shape}")
        if not np.all(np.isfinite(masses)) or np.any(masses <= 0):
            raise ValueError(f"masses must be positive and finite, got {short(masses)}")
        object.__setattr__(self, "masses", masses)
        atoms = {
            name: as_numbers(f"atoms: block {name!r}", block) for name, block in self.atoms.items()
        }
        for name, block in atoms.items():
            if block.ndim == 0 or block.shape[0] != masses.size:
                raise ValueError(
                    f"atoms: block {name!r} must have {masses.size} atoms, as many as masses, got"
                    f" shape {block.shape}"
                )
            if not np.all(np.isfinite(block)):
                raise ValueError(f"block {name!r} holds NaN or infinite values")
        object.__setattr__(self, "atoms", atoms)

    @property
    def n_atoms(self) -> int:
        """Number of atoms k."""
        return int(self.masses.size)

    @property
    def total_mass(self) -> float:
        """Sum of the masses."""
        return float(self.masses.sum())

    def in_order(self, order: IntArray) -> MixingMeasure:
        """The measure with its atoms in another order, positions (k,) in this one."""
        ordered = copy(self)
        object.__setattr__(ordered, "masses", self.masses[order])
        atoms = {name: block[order] for name, block in self.atoms.items()}
        object.__setattr__(ordered, "atoms", atoms)
        return ordered

    def coordinates(self) -> FloatArray:
        """Atoms as rows of one matrix (k, p), blocks side by side in their order."""
        return np.hstack([block.reshape(self.n_atoms, -1) for block in self.atoms.values()])


def measure_of(layout: ParameterLayout, theta: ArrayLike) -> MixingMeasure:
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
