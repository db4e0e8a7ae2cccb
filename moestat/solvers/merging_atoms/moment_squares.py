"""Least squares in the moments of merging atoms, for more experts than the truth has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.solvers.least_squares.gauss_newton import (
    check_regression,
    feature_metric,
    fitted_levels,
    last_look,
    least_squares_solution,
)
from moestat.solvers.least_squares.squares import rounding_level, variance_of
from moestat.solvers.merging_atoms.steps import model_hessian, moment_steps
from moestat.solvers.problem import Evaluation, Iteration, Problem, Request
from moestat.solvers.solution import Solution
from moestat.solvers.trust_region.decrease import PREVIEW_TOLERANCE

__all__ = ["MomentSquares"]

_STEADY = 0.9  # part of a variance that is as good as the same

_Walk = tuple[FloatArray, Evaluation, str, int]


@dataclass(frozen=True)
class MomentSquares:
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
    With more experts than the truth has, the sum of squares is a narrow curved valley, in which
    `LevenbergMarquardt` gets stuck when the sample is large.  Every pass is one for the exact
    Hessian and costs several times one for the residuals; exactly specified fits need few of
    either.  Where the gate has free masses that add up, the moments of close atoms are
    coordinates; with others there are restorations only.  The certificate's gain and inertia are
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

    tolerance: float = 1e-9
    max_iterations: int = 3000
    name: str = "moment-squares"

    def __post_init__(self) -> None:
        real_in("tolerance", self.tolerance, 0.0, open_low=True)
        positive_int("max_iterations", self.max_iterations)

    def steps(self, problem: Problem, start: FloatArray) -> Iteration[Solution]:
        """The iteration from `start` (P,), already inside the box."""
        family = problem.family
        check_regression(self.name, family)
        if family.has_kinked_mean:
            raise ValueError(
                f"solver {self.name!r} needs second derivatives, which gate {family.gate.name!r}"
                f" with expert {family.expert.name!r} has not; take 'gauss-newton-bfgs'"
            )
        metric, box = feature_metric(problem), family.box_at(start)
        theta, spent, status = start, 0, "iteration limit"
        for level, data in fitted_levels(problem):
            tolerance = max(self.tolerance, PREVIEW_TOLERANCE if data.preview else 0.0)
            size, nothing = float(data.weight.sum()), rounding_level(data.y, data.weight)
            here = yield Request("residuals", theta, level)
            while spent < self.max_iterations:
                variance = variance_of(max(here.value, nothing), size)
                left = self.max_iterations - spent
                steps = moment_steps(problem, theta, metric, *box, tolerance, left, level)
                theta, here, status, made = yield from _in_units(steps, variance)
                spent += made
                # The units were those of the start.
                if variance_of(max(here.value, nothing), size) > _STEADY * variance:
                    break
        here = yield last_look(problem, theta)
        model = replace(here, hessian=model_hessian(problem, theta, here, metric, *box))
        return least_squares_solution(problem, theta, model, status, spent)


def _in_units(steps: Iteration[_Walk], variance: float) -> Iteration[_Walk]:
    """Steps on half the sum of squares in units of a variance, which make it a log-likelihood."""
    there: Evaluation | None = None
    while True:
        try:
            request = next(steps) if there is None else steps.send(there)
        except StopIteration as stop:
            theta, here, status, passes = stop.value
            return theta, replace(here, value=here.value * variance), status, passes
        found = yield replace(request, objective="curvature")
        there = Evaluation(
            found.value / variance,
            found.gradient / variance,
            found.hessian / variance,
            found.information / variance,
        )
