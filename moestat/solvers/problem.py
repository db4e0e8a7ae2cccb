"""One loop for all solvers: a batch of iterations, advanced together.

A solver is a generator.  It yields a `Request` (evaluate this objective at these parameters) and
is sent the `Evaluation`; when it returns, its problem is solved.  It reads like a textbook
algorithm for one problem, while the loop evaluates the requests of a whole batch of problems in
one go: over threads here, in one launch on another `Target`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from moestat.base.types import FloatArray
from moestat.model.compression import gauss_compress
from moestat.model.family import Family
from moestat.solvers.least_squares.squares import (
    gram_squares,
    newton_squares,
    residual_squares,
    slope_squares,
)
from moestat.solvers.trust_region.region import region_metric

__all__ = [
    *("Answer", "Cores", "Evaluation", "Iteration", "Objective", "Problem", "Request", "Sample"),
    *("Target", "attempt", "drive"),
]

_PANELS, _NODES = (32, 256, 2048), 4
_STRIDES, _PREVIEWED = (16, 4), 2000
_ROWS_WORTH_A_THREAD = 20_000
_SQUARES = {
    "residuals": residual_squares,
    "slopes": slope_squares,
    "squares": gram_squares,
    "curvature": newton_squares,
}

Objective = Literal[
    "observed",
    "informed",
    "complete",
    "expectation",
    "value",
    "residuals",
    "slopes",
    "squares",
    "curvature",
]


@dataclass(frozen=True)
class Request:
    """What a solver wants to know.

    Parameters
    ----------
    objective : str
        The observed-data objective, by itself ("observed") or with the information of the scores
        ("informed"), the complete-data one for the current responsibilities
        ("complete"), the observed-data value with an update of the responsibilities (the E-step,
        "expectation"), or that value by itself ("value").
        For regression functions half the sum of squared residuals: by itself ("residuals"), with
        its gradient ("slopes"), with the Gauss-Newton matrix, too ("squares"), or with the exact
        Hessian in its place and that matrix as the information ("curvature").
    theta : ndarray of shape (P,)
        Where.
    level : int
        On which of the sample's `levels`; the last one, -1, is all of the data.
    """

    objective: Objective
    theta: FloatArray
    level: int = -1


@dataclass(frozen=True)
class Evaluation:
    """A minus log-likelihood (total, not per sample) with gradient (P,) and Hessian (P, P).

    The information (P, P) is the sum of the outer products of the scores: the part of the Hessian
    that is left where the model fits.  What a request does not ask for is empty.
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray
    information: FloatArray = field(default_factory=lambda: np.empty((0, 0)))


Result = TypeVar("Result")
Iteration = Generator[Request, Evaluation, Result]


