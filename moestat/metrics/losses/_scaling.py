"""Losses of an estimate whose density leaves a common factor free: which factor is taken.

The density of the inner-product gate depends on (alpha / tau, beta / tau) only, so that an
estimate stands for the whole ray ``(c alpha, c beta, c tau)``, c > 0.  A loss either keeps the
estimate as it is, or states in its data which factor it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.metrics.losses._problem import SIDE, TIE, Problem, nearest

_SPLIT = 16  # parts of a bracket per round of its refinement
_ROUNDS = 24
_TINY = 1e-150  # distances below are 0: their squares underflow


@dataclass(frozen=True)
class Orbit(Problem):
    """The moves ``c * estimate`` of the scaled blocks, c >= 0; `moving` belongs to c = 1.

    Between boundaries, factors where a fitted atom changes its cell, the loss is a sum of powers
    of distances to points on a ray, hence convex in c.
    """

    path: FloatArray  # (k, q): the scaled blocks of the estimate

    def gaps(self, t: FloatArray) -> FloatArray:
        """Estimate less truth in the scaled blocks, shape (S, k, k*, q), for factors (S, 1)."""
        return self.moving + (t - 1.0)[:, :, None, None] * self.path[:, None, :]

    def own_gaps(self, t: FloatArray, cells: IntArray) -> FloatArray:
        """Gaps to the own cell, shape (S, k, q), for factors that broadcast to that shape."""
        return self.moving[np.arange(self.masses.size), cells] + (t - 1.0) * self.path

    def cells(self, t: FloatArray) -> IntArray:
        """True atom nearest to each fitted atom, shape (S, k), for factors (S, 1)."""
        squares = self.squares(t)
        return nearest(squares, np.max(squares, axis=(1, 2), keepdims=True))

    def along(self, gaps: FloatArray) -> FloatArray:
        """Inner product of gaps (..., k, q) with the path, per block, (..., k, blocks)."""
        return np.add.reduceat(self.path * gaps, self.starts, axis=-1)

    def cap(self, value: float) -> float:
        """A factor above which single terms of the loss exceed `value`; inf if there is none."""
        true_norms = np.max(self.norms(self.path[:, None] - self.moving), axis=1)  # (k, blocks)
        reach = np.max(
            [(value / self.masses[:, None]) ** (1.0 / power) for power in self.exponents], axis=0
        )
        length = self.norms(self.path)
        real = length > _TINY
        return float(np.min((true_norms + reach)[real] / length[real], initial=np.inf))

    def boundaries(self, cap: float) -> tuple[FloatArray, FloatArray]:
        """The boundaries between 0 and `cap`, increasing, and a step that leads off each of them.

        The difference of the squared distances of a fitted atom to two true atoms is linear in
        c: it has one boundary at most.
        """
        first, second = np.triu_indices(self.true_masses.size, 1)
        squares = self.fixed_squares + np.sum(self.moving**2, axis=-1)
        level = squares[:, second] - squares[:, first]
        rise = 2.0 * np.sum(
            self.path[:, None] * (self.moving[:, first] - self.moving[:, second]), axis=-1
        )
        real = np.abs(rise) > TIE * self.scale**2
        boundary, rise = 1.0 + level[real] / rise[real], np.abs(rise[real])
        order = np.argsort(boundary)
        order = order[(boundary[order] > 0.0) & (boundary[order] < cap)]
        boundary, rise = boundary[order], rise[order]
        largest = np.max(self.squares(boundary[:, None]), axis=(1, 2))
        return boundary, SIDE * boundary + 4.0 * TIE * largest / rise

    def bounds(self, low: FloatArray, high: FloatArray, cells: IntArray) -> FloatArray:
        """Lower bound (S,) of the loss with fixed cells (S, k) on the intervals [low, high].

        Each term has the factor in the interval that makes it smallest.
        """
        length2 = self.along(self.path)
        along_gaps = self.along(self.own_gaps(np.ones(1), cells))
        best = 1.0 - np.divide(
            along_gaps, length2, out=np.zeros_like(along_gaps), where=length2 > _TINY**2
        )
        best = np.clip(best, low[:, None, None], high[:, None, None])
        best = np.repeat(best, np.diff([*self.starts, self.path.shape[1]]), axis=-1)
        level = self.level(cells)
        return self.fixed_part(cells, level) + self.moving_part(self.own_gaps(best, cells), level)

    def slopes(self, t: FloatArray, cells: IntArray) -> FloatArray:
        """Derivative in c, up to a positive factor, at factors (S,) with cells (S, k) fixed."""
        gaps = self.own_gaps(t[:, None, None], cells)
        power = self.exponents[self.level(cells)]
        distance = np.maximum(self.norms(gaps), _TINY)
        log_weight = np.log(self.masses[:, None] * power) + (power - 1.0) * np.log(distance)
        reweighted = np.exp(log_weight - np.max(log_weight, axis=(1, 2), keepdims=True))
        return np.sum(reweighted * self.along(gaps) / distance, axis=(1, 2))

    def search(self) -> FloatArray:
        """The best factor, shape (1,); 0 where the infimum is approached as c -> 0 only.

        Every interval between boundaries that can hold the infimum is narrowed by the sign of the
        derivative, which increases there, until it has no inner point.
        """
        given = np.ones(1)
        value = float(self.values(given[None], self.cells(given[None]))[0])
        cap = self.cap(value)
        if not np.isfinite(cap):
            return given
        boundaries, aside = self.boundaries(cap)
        edges, steps = np.array([0.0, *boundaries, cap]), np.array([0.0, *aside, 0.0])
        low, high = edges[:-1] + steps[:-1], edges[1:] - steps[1:]
        low, high = low[low < high], high[low < high]
        cells = self.cells((low + (high - low) / 2.0)[:, None])
        hopeful = self.bounds(low, high, cells) < value
        low, high, cells = low[hopeful], high[hopeful], cells[hopeful]
        if not low.size:
            return given
        row, parts = np.arange(low.size), np.linspace(0.0, 1.0, _SPLIT + 1)
        for _ in range(_ROUNDS):
            grid = low[:, None] + (high - low)[:, None] * parts
            slope = self.slopes(grid.ravel(), np.repeat(cells, parts.size, axis=0))
            falling = np.sum(slope.reshape(grid.shape) < 0.0, axis=1)
            low = grid[row, np.maximum(falling - 1, 0)]
            high = grid[row, np.minimum(falling, _SPLIT)]
            if np.all(high - low <= 2.0 * np.finfo(np.float64).eps * high):
                break
        pool = np.concatenate([given, low, high])[:, None]
        return pool[np.argmin(self.values(pool, self.cells(pool)))]


def matched(orbit: Orbit) -> float:
    """The factor at which the estimate's scale is the truth's."""
    return 1.0


def infimum(orbit: Orbit) -> float:
    """The factor with the least loss."""
    return float(orbit.search()[0])


@dataclass(frozen=True)
class Scaling:
    """The factor c >= 0 by which a loss multiplies some blocks of the estimate."""

    # The blocks; the last has one positive value, which all atoms share and which represents the
    # scale, as in a gate's ``scaling``.  Their terms have no summed axes.
    blocks: tuple[str, ...]
    # ``choose(orbit)``: the factor, given an estimate whose scale is already the truth's.
    choose: Callable[[Orbit], float]
