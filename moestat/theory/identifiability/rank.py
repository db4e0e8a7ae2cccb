"""Numerical rank of functions on a design, with the gap that the decision rests on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from moestat._types import FloatArray

__all__ = ["Rank", "numerical_rank"]

_CLEAR = 1e3


@dataclass(frozen=True)
class Rank:
    """Rank of a matrix whose columns are functions on a design.

    Parameters
    ----------
    rank, n_functions : int
        Number of independent functions, and of functions.
    gap : float
        Smallest singular value that counts as positive over the largest that counts as zero,
        columns scaled to length 1; of a matrix of full rank, over the rounding error.
    null_space : ndarray of shape (n_functions, n_functions - rank)
        An orthonormal basis of the dependencies, in the scaled columns.
    scale : ndarray of shape (n_functions,)
        Lengths of the columns; 0 for a function that vanishes.
    """

    rank: int
    n_functions: int
    gap: float
    null_space: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)

    @property
    def nullity(self) -> int:
        """Number of independent dependencies."""
        return self.n_functions - self.rank

    @property
    def clear(self) -> bool:
        """Whether the gap is above 1000."""
        return self.gap >= _CLEAR

    def __str__(self) -> str:
        doubt = "" if self.clear else " (not clear)"
        return f"rank {self.rank} of {self.n_functions}, gap {self.gap:.1e}{doubt}"


def numerical_rank(columns: FloatArray, tolerance: float = 1e-10) -> Rank:
    """Rank of the columns (n, q) by singular values, each column scaled to length 1.

    Singular values below `tolerance` times the largest count as zero.  A column is zero when it
    is below 1e-13 of the largest one.
    """
    scale = np.sqrt(np.sum(columns**2, axis=0))
    scale[scale <= 1e-13 * scale.max(initial=0.0)] = 0.0
    scaled = np.where(scale > 0.0, columns / np.where(scale > 0.0, scale, 1.0), 0.0)
    _, singular, vectors = np.linalg.svd(np.linalg.qr(scaled, mode="r"))
    rounding = np.finfo(float).eps * singular[0]
    rank = int(np.sum(singular > tolerance * singular[0]))
    largest = max(singular[rank], rounding) if rank < singular.size else rounding
    gap = float(singular[rank - 1] / largest) if rank else np.inf
    return Rank(rank, columns.shape[1], gap, vectors[rank:].T, scale)
