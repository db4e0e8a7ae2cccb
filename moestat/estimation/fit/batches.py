"""Fits in one batch: the iterations of all of them run together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice

import numpy as np

from moestat.base.threads import ONE_THREAD
from moestat.base.types import FloatArray
from moestat.estimation.data.data import Data
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.run import RunningFit
from moestat.estimation.progress import answering
from moestat.estimation.starts import GivenStarts
from moestat.solvers import Solution
from moestat.solvers.driver import Cores, attempt, succeeded
from moestat.solvers.problem import Iteration, Target

__all__ = ["Data", "FitJob", "finish", "fit_from", "fit_jobs", "threads_of"]


def threads_of(target: Target) -> int | None:
    """Number of threads of the processor's cores; None, for all, of another target."""
    return target.threads if isinstance(target, Cores) else None


def fit_jobs(jobs: Sequence[FitJob], target: Target | None = None) -> list[Fitted | Exception]:
    """Fit data sets over the compact parameter spaces of their families, in one batch.

    Coordinates and box are those of the family, whatever the data: what theorems about compact
    parameter spaces speak of.  `fit_many` is for data in units of their own.

    Parameters
    ----------
    jobs : sequence of FitJob
        Data sets that share a family are evaluated together.
    target : Target, optional
        Where passes over the data run; all of the processor's cores by default.

    Returns
    -------
    list of Fitted or Exception
        One per job: a fit, or what went wrong with this one.  ``certificate.seconds`` of a fit is
        the batch's time per job.

    Examples
    --------
    >>> from moestat import family, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, -2], n=300, rng=0)
    >>> sets = Data.of(F, X, y), Data.of(F, X[y == 1], y[y == 1])
    >>> good, bad = fit_jobs([FitJob(F, data, rng=0) for data in sets])
    >>> round(good.llf), type(bad).__name__
    (-190, 'ValueError')
    """
    execution = target or Cores()
    began = time.perf_counter()
    running: list[RunningFit | Exception] = []
    for job in jobs:
        try:
            fit = RunningFit.in_own_box(job, execution)
            fit.start(threads_of(execution))
            running.append(fit)
        except Exception as error:
            running.append(error)
    return finish(running, execution, began)


def finish(
    fits: Sequence[RunningFit | Exception], target: Target, began: float
) -> list[Fitted | Exception]:
    """Run the iterations of all fits as one batch, and choose the best solution of each."""
    running = [fit for fit in fits if isinstance(fit, RunningFit)]
    iterations = [iteration for fit in running for iteration in fit.iterations]
    outcomes: list[Solution | Exception | None] = [None] * len(iterations)

    def recorded(place: int, iteration: Iteration[Solution]) -> Iteration[Solution]:
        solution = yield from iteration
        outcomes[place] = solution
        return solution

    try:
        outcomes = [
            *attempt(
                [recorded(place, iteration) for place, iteration in enumerate(iterations)],
                [problem for fit in running for problem in fit.problems],
                target,
            )
        ]
    except KeyboardInterrupt:
        if answering() is None or all(outcome is None for outcome in outcomes):
            raise
    next_outcomes = iter(outcomes)
    seconds = (time.perf_counter() - began) / max(len(fits), 1)
    results: list[Fitted | Exception] = []
    for fit in fits:
        if isinstance(fit, Exception):
            results.append(fit)
            continue
        outcomes_of_fit = list(islice(next_outcomes, len(fit.iterations)))
        failed = [isinstance(end, np.linalg.LinAlgError) for end in outcomes_of_fit]
        if any(failed) and not all(failed):
            outcomes_of_fit = fit.leave_out(failed, outcomes_of_fit)
        errors = [end for end in outcomes_of_fit if isinstance(end, Exception)]
        ends = [end for end in outcomes_of_fit if not isinstance(end, Exception)]
        results.append(
            errors[0] if errors else fit.finish(fit.solutions_in_time(ends, target), seconds)
        )
    return results


def fit_from(result: Fitted, theta: FloatArray) -> Fitted:
    """The fit to the rows of a result that begins at parameters (P,)."""
    starts = [GivenStarts([theta])]
    job = FitJob(result.family, result.rows, starts=starts, prior=result.prior)
    began, target = time.perf_counter(), Cores()
    with ONE_THREAD:
        running = RunningFit.in_data_box(job, target)
        running.start(1)
        (fitted,) = succeeded(finish([running], target, began))
    return fitted
