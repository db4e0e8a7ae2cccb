"""Trust-region steps in a box: the small dense algebra of the Newton solvers.

The region is an ellipsoid in the metric ``M = diag over channels of E[phi phi']``: its radius is
the root-mean-square change of the predictors, which is what the quadratic model of a likelihood
in those predictors can bear, whatever the units of x.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import types

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import RangeError
from moestat.compiler.jit import compact, compile_loop, device
from moestat.compiler.pointers import address_of, call_by_address
from moestat.kernels.views import empty_like, empty_rows, keep, part, row
from moestat.solvers.rules import TRUST
from moestat.solvers.trust_region.eigen import cholesky, into_eigenbasis, out_of_eigenbasis


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
    held_below = (theta <= lower) & (gradient >= 0.0)
    held_above = (theta >= upper) & (gradient <= 0.0)
    return (lower < upper) & ~held_below & ~held_above


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
def _eigenbasis_step(n, curvature, slope, radius, null, values, best):
    """Minimise ``slope'p + sum curvature p^2 / 2`` over ``|p| <= radius`` exactly.

    More and Sorensen (1983), with every eigenvalue at hand.  `values` is scratch.
    """
    lowest = 0
    largest = 1e-300
    for i in range(n):
        largest = abs(curvature[i]) if abs(curvature[i]) > largest else largest
        lowest = i if curvature[i] < curvature[lowest] else lowest
    # Curvature within rounding of zero has no sign: it must not take the step to the region's edge.
    floor = null * largest
    for i in range(n):
        values[i] = floor if abs(curvature[i]) <= floor else curvature[i]

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
        derivative = 0.0
        for i in range(n):
            here = values[i] + shift
            derivative += best[i] * best[i] / (here if here > floor else floor)
        shift += (norm / radius - 1.0) * norm * norm / derivative
        if not (low < shift < high):
            shift = 0.5 * (low + high)
        norm = _shifted_step(n, values, slope, shift, floor, best)
    shrink = radius / norm if norm > radius else 1.0
    for i in range(n):
        best[i] *= shrink


@compile_loop
@compact
def _eigenbasis_loop(curvature, slope, radius, null, values, best):
    _eigenbasis_step(slope.size, curvature, slope, radius, null, values, best)


def eigenbasis_step(curvature: FloatArray, slope: FloatArray, radius: float) -> FloatArray:
    """The step p (n,) within the radius where ``slope'p + sum curvature p^2 / 2`` is least."""
    best = np.zeros(slope.size)
    if best.size:
        _eigenbasis_loop(curvature, slope, radius, TRUST.rounding, np.empty(best.size), best)
    return best


@device(forceinline=False)
@compact
def _select_free(n, at, step, model, selected):
    """Gather the model at theta + step in the n free coordinates `at`."""
    _, gradient, hessian, metric, _, _ = model
    slope, matrix, lower = selected
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
def _room(theta, segment, lower, upper):
    """Fraction of a coordinate's segment that stays in the box; at most 1."""
    distance = upper - theta if segment > 0.0 else theta - lower
    if distance >= abs(segment):
        return 1.0
    return distance / abs(segment) if distance > 0.0 else 0.0


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


@device(forceinline=False)
@compact
def _follow(n, at, segment, theta, lower, upper, step):
    """Add a segment to the step, up to the first edge of the box.

    Returns how many coordinates are left, the first of `at`, and the fraction of the segment.
    """
    fraction = 1.0
    for i in range(n):
        j = at[i]
        room = _room(theta[j] + step[j], segment[i], lower[j], upper[j])
        fraction = room if room < fraction else fraction
    left = 0
    for i in range(n):
        j = at[i]
        here = theta[j] + step[j]
        step[j] += fraction * segment[i]
        if fraction < 1.0 and _room(here, segment[i], lower[j], upper[j]) <= fraction:
            step[j] = (upper[j] if segment[i] > 0.0 else lower[j]) - theta[j]
        else:
            at[left] = j
            left += 1
    return left, fraction


@device(forceinline=False)
@compact
def _leg(n, used, decomposed, rotations, lengths, work):
    """The best step over the free coordinates, in the last row of `work` (4, P)."""
    matrix, factor, values, slope, size = decomposed
    radius, null = lengths
    segment = row(work, 3)
    _eigenbasis_step(n, values, slope, radius, null, row(work, 2), segment)
    out_of_eigenbasis(n, used, factor, (matrix, size), rotations, segment)


@compile_loop
@compact
def take_apart(model, region, step):
    """Fill the arrays of a `Region`; returns the numbers of free coordinates and of rotations.

    The latter is -1 if the metric is not definite.  `step` is scratch.
    """
    theta, gradient, _, _, lower, upper = model
    integers, basis, turns = region
    n_params = theta.size
    at, plane = part(integers, 0, n_params), part(integers, n_params, integers.size)
    matrix, factor = part(basis, 0, n_params), part(basis, n_params, 2 * n_params)
    values, slope = row(basis, 2 * n_params), row(basis, 2 * n_params + 1)
    size, work = row(basis, 2 * n_params + 2), empty_rows(2, n_params)
    n = 0
    for j in range(n_params):
        step[j] = 0.0
        if can_descend(theta[j], gradient[j], lower[j], upper[j]):
            at[n] = j
            n += 1
    _select_free(n, at, step, model, (slope, matrix, factor))
    if not cholesky(n, factor):
        return n, -1
    rotations = plane, row(turns, 0), row(turns, 1)
    return n, into_eigenbasis(n, factor, (matrix, slope, values, size), work, 0.0, rotations)


