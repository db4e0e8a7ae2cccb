"""The errors of a Voronoi loss cell by cell, free of masses and exponents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from moestat.metrics.losses._engine import block_cost, check_measures, scaled, term_gaps
from moestat.metrics.losses._loss import BlockTerm, VoronoiResult
from moestat.model.measure import MixingMeasure


@dataclass(frozen=True)
class CellErrors:
    """How far the fitted atoms in the cell of one true atom are from it."""

    size: int
    """Number of fitted atoms in the cell."""
    mass_error: float
    """``|sum_(i in A_j) m_i - m*_j|``, with the estimate's masses scaled to the truth's total
    unless the loss takes them as given; 0 for a loss without masses."""
    errors: Mapping[str, float]
    """For each block that the loss scores, the largest distance over the fitted atoms of the cell:
    a Euclidean norm for a vector, a sum of such norms over the classes.  A norm over all blocks
    of the expert is followed by the norm of each of them.  NaN where the cell is empty."""


def cell_errors(
    estimate: MixingMeasure, truth: MixingMeasure, result: VoronoiResult
) -> tuple[CellErrors, ...]:
    """Errors of masses and blocks in the Voronoi cell of each true atom.

    The theorems give one rate to cells of one atom and another to larger ones; these are the errors
    themselves, without the masses and exponents with which the loss adds them up.  The cells,
    translation and scale of `result` are applied.

    Notes
    -----
    Pham et al. (2026), after Theorem 1: ``max_(i in A_j) |dalpha_ij|``, and so on for every block.
    """
    loss, cells = result.loss, result.assignment
    check_measures(loss, estimate, truth)
    if (estimate.n_atoms, truth.n_atoms) != (cells.size, result.cell_sizes.size):
        raise ValueError(
            f"result is of {cells.size} fitted and {result.cell_sizes.size} true atoms, but the "
            f"measures have {estimate.n_atoms} and {truth.n_atoms}"
        )
    if loss.scaling is not None:
        estimate = scaled(estimate, loss.scaling.blocks, result.scale)
    distances = {}
    all_gaps = term_gaps(loss, estimate, truth)
    terms = []
    for term in loss.terms:
        terms.append(term)
        if term.joint:
            terms += [BlockTerm(name, all_gaps[name].ndim - 2) for name in truth.expert_blocks]
    for term in terms:
        gaps = all_gaps[term.block][np.arange(cells.size), cells]
        shift = result.translation.get(term.block)
        distances[term.block] = block_cost(term, gaps if shift is None else gaps - shift, 1.0)
    return tuple(
        CellErrors(
            size=int(size),
            mass_error=float(mass_error),
            errors={
                name: float(np.max(distance[cells == j])) if size else float("nan")
                for name, distance in distances.items()
            },
        )
        for j, (size, mass_error) in enumerate(
            zip(result.cell_sizes, result.mass_errors, strict=True)
        )
    )