@dataclass(frozen=True)
class Sample:
    """Data as the loops read it: X (d, n) contiguous, encoded y (n,), weight (n,).

    A preview is a part of the data that only shows where to look.  Data that are `whole` have one
    level only: for a target to which a pass over all of them costs less than making previews.
    """

    X: FloatArray
    y: Any
    weight: FloatArray
    preview: bool = False
    whole: bool = False

    @property
    def size(self) -> int:
        """Number of rows n."""
        return self.X.shape[1]

    @property
    def arrays(self) -> tuple[FloatArray, Any, FloatArray]:
        """X, y and weight."""
        return self.X, self.y, self.weight

    @cached_property
    def gram(self) -> FloatArray:
        """Weighted mean of ``phi phi'`` with phi = (1, x), shape (1 + d, 1 + d)."""
        phi = np.vstack([np.ones(self.size), self.X])
        return (phi * self.weight) @ phi.T / self.weight.sum()

    @cached_property
    def sorted(self) -> Sample:
        """The same rows in the order of the first input."""
        order = np.argsort(self.X[0], kind="stable")
        X = np.ascontiguousarray(self.X[:, order])
        return Sample(X, self.y[order], self.weight[order])

    @cached_property
    def levels(self) -> list[Sample]:
        """The data in growing detail: compressed ones where that saves much, then all of them.

        Compression needs one input and discrete responses.  At 32 panels of 4 nodes it keeps the
        log-likelihood of 1e5 samples to about 1e-9 for gate slopes up to 30 on the unit interval;
        steeper ones need the finer levels.  Continuous responses have previews instead:
        every 16th and every 4th sample.  With fewer, an atom too many finds a place of its own.
        Weighted rows have none: on a lattice every 4th of them would follow another law.
        """
        if self.whole:
            return [self]
        levels = []
        if np.issubdtype(self.y.dtype, np.integer):
            for panels in _PANELS if self.X.shape[0] == 1 else ():
                if self.size >= 4 * panels * _NODES * (int(self.y.max()) + 1):
                    x, y, weight = gauss_compress(self.X[0], self.y, self.weight, panels, _NODES)
                    levels.append(Sample(np.ascontiguousarray(x[None, :]), y, weight))
        else:
            for stride in _STRIDES if np.ptp(self.weight) == 0.0 else ():
                if self.size >= stride * _PREVIEWED:
                    X = np.ascontiguousarray(self.X[:, ::stride])
                    y, weight = self.y[::stride].copy(), self.weight[::stride]
                    levels.append(
                        Sample(X, y, weight * (self.weight.sum() / weight.sum()), preview=True)
                    )
        return [*levels, self]


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
    """

    family: Family
    data: Sample
    passes: float = 0.0
    _tau: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def metric(self, theta: FloatArray) -> FloatArray:
        """Metric (P, P) of the trust region around theta (P,)."""
        family = self.family
        metric = region_metric(self.data.gram, family.index, family.width, family.n_params)
        unit = family.units(theta)
        return metric / np.outer(unit, unit)

    def assign(self, tau: FloatArray) -> None:
        """Take `tau` (k, n) as the responsibilities of the next complete-data requests."""
        self._tau = tau

    @property
    def tau(self) -> FloatArray:
        """The responsibilities (k, n) that complete-data requests take; (0, 0) without any."""
        return self._tau

    def visit(self, request: Request) -> Sample:
        """The data that a request is about, counted as visited."""
        data = self.data.levels[request.level]
        self.passes += data.size / self.data.size
        return data

    def evaluate(self, request: Request) -> Evaluation:
        """Answer one request with one pass over the data."""
        data = self.visit(request)
        if request.objective == "expectation":
            _, self._tau, log_density = self.family.rowwise(request.theta, data.X, data.y)
            return Evaluation(-float(data.weight @ log_density), np.empty(0), np.empty((0, 0)))
        if request.objective in _SQUARES:
            loop = _SQUARES[request.objective]
            return Evaluation(*loop(self.family, *data.arrays, request.theta))
        family, loops = self.family, self.family.loops
        inputs = request.theta, family.index, family.width, family.layout, *data.arrays
        order, n_params = (0, 0) if request.objective == "value" else (2, family.n_params)
        score, hessian = np.empty(n_params), np.empty((n_params, n_params))
        information = np.empty((0, 0))
        if request.objective == "informed":
            information = np.empty((n_params, n_params))
            value = loops.informed(*inputs, score, hessian, information)
        else:
            loop = loops.complete if request.objective == "complete" else loops.observed
            value = loop(*inputs, self._tau, order, score, hessian)
        np.negative(score, out=score)
        np.negative(hessian, out=hessian)
        return Evaluation(-value, score, hessian, information)


Answer = Callable[[Sequence[tuple[Problem, Request]]], Iterable[Evaluation]]
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


@dataclass(frozen=True)
class Cores:
    """The processor's cores, the default target.

    Parameters
    ----------
    threads : int or None
        Threads that evaluate; all cores by default.  The results do not depend on it.
    """

    threads: int | None = None
    whole = False

    def groups(self, problems: Sequence[Problem]) -> list[range]:
        """All of them at once."""
        return [range(len(problems))]

    @contextmanager
    def session(self, problems: Sequence[Problem]) -> Iterator[Answer]:
        """A pool of threads."""
        workers = min(self.threads or os.cpu_count() or 1, max(len(problems), 1))

        def answer(batch: Sequence[tuple[Problem, Request]]) -> Iterable[Evaluation]:
            rows = sum(problem.data.levels[request.level].size for problem, request in batch)
            # Handing a small pass to a thread costs more than the pass.
            spread = pool.map if workers > 1 and rows > _ROWS_WORTH_A_THREAD else map
            return spread(lambda item: item[0].evaluate(item[1]), batch)

        with ThreadPoolExecutor(workers) as pool:
            yield answer


def drive(
    iterations: Sequence[Iteration[Result]],
    problems: Sequence[Problem],
    threads: int | None = None,
    target: Target | None = None,
) -> list[Result]:
    """Run a batch of solver iterations to their ends.

    Parameters
    ----------
    iterations : sequence of generators
        One per problem.
    problems : sequence of Problem
        What each iteration's requests are about.
    threads : int, optional
        Threads that evaluate; all cores by default.  The results do not depend on it.
    target : Target, optional
        Where requests are answered, in place of `Cores`.

    Returns
    -------
    list
        The return value of each iteration, in order.
    """
    results = attempt(iterations, problems, target or Cores(threads))
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results  # type: ignore[return-value]


def attempt(
    iterations: Sequence[Iteration[Result]], problems: Sequence[Problem], target: Target
) -> list[Result | Exception]:
    """As `drive`, with the exception of an iteration that raised one in place of its result."""
    results: list[Any] = [None] * len(iterations)
    pending: list[tuple[int, Request]] = []

    def advance(i: int, evaluation: Evaluation | None) -> None:
        try:
            request = next(iterations[i]) if evaluation is None else iterations[i].send(evaluation)
        except StopIteration as stop:
            results[i] = stop.value
        except Exception as error:
            results[i] = error
        else:
            pending.append((i, request))

    # The solvers' own algebra is P by P: BLAS threads would only wait for each other.
    with threadpool_limits(1, "blas"):
        for group in target.groups(problems):
            with target.session([problems[i] for i in group]) as answer:
                for i in group:
                    advance(i, None)
                while pending:
                    batch, pending = pending, []
                    answers = answer([(problems[i], request) for i, request in batch])
                    for (i, _), evaluation in zip(batch, answers, strict=True):
                        advance(i, evaluation)
    return results
