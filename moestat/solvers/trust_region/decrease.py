"""Decreases of an objective, also those too small to be read off its values.

At n = 1e14 a log-likelihood is rounded to a hundredth of a unit, and a difference of two of them to
as much.  Gradients are rounded by less than what a step needs to be judged.
"""

from __future__ import annotations

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, device
from moestat.solvers.problem import Evaluation
from moestat.solvers.rules import GAIN_LIMIT, TRUST


@device(forceinline=False)
@compact
def finest_decrease(value):
    """Decreases of an objective of this value down to which a difference of two can be read."""
    return TRUST.rounding * abs(value)


@device(forceinline=False)
@compact
def smallest_decrease(value, tolerance):
    """The smallest decrease worth a step: the tolerance, or what rounding of the value allows."""
    finest = TRUST.rounding * abs(value)
    finest = finest if finest < 0.5 * GAIN_LIMIT else 0.5 * GAIN_LIMIT
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
        return 3.0 * radius if 3.0 * radius < TRUST.largest else TRUST.largest
    return radius


def straight_decrease(step: FloatArray, here: Evaluation, there: Evaluation) -> float:
    """Decrease along a step (P,) from the derivatives at both ends.

    The corrected trapezoidal rule: exact for polynomials of degree 4, and rounded by a small
    multiple of the step where a difference of the values is rounded like the values.
    """
    slopes = step @ here.gradient + step @ there.gradient
    curvatures = step @ here.hessian @ step - step @ there.hessian @ step
    return -float(0.5 * slopes + curvatures / 12.0)
