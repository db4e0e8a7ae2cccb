"""One loop for all solvers: a batch of iterations, advanced together.

A solver is a generator.  It yields a `Request` (evaluate this objective at these parameters) and
is sent the `Evaluation`; when it returns, its problem is solved.  It reads like a textbook
algorithm for one problem, while the loop evaluates the requests of a whole batch of problems in
one go: over threads here, in one launch on another target.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from moestat._types import FloatArray
from moestat.compression import gauss_compress
from moestat.families import Family
from moestat.solvers._squares import squares
from moestat.solvers._trust_region import region_metric

__all__ = ["Evaluation", "Iteration", "Objective", "Problem", "Request", "Sample", "drive"]

_PANELS, _NODES = (32, 256, 2048), 4
_STRIDES, _PREVIEWED = (16, 4), 2000
_ROWS_WORTH_A_THREAD = 20_000

Objective = Literal["observed", "complete", "expectation", "value", "squares", "residuals"]


@dataclass(frozen=True)
class Request:
    """What a solver wants to know.

    Parameters
    ----------
    objective : {"observed", "complete", "expectation", "value", "squares", "residuals"}
        The observed-data objective, the complete-data one for the current responsibilities, the
        observed-data value with an update of the responsibilities (the E-step), or that value
        by itself.
        For regression functions "squares" is half the sum of squared residuals with its
        Gauss-Newton model, and "residuals" its value by itself.
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

    The E-step and "value" ask for the value alone; then both are empty.
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray


Result = TypeVar("Result")
Iteration = Generator[Request, Evaluation, Result]


@dataclass(frozen=True)
class Sample:
    """Data as the loops read it: X (d, n) contiguous, encoded y (n,), weight (n,).

    A preview is a part of the data that only shows where to look.
    """

    X: FloatArray
    y: Any
    weight: FloatArray
    preview: bool = False

    @property
    def size(self) -> int:
        """Number of rows n."""
        return self.X.shape[1]

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

    def evaluate(self, request: Request) -> Evaluation:
        """Answer one request with one pass over the data."""
        data = self.data.levels[request.level]
        self.passes += data.size / self.data.size
        if request.objective == "expectation":
            _, self._tau, log_density = self.family.rowwise(request.theta, data.X, data.y)
            return Evaluation(-float(data.weight @ log_density), np.empty(0), np.empty((0, 0)))
        if request.objective in ("squares", "residuals"):
            order = 1 if request.objective == "squares" else 0
            return Evaluation(
                *squares(self.family, data.X, data.y, data.weight, request.theta, order)
            )
        loops = self.family.loops
        loop = loops.complete if request.objective == "complete" else loops.observed
        order, n_params = (0, 0) if request.objective == "value" else (2, self.family.n_params)
        score, hessian = np.empty(n_params), np.empty((n_params, n_params))
        value = loop(
            request.theta,
            self.family.index,
            self.family.width,
            self.family.layout,
            data.X,
            data.y,
            data.weight,
            self._tau,
            order,
            score,
            hessian,
        )
        np.negative(score, out=score)
        np.negative(hessian, out=hessian)
        return Evaluation(-value, score, hessian)


def drive(
    iterations: Sequence[Iteration[Result]], problems: Sequence[Problem], threads: int | None = None
) -> list[Result]:
    """Run a batch of solver iterations to their ends.

    Parameters
    ----------
    iterations : sequence of generators
        One per problem.
    problems : sequence of Problem
        Who answers each iteration's requests.
    threads : int, optional
        Threads that evaluate; all cores by default.  The results do not depend on it.

    Returns
    -------
    list
        The return value of each iteration, in order.
    """
    results: list[Any] = [None] * len(iterations)
    pending: list[tuple[int, Request]] = []

    def advance(i: int, evaluation: Evaluation | None) -> None:
        try:
            request = next(iterations[i]) if evaluation is None else iterations[i].send(evaluation)
        except StopIteration as stop:
            results[i] = stop.value
        else:
            pending.append((i, request))

    for i in range(len(iterations)):
        advance(i, None)
    workers = min(threads or os.cpu_count() or 1, max(len(iterations), 1))
    # The solvers' own algebra is P by P: BLAS threads would only wait for each other.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(workers) as pool:
        while pending:
            batch, pending = pending, []
            rows = sum(problems[i].data.levels[request.level].size for i, request in batch)
            # Handing a small pass to a thread costs more than the pass.
            spread = pool.map if workers > 1 and rows > _ROWS_WORTH_A_THREAD else map
            answers = spread(lambda item: problems[item[0]].evaluate(item[1]), batch)
            for (i, _), answer in zip(batch, answers, strict=True):
                advance(i, answer)
    return results
