"""BFGS from the curvature of the complete data, with Newton's method at its ends.

A pass for value and gradient costs 1/36 of one with the Hessian at 576 parameters, and along paths
that lead far away, as where classes are nearly separated, a Hessian soon is out of date.  So BFGS
climbs.  Its first steps start from the curvature that EM's M-step uses, that of the complete data:
what it lacks is the information that the unobserved labels take away.  Where BFGS finds nothing
more, the Hessian is made.  If its model still predicts a gain, by negative curvature or along a
flat valley, a line search takes that step, and BFGS goes on from the Hessian without its signs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from moestat.base.types import FloatArray
from moestat.solvers.bfgs import bfgs_steps
from moestat.solvers.certificate import spectrum
from moestat.solvers.line_search import weak_wolfe
from moestat.solvers.newton import Newton
from moestat.solvers.problem import End, Evaluation, Iteration, Objective, Problem, Request
from moestat.solvers.rules import (
    BFGS,
    QUASI_NEWTON_STEPS,
    QUASI_NEWTON_TOLERANCE,
    TINY,
    TRUST,
    ZERO_CURVATURE,
)
from moestat.solvers.trust_region.decrease import smallest_decrease
from moestat.solvers.trust_region.kinks import has_kinks
from moestat.solvers.trust_region.region import BoxStep, Region

MANY = 70
"""Number of parameters above which quasi-Newton steps take less time than Newton's."""


@dataclass(frozen=True)
class QuasiNewton(Newton):
    """BFGS steps from the curvature of the complete data, with a Newton step at the end.

    The default for more than 70 parameters.

    Parameters
    ----------
    tolerance : float
        Stop when a step can gain no more than this many units of log-likelihood.
    max_iterations : int
        Largest number of steps.

    Notes
    -----
    BFGS with limited memory (Nocedal 1980) climbs by passes for value and gradient.  It starts from
    the curvature of the complete data, anew every 50 steps; at its end the exact Hessian says
    whether a step of a trust region gains more.  The certificate is that of `Newton`.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0)
    >>> fit(F, X, y, solver=QuasiNewton(), rng=0).certificate.status
    'converged'
    """

    tolerance: float = QUASI_NEWTON_TOLERANCE
    max_iterations: int = QUASI_NEWTON_STEPS
    name: str = "quasi-newton"

    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, Evaluation]]:
        """Rounds of BFGS steps from theta (P,), each with a step by the Hessian at its end."""
        if has_kinks(problem.family):
            return (
                yield from super().climb_level(problem, level, theta, tolerance, max_iterations)
            )
        metric, box = problem.metric(theta), problem.family.box_at(theta)
        radius, matrix, near, spent = 1.0, None, TRUST.preview, 0
        while True:
            theta, _, n_steps = yield from bfgs_steps(
                problem, theta, level, max_iterations - spent, near, matrix
            )
            spent += n_steps
            current = yield Request(Objective.OBSERVED, theta, level)
            region = Region(theta, current.gradient, current.hessian, metric, *box)
            move, radius = _predict_gain(region, radius, tolerance)
            if move.decrease <= smallest_decrease(current.value, tolerance):
                if region.is_plain() and move.length <= 0.5 * radius:
                    # The last step is known, and needs no pass, as in Newton's method.
                    theta = np.clip(theta + move.step, *box)
                    current = replace(current, value=current.value - move.decrease)
                return End(theta, "converged", spent), current
            if spent >= max_iterations:
                return End(theta, "iteration limit", spent), current
            begin = Request(Objective.SCORE, theta, level)
            point, _, _ = yield from weak_wolfe(begin, current, move.step, move.decrease, box)
            spent += 1
            if (point == theta).all():
                return End(theta, "stalled", spent), current
            radius = _next_radius(radius, move, point - theta)
            matrix = _without_signs(region, current.hessian, metric)
            theta, near = point, tolerance


def _predict_gain(region: Region, radius: float, tolerance: float) -> tuple[BoxStep, float]:
    """The best step within the radius, and the radius.

    At a saddle point the radius grows until the step is predicted to gain more than the tolerance:
    along a negative curvature the gain grows like the square of the length.
    """
    move = region.step(radius)
    saddle = spectrum(region.curvatures).inertia[2] > 0
    while saddle and move.decrease <= tolerance and radius < TRUST.largest:
        radius *= BFGS.growth
        move = region.step(radius)
    return move, radius


def _next_radius(radius: float, move: BoxStep, actual: FloatArray) -> float:
    """The radius after a line search that followed a step `move` up to `actual` (P,)."""
    part = np.linalg.norm(actual) / max(float(np.linalg.norm(move.step)), TINY)
    if part < BFGS.flatter:
        return max(1.0, radius / BFGS.growth)
    if move.length > TRUST.edge * radius:
        return min(BFGS.growth * radius, TRUST.largest)
    return radius


def _without_signs(region: Region, hessian: FloatArray, metric: FloatArray) -> FloatArray:
    """The Hessian (P, P) with the absolute values of its curvatures, bounded below.

    Coordinates on a bound have a diagonal block of their own, so that the matrix stays definite
    when one of them becomes free.
    """
    block = np.ix_(region.at, region.at)
    values, vectors = scipy.linalg.eigh(hessian[block], metric[block])
    half = metric[block] @ vectors
    matrix = np.diag(np.diagonal(metric))
    matrix[block] = (half * np.maximum(np.abs(values), BFGS.flattest)) @ half.T
    return matrix + ZERO_CURVATURE * np.diag(np.diagonal(matrix))
