"""The floor of a narrow curved valley, and the way back to it.

A step along a valley leaves its floor, by the valley's bend: by a second-order displacement in the
stiff directions, which costs far more likelihood than the step can gain.  A Newton step in the
stiff directions alone undoes this and keeps what the step has gained.  A full Newton step would
not do: off the floor the Hessian's soft curvatures mean nothing, for they are sums of the soft
curvatures of the floor and of much larger terms that vanish with the displacement.

Which directions are stiff is a matter of where the step has ended, since a valley that bends turns
them.  They are those whose stiffness is what it was before the step: where a displacement has
changed a curvature, the curvature says nothing about the floor.  And they are so stiff that a small
part of the step's length costs what the step was made for: softer ones are what the step went
along, and to go there again would leave the floor again.
"""

from __future__ import annotations

import math

import numpy as np

from moestat._jit import compact, compile_loop, device
from moestat._types import FloatArray
from moestat.kernels.views import empty_rows, part, row
from moestat.solvers._driver import Evaluation
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
from moestat.solvers._trust_region import MOST_ROTATIONS, BoxStep, can_descend

__all__ = ["Floor"]

_CHANGE = 0.5  # of a stiffness, relative to what it was, that still counts as none
_SMALL = 0.03  # part of a step's length that costs its promise in stiff directions


@device(forceinline=False)
@compact
def _stiffness(n, at, hessian, factor, matrix, work, plane, cosine, sine, values):
    """Curvatures of a Hessian in coordinates `at` where the metric is the identity.

    `values` are in no order; `matrix`, `work` and the rotations keep their directions.  Returns
    the number of rotations.
    """
    for i in range(n):
        for j in range(n):
            matrix[i, j] = hessian[at[i], at[j]]
    reduce_to_standard(n, factor, matrix)
    tridiagonalise(n, matrix, values, work[0], work[1], work[2])
    return diagonalise(n, values, work[0], plane, cosine, sine)


@device(forceinline=False)
@compact
def _ascending(n, values, order):
    """Fill `order` with the ranks' places: values[order[0]] is the lowest."""
    for i in range(n):
        j = i
        while j > 0 and values[order[j - 1]] > values[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@compile_loop
@compact
def _floor_loop(theta, gradient, hessian, metric, lower, upper, integers, factor, stiffness):
    """Fill the free coordinates, the Cholesky factor of their metric and their stiffness.

    Coordinates are the first of the `integers`; the stiffness ascends.  Returns their number, or
    -1 where the metric is not definite.
    """
    n_params = theta.size
    at = part(integers, 0, n_params)
    order = part(integers, n_params, 2 * n_params)
    plane = part(integers, 2 * n_params, integers.size)
    n = 0
    for j in range(n_params):
        if can_descend(theta[j], gradient[j], lower[j], upper[j]):
            at[n] = j
            n += 1
    for i in range(n):
        for j in range(n):
            factor[i, j] = metric[at[i], at[j]]
    if not cholesky(n, factor):
        return -1
    matrix, work = empty_rows(n_params, n_params), empty_rows(4, n_params)
    rotations = empty_rows(2, plane.size)
    values = row(work, 3)
    cosine, sine = row(rotations, 0), row(rotations, 1)
    _stiffness(n, at, hessian, factor, matrix, work, plane, cosine, sine, values)
    _ascending(n, values, order)
    for i in range(n):
        stiffness[i] = values[order[i]]
    return n


@compile_loop
@compact
def _restoration_loop(
    theta, gradient, hessian, lower, upper, length, promise, integers, n, factor, before, step
):
    """Fill `step`; returns the decrease that it promises and its length, 0 for no step."""
    n_params = theta.size
    at = part(integers, 0, n_params)
    order = part(integers, n_params, 2 * n_params)
    plane = part(integers, 2 * n_params, integers.size)
    matrix, work = empty_rows(n_params, n_params), empty_rows(5, n_params)
    rotations = empty_rows(2, plane.size)
    values, leg = row(work, 3), row(work, 4)
    cosine, sine = row(rotations, 0), row(rotations, 1)
    used = _stiffness(n, at, hessian, factor, matrix, work, plane, cosine, sine, values)
    _ascending(n, values, order)
    soft = promise / (0.5 * (_SMALL * length) ** 2)
    first = 0
    for i in range(n):
        value = values[order[i]]
        if abs(value - before[i]) > _CHANGE * before[i] or value < soft:
            first = i + 1
    for i in range(n):
        leg[i] = gradient[at[i]]
    forward_substitute(n, factor, leg)
    reflect_into(n, matrix, work[1], leg)
    rotate_into(used, plane, cosine, sine, leg)
    for i in range(first):
        leg[order[i]] = 0.0
    decrease, size = 0.0, 0.0
    for i in range(first, n):
        slope = leg[order[i]]
        leg[order[i]] = -slope / values[order[i]]
        decrease -= 0.5 * slope * leg[order[i]]
        size += leg[order[i]] ** 2
    size = math.sqrt(size)
    shrink = length / size if size > length else 1.0
    rotate_back(used, plane, cosine, sine, leg)
    reflect_back(n, matrix, work[1], leg)
    back_substitute(n, factor, leg)
    for j in range(n_params):
        step[j] = 0.0
    for i in range(n):
        j = at[i]
        move = shrink * leg[i]
        low, high = lower[j] - theta[j], upper[j] - theta[j]
        step[j] = low if move < low else high if move > high else move
    return (2.0 - shrink) * shrink * decrease, shrink * size


class Floor:
    """The stiffness of a quadratic model, by which the way back to its floor is found.

    Parameters
    ----------
    theta, gradient : ndarray of shape (P,)
        Where the model is, and its gradient there.
    hessian, metric : ndarray of shape (P, P)
        Curvature of the model, and the metric that lengths are measured in.
    lower, upper : ndarray of shape (P,)
        The box; coordinates held by it have no direction.

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
        self.lower, self.upper = lower, upper
        n_params = theta.size
        self._integers = np.empty((2 + MOST_ROTATIONS * n_params) * n_params, np.int64)
        self._factor, self._stiffness = np.empty((n_params, n_params)), np.empty(n_params)
        self._n_free = _floor_loop(
            theta,
            gradient,
            hessian,
            metric,
            lower,
            upper,
            self._integers,
            self._factor,
            self._stiffness,
        )
        if self._n_free < 0:
            raise np.linalg.LinAlgError("the metric is not positive definite")

    def restoration(
        self, theta: FloatArray, here: Evaluation, length: float, promise: float
    ) -> BoxStep | None:
        """A step back to the floor from theta (P,), where one of some length and promise has led.

        It is no longer than that step, and moves in the stiffest directions alone, down to the
        first one that is too soft or whose stiffness is no longer what it was; a coordinate that
        would leave the box stops at its edge.  None if there is no stiff direction.
        """
        step = np.empty(theta.size)
        decrease, size = _restoration_loop(
            theta,
            here.gradient,
            here.hessian,
            self.lower,
            self.upper,
            length,
            promise,
            self._integers,
            self._n_free,
            self._factor,
            self._stiffness,
            step,
        )
        return BoxStep(step, decrease, size) if size > 0.0 else None
