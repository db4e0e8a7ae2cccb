"""Fits to resampled data, warm-started and run in batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from moestat.base.types import FloatArray, Labels
from moestat.base.warnings import InterruptedWarning, warn_caller
from moestat.estimation.data.groups import draw_in_groups
from moestat.estimation.fit.identified import channel_metric, identified
from moestat.estimation.inference.covariance import AtInputs
from moestat.estimation.progress import Report
from moestat.estimation.rules import RESAMPLES
from moestat.model.family import Family
from moestat.model.generate import sample
from moestat.solvers import Newton, Solution
from moestat.solvers.driver import Cores, attempt
from moestat.solvers.problem import Problem, Rows, Target
from moestat.solvers.rules import TINY

__all__ = ["Refits", "parametric_samples", "refit", "reweighted_samples"]


@dataclass(frozen=True)
class Refits:
    """Fits to B resamples."""

    params: FloatArray  # (B, P): estimates; rows of fits that failed or are not certified are NaN
    # (B, q): whether the resample determines each of the functions that were asked for
    determined: np.ndarray
    n_failed: int  # fits that raised an exception
    n_uncertified: int  # fits that ended without a certificate


def refit(
    model: Problem,
    samples: Iterator[Rows],
    start: FloatArray,
    threads: int | None = None,
    report: Report | None = None,
    derivatives: FloatArray | None = None,
    target: Target | None = None,
) -> Refits:
    """Fit the model of a problem, with its penalty, to each sample from one start (P,).

    The result says which resamples determine functions with derivatives `asked` (q, P).  A `target`
    of passes over blocks reads the rows once for a batch of resamples.

    After an interrupt, the function warns and returns the fits so far; it raises if there are fewer
    than two.
    """
    family = model.family
    params: list[FloatArray] = []
    determined: list[np.ndarray] = []
    rows = np.empty((0, family.n_params)) if derivatives is None else derivatives
    failed = uncertified = 0
    solver, start = Newton(), np.clip(start, family.lower, family.upper)
    batches = _batches(samples)
    if target is not None:
        size = max(1, RESAMPLES.hessians // (8 * family.n_params**2))
        batches = iter(lambda: list(islice(samples, size)), [])
    target = target or Cores(threads)
    try:
        for batch in batches:
            problems = [model.replace_data(one) for one in batch]
            ends = attempt([solver.steps(p, start) for p in problems], problems, target)
            for problem, end in zip(problems, ends, strict=True):
                params.append(np.full(family.n_params, np.nan))
                determined.append(np.zeros(len(rows), dtype=bool))
                if not isinstance(end, Solution):
                    failed += 1
                elif not end.certificate.certified:
                    uncertified += 1
                else:
                    params[-1], determined[-1] = end.theta, _determines(problem, end, rows)
            if report is not None:
                report.count(len(params))
    except KeyboardInterrupt:
        if len(params) < 2:
            raise
        warn_caller(f"interrupted: {len(params)} resamples were fitted", InterruptedWarning)
    return Refits(np.array(params), np.array(determined), failed, uncertified)


def _determines(problem: Problem, end: Solution, rows: FloatArray) -> np.ndarray:
    """Which functions with derivatives (q, P) a resample determines.

    A resample without a level of a factor does not determine its coefficient.
    """
    metric = channel_metric(problem, end.theta)
    known = identified(problem.family, end, float(problem.data.weight.sum()), metric)
    return ~known.untold(rows)


def _batches(samples: Iterator[Rows]) -> Iterator[list[Rows]]:
    batch: list[Rows] = []
    for one in samples:
        batch.append(one)
        if len(batch) == RESAMPLES.batch or len(batch) * one.size >= RESAMPLES.rows:
            yield batch
            batch = []
    if batch:
        yield batch


def reweighted_samples(
    data: Rows, kind: str, count: int, rng: np.random.Generator, groups: Labels | None = None
) -> Iterator[Rows]:
    """The same rows with random weights: no row is copied.

    "pairs" draws rows with replacement (Efron 1979), "cluster" whole groups, "bayesian" weights
    from the flat Dirichlet distribution (Rubin 1981).  Rows that share one choice of an expert
    always stay together; `groups` then has one label for each such group of rows.
    """
    units = data.units
    share = units / units.sum()
    n = round(float(units.sum()))
    _, index = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(index.max()) + 1
    for _ in range(count):
        if kind == "pairs":
            weight = rng.multinomial(n, share).astype(np.float64)
        elif kind == "cluster":
            times = np.bincount(rng.integers(0, n_groups, n_groups), minlength=n_groups)
            weight = units * times[index]
        else:
            weight = rng.gamma(np.maximum(units, TINY))
            weight *= n / weight.sum()
        yield data.reweighted(weight)


def parametric_samples(
    family: Family, data: Rows, theta: FloatArray, count: int, rng: np.random.Generator
) -> Iterator[Rows]:
    """New responses from the fitted density at the inputs of the data.

    A row of weight w stands for w rows: where weights are not 1 it is drawn so many times.
    """
    with_trials, y = family.likelihood.with_trials, data.y
    if data.begin is not None:
        if np.any(data.weight != 1.0):
            raise ValueError("kind 'parametric': rows of groups must have weight 1")
        conditional = family if with_trials is None else replace(family, likelihood=with_trials(y))
        for _ in range(count):
            yield replace(data, y=draw_in_groups(conditional, theta, data, rng))
        return
    X = data.X
    if np.any(data.weight != 1.0):
        times = np.round(data.weight).astype(np.int64)
        X, y = np.repeat(data.X, times, axis=1), np.repeat(y, times)
    weight = np.ones(X.shape[1])
    inputs = AtInputs(Rows(np.ascontiguousarray(X), np.empty(0), weight))
    for _ in range(count):
        conditional = family if with_trials is None else replace(family, likelihood=with_trials(y))
        _, response = sample(conditional, theta, weight.size, rng, inputs)
        yield Rows(inputs.data.X, family.likelihood.encode(response, family.n_classes), weight)
