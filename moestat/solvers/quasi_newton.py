"""BFGS from the curvature of the complete data, with Newton's method at its ends.

A pass for value and gradient costs 1/36 of one with the Hessian at 576 parameters, and along paths
that lead far away, as where classes are nearly separated, a Hessian soon is out of date.  So BFGS
climbs.  Its first steps start from the curvature that EM's M-step uses, that of the complete data:
what it lacks is the information that the unobserved labels take away.  Where BFGS finds nothing
more, the Hessian is made.  If its model still predicts a gain, by negative curvature or along a
flat valley, a line search takes that step, and BFGS goes on from the Hessian without its signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from moestat.base.types import FloatArray
from moestat.solvers.bfgs import bfgs_steps
from moestat.solvers.certificate import spectrum
from moestat.solvers.line_search import weak_wolfe
from moestat.solvers.newton import Ended, Newton
from moestat.solvers.problem import Evaluation, Iteration, Objective, Problem, Request
from moestat.solvers.rules import BFGS, TRUST
from moestat.solvers.trust_region.decrease import smallest_decrease
from moestat.solvers.trust_region.kinks import has_kinks
from moestat.solvers.trust_region.region import Region

MANY = 70
"""Parameters above which climbing without Hessians takes less time."""


def _without_signs(region: Region, hessian: FloatArray, metric: FloatArray) -> FloatArray:
    """The Hessian (P, P) with its curvatures' signs dropped, not quite flat in any direction.

    Held coordinates stand apart: with the metric's entries beside a flatter block it would not be
    definite when one of them becomes free.
    """
    block = np.ix_(region.at, region.at)
    values, vectors = scipy.linalg.eigh(hessian[block], metric[block])
    half = metric[block] @ vectors
    matrix = np.diag(np.diagonal(metric))
    matrix[block] = (half * np.maximum(np.abs(values), BFGS.flattest)) @ half.T
    return matrix + BFGS.margin * np.diag(np.diagonal(matrix))


@dataclass(frozen=True)
class QuasiNewton(Newton):
    """BFGS steps from the curvature of complete data, ended by Newton's: for many parameters.

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

    tolerance: float = 1e-6
    max_iterations: int = 5000
    name: str = "quasi-newton"

    def _climb(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        metric: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[Ended]:
        """Minimise on one level of the data."""
        if has_kinks(problem.family):
            return (
                yield from super()._climb(problem, level, theta, metric, tolerance, max_iterations)
            )
        return *(yield from _climb(problem, level, theta, metric, tolerance, max_iterations)), 1.0


def _climb(
    problem: Problem,
    level: int,
    theta: FloatArray,
    metric: FloatArray,
    tolerance: float,
    most: int,
) -> Iteration[tuple[FloatArray, Evaluation, str, int]]:
    """Rounds of BFGS steps, each with a step by the Hessian at its end."""
    box = problem.family.box_at(theta)
    radius = 1.0
    matrix = None
    near = BFGS.near
    spent = 0
    while True:
        theta, _, steps = yield from bfgs_steps(problem, theta, level, most - spent, near, matrix)
        spent += steps
        here = yield Request(Objective.OBSERVED, theta, level)
        region = Region(theta, here.gradient, here.hessian, metric, *box)
        move = region.step(radius)
        saddle = spectrum(region.curvatures).inertia[2] > 0
        while saddle and move.decrease <= tolerance and radius < TRUST.largest:
            radius *= BFGS.growth
            move = region.step(radius)
        if move.decrease <= smallest_decrease(here.value, tolerance):
            return theta, here, "converged", spent
        if spent >= most:
            return theta, here, "iteration limit", spent
        begin = Request(Objective.SCORE, theta, level)
        point, _, _ = yield from weak_wolfe(begin, here, move.step, move.decrease, box)
        spent += 1
        made = np.linalg.norm(point - theta) / max(float(np.linalg.norm(move.step)), 1e-300)
        if made == 0.0:
            return theta, here, "stalled", spent
        if made < 0.9:
            radius = max(1.0, radius / BFGS.growth)
        elif move.length > 0.8 * radius:
            radius = min(BFGS.growth * radius, TRUST.largest)
        theta, near = point, 0.3 * tolerance
        matrix = _without_signs(region, here.hessian, metric)
