"""The trust-region step by LAPACK and NumPy: the oracle of the compiled one."""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg

NULL_CURVATURE = 1e-14


def free_coordinates(theta, gradient, lower, upper):
    held_below = (theta <= lower) & (gradient >= 0.0)
    held_above = (theta >= upper) & (gradient <= 0.0)
    return (lower < upper) & ~held_below & ~held_above


@np.errstate(over="ignore")
def region_step(gradient, hessian, metric, radius):
    """Minimise ``g'p + p'Hp/2`` over ``p'Mp <= radius^2`` (More and Sorensen 1983)."""
    values, vectors = linalg.eigh(hessian, metric)
    slope = vectors.T @ gradient
    floor = NULL_CURVATURE * max(abs(values[0]), abs(values[-1]), 1e-300)
    values = np.where(np.abs(values) <= floor, floor, values)

    def coefficients(shift):
        return -slope / np.maximum(values + shift, floor)

    inside = coefficients(0.0)
    if values[0] > 0.0 and np.linalg.norm(inside) <= radius:
        return vectors @ inside
    low = max(0.0, -values[0])
    best = coefficients(low)
    if np.linalg.norm(best) <= radius:
        # The hard case: the gradient has no part along the lowest curvature.
        if values[0] < 0.0:
            best[0] = 0.0
            missing = math.sqrt(max(radius**2 - best @ best, 0.0))
            best[0] = -math.copysign(missing, slope[0])
        return vectors @ best
    shift = high = low + np.linalg.norm(slope) / radius
    for _ in range(60):
        best = coefficients(shift)
        norm = np.linalg.norm(best)
        if abs(norm - radius) <= 1e-3 * radius:
            break
        low, high = (shift, high) if norm > radius else (low, shift)
        curvature = best @ (best / np.maximum(values + shift, floor))
        shift += (norm / radius - 1.0) * norm**2 / curvature
        if not low < shift < high:
            shift = 0.5 * (low + high)
    return vectors @ (best * min(1.0, radius / np.linalg.norm(best)))


def box_step(theta, gradient, hessian, metric, lower, upper, radius):
    """The step, the decrease of the model and the length in the metric."""
    free = free_coordinates(theta, gradient, lower, upper)
    step = np.zeros_like(theta)
    length = 0.0
    while free.any() and length < 0.99 * radius:
        at = np.flatnonzero(free)
        block = np.ix_(at, at)
        local = (gradient + hessian @ step)[at]
        leg = region_step(local, hessian[block], metric[block], radius - length)
        here = theta[at] + step[at]
        distance = np.where(leg > 0.0, upper[at] - here, here - lower[at])
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
    return step, -float(gradient @ step + 0.5 * step @ hessian @ step), length
