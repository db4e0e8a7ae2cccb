"""Expectation-maximisation: the classic, monotone, with Newton steps in the M-step."""

from __future__ import annotations

from dataclasses import dataclass

from moestat._types import FloatArray
from moestat._validate import positive_int, real_in
from moestat.solvers._certificate import certify
from moestat.solvers._driver import Iteration, Problem, Request
from moestat.solvers._least_squares import has_closed_form, regress
from moestat.solvers._solution import Solution
from moestat.solvers.newton import newton_steps

__all__ = ["EM"]

# What is this small a part of the outer tolerance changes no outer decision.
_NEGLIGIBLE = 1e-3
# Two summations of one log-likelihood agree to this.
_ROUNDING = 1e-12


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
    the log-likelihood cannot fall.  Gaussian linear experts with a gate of their own are put at
    their weighted least-squares fit first; under competition the experts are the gate, and the
    M-step may end before its maximum: generalised EM.  Where the data can be compressed (see
    `moestat.compression`) EM climbs on the compressed data; its end is checked on all of them, and
    when the two log-likelihoods differ by a thousandth of the tolerance, EM runs again on the
    next finer level, at last on all of the data.

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
        exact = [i for i, data in enumerate(problem.data.levels) if not data.preview]
        allowed = max(_NEGLIGIBLE * self.tolerance, _ROUNDING)
        # The coarsest of several levels would have to be left too often.
        for level in exact[min(1, max(len(exact) - 2, 0)) :]:
            theta, path, status = yield from self._climb(problem, start, level)
            here = yield Request("observed", theta)
            if abs(-here.value - path[-1]) <= allowed * abs(here.value):
                break
        certificate = certify(problem, theta, here, problem.metric(theta), status, len(path) - 1)
        return Solution(theta, -here.value, here.hessian, certificate, tuple(path))

    def _climb(
        self, problem: Problem, theta: FloatArray, level: int
    ) -> Iteration[tuple[FloatArray, list[float], str]]:
        """EM on one level of the data: the last parameters, every log-likelihood, the status."""
        metric = problem.metric(theta)
        lower, upper = problem.family.box_at(theta)
        value = (yield Request("expectation", theta, level)).value
        path = [-value]
        closed_form = has_closed_form(problem.family)
        for _ in range(self.max_iterations):
            if closed_form:
                here = yield Request("complete", theta, level)
                theta = regress(problem.family, theta, here)
            inner = _NEGLIGIBLE * self.tolerance * abs(value)
            theta, _, _, _ = yield from newton_steps(
                "complete", theta, metric, lower, upper, inner, self.m_step_iterations, level
            )
            before, value = value, (yield Request("expectation", theta, level)).value
            path.append(-value)
            if abs(before - value) <= self.tolerance * abs(before):
                return theta, path, "converged"
        return theta, path, "iteration limit"
