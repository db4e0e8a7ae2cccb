"""Decreases of an objective, also those too small to be read off its values.

At n = 1e14 a log-likelihood is rounded to a hundredth of a unit, and a difference of two of them to
as much.  Gradients are rounded by less than what a step needs to be judged.
"""

from __future__ import annotations

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, device
from moestat.solvers.problem import Evaluation
from moestat.solvers.rules import GAIN_LIMIT, NEGLIGIBLE, TRUST


@device(forceinline=False)
@compact
def finest_decrease(value):
    """Smallest decrease that a difference of two values of this size shows."""
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
    """Whether a step, of this length and predicted decrease, shows that the climb has converged."""
    smallest = smallest_decrease(value, tolerance)
    return (length <= 0.5 * radius and decrease <= smallest) or decrease <= NEGLIGIBLE * smallest


@device(forceinline=False)
@compact
def next_radius(ratio, length, radius):
    """The radius after a step of some length that gained `ratio` of the predicted decrease."""
    if ratio < TRUST.poor:
        return 0.25 * (length if length < radius else radius)
    if ratio > TRUST.good and length > TRUST.edge * radius:
        return 3.0 * radius if 3.0 * radius < TRUST.largest else TRUST.largest
    return radius


@device(forceinline=False)
@compact
def trapezoid(slopes, bends):
    """Integral of a slope over an interval of length one, by the corrected trapezoidal rule.

    `slopes` is the sum of the slopes at both ends, and `bends` the derivative of the slope at the
    start minus that at the end.
    """
    return 0.5 * slopes + bends / 12.0


def straight_decrease(step: FloatArray, current: Evaluation, proposed: Evaluation) -> float:
    """Decrease along a step (P,) from the derivatives at both ends.

    The corrected trapezoidal rule: exact for polynomials of degree 4, and rounded by a small
    multiple of the step where a difference of the values is rounded like the values.
    """
    slopes = step @ current.gradient + step @ proposed.gradient
    curvatures = step @ current.hessian @ step - step @ proposed.hessian @ step
    return -float(trapezoid(slopes, curvatures))
