"""The trust-region step in a box: the small dense algebra of the Newton solvers.

The region is an ellipsoid in the metric ``M = diag over channels of E[phi phi']``: its radius is
the root-mean-square change of the predictors, which is what the quadratic model of a likelihood
in those predictors can bear, whatever the units of x.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from moestat._jit import compact, compile_loop, device
from moestat._types import FloatArray, IntArray
from moestat.kernels.views import empty_rows, part, row
from moestat.solvers._symmetric import (
    back_substitute,
    cholesky,
    diagonalise,
    forward_substitute,
    reduce_to_standard,
    reflect_back,
    reflect_into,
    rotate_back,
    rotate_into,
    tridiagonalise,
)

__all__ = [
    "MOST_ROTATIONS",
    "NULL_CURVATURE",
    "BoxStep",
    "box_step",
    "can_descend",
    "free_coordinates",
    "region_metric",
]

NULL_CURVATURE = 1e-14
"""Part of the largest curvature down to which the sign of a curvature is beyond doubt."""

_RIDGE = 1e-8

MOST_ROTATIONS = 2
"""Rotations, in units of n^2: implicit QL took at most 1.6 n^2 on every matrix tried."""


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


@device(forceinline=False)
@compact
def can_descend(theta, gradient, lower, upper):
    """Whether a coordinate can move downhill: inside the box, or on its edge and pulled inwards."""
    held_below = theta <= lower and gradient >= 0.0
    held_above = theta >= upper and gradient <= 0.0
    return lower < upper and not held_below and not held_above


def free_coordinates(
    theta: FloatArray, gradient: FloatArray, lower: FloatArray, upper: FloatArray
) -> np.ndarray:
    """Coordinates that can move downhill: inside the box, or on its edge and pulled inwards."""
    return np.array(list(map(can_descend, theta, gradient, lower, upper)), dtype=bool)


@device(forceinline=False)
@compact
def _norm(n, x):
    total = 0.0
    for i in range(n):
        total += x[i] * x[i]
    return math.sqrt(total)


@device(forceinline=False)
@compact
def _shifted_step(n, values, slope, shift, floor, best):
    """The step ``-slope / (values + shift)`` in the eigenbasis; returns its length."""
    for i in range(n):
        curvature = values[i] + shift
        best[i] = -slope[i] / (curvature if curvature > floor else floor)
    return _norm(n, best)


@device(forceinline=False)
@compact
def _eigenbasis_step(n, values, slope, radius, null, best):
    """Minimise ``slope'p + sum values p^2 / 2`` over ``|p| <= radius`` exactly.

    More and Sorensen (1983), with every eigenvalue at hand.
    """
    lowest = 0
    largest = 1e-300
    for i in range(n):
        largest = abs(values[i]) if abs(values[i]) > largest else largest
        lowest = i if values[i] < values[lowest] else lowest
    # Curvature within rounding of zero has no sign: it must not pull the step to the region's edge.
    floor = null * largest
    for i in range(n):
        values[i] = floor if abs(values[i]) <= floor else values[i]

    if values[lowest] > 0.0 and _shifted_step(n, values, slope, 0.0, floor, best) <= radius:
        return
    low = -values[lowest] if values[lowest] < 0.0 else 0.0
    if _shifted_step(n, values, slope, low, floor, best) <= radius:
        # The hard case: the gradient has no part along the lowest curvature.
        if values[lowest] < 0.0:
            best[lowest] = 0.0
            rest = _norm(n, best)
            missing = math.sqrt(radius * radius - rest * rest) if rest < radius else 0.0
            best[lowest] = -math.copysign(missing, slope[lowest])
        return
    high = low + _norm(n, slope) / radius
    shift = high
    norm = _shifted_step(n, values, slope, shift, floor, best)
    for _ in range(60):
        if abs(norm - radius) <= 1e-3 * radius:
            break
        if norm > radius:
            low = shift
        else:
            high = shift
        curvature = 0.0
        for i in range(n):
            here = values[i] + shift
            curvature += best[i] * best[i] / (here if here > floor else floor)
        shift += (norm / radius - 1.0) * norm * norm / curvature
        if not (low < shift < high):
            shift = 0.5 * (low + high)
        norm = _shifted_step(n, values, slope, shift, floor, best)
    shrink = radius / norm if norm > radius else 1.0
    for i in range(n):
        best[i] *= shrink


@device(forceinline=False)
@compact
def _region_step(n, slope, matrix, lower, radius, null, work, plane, cosine, sine, leg):
    """Minimise ``g'p + p'Hp/2`` over ``p'Mp <= radius^2``; False if M is not definite.

    `slope` holds g, `matrix` H and `lower` M; all three are overwritten.
    """
    values, off, size, scratch = work[0], work[1], work[2], work[3]
    if not cholesky(n, lower):
        return False
    reduce_to_standard(n, lower, matrix)
    tridiagonalise(n, matrix, values, off, size, scratch)
    used = diagonalise(n, values, off, plane, cosine, sine)
    forward_substitute(n, lower, slope)
    reflect_into(n, matrix, size, slope)
    rotate_into(used, plane, cosine, sine, slope)
    _eigenbasis_step(n, values, slope, radius, null, leg)
    rotate_back(used, plane, cosine, sine, leg)
    reflect_back(n, matrix, size, leg)
    back_substitute(n, lower, leg)
    return True


@device(forceinline=False)
@compact
def _select_free(n, at, step, gradient, hessian, metric, slope, matrix, lower):
    """Gather the model at theta + step in the n free coordinates `at`."""
    for i in range(n):
        local = gradient[at[i]]
        for j in range(step.size):
            local += hessian[at[i], j] * step[j]
        slope[i] = local
        for j in range(n):
            matrix[i, j] = hessian[at[i], at[j]]
            lower[i, j] = metric[at[i], at[j]]


@device(forceinline=False)
@compact
def _room(theta, leg, lower, upper):
    """Fraction of a coordinate's leg that stays in the box; at most 1."""
    distance = upper - theta if leg > 0.0 else theta - lower
    if distance >= abs(leg):
        return 1.0
    return distance / abs(leg) if distance > 0.0 else 0.0


