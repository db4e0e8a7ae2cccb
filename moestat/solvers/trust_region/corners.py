"""The kinks of one location, which cut its range into cells, and the best cell of a quadratic."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, compile_loop, device


@compile_loop
def best_cell(edge, kink_slope, offset, origin, low, high, slope, curvature):
    """Minimise ``slope u + curvature u^2 / 2 - kinks(u)`` over low <= origin + u <= high.

    The kinks add ``kink_slope[q] u + offset[q]`` to the log-likelihood in cell q, from ``edge[q]``
    to ``edge[q + 1]``.  Returns the value and the location.
    """
    best = 0.0
    location = origin
    for q in range(kink_slope.size):
        left = max(edge[q], low)
        right = min(edge[q + 1], high)
        if left > right:
            continue
        total = slope - kink_slope[q]
        if curvature > 0.0:
            point = min(max(origin - total / curvature, left), right)
        else:
            middle = 0.5 * (left + right) - origin
            point = right if total + curvature * middle < 0.0 else left
        u = point - origin
        value = (total + 0.5 * curvature * u) * u - offset[q]
        if value < best:
            best = value
            location = point
    return best, location


@device(forceinline=False)
@compact
def _count_below(edge, begin, m, place, also):
    """Number of the m edges from `begin` on that are below `place`, or with `also` equal to it."""
    low, high = 0, m
    while low < high:
        middle = (low + high) // 2
        value = edge[begin + middle]
        if value < place or (also and value == place):
            low = middle + 1
        else:
            high = middle
    return low


@device(forceinline=False)
@compact
def cell_at(edge, kink_slope, first, begin, cells, place, slope):
    """Which of the cells of a location, from `first` on, holds a place.

    On an edge it is the cell into which the model decreases; its edges begin at `begin`.
    """
    right = first + _count_below(edge, begin + 1, cells - 1, place, True)
    if slope < kink_slope[right]:
        return right
    return first + _count_below(edge, begin + 1, cells - 1, place, False)


class Cell(NamedTuple):
    """A closed cell of one location, and what the kinks add in it: ``kink_slope u + offset``."""

    low: float
    high: float
    kink_slope: float
    offset: float


class Corners:
    """The kinks of one location around its present place, the origin.

    Between `low` and `high` are the samples x (m,) in order; `half` (m,) are the S of these, halves
    of the jumps of the log-likelihood's derivative.
    """

    def __init__(
        self, origin: float, low: float, high: float, x: FloatArray, half: FloatArray
    ) -> None:
        self.origin = origin
        self.x = x
        if x.size == 0:
            self.edge, self.at_origin = np.array([low, high]), 0.0
            self.kink_slope = self.offset = np.zeros(1)
            return
        self.edge = np.concatenate([[low], x, [high]])
        passed = np.concatenate([[0.0], np.cumsum(half)])
        moment = np.concatenate([[0.0], np.cumsum(half * (x - origin))])
        first, last = x.searchsorted(origin, "left"), x.searchsorted(origin, "right")
        self.at_origin = float(passed[last] - passed[first])
        """S of the samples at the place itself, whose derivative counts as 0 there."""
        self.kink_slope = 2.0 * (passed - passed[last]) + self.at_origin
        self.offset = -2.0 * (moment - moment[last])

    def best(self, slope: float, curvature: float, radius: float) -> float:
        """Place of the lowest value within the radius, see `best_cell`."""
        low, high = self.origin - radius, self.origin + radius
        first = max(int(self.x.searchsorted(low, "left")) - 1, 0)
        last = min(int(self.x.searchsorted(high, "right")) + 1, self.x.size)
        return best_cell(
            self.edge[first : last + 2],
            self.kink_slope[first : last + 1],
            self.offset[first : last + 1],
            self.origin,
            low,
            high,
            slope,
            curvature,
        )[1]

    def added(self, place: float) -> tuple[float, float]:
        """What the kinks add to the log-likelihood at a place, and its slope there.

        On a sample the slope is the mean of both sides.
        """
        left = int(self.x.searchsorted(place, "left"))
        right = int(self.x.searchsorted(place, "right"))
        value = self.kink_slope[left] * (place - self.origin) + self.offset[left]
        return float(value), float(0.5 * (self.kink_slope[left] + self.kink_slope[right]))

    def cell(self, place: float, slope: float) -> Cell:
        """The cell that holds a place; on an edge, the one into which the model decreases.

        `slope` is that of the model without kinks at the place.
        """
        q = cell_at(self.edge, self.kink_slope, 0, 0, self.kink_slope.size, place, slope)
        low, high = self.edge[q : q + 2]
        return Cell(float(low), float(high), float(self.kink_slope[q]), float(self.offset[q]))
