"""A line search for the weak conditions of Wolfe inside a box, by bisection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, device
from moestat.solvers.problem import Iteration, Request, ValueGradient
from moestat.solvers.rules import BFGS, TRUST

TOO_LONG, TOO_SHORT, GOOD = range(3)

Searched = tuple[FloatArray, ValueGradient, list[tuple[FloatArray, FloatArray]]]
"""The point found with its evaluation, and all trials with their gradients."""


@device(forceinline=False)
@compact
def judged(values, slopes, predicted, t, room):
    """What values and slopes at both ends say of the part t of a step that has some room."""
    gained = values[0] - values[1]
    if abs(gained) <= TRUST.rounding * abs(values[0]):
        gained = -0.5 * t * (slopes[0] + slopes[1])
    if not gained >= TRUST.accept * t * predicted:
        return TOO_LONG
    steep = slopes[0] if slopes[0] < 0.0 else 0.0
    return GOOD if slopes[1] >= BFGS.flatter * steep or t >= room else TOO_SHORT


@device(forceinline=False)
@compact
def next_trial(low, high, t):
    """Between parts that were too short and too long, or twice as far."""
    return 0.5 * (low + high) if high < np.inf else 2.0 * t


def weak_wolfe(
    begin: Request,
    here: ValueGradient,
    step: FloatArray,
    predicted: float,
    box: tuple[FloatArray, FloatArray],
    first: float = 1.0,
) -> Iteration[Searched]:
    """Go along a step to where the value has decreased and the slope is flatter, in the box.

    The first trial is `first` of the step (P,), all of which is predicted to decrease the value by
    `predicted`.  Where no trial decreases it the point is that of the request to `begin` with.
    """
    lower, upper = box
    theta = begin.theta
    value = here.value
    gradient = here.gradient
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rooms = np.where(step > 0.0, (upper - theta) / step, (lower - theta) / step)
    room = float(np.min(rooms[step != 0.0], initial=np.inf))
    low = 0.0
    high = np.inf
    t = first
    slope = float(gradient @ step)
    best, tried = theta, []
    for _ in range(BFGS.trials):
        t = min(t, room)
        point = np.clip(theta + t * step, lower, upper)
        there = yield replace(begin, theta=point)
        tried.append((point, there.gradient))
        slopes = slope, float(there.gradient @ step)
        verdict = judged((value, there.value), slopes, predicted, t, room)
        if verdict == TOO_LONG:
            high = t
        else:
            best = point
            here = there
            low = t
            if verdict == GOOD:
                break
        t = next_trial(low, high, t)
    return best, here, tried
