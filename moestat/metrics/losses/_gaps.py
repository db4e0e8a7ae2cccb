"""Differences of fitted and true atoms, each pair at the best of its expert's symmetries."""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.model.measure import MixingMeasure


def linear_sum_assignment(cost: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows and columns of the assignment with the smallest sum (Crouse 2016, in SciPy)."""
    from scipy.optimize import linear_sum_assignment as assigned  # half a second to import

    return assigned(cost)


def pair_gaps(estimate: MixingMeasure, truth: MixingMeasure) -> dict[str, FloatArray]:
    """Estimate less truth in every block, shape (k, k*, ...).

    Hidden units of a fitted atom are matched to those of the true atom, and signs that do not
    matter are chosen, so that the Euclidean distance in all blocks is least for every pair.
    """
    gaps = {
        name: block[:, None] - truth.atoms[name][None] for name, block in estimate.atoms.items()
    }
    symmetry = estimate.symmetry
    names = tuple(dict.fromkeys((*symmetry.units, *symmetry.flips)))
    if not names:
        return gaps
    n_units = truth.atoms[symmetry.units[0]].shape[1] if symmetry.units else 1

    def rows(measure: MixingMeasure) -> FloatArray:
        """Units (., H, w) of each atom, blocks side by side."""
        parts = [measure.atoms[name].reshape(measure.n_atoms, n_units, -1) for name in names]
        return np.concatenate(parts, axis=-1)

    fitted, true = rows(estimate), rows(truth)
    widths = [truth.atoms[name][0].size // n_units for name in names]
    signs = [np.ones(fitted.shape[-1])]
    if symmetry.flips:
        signs.append(np.repeat([-1.0 if name in symmetry.flips else 1.0 for name in names], widths))
    # Axes: sign, fitted atom, true atom, fitted unit, true unit, coordinate.
    choices = np.stack([sign * fitted[:, None, :, None] - true[None, :, None] for sign in signs])
    squares = np.sum(choices**2, axis=-1)
    sign = np.argmin(squares, axis=0)
    units = np.take_along_axis(choices, sign[None, ..., None], axis=0)[0]
    squares = np.min(squares, axis=0)
    matched = np.empty((*squares.shape[:2], n_units, fitted.shape[-1]))
    for i, j in np.ndindex(*squares.shape[:2]):
        fitted_unit, true_unit = linear_sum_assignment(squares[i, j])
        matched[i, j, true_unit] = units[i, j, fitted_unit, true_unit]
    for name, part in zip(names, np.split(matched, np.cumsum(widths)[:-1], axis=-1), strict=True):
        gaps[name] = part.reshape(gaps[name].shape)
    return gaps
