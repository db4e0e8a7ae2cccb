"""What the solvers of least-squares problems have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.solvers.least_squares.gauss_newton import (
    Gradients,
    fitted_levels,
    last_look,
    least_squares_solution,
)
from moestat.solvers.needs import Needs
from moestat.solvers.problem import Evaluation, Iteration, Objective, Problem, Request, Sample
from moestat.solvers.rules import SQUARES, TRUST
from moestat.solvers.solution import Solution


def smallest_gain(tolerance: float, size: float) -> float:
    """The smallest gain in log-likelihood worth a step: the tolerance, or what rounding allows.

    Half a sum of squares is rounded, in units of log-likelihood, by a part of each sample.  Below
    that gradients still show a decrease, down to 1e-6.
    """
    return max(tolerance, min(TRUST.rounding * size, SQUARES.finest))


class Descent(NamedTuple):
    """The end of a descent on one level of the data.

    Parameters (P,), status, iterations, and the gradients met, each with its place.
    """

    theta: FloatArray
    status: str
    iterations: int
    gradients: Gradients = ()


@dataclass(frozen=True)
class LeastSquaresSolver(ABC):
    """A descent on one level of the data after the other; each solver has its own way down."""

    tolerance: float
    max_iterations: int
    name: str

    needs: ClassVar[Needs] = Needs(regression=True)
    preview_tolerance: ClassVar[float] = TRUST.preview
    """What a part of the data says about the minimum, in units of log-likelihood."""

    def __post_init__(self) -> None:
        real_in("tolerance", self.tolerance, 0.0, open_low=True)
        positive_int("max_iterations", self.max_iterations)

    def steps(self, problem: Problem, start: FloatArray) -> Iteration[Solution]:
        """The iteration from `start` (P,), already inside the box."""
        self.needs.check(self.name, problem.family)
        levels = list(fitted_levels(problem))
        end = yield from self._through(problem, levels, start, self.max_iterations)
        here = yield last_look(problem, end.theta)
        if len(levels) > 1 and problem.has_doubtful_previews():
            begun = yield Request(Objective.RESIDUALS, start)
            if begun.value < here.value:
                # The part of the data has led to another minimum, above the start.
                left = self.max_iterations - end.iterations
                again = yield from self._through(problem, levels[-1:], start, left)
                end = again._replace(iterations=end.iterations + again.iterations)
                here = yield last_look(problem, end.theta)
        model = self._model(problem, end.theta, here)
        return least_squares_solution(
            problem, end.theta, model, end.status, end.iterations, end.gradients
        )

    def _through(
        self, problem: Problem, levels: list[tuple[int, Sample]], start: FloatArray, most: int
    ) -> Iteration[Descent]:
        """Descend on one level of the data after the other."""
        end, spent = Descent(start, "iteration limit", 0), 0
        for level, data in levels:
            tolerance = self.tolerance
            if data.preview:
                tolerance = max(tolerance, self.preview_tolerance)
            end = yield from self._descend(problem, end.theta, level, tolerance, most - spent)
            spent += end.iterations
        return end._replace(iterations=spent)

    def _model(self, problem: Problem, theta: FloatArray, here: Evaluation) -> Evaluation:
        """The quadratic model around theta that the certificate judges."""
        return here

    @abstractmethod
    def _descend(
        self, problem: Problem, theta: FloatArray, level: int, tolerance: float, most: int
    ) -> Iteration[Descent]:
        """Minimise on one level of the data, in `most` iterations."""
