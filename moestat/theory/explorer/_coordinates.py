"""Coordinates of the points near a reference: one vector for the solver, names for the reader."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from moestat._types import FloatArray, IntArray
from moestat.theory.explorer._model import Derivatives, Deviation, Model, free_columns

__all__ = ["LEAST_SHARE", "REACH", "Coordinates"]

LEAST_SHARE = 0.1
"""Least share of its cell's mass that an atom has: the parameter space is compact."""

REACH = 1.5
"""Half-width of the box of deviations, likewise: z stands for ``REACH tanh(z / REACH)``."""


@dataclass(frozen=True)
class Coordinates:
    """A vector z of deviations, shares (as logits) and masses, and what it stands for.

    The reference's last atom holds the translations of the gate, its last cell the total mass.

    Parameters
    ----------
    model : Model
        The model and its reference.
    """

    model: Model

    @cached_property
    def _atom_entries(self) -> list[tuple[int, int]]:
        columns, held = free_columns(self.model.family, self.model.reference)
        last = len(self.model.reference.cells) - 1
        return [
            (i, int(c)) for i in range(last + 1) for c in columns if not (i == last and c in held)
        ]

    @cached_property
    def _shared_entries(self) -> int:
        family = self.model.family
        return family.n_params - family.n_experts * family.n_atom_params

    @cached_property
    def _share_entries(self) -> list[int]:
        """Atoms that have a logit of their share: all but the first of each larger cell."""
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
    def is_deviation(self) -> FloatArray:
        """1 for coordinates that vanish at the reference, 0 for shares, shape (size,)."""
        out = np.ones(self.size)
        start = len(self._atom_entries) + self._shared_entries
        out[start : start + len(self._share_entries)] = 0.0
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
        mass = np.zeros(model.truth_family.n_experts)
        if self._mass_entries:
            mass[:-1] = z[self.size - self._mass_entries :]
        return Deviation(atoms, shared, share, mass)

    def _logits(self, z: FloatArray) -> FloatArray:
        start = len(self._atom_entries) + self._shared_entries
        logits = np.zeros(len(self.model.reference.cells))
        logits[self._share_entries] = z[start : start + len(self._share_entries)]
        return logits

    def _shares(self, z: FloatArray) -> FloatArray:
        reference = self.model.reference
        if not self._share_entries:
            return reference.share
        share = np.ones(len(reference.cells))
        logits = self._logits(z)
        for j, size in enumerate(reference.sizes):
            if size > 1:
                at = np.flatnonzero(reference.cells == j)
                weight = np.exp(logits[at] - logits[at].max())
                share[at] = LEAST_SHARE + (1.0 - size * LEAST_SHARE) * weight / weight.sum()
        return share

    def jacobian(self, z: FloatArray, slopes: Derivatives) -> FloatArray:
        """Derivatives (n, size) of the residual in z."""
        rows = [slopes.atoms[i, c] for i, c in self._atom_entries]
        rows += list(slopes.shared)
        inner = 1.0 - np.tanh(z[: len(rows)] / REACH) ** 2
        rows = [factor * row for factor, row in zip(inner, rows, strict=True)]
        reference = self.model.reference
        share = self._shares(z)
        for i in self._share_entries:
            j = reference.cells[i]
            at = np.flatnonzero(reference.cells == j)
            room = 1.0 - at.size * LEAST_SHARE
            weight = (share[at] - LEAST_SHARE) / room
            own = float(weight[at == i][0])
            change = room * own * ((at == i) - weight)
            rows.append(change @ slopes.share[at])
        rows += list(slopes.mass[: self._mass_entries])
        return np.stack(rows, axis=1)

    def random(self, rng: np.random.Generator, scale: float) -> FloatArray:
        """A random point with deviations of about `scale`."""
        return rng.standard_normal(self.size) * np.where(self.is_deviation > 0.0, scale, 1.0)

    def cells_by_name(self) -> list[int]:
        """Cell of each coordinate; -1 for a parameter that all atoms share, or a mass."""
        cells = self.model.reference.cells
        atom = [int(cells[i]) for i, _ in self._atom_entries]
        rest = self.size - len(atom)
        return atom + [-1] * rest

    def in_larger_cell(self, position: int) -> bool:
        """Whether a coordinate belongs to a cell of several atoms."""
        cell = self.cells_by_name()[position]
        return cell >= 0 and self.model.reference.sizes[cell] > 1

    def cells_of(self) -> IntArray:
        """True atom that each fitted atom belongs to."""
        return self.model.reference.cells
