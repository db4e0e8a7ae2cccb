"""Fits in one batch: the iterations of all of them run together."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from moestat.base.threads import ONE_THREAD
from moestat.base.types import FloatArray, Seed
from moestat.base.validate import as_generator, check_kind, positive_int, short
from moestat.estimation.data.data import Data
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.run import RunningFit
from moestat.estimation.progress import answering
from moestat.estimation.search.runs import searching_on
from moestat.estimation.starts import GivenStarts
from moestat.model.compression import compress as compressed
from moestat.model.family import Family
from moestat.solvers import Solution
from moestat.solvers.driver import Cores, attempt, succeeded, until
from moestat.solvers.problem import Iteration, Target
from moestat.solvers.rules import GAIN_LIMIT

__all__ = [
    "Data",
    "FitJob",
    "finish",
    "fit_data",
    "fit_data_sets",
    "fit_from",
    "fit_jobs",
    "naming",
    "threads_of",
]


def threads_of(target: Target) -> int | None:
    """Number of threads of the processor's cores; None, for all, of another target."""
    return target.threads if isinstance(target, Cores) else None


def fit_data(
    family: Family,
    data: Data,
    *,
    target: Target | None = None,
    threads: int | None = None,
    compress: str | None = None,
    **options: Any,
) -> Fitted:
    """One fit to data that have been read, within its time limit.

    The options are arguments of `moestat.fit`, and `by_weight`.
    """
    job = FitJob.of(family, data, **options)
    if compress is not None and str(compress) != "auto":
        raise ValueError(f'compress must be "auto" or None, got {short(compress)}')
    target = _chosen_target(target, threads, job.prior)
    limit = np.inf if job.search.time_limit is None else job.search.time_limit
    with until(time.monotonic() + limit):
        return _fit_alone(job, target) if compress is None else _fit_compressed(job, target)


def fit_data_sets(
    problems: Sequence[tuple[Family, Data]],
    rng: Seed,
    *,
    target: Target | None = None,
    threads: int | None = None,
    **options: Any,
) -> list[Fitted]:
    """Fits to several data sets in one batch; each draws from its own child of `rng`."""
    children = as_generator(rng).spawn(len(problems))
    jobs = [
        FitJob.of(family, data, rng=child, **options)
        for (family, data), child in zip(problems, children, strict=True)
    ]
    return _fit_together(jobs, _chosen_target(target, threads, options.get("prior")))


def _chosen_target(target: Target | None, threads: int | None, prior: object) -> Target:
    """The target of a call; the processor's cores by default."""
    if target is None:
        return Cores(None if threads is None else positive_int("threads", threads))
    check_kind("target", target, "session", "a target such as moestat.solvers.problem.Cores()")
    if prior is not None:
        raise ValueError("prior: fits with a prior run on the processor; leave out target=")
    return target


def _fit_together(jobs: Sequence[FitJob], target: Target) -> list[Fitted]:
    """Fits in one batch, in standardised coordinates and over boxes about the data."""
    began = time.perf_counter()
    running: list[RunningFit] = []
    # On rows of a few inputs BLAS's threads only wait for each other, at full speed.
    with ONE_THREAD, searching_on(threads_of(target)):
        for position, job in enumerate(jobs):
            with naming(position, len(jobs)):
                running.append(RunningFit.in_data_box(job, target))
                running[-1].start()
        return succeeded(finish(running, target, began))


def _fit_alone(job: FitJob, target: Target) -> Fitted:
    (child,) = as_generator(job.rng).spawn(1)
    (fitted,) = _fit_together([replace(job, rng=child)], target)
    return fitted


def _fit_compressed(job: FitJob, target: Target) -> Fitted:
    """The fit to compressed data, or to all rows where it is not certain to be as good."""
    family, data = job.family, job.data
    if family.likelihood.parts or np.ndim(data.y) == 2:
        raise ValueError("compress: only for one response in a single column; leave it out")
    if data.groups is not None:
        raise ValueError("compress: not available with groups; leave it out")
    points = compressed(data.X, data.y, data.weight)
    few = Data.of(family, points.X, points.y, points.weight)
    # A generator would have moved on if the data are fitted as they are after all.
    rng = as_generator(job.rng)
    few = replace(few, resolution=data.resolution)
    fitted = _fit_alone(replace(job, data=few, rng=rng.spawn(1)[0]), target)
    if not points.lossless:
        gain = fitted.certificate.gain + 2.0 * points.error_bound(family, fitted.theta)
        if not gain <= GAIN_LIMIT:
            return _fit_alone(replace(job, rng=rng), target)
        certificate = replace(fitted.certificate, gain=gain)
        fitted = replace(fitted, solution=replace(fitted.solution, certificate=certificate))
    assert fitted.data is not None
    all_rows = replace(data, resolution=fitted.data.resolution)
    return replace(fitted, data=all_rows, weight=data.weight)


@contextmanager
def naming(position: int, count: int) -> Generator[None]:
    """Say of an error in which of several data sets it lies."""
    try:
        yield
    except ValueError as error:
        if count == 1:
            raise
        raise ValueError(f"data set {position}: {error}") from None


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
            with searching_on(threads_of(execution)):
                fit.start()
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
    (fitted,) = _fit_together([job], Cores())
    return fitted
