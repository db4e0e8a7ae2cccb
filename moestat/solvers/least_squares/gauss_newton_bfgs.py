"""Least squares by BFGS in the metric of Gauss and Newton: many gradients for each matrix.

At a few hundred parameters a pass for value and gradient costs a few percent of one that adds the
matrix ``J'J``, and near the minimum most of what that matrix says stays true for many steps.  So
the inverse of ``J'J`` is only where the BFGS updates start; they learn what it lacks: the
residuals' own curvature, and the kinks of ReLU, at which BFGS with a line search for the weak
conditions of Wolfe does not stop (Lewis and Overton 2013).  After a round of steps the matrix is
made anew.  The idea of the hybrid: Al-Baali and Fletcher (1985); Fletcher and Xu (1987).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy

from moestat.base.types import FloatArray, IntArray
from moestat.solvers.least_squares.base import Descent, LeastSquaresSolver, smallest_gain
from moestat.solvers.least_squares.gauss_newton import balance, feature_metric
from moestat.solvers.line_search import weak_wolfe
from moestat.solvers.problem import (
    Evaluation,
    Iteration,
    Objective,
    Problem,
    Request,
    ValueGradient,
)
from moestat.solvers.rules import BFGS, GAIN_LIMIT, SQUARES, TRUST
from moestat.solvers.squares import rounding_level, variance_of
from moestat.solvers.trust_region.region import eigenbasis_step, free_coordinates


@dataclass
class _Trail:
    """Where a fit is on one level of the data, and its last gradients in (theta, gradient)."""

    theta: FloatArray
    value: float
    gradient: FloatArray
    gradients: deque[tuple[FloatArray, FloatArray]] = field(
        default_factory=lambda: deque(maxlen=SQUARES.bundle)
    )
    steps: int = 0


class _Metric(NamedTuple):
    """Where steps start: the inverse (F, F) of the matrix over the free coordinates `at` (F,).

    The matrix is in units of log-likelihood; `whole` (P, P) is the metric of the predictors.
    """

    at: IntArray
    inverse: FloatArray
    whole: FloatArray


@dataclass(frozen=True)
class GaussNewtonBFGS(LeastSquaresSolver):
    """Least squares by BFGS steps that start from the Gauss-Newton metric, in the box.

    Parameters
    ----------
    tolerance : float
        Stop when a step can gain no more than this many units of log-likelihood: half the sum
        of squares over the residual variance.
    max_iterations : int
        Largest number of steps, on all levels of the data together.

    Notes
    -----
    Large samples are fitted to a part of them first.  Near the minimum the exact Hessian takes
    the place of ``J'J``; negative curvature is followed, and the fit ends where there is none.
    With experts that have kinks there is no such Hessian: it ends where steps gain nothing, and
    the certificate balances the gradients around, see `moestat.solvers.Certificate`.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("least-squares", gate="softmax", n_experts=1)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0, noise=0.01)
    >>> result = fit(F, X, y, solver=GaussNewtonBFGS(), rng=0)
    >>> result.certificate.status, result.params.round(1).tolist()
    ('converged', [0.0, 0.0, 1.0, -2.0])
    """

    tolerance: float = 1e-6
    max_iterations: int = 5000
    name: str = "gauss-newton-bfgs"

    preview_tolerance = SQUARES.preview

    def _descend(
        self, problem: Problem, theta: FloatArray, level: int, tolerance: float, most: int
    ) -> Iteration[Descent]:
        trail, status = yield from _descend(problem, theta, level, tolerance, most)
        return Descent(trail.theta, status, trail.steps, tuple(trail.gradients))


def _descend(
    problem: Problem, theta: FloatArray, level: int, tolerance: float, most: int
) -> Iteration[tuple[_Trail, str]]:
    """Minimise on one level of the data; returns where that ended, and how."""
    data, kinked = problem.data.levels[level], problem.family.has_kinked_mean
    size, nothing = float(data.weight.sum()), rounding_level(data.y, data.weight)
    whole = feature_metric(problem)
    least = smallest_gain(tolerance, size)
    trail = _Trail(theta, np.inf, np.zeros_like(theta))
    near = last = False
    while True:
        here = yield Request(
            Objective.NEWTON if near else Objective.GAUSS_NEWTON, trail.theta, level
        )
        trail.value, trail.gradient = here.value, here.gradient
        variance = variance_of(here.value, size)
        if here.value <= nothing:
            return trail, "converged"
        if trail.steps >= most:
            return trail, "iteration limit"
        if near:
            ahead, leap, predicted = _newton(problem, trail.theta, here, variance, whole)
            if predicted <= least:
                return trail, "converged"
            yield from _search(problem, level, trail, leap, predicted, variance, whole)
        else:
            ahead, predicted = _gauss_newton(problem, trail.theta, here, variance, whole), 0.0
        rounds = most if last else BFGS.steps
        flat = yield from _round(problem, level, trail, ahead, variance, least, rounds)
        gained = (here.value - trail.value) / variance
        if near and gained < TRUST.accept * predicted:
            return trail, "stalled"
        if data.preview and (flat or gained < tolerance):
            return trail, "converged"
        if last:
            before = trail.value
            balanced = yield from _cross(problem, level, trail, ahead, variance)
            if balanced or before - trail.value < SQUARES.last * variance:
                return trail, "converged" if balanced else "stalled"
        last = kinked and (flat or gained < SQUARES.last)
        near = not kinked and not data.preview and (near or flat)


def _free(problem: Problem, theta: FloatArray, here: Evaluation) -> IntArray:
    """Coordinates that can move downhill."""
    return np.flatnonzero(free_coordinates(theta, here.gradient, *problem.family.box_at(theta)))


def _gauss_newton(
    problem: Problem, theta: FloatArray, here: Evaluation, variance: float, whole: FloatArray
) -> _Metric:
    """The metric of ``J'J``, not quite flat in any direction."""
    at = _free(problem, theta, here)
    block = np.ix_(at, at)
    matrix = here.hessian[block] / variance
    # At n = 1e14 the matrix is rounded by more than the least curvature.
    largest = float(np.max(np.diag(matrix) / np.diag(whole)[at], initial=0.0))
    matrix += max(SQUARES.shallowest, TRUST.rounding * largest) * whole[block]
    factor = scipy.linalg.cho_factor(matrix, check_finite=False)
    return _Metric(at, scipy.linalg.cho_solve(factor, np.eye(at.size), check_finite=False), whole)


