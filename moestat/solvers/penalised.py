"""Problems with a penalty on the parameters: the posterior mode in place of the maximum."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.model.family import Family
from moestat.solvers.problem import Evaluation, Problem, Request, Rows, Run, Value, ValueGradient
from moestat.solvers.spring import Spring


@dataclass(frozen=True)
class Penalty:
    """Minus a log prior density: a quadratic form, and inverse-gamma distributions of variances.

    With d the distance of theta from the centre, and t the logarithms of variances, it is ``d' Q d
    / 2 + sum(a t + b exp(-t))``.
    """

    quadratic: FloatArray
    """Q, positive semidefinite; shape (P, P)."""
    logs: IntArray
    """Positions of the logarithms of variances; shape (m,)."""
    shape: float | FloatArray = 0.0
    """Coefficients a of the logarithms; shape (m,)."""
    rate: float | FloatArray = 0.0
    """Coefficients b of the inverse variances; shape (m,)."""
    centre: float | FloatArray = 0.0
    """Where the quadratic form is 0; shape (P,)."""

    @cached_property
    def spring(self) -> Spring:
        """The penalty as compiled iterations read it."""
        logs = np.zeros((2, len(self.quadratic) if self.logs.size else 0))
        if self.logs.size:
            logs[0, self.logs], logs[1, self.logs] = self.shape, self.rate
        centre = np.broadcast_to(self.centre, len(self.quadratic)).astype(np.float64)
        return centre, np.ascontiguousarray(self.quadratic), logs

    @cached_property
    def bounded(self) -> frozenset[int]:
        """Positions of the logarithms of variances, which the penalty keeps away from 0."""
        return frozenset(self.logs.tolist())

    def value(self, theta: FloatArray) -> float:
        """The penalty of parameters (P,), up to a constant."""
        logs = theta[self.logs]
        bent = self.shape * logs + self.rate * np.exp(-logs)
        distance = theta - self.centre
        return float(0.5 * distance @ self.quadratic @ distance + bent.sum())

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient (P,) of the penalty."""
        gradient = self.quadratic @ (theta - self.centre)
        gradient[self.logs] += self.shape - self.rate * np.exp(-theta[self.logs])
        return gradient

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Hessian (P, P) of the penalty."""
        hessian = self.quadratic.copy()
        hessian[self.logs, self.logs] += self.rate * np.exp(-theta[self.logs])
        return hessian


def _add(evaluation: Value, value: float, gradient: FloatArray, hessian: FloatArray) -> Value:
    """Add value, gradient and Hessian of a penalty to an evaluation."""
    more: dict[str, float | FloatArray] = {"value": evaluation.value + value}
    if isinstance(evaluation, ValueGradient):
        more["gradient"] = evaluation.gradient + gradient
    if isinstance(evaluation, Evaluation):
        more["hessian"] = evaluation.hessian + hessian
    return replace(evaluation, **more)


@dataclass
class PenalisedProblem(Problem):
    """A problem whose objective is minus the log posterior density, or that a spring pulls."""

    penalty: Penalty = field(default_factory=lambda: Penalty(np.zeros((0, 0)), np.arange(0)))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.spring = self.penalty.spring

    def completed(self, request: Request, total: Value) -> Value:
        """The sums over all rows, and the penalty, which a compiled run has added."""
        if isinstance(request, Run):
            return total
        theta, penalty = request.theta, self.penalty
        return _add(total, penalty.value(theta), penalty.gradient(theta), penalty.hessian(theta))

    def prior_of(self, theta: FloatArray) -> float:
        """The penalty of parameters (P,)."""
        return self.penalty.value(theta)

    def with_known_scale(self, points: FloatArray) -> FloatArray:
        """Points (m, P) at which the scale of the gate is 1: the penalty depends on it."""
        return self.family.at_unit_scale(points)

    def restrict(self, family: Family, data: Rows, places: IntArray) -> Problem:
        """The problem of a smaller family, whose parameters are those at `places`, and its data."""
        penalty = replace(
            self.penalty,
            quadratic=self.penalty.quadratic[np.ix_(places, places)],
            logs=np.searchsorted(places, self.penalty.logs),
            centre=np.broadcast_to(self.penalty.centre, len(self.penalty.quadratic))[places],
        )
        return PenalisedProblem(family, data, resolved=self.resolved, penalty=penalty)
