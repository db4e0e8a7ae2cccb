"""The E-step and the M-step of one EM iteration."""

from __future__ import annotations

from moestat.base.types import FloatArray
from moestat.solvers.em.weighted_least_squares import has_closed_form, regress
from moestat.solvers.problem import Iteration, Objective, Problem, Request
from moestat.solvers.rules import NEGLIGIBLE
from moestat.solvers.trust_region.newton_loop import newton_steps


class EMMap:
    """The E-step and the M-step on one level of the data.

    The metric and the box are those at the start (P,) of the climb.  The tolerance of the M-step
    is a thousandth of that of the climb; it takes at most `m_step_iterations` Newton steps.
    """

    def __init__(
        self,
        problem: Problem,
        start: FloatArray,
        level: int,
        tolerance: float,
        m_step_iterations: int,
    ) -> None:
        self.problem = problem
        self.family = problem.family
        self.level = level
        self.metric = problem.metric(start)
        self.lower, self.upper = self.family.box_at(start)
        self._tolerance, self._iterations = NEGLIGIBLE * tolerance, m_step_iterations
        self._closed_form = has_closed_form(self.family)

    def expect(self, theta: FloatArray) -> Iteration[float]:
        """E-step: compute the responsibilities at theta (P,); returns minus the log-likelihood."""
        return (yield Request(Objective.EXPECTATION, theta, self.level)).value

    def maximise(self, theta: FloatArray, value: float) -> Iteration[FloatArray]:
        """M-step: maximise the complete-data likelihood for the responsibilities at theta (P,)."""
        if self._closed_form:
            evaluation = yield Request(Objective.COMPLETE, theta, self.level)
            theta = regress(self.family, theta, evaluation)
        ran = yield from newton_steps(
            self.problem,
            Objective.COMPLETE,
            theta,
            self._tolerance * abs(value),
            self._iterations,
            self.level,
            (self.metric, self.lower, self.upper),
        )
        return ran.theta