def _newton(
    problem: Problem, theta: FloatArray, here: Evaluation, variance: float, whole: FloatArray
) -> tuple[_Metric, FloatArray, float]:
    """The metric of the Hessian with its signs dropped, Newton's step (P,), what that predicts."""
    at = _free(problem, theta, here)
    block = np.ix_(at, at)
    values, vectors = scipy.linalg.eigh(here.hessian[block] / variance, whole[block])
    slope = vectors.T @ here.gradient[at] / variance
    leap = eigenbasis_step(values, slope, 1.0)
    predicted = -float(slope @ leap + 0.5 * (values * leap) @ leap)
    inverse = (vectors / np.maximum(np.abs(values), SQUARES.shallowest)) @ vectors.T
    step = np.zeros_like(theta)
    step[at] = vectors @ leap
    return _Metric(at, inverse, whole), step, predicted


def _round(
    problem: Problem,
    level: int,
    trail: _Trail,
    ahead: _Metric,
    variance: float,
    least: float,
    most: int,
) -> Iteration[bool]:
    """BFGS steps along the trail; returns whether they ended as no further gain was predicted."""
    at, inverse = ahead.at, ahead.inverse
    milestone = trail.value
    for step_number in range(1, most + 1):
        before = trail.theta
        at, inverse, step = _inside(problem, before, trail.gradient / variance, at, inverse)
        slope = trail.gradient[at] / variance
        predicted = -float(slope @ step[at])
        if predicted <= 2.0 * least:
            return True
        yield from _search(problem, level, trail, step, predicted, variance, ahead.whole)
        if trail.theta is before:
            return False
        moved = (trail.theta - before)[at]
        change = trail.gradient[at] / variance - slope
        along = float(moved @ change)
        if along > 0.0:
            mapped = inverse @ change
            inverse = inverse + np.outer(moved, moved) * ((along + change @ mapped) / along**2)
            cross = np.outer(mapped, moved) / along
            inverse -= cross + cross.T
        if step_number % BFGS.steps == 0:
            if milestone - trail.value < GAIN_LIMIT * variance:
                return False
            milestone = trail.value
    return False


