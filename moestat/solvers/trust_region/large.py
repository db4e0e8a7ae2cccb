"""Trust-region steps for many parameters: by LAPACK, and without an eigenproblem where one can.

From about 150 parameters on, diagonalising the Hessian takes as long as a pass over the data.
Where the model's minimum lies inside region and box, a Cholesky factorisation and a solve find it.
Where it does not, the conjugate gradients of Steihaug (1983), preconditioned by the metric, lead to
the region's edge.  Only where these gain little, near the end or at a saddle, is the Hessian
diagonalised and the step exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.solvers.trust_region.region import (
    NULL_CURVATURE,
    BoxStep,
    Region,
    free_coordinates,
)

__all__ = ["LARGE", "LargeRegion", "Metric", "region_of"]

LARGE = 100
"""Parameters from which on LAPACK is faster than compiled loops."""

_RESIDUAL = 0.1
"""Part of the gradient's norm at which conjugate gradients have found the model's minimum."""

_FAR = 1.0
"""Predicted decrease, in units of log-likelihood, above which a step need not be exact."""


def _spans(matrix: FloatArray) -> list[slice]:
    """The blocks of a block-diagonal matrix."""
    n = len(matrix)
    if n == 0:
        return []
    last = n - 1 - np.argmax(matrix[:, ::-1] != 0.0, axis=1)
    ends = 1 + np.flatnonzero(np.maximum.accumulate(last) == np.arange(n))
    return [slice(int(begin), int(end)) for begin, end in pairwise([0, *ends])]


class Metric:
    """A metric (P, P) that is block-diagonal, as that of channels is, with its inverse."""

    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix

    @cached_property
    def inverse(self) -> FloatArray:
        """The inverse (P, P), block by block."""
        inverse = np.zeros_like(self.matrix)
        for span in _spans(self.matrix):
            inverse[span, span] = np.linalg.inv(self.matrix[span, span])
        return inverse


class LargeRegion:
    """A `Region` of many parameters; arguments and steps are those of that class.

    Steps to the region's edge that gain much are not exact: they decrease a convex model by at
    least half as much.
    """

    def __init__(
        self,
        theta: FloatArray,
        gradient: FloatArray,
        hessian: FloatArray,
        metric: Metric,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self.theta, self.gradient, self.hessian, self.metric = theta, gradient, hessian, metric
        self.lower, self.upper = lower, upper
        self.at = np.flatnonzero(free_coordinates(theta, gradient, lower, upper))

    @cached_property
    def _minimum(self) -> BoxStep | None:
        """The step to the model's minimum; None if it has none, or outside the box."""
        step, at = np.zeros(self.theta.size), self.at
        hessian = self.hessian[np.ix_(at, at)]
        try:
            pivots = np.diagonal(np.linalg.cholesky(hessian)) ** 2
        except np.linalg.LinAlgError:
            return None
        pivots /= np.diagonal(self.metric.matrix)[at]
        if not pivots.min(initial=np.inf) > NULL_CURVATURE * pivots.max(initial=0.0):
            return None
        step[at] = -np.linalg.solve(hessian, self.gradient[at])
        point = self.theta + step
        inside = (point >= self.lower).all() and (point <= self.upper).all()
        return self._measured(step) if inside else None

    def _measured(self, step: FloatArray) -> BoxStep:
        decrease = -float(self.gradient @ step + 0.5 * step @ self.hessian @ step)
        if not math.isfinite(decrease):
            raise np.linalg.LinAlgError("the quadratic model is not finite")
        return BoxStep(step, decrease, math.sqrt(step @ self.metric.matrix @ step))

    def step(self, radius: float) -> BoxStep:
        """A step that decreases the model inside the box and the region.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the model is not finite.
        """
        minimum = self._minimum
        if minimum is not None and minimum.length <= radius:
            return minimum
        move = self._followed(radius, self._segment)
        return move if move.decrease > _FAR else self._followed(radius, self._exact)

    def _followed(self, radius: float, way: Callable[..., FloatArray]) -> BoxStep:
        """Segments one way, each to the first edge of the box that it meets."""
        at, step, length = self.at, np.zeros(self.theta.size), 0.0
        while at.size and length < 0.99 * radius:
            segment = way(at, step, radius - length)
            here = self.theta[at] + step[at]
            distance = np.where(segment > 0.0, self.upper[at] - here, here - self.lower[at])
            met = distance < np.abs(segment)
            fraction = 1.0
            if met.any():
                part = np.maximum(distance[met], 0.0) / np.abs(segment[met])
                fraction = float(part.min())
                met[met] = part <= fraction
            step[at] += fraction * segment
            length = math.sqrt(step @ self.metric.matrix @ step)
            if fraction == 1.0:
                break
            edge = np.where(segment > 0.0, self.upper[at], self.lower[at])
            step[at[met]] = (edge - self.theta[at])[met]
            at = at[~met]
        return self._measured(step)

    def _segment(self, at: IntArray, step: FloatArray, radius: float) -> FloatArray:
        """Steihaug's step over the coordinates `at`."""
        block = np.ix_(at, at)
        hessian, inverse = self.hessian[block], Metric(self.metric.matrix[block]).inverse
        segment, reached = np.zeros(at.size), np.zeros(at.size)
        residual = (self.gradient + self.hessian @ step)[at]
        scaled = inverse @ residual
        direction, square = -scaled, float(residual @ scaled)
        # The metric times direction and segment, which the recurrences give without a product.
        away = -residual
        least = _RESIDUAL**2 * square
        for _ in range(at.size):
            bent = hessian @ direction
            curvature = float(direction @ bent)
            length = square / curvature if curvature > 0.0 else 0.0
            moved, further = segment + length * direction, reached + length * away
            if curvature <= 0.0 or moved @ further > radius**2:
                # To the region's edge along the direction.
                a, b = float(direction @ away), float(segment @ away)
                c = radius**2 - float(segment @ reached)
                return segment + c / (b + math.sqrt(b * b + a * c)) * direction
            segment, reached = moved, further
            residual = residual + length * bent
            scaled = inverse @ residual
            square, before = float(residual @ scaled), square
            if square <= least:
                break
            direction = square / before * direction - scaled
            away = square / before * away - residual
        return segment

    def _exact(self, at: IntArray, step: FloatArray, radius: float) -> FloatArray:
        """The best step over the coordinates `at`: More and Sorensen (1983), by bisection."""
        values, basis = self.basis if at is self.at else self._eigenbasis(at)
        slope = basis.T @ (self.gradient + self.hessian @ step)[at]
        least = NULL_CURVATURE * max(float(np.abs(values).max()), 1e-300)
        values = np.where(np.abs(values) <= least, least, values)
        low = max(0.0, -float(values[0]))

        def shifted(shift: float) -> FloatArray:
            return -slope / np.maximum(values + shift, least)

        with np.errstate(over="ignore"):  # such a step is cut to the region's edge
            best = shifted(low)
            norm = float(np.linalg.norm(best))
            rest = radius**2 - float(best @ best)
            if rest >= 0.0:
                # The hard case: the gradient has no part along the lowest curvature.
                best[0] -= math.copysign(math.sqrt(rest) if values[0] < 0.0 else 0.0, slope[0])
                return basis @ best
            high = low + float(np.linalg.norm(slope)) / radius
            middle = 0.5 * (low + high)
            while abs(norm - radius) > 1e-3 * radius and low < middle < high:
                best = shifted(middle)
                norm = float(np.linalg.norm(best))
                low, high = (middle, high) if norm > radius else (low, middle)
                middle = 0.5 * (low + high)
            return basis @ (best * min(1.0, radius / norm))

    @cached_property
    def basis(self) -> tuple[FloatArray, FloatArray]:
        """Curvatures (F,) and eigenvectors (F, F) over the free coordinates `at`."""
        return self._eigenbasis(self.at)

    @property
    def curvatures(self) -> FloatArray:
        """Curvatures (F,) over the free coordinates, relative to the metric."""
        return self.basis[0]

    def _eigenbasis(self, at: IntArray) -> tuple[FloatArray, FloatArray]:
        """Curvatures (F,), ascending, and eigenvectors (F, F), orthonormal in the metric."""
        metric, scaled = self.metric.matrix[np.ix_(at, at)], self.hessian[np.ix_(at, at)]
        roots = [(s, np.linalg.inv(np.linalg.cholesky(metric[s, s]))) for s in _spans(metric)]
        for span, root in roots:
            scaled[span] = root @ scaled[span]
        for span, root in roots:
            scaled[:, span] = scaled[:, span] @ root.T
        values, vectors = np.linalg.eigh(scaled)
        for span, root in roots:
            vectors[span] = root.T @ vectors[span]
        return values, vectors


def region_of(
    theta: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    metric: Metric,
    lower: FloatArray,
    upper: FloatArray,
) -> Region | LargeRegion:
    """The region by the number of parameters: compiled loops for few, LAPACK for many."""
    if theta.size > LARGE:
        return LargeRegion(theta, gradient, hessian, metric, lower, upper)
    return Region(theta, gradient, hessian, metric.matrix, lower, upper)
