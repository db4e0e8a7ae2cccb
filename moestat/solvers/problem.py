"""The problem that a solver works on, its questions and their answers.

A solver is a generator.  It yields a `Request` (evaluate this objective at these parameters) and
is sent the answer; when it returns, its problem is solved.  It reads like a textbook algorithm
for one problem, while the loop of `moestat.solvers.driver` advances a whole batch of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.kernels.records import NO_SUMS, Data, Sums
from moestat.model.compression import gauss_compress
from moestat.model.constraints import along, averaged
from moestat.model.family import Family
from moestat.model.plain import check_loops
from moestat.model.recombination import POINTS, recombine
from moestat.model.units import DataUnits
from moestat.solvers.groups import group_sums
from moestat.solvers.metric import region_metric
from moestat.solvers.spring import FREE, Spring
from moestat.solvers.squares import (
    gradient_squares,
    gram_squares,
    newton_squares,
    residual_squares,
)

__all__ = [
    *("Answer", "Evaluation", "InformedEvaluation", "Iteration", "Objective", "Problem"),
    *("Ran", "Request", "Result", "Run", "Sample", "Target", "Value", "ValueGradient"),
]

_PANELS, _NODES, _CELLS = (2048, 256, 32), 4, (32, 16)
_STRIDES, _PREVIEWED = (16, 4), 2000
_PART, _PARTS = 1 << 14, 8  # rows of a part of a pass at most, and of what the number is a multiple
_PREVIEWED_PART = 1 << 11  # rows of a part of a preview at least


class Objective(Enum):
    """What is evaluated, and with which derivatives.

    The first six are minus log-likelihoods of densities, the last four half the sum of squared
    residuals of a regression function.
    """

    VALUE = "value"
    """Minus the observed-data log-likelihood: `Value`."""
    EXPECTATION = "expectation"
    """The same, with an update of the responsibilities, the E-step: `Value`."""
    SCORE = "score"
    """With its gradient: `ValueGradient`."""
    OBSERVED = "observed"
    """With gradient and Hessian: `Evaluation`."""
    INFORMED = "informed"
    """With gradient, Hessian and the information of the scores: `InformedEvaluation`."""
    COMPLETE = "complete"
    """Minus the complete-data log-likelihood for the current responsibilities: `Evaluation`."""
    RESIDUALS = "residuals"
    """Half the sum of squares: `Value`."""
    GRADIENT = "gradient"
    """With its gradient: `ValueGradient`."""
    GAUSS_NEWTON = "gauss-newton"
    """With gradient and the Gauss-Newton matrix in place of the Hessian: `Evaluation`."""
    NEWTON = "newton"
    """With gradient, exact Hessian and Gauss-Newton matrix: `InformedEvaluation`."""


@dataclass(frozen=True)
class Request:
    """What a solver wants to know.

    Parameters
    ----------
    objective : Objective
        What.
    theta : ndarray of shape (P,)
        Where.
    level : int
        On which of the sample's `levels`; the last one, -1, is all of the data.
    """

    objective: Objective
    theta: FloatArray
    level: int = -1


@dataclass(frozen=True)
class Run(Request):
    """A whole iteration from theta in place of one evaluation, by code that needs no Python.

    Whoever can share requests among threads can share these, too.
    """

    @staticmethod
    def is_for(problem: Problem, request: Request) -> bool:
        """Whether the data are so few that threads share no pass, and a loop can read them."""
        data = problem.data.levels[request.level]
        summed = not (problem.penalised or problem.family.ties) and data.begin is None
        if not summed or data.whole or type(data) is not Sample:
            return False
        arrays = (*data.arrays, problem.tau)
        # Of other arrays the code at an address would read something else.
        return all(a.flags.carray for a in arrays) and len(data.parts(request.theta.size)) == 1

    def of(self, problem: Problem) -> Ran:
        """Run it."""
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
    """With the information (P, P), too.

    It is the sum of the outer products of the scores, or the Gauss-Newton matrix: the part of the
    Hessian that is left where the model fits.
    """

    information: FloatArray


@dataclass(frozen=True)
class Ran(ValueGradient):
    """Where a run has ended: parameters (P,), how, and after how many iterations and passes."""

    theta: FloatArray
    status: str
    iterations: int
    passes: int


_SQUARES: dict[Objective, tuple[Callable[..., tuple[Any, ...]], type[Value]]] = {
    Objective.RESIDUALS: (residual_squares, Value),
    Objective.GRADIENT: (gradient_squares, ValueGradient),
    Objective.GAUSS_NEWTON: (gram_squares, Evaluation),
    Objective.NEWTON: (newton_squares, InformedEvaluation),
}

Result = TypeVar("Result")
Iteration = Generator[Request, Any, Result]
"""A solver at work: it is sent the kind of `Value` that the objective of its request names."""


@lru_cache(maxsize=256)
def _parts(size: int, entries: int, preview: bool) -> tuple[slice, ...]:
    """Rows of the parts of a pass, by the number of entries of a Hessian."""
    if preview:
        least = max(_PREVIEWED_PART, entries)
        count = min(_PARTS, 1 << (size // least).bit_length() >> 1) or 1
    else:
        most = max(_PART, entries)
        count = _PARTS * -(-size // (_PARTS * most)) if size >= 2 * most else 1
    ends = np.linspace(0, size, count + 1).astype(int)
    return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))


@dataclass(frozen=True)
class Sample:
    """Data as the loops read it: X (d, n) contiguous, encoded y (n,), weight (n,).

    A preview is a part of the data that only shows where to look.  Data that are `whole` have one
    level only: for a target to which a pass over all of them costs less than making previews.
    Mean and covariance matrix may be `known` already.  Where an expert is chosen once for a group
    of rows, these follow each other, and `begin` (G,) has the first row of each group.
    """

    X: FloatArray
    y: Any
    weight: FloatArray
    preview: bool = False
    whole: bool = False
    known: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False)
    begin: IntArray | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of rows n."""
        return self.X.shape[1]

    @property
    def arrays(self) -> tuple[FloatArray, Any, FloatArray]:
        """X, y and weight."""
        return self.X, self.y, self.weight

    @property
    def units(self) -> FloatArray:
        """Weights of what is independent: of rows, or of groups of rows."""
        return self.weight if self.begin is None else self.weight[self.begin]

    @cached_property
    def owner(self) -> IntArray:
        """Which of these each row belongs to, shape (n,)."""
        if self.begin is None:
            return np.arange(self.size)
        return np.repeat(np.arange(self.begin.size), np.diff(np.append(self.begin, self.size)))

    def reweighted(self, units: FloatArray) -> Sample:
        """The rows with other weights of rows, or of groups of rows; those of weight 0 are left."""
        used = units > 0.0
        at, begin = np.flatnonzero(used[self.owner]), None
        if self.begin is not None:
            sizes = np.bincount(self.owner)[used]
            begin = np.cumsum(sizes) - sizes
        X = np.ascontiguousarray(self.X[:, at])
        return Sample(X, self.y[at], units[self.owner[at]], begin=begin)

    @property
    def gram(self) -> FloatArray:
        """Weighted mean of ``phi phi'`` with phi = (1, x), shape (1 + d, 1 + d)."""
        d = len(self.X)
        mean = np.append(1.0, self.mean[:d])
        gram = np.outer(mean, mean)
        gram[1:, 1:] += self.covariance[:d, :d]
        return gram

    def metric(self, family: Family) -> FloatArray:
        """Metric (P, P) of a family's channels; the same array as long as the family is."""
        if not self._metric or self._metric[0] is not family:
            shape = family.index, family.width, family.n_params
            self._metric[:] = family, region_metric(self.gram, *shape)
        return self._metric[1]

    @cached_property
    def _metric(self) -> list[Any]:
        return []

    @cached_property
    def memory(self) -> dict[str, Any]:
        """What is made of these data once and read again."""
        return {}

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of each input and, last, of a continuous response."""
        return self._moments[0]

    @property
    def covariance(self) -> FloatArray:
        """Covariance matrix of the same."""
        return self._moments[1]

    @property
    def deviation(self) -> FloatArray:
        """Standard deviations of the same."""
        return np.sqrt(np.diag(self.covariance))

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance matrix, made in parts to need no memory."""
        if self.known is not None:
            return self.known
        total = float(self.weight.sum())
        columns = [*self.X, np.real(self.y)] if self._continuous else [*self.X]
        mean = np.array([column @ self.weight for column in columns]) / total
        covariance = np.zeros((mean.size, mean.size))
        for rows in self.parts(0):
            centred = np.array([column[rows] for column in columns])
            centred -= mean[:, None]
            covariance += (centred * self.weight[rows]) @ centred.T
        return mean, covariance / total

    @property
    def _continuous(self) -> bool:
        return not np.issubdtype(self.y.dtype, np.integer)

    def parts(self, n_params: int) -> Sequence[slice]:
        """Rows whose sums are added up in this order, by one thread or by many.

        A part has more rows than the entries of a Hessian: its sums weigh less than its rows.
        """
        if self.begin is not None:
            return [slice(0, self.size)]
        return _parts(self.size, n_params * n_params, self.preview)

    def part(self, rows: slice) -> Sample:
        """Some of the rows."""
        if rows == slice(0, self.size):
            return self
        X = np.ascontiguousarray(self.X[:, rows])
        return Sample(X, self.y[rows], self.weight[rows])

    def over(self, function: Callable[[Sample], Result]) -> Iterator[Result]:
        """``function(part)`` of every part, in order."""
        return map(function, map(self.part, self.parts(0)))

    def within(self, units: DataUnits) -> Sample:
        """The same data as (z, w) of these units."""
        X, y = units.apply(self.X, self.y)
        return replace(self, X=X, y=y, known=units.moments(*self._moments))

    @cached_property
    def sorted(self) -> Sample:
        """The same rows in the order of the first input."""
        order = np.argsort(self.X[0], kind="stable")
        X = np.ascontiguousarray(self.X[:, order])
        return Sample(X, self.y[order], self.weight[order])

    @property
    def levels(self) -> list[Sample]:
        """The data in growing detail: compressed ones where that saves much, then all of them.

        Compression needs one or two inputs and discrete responses.  With one input and 32 panels of
        4 nodes it keeps the log-likelihood of 1e5 samples to about 1e-9 for gate slopes up to 30 on
        the unit interval; steeper ones need the finer levels.  With two, fewer and larger cells
        with more moments would be as exact for smooth densities, but steep boundaries would pass
        between their points and fit those too well.  Continuous responses have previews instead:
        every 16th and every 4th sample.  With fewer, an atom too many finds a place of its own.
        Weighted rows have none: on a lattice every 4th of them would follow another law.
        """
        return [*self._coarser, self]

    @cached_property
    def _coarser(self) -> list[Sample]:
        # Without the sample itself: rows that hold themselves stay until garbage is collected.
        levels: list[Sample] = []
        if self.whole or self.begin is not None:
            return levels
        if np.issubdtype(self.y.dtype, np.integer):
            finer, classes = self, int(self.y.max()) + 1
            for panels in _PANELS if self.X.shape[0] == 1 else ():
                # Nodes have the moments of all rows, and so have the nodes of nodes.
                if self.size >= 4 * panels * _NODES * classes:
                    x, y, weight = gauss_compress(finer.X[0], finer.y, finer.weight, panels, _NODES)
                    finer = Sample(np.ascontiguousarray(x[None, :]), y, weight)
                    levels.insert(0, finer)
            if self.X.shape[0] == 2 and self.size >= 12 * _CELLS[0] ** 2 * POINTS * classes:
                for panels in _CELLS:
                    finer = Sample(*recombine(*finer.arrays, panels))
                    levels.insert(0, finer)
        else:
            for stride in _STRIDES if np.ptp(self.weight) == 0.0 else ():
                if self.size >= stride * _PREVIEWED:
                    X = np.ascontiguousarray(self.X[:, ::stride])
                    y, weight = self.y[::stride].copy(), self.weight[::stride]
                    levels.append(
                        Sample(X, y, weight * (self.weight.sum() / weight.sum()), preview=True)
                    )
        return levels


