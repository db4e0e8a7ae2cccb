"""Linear relations among columns in fixed point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray
from moestat.theory.exponents._series import BITS, ONE, Integers, to_floats

__all__ = ["Relations", "find_relations", "solve"]

_ZERO = BITS * 3 // 5
"""A pivot below ``2^-192``, 57 digits, is 0.  Pivots that are 0 came out at 2^-314 at most, others
at 2^-53 at least, and at 2^-100 at a truth 1e-6 off an exceptional set."""
_CLEAR = BITS * 2 // 5
"""Any other one must be above ``2^-128``, 38 digits; between them nothing is decided."""


@dataclass(frozen=True)
class Relations:
    """Which columns depend on earlier ones."""

    pivots: list[int]
    rows: list[int]
    """Sample at which each pivot was found."""
    dependent: list[int]
    coefficients: FloatArray
    """(n_pivots, n_dependent): each dependent column as a sum of the pivots."""
    clear: bool
    """Whether every pivot is either above 38 digits or below 57."""
    least: float
    """Least pivot that is not 0, relative to columns of length 1: below 1e-6 the truth is close to
    one with one more relation, or the inputs are narrow."""

    @property
    def null_space(self) -> FloatArray:
        """Vectors (n_columns, n_dependent) of coefficients that add the columns up to 0."""
        n = len(self.pivots) + len(self.dependent)
        out = np.zeros((n, len(self.dependent)))
        out[self.pivots] = -self.coefficients
        out[self.dependent, np.arange(len(self.dependent))] = 1.0
        return out


def find_relations(columns: list[Integers]) -> Relations:
    """Row-echelon form of the columns, each scaled to a largest entry of 1."""
    scales = [max(int(np.max(np.abs(column))), 0) for column in columns]
    largest = max(scales)
    A = np.stack(
        [
            (column << BITS) // scale if scale > (largest >> _ZERO) else 0 * column
            for column, scale in zip(columns, scales, strict=True)
        ],
        axis=1,
    )
    pivots: list[int] = []
    dependent: list[int] = []
    order = np.arange(A.shape[0])
    clear, least, row = True, float("inf"), 0
    for j in range(A.shape[1]):
        below = np.abs(A[row:, j]) if row < A.shape[0] else np.zeros(1, dtype=object)
        at = int(np.argmax(below))
        size = int(below[at])
        if size <= ONE >> _ZERO:
            dependent.append(j)
            continue
        clear &= size > ONE >> _CLEAR
        least = min(least, float(to_floats(np.array([size], dtype=object))[0]))
        if at:
            A[[row, row + at]] = A[[row + at, row]]
            order[[row, row + at]] = order[[row + at, row]]
        A[row, j:] = (A[row, j:] << BITS) // A[row, j]
        others = np.array([i for i in range(A.shape[0]) if i != row and A[i, j]])
        if others.size:
            factors = A[others, j]
            A[others, j:] = A[others, j:] - ((factors[:, None] * A[row, j:][None, :]) >> BITS)
        pivots.append(j)
        row += 1
    T = np.zeros((len(pivots), len(dependent)))
    for k, j in enumerate(dependent):
        if not scales[j] > (largest >> _ZERO):
            continue
        for i, p in enumerate(pivots):
            value = (int(A[i, j]) * scales[j]) // scales[p] if p < j else 0
            T[i, k] = 0.0 if abs(value) < ONE >> _CLEAR else _float(value)
    return Relations(pivots, order[:row].tolist(), dependent, T, clear, least)


def _float(value: int) -> float:
    return float(to_floats(np.array([value], dtype=object))[0])


def solve(A: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Solution of a square system in fixed point, by elimination; None where it is singular."""
    n = len(b)
    M = np.concatenate([A, b[:, None]], axis=1)
    for j in range(n):
        at = j + int(np.argmax(np.abs(M[j:, j])))
        if M[at, j] == 0:
            return None
        if at != j:
            M[[j, at]] = M[[at, j]]
        factors = (M[j + 1 :, j] << BITS) // M[j, j]
        M[j + 1 :, j:] = M[j + 1 :, j:] - ((factors[:, None] * M[j, j:][None, :]) >> BITS)
    x = np.zeros(n, dtype=object)
    for j in reversed(range(n)):
        rest = M[j, n] - (int(np.sum(M[j, j + 1 : n] * x[j + 1 :])) >> BITS if j + 1 < n else 0)
        x[j] = (rest << BITS) // M[j, j]
    return x
