"""The shell of the solvers: what each of them does before, between and after its climbs.

A solver is its numbers and `climb_level`, an iteration on one level of the data.  The shell checks
the numbers and the family, climbs on one level after the other, from coarse to fine, and certifies
where that ended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.solvers.certificate import certify
from moestat.solvers.needs import Needs
from moestat.solvers.problem import End, Evaluation, Iteration, Objective, Problem, Request, Rows
from moestat.solvers.rules import TRUST
from moestat.solvers.solution import Solution


class LevelSolver(ABC):
    """A solver that climbs on one level of the data after the other.

    Subclasses are dataclasses of their numbers.  They define `climb_level`, and override the other
    methods where they differ.
    """

    tolerance: float
    """Where a climb ends, in the units that the subclass documents."""
    max_iterations: int
    """Largest number of iterations, on all levels together."""
    name: str
    """Name in the registry."""

    needs: ClassVar[Needs] = Needs()
    """Requirements of the solver on a family."""
    value: ClassVar[Objective] = Objective.VALUE
    """The objective without derivatives."""
    preview_tolerance: ClassVar[float] = TRUST.preview
    """Smallest tolerance on a coarse level of the data.

    The maximum there differs from that on all rows, so that a closer one would be of no use.
    """

    def __post_init__(self) -> None:
        real_in("tolerance", self.tolerance, 0.0, open_low=True)
        positive_int("max_iterations", self.max_iterations)

    @abstractmethod
    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, Evaluation | None]]:
        """Minimise the objective on one level of the data, from theta (P,).

        Returns the end and, if the climb has made it, its evaluation with a Hessian.
        """

    def steps(self, problem: Problem, start: FloatArray) -> Iteration[Solution]:
        """The iteration from `start` (P,), already inside the box, to a certified solution."""
        self.needs.check(self.name, problem.family)
        end, evaluation = yield from self.climb(problem, start)
        return self.certify(problem, end, evaluation)

    def climb(self, problem: Problem, start: FloatArray) -> Iteration[tuple[End, Evaluation]]:
        """The iteration from `start` (P,) without a certificate: the end and its evaluation.

        A preview can lead to a maximum that is lower than the start.  Then the climb begins again
        at the start, on all of the data.
        """
        levels = self.levels(problem)
        end, evaluation = yield from self._climb_levels(problem, levels, start, self.max_iterations)
        if len(levels) > 1 and problem.has_doubtful_previews():
            at_start = yield Request(self.value, start)
            if at_start.value < evaluation.value:
                spent = end.iterations
                end, evaluation = yield from self._climb_levels(
                    problem, levels[-1:], start, self.max_iterations - spent
                )
                end = end._replace(iterations=spent + end.iterations)
        return end, evaluation

    def _climb_levels(
        self,
        problem: Problem,
        levels: list[tuple[int, Rows]],
        theta: FloatArray,
        max_iterations: int,
    ) -> Iteration[tuple[End, Evaluation]]:
        """Climb on one level of the data after the other."""
        end, evaluation, spent = End(theta, "iteration limit", 0), None, 0
        for level, data in levels:
            tolerance = self.tolerance
            if data.preview:
                tolerance = max(tolerance, self.preview_tolerance)
            end, evaluation = yield from self.climb_level(
                problem, level, end.theta, tolerance, max_iterations - spent
            )
            spent += end.iterations
        if evaluation is None:
            evaluation = yield self.final_request(problem, end.theta)
        return end._replace(iterations=spent), evaluation

    def levels(self, problem: Problem) -> list[tuple[int, Rows]]:
        """Numbers and data of the levels to climb on, the last of which is all of the data."""
        return problem.detail()

    def final_request(self, problem: Problem, theta: FloatArray) -> Request:
        """The request for a certificate of theta (P,), if the climb has not made its Hessian."""
        return Request(Objective.OBSERVED, theta)

    def model(self, problem: Problem, theta: FloatArray, evaluation: Evaluation) -> Evaluation:
        """The quadratic model of the objective around theta (P,) that the certificate judges."""
        return evaluation

    def certify(self, problem: Problem, end: End, evaluation: Evaluation) -> Solution:
        """The solution at the end of a climb, with its certificate."""
        theta, metric = end.theta, problem.metric(end.theta)
        model = self.model(problem, theta, evaluation)
        certificate = certify(problem, theta, model, metric, end.status, end.iterations, end.reach)
        return Solution(theta, -evaluation.value, evaluation.hessian, certificate, end.path)
