"""Levenberg and Marquardt's method for least squares, in the box of the parameter space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from moestat.base.types import FloatArray
from moestat.solvers.least_squares.base import Descent, LeastSquaresSolver, smallest_gain
from moestat.solvers.problem import Evaluation, Iteration, Objective, Problem, Request
from moestat.solvers.rules import GAIN_LIMIT, SQUARES, TRUST, ZERO_CURVATURE
from moestat.solvers.squares import rounding_level, variance_of
from moestat.solvers.trust_region.decrease import straight_decrease
from moestat.solvers.trust_region.region import free_coordinates


def _damped_step(
    theta: FloatArray,
    here: Evaluation,
    damping: float,
    lower: FloatArray,
    upper: FloatArray,
) -> tuple[FloatArray, float] | None:
    """The minimiser of the damped Gauss-Newton model in the box and the model's decrease.

    The damping of a coordinate is in units of its own curvature, so that the step does not depend
    on the units of the parameters.  A coordinate whose step would leave the box ends on its edge,
    and the others are solved for again.  None when the damped matrix is not positive definite.
    """
    gradient, hessian = here.gradient, here.hessian
    curvature = np.diag(hessian)
    scale = np.maximum(curvature, ZERO_CURVATURE * max(float(curvature.max()), 1e-300))
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
        moved = theta + step
        out = free & ((moved < lower) | (moved > upper))
        if not out.any():
            break
        step[out] = np.clip(moved[out], lower[out], upper[out]) - theta[out]
        free &= ~out
    return step, -float(gradient @ step + 0.5 * step @ (hessian @ step))


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

    tolerance: float = 1e-9
    max_iterations: int = 1000
    name: str = "levenberg-marquardt"

    def _descend(
        self, problem: Problem, theta: FloatArray, level: int, tolerance: float, most: int
    ) -> Iteration[Descent]:
        lower, upper = problem.family.box_at(theta)
        data = problem.data.levels[level]
        size, nothing = float(data.weight.sum()), rounding_level(data.y, data.weight)
        damping, growth = SQUARES.damping, 2.0
        here = yield Request(Objective.GAUSS_NEWTON, theta, level)
        milestone = here.value
        for iteration in range(most):
            if here.value <= nothing:
                return Descent(theta, "converged", iteration)
            variance = variance_of(here.value, size)
            if iteration % TRUST.patience == TRUST.patience - 1:
                if milestone - here.value < GAIN_LIMIT * variance:
                    return Descent(theta, "stalled", iteration)
                milestone = here.value
            found = _damped_step(theta, here, damping, lower, upper)
            ratio, trial, there = -1.0, theta, here
            if found is not None:
                step, decrease = found
                # Below the rounding error of the value only gradients show a decrease.
                rounding = TRUST.rounding * size
                least = smallest_gain(tolerance, size)
                if 0.0 <= decrease <= least * variance and damping <= 1.0:
                    return Descent(theta, "converged", iteration)
                trial = np.clip(theta + step, lower, upper)
                small = decrease <= rounding * variance
                there = yield Request(
                    Objective.GAUSS_NEWTON if small else Objective.RESIDUALS, trial, level
                )
                gained = here.value - there.value
                if small and abs(gained) <= rounding * variance:
                    gained = straight_decrease(step, here, there)
                if decrease > 0.0 and np.isfinite(there.value):
                    ratio = gained / decrease
            if ratio > TRUST.accept:
                theta = trial
                here = there
                if not isinstance(there, Evaluation):
                    here = yield Request(Objective.GAUSS_NEWTON, trial, level)
                damping *= max(1 / 3, 1 - (2 * ratio - 1) ** 3)
                growth = 2.0
            else:
                damping, growth = damping * growth, 2.0 * growth
                if found is not None and np.array_equal(trial, theta):
                    return Descent(theta, "stalled", iteration + 1)
        return Descent(theta, "iteration limit", most)
