"""Accelerated EM: squared extrapolation of the EM map, kept monotone.

Source: Varadhan and Roland (2008), scheme SqS3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray
from moestat.solvers.em.em import EM, EMSolver
from moestat.solvers.em.steps import EMMap
from moestat.solvers.problem import End, Iteration, Problem
from moestat.solvers.rules import EM_RULES, NEGLIGIBLE


@dataclass(frozen=True)
class SQUAREM(EMSolver):
    """EM with extrapolation: each cycle makes two EM steps and extrapolates them.

    Parameters
    ----------
    tolerance : float
        Stop when a cycle of two EM steps and an extrapolation changes the log-likelihood by less
        than this, relative to its size.
    max_iterations : int
        Largest number of E-steps.
    m_step_iterations : int
        Largest number of Newton steps in one M-step.

    Notes
    -----
    With the EM map M, ``r = M(theta) - theta`` and ``v = M(M(theta)) - M(theta) - r``, a cycle
    goes to ``theta + 2 s r + s^2 v`` with ``s = |r| / |v|`` in the metric of the predictors, put
    back into the box.  Where that does not raise the log-likelihood above the first EM step's,
    the cycle ends at the second EM step instead, so that the log-likelihood never falls.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0)
    >>> fit(F, X, y, solver=SQUAREM(), rng=0).certificate.status
    'converged'
    """

    tolerance: float = NEGLIGIBLE * EM.tolerance
    max_iterations: int = EM.max_iterations
    m_step_iterations: int = EM.m_step_iterations
    name: str = "squarem"

    def climb_level(
        self,
        problem: Problem,
        level: int,
        theta: FloatArray,
        tolerance: float,
        max_iterations: int,
    ) -> Iteration[tuple[End, None]]:
        """Cycles of two EM steps and an extrapolation from theta (P,), on one level."""
        em = EMMap(problem, theta, level, tolerance, self.m_step_iterations)
        value = yield from em.expect(theta)
        path, status = [-value], "iteration limit"
        expected, longest = 0, EM_RULES.factor
        while expected < max_iterations:
            before = value
            one = yield from em.maximise(theta, value)
            value = yield from em.expect(one)
            two = yield from em.maximise(one, value)
            trial, length = _extrapolate(em, theta, one, two, longest)
            reached = yield from em.expect(trial)
            path.append(-value)
            expected += 2
            if reached <= value:
                theta, value = trial, reached
                longest *= EM_RULES.factor if length == longest else 1.0
            else:
                theta, longest = two, max(longest / EM_RULES.factor, 1.0)
                value = yield from em.expect(theta)
                expected += 1
            path.append(-value)
            if abs(before - value) <= tolerance * abs(before):
                status = "converged"
                break
        return End(theta, status, expected, path=tuple(path)), None


def _extrapolate(
    em: EMMap, theta: FloatArray, one: FloatArray, two: FloatArray, longest: float
) -> tuple[FloatArray, float]:
    """The extrapolated parameters (P,), inside the box, and the length s; at 1 they are `two`."""
    r = one - theta
    v = two - one - r
    change = float(v @ em.metric @ v)
    length = np.sqrt(float(r @ em.metric @ r) / change) if change > 0.0 else 1.0
    length = min(max(length, 1.0), longest)
    return np.clip(theta + 2.0 * length * r + length**2 * v, em.lower, em.upper), length
