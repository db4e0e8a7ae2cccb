"""The trust-region step in a box: the small dense algebra of the Newton solvers.

The region is an ellipsoid in the metric ``M = diag over channels of E[phi phi']``: its radius is
the root-mean-square change of the predictors, which is what the quadratic model of a likelihood
in those predictors can bear, whatever the units of x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dsygvd  # pyright: ignore[reportAttributeAccessIssue]

from moestat._types import FloatArray, IntArray

__all__ = ["BoxStep", "box_step", "free_coordinates", "region_metric"]

_RIDGE = 1e-8
_NULL_CURVATURE = 1e-14


def region_metric(gram: FloatArray, index: IntArray, width: IntArray, n_params: int) -> FloatArray:
    """The metric M (P, P) of channels at `index` (k, C) of `width` (C,), with a small ridge.

    `gram` is ``E[phi phi']`` (1 + d, 1 + d) over the data.
    """
    gram = gram + _RIDGE * np.diag(np.diag(gram) + _RIDGE)
    metric = np.zeros((n_params, n_params))
    for (_, c), first in np.ndenumerate(index):
        w = int(width[c])
        metric[first : first + w, first : first + w] = gram[:w, :w]
    return metric


def free_coordinates(
    theta: FloatArray, gradient: FloatArray, lower: FloatArray, upper: FloatArray
) -> np.ndarray:
    """Coordinates that can move downhill: inside the box, or on its edge and pulled inwards."""
    held_below = (theta <= lower) & (gradient >= 0.0)
    held_above = (theta >= upper) & (gradient <= 0.0)
    return (lower < upper) & ~held_below & ~held_above


@dataclass(frozen=True)
class BoxStep:
    """A step (P,), the decrease of the quadratic model and the length in the metric."""

    step: FloatArray
    decrease: float
    length: float


def _region_step(
    gradient: FloatArray, hessian: FloatArray, metric: FloatArray, radius: float
) -> FloatArray:
    """Minimise ``g'p + p'Hp/2`` over ``p'Mp <= radius^2`` exactly (More and Sorensen 1983)."""
    # H V = M V diag(values) with V'MV = 1, straight from LAPACK: this runs once per iteration.
    values, vectors, failed = dsygvd(hessian, metric)
    if failed:
        raise np.linalg.LinAlgError(f"dsygvd failed with info {failed}")
    slope = vectors.T @ gradient
    # Curvature within rounding of zero has no sign: it must not pull the step to the region's edge.
    floor = _NULL_CURVATURE * max(abs(values[0]), abs(values[-1]), 1e-300)
    values = np.where(np.abs(values) <= floor, floor, values)

    def coefficients(shift: Any) -> FloatArray:
        return -slope / np.maximum(values + shift, floor)

    def size(vector: FloatArray) -> float:
        return math.sqrt(vector @ vector)

    inside = coefficients(0.0)
    if values[0] > 0.0 and size(inside) <= radius:
        best = inside
    else:
        low = max(0.0, -values[0])
        best = coefficients(low)
        if size(best) <= radius:
            # The hard case: the gradient has no part along the lowest curvature.
            rest = best.copy()
            rest[0] = 0.0
            missing = np.sqrt(max(radius**2 - rest @ rest, 0.0))
            rest[0] = -np.copysign(missing, slope[0]) if values[0] < 0.0 else best[0]
            best = rest
        else:
            high = low + size(slope) / radius
            shift = high
            for _ in range(60):
                best = coefficients(shift)
                norm = size(best)
                if abs(norm - radius) <= 1e-3 * radius:
                    break
                low, high = (shift, high) if norm > radius else (low, shift)
                curvature = best @ (best / np.maximum(values + shift, floor))
                shift += (norm / radius - 1.0) * norm**2 / curvature
                if not low < shift < high:
                    shift = 0.5 * (low + high)
            best *= min(1.0, radius / size(best))
    return vectors @ best


def box_step(
    theta: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    radius: float,
) -> BoxStep:
    """A step that decreases the quadratic model inside the box and the region.

    The region step of the free coordinates is followed to the first edge of the box; the
    coordinate that met it stays there and the rest goes on within the same model.  Every leg
    decreases the model, and there are at most P.
    """
    free = free_coordinates(theta, gradient, lower, upper)
    step = np.zeros_like(theta)
    length = 0.0
    while free.any() and length < 0.99 * radius:
        local = gradient + hessian @ step
        at = free.nonzero()[0]
        leg = _region_step(local[at], hessian[at][:, at], metric[at][:, at], radius - length)
        here = theta[at] + step[at]
        distance = np.where(leg > 0.0, upper[at] - here, here - lower[at])
        # A leg too short to measure never leaves the box.
        room = np.maximum(distance, 0.0) / np.maximum(np.abs(leg), 1e-290)
        fraction = min(1.0, float(room.min()))
        step[at] += fraction * leg
        length = math.sqrt(step @ metric @ step)
        if fraction == 1.0:
            break
        blocked = at[room <= fraction]
        edge = np.where(leg[room <= fraction] > 0, upper[blocked], lower[blocked])
        step[blocked] = edge - theta[blocked]
        free[blocked] = False
    decrease = -float(gradient @ step + 0.5 * step @ hessian @ step)
    return BoxStep(step, decrease, length)
