"""The E-step and the M-step of one EM iteration."""

from __future__ import annotations

from moestat.base.types import FloatArray
from moestat.solvers.em.weighted_least_squares import has_closed_form, regress
from moestat.solvers.problem import Iteration, Objective, Problem, Request
from moestat.solvers.rules import EM_RULES
from moestat.solvers.trust_region.newton_loop import newton_steps


class EMMap:
    """The two halves of an EM iteration on one level of the data.

    The start (P,) of the climb fixes the metric and the box.  The M-step is solved a thousand times
    more precisely than the climb, in so many Newton steps at most.
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
        self._tolerance, self._iterations = EM_RULES.negligible * tolerance, m_step_iterations
        self._closed_form = has_closed_form(self.family)

    def expect(self, theta: FloatArray) -> Iteration[float]:
        """E-step: minus the log-likelihood at theta (P,), whose responsibilities are kept."""
        return (yield Request(Objective.EXPECTATION, theta, self.level)).value

    def maximise(self, theta: FloatArray, value: float) -> Iteration[FloatArray]:
        """M-step for the responsibilities of the last E-step, which was at theta (P,)."""
        if self._closed_form:
            here = yield Request(Objective.COMPLETE, theta, self.level)
            theta = regress(self.family, theta, here)
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
