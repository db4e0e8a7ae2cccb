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
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy

from moestat.base.types import FloatArray, IntArray
from moestat.solvers.least_squares.base import LeastSquaresSolver, smallest_gain
from moestat.solvers.least_squares.gauss_newton import balance, feature_metric
from moestat.solvers.line_search import weak_wolfe
from moestat.solvers.problem import (
    End,
    Evaluation,
    Iteration,
    Objective,
    Problem,
    Request,
    ValueGradient,
)
from moestat.solvers.rules import (
    BFGS,
    GAIN_LIMIT,
    QUASI_NEWTON_STEPS,
    QUASI_NEWTON_TOLERANCE,
    SQUARES,
    TINY,
    TRUST,
)
from moestat.solvers.squares import rounding_level, variance_of
from moestat.solvers.trust_region.region import eigenbasis_step, free_coordinates


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

    tolerance: float = QUASI_NEWTON_TOLERANCE
    max_iterations: int = QUASI_NEWTON_STEPS
    name: str = "gauss-newton-bfgs"

    preview_tolerance: ClassVar[float] = SQUARES.visible

    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, None]]:
        """Rounds of BFGS steps from theta (P,), each from a new matrix, on one level."""
        data, kinked = problem.data.levels[level], problem.family.has_kinked_mean
        size, exact_fit = float(data.weight.sum()), rounding_level(data.y, data.weight)
        smallest = smallest_gain(tolerance, size)
        trail = _Trail(problem, level, theta)
        by_hessian = is_last = False
        while True:
            objective = Objective.NEWTON if by_hessian else Objective.GAUSS_NEWTON
            current = yield Request(objective, trail.theta, level)
            trail.take(current, variance_of(current.value, size))
            if current.value <= exact_fit:
                return trail.end("converged"), None
            if trail.steps >= max_iterations:
                return trail.end("iteration limit"), None
            predicted = 0.0
            if by_hessian:
                start, step, predicted = _from_hessian(trail, current)
                if predicted <= smallest:
                    return trail.end("converged"), None
                yield from trail.search(step, predicted)
            else:
                start = _from_gauss_newton(trail, current)
            steps = max_iterations if is_last else BFGS.steps
            flat = yield from _bfgs_round(trail, start, smallest, steps)
            gain = (current.value - trail.value) / trail.variance
            if by_hessian and gain < TRUST.accept * predicted:
                return trail.end("stalled"), None
            if data.preview and (flat or gain < tolerance):
                return trail.end("converged"), None
            if is_last:
                before = trail.value
                balanced = yield from _cross_kinks(trail, start)
                if balanced or before - trail.value < SQUARES.visible * trail.variance:
                    return trail.end("converged" if balanced else "stalled"), None
            is_last = kinked and (flat or gain < SQUARES.visible)
            by_hessian = not kinked and not data.preview and (by_hessian or flat)


class _Trail:
    """State of a climb on one level of the data, with its last gradients and their places."""

    def __init__(self, problem: Problem, level: int, theta: FloatArray) -> None:
        self.problem, self.level = problem, level
        self.metric = feature_metric(problem)
        """Metric (P, P) of the predictors."""
        self.theta, self.value, self.gradient = theta, np.inf, np.zeros_like(theta)
        self.variance = 1.0
        """Residual variance: the unit in which half the sum of squares is a log-likelihood."""
        self.gradients: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=SQUARES.bundle)
        self.steps = 0

    def take(self, current: Evaluation, variance: float) -> None:
        """Take value and gradient at theta from an evaluation, and the variance."""
        self.value, self.gradient, self.variance = current.value, current.gradient, variance

    def end(self, status: str) -> End:
        """The end of the climb at the current parameters."""
        return End(self.theta, status, self.steps, gradients=tuple(self.gradients))

    def search(self, step: FloatArray, predicted: float) -> Iteration[None]:
        """Move along a step (P,) to where both weak conditions of Wolfe hold, inside the box.

        The whole step is predicted to gain `predicted`.  The first trial changes the predictors by
        no more than 1.  Where no trial decreases the value, theta stays the same array.
        """
        length = float(np.sqrt(step @ self.metric @ step))
        self.theta, proposed, trials = yield from weak_wolfe(
            Request(Objective.GRADIENT, self.theta, self.level),
            ValueGradient(self.value, self.gradient),
            step,
            predicted * self.variance,
            self.problem.family.box_at(self.theta),
            min(1.0, 1.0 / max(length, TINY)),
        )
        self.value, self.gradient = proposed.value, proposed.gradient
        self.gradients.extend(trials)
        self.steps += 1

    def free(self) -> IntArray:
        """Coordinates that can move downhill."""
        box = self.problem.family.box_at(self.theta)
        return np.flatnonzero(free_coordinates(self.theta, self.gradient, *box))


class _Start(NamedTuple):
    """The matrix that a round of BFGS steps starts from, by its inverse in units of the variance.

    The inverse (F, F) is over the free coordinates `at` (F,).
    """

    at: IntArray
    inverse: FloatArray


def definite(matrix: FloatArray, metric: FloatArray, variance: float) -> FloatArray:
    """The matrix ``J'J`` (F, F) made definite by a part of the metric (F, F)."""
    # At n = 1e14 the matrix is rounded by more than the least curvature.
    largest = float(np.max(np.diag(matrix) / np.diag(metric), initial=0.0))
    return matrix + max(SQUARES.shallowest * variance, TRUST.rounding * largest) * metric


