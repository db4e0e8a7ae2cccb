"""Labels of experts: which atom of one fit is which of another."""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.model.family import Family
from moestat.solvers.rules import TINY

__all__ = ["align"]


def align(
    family: Family, theta: FloatArray, reference: FloatArray, scale: FloatArray
) -> tuple[FloatArray, float]:
    """Packed parameters relabelled to be nearest to a reference.

    The labels are those of the cheapest transport between the two mixing measures: an atom moves as
    a whole, at the cost of its squared distance in units of `scale` (P,); parameters with the scale
    0 or NaN are left out.  Also returns the margin, the extra cost of the second best labels
    relative to their cost: near 0 labels are arbitrary, near 1 they are clear.
    """
    from scipy.optimize import linear_sum_assignment

    k = family.n_experts
    if k == 1 or family.told_apart:
        # Constraints of single experts say which is which.
        return family.pin(theta), 1.0
    weight = np.where(np.isfinite(scale) & (scale > 0.0), 1.0 / np.maximum(scale, TINY), 0.0)
    (reference_atoms, _), (unit, _) = family.split(reference), family.split(weight)
    atoms, shared = family.split(theta)
    ends: list[tuple[float, FloatArray]] = []
    costs: list[float] = []
    for last in range(k):
        # Translations are relative to the last atom: which one that is, is a label as well.
        order = np.append(np.delete(np.arange(k), last), last)
        permuted, _ = family.split(family.pin(family.join(atoms[order], shared)))
        gap = (permuted[:, None, :] - reference_atoms[None, :, :]) * unit
        cost = np.sum(gap**2, axis=2)
        rows, columns = linear_sum_assignment(cost[:-1, :-1])
        total = float(cost[rows, columns].sum() + cost[-1, -1])
        labels = np.full(k, k - 1)
        labels[columns] = rows
        ends.append((total, family.join(permuted[labels], shared)))
        costs += [total, *_exchanges(cost, rows, columns, total)]
    cheapest, aligned = min(ends, key=lambda end: end[0])
    second = sorted(costs)[1]
    return aligned, float(1.0 - cheapest / second) if second > 0.0 else 0.0


def _exchanges(cost: FloatArray, rows: IntArray, columns: IntArray, total: float) -> list[float]:
    """Costs of the labels that differ by one exchange from the cheapest ones."""
    return [
        total
        + float(cost[rows[i], columns[j]] + cost[rows[j], columns[i]])
        - float(cost[rows[i], columns[i]] + cost[rows[j], columns[j]])
        for i in range(len(rows))
        for j in range(i)
    ]
