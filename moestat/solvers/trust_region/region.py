"""Trust-region steps in a box: the small dense algebra of the Newton solvers.

The region is an ellipsoid in the metric ``M = diag over channels of E[phi phi']``: its radius is
the root-mean-square change of the predictors, which is what the quadratic model of a likelihood
in those predictors can bear, whatever the units of x.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import types

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import RangeError
from moestat.compiler.jit import compact, compile_loop, device
from moestat.compiler.pointers import address_of, call_by_address
from moestat.kernels.views import empty_like, empty_rows, keep, part, row
from moestat.solvers.rules import HALVINGS, NEGLIGIBLE, TINY, TRUST
from moestat.solvers.trust_region.eigen import (
    back_substitute,
    cholesky,
    forward_substitute,
    into_eigenbasis,
    out_of_eigenbasis,
)

INDEFINITE = "the metric of the quadratic model is not definite"

# State of a model: new, with its free coordinates, with its eigenvectors, or not definite.
_NEW, _WHOLE, _APART, _INDEFINITE = range(4)


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
    largest = TINY
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
            length = _norm(n, best)
            missing = math.sqrt(radius * radius - length * length) if length < radius else 0.0
            best[lowest] = -math.copysign(missing, slope[lowest])
        return
    high = low + _norm(n, slope) / radius
    shift = high
    norm = _shifted_step(n, values, slope, shift, floor, best)
    for _ in range(HALVINGS):
        if abs(norm - radius) <= NEGLIGIBLE * radius:
            break
        if norm > radius:
            low = shift
        else:
            high = shift
        derivative = 0.0
        for i in range(n):
            shifted = values[i] + shift
            derivative += best[i] * best[i] / (shifted if shifted > floor else floor)
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
    """Gather slope and curvature at theta + step in the n free coordinates `at`."""
    _, gradient, hessian, _, _, _ = model
    slope, matrix = selected
    for i in range(n):
        local = gradient[at[i]]
        for j in range(step.size):
            local += hessian[at[i], j] * step[j]
        slope[i] = local
        for j in range(n):
            matrix[i, j] = hessian[at[i], at[j]]


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
    n_free = 0
    for i in range(n):
        j = at[i]
        place = theta[j] + step[j]
        step[j] += fraction * segment[i]
        if fraction < 1.0 and _room(place, segment[i], lower[j], upper[j]) <= fraction:
            step[j] = (upper[j] if segment[i] > 0.0 else lower[j]) - theta[j]
        else:
            at[n_free] = j
            n_free += 1
    return n_free, fraction


@device(forceinline=False)
@compact
def _newton_leg(n, at, model, lengths, newton, segment):
    """Compute the segment to the model's minimum; False if it is not reliable or too long.

    It is reliable where every curvature has at least half of its digits.  `newton` are the slope
    (P,) and the curvature (P, P) of the n free coordinates.
    """
    _, _, hessian, metric, _, _ = model
    radius, null = lengths
    slope, matrix = newton
    if not cholesky(n, matrix):
        return False
    largest, least = 0.0, math.inf
    for i in range(n):
        unit = metric[at[i], at[i]]
        curvature, pivot = hessian[at[i], at[i]] / unit, matrix[i, i] * matrix[i, i] / unit
        largest = curvature if curvature > largest else largest
        least = pivot if pivot < least else least
        segment[i] = -slope[i]
    if not least > math.sqrt(null) * largest:
        return False
    forward_substitute(n, matrix, segment)
    back_substitute(n, matrix, segment)
    square = 0.0
    for i in range(n):
        for j in range(n):
            square += segment[i] * metric[at[i], at[j]] * segment[j]
    return square <= radius * radius


@device(forceinline=False)
@compact
def _decompose(n, model, region, step):
    """Diagonalise the model at theta + step; False if the metric is not definite."""
    integers, basis = region
    n_params = step.size
    matrix, factor = part(basis, 0, n_params), part(basis, n_params, 2 * n_params)
    values, slope = row(basis, 2 * n_params), row(basis, 2 * n_params + 1)
    _select_free(n, integers, step, model, (slope, matrix))
    metric = model[3]
    for i in range(n):
        for j in range(n):
            factor[i, j] = metric[integers[i], integers[j]]
    if not cholesky(n, factor):
        return False
    into_eigenbasis(n, factor, (matrix, slope, values), row(basis, 2 * n_params + 2))
    integers[n_params + 1] = _APART
    return True


@device(forceinline=False)
@compact
def _leg(model, lengths, region, step, segment):
    """Compute the best segment from theta + step; False if the metric is not definite."""
    integers, basis = region
    n_params = step.size
    n = integers[n_params]
    matrix, factor = part(basis, 0, n_params), part(basis, n_params, 2 * n_params)
    values, slope = row(basis, 2 * n_params), row(basis, 2 * n_params + 1)
    scratch = row(basis, 2 * n_params + 2)
    if integers[n_params + 1] != _APART:
        _select_free(n, integers, step, model, (slope, matrix))
        if _newton_leg(n, integers, model, lengths, (slope, matrix), segment):
            return True
        if not _decompose(n, model, region, step):
            return False
    radius, null = lengths
    _eigenbasis_step(n, values, slope, radius, null, scratch, segment)
    out_of_eigenbasis(n, factor, matrix, scratch, segment)
    return True


@device(forceinline=False)
@compact
def _free(model, integers):
    """Write the free coordinates and their number."""
    theta, gradient, _, _, lower, upper = model
    n = 0
    for j in range(theta.size):
        if can_descend(theta[j], gradient[j], lower[j], upper[j]):
            integers[n] = j
            n += 1
    integers[theta.size], integers[theta.size + 1] = n, _WHOLE


@device
def forget(region):
    """Mark the region's arrays as those of a new model."""
    region[0][region[0].size - 1] = _NEW


