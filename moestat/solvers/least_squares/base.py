"""The part that all solvers of least-squares problems share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moestat.base.types import FloatArray
from moestat.solvers.least_squares.gauss_newton import (
    fitted_levels,
    last_look,
    least_squares_solution,
)
from moestat.solvers.needs import Needs
from moestat.solvers.problem import End, Evaluation, Objective, Problem, Request, Rows
from moestat.solvers.rules import QUASI_NEWTON_TOLERANCE, TRUST
from moestat.solvers.shell import LevelSolver
from moestat.solvers.solution import Solution


def smallest_gain(tolerance: float, size: float) -> float:
    """The smallest gain in log-likelihood worth a step: the tolerance, or what rounding allows.

    Half a sum of squares is rounded, in units of log-likelihood, by a part of each sample.  Below
    that gradients still show a decrease, down to `QUASI_NEWTON_TOLERANCE`.
    """
    return max(tolerance, min(TRUST.rounding * size, QUASI_NEWTON_TOLERANCE))


@dataclass(frozen=True)
class LeastSquaresSolver(LevelSolver):
    """A solver that minimises half the sum of squares; subclasses define how.

    Parameters
    ----------
    tolerance : float
        Stop when a step can gain no more than this many units of log-likelihood: half the sum
        of squares over the residual variance.
    max_iterations : int
        Largest number of iterations, on all levels of the data together.
    name : str
        Name in the registry.
    """

    tolerance: float
    max_iterations: int
    name: str

    needs: ClassVar[Needs] = Needs(regression=True)
    value: ClassVar[Objective] = Objective.RESIDUALS

    def levels(self, problem: Problem) -> list[tuple[int, Rows]]:
        """Numbers and data of the levels that have enough samples to determine the parameters."""
        return list(fitted_levels(problem))

    def final_request(self, problem: Problem, theta: FloatArray) -> Request:
        """The exact Hessian at theta (P,), where there is one, else the Gauss-Newton matrix."""
        return last_look(problem, theta)

    def certify(self, problem: Problem, end: End, evaluation: Evaluation) -> Solution:
        """The solution at the end of a climb, with its certificate."""
        model = self.model(problem, end.theta, evaluation)
        return least_squares_solution(
            problem, end.theta, model, end.status, end.iterations, end.gradients
        )
