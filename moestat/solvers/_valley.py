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
from moestat.kernels.views import empty_like, empty_rows, part, row
from moestat.solvers._driver import Evaluation
from moestat.solvers._symmetric import into_eigenbasis, out_of_eigenbasis
from moestat.solvers._trust_region import MOST_ROTATIONS, BoxStep, Region

__all__ = ["Floor"]

_CHANGE = 0.5  # of a stiffness, relative to what it was, that still counts as none
_SMALL = 0.03  # part of a step's length that costs its promise in stiff directions


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
def _restoration_loop(
    theta, gradient, hessian, lower, upper, length, promise, at, factor, before, step
):
    """Fill `step`; returns the decrease that it promises and its length, 0 for no step."""
    n = at.size
    matrix, work, integers = (
        empty_rows(n, n),
        empty_rows(5, n),
        empty_like(at, n + MOST_ROTATIONS * n * n),
    )
    scratch = part(work, 0, 2)
    values, size, leg = row(work, 2), row(work, 3), row(work, 4)
    order, plane = part(integers, 0, n), part(integers, n, integers.size)
    rotations = empty_rows(2, plane.size)
    cosine, sine = row(rotations, 0), row(rotations, 1)
    for i in range(n):
        leg[i] = gradient[at[i]]
        for j in range(n):
            matrix[i, j] = hessian[at[i], at[j]]
    used = into_eigenbasis(n, factor, matrix, leg, values, size, scratch, plane, cosine, sine)
    _ascending(n, values, order)
    soft = promise / (0.5 * (_SMALL * length) ** 2)
    first = 0
    for i in range(n):
        value = values[order[i]]
        if abs(value - before[i]) > _CHANGE * before[i] or value < soft:
            first = i + 1
    for i in range(first):
        leg[order[i]] = 0.0
    decrease, square = 0.0, 0.0
    for i in range(first, n):
        slope = leg[order[i]]
        leg[order[i]] = -slope / values[order[i]]
        decrease -= 0.5 * slope * leg[order[i]]
        square += leg[order[i]] ** 2
    moved = math.sqrt(square)
    shrink = length / moved if moved > length else 1.0
    out_of_eigenbasis(n, used, factor, matrix, size, plane, cosine, sine, leg)
    for j in range(step.size):
        step[j] = 0.0
    for i in range(n):
        j = at[i]
        move = shrink * leg[i]
        low, high = lower[j] - theta[j], upper[j] - theta[j]
        step[j] = low if move < low else high if move > high else move
    return (2.0 - shrink) * shrink * decrease, shrink * moved


class Floor:
    """The stiffness of a quadratic model, by which the way back to its floor is found.

    Parameters
    ----------
    region : Region
        The model; coordinates held by its box have no direction.
    """

    def __init__(self, region: Region) -> None:
        self.region = region
        self.stiffness = np.sort(region.curvatures)

    def restoration(
        self, theta: FloatArray, here: Evaluation, length: float, promise: float
    ) -> BoxStep | None:
        """A step back to the floor from theta (P,), where one of some length and promise has led.

        It is no longer than that step, and moves in the stiffest directions alone, down to the
        first one that is too soft or whose stiffness is no longer what it was; a coordinate that
        would leave the box stops at its edge.  None if there is no stiff direction.
        """
        region, step = self.region, np.empty(theta.size)
        decrease, size = _restoration_loop(
            theta,
            here.gradient,
            here.hessian,
            region.lower,
            region.upper,
            length,
            promise,
            region.at,
            region.factor,
            self.stiffness,
            step,
        )
        return BoxStep(step, decrease, size) if size > 0.0 else None