@device
def is_indefinite(region):
    """Whether the metric has turned out not to be positive definite."""
    return region[0][region[0].size - 1] == _INDEFINITE


@device
def is_plain(region):
    """Whether the last step is Newton's, by curvatures that all have at least half their digits."""
    return region[0][region[0].size - 1] == _WHOLE


@device
def bends_down(region):
    """Whether the last model has a negative curvature over its free coordinates."""
    integers, basis = region
    n_params = integers.size - 2
    below = False
    if integers[n_params + 1] == _APART:
        for i in range(integers[n_params]):
            below = below or basis[2 * n_params, i] < 0.0
    return below


@compile_loop
@compact
def find_step(model, radius, null, region, step):
    """Fill `step`; returns the decrease of the model and the length in the metric.

    They are NaN where the metric is not definite, which the arrays of the region say, or the model
    is not finite.
    """
    theta, gradient, hessian, metric, lower, upper = model
    integers, _ = region
    n_params = theta.size
    if integers[n_params + 1] == _NEW:
        _free(model, integers)
    for j in range(n_params):
        step[j] = 0.0
    n_free = integers[n_params]
    if n_free == 0:
        return 0.0, 0.0
    row_of_step = empty_rows(1, n_params)
    segment = row(row_of_step, 0)
    if not _leg(model, (radius, null), region, step, segment):
        integers[n_params + 1] = _INDEFINITE
        return np.nan, np.nan
    at = empty_like(integers, integers.size)
    for j in range(n_free):
        at[j] = integers[j]
    n_free, fraction = _follow(n_free, at, segment, theta, lower, upper, step)
    length = math.sqrt(_quadratic(metric, step))
    if fraction < 1.0:
        # Further segments use arrays of their own; the region keeps its model.
        others = empty_rows(2 * n_params + 3, n_params)
        while fraction < 1.0 and n_free > 0 and length < radius:
            at[n_params], at[n_params + 1] = n_free, _WHOLE
            if not _leg(model, (radius - length, null), (at, others), step, segment):
                return np.nan, np.nan
            n_free, fraction = _follow(n_free, at, segment, theta, lower, upper, step)
            length = math.sqrt(_quadratic(metric, step))
        keep(others)
    keep(row_of_step)
    keep(at)
    decrease = -0.5 * _quadratic(hessian, step)
    for j in range(n_params):
        decrease -= gradient[j] * step[j]
    return decrease, length


