"""Coordinates of the points near a reference: one vector for the solver, names for the reader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray, IntArray
from moestat.theory.explorer._model import Derivatives, Deviation, Model

LEAST_SHARE = 0.1
"""Least share of its cell's mass that an atom has: the parameter space is compact."""

REACH = 1.5
"""Half-width of the box of deviations, likewise: z stands for ``REACH tanh(z / REACH)``."""


@dataclass(frozen=True)
class Coordinates:
    """A vector z of deviations, shares (as angles) and masses, and what it stands for.

    The reference's last atom holds the translations of the gate, its last cell the total mass.
    """

    model: Model
    pin: int = -1
    """Position of the deviation that a descent holds; -1 for none."""
    power: float = 1.0
    """Exponent kappa of that deviation in the loss."""
    weighted: bool = False
    """Whether its atom's mass is a factor there.  Then ``share^(1 / kappa)`` times the deviation is
    held, in units of an equal share: otherwise shares would move to make the loss small, not the
    distance."""

    @cached_property
    def _at(self) -> tuple[IntArray, IntArray]:
        """Atoms and columns that deviate, among those that bounds leave free.

        A mass is a share, and the translations of the last atom are fixed.
        """
        family, reference = self.model.family, self.model.reference
        reference_columns = {
            int(c) for b in family.gate.translations for c in np.ravel(family.blocks[b][0])
        }
        widths, _ = family.split(family.upper - family.lower)
        moves = widths > 0.0
        moves[-1, sorted(reference_columns)] = False
        if reference.free and family.mass_column is not None:
            moves[:, family.mass_column] = False
        atoms, columns = np.nonzero(moves)
        return atoms, columns

    @cached_property
    def _shared(self) -> IntArray:
        """Shared parameters that deviate."""
        family = self.model.family
        return np.flatnonzero(family.split(family.upper - family.lower)[1] > 0.0)

    @cached_property
    def _share_entries(self) -> list[int]:
        """Atoms that have an angle for their share: all but the first of each larger cell."""
        reference = self.model.reference
        if not reference.free:
            return []
        first = np.unique(reference.cells, return_index=True)[1]
        return [i for i in range(len(reference.cells)) if i not in first]

    @cached_property
    def _counts(self) -> tuple[int, int, int, int]:
        masses = self.model.truth_family.n_experts - 1 if self.model.reference.free else 0
        return self._at[0].size, self._shared.size, len(self._share_entries), masses

    def _split(self, z: FloatArray) -> list[FloatArray]:
        """The coordinates of atoms, of shared parameters, of shares and of masses."""
        return np.split(z, np.cumsum(self._counts[:-1]))

    @property
    def size(self) -> int:
        """Length of z."""
        return sum(self._counts)

    @cached_property
    def is_deviation(self) -> NDArray[np.bool_]:
        """Whether each coordinate vanishes at the reference; shares do not."""
        return np.repeat([True, True, False, True], self._counts)

    @cached_property
    def names(self) -> list[str]:
        """One name per coordinate."""
        family = self.model.family
        size = family.n_atom_params
        atom = [family.param_names[i * size + c] for i, c in zip(*self._at, strict=True)]
        shared = [family.param_names[family.n_experts * size + c] for c in self._shared]
        share = [f"share[{i}]" for i in self._share_entries]
        return [*atom, *shared, *share, *(f"mass of cell {j}" for j in range(self._counts[-1]))]

    def pins(self) -> list[int]:
        """Coordinates that may lead a deviation; of the atoms of one cell the first will do."""
        may = self.is_deviation.copy()
        if self.model.reference.name.startswith("cells"):
            first = np.unique(self.model.reference.cells, return_index=True)[1]
            may[: self._counts[0]] = np.isin(self._at[0], first)
        return np.flatnonzero(may).tolist()

    def unpack(self, z: FloatArray) -> Deviation:
        """What z stands for."""
        model = self.model
        atoms = np.zeros((len(model.reference.cells), model.family.n_atom_params))
        atom_values, free, angles, masses = self._split(z)
        atoms[self._at] = REACH * np.tanh(atom_values / REACH)
        share = self._shares(angles)
        if self.is_weighted:
            atoms[self._pinned] *= self._weight(share)
        mass = np.zeros(model.truth_family.n_experts)
        mass[: masses.size] = masses
        shared = np.zeros(model.family.n_params - model.family.n_experts * atoms.shape[1])
        shared[self._shared] = REACH * np.tanh(free / REACH)
        return Deviation(atoms, shared, share, mass)

    @cached_property
    def is_weighted(self) -> bool:
        """Whether the pinned deviation is held up to a power of its atom's share."""
        return self.weighted and self._share_entries != [] and self.in_larger_cell(self.pin)

    @property
    def _pinned(self) -> tuple[int, int]:
        return self._at[0][self.pin], self._at[1][self.pin]

    def _weight(self, share: FloatArray) -> float:
        i = self._pinned[0]
        return float((share[i] / self.model.reference.share[i]) ** (-1.0 / self.power))

    def _sticks(
        self, angles: FloatArray
    ) -> Iterator[tuple[NDArray[np.bool_], tuple[FloatArray, FloatArray]]]:
        """The atoms of each cell of several atoms, and `stick` of the cell's angles."""
        cells = self.model.reference.cells
        for j, size in enumerate(self.model.reference.sizes):
            if size > 1 and angles.size:
                equal = np.arccos(np.sqrt(1.0 / np.arange(size, 1, -1)))
                yield cells == j, stick(equal + angles[cells[self._share_entries] == j])

    def _shares(self, angles: FloatArray) -> FloatArray:
        reference = self.model.reference
        if not angles.size:
            return reference.share
        share = np.ones(len(reference.cells))
        for mine, (parts, _) in self._sticks(angles):
            share[mine] = LEAST_SHARE + (1.0 - parts.size * LEAST_SHARE) * parts
        return share

    def jacobian(self, z: FloatArray, slopes: Derivatives) -> FloatArray:
        """Derivatives (n, size) of the residual in z."""
        bounded = np.concatenate([slopes.atoms[self._at], slopes.shared[self._shared]])
        bounded *= 1.0 - np.tanh(z[: len(bounded), None] / REACH) ** 2
        angles = self._split(z)[2]
        share, in_share = self._shares(angles), slopes.share
        if self.is_weighted:
            i, c = self._pinned
            bounded[self.pin] *= self._weight(share)
            deviation = self.unpack(z).atoms[i, c]
            in_share = in_share.copy()
            in_share[i] -= slopes.atoms[i, c] * deviation / (self.power * share[i])
        turned = [
            (1.0 - parts.size * LEAST_SHARE) * change.T @ in_share[mine]
            for mine, (parts, change) in self._sticks(angles)
        ]
        return np.concatenate([bounded, *turned, slopes.mass[: self._counts[-1]]]).T

    def random(self, rng: np.random.Generator, scale: float) -> FloatArray:
        """A random point with deviations of about `scale`."""
        return rng.standard_normal(self.size) * np.where(self.is_deviation, scale, 0.3)

    def deviations(self, z: FloatArray) -> FloatArray:
        """What each coordinate stands for: a deviation, the share of an atom or a mass."""
        deviation = self.unpack(z)
        share, mass = deviation.share[self._share_entries], deviation.mass[: self._counts[-1]]
        shared = deviation.shared[self._shared]
        return np.concatenate([deviation.atoms[self._at], shared, share, mass])

    def cells_by_name(self) -> list[int]:
        """Cell of each coordinate; -1 for a parameter that all atoms share, or a mass."""
        atom = self.model.reference.cells[self._at[0]].tolist()
        return atom + [-1] * (self.size - len(atom))

    def in_larger_cell(self, position: int) -> bool:
        """Whether a coordinate belongs to a cell of several atoms."""
        cell = self.cells_by_name()[position]
        return cell >= 0 and self.model.reference.sizes[cell] > 1


def stick(angles: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shares (m,) of a unit mass from m - 1 angles, with their derivatives (m, m - 1).

    The first is ``cos^2`` of the first angle, the second ``cos^2`` of the second times what is
    left, and so on.  A share of 0 lies at a finite place, unlike with logits.
    """
    m = angles.size + 1
    factors = np.ones((m, m - 1))
    slopes = np.zeros((m, m - 1))
    for n, angle in enumerate(angles):
        factors[n, n], slopes[n, n] = np.cos(angle) ** 2, -np.sin(2.0 * angle)
        factors[n + 1 :, n], slopes[n + 1 :, n] = np.sin(angle) ** 2, np.sin(2.0 * angle)
    others = [np.prod(np.delete(factors, n, axis=1), axis=1) for n in range(m - 1)]
    return np.prod(factors, axis=1), slopes * np.stack(others, axis=1)
