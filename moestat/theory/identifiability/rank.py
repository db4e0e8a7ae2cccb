"""Numerical rank of functions on a design, with the gap that the decision rests on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from moestat.base.types import FloatArray

_CLEAR = 1e3
_GAP = 30.0
_SMALL = 1e-6
_ROUNDING = 2e-16


@dataclass(frozen=True)
class Rank:
    """Rank of a matrix whose columns are functions on a design."""

    rank: int
    n_functions: int
    """Number of independent functions, and of functions."""
    gap: float
    """Smallest singular value that counts as positive over the largest that counts as zero, columns
    scaled to length 1; of a matrix of full rank, over the rounding error."""
    null_space: FloatArray = field(repr=False)
    """An orthonormal basis (n_functions, n_functions - rank) of the dependencies, in the scaled
    columns."""
    scale: FloatArray = field(repr=False)
    """Lengths (n_functions,) of the columns; 0 for a function that vanishes."""

    @property
    def nullity(self) -> int:
        """Number of independent dependencies."""
        return self.n_functions - self.rank

    def relations(self) -> FloatArray:
        """Vectors (n_functions, k) that span the dependencies, in the columns themselves.

        Null vectors are known up to one over the gap (Wedin (1972)): smaller coefficients are 0.
        """
        nonzero = self.scale > 0.0
        known = np.where(np.abs(self.null_space) > 1.0 / self.gap, self.null_space, 0.0)
        null = known / np.where(nonzero, self.scale, 1.0)[:, None]
        zeros = np.eye(self.n_functions)[:, ~nonzero]
        return np.column_stack([np.where(nonzero[:, None], null, 0.0), zeros])

    @property
    def clear(self) -> bool:
        """Whether the gap is above 1000."""
        return self.gap >= _CLEAR

    def __str__(self) -> str:
        doubt = "" if self.clear else " (not clear)"
        return f"rank {self.rank} of {self.n_functions}, gap {self.gap:.1e}{doubt}"


def numerical_rank(columns: FloatArray) -> Rank:
    """Rank of the columns (n, q) by singular values, each column scaled to length 1.

    Singular values of smooth functions fall off without a gap, those of dependencies are rounding
    errors: the rank is where the last gap of 30 lies among those below 1e-6 of the largest.  A
    column is zero when it is below 1e-13 of the largest one.
    """
    scale = np.sqrt(np.sum(columns**2, axis=0))
    scale[scale <= 1e-13 * scale.max(initial=0.0)] = 0.0
    R = np.linalg.qr(unit_columns(columns, scale), mode="r")
    _, singular, vectors = np.linalg.svd(R)
    if not singular[0] > 0.0:
        return Rank(0, columns.shape[1], np.inf, vectors.T, scale)
    last, gap = last_gap(singular, _ROUNDING, _GAP)
    return Rank(last + 1, columns.shape[1], gap, vectors[last + 1 :].T, scale)


def unit_columns(columns: FloatArray, scale: FloatArray) -> FloatArray:
    """Columns (n, q) over their lengths (q,), zeros where a length is 0."""
    return np.where(scale > 0.0, columns / np.where(scale > 0.0, scale, 1.0), 0.0)


def last_gap(singular: FloatArray, rounding: float, least: float) -> tuple[int, float]:
    """Place of the last singular value before the last gap among small ones, and that gap.

    Full rank competes as a gap down to the rounding error.
    """
    values = np.maximum(singular / singular[0], rounding)
    below = np.append(values[1:], rounding)
    gaps = np.flatnonzero((values / below >= least) & (below <= _SMALL))
    last = int(gaps[-1]) if gaps.size else values.size - 1
    return last, float(values[last] / below[last])
