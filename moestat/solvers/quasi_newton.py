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

from moestat.base.types import FloatArray, IntArray
from moestat.compiler.jit import compact, compile_loop
from moestat.solvers.certificate import spectrum
from moestat.solvers.line_search import weak_wolfe
from moestat.solvers.newton import Ended, Newton
from moestat.solvers.problem import (
    Evaluation,
    Iteration,
    Objective,
    Problem,
    Request,
    ValueGradient,
)
from moestat.solvers.trust_region.decrease import LARGEST_RADIUS, smallest_decrease
from moestat.solvers.trust_region.kinks import has_kinks
from moestat.solvers.trust_region.large import LargeRegion, Metric
from moestat.solvers.trust_region.region import free_coordinates

__all__ = ["MANY", "QuasiNewton", "bfgs_steps"]

MANY = 70
"""Parameters above which climbing without Hessians takes less time."""

_MEMORY, _ROUND = 50, 50  # steps that BFGS remembers, and between two curvatures of complete data
_NEAR = 1e-2  # predicted gain, in units of log-likelihood, at which the first Hessian is made
_RIDGE, _STEEPER = 1e-3, 10.0  # of the predictors' metric, and its growth where that is not enough
_FLATTEST = 1e-4  # least curvature, in units of log-likelihood per squared predictor
_LONGER = 10.0  # growth of the radius after a step that went to its edge


@compile_loop
@compact
def _before(moved, change, order, rest, along, share):
    """The first of Nocedal's two loops: `rest` (P,) without the steps of the memory (m, P)."""
    for q in range(order.size):
        j = order[q]
        along[j] = 0.0
        inner = 0.0
        for i in range(rest.size):
            along[j] += moved[j, i] * change[j, i]
            inner += moved[j, i] * rest[i]
        share[j] = inner / along[j] if along[j] > 0.0 else 0.0
        for i in range(rest.size):
            rest[i] -= share[j] * change[j, i]


@compile_loop
@compact
def _after(moved, change, order, rest, along, share):
    """The second: `rest` (P,) with them again, in the opposite order."""
    for q in range(order.size - 1, -1, -1):
        j = order[q]
        if along[j] > 0.0:
            inner = 0.0
            for i in range(rest.size):
                inner += change[j, i] * rest[i]
            for i in range(rest.size):
                rest[i] += (share[j] - inner / along[j]) * moved[j, i]