@dataclass
class Problem:
    """One data set under one family, with the working memory of one solver run.

    Parameters
    ----------
    family : Family
        The model.
    data : Sample
        The data; several problems may share them.
    passes : float
        Rows visited so far over the number of rows.
    seen : int
        Rows that the start has been fitted to before: smaller previews are left out.

    Attributes
    ----------
    penalised : bool
        Whether the objective is more than a sum over rows, and a spring.
    spring
        Centre and stiffness of the spring; those of length 0 for none.
    """

    family: Family
    data: Sample
    passes: float = 0.0
    seen: int = 0
    penalised: ClassVar[bool] = False
    spring: ClassVar[Spring] = FREE
    _tau: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def __post_init__(self) -> None:
        check_loops(self.family)

    def again(self) -> Self:
        """The same problem for another run, with nothing visited yet."""
        return replace(self, passes=0.0, _tau=np.empty((0, 0)))

    def on(self, data: Sample) -> Self:
        """The same problem with other data."""
        return replace(self.again(), data=data)

    def detail(self) -> list[tuple[int, Sample]]:
        """Levels of the data, with their numbers, that show more than the start has seen."""
        levels = enumerate(self.data.levels)
        return [(i, data) for i, data in levels if not data.preview or data.size > self.seen]

    def has_doubtful_previews(self) -> bool:
        """Whether a part of the data may lead away from a start that nothing is known of."""
        return not self.seen and any(data.preview for data in self.data.levels)

    def metric(self, theta: FloatArray) -> FloatArray:
        """Metric (P, P) of the trust region around theta (P,)."""
        family = self.family
        metric = self.data.metric(family)
        unit = family.units(theta)
        return along(metric / np.outer(unit, unit), family.ties, across=1.0)

    def assign(self, tau: FloatArray) -> None:
        """Take `tau` (k, n) as the responsibilities of the next complete-data requests."""
        self._tau = tau

    @property
    def tau(self) -> FloatArray:
        """The responsibilities (k, n) that complete-data requests take; (0, 0) without any."""
        return self._tau

    def visit(self, request: Request, passes: int = 1) -> Sample:
        """The data that a request is about, counted as visited."""
        data = self.data.levels[request.level]
        self.passes += passes * data.size / self.data.size
        return data

    def parts(self, request: Request) -> Sequence[slice]:
        """Rows of each part of a pass; those of a sum of squares, or of an E-step, are all."""
        data, whole = self.data.levels[request.level], request.objective in _SQUARES
        if whole or request.objective is Objective.EXPECTATION or isinstance(request, Run):
            return [slice(0, data.size)]
        return data.parts(self.family.n_params)

    def inputs(self, request: Request, rows: slice) -> Data:
        """What the loops read for some of the rows."""
        whole, tau = self.data.levels[request.level], NO_SUMS.hessian
        data = whole.part(rows)
        if request.objective is Objective.COMPLETE:
            tau = self._tau if data is whole else np.ascontiguousarray(self._tau[:, rows])
        return Data(*data.arrays, tau)

    def evaluate(self, request: Request) -> Any:
        """Answer one request, by the kind of `Value` that its objective names, in one pass."""
        return self.joined(request, [self.evaluate_part(request, r) for r in self.parts(request)])

    def joined(self, request: Request, parts: Sequence[Any]) -> Any:
        """The answer to a request from those of the `parts` of a pass, in their order."""
        self.visit(request, parts[0].passes if isinstance(request, Run) else 1)
        if len(parts) == 1:
            return self._along_ties(parts[0])
        names = [field.name for field in fields(parts[0])]
        return self._along_ties(
            type(parts[0])(*(sum(getattr(p, name) for p in parts) for name in names))
        )

    def _along_ties(self, found: Any) -> Any:
        """An answer with derivatives along coefficients that are equal.

        Across them the Hessian is a multiple of 1, so that no step goes there.
        """
        ties = self.family.ties
        if not ties or not isinstance(found, ValueGradient):
            return found
        changed: dict[str, Any] = {"gradient": averaged(found.gradient, ties)}
        across = float(self.data.weight.sum())
        for name in ("hessian", "information"):
            if hasattr(found, name):
                changed[name] = along(getattr(found, name), ties, across)
        return replace(found, **changed)

    def evaluate_part(self, request: Request, rows: slice) -> Any:
        """The sums over some of the rows."""
        if isinstance(request, Run):
            return request.of(self)
        objective = request.objective
        if self.data.begin is not None:
            return self._of_groups(objective, request.theta)
        if objective in _SQUARES:
            data, (loop, answer) = self.data.levels[request.level], _SQUARES[objective]
            return answer(*loop(self.family, *data.arrays, request.theta))
        if objective is Objective.EXPECTATION:
            data = self.data.levels[request.level]
            _, self._tau, log_density = self.family.rowwise(request.theta, data.X, data.y)
            return Value(-float(data.weight @ log_density))
        family, loops, none = self.family, self.family.loops, NO_SUMS.hessian
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

    def _of_groups(self, objective: Objective, theta: FloatArray) -> Any:
        """The sums where an expert is chosen once for a group of rows."""
        tau = self._tau if objective is Objective.COMPLETE else None
        order = {Objective.VALUE: 0, Objective.EXPECTATION: 0, Objective.SCORE: 1}
        found = group_sums(self.family, theta, self.data, order.get(objective, 2), tau)
        if objective is Objective.EXPECTATION:
            self._tau = found.posterior
        if order.get(objective, 2) == 0:
            return Value(-found.value)
        if objective is Objective.SCORE:
            return ValueGradient(-found.value, -found.score)
        answer = -found.value, -found.score, -found.hessian
        if objective is Objective.INFORMED:
            return InformedEvaluation(*answer, found.information)
        return Evaluation(*answer)

    def rowwise(self, theta: FloatArray, part: Sample | None = None) -> tuple[FloatArray, ...]:
        """Gate probabilities (k, n), responsibilities (k, n) and log-density (n,) of rows.

        Rows of a group have the same ones, and the first one of them the log-density of all.
        """
        data = self.data if part is None else part
        if data.begin is None:
            return self.family.rowwise(theta, data.X, data.y)
        found, log_density = group_sums(self.family, theta, data, 0), np.zeros(data.size)
        log_density[data.begin] = found.log_density
        return found.prior[:, data.owner], found.posterior[:, data.owner], log_density


Answer = Callable[[Sequence[tuple[Problem, Request]]], Iterable[Value]]
"""Answers a batch of requests, one of each problem at most, in their order."""


class Target(Protocol):
    """Where requests are answered.

    Results depend on the target by rounding only.
    """

    @property
    def whole(self) -> bool:
        """Whether it is best shown all of the data at once, see `Sample`."""
        ...

    def groups(self, problems: Sequence[Problem]) -> Iterable[range]:
        """Runs of problems that it can hold at the same time, in order."""
        ...

    def session(self, problems: Sequence[Problem]) -> AbstractContextManager[Answer]:
        """Hold these problems; inside, their requests are answered."""
        ...