@device(forceinline=False)
@compact
def _quadratic(matrix, x):
    """``x' matrix x``."""
    total = 0.0
    for i in range(x.size):
        row = 0.0
        for j in range(x.size):
            row += matrix[i, j] * x[j]
        total += x[i] * row
    return total


@compile_loop
@compact
def _box_step_loop(theta, gradient, hessian, metric, lower, upper, radius, null, indices, step):
    """Fill `step`; returns the decrease of the model and the length in the metric."""
    n_params = theta.size
    at, plane = part(indices, 0, n_params), part(indices, n_params, indices.size)
    matrix = empty_rows(n_params, n_params)
    factor = empty_rows(n_params, n_params)
    work = empty_rows(6, n_params)
    slope, leg = row(work, 4), row(work, 5)
    rotations = empty_rows(2, plane.size)
    cosine, sine = row(rotations, 0), row(rotations, 1)

    n = 0
    for j in range(n_params):
        step[j] = 0.0
        if can_descend(theta[j], gradient[j], lower[j], upper[j]):
            at[n] = j
            n += 1
    length = 0.0
    while n > 0 and length < 0.99 * radius:
        _select_free(n, at, step, gradient, hessian, metric, slope, matrix, factor)
        reach = radius - length
        if not _region_step(n, slope, matrix, factor, reach, null, work, plane, cosine, sine, leg):
            return np.nan, np.nan
        fraction = 1.0
        for i in range(n):
            j = at[i]
            room = _room(theta[j] + step[j], leg[i], lower[j], upper[j])
            fraction = room if room < fraction else fraction
        left = 0
        for i in range(n):
            j = at[i]
            here = theta[j] + step[j]
            step[j] += fraction * leg[i]
            if fraction < 1.0 and _room(here, leg[i], lower[j], upper[j]) <= fraction:
                step[j] = (upper[j] if leg[i] > 0.0 else lower[j]) - theta[j]
            else:
                at[left] = j
                left += 1
        n = left
        length = math.sqrt(_quadratic(metric, step))
        if fraction == 1.0:
            break
    decrease = -0.5 * _quadratic(hessian, step)
    for j in range(n_params):
        decrease -= gradient[j] * step[j]
    return decrease, length


class BoxStep(NamedTuple):
    """A step (P,), the decrease of the quadratic model and the length in the metric."""

    step: FloatArray
    decrease: float
    length: float


def box_step(
    theta: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    radius: float,
    null: float = NULL_CURVATURE,
) -> BoxStep:
    """A step that decreases the quadratic model inside the box and the region.

    The region step of the free coordinates is followed to the first edge of the box; the
    coordinate that met it stays there and the rest goes on within the same model.  Every leg
    decreases the model, and there are at most P.  Curvatures below the part `null` of the largest
    are taken for that.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the model is not finite, or the metric not positive definite.
    """
    n_params = theta.size
    step, indices = (
        np.empty(n_params),
        np.empty((1 + MOST_ROTATIONS * n_params) * n_params, np.int64),
    )
    decrease, length = _box_step_loop(
        theta, gradient, hessian, metric, lower, upper, float(radius), null, indices, step
    )
    if not math.isfinite(decrease):
        raise np.linalg.LinAlgError("the quadratic model is not finite, or its metric not definite")
    return BoxStep(step, decrease, length)
