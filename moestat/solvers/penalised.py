"""Problems with a penalty on the parameters: the posterior mode in place of the maximum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.solvers.problem import Evaluation, Problem, Request, ValueGradient

__all__ = ["Penalty", "PenalisedProblem"]


@dataclass(frozen=True)
class Penalty:
    """Minus a log prior density: a quadratic form, and inverse-gamma laws of variances.

    With t the logarithms of variances it is ``theta' Q theta / 2 + sum(a t + b exp(-t))``.

    Parameters
    ----------
    quadratic : ndarray of shape (P, P)
        Q, positive semidefinite.
    logs : ndarray of shape (m,)
        Positions of the logarithms of variances.
    shape, rate : float
        a and b.
    """

    quadratic: FloatArray
    logs: IntArray
    shape: float = 0.0
    rate: float = 0.0

    def value(self, theta: FloatArray) -> float:
        """The penalty of parameters (P,), up to a constant."""
        logs = theta[self.logs]
        bent = self.shape * logs + self.rate * np.exp(-logs)
        return float(0.5 * theta @ self.quadratic @ theta + bent.sum())

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Its gradient (P,)."""
        gradient = self.quadratic @ theta
        gradient[self.logs] += self.shape - self.rate * np.exp(-theta[self.logs])
        return gradient

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Its Hessian (P, P)."""
        hessian = self.quadratic.copy()
        hessian[self.logs, self.logs] += self.rate * np.exp(-theta[self.logs])
        return hessian


@dataclass
class PenalisedProblem(Problem):
    """A problem whose objective is minus the log posterior density."""

    penalised: ClassVar[bool] = True
    penalty: Penalty = field(default_factory=lambda: Penalty(np.zeros((0, 0)), np.arange(0)))

    def joined(self, request: Request, parts: Sequence[Any]) -> Any:
        """The answer to a request from those of the `parts` of a pass, and the penalty."""
        found, theta = super().joined(request, parts), request.theta
        value = found.value + self.penalty.value(theta)
        if not isinstance(found, ValueGradient):
            return replace(found, value=value)
        gradient = found.gradient + self.penalty.gradient(theta)
        if not isinstance(found, Evaluation):
            return replace(found, value=value, gradient=gradient)
        hessian = found.hessian + self.penalty.hessian(theta)
        return replace(found, value=value, gradient=gradient, hessian=hessian)
