"""What derivatives say about cells of fitted atoms: which relations displacements can make.

To second order the density changes by

    sum_j (mass and first derivatives of true atom j) + sum_(j in J) M_j . (second derivatives)

with positive semidefinite M_j, the weighted products of displacements in the cells J of several
atoms, of rank one less than the number of atoms.  If no relation among these functions has
positive semidefinite parts that are not all 0, the change is at least a multiple of the trace: the
exponent is 2.  By the theorem of the alternative there is then a functional that vanishes on first
derivatives and is a positive definite matrix on second ones: the witness, which others can check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import least_squares

from moestat.base.types import FloatArray
from moestat.theory.exponents._jumps import Jump
from moestat.theory.exponents._linear import Relations, find_relations
from moestat.theory.exponents._point import Parameter, Point
from moestat.theory.exponents._series import Integers, to_floats

__all__ = ["Moments", "Relation", "first_order", "second_order"]

_FEASIBLE = 1e-9
"""Distance of a matrix of trace 1 to the relations that counts as 0.  At the resonant truth of two
classes searches end at 3e-16 to 8e-11; 1e-6 off it, where exact ranks lack the relation, at .7."""
_STARTS = 8
"""Starts of a search for such a matrix.  At the resonant truth one start in four misses it."""


@dataclass(frozen=True)
class Relation:
    """Functions that add up to 0, with their coefficients."""

    names: tuple[str, ...]
    weights: tuple[float, ...]

    def __str__(self) -> str:
        terms = []
        for name, weight in zip(self.names, self.weights, strict=True):
            size = abs(weight)
            factor = "" if abs(size - 1.0) < 1e-12 else f"{size:.6g} "
            sign = ("- " if weight < 0 else "+ ") if terms else ("-" if weight < 0 else "")
            terms.append(f"{sign}{factor}{name}")
        return f"{' '.join(terms)} = 0" if terms else "0 = 0"


@dataclass(frozen=True)
class FirstOrder:
    """Relations among first derivatives."""

    labels: list[str]
    parameters: list[Parameter | int]
    """Of each column its parameter, or the atom whose mass it is."""
    columns: list[Integers] = field(repr=False)
    relations: Relations = field(repr=False)
    jumps: Sequence[Jump] = ()
    """Borders, whose places are the last entries of the columns."""

    @property
    def found(self) -> list[Relation]:
        """The relations, written out."""
        return [write(vector, self.labels) for vector in self.relations.null_space.T]

    @property
    def blocks(self) -> list[set[str]]:
        """The blocks that take part in each relation; "mass" for masses."""
        return [
            {
                "mass" if isinstance(p, int) else p.block
                for p, weight in zip(self.parameters, vector, strict=True)
                if weight
            }
            for vector in self.relations.null_space.T
        ]


def write(vector: FloatArray, labels: Sequence[str]) -> Relation:
    """A null vector as a relation, its first coefficient positive."""
    used = np.flatnonzero(vector).tolist()
    scale = vector[used[0]] if used else 1.0
    if used and np.all(np.abs(np.abs(vector[used]) - np.abs(scale)) < 1e-12):
        scale = abs(scale) * np.sign(vector[used[0]])
    return Relation(tuple(labels[j] for j in used), tuple(float(v / scale) for v in vector[used]))


def first_order(point: Point, jumps: Sequence[Jump] = ()) -> FirstOrder:
    """Masses and first derivatives of all atoms, and the relations among them.

    Where the gate jumps, the place of each border that is seen is one more function of the
    parameters.
    """
    jumps = [jump for jump in jumps if jump.is_seen]
    labels: list[str] = []
    parameters: list[Parameter | int] = []
    columns: list[Integers] = []
    family = point.family
    if family.gate.normalised and family.gate.mass is not None:
        for i in range(family.n_experts - 1):
            labels.append(f"∂p/∂log mass[{i + 1}]")
            parameters.append(i)
            columns.append(point.mass_column(i))
    for parameter in point.parameters:
        if parameter.free:
            labels.append(f"∂p/∂{parameter.name}")
            parameters.append(parameter)
            columns.append(point.first(parameter))
    if jumps:
        mass = family.gate.mass
        at_masses = np.ravel(family.blocks[mass]).tolist() if mass else []
        positions = [at_masses[p] if isinstance(p, int) else p.position for p in parameters]
        rows = np.stack([jump.changes(positions) for jump in jumps])
        columns = [np.append(column, rows[:, k]) for k, column in enumerate(columns)]
    return FirstOrder(labels, parameters, columns, find_relations(columns), jumps)


@dataclass(frozen=True)
class Moments:
    """Second-order parts of relations for some cells, and which can be made by displacements."""

    atoms: tuple[int, ...]
    parameters: list[Parameter]
    """Coordinates of the block-diagonal matrices, cell by cell."""
    labels: list[str] = field(repr=False)
    columns: list[Integers] = field(repr=False)
    relations: Relations = field(repr=False)
    matrices: FloatArray = field(repr=False)
    """An orthonormal basis (r, P, P) of the relations' second-order parts."""

    def _residual(self, M: FloatArray) -> FloatArray:
        """What of a block-diagonal matrix no relation has."""
        flat = self.matrices.reshape(len(self.matrices), -1)
        vector = M.ravel()
        return vector - flat.T @ (flat @ vector)

    def _mask(self, atoms: Sequence[int]) -> np.ndarray:
        at = np.array([p.atom for p in self.parameters])
        return np.isin(at, list(atoms))

    def least(
        self, weight: FloatArray, ranks: int | None, atoms: Sequence[int]
    ) -> tuple[float, FloatArray, FloatArray]:
        """The positive semidefinite matrix nearest to the relations, of weighted trace 1.

        Parameters
        ----------
        weight : ndarray of shape (P,)
            Weights of the diagonal in the trace.
        ranks : int or None
            Largest rank in each cell; None for any.
        atoms : sequence of int
            Cells in which there are displacements.

        Returns
        -------
        tuple
            Distance, the matrix (P, P) and what of it no relation has (P, P).
        """
        P = len(self.parameters)
        cells = [np.flatnonzero(self._mask([a])) for a in atoms]
        sizes = [(c.size, min(ranks or c.size, c.size)) for c in cells]
        splits = np.cumsum([a * b for a, b in sizes])[:-1]

        def matrix(v: FloatArray) -> FloatArray:
            M = np.zeros((P, P))
            for part, rows, (a, b) in zip(np.split(v, splits), cells, sizes, strict=True):
                V = part.reshape(a, b)
                M[np.ix_(rows, rows)] = V @ V.T
            return M

        def residual(v: FloatArray) -> FloatArray:
            M = matrix(v)
            return np.append(self._residual(M), 10.0 * (weight @ np.diag(M) - 1.0))

        best: tuple[float, FloatArray] | None = None
        rng = np.random.default_rng(0)
        for _ in range(_STARTS):
            start = rng.normal(size=sum(a * b for a, b in sizes)) / np.sqrt(P)
            end = least_squares(residual, start, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200)
            M = matrix(end.x)
            trace = float(weight @ np.diag(M))
            if not trace > 1e-6:
                continue
            value = float(np.linalg.norm(self._residual(M / trace)))
            if best is None or value < best[0]:
                best = value, M / trace
            if value < _FEASIBLE:
                break
        if best is None:
            return np.inf, np.zeros((P, P)), np.zeros((P, P))
        return best[0], best[1], self._residual(best[1]).reshape(P, P)

    def cheapest(self, block: str) -> tuple[float, FloatArray] | None:
        """The displacement (P,) with 1 in a block's first coordinate that is seen least.

        With the root mean square of what two opposite such displacements change to second order,
        first derivatives free; None without the block.
        """
        at = [k for k, p in enumerate(self.parameters) if p.block == block]
        if not at:
            return None
        first, second = self._columns()
        scale = np.linalg.norm(first, axis=0)
        basis, s, _ = np.linalg.svd(first / np.where(scale > 0, scale, 1.0), full_matrices=False)
        basis = basis[:, s > 1e-13 * s[0]]
        second = second - basis @ (basis.T @ second)
        pairs = np.array(self._pairs())

        def residual(v: FloatArray) -> FloatArray:
            full = np.insert(v, at[0], 1.0)
            return second @ (full[pairs[:, 0]] * full[pairs[:, 1]])

        best: tuple[float, FloatArray] | None = None
        rng = np.random.default_rng(0)
        P = len(self.parameters)
        for start in [np.zeros(P - 1), *rng.normal(size=(_STARTS, P - 1))]:
            end = least_squares(residual, start, x_scale="jac", max_nfev=200)
            value = float(np.sqrt(np.mean(residual(end.x) ** 2)))
            if best is None or value < best[0]:
                best = value, np.insert(end.x, at[0], 1.0)
        return best

    def _columns(self) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives at the samples."""
        columns = to_floats(np.stack(self.columns, axis=1))
        n_first = len(self.columns) - len(self._pairs())
        return columns[:, :n_first], columns[:, n_first:]

    def made_up(self, v: FloatArray) -> FloatArray:
        """Changes of masses and parameters that make up for two opposite displacements v (P,)."""
        first, second = self._columns()
        pairs = np.array(self._pairs())
        change = second @ (v[pairs[:, 0]] * v[pairs[:, 1]])
        return -np.asarray(np.linalg.lstsq(first, change, rcond=1e-13)[0], dtype=np.float64)

    def _pairs(self) -> list[tuple[int, int]]:
        """Coordinates of each second derivative."""
        return [
            (i, j)
            for i, one in enumerate(self.parameters)
            for j in range(i, len(self.parameters))
            if one.atom == self.parameters[j].atom
        ]

    def cancelling(self, block: str | None, size: int, atoms: Sequence[int]) -> FloatArray | None:
        """Products of displacements that cancel to second order, of a block or of any.

        None where there are none in cells of so many atoms.
        """
        if not len(self.matrices):
            return None
        weight = np.array([block is None or p.block == block for p in self.parameters], dtype=float)
        distance, M, _ = self.least(weight, size - 1, atoms)
        return M if distance < _FEASIBLE else None

    def witness(self, atoms: Sequence[int]) -> FloatArray | None:
        """A positive definite matrix (P, P) that is 0 on every relation; None where none is found.

        Then no positive semidefinite part of a relation is different from 0.
        """
        P = len(self.parameters)
        on = self._mask(atoms)
        if not len(self.matrices):
            return np.diag(on.astype(float))
        distance, _, S = self.least(np.ones(P), None, atoms)
        if distance < _FEASIBLE or not np.isfinite(distance):
            return None
        S = S / np.linalg.norm(S)
        values = np.linalg.eigvalsh(S[np.ix_(on, on)])
        return S if values[0] > 1e-8 else None


def second_order(point: Point, first: FirstOrder, atoms: Sequence[int]) -> Moments:
    """Relations to second order when the cells of some atoms have several fitted ones."""
    parameters = [p for a in atoms for p in point.parameters if p.atom == a and p.movable]
    labels, columns = list(first.labels), list(first.columns)
    # A parameter that is a reference in a cell of one moves with the others of its cell to first
    # order: only its second derivatives are new.
    pairs: list[tuple[int, int]] = []
    for i, one in enumerate(parameters):
        for j in range(i, len(parameters)):
            two = parameters[j]
            if one.atom != two.atom:
                continue
            pairs.append((i, j))
            double = one is two
            labels.append(f"∂²p/∂{one.name}²/2" if double else f"∂²p/∂{one.name}∂{two.name}")
            columns.append(point.second(one, two))
    relations = find_relations(columns)
    null = relations.null_space
    P, n_first = len(parameters), len(first.columns)
    matrices = np.zeros((null.shape[1], P, P))
    for (i, j), weights in zip(pairs, null[n_first:], strict=True):
        matrices[:, i, j] = weights
        matrices[:, j, i] = weights
    return Moments(tuple(atoms), parameters, labels, columns, relations, _orthonormal(matrices))


def _orthonormal(matrices: FloatArray) -> FloatArray:
    if not np.any(matrices):
        return matrices[:0]
    flat = matrices.reshape(len(matrices), -1)
    flat = flat[np.any(flat, axis=1)]
    if not flat.size:
        return matrices[:0]
    _, s, vt = np.linalg.svd(flat, full_matrices=False)
    rank = int(np.sum(s > 1e-12 * s[0]))
    return vt[:rank].reshape(-1, *matrices.shape[1:])