def _from_gauss_newton(trail: _Trail, current: Evaluation) -> _Start:
    """The start from ``J'J``, made definite."""
    at = trail.free()
    block = np.ix_(at, at)
    matrix = definite(current.hessian[block], trail.metric[block], trail.variance) / trail.variance
    factor = scipy.linalg.cho_factor(matrix, check_finite=False)
    return _Start(at, scipy.linalg.cho_solve(factor, np.eye(at.size), check_finite=False))


def _from_hessian(trail: _Trail, current: Evaluation) -> tuple[_Start, FloatArray, float]:
    """The start from the Hessian without its signs; Newton's step (P,) and its predicted gain."""
    at = trail.free()
    block = np.ix_(at, at)
    values, vectors = scipy.linalg.eigh(
        current.hessian[block] / trail.variance, trail.metric[block]
    )
    slope = vectors.T @ current.gradient[at] / trail.variance
    inner = eigenbasis_step(values, slope, 1.0)
    predicted = -float(slope @ inner + 0.5 * (values * inner) @ inner)
    inverse = (vectors / np.maximum(np.abs(values), SQUARES.shallowest)) @ vectors.T
    step = np.zeros_like(trail.theta)
    step[at] = vectors @ inner
    return _Start(at, inverse), step, predicted


def _bfgs_round(trail: _Trail, start: _Start, smallest: float, max_steps: int) -> Iteration[bool]:
    """BFGS steps along the trail; returns whether they ended as no further gain was predicted."""
    at, inverse = start
    milestone = trail.value
    for step_number in range(1, max_steps + 1):
        before = trail.theta
        at, inverse, step = _descent(trail, trail.gradient / trail.variance, at, inverse)
        slope = trail.gradient[at] / trail.variance
        predicted = -float(slope @ step[at])
        if predicted <= 2.0 * smallest:
            return True
        yield from trail.search(step, predicted)
        if trail.theta is before:
            return False
        inverse = _update(
            inverse, (trail.theta - before)[at], trail.gradient[at] / trail.variance - slope
        )
        if step_number % BFGS.steps == 0:
            if milestone - trail.value < GAIN_LIMIT * trail.variance:
                return False
            milestone = trail.value
    return False


def _update(inverse: FloatArray, move: FloatArray, change: FloatArray) -> FloatArray:
    """The BFGS update of an inverse (F, F) by a step (F,) and the gradient's change (F,).

    Without curvature along the step the inverse stays as it is.
    """
    along = float(move @ change)
    if not along > 0.0:
        return inverse
    mapped = inverse @ change
    inverse = inverse + np.outer(move, move) * ((along + change @ mapped) / along**2)
    cross = np.outer(mapped, move) / along
    inverse -= cross + cross.T
    return inverse


def _descent(
    trail: _Trail, slope: FloatArray, at: IntArray, inverse: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """The step (P,) against a slope (P,) that does not leave the box at once.

    A coordinate on an edge that the step would cross is held there.  Returns the coordinates that
    remain, the inverse over them, and the step.
    """
    lower, upper = trail.problem.family.box_at(trail.theta)
    theta = trail.theta
    while True:
        step = np.zeros_like(theta)
        step[at] = -inverse @ slope[at]
        stays = ~((theta <= lower) & (step < 0.0) | (theta >= upper) & (step > 0.0))[at]
        if stays.all():
            return at, inverse, step
        at, inverse = at[stays], _inverse_inside(inverse, stays)


def _cross_kinks(trail: _Trail, start: _Start) -> Iteration[bool]:
    """Steps across kinks, along balanced gradients; returns whether these predict no further gain.

    A trial that fails lies behind a kink, and its gradient enters the next balance: gradient
    sampling (Burke, Lewis and Overton 2005) with the samples where they are needed.
    """
    at, inverse = start
    for _ in range(TRUST.patience):
        root = _root(inverse)
        balanced = balance(
            trail.theta,
            trail.gradient,
            trail.gradients,
            at,
            root,
            trail.metric,
            SQUARES.reach,
        )
        slope = np.zeros_like(trail.theta)
        slope[at] = balanced.gradient / trail.variance
        at, inverse, step = _descent(trail, slope, at, inverse)
        predicted = -float(slope @ step)
        # The certificate's matrix has directions that are flatter than those of the metric.
        if predicted <= 0.1 * GAIN_LIMIT:
            return True
        yield from trail.search(step, predicted)
    return False


def _root(inverse: FloatArray) -> FloatArray:
    """R with ``R R'`` the inverse of a matrix, which rounding may have made indefinite."""
    size = np.sqrt(np.diag(inverse))
    values, vectors = scipy.linalg.eigh(inverse / np.outer(size, size))
    return size[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))


def _inverse_inside(inverse: FloatArray, inside: np.ndarray) -> FloatArray:
    """The inverse of a matrix without the coordinates that are not `inside`, from its inverse."""
    cross = inverse[np.ix_(inside, ~inside)]
    local = scipy.linalg.solve(inverse[np.ix_(~inside, ~inside)], cross.T, assume_a="pos")
    return inverse[np.ix_(inside, inside)] - cross @ local
