"""Expectation-maximisation: the classic, monotone, with Newton steps in the M-step."""

from __future__ import annotations

from dataclasses import dataclass

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int
from moestat.solvers.em.steps import EMMap
from moestat.solvers.problem import End, Evaluation, Iteration, Problem
from moestat.solvers.rules import NEGLIGIBLE
from moestat.solvers.shell import LevelSolver


@dataclass(frozen=True)
class EMSolver(LevelSolver):
    """A solver that climbs by EM steps; subclasses climb in their own ways.

    Parameters
    ----------
    tolerance : float
        A climb ends where the log-likelihood changes by less than this, relative to its size.
    max_iterations : int
        Largest number of E-steps.
    m_step_iterations : int
        Largest number of Newton steps in one M-step.
    name : str
        Name in the registry.
    """

    tolerance: float
    max_iterations: int
    m_step_iterations: int
    name: str

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_int("m_step_iterations", self.m_step_iterations)

    def climb(self, problem: Problem, start: FloatArray) -> Iteration[tuple[End, Evaluation]]:
        """The iteration from `start` (P,) without a certificate: the end and its evaluation.

        Each climb begins at the start.  The first one is on compressed data, the next ones on finer
        data, until the log-likelihood at the end is the same on all of the data.
        """
        exact = [level for level, data in enumerate(problem.data.levels) if not data.preview]
        # The coarsest of several levels would nearly always be followed by a finer one.
        exact = exact[min(1, max(len(exact) - 2, 0)) :]
        while True:
            end, _ = yield from self.climb_level(
                problem, exact.pop(0), start, self.tolerance, self.max_iterations
            )
            evaluation = yield self.final_request(problem, end.theta)
            negligible = NEGLIGIBLE * self.tolerance * abs(evaluation.value)
            if not exact or abs(-evaluation.value - end.path[-1]) <= negligible:
                return end, evaluation


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

    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, None]]:
        """E-steps and M-steps in turn, from theta (P,), on one level of the data."""
        em = EMMap(problem, theta, level, tolerance, self.m_step_iterations)
        value = yield from em.expect(theta)
        path, status = [-value], "iteration limit"
        for _ in range(max_iterations):
            theta = yield from em.maximise(theta, value)
            before, value = value, (yield from em.expect(theta))
            path.append(-value)
            if abs(before - value) <= tolerance * abs(before):
                status = "converged"
                break
        return End(theta, status, len(path) - 1, path=tuple(path)), None
