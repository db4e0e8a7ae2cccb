"""Least squares in the moments of merging atoms, for more experts than the truth has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from moestat.base.types import FloatArray
from moestat.solvers.least_squares.base import LeastSquaresSolver
from moestat.solvers.least_squares.gauss_newton import feature_metric
from moestat.solvers.merging_atoms.rules import RIDGE
from moestat.solvers.merging_atoms.steps import model_hessian, moment_steps
from moestat.solvers.needs import Needs
from moestat.solvers.problem import (
    End,
    Evaluation,
    InformedEvaluation,
    Iteration,
    Objective,
    Problem,
    Request,
)
from moestat.solvers.rules import NEWTON_STEPS, NEWTON_TOLERANCE
from moestat.solvers.squares import rounding_level, variance_of


@dataclass(frozen=True)
class MomentSquares(LeastSquaresSolver):
    """Least squares by the steps of `MomentNewton`, for over-specified fits of large samples.

    Parameters
    ----------
    tolerance : float
        Stop when a step can gain no more than this many units of log-likelihood: half the sum
        of squares over the residual variance.
    max_iterations : int
        Largest number of passes over the data.

    Notes
    -----
    With more experts than the truth has, the sum of squares is a narrow curved ridge, in which
    `LevenbergMarquardt` gets stuck when the sample is large.  Every pass is one for the exact
    Hessian and costs several times one for the residuals; exactly specified fits need few of
    either.  Where the gate has free masses that add up, the moments of close atoms are
    coordinates; with others there are corrections only.  The certificate's gain and inertia are
    those of the model in the moments.

    Experts with kinks (ReLU) have no second derivative and are refused.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("least-squares", gate="softmax", n_experts=1)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0, noise=0.01)
    >>> result = fit(F, X, y, solver=MomentSquares(), rng=0)
    >>> result.certificate.status, result.params.round(1).tolist()
    ('converged', [0.0, 0.0, 1.0, -2.0])
    """

    tolerance: float = NEWTON_TOLERANCE
    max_iterations: int = NEWTON_STEPS
    name: str = "moment-squares"

    needs: ClassVar[Needs] = Needs(regression=True, curvature=True)

    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, None]]:
        """Steps in the moments from theta (P,), in units of the residual variance.

        The steps begin again where the variance has become smaller on the way.
        """
        data, metric, box = problem.data.levels[level], *_geometry(problem, theta)
        size, exact_fit = float(data.weight.sum()), rounding_level(data.y, data.weight)
        spent, status = 0, "iteration limit"
        current = yield Request(Objective.RESIDUALS, theta, level)
        while spent < max_iterations:
            variance = variance_of(max(current.value, exact_fit), size)
            n_left = max_iterations - spent
            steps = moment_steps(problem, theta, metric, *box, tolerance, n_left, level)
            (theta, status, n_steps, *_), current = yield from _in_units(steps, variance)
            spent += n_steps
            if variance_of(max(current.value, exact_fit), size) > RIDGE.whole * variance:
                break
        return End(theta, status, spent), None

    def model(self, problem: Problem, theta: FloatArray, evaluation: Evaluation) -> Evaluation:
        """The quadratic model in the moments around theta (P,)."""
        metric, box = _geometry(problem, theta)
        hessian = model_hessian(problem, theta, evaluation, metric, *box)
        return replace(evaluation, hessian=hessian)


def _geometry(
    problem: Problem, theta: FloatArray
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Metric (P, P) and box of a fit around theta."""
    return feature_metric(problem), problem.family.box_at(theta)


def _in_units(
    steps: Iteration[tuple[End, Evaluation]], variance: float
) -> Iteration[tuple[End, Evaluation]]:
    """Steps on half the sum of squares in units of a variance, which make it a log-likelihood."""
    proposed: Evaluation | None = None
    while True:
        try:
            request = next(steps) if proposed is None else steps.send(proposed)
        except StopIteration as stop:
            end, current = stop.value
            return end, replace(current, value=current.value * variance)
        evaluation: InformedEvaluation = yield replace(request, objective=Objective.NEWTON)
        proposed = InformedEvaluation(
            evaluation.value / variance,
            evaluation.gradient / variance,
            evaluation.hessian / variance,
            evaluation.information / variance,
        )
