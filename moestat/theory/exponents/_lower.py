"""Lower bounds by Le Cam's two points: the truth, and a measure that the search found near it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from moestat.model.family import Family
from moestat.theory.exponents._distance import IN_FLOATS, hellinger_to
from moestat.theory.exponents._family import heat_block
from moestat.theory.exponents._orders import nodes_apart
from moestat.theory.exponents._search import Configuration, Ladder, is_near
from moestat.theory.exponents._series import fixed
from moestat.theory.exponents._work import PROVED, Analysis, Rate, search_point

__all__ = ["LowerBound", "lower_bound"]

_OPPOSITE, _NODES = 1e-2, 0.2
"""Deviations of the pairs that need no search, of nodes in standard deviations: the distance is of
its order there, and in reach of float64.  With half or twice of them, constants of seven blocks
move by 1% at most."""
_NEAR = 0.1
"""A pair that is farther apart says nothing of small deviations."""


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
    bounds = [
        _of_ladder(found, row, ladder)
        for cell, block, ladder in found.ladders
        if block == row.block and cell in (row.cell, "2")
    ]
    bounds += list(_of_opposites(found, row)) if row.r == 2.0 else []
    bounds += list(_of_quadrature(found, row)) if row.status == PROVED else []
    return max((b for b in bounds if b is not None), key=lambda b: b.constant, default=None)


def _of_opposites(found: Analysis, row: Rate) -> Iterator[LowerBound]:
    """Two opposite displacements in a cell of two, which are a pair for larger cells, too."""
    if row.block not in found.opposites:
        found.opposites[row.block] = list(_opposites(found, row.block))
    return (_bound(row, row.r, C) for C in found.opposites[row.block])


def _opposites(found: Analysis, block: str) -> Iterator[float]:
    """The distance of two opposite displacements over the square of the block's, cell by cell.

    First derivatives make up for what they can.
    """
    for atoms, moments in found.second.items():
        least = moments.cheapest(block) if len(atoms) == 1 else None
        if least is None or found.first is None:
            continue
        (j,), v, h = atoms, least[1], _OPPOSITE
        cells = _cells(found.family, 2, j)
        point = search_point(found, cells)
        values = [point.values.copy() for _ in cells]
        for p, step in zip(moments.parameters, v, strict=True):
            for i, sign in enumerate((1.0, -1.0)):
                values[i][p.position] += fixed(sign * h * float(step))
        masses: dict[int, int] = {}
        for p, step in zip(found.first.parameters, moments.made_up(v), strict=True):
            change = fixed(h * h * float(step))
            if isinstance(p, int):
                masses[p] = change
                continue
            for own, cell in zip(values, cells, strict=True):
                if p.atom in (cell, -1):
                    own[p.position] += change
        at = Configuration(cells, values, [0] * len(cells), masses)
        distance = hellinger_to(found.family, found.theta, found.design, at)
        if IN_FLOATS < distance < _NEAR:
            yield distance / h**2


def _of_quadrature(found: Analysis, row: Rate) -> Iterator[LowerBound]:
    """Intercepts at Gauss-Hermite nodes, which match the moments of one normal atom."""
    family, size = found.family, int(row.cell.split(",")[0])
    if row.block != heat_block(family) or row.r != 2.0 * size:
        return
    for j in range(family.n_experts):
        cells = _cells(family, size, j)
        point = search_point(found, cells)
        nu = np.ravel(family.blocks[family.likelihood.channels[-1].intercept])[j]
        h = _NODES * math.exp(0.5 * float(found.theta[nu]))
        pair = nodes_apart(point, cells, j, row.block, h)
        distance = hellinger_to(family, found.theta, found.design, pair)
        if IN_FLOATS < distance < _NEAR:
            yield _bound(row, row.r, distance / h**row.r)


def _cells(family: Family, size: int, j: int) -> list[int]:
    return [j] * size + [i for i in range(family.n_experts) if i != j]


def _of_ladder(found: Analysis, row: Rate, ladder: Ladder) -> LowerBound | None:
    """The bound of the smallest deviation whose distance float64 holds, if r is seen there."""
    pairs = list(zip(ladder.slopes, ladder.deviations[1:], ladder.steps[1:], strict=True))
    for slope, h, step in reversed(pairs):
        if not is_near(slope, row.r):
            continue
        distance = hellinger_to(found.family, found.theta, found.design, step)
        if distance > IN_FLOATS:
            return _bound(row, row.r, distance / h**row.r)
    return None


def _bound(row: Rate, r: float, C: float) -> LowerBound:
    x = np.geomspace(1e-4, 1.0, 400)
    value = 0.25 * (x / C**2) ** (0.5 / r) * (1.0 - np.sqrt(-np.expm1(-2.0 * x)))
    return LowerBound(row.block, row.cell, r, float(value.max()), C)
