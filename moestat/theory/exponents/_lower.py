"""Lower bounds by Le Cam's two points: the truth, and a measure that the search found near it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.family import Family
from moestat.theory.explorer._nodes import make_nodes
from moestat.theory.exponents._search import Configuration, Ladder, is_near
from moestat.theory.exponents._series import to_floats
from moestat.theory.exponents._work import Analysis, Rate

__all__ = ["LowerBound", "lower_bound"]

_NODES = 48
"""Inputs at which the Hellinger distance is taken: the functions are smooth among them."""
_IN_FLOATS = 1e-11
"""Below this distance, rounding of float64 is more than a thousandth of it."""


@dataclass(frozen=True)
class LowerBound:
    """No estimator is better than ``constant n^(-1/(2 r))`` at both of two measures, for large n.

    The error of a block is the Hausdorff distance between the values that it takes in the fitted
    and in the true atoms of the cell.  Two measures at the distance s in it with the Hellinger
    distance ``H = C s^r`` have samples whose laws have a total variation of at most
    ``(1 - (1 - H^2)^(2 n))^(1/2)``, so that the larger of the two expected errors is at least
    ``s / 4`` times one minus that; s is chosen for each n.
    """

    block: str
    cell: str
    r: float
    constant: float
    hellinger: float
    """C: the Hellinger distance of the two measures over ``s^r``."""

    def __str__(self) -> str:
        power = f"1/{2.0 * self.r:g}" if self.r != 0.5 else "1"
        return f"{self.block} ({self.cell}): at least {self.constant:.2g} n^(-{power})"


def lower_bound(found: Analysis, row: Rate) -> LowerBound | None:
    """The lower bound of a row; None where no pair of measures is known.

    A pair in cells of two atoms is one in larger cells, too: an atom is two equal ones.
    """
    if not math.isfinite(row.r) or row.block == "mass":
        return None
    if row.cell == "1":
        if row.r != 1.0 or not math.isfinite(row.n_for):
            return None
        # The error of size s along the worst direction has H^2 = s^2 / (8 v), v = .01 n_for.
        return _bound(row, 1.0, 1.0 / math.sqrt(0.08 * row.n_for))
    best: LowerBound | None = None
    for cell, block, ladder in found.ladders:
        if block != row.block or cell not in (row.cell, "2"):
            continue
        one = _of_ladder(found, row, ladder)
        if one is not None and (best is None or (one.r, one.constant) > (best.r, best.constant)):
            best = one
    return best


def _of_ladder(found: Analysis, row: Rate, ladder: Ladder) -> LowerBound | None:
    """The bound of the smallest deviation whose distance float64 holds, if r is seen there."""
    pairs = list(zip(ladder.slopes, ladder.deviations[1:], ladder.steps[1:], strict=True))
    for slope, h, step in reversed(pairs):
        if not is_near(slope, row.r):
            continue
        distance = _hellinger(found, step)
        if distance > _IN_FLOATS:
            return _bound(row, row.r, distance / h**row.r)
    return None


def _bound(row: Rate, r: float, C: float) -> LowerBound:
    x = np.geomspace(1e-4, 1.0, 400)
    value = 0.25 * (x / C**2) ** (0.5 / r) * (1.0 - np.sqrt(-np.expm1(-2.0 * x)))
    return LowerBound(row.block, row.cell, r, float(value.max()), C)


def _hellinger(found: Analysis, at: Configuration) -> float:
    """Between the truth and some fitted atoms; of functions with noise of variance 1, its limit."""
    family = found.family
    fitted = family.with_experts(len(at.cells))
    theta = _packed(family, fitted, found.theta, at)
    nodes = make_nodes(family, found.theta, found.design, _NODES)
    X = nodes.X.T
    if family.is_regression:
        gap = fitted.regression(theta, X)[0] - family.regression(found.theta, X)[0]
        return float(np.sqrt(nodes.mass @ gap[: nodes.mass.size] ** 2 / 8.0))
    y = family.likelihood.decode(nodes.y)
    own = family.log_density(found.theta, X, y)
    half = np.expm1(0.5 * (fitted.log_density(theta, X, y) - own))
    weight = nodes.mass[nodes.owner] * nodes.weight * np.exp(own)
    return float(np.sqrt(0.5 * np.sum(weight * half**2)))


def _packed(family: Family, fitted: Family, truth: FloatArray, at: Configuration) -> FloatArray:
    """The fitted atoms as packed parameters, references at their values."""
    theta = np.zeros(fitted.n_params)
    mass = family.gate.mass if family.gate.normalised else None
    logs = to_floats(np.array(at.logs(), dtype=object)) if mass else np.zeros(len(at.cells))
    for i, (j, values) in enumerate(zip(at.cells, at.values, strict=True)):
        numbers = to_floats(values)
        for c, channel in enumerate(family.channels):
            width = int(family.width[c])
            own = int(family.index[j, c]) + np.arange(width)
            new = int(fitted.index[i, c]) + np.arange(width)
            theta[new] = numbers[own]
            if c < family.layout[0] and channel.intercept == mass:
                theta[new[0]] = truth[own[0]] + logs[i]
    for name in family.gate.translations:
        if name in fitted.blocks:
            at_block = np.reshape(fitted.blocks[name], (len(at.cells), -1))
            theta[at_block] -= theta[at_block[-1]]
    return theta
