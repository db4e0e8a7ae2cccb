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
from typing import Any, Literal, TypeVar

import numpy as np

from moestat._types import FloatArray
from moestat.families import Family

__all__ = ["Evaluation", "Iteration", "Problem", "Request", "drive"]


@dataclass(frozen=True)
class Request:
    """What a solver wants to know.

    Parameters
    ----------
    objective : {"observed", "complete", "expectation"}
        The observed-data objective, the complete-data one for the current responsibilities, or
        the observed-data value with an update of the responsibilities (the E-step).
    theta : ndarray of shape (P,)
        Where.
    """

    objective: Literal["observed", "complete", "expectation"]
    theta: FloatArray


@dataclass(frozen=True)
class Evaluation:
    """A minus log-likelihood (total, not per sample) with gradient (P,) and Hessian (P, P).

    The E-step asks for the value alone; then both are empty.
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray


Result = TypeVar("Result")
Iteration = Generator[Request, Evaluation, Result]


@dataclass
class Problem:
    """One data set under one family, with the working memory of one solver run.

    Parameters
    ----------
    family : Family
        The model.
    X : ndarray of shape (d, n)
        Inputs, contiguous.
    y : ndarray of shape (n,)
        Encoded responses.
    weight : ndarray of shape (n,)
        Sample weights.
    """

    family: Family
    X: FloatArray
    y: Any
    weight: FloatArray
    passes: int = 0
    _tau: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def evaluate(self, request: Request) -> Evaluation:
        """Answer one request with one pass over the data."""
        self.passes += 1
        if request.objective == "expectation":
            _, self._tau, log_density = self.family.rowwise(request.theta, self.X, self.y)
            return Evaluation(-float(self.weight @ log_density), np.empty(0), np.empty((0, 0)))
        loops = self.family.loops
        loop = loops.complete if request.objective == "complete" else loops.observed
        n_params = self.family.n_params
        score, hessian = np.empty(n_params), np.empty((n_params, n_params))
        value = loop(
            request.theta,
            self.family.index,
            self.family.width,
            len(self.family.gate.channels),
            self.X,
            self.y,
            self.weight,
            self._tau,
            2,
            score,
            hessian,
        )
        return Evaluation(-value, -score, -hessian)


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
    workers = min(threads or os.cpu_count() or 1, max(len(pending), 1))
    if workers == 1:
        while pending:
            i, request = pending.pop()
            advance(i, problems[i].evaluate(request))
        return results
    with ThreadPoolExecutor(workers) as pool:
        while pending:
            batch, pending = pending, []
            answers = pool.map(lambda item: problems[item[0]].evaluate(item[1]), batch)
            for (i, _), answer in zip(batch, answers, strict=True):
                advance(i, answer)
    return results
