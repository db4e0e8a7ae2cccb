"""Expectation-maximisation: the classic, monotone, with Newton steps in the M-step."""

from __future__ import annotations

from dataclasses import dataclass

from moestat._types import FloatArray
from moestat._validate import positive_int, real_in
from moestat.solvers._certificate import certify
from moestat.solvers._driver import Iteration, Problem, Request
from moestat.solvers._solution import Solution
from moestat.solvers.newton import newton_steps

__all__ = ["EM"]


@dataclass(frozen=True)
class EM:
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
    mlmoe (003), Sec. 5 states a tolerance of 1e-6 and at most 1000 iterations; that the change
    is relative to the log-likelihood is our reading.  The M-step maximises the complete-data
    log-likelihood over gate and experts jointly with the trust-region Newton of this package, so
    the log-likelihood cannot fall.

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

    def __post_init__(self) -> None:
        real_in("tolerance", self.tolerance, 0.0, open_low=True)
        positive_int("max_iterations", self.max_iterations)
        positive_int("m_step_iterations", self.m_step_iterations)

    def steps(self, problem: Problem, start: FloatArray) -> Iteration[Solution]:
        """The iteration from `start` (P,), already inside the box."""
        family = problem.family
        metric = problem.metric()
        lower, upper = family.box_at(start)
        theta = start
        value = (yield Request("expectation", theta)).value
        path = [-value]
        status = "iteration limit"
        for _ in range(self.max_iterations):
            # An M-step solved to a small part of the outer tolerance changes no outer decision.
            inner = 1e-3 * self.tolerance * abs(value)
            theta, _, _, _ = yield from newton_steps(
                "complete",
                theta,
                metric,
                lower,
                upper,
                inner,
                self.m_step_iterations,
            )
            before, value = value, (yield Request("expectation", theta)).value
            path.append(-value)
            if abs(before - value) <= self.tolerance * abs(before):
                status = "converged"
                break
        here = yield Request("observed", theta)
        certificate = certify(problem, theta, here, metric, status, len(path) - 1)
        return Solution(theta, -here.value, here.hessian, certificate, tuple(path))
