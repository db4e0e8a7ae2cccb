"""A line search for the weak conditions of Wolfe inside a box, by bisection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from moestat.base.types import FloatArray
from moestat.solvers.problem import Iteration, Request, ValueGradient
from moestat.solvers.trust_region.decrease import ROUNDING

__all__ = ["DECREASE", "FLATTER", "HALVINGS", "Searched", "weak_wolfe"]

DECREASE, FLATTER, HALVINGS = 1e-4, 0.9, 40
"""Parts of the predicted decrease and of the slope that a trial must meet, and trials at most."""

Searched = tuple[FloatArray, ValueGradient, list[tuple[FloatArray, FloatArray]]]
"""The point found with its evaluation, and all trials with their gradients."""


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
    theta, value, gradient = begin.theta, here.value, here.gradient
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rooms = np.where(step > 0.0, (upper - theta) / step, (lower - theta) / step)
    room = float(np.min(rooms[step != 0.0], initial=np.inf))
    low, high, t = 0.0, np.inf, first
    slope = float(gradient @ step)
    best, tried = theta, []
    for _ in range(HALVINGS):
        t = min(t, room)
        point = np.clip(theta + t * step, lower, upper)
        there = yield replace(begin, theta=point)
        tried.append((point, there.gradient))
        gained = value - there.value
        if abs(gained) <= ROUNDING * abs(value):
            gained = -0.5 * t * float((gradient + there.gradient) @ step)
        if not gained >= DECREASE * t * predicted:
            high = t
        else:
            best, here = point, there
            if there.gradient @ step >= FLATTER * min(slope, 0.0) or t >= room:
                break
            low = t
        t = 0.5 * (low + high) if np.isfinite(high) else 2.0 * t
    return best, here, tried
