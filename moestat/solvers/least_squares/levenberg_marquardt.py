"""Levenberg and Marquardt's method for least squares, in the box of the parameter space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from moestat.base.types import FloatArray
from moestat.solvers.least_squares.base import LeastSquaresSolver, smallest_gain
from moestat.solvers.problem import End, Evaluation, Iteration, Objective, Problem, Request, Value
from moestat.solvers.rules import (
    GAIN_LIMIT,
    NEWTON_TOLERANCE,
    SQUARES,
    TINY,
    TRUST,
    ZERO_CURVATURE,
)
from moestat.solvers.squares import rounding_level, variance_of
from moestat.solvers.trust_region.decrease import straight_decrease
from moestat.solvers.trust_region.region import free_coordinates


@dataclass(frozen=True)
class LevenbergMarquardt(LeastSquaresSolver):
    """Least squares by damped Gauss-Newton steps, inside the box of the parameter space.

    Parameters
    ----------
    tolerance : float
        Stop when a step can gain no more than this many units of log-likelihood: half the sum
        of squares over the residual variance.
    max_iterations : int
        Largest number of iterations, on all levels of the data together.

    Notes
    -----
    The damping follows Nielsen (1999).  A trial costs one pass for the value, an accepted step
    another one for the Gram matrix of the Jacobian, see `moestat.solvers.squares`.
    Large samples are fitted to a part of them first.

    Steps know the Gauss-Newton matrix only and get slow where the residuals' own curvature counts;
    `GaussNewtonBFGS` does not.  The certificate is from the exact Hessian, for experts that have
    one; of the kinks of the others this method knows nothing.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("least-squares", gate="softmax", n_experts=1)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0, noise=0.01)
    >>> result = fit(F, X, y, solver=LevenbergMarquardt(), rng=0)
    >>> result.certificate.status, result.params.round(1).tolist()
    ('converged', [0.0, 0.0, 1.0, -2.0])
    """

    tolerance: float = NEWTON_TOLERANCE
    max_iterations: int = 1000
    name: str = "levenberg-marquardt"

    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, None]]:
        """Damped Gauss-Newton steps from theta (P,), on one level of the data."""
        data, box = problem.data.levels[level], problem.family.box_at(theta)
        size, exact_fit = float(data.weight.sum()), rounding_level(data.y, data.weight)
        smallest, rounding = smallest_gain(tolerance, size), TRUST.rounding * size
        damping, growth = SQUARES.damping, 2.0
        current = yield Request(Objective.GAUSS_NEWTON, theta, level)
        milestone = current.value
        for iteration in range(max_iterations):
            if current.value <= exact_fit:
                return End(theta, "converged", iteration), None
            variance = variance_of(current.value, size)
            if iteration % TRUST.patience == TRUST.patience - 1:
                if milestone - current.value < GAIN_LIMIT * variance:
                    return End(theta, "stalled", iteration), None
                milestone = current.value
            trial, proposed, ratio = theta, current, -1.0
            proposal = _damped_step(theta, current, damping, *box)
            if proposal is not None:
                if 0.0 <= proposal.decrease <= smallest * variance and damping <= 1.0:
                    return End(theta, "converged", iteration), None
                trial = np.clip(theta + proposal.step, *box)
                proposed, ratio = yield from _try(
                    trial, current, proposal, level, rounding * variance
                )
                if ratio <= TRUST.accept and (trial == theta).all():
                    return End(theta, "stalled", iteration + 1), None
            if ratio > TRUST.accept:
                theta = trial
                if isinstance(proposed, Evaluation):
                    current = proposed
                else:
                    current = yield Request(Objective.GAUSS_NEWTON, theta, level)
                damping, growth = damping * _shrinkage(ratio), 2.0
            else:
                damping, growth = damping * growth, 2.0 * growth
        return End(theta, "iteration limit", max_iterations), None


def _shrinkage(ratio: float) -> float:
    """Factor of the damping after a good step: Nielsen (1999), with gamma = 3, beta = 2, p = 3.

    The ratio is the decrease in units of the predicted one.
    """
    return max(1 / 3, 1 - (2 * ratio - 1) ** 3)


class _Proposal(NamedTuple):
    """A step (P,) and the decrease of the Gauss-Newton model."""

    step: FloatArray
    decrease: float


def _damped_step(
    theta: FloatArray,
    current: Evaluation,
    damping: float,
    lower: FloatArray,
    upper: FloatArray,
) -> _Proposal | None:
    """The minimiser of the damped Gauss-Newton model in the box and the model's decrease.

    The damping of a coordinate is in units of its own curvature, so that the step does not depend
    on the units of the parameters.  A coordinate whose step would leave the box ends on its edge,
    and the others are solved for again.  None when the damped matrix is not positive definite.
    """
    gradient, hessian = current.gradient, current.hessian
    curvature = np.diag(hessian)
    scale = np.maximum(curvature, ZERO_CURVATURE * max(float(curvature.max()), TINY))
    free = free_coordinates(theta, gradient, lower, upper)
    step = np.zeros_like(theta)
    while True:
        at = np.flatnonzero(free)
        if at.size == 0:
            break
        matrix = np.asfortranarray(hessian[np.ix_(at, at)])
        matrix[np.diag_indices(at.size)] += damping * scale[at]
        edge = np.flatnonzero(step * ~free)
        right_side = -gradient[at] - hessian[np.ix_(at, edge)] @ step[edge]
        try:
            factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        step[at] = scipy.linalg.cho_solve(factor, right_side, check_finite=False)
        point = theta + step
        out = free & ((point < lower) | (point > upper))
        if not out.any():
            break
        step[out] = np.clip(point[out], lower[out], upper[out]) - theta[out]
        free &= ~out
    return _Proposal(step, -float(gradient @ step + 0.5 * step @ (hessian @ step)))


def _try(
    trial: FloatArray, current: Evaluation, proposal: _Proposal, level: int, rounding: float
) -> Iteration[tuple[Value, float]]:
    """The evaluation of a trial (P,), and its decrease in units of the predicted one.

    Values are rounded by `rounding`.  A smaller decrease shows in the derivatives at both ends; an
    infinite value, and a model that predicts no decrease, give the ratio -1.
    """
    small = proposal.decrease <= rounding
    proposed = yield Request(Objective.GAUSS_NEWTON if small else Objective.RESIDUALS, trial, level)
    decrease = current.value - proposed.value
    if small and abs(decrease) <= rounding:
        decrease = straight_decrease(proposal.step, current, proposed)
    if proposal.decrease > 0.0 and np.isfinite(proposed.value):
        return proposed, decrease / proposal.decrease
    return proposed, -1.0
