"""Cells of several atoms: can displacements cancel to second order, and by which relation?"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray
from moestat.theory.exponents._cells import Moments, second_order, write
from moestat.theory.exponents._work import Work

__all__ = ["factor", "moments_of", "relation_of"]


def moments_of(work: Work, atoms: tuple[int, ...]) -> Moments:
    found = work.found
    if atoms not in found.second:
        assert found.first is not None
        assert found.point is not None
        named = ", ".join(str(atom + 1) for atom in atoms)
        work.report(f"second derivatives, cells of true atom{'s' * (len(atoms) > 1)} {named}")
        found.second[atoms] = second_order(found.point, found.first, atoms)
    return found.second[atoms]


def relation_of(moments: Moments, M: FloatArray) -> str:
    """The relation whose second-order part is M, written out."""
    pairs = [
        (i, j)
        for i, one in enumerate(moments.parameters)
        for j in range(i, len(moments.parameters))
        if one.atom == moments.parameters[j].atom
    ]
    n_first = len(moments.columns) - len(pairs)
    null = moments.relations.null_space
    target = np.array([M[i, j] for i, j in pairs])
    weights, *_ = np.linalg.lstsq(null[n_first:], target, rcond=None)
    vector = null @ weights
    vector[np.abs(vector) < 1e-6 * np.abs(vector).max()] = 0.0
    order = [*range(n_first, vector.size), *range(n_first)]
    return str(write(vector[order], [moments.labels[k] for k in order]))


def factor(moments: Moments, M: FloatArray, j: int) -> FloatArray:
    """Displacements (p, rank) whose products are those of atom j in M."""
    on = np.flatnonzero([p.atom == j for p in moments.parameters])
    values, vectors = np.linalg.eigh(M[np.ix_(on, on)])
    used = values > 1e-7
    return vectors[:, used] * np.sqrt(values[used]) if used.any() else np.zeros((on.size, 1))