class _Curvature:
    """A curvature (P, P) with a memory of steps, from which BFGS makes the next one."""

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix
        self._moved, self._change = np.empty((2, _MEMORY, len(matrix)))
        self._along, self._share = np.empty((2, _MEMORY))
        self._made = 0
        self._at: IntArray = np.arange(0)
        self._factor = scipy.linalg.cho_factor(np.zeros((0, 0)))

    def renew(self, matrix: FloatArray) -> None:
        """Take another matrix; the memory stays."""
        self._matrix, self._at = matrix, np.arange(0)

    def remember(self, moved: FloatArray, change: FloatArray) -> None:
        """A step (P,) and what it changed the gradient by."""
        place = self._made % _MEMORY
        self._moved[place], self._change[place] = moved, change
        self._made += 1

    def step(self, gradient: FloatArray, at: IntArray) -> FloatArray:
        """The step (P,) over the coordinates `at`: two loops over the memory, Nocedal (1980)."""
        if not np.array_equal(at, self._at):
            block = self._matrix[np.ix_(at, at)]
            self._at, self._factor = at, scipy.linalg.cho_factor(block, check_finite=False)
        last = np.arange(self._made - 1, max(self._made - _MEMORY, 0) - 1, -1) % _MEMORY
        moved, change, rest = self._moved, self._change, gradient[at]
        if at.size < gradient.size:
            moved, change = np.ascontiguousarray(moved[:, at]), np.ascontiguousarray(change[:, at])
        memory = moved, change, last, rest, self._along, self._share
        _before(*memory)
        rest[:] = scipy.linalg.cho_solve(self._factor, rest, check_finite=False)
        _after(*memory)
        step = np.zeros_like(gradient)
        step[at] = -rest
        return step

    def step_inside(
        self, theta: FloatArray, gradient: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> FloatArray:
        """The step (P,) without the coordinates on an edge of the box that it would cross."""
        at = np.flatnonzero(free_coordinates(theta, gradient, lower, upper))
        while True:
            step = self.step(gradient, at)
            crosses = (theta <= lower) & (step < 0.0) | (theta >= upper) & (step > 0.0)
            if not crosses.any():
                return step
            at = at[~crosses[at]]


def _complete(problem: Problem, theta: FloatArray, level: int) -> Iteration[FloatArray]:
    """Curvature (P, P) of the complete data, given the responsibilities at theta, made definite."""
    yield Request(Objective.EXPECTATION, theta, level)
    matrix = (yield Request(Objective.COMPLETE, theta, level)).hessian
    matrix = np.where(np.isfinite(matrix).all(), matrix, 0.0)
    ridge = _RIDGE * float(problem.data.levels[level].weight.sum()) * problem.metric(theta)
    while True:
        matrix = matrix + ridge
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            ridge *= _STEEPER
        else:
            return matrix


def _without_signs(region: LargeRegion) -> FloatArray:
    """The Hessian (P, P) with its curvatures' signs dropped, not quite flat in any direction."""
    metric, block = region.metric.matrix, np.ix_(region.at, region.at)
    values, vectors = region.basis
    half = metric[block] @ vectors
    matrix = metric.copy()
    matrix[block] = (half * np.maximum(np.abs(values), _FLATTEST)) @ half.T
    return matrix


def bfgs_steps(
    problem: Problem,
    theta: FloatArray,
    level: int,
    most: int,
    tolerance: float = _NEAR,
    matrix: FloatArray | None = None,
) -> Iteration[tuple[FloatArray, ValueGradient, int]]:
    """Climb by BFGS on one level of the data; returns (theta, evaluation, steps).

    It ends after `most` steps, where a step is predicted to gain less than the tolerance, or where
    none gains; with a `matrix` in place of the complete data's curvature after one round.
    """
    lower, upper = problem.family.box_at(theta)
    here = yield Request(Objective.SCORE, theta, level)
    if matrix is not None:
        most = min(most, _ROUND)
    else:
        matrix = yield from _complete(problem, theta, level)
    curvature, fresh = _Curvature(matrix), 0
    for steps in range(most):
        if fresh == _ROUND:
            curvature.renew((yield from _complete(problem, theta, level)))
            fresh = 0
        step = curvature.step_inside(theta, here.gradient, lower, upper)
        predicted = -float(step @ here.gradient)
        if predicted <= 2.0 * tolerance:
            return theta, here, steps
        begin = Request(Objective.SCORE, theta, level)
        point, there, _ = yield from weak_wolfe(begin, here, step, predicted, (lower, upper))
        if point is theta:
            return theta, here, steps
        curvature.remember(point - theta, there.gradient - here.gradient)
        theta, here, fresh = point, there, fresh + 1
    return theta, here, most


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
    box, lengths = problem.family.box_at(theta), Metric(metric)
    radius, matrix, near = 1.0, None, _NEAR
    spent = 0
    while True:
        theta, _, steps = yield from bfgs_steps(problem, theta, level, most - spent, near, matrix)
        spent += steps
        here = yield Request(Objective.OBSERVED, theta, level)
        region = LargeRegion(theta, here.gradient, here.hessian, lengths, *box)
        move = region.step(radius)
        saddle = spectrum(region.basis[0]).inertia[2] > 0
        while saddle and move.decrease <= tolerance and radius < LARGEST_RADIUS:
            radius *= _LONGER
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
            radius = max(1.0, radius / _LONGER)
        elif move.length > 0.8 * radius:
            radius = min(_LONGER * radius, LARGEST_RADIUS)
        theta, matrix, near = point, _without_signs(region), 0.3 * tolerance
