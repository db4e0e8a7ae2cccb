"""The result that every solver returns."""

from __future__ import annotations

from dataclasses import dataclass

from moestat.base.types import FloatArray
from moestat.solvers.certificate import Certificate


@dataclass(frozen=True)
class Solution:
    """The result of one solver run.

    Parameters
    ----------
    theta : ndarray of shape (P,)
        Packed parameters.
    log_likelihood : float
        Total log-likelihood, natural log.
    information : ndarray of shape (P, P)
        Observed information, minus the Hessian of the log-likelihood.
    certificate : Certificate
        Evidence that the parameters are a maximum.
    path : tuple of float
        Log-likelihood after each iteration, where the solver records it.
    """

    theta: FloatArray
    log_likelihood: float
    information: FloatArray
    certificate: Certificate
    path: tuple[float, ...] = ()
