"""The problem that a solver works on, its questions and their answers.

A solver is a generator.  It yields a `Request` (evaluate this objective at these parameters) and
is sent the answer; when it returns, its problem is solved.  It reads like a textbook algorithm
for one problem, while the loop of `moestat.solvers.driver` advances a whole batch of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.kernels.build import mixture_address
from moestat.kernels.records import NO_SUMS, Data, Sums
from moestat.model.constraints import along, averaged
from moestat.model.family import Family
from moestat.model.plain import check_loops
from moestat.solvers.groups import group_sums
from moestat.solvers.rows import Rows
from moestat.solvers.spring import FREE, Spring
from moestat.solvers.squares import (
    gradient_squares,
    gram_squares,
    newton_squares,
    residual_squares,
    squares_address,
    squares_inputs,
)


class Objective(Enum):
    """What is evaluated, and with which derivatives.

    The first six are minus log-likelihoods of densities, the last four half the sum of squared
    residuals of a regression function.
    """

    VALUE = "value"
    """Minus the observed-data log-likelihood: `Value`."""
    EXPECTATION = "expectation"
    """Minus the observed-data log-likelihood, with an update of the responsibilities (E-step):
    `Value`."""
    SCORE = "score"
    """Minus the observed-data log-likelihood with its gradient: `ValueGradient`."""
    OBSERVED = "observed"
    """Minus the observed-data log-likelihood with gradient and Hessian: `Evaluation`."""
    INFORMED = "informed"
    """Minus the observed-data log-likelihood with gradient, Hessian and the information of the
    scores: `InformedEvaluation`."""
    COMPLETE = "complete"
    """Minus the complete-data log-likelihood for the current responsibilities: `Evaluation`."""
    RESIDUALS = "residuals"
    """Half the sum of squares: `Value`."""
    GRADIENT = "gradient"
    """Half the sum of squares with its gradient: `ValueGradient`."""
    GAUSS_NEWTON = "gauss-newton"
    """Half the sum of squares with gradient, and the Gauss-Newton matrix in place of the Hessian:
    `Evaluation`."""
    NEWTON = "newton"
    """Half the sum of squares with gradient, exact Hessian and Gauss-Newton matrix:
    `InformedEvaluation`."""


@dataclass(frozen=True)
class Request:
    """A question of a solver: evaluate an objective at theta (P,)."""

    objective: Objective
    theta: FloatArray
    level: int = -1
    """Number of the level of the data; -1, the last one, is all of the data."""


@dataclass(frozen=True)
class Run(Request):
    """A whole iteration from theta in place of one evaluation, by compiled code.

    Like other requests it can be answered by any thread.
    """

    @staticmethod
    def is_for(problem: Problem, level: int) -> bool:
        """Whether the data are few enough for one thread, and in arrays that a loop can read."""
        data = problem.data.levels[level]
        summed = not problem.family.ties and data.begin is None
        if not summed or data.whole or type(data) is not Rows:
            return False
        is_readable = data.is_readable and problem.tau.flags.carray
        return is_readable and len(data.parts(problem.family.n_params)) == 1

    def execute(self, problem: Problem) -> Ran:
        """Run the iteration and return its end."""
        raise NotImplementedError


@dataclass(frozen=True)
class Value:
    """An objective: minus a log-likelihood (total, not per sample), or half a sum of squares."""

    value: float


@dataclass(frozen=True)
class ValueGradient(Value):
    """An objective with its gradient (P,)."""

    gradient: FloatArray


@dataclass(frozen=True)
class Evaluation(ValueGradient):
    """An objective with gradient (P,) and Hessian (P, P)."""

    hessian: FloatArray


@dataclass(frozen=True)
class InformedEvaluation(Evaluation):
    """An evaluation with the information (P, P), too.

    The information is the sum of the outer products of the scores, or the Gauss-Newton matrix: the
    part of the Hessian that remains where the model fits.
    """

    information: FloatArray


@dataclass(frozen=True)
class Ran(ValueGradient):
    """The end of a run: parameters (P,), status, number of iterations and of passes."""

    theta: FloatArray
    status: str
    iterations: int
    passes: int


class End(NamedTuple):
    """The end of a climb, and how it was reached."""

    theta: FloatArray
    """Parameters; shape (P,)."""
    status: str
    """ "converged", "iteration limit" or "stalled"."""
    iterations: int
    """Number of iterations."""
    reach: float = 1.0
    """Length of the longest steps across kinks that the climb has ruled out, see `Certificate`."""
    gradients: Sequence[tuple[FloatArray, FloatArray]] = ()
    """Places (P,) that a least-squares climb visited, each with the gradient (P,) there."""
    path: tuple[float, ...] = ()
    """Log-likelihood after each iteration, where the solver records it."""


_SQUARES: dict[Objective, tuple[Callable[..., tuple[Any, ...]], type[Value]]] = {
    Objective.RESIDUALS: (residual_squares, Value),
    Objective.GRADIENT: (gradient_squares, ValueGradient),
    Objective.GAUSS_NEWTON: (gram_squares, Evaluation),
    Objective.NEWTON: (newton_squares, InformedEvaluation),
}

Result = TypeVar("Result")
Iteration = Generator[Request, Any, Result]
"""A running solver: it yields requests, and is sent the kind of `Value` that each one names."""


@dataclass
class Problem:
    """One data set under one family, with the working memory of one solver run."""

    family: Family
    """The model."""
    data: Rows
    """The data; several problems may share them."""
    passes: float = 0.0
    """Number of rows visited so far, divided by the number of rows."""
    seen: int = 0
    """Number of rows that the start was fitted to before; smaller previews are skipped."""
    spring: Spring = FREE
    """A penalty that compiled iterations know; arrays of length 0 if there is none."""
    resolved: frozenset[str] = frozenset()
    """Blocks of scales whose lower bound follows from the rounding of the response: an atom on
    such a bound has not collapsed."""
    _tau: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def __post_init__(self) -> None:
        check_loops(self.family)

    def restart(self) -> Self:
        """A copy for another run, with counters at 0."""
        return replace(self, passes=0.0, _tau=np.empty((0, 0)))

    def replace_data(self, data: Rows) -> Self:
        """A copy with other data."""
        return replace(self, data=data, passes=0.0, _tau=np.empty((0, 0)))

    def prior_of(self, theta: FloatArray) -> float:
        """Minus the log prior density of parameters (P,), 0 without one."""
        return 0.0

    def with_known_scale(self, points: FloatArray) -> FloatArray:
        """Points (m, P) of the same densities: the likelihood does not depend on a scale."""
        return points

    def restrict(self, family: Family, data: Rows, places: IntArray) -> Problem:
        """The problem of a smaller family, whose parameters are those at `places`, and its data."""
        return Problem(family, data, resolved=self.resolved)

    def detail(self) -> list[tuple[int, Rows]]:
        """Numbers and data of the levels with more rows than the start was fitted to."""
        levels = enumerate(self.data.levels)
        return [(i, data) for i, data in levels if not data.preview or data.size > self.seen]

    def has_doubtful_previews(self) -> bool:
        """Whether previews may lead away from a start that has not been fitted before."""
        return not self.seen and any(data.preview for data in self.data.levels)

    def metric(self, theta: FloatArray) -> FloatArray:
        """Metric (P, P) of the trust region around theta (P,)."""
        family = self.family
        metric = self.data.metric(family)
        unit = family.units(theta)
        return along(metric / (unit[:, None] * unit), family.ties, across=1.0)

    def assign(self, tau: FloatArray) -> None:
        """Take `tau` (k, n) as the responsibilities of the next complete-data requests."""
        self._tau = tau

    @property
    def tau(self) -> FloatArray:
        """The responsibilities (k, n) that complete-data requests take; (0, 0) without any."""
        return self._tau

    def visit(self, request: Request, passes: int = 1) -> Rows:
        """The data that a request is about, counted as visited."""
        data = self.data.levels[request.level]
        self.passes += passes * data.size / self.data.size
        return data

    def parts(self, request: Request) -> Sequence[slice]:
        """Rows of each part of a pass; sums of squares and E-steps have one part with all rows."""
        data, is_squares = self.data.levels[request.level], request.objective in _SQUARES
        if is_squares or request.objective is Objective.EXPECTATION or isinstance(request, Run):
            return [slice(0, data.size)]
        return data.parts(self.family.n_params)

    def inputs(self, request: Request, rows: slice) -> Data:
        """The arrays that the loops read, for some of the rows."""
        all_rows, tau = self.data.levels[request.level], NO_SUMS.hessian
        data = all_rows.part(rows)
        if request.objective is Objective.COMPLETE:
            tau = self._tau if data is all_rows else np.ascontiguousarray(self._tau[:, rows])
        return Data(*data.arrays, tau)

    def compiled(self, request: Request, order: int) -> tuple[int, tuple[Any, ...]]:
        """The address of a pass up to an order over all rows, and what it reads besides theta.

        It is for compiled loops: of squares if the request is about them, up to order 1.
        """
        family, data = self.family, self.data.levels[request.level]
        if request.objective in _SQUARES:
            return squares_address(), squares_inputs(family, *data.arrays)
        inputs = self.inputs(request, slice(0, data.size))
        return mixture_address(), family.loops.inputs(family.coefficients, inputs, order)

    def evaluate(self, request: Request) -> Any:
        """Answer one request, by the kind of `Value` that its objective names, in one pass."""
        return self.join(request, [self.evaluate_part(request, r) for r in self.parts(request)])

    def join(self, request: Request, parts: Sequence[Value]) -> Value:
        """Join the answers of the `parts` of a pass, in their order, to the answer of a request."""
        self.visit(request, parts[0].passes if isinstance(parts[0], Ran) else 1)
        if len(parts) == 1:
            return self.completed(request, self._along_ties(parts[0]))
        names = [field.name for field in fields(parts[0])]
        sums = {name: sum(getattr(part, name) for part in parts) for name in names}
        total = replace(parts[0], **sums)
        return self.completed(request, self._along_ties(total))

    def completed(self, request: Request, total: Value) -> Value:
        """The answer of a request, from the sums over all rows."""
        return total

    def _along_ties(self, evaluation: Value) -> Value:
        """Project the derivatives of an answer on parameters whose tied coefficients are equal.

        Across ties the Hessian is a multiple of the identity, so that steps keep the ties.
        """
        ties = self.family.ties
        if not ties or not isinstance(evaluation, ValueGradient):
            return evaluation
        changed: dict[str, FloatArray] = {"gradient": averaged(evaluation.gradient, ties)}
        across = float(self.data.weight.sum())
        for name in ("hessian", "information"):
            if hasattr(evaluation, name):
                changed[name] = along(getattr(evaluation, name), ties, across)
        return replace(evaluation, **changed)

    def evaluate_part(self, request: Request, rows: slice) -> Value:
        """The sums over some of the rows."""
        if isinstance(request, Run):
            return request.execute(self)
        objective = request.objective
        if self.data.begin is not None:
            return self._sum_groups(objective, request.theta)
        if objective in _SQUARES:
            data, (loop, answer) = self.data.levels[request.level], _SQUARES[objective]
            return answer(*loop(self.family, *data.arrays, request.theta))
        if objective is Objective.EXPECTATION:
            data = self.data.levels[request.level]
            _, self._tau, log_density = self.family.rowwise(request.theta, data.X, data.y)
            return Value(-float(data.weight @ log_density))
        family = self.family
        loops = self.family.loops
        none = NO_SUMS.hessian
        at = request.theta, family.coefficients, self.inputs(request, rows)
        if objective is Objective.VALUE:
            return Value(-loops.log_likelihood(*at, 0, NO_SUMS))
        score = np.empty(family.n_params)
        if objective is Objective.SCORE:
            value = loops.log_likelihood(*at, 1, Sums(score, none, none))
            return ValueGradient(-value, -score)
        hessian = np.empty((family.n_params, family.n_params))
        informed = objective is Objective.INFORMED
        sums = Sums(score, hessian, np.empty_like(hessian) if informed else none)
        value = loops.log_likelihood(*at, 3 if informed else 2, sums)
        np.negative(score, out=score)
        np.negative(hessian, out=hessian)
        if informed:
            return InformedEvaluation(-value, score, hessian, sums.information)
        return Evaluation(-value, score, hessian)

    def _sum_groups(self, objective: Objective, theta: FloatArray) -> Value:
        """The sums over groups of rows that share the choice of an expert."""
        tau = self._tau if objective is Objective.COMPLETE else None
        order = {Objective.VALUE: 0, Objective.EXPECTATION: 0, Objective.SCORE: 1}
        sums = group_sums(self.family, theta, self.data, order.get(objective, 2), tau)
        if objective is Objective.EXPECTATION:
            self._tau = sums.posterior
        if order.get(objective, 2) == 0:
            return Value(-sums.value)
        if objective is Objective.SCORE:
            return ValueGradient(-sums.value, -sums.score)
        answer = -sums.value, -sums.score, -sums.hessian
        if objective is Objective.INFORMED:
            return InformedEvaluation(*answer, sums.information)
        return Evaluation(*answer)

    def rowwise(self, theta: FloatArray, part: Rows | None = None) -> tuple[FloatArray, ...]:
        """Gate probabilities (k, n), responsibilities (k, n) and log-density (n,) of rows.

        Rows of a group share probabilities and responsibilities; the first row of a group has the
        log-density of the whole group, the others have 0.
        """
        data = self.data if part is None else part
        if data.begin is None:
            return self.family.rowwise(theta, data.X, data.y)
        sums, log_density = group_sums(self.family, theta, data, 0), np.zeros(data.size)
        log_density[data.begin] = sums.log_density
        return sums.prior[:, data.owner], sums.posterior[:, data.owner], log_density


Answer = Callable[[Sequence[tuple[Problem, Request]]], Iterable[Value | np.linalg.LinAlgError]]
"""Answers a batch of requests, one of each problem at most, in their order.

The answer is an error where a compiled run left the range of float64."""


class Target(Protocol):
    """The device that answers requests.

    Results depend on the target by rounding only.
    """

    @property
    def whole(self) -> bool:
        """Whether the target prefers all of the data at once to previews, see `Rows`."""
        ...

    def groups(self, problems: Sequence[Problem]) -> Iterable[range]:
        """Consecutive problems that the target can hold at the same time, in order."""
        ...

    def session(self, problems: Sequence[Problem]) -> AbstractContextManager[Answer]:
        """Hold these problems while the context is open, and answer their requests."""
        ...
