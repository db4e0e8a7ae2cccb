"""Coordinates of the points near a reference: one vector for the solver, names for the reader."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray
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
    def _atom_entries(self) -> list[tuple[int, int]]:
        """Atoms and columns that deviate: a mass is a share, the last atom holds translations."""
        family, reference = self.model.family, self.model.reference
        mass = {family.mass_column} if reference.free else set()
        held = {int(c) for b in family.gate.translations for c in np.ravel(family.blocks[b][0])}
        last = len(reference.cells) - 1
        return [
            (i, c)
            for i in range(last + 1)
            for c in range(family.n_atom_params)
            if c not in mass and not (i == last and c in held)
        ]

    @cached_property
    def _shared_entries(self) -> int:
        family = self.model.family
        return family.n_params - family.n_experts * family.n_atom_params

    @cached_property
    def _share_entries(self) -> list[int]:
        """Atoms that have an angle for their share: all but the first of each larger cell."""
        reference = self.model.reference
        if not reference.free:
            return []
        first = {int(np.flatnonzero(reference.cells == j)[0]) for j in set(reference.cells)}
        return [i for i in range(len(reference.cells)) if i not in first]

    @cached_property
    def _mass_entries(self) -> int:
        return self.model.truth_family.n_experts - 1 if self.model.reference.free else 0

    @cached_property
    def size(self) -> int:
        """Length of z."""
        counts = len(self._atom_entries), self._shared_entries, len(self._share_entries)
        return sum(counts) + self._mass_entries

    @cached_property
    def is_deviation(self) -> NDArray[np.bool_]:
        """Whether each coordinate vanishes at the reference; shares do not."""
        out = np.ones(self.size, dtype=np.bool_)
        start = len(self._atom_entries) + self._shared_entries
        out[start : start + len(self._share_entries)] = False
        return out

    @cached_property
    def names(self) -> list[str]:
        """One name per coordinate."""
        family = self.model.family
        atom = [family.param_names[i * family.n_atom_params + c] for i, c in self._atom_entries]
        shared = family.param_names[family.n_experts * family.n_atom_params :]
        share = [f"share[{i}]" for i in self._share_entries]
        return [*atom, *shared, *share, *(f"mass of cell {j}" for j in range(self._mass_entries))]

    def pins(self) -> list[int]:
        """Coordinates that may lead a deviation; of the atoms of one cell the first will do."""
        cells = self.model.reference.cells
        first = [int(np.flatnonzero(cells == j)[0]) for j in range(cells.max() + 1)]
        alike = self.model.reference.name.startswith("cells")
        pins = [
            p for p, (i, _) in enumerate(self._atom_entries) if not alike or i == first[cells[i]]
        ]
        start = len(self._atom_entries)
        pins += list(range(start, start + self._shared_entries))
        return pins + list(range(self.size - self._mass_entries, self.size))

    def unpack(self, z: FloatArray) -> Deviation:
        """What z stands for."""
        model = self.model
        reference = model.reference
        atoms = np.zeros((len(reference.cells), model.family.n_atom_params))
        entries = len(self._atom_entries)
        bounded = REACH * np.tanh(z[: entries + self._shared_entries] / REACH)
        for value, (i, c) in zip(bounded[:entries], self._atom_entries, strict=True):
            atoms[i, c] = value
        shared = bounded[entries:]
        share = self._shares(z)
        if self.is_weighted:
            i, c = self._atom_entries[self.pin]
            atoms[i, c] *= self._weight(share)
        mass = np.zeros(model.truth_family.n_experts)
        if self._mass_entries:
            mass[:-1] = z[self.size - self._mass_entries :]
        return Deviation(atoms, shared, share, mass)

    @cached_property
    def is_weighted(self) -> bool:
        """Whether the pinned deviation is held up to a power of its atom's share."""
        return self.weighted and self._share_entries != [] and self.in_larger_cell(self.pin)

    def _weight(self, share: FloatArray) -> float:
        i = self._atom_entries[self.pin][0]
        return float((share[i] / self.model.reference.share[i]) ** (-1.0 / self.power))

    def _angles(self, z: FloatArray, j: int) -> FloatArray:
        """Angles (m - 1,) that share out the mass of cell j among its m atoms."""
        start = len(self._atom_entries) + self._shared_entries
        cells = self.model.reference.cells
        mine = [n for n, i in enumerate(self._share_entries) if cells[i] == j]
        m = len(mine) + 1
        return _equal_angles(m) + z[start + np.array(mine, dtype=np.int64)]

    def _shares(self, z: FloatArray) -> FloatArray:
        reference = self.model.reference
        if not self._share_entries:
            return reference.share
        share = np.ones(len(reference.cells))
        for j, size in enumerate(reference.sizes):
            if size > 1:
                parts, _ = stick(self._angles(z, j))
                share[reference.cells == j] = LEAST_SHARE + (1.0 - size * LEAST_SHARE) * parts
        return share

    def jacobian(self, z: FloatArray, slopes: Derivatives) -> FloatArray:
        """Derivatives (n, size) of the residual in z."""
        rows = [slopes.atoms[i, c] for i, c in self._atom_entries]
        rows += list(slopes.shared)
        inner = 1.0 - np.tanh(z[: len(rows)] / REACH) ** 2
        rows = [factor * row for factor, row in zip(inner, rows, strict=True)]
        reference = self.model.reference
        share = self._shares(z)
        in_share = slopes.share
        if self.is_weighted:
            i, c = self._atom_entries[self.pin]
            rows[self.pin] = self._weight(share) * rows[self.pin]
            deviation = self.unpack(z).atoms[i, c]
            in_share = in_share.copy()
            in_share[i] -= slopes.atoms[i, c] * deviation / (self.power * share[i])
        for j, size in enumerate(reference.sizes):
            if size > 1 and self._share_entries:
                _, change = stick(self._angles(z, j))
                room = 1.0 - size * LEAST_SHARE
                rows += list(room * change.T @ in_share[reference.cells == j])
        rows += list(slopes.mass[: self._mass_entries])
        return np.stack(rows, axis=1)

    def random(self, rng: np.random.Generator, scale: float) -> FloatArray:
        """A random point with deviations of about `scale`."""
        return rng.standard_normal(self.size) * np.where(self.is_deviation, scale, 0.3)

    def deviations(self, z: FloatArray) -> FloatArray:
        """What each coordinate stands for: a deviation, the share of an atom or a mass."""
        deviation = self.unpack(z)
        atoms = [deviation.atoms[i, c] for i, c in self._atom_entries]
        share = deviation.share[self._share_entries]
        mass = deviation.mass[: self._mass_entries]
        return np.concatenate([atoms, deviation.shared, share, mass])

    def cells_by_name(self) -> list[int]:
        """Cell of each coordinate; -1 for a parameter that all atoms share, or a mass."""
        atom = [int(self.model.reference.cells[i]) for i, _ in self._atom_entries]
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


def _equal_angles(m: int) -> FloatArray:
    """The angles of m equal shares."""
    return np.arccos(np.sqrt(1.0 / np.arange(m, 1, -1)))