def _inside(
    problem: Problem, theta: FloatArray, slope: FloatArray, at: IntArray, inverse: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """The step (P,) against a slope (P,) that does not leave the box at once.

    Coordinates on an edge that it would cross are held there: returns those left over, and the
    inverse of the matrix over them.
    """
    lower, upper = problem.family.box_at(theta)
    while True:
        step = np.zeros_like(theta)
        step[at] = -inverse @ slope[at]
        stays = ~((theta <= lower) & (step < 0.0) | (theta >= upper) & (step > 0.0))[at]
        if stays.all():
            return at, inverse, step
        at, inverse = at[stays], _held(inverse, stays)


def _cross(
    problem: Problem, level: int, trail: _Trail, ahead: _Metric, variance: float
) -> Iteration[bool]:
    """Steps across kinks, along balanced gradients; returns whether these predict no further gain.

    A trial that fails lies behind a kink, and its gradient enters the next balance: gradient
    sampling (Burke, Lewis and Overton 2005) with the samples where they are needed.
    """
    at, inverse, whole = ahead
    for _ in range(SQUARES.crossings):
        root = _root(inverse)
        found = balance(
            trail.theta, trail.gradient, trail.gradients, at, root, whole, SQUARES.reach
        )
        slope = np.zeros_like(trail.theta)
        slope[at] = found.gradient / variance
        at, inverse, step = _inside(problem, trail.theta, slope, at, inverse)
        predicted = -float(slope @ step)
        # The certificate's matrix has directions that are flatter than those of the metric.
        if predicted <= 0.1 * GAIN_LIMIT:
            return True
        yield from _search(problem, level, trail, step, predicted, variance, whole)
    return False


def _root(inverse: FloatArray) -> FloatArray:
    """R with ``R R'`` the inverse of a matrix, which rounding may have made indefinite."""
    size = np.sqrt(np.diag(inverse))
    values, vectors = scipy.linalg.eigh(inverse / np.outer(size, size))
    return size[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))


def _held(inverse: FloatArray, inside: np.ndarray) -> FloatArray:
    """The inverse of a matrix without the coordinates that are not `inside`, from its inverse."""
    cross = inverse[np.ix_(inside, ~inside)]
    local = scipy.linalg.solve(inverse[np.ix_(~inside, ~inside)], cross.T, assume_a="pos")
    return inverse[np.ix_(inside, inside)] - cross @ local


def _search(
    problem: Problem,
    level: int,
    trail: _Trail,
    step: FloatArray,
    predicted: float,
    variance: float,
    whole: FloatArray,
) -> Iteration[None]:
    """Move the trail along a step to where both weak conditions of Wolfe hold, inside the box.

    The first trial changes the predictors by no more than 1.  The trail stays where it is when
    no trial decreases the value.
    """
    here = ValueGradient(trail.value, trail.gradient)
    first = min(1.0, 1.0 / max(float(np.sqrt(step @ whole @ step)), 1e-300))
    trail.theta, there, tried = yield from weak_wolfe(
        Request(Objective.GRADIENT, trail.theta, level),
        here,
        step,
        predicted * variance,
        problem.family.box_at(trail.theta),
        first,
    )
    trail.value, trail.gradient = there.value, there.gradient
    trail.gradients.extend(tried)
    trail.steps += 1
