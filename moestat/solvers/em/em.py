"""Expectation-maximisation: the classic, monotone, with Newton steps in the M-step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.solvers.certificate import certify
from moestat.solvers.em.weighted_least_squares import has_closed_form, regress
from moestat.solvers.needs import Needs
from moestat.solvers.problem import Iteration, Objective, Problem, Request
from moestat.solvers.rules import EM_RULES
from moestat.solvers.solution import Solution
from moestat.solvers.trust_region.newton_loop import newton_steps


@dataclass(frozen=True)
class Climb:
    """The end of one climb: parameters, every log-likelihood, status and number of E-steps."""

    theta: FloatArray
    path: list[float]
    status: str
    iterations: int


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


@dataclass(frozen=True)
class EMSolver(ABC):
    """What the solvers that climb by EM steps have in common; each climbs in its own way."""

    tolerance: float
    max_iterations: int
    m_step_iterations: int
    name: str

    needs: ClassVar[Needs] = Needs()

    def __post_init__(self) -> None:
        real_in("tolerance", self.tolerance, 0.0, open_low=True)
        positive_int("max_iterations", self.max_iterations)
        positive_int("m_step_iterations", self.m_step_iterations)

    def steps(self, problem: Problem, start: FloatArray) -> Iteration[Solution]:
        """The iteration from `start` (P,), already inside the box.

        It climbs on compressed data, then on finer ones until the end holds on all of the data.
        """
        self.needs.check(self.name, problem.family)
        exact = [i for i, data in enumerate(problem.data.levels) if not data.preview]
        # The coarsest of several levels would have to be left too often.
        exact = exact[min(1, max(len(exact) - 2, 0)) :]
        while True:
            level = exact.pop(0)
            em = EMMap(problem, start, level, self.tolerance, self.m_step_iterations)
            end = yield from self._climb(em, start)
            here = yield Request(Objective.OBSERVED, end.theta)
            least = EM_RULES.negligible * self.tolerance * abs(here.value)
            if not exact or abs(-here.value - end.path[-1]) <= least:
                break
        certificate = certify(
            problem, end.theta, here, problem.metric(end.theta), end.status, end.iterations
        )
        return Solution(end.theta, -here.value, here.hessian, certificate, tuple(end.path))

    @abstractmethod
    def _climb(self, em: EMMap, theta: FloatArray) -> Iteration[Climb]:
        """The climb from theta (P,) on the level of `em`."""


@dataclass(frozen=True)
class EM(EMSolver):
    """EM as the papers run it: stop at a relative change of the log-likelihood.

    Parameters
    ----------
    tolerance : float
        Stop when the log-likelihood changes by less than this, relative to its size.
    max_iterations : int
        Largest number of E-steps.
    m_step_iterations : int
        Largest number of Newton steps in one M-step.

    Notes
    -----
    Pham et al. (2026), Sec. 5 states a tolerance of 1e-6 and at most 1000 iterations; that the
    change is relative to the log-likelihood is our reading.  The M-step maximises the complete-data
    log-likelihood over gate and experts jointly with the trust-region Newton of this package, so
    the log-likelihood cannot fall.  Gaussian linear experts with a gate of their own are put at
    their weighted least-squares fit first; under competition the experts are the gate, and the
    M-step may end before its maximum: generalised EM.  Where the data can be compressed (see
    `moestat.model.compression`) EM climbs on the compressed data; its end is checked on all of
    them, and when the two log-likelihoods differ by a thousandth of the tolerance, EM runs again on
    the next finer level, at last on all of the data.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0)
    >>> fit(F, X, y, solver=EM(), rng=0).certificate.status
    'converged'
    """

    tolerance: float = 1e-6
    max_iterations: int = 1000
    m_step_iterations: int = 20
    name: str = "em"

    def _climb(self, em: EMMap, theta: FloatArray) -> Iteration[Climb]:
        value = yield from em.expect(theta)
        path = [-value]
        for _ in range(self.max_iterations):
            theta = yield from em.maximise(theta, value)
            before, value = value, (yield from em.expect(theta))
            path.append(-value)
            if abs(before - value) <= self.tolerance * abs(before):
                return Climb(theta, path, "converged", len(path) - 1)
        return Climb(theta, path, "iteration limit", len(path) - 1)
