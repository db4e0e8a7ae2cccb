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
def judge(values, slopes, predicted, t, room):
    """Verdict on the part t of a step, from the values and slopes at both of its ends.

    A part as long as `room` ends on the edge of the box and cannot be too short.
    """
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
    """The next part to try: midway between the bounds, or twice as far if none was too long."""
    return 0.5 * (low + high) if high < np.inf else 2.0 * t


def weak_wolfe(
    begin: Request,
    current: ValueGradient,
    step: FloatArray,
    predicted: float,
    box: tuple[FloatArray, FloatArray],
    first: float = 1.0,
) -> Iteration[Searched]:
    """Search along a step for a point where both weak conditions of Wolfe hold, in the box.

    The whole step (P,) is predicted to decrease the value by `predicted`; the first trial is the
    part `first` of it.  If no trial decreases the value, the starting point is returned.
    """
    lower, upper = box
    theta = begin.theta
    value = current.value
    gradient = current.gradient
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rooms = np.where(step > 0.0, (upper - theta) / step, (lower - theta) / step)
    room = float(np.min(rooms[step != 0.0], initial=np.inf))
    low = 0.0
    high = np.inf
    t = first
    slope = float(gradient @ step)
    best, trials = theta, []
    for _ in range(TRUST.patience):
        t = min(t, room)
        point = np.clip(theta + t * step, lower, upper)
        proposed = yield replace(begin, theta=point)
        trials.append((point, proposed.gradient))
        slopes = slope, float(proposed.gradient @ step)
        verdict = judge((value, proposed.value), slopes, predicted, t, room)
        if verdict == TOO_LONG:
            high = t
        else:
            best = point
            current = proposed
            low = t
            if verdict == GOOD:
                break
        t = next_trial(low, high, t)
    return best, current, trials
