"""Sums over Voronoi cells, atom by atom, for the references of losses.

The reference of a loss is its printed formula in plain NumPy for given cells, without the search
for translations or factors.  Tests compare the engine with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import FloatArray, IntArray
from moestat.model.measure import MixingMeasure

Cost = Callable[[Mapping[str, FloatArray], int], float]


def norm(gap: ArrayLike) -> float:
    """Euclidean norm of all entries."""
    return float(np.sqrt(np.sum(np.square(gap))))


def _gaps(
    estimate: MixingMeasure, truth: MixingMeasure, i: SupportsIndex, j: int
) -> dict[str, FloatArray]:
    """Estimate less truth in each block, ``W`` for all blocks of the expert and ``log mass``."""
    gaps: dict[str, FloatArray] = {
        name: block[i] - truth.atoms[name][j] for name, block in estimate.atoms.items()
    }
    gaps["log mass"] = np.log(estimate.masses[i]) - np.log(truth.masses[j])
    gaps["W"] = np.concatenate([np.ravel(gaps[name]) for name in truth.expert_blocks] or [[]])
    return gaps


def cell_sums(
    estimate: MixingMeasure, truth: MixingMeasure, cells: IntArray, cost: Cost
) -> FloatArray:
    """``sum_(i in A_j) cost(gaps_ij, |A_j|)`` of each cell A_j, shape (k*,)."""
    sums = np.zeros(truth.n_atoms)
    for j in range(truth.n_atoms):
        members = np.flatnonzero(cells == j)
        sums[j] = sum(cost(_gaps(estimate, truth, i, j), members.size) for i in members)
    return sums


def weighted_sum(
    estimate: MixingMeasure, truth: MixingMeasure, cells: IntArray, cost: Cost
) -> float:
    """``sum_j |sum_(i in A_j) m_i - m*_j| + sum_j sum_(i in A_j) m_i cost(gaps_ij, |A_j|)``."""
    total = 0.0
    for j in range(truth.n_atoms):
        members = np.flatnonzero(cells == j)
        total += abs(estimate.masses[members].sum() - truth.masses[j])
        for i in members:
            total += estimate.masses[i] * cost(_gaps(estimate, truth, i, j), members.size)
    return total
