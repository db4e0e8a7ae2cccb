"""Least squares by gradients far from the minimum, and by Hessians near it."""

from __future__ import annotations

from dataclasses import dataclass

from moestat.base.types import FloatArray
from moestat.solvers.bfgs import bfgs_steps
from moestat.solvers.least_squares.gauss_newton import feature_metric
from moestat.solvers.least_squares.gauss_newton_bfgs import definite
from moestat.solvers.merging_atoms.moment_squares import MomentSquares
from moestat.solvers.problem import End, Iteration, Objective, Problem, Request
from moestat.solvers.rules import QUASI_NEWTON_STEPS, QUASI_NEWTON_TOLERANCE
from moestat.solvers.squares import rounding_level, variance_of


@dataclass(frozen=True)
class NewtonSquares(MomentSquares):
    """Least squares by 50 BFGS steps from ``J'J``, and then by those of `MomentSquares`.

    The default for at most 70 parameters and experts without kinks.

    Parameters
    ----------
    tolerance : float
        Stop when a step can gain no more than this many units of log-likelihood: half the sum
        of squares over the residual variance.
    max_iterations : int
        Largest number of steps.

    Notes
    -----
    Far from the minimum the Hessian has negative curvatures of residuals that are not noise yet,
    and following them leads to other minima; ``J'J`` has none.  Near it, along the flat ridge of
    an expert too many, steps without the Hessian are thousands.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("least-squares", gate="softmax", n_experts=1)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0, noise=0.01)
    >>> result = fit(F, X, y, rng=0)
    >>> result.solver, result.params.round(1).tolist()
    ('newton-squares', [0.0, 0.0, 1.0, -2.0])
    """

    tolerance: float = QUASI_NEWTON_TOLERANCE
    max_iterations: int = QUASI_NEWTON_STEPS
    name: str = "newton-squares"

    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, None]]:
        """BFGS steps from theta (P,), then steps in the moments from where these end."""
        current = yield Request(Objective.GAUSS_NEWTON, theta, level)
        data, metric = problem.data.levels[level], feature_metric(problem)
        least = rounding_level(data.y, data.weight)
        variance = variance_of(max(current.value, least), float(data.weight.sum()))
        near, _, n_steps = yield from bfgs_steps(
            problem,
            theta,
            level,
            max_iterations,
            tolerance * variance,
            definite(current.hessian, metric, variance),
            Objective.GRADIENT,
            metric,
        )
        end, _ = yield from super().climb_level(
            problem, level, near, tolerance, max_iterations - n_steps
        )
        return end._replace(iterations=n_steps + end.iterations), None