@compile_loop
@compact
def find_step(model, radius, null, found, region, step):
    """Fill `step`; returns the decrease of the model and the length in the metric.

    `found` are the numbers that `take_apart` returned.
    """
    theta, gradient, hessian, metric, lower, upper = model
    integers, basis, turns = region
    n, used = found
    n_params = theta.size
    plane = part(integers, n_params, integers.size)
    matrix, factor = part(basis, 0, n_params), part(basis, n_params, 2 * n_params)
    values, slope = row(basis, 2 * n_params), row(basis, 2 * n_params + 1)
    size, work = row(basis, 2 * n_params + 2), empty_rows(4, n_params)
    segment, at = row(work, 3), empty_like(integers, n_params)
    for j in range(n_params):
        step[j] = 0.0
        at[j] = integers[j]
    if n == 0:
        return 0.0, 0.0
    rotations = plane, row(turns, 0), row(turns, 1)
    _leg(n, used, (matrix, factor, values, slope, size), rotations, (radius, null), work)
    left, fraction = _follow(n, at, segment, theta, lower, upper, step)
    length = math.sqrt(_quadratic(metric, step))
    if fraction < 1.0:
        # The region's own arrays stay as they are.
        others, own = empty_rows(2 * n_params + 3, n_params), empty_rows(2, plane.size)
        planes = empty_like(integers, plane.size)
        matrix, factor = part(others, 0, n_params), part(others, n_params, 2 * n_params)
        values, slope = row(others, 2 * n_params), row(others, 2 * n_params + 1)
        size, rotations = row(others, 2 * n_params + 2), (planes, row(own, 0), row(own, 1))
        while fraction < 1.0 and left > 0 and length < 0.99 * radius:
            _select_free(left, at, step, model, (slope, matrix, factor))
            if not cholesky(left, factor):
                return np.nan, np.nan
            whole = matrix, slope, values, size
            used = into_eigenbasis(left, factor, whole, work, 0.0, rotations)
            decomposed = matrix, factor, values, slope, size
            _leg(left, used, decomposed, rotations, (radius - length, null), work)
            left, fraction = _follow(left, at, segment, theta, lower, upper, step)
            length = math.sqrt(_quadratic(metric, step))
        keep(others)
        keep(own)
        keep(planes)
    keep(work)
    keep(at)
    decrease = -0.5 * _quadratic(hessian, step)
    for j in range(n_params):
        decrease -= gradient[j] * step[j]
    return decrease, length


call_take_apart = call_by_address(types.UniTuple(types.int64, 2))
call_find_step = call_by_address(types.UniTuple(types.float64, 2))


@cache
def region_addresses() -> tuple[int, int]:
    """Where `take_apart` and `find_step` are, for compiled loops that call them."""
    vector, matrix = np.empty(0), np.empty((0, 0))
    model = vector, vector, matrix, matrix, vector, vector
    state = region_arrays(0), vector
    return (
        address_of(take_apart, model, *state),
        address_of(find_step, model, 1.0, TRUST.rounding, (0, 0), *state),
    )


def region_arrays(n_params: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """What `take_apart` fills: integers, basis and rotations of P parameters."""
    most = TRUST.rotations * n_params * n_params
    integers = np.empty(n_params + most, np.int64)
    return integers, np.empty((2 * n_params + 3, n_params)), np.empty((2, most))


class BoxStep(NamedTuple):
    """A step (P,), the decrease of the quadratic model and the length in the metric."""

    step: FloatArray
    decrease: float
    length: float


class Region:
    """The quadratic model of an objective in a box, taken apart once for steps of any length.

    Parameters
    ----------
    theta, gradient : ndarray of shape (P,)
        Where the model is, and its gradient there.
    hessian, metric : ndarray of shape (P, P)
        Curvature of the model, and the metric that lengths are measured in.
    lower, upper : ndarray of shape (P,)
        The box.

    Attributes
    ----------
    n_free : int
        Number of free coordinates: those that can move downhill.
    at : ndarray of shape (n_free,)
        The free coordinates.
    factor : ndarray of shape (P, P)
        Cholesky factor of their metric, in the leading rows and columns.
    curvatures : ndarray of shape (n_free,)
        Eigenvalues of the curvature in the metric, in no order.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the metric is not positive definite.
    """

    def __init__(
        self,
        theta: FloatArray,
        gradient: FloatArray,
        hessian: FloatArray,
        metric: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self.theta = theta
        self.lower = lower
        self.upper = upper
        n_params = theta.size
        model = theta, gradient, hessian, metric, lower, upper
        arrays = region_arrays(n_params)
        self.n_free, used = take_apart(model, arrays, np.empty(n_params))
        if used < 0:
            raise np.linalg.LinAlgError("the metric of the quadratic model is not definite")
        self.at = arrays[0][: self.n_free]
        self.factor = arrays[1][n_params : 2 * n_params]
        self.curvatures = arrays[1][2 * n_params, : self.n_free]
        self._model, self._state = model, ((self.n_free, used), arrays)

    def step(self, radius: float, null: float = TRUST.rounding) -> BoxStep:
        """A step that decreases the model inside the box and the region.

        The region step of the free coordinates is followed to the first edge of the box; the
        coordinate that met it stays there and the rest goes on within the same model.  Every
        segment decreases the model, and there are at most P.  Curvatures below the part `null` of
        the largest are taken for that.

        Raises
        ------
        moestat.base.validate.RangeError
            If the model is not finite.
        """
        step = np.empty(self.theta.size)
        decrease, length = find_step(self._model, float(radius), null, *self._state, step)
        if not math.isfinite(decrease):
            raise RangeError
        return BoxStep(step, decrease, length)


def box_step(
    theta: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    radius: float,
) -> BoxStep:
    """The step of a `Region` that is asked only once."""
    return Region(theta, gradient, hessian, metric, lower, upper).step(radius)