@compile_loop
@compact
def _decompose_loop(model, region, step):
    _free(model, region[0])
    return region[0][step.size] == 0 or _decompose(region[0][step.size], model, region, step)


call_find_step = call_by_address(types.UniTuple(types.float64, 2))


@cache
def step_address() -> int:
    """Address of `find_step`, for compiled loops that call it."""
    vector, matrix = np.empty(0), np.empty((0, 0))
    model = vector, vector, matrix, matrix, vector, vector
    return address_of(find_step, model, 1.0, TRUST.rounding, region_arrays(0), vector)


def region_arrays(n_params: int) -> tuple[IntArray, FloatArray]:
    """Arrays in which `find_step` keeps a model of P parameters, for steps of other lengths.

    Integers: the free coordinates, in a vector of P + 2 that ends with their number and what is
    known.  Numbers, in rows of P: the eigenvectors, the factor of the metric, the curvatures, the
    slope, and room.
    """
    integers = np.empty(n_params + 2, np.int64)
    integers[-1] = _NEW
    return integers, np.empty((2 * n_params + 3, n_params))


_Model: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""Parameters, gradient, Hessian, metric, and lower and upper bounds."""


class BoxStep(NamedTuple):
    """A step (P,), the decrease of the quadratic model and the length in the metric."""

    step: FloatArray
    decrease: float
    length: float


def _step(
    model: _Model, radius: float, null: float, arrays: tuple[IntArray, FloatArray]
) -> BoxStep:
    step = np.empty(model[0].size)
    decrease, length = find_step(model, float(radius), null, arrays, step)
    if arrays[0][-1] == _INDEFINITE:
        raise np.linalg.LinAlgError(INDEFINITE)
    if not math.isfinite(decrease):
        raise RangeError
    return BoxStep(step, decrease, length)


class Region:
    """The quadratic model of an objective in a box, diagonalised once for steps of any length.

    Of the coordinates `n_free` are free, those `at` (n_free,): they can move downhill.  The leading
    rows and columns of `factor` (P, P) are the Cholesky factor of their metric, without which a
    `LinAlgError` is raised; `curvatures` (n_free,) are the eigenvalues of the curvature in the
    metric, in ascending order.
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
        self._model = theta, gradient, hessian, metric, lower, upper
        self._arrays = integers, basis = region_arrays(n_params)
        if not _decompose_loop(self._model, self._arrays, np.zeros(n_params)):
            raise np.linalg.LinAlgError(INDEFINITE)
        self.n_free = int(integers[n_params])
        self.at = integers[: self.n_free]
        self.factor = basis[n_params : 2 * n_params]
        self.curvatures = basis[2 * n_params, : self.n_free]

    def is_plain(self) -> bool:
        """Whether a step inside the region is Newton's, by curvatures with half of their digits."""
        known = self.curvatures
        return not known.size or bool(known[0] > math.sqrt(TRUST.rounding) * known[-1])

    def step(self, radius: float, null: float = TRUST.rounding) -> BoxStep:
        """A step that decreases the model inside the box and the region.

        The region step of the free coordinates is followed to the first edge of the box; the
        coordinate that met it stays there and the rest goes on within the same model.  Every
        segment decreases the model, and there are at most P.  Curvatures smaller than the part
        `null` of the largest are replaced by it.  A `RangeError` says that the model is not finite.
        """
        return _step(self._model, radius, null, self._arrays)


def box_step(
    theta: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    radius: float,
) -> BoxStep:
    """The step of a `Region` that is used once."""
    model = theta, gradient, hessian, metric, lower, upper
    return _step(model, radius, TRUST.rounding, region_arrays(theta.size))
