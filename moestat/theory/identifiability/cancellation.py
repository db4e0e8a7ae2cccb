"""Whether atoms that merge can cancel a function to second order.

Let atoms of masses m_i and displacements D_i sit in one Voronoi cell.  To second order the
difference of the functions is ``v . (first derivatives) + (1/2) M . (second derivatives)``, and a
multiple of the function itself where masses are free, with any v and any positive semidefinite
``M = sum m_i D_i D_i'``.  A loss with the squares ``|D_i|^2`` is therefore bounded by the
function's change, locally and in this cell, exactly when no linear relation among the derivatives
has a positive semidefinite, non-zero second-order part.  A relation among mixed derivatives alone
does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import orth

from moestat.base.types import FloatArray
from moestat.metrics.information import named_basis
from moestat.theory.identifiability.derivatives import Term

_TOLERANCE = 1e-7
_ROUNDS = 3000
_APART = 1e-3  # distance of span and cone that counts as settled


@dataclass(frozen=True)
class Cancellation:
    """A positive semidefinite second-order part of a relation, or why there is none."""

    status: str
    """``"none"``, ``"found"`` or ``"undecided"``: from the numerical null space, by which rows can
    differ from 0 and by alternating projections."""
    directions: FloatArray = field(repr=False)
    """A basis (r, p) of the displacements that take part, as rows."""
    names: tuple[str, ...] = field(repr=False)
    """Names of the p parameters."""

    def __str__(self) -> str:
        if self.status == "none":
            return "no displacements of merging atoms cancel to second order"
        if self.status == "undecided":
            return "whether displacements of merging atoms cancel to second order is undecided"
        parts = [
            ", ".join(
                f"{v:+.3g} {n}" for v, n in zip(row, self.names, strict=True) if abs(v) > 1e-6
            )
            for row in self.directions
        ]
        return f"displacements of merging atoms cancel to second order along: {'; '.join(parts)}"


def find_cancellation(
    terms: Sequence[Term],
    null_space: FloatArray,
    names: Sequence[str],
    shared: Sequence[int] = (),
) -> Cancellation:
    """A non-zero positive semidefinite second-order part in the span of the relations.

    The columns of `null_space` (n_functions, k) are a basis of the relations of `terms`.  Of the
    parameters, those in `shared` are shared by all atoms and do not differ within a cell.
    """
    p = len(names)
    none = np.zeros((0, p))
    matrices = np.zeros((null_space.shape[1], p, p))
    for term, weights in zip(terms, null_space, strict=True):
        if len(term.at) == 2:
            j, k = term.at
            # The expansion has d_j d_k with M_jk, but d_j d_j with M_jj / 2.
            matrices[:, j, k] += 2.0 * weights if j == k else weights
            matrices[:, k, j] = matrices[:, j, k]
    matrices = _face(_basis(matrices), shared)
    if matrices.shape[0] == 0:
        return Cancellation("none", none, tuple(names))
    matrix, gap = _semidefinite(matrices)
    if matrix is None:
        return Cancellation("none" if gap > _APART else "undecided", none, tuple(names))
    values, vectors = np.linalg.eigh(matrix)
    used = values > 1e-4 * values[-1]
    return Cancellation("found", named_basis(vectors[:, used]).T, tuple(names))


def _basis(matrices: FloatArray) -> FloatArray:
    """An orthonormal basis of the span of matrices (k, p, p)."""
    if not np.any(matrices):
        return matrices[:0]
    flat = matrices.reshape(matrices.shape[0], -1)
    return orth(flat.T, rcond=_TOLERANCE).T.reshape(-1, *matrices.shape[1:])


def _face(matrices: FloatArray, shared: Sequence[int]) -> FloatArray:
    """Those members of the span whose rows without any diagonal entry vanish."""
    while matrices.shape[0]:
        diagonal = np.abs(np.einsum("ijj->ij", matrices)).max(axis=0)
        dead = sorted({*np.flatnonzero(diagonal < _TOLERANCE).tolist(), *shared})
        rows = matrices[:, dead, :].reshape(matrices.shape[0], -1)
        if not dead or np.abs(rows).max() < _TOLERANCE:
            return matrices
        _, singular, vectors = np.linalg.svd(rows.T)
        rank = int(np.sum(singular > _TOLERANCE))
        matrices = _basis(np.einsum("ki,ijl->kjl", vectors[rank:], matrices))
    return matrices


def _semidefinite(matrices: FloatArray) -> tuple[FloatArray | None, float]:
    """A member of the span with trace 1 in the cone, by alternating projections, or the gap.

    Where projections stop a distance apart, the step between them separates span and cone.
    """
    traces = np.einsum("ijj->i", matrices)
    if np.linalg.norm(traces) < _TOLERANCE:
        # Of the cone only 0 has trace 0.
        return None, np.inf
    gap = 0.0
    weights = traces / (traces @ traces)
    for _ in range(_ROUNDS):
        member = np.einsum("i,ijk->jk", weights, matrices)
        values, vectors = np.linalg.eigh(member)
        if values[0] > -1e-9:
            return member, 0.0
        cone = (vectors * np.maximum(values, 0.0)) @ vectors.T
        gap = float(np.linalg.norm(cone - member))
        weights = np.einsum("ijk,jk->i", matrices, cone)
        weights += traces * (1.0 - traces @ weights) / (traces @ traces)
    return None, gap
