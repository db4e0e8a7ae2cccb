"""Problems with a penalty on the parameters: the posterior mode in place of the maximum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.model.family import Family
from moestat.solvers.problem import Evaluation, Problem, Request, Run, Sample, ValueGradient


@dataclass(frozen=True)
class Penalty:
    """Minus a log prior density: a quadratic form, and inverse-gamma laws of variances.

    With t the logarithms of variances it is ``theta' Q theta / 2 + sum(a t + b exp(-t))``.
    """

    quadratic: FloatArray
    """Q, positive semidefinite; shape (P, P)."""
    logs: IntArray
    """Positions of the logarithms of variances; shape (m,)."""
    shape: float = 0.0
    """a."""
    rate: Any = 0.0
    """b; shape (m,)."""

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


def _added(found: Any, value: float, gradient: FloatArray, hessian: FloatArray) -> Any:
    """The answer to a request with a penalty."""
    more: dict[str, Any] = {"value": found.value + value}
    if isinstance(found, ValueGradient):
        more["gradient"] = found.gradient + gradient
    if isinstance(found, Evaluation):
        more["hessian"] = found.hessian + hessian
    return replace(found, **more)


@dataclass
class PenalisedProblem(Problem):
    """A problem whose objective is minus the log posterior density."""

    penalised: ClassVar[bool] = True
    penalty: Penalty = field(default_factory=lambda: Penalty(np.zeros((0, 0)), np.arange(0)))

    def joined(self, request: Request, parts: Sequence[Any]) -> Any:
        """The answer to a request from those of the `parts` of a pass, and the penalty."""
        found = super().joined(request, parts)
        theta = request.theta
        own = self.penalty
        return _added(found, own.value(theta), own.gradient(theta), own.hessian(theta))

    def prior_of(self, theta: FloatArray) -> float:
        """The penalty of parameters (P,)."""
        return self.penalty.value(theta)

    def restricted(self, family: Family, data: Sample, places: IntArray) -> Problem:
        """The problem of a family whose parameters are those at some places, and of its data."""
        own = self.penalty
        quadratic = own.quadratic[np.ix_(places, places)]
        own = replace(own, quadratic=quadratic, logs=np.searchsorted(places, own.logs))
        return PenalisedProblem(family, data, resolved=self.resolved, penalty=own)


@dataclass
class SprungProblem(Problem):
    """A problem whose parameters a spring pulls to a centre; compiled iterations know it."""

    def joined(self, request: Request, parts: Sequence[Any]) -> Any:
        """The answer to a request from those of the `parts` of a pass, and the spring's."""
        found = super().joined(request, parts)
        if isinstance(request, Run):
            return found
        centre, stiffness = self.spring
        force = stiffness @ (request.theta - centre)
        return _added(found, 0.5 * float(force @ (request.theta - centre)), force, stiffness)
