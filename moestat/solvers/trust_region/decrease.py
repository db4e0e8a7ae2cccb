"""Decreases of an objective, also those too small to be read off its values.

At n = 1e14 a log-likelihood is rounded to a hundredth of a unit, and a difference of two of them to
as much.  Gradients are rounded by less than what a step needs to be judged.
"""

from __future__ import annotations

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, device
from moestat.solvers.problem import Evaluation

__all__ = [
    "ACCEPT",
    "GAIN_LIMIT",
    "LARGEST_RADIUS",
    "LEAST_PROGRESS",
    "PATIENCE",
    "SMALLEST_RADIUS",
    "PREVIEW_TOLERANCE",
    "ROUNDING",
    "finest_decrease",
    "is_converged",
    "next_radius",
    "smallest_decrease",
    "straight_decrease",
]

# Differences of two values are rounded by this much of a value.  Gradients are then the finer
# measure, down to the second constant, in units of log-likelihood: half of what a certificate
# allows.  Along the flattest directions at n = 1e14 their own rounding predicts about as much.
ROUNDING, _FINEST = 1e-14, 5e-5

ACCEPT = 1e-4
"""Part of the predicted decrease from which on a step is made."""

SMALLEST_RADIUS, LARGEST_RADIUS = 1e-10, 1e4
"""Of a trust region, in the metric of the predictors: with a smaller one a solver has stalled."""

PATIENCE, LEAST_PROGRESS = 40, 1e-4
"""Iterations after which a solver that has gained less, in log-likelihood, has stalled: at a kink,
as an M-step or an activation may have one, steps keep bouncing."""

GAIN_LIMIT = 1e-4
"""A fit is certified when no step can gain more than this many units of log-likelihood.

It then lies within ``sqrt(2 * 1e-4)``, 1.4 percent of a standard error, of the maximum.
"""

PREVIEW_TOLERANCE = 1e-2
"""A part of the data says no more about the optimum than this, in units of log-likelihood."""


@device(forceinline=False)
@compact
def finest_decrease(value):
    """Decreases of an objective of this value down to which a difference of two can be read."""
    return ROUNDING * abs(value)


@device(forceinline=False)
@compact
def smallest_decrease(value, tolerance):
    """The smallest decrease worth a step: the tolerance, or what rounding of the value allows."""
    finest = ROUNDING * abs(value)
    finest = finest if finest < _FINEST else _FINEST
    return tolerance if tolerance > finest else finest


@device(forceinline=False)
@compact
def is_converged(decrease, length, radius, value, tolerance):
    """Whether a step of some length within the radius has nothing left to gain."""
    smallest = smallest_decrease(value, tolerance)
    return (length <= 0.5 * radius and decrease <= smallest) or decrease <= 1e-3 * smallest


@device(forceinline=False)
@compact
def next_radius(ratio, length, radius):
    """The radius after a step of some length that gained `ratio` of the predicted decrease."""
    if ratio < 0.25:
        return 0.25 * (length if length < radius else radius)
    if ratio > 0.75 and length > 0.8 * radius:
        return 3.0 * radius if 3.0 * radius < LARGEST_RADIUS else LARGEST_RADIUS
    return radius


def straight_decrease(step: FloatArray, here: Evaluation, there: Evaluation) -> float:
    """Decrease along a step (P,) from the derivatives at both ends.

    The corrected trapezoidal rule: exact for polynomials of degree 4, and rounded by a small
    multiple of the step where a difference of the values is rounded like the values.
    """
    slopes = step @ here.gradient + step @ there.gradient
    curvatures = step @ here.hessian @ step - step @ there.hessian @ step
    return -float(0.5 * slopes + curvatures / 12.0)
