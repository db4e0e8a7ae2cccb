"""Cross-validation: folds of the rows, and the log-density of held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import draw_seed, positive_int
from moestat.base.warnings import DataWarning, warn_caller
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import Grouping, encoded_rows
from moestat.estimation.data.read import read_data
from moestat.estimation.fit.batches import fit_data
from moestat.estimation.inference.inner_fit import inner_fit
from moestat.estimation.progress import LOG
from moestat.estimation.results.results import MoEResults
from moestat.estimation.rows.block_rows import BlockRows, Draw, Reader
from moestat.estimation.rows.blocks import Block
from moestat.estimation.rows.passes import Passes
from moestat.model.family import Family
from moestat.solvers import Newton
from moestat.solvers.driver import attempt, succeeded
from moestat.solvers.problem import Problem

__all__ = [
    "fold_labels",
    "held_out",
    "held_out_on_source",
    "labels_of",
    "log_density_of",
    "rows_of",
]


def labels_of(result: MoEResults, parts: int, rng: np.random.Generator) -> IntArray | int:
    """What assigns rows to folds: for rows in memory the fold of each row, for a source a seed.

    The folds of a source are drawn from the seed again at each pass over its blocks.
    """
    if not result.reads_source:
        return fold_labels(result.rows, parts, rng)
    positive_int("folds", parts, 2)
    return draw_seed(rng)


def fold_labels(rows: Data, parts: int, rng: np.random.Generator) -> IntArray:
    """The fold (n,) of each row; rows of a group are in one, and rows without weight in any."""
    owner = np.arange(len(rows.y)) if rows.groups is None else Grouping(rows.groups).index
    present = np.bincount(owner, rows.weight) > 0.0
    n = int(present.sum())
    positive_int("folds", parts, 2)
    if parts > n:
        raise ValueError(f"folds must be at most the number of rows {n}, got {parts}")
    labels = np.zeros(present.size, dtype=np.intp)
    labels[present] = rng.permutation(np.arange(n) % parts)
    return labels[owner]


def held_out(
    result: MoEResults,
    labels: IntArray,
    rng: np.random.Generator,
    solving: Mapping[str, Any],
    what: str,
) -> float:
    """Mean log-density of held-out rows, by fits to the other folds.

    The transforms of a formula, such as the knots of a spline, come from all rows.  A warning that
    several of these fits have is issued once, with their number; `what` names the model in it.
    """
    total = 0.0
    model, data = result.family, result.rows
    folds = np.unique(labels)
    with _warned_once(f"cross-validation of {what}", folds.size):
        for fold in folds:
            LOG.info("%d experts, fold %d of %d", model.n_experts, fold + 1, folds.size)
            fitted = fit_data(*rows_of(model, data, labels != fold), rng=rng, **solving)
            total += log_density_of(model, data, labels == fold, fitted.theta)
    return total / float(data.weight.sum())


@contextmanager
def _warned_once(where: str, count: int) -> Iterator[None]:
    """Issue each kind of warning of `count` fits once, with the number of fits that have it.

    Warnings about the data are left to the fit to all rows.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DataWarning)
        yield
    by_kind: dict[type[Warning], list[str]] = {}
    for one in caught:
        by_kind.setdefault(one.category, []).append(str(one.message))
    for kind, messages in by_kind.items():
        fits = min(len(messages), count)
        warn_caller(f"{where}: {fits} of {count} fits: {messages[0]}", kind)


def rows_of(model: Family, data: Data, which: np.ndarray) -> tuple[Family, Data]:
    """The model and the data of the rows (n,) that are marked, with the steps of all responses."""
    part = data.at(which)
    family, read = read_data(model, part.X, part.y, part.weight, {}, groups=part.groups)
    return family, replace(
        read,
        features=part.features,
        response=part.response,
        class_labels=part.class_labels,
        resolution=part.resolution,
    )


def log_density_of(model: Family, data: Data, which: np.ndarray, theta: FloatArray) -> float:
    """The log-density of the rows (n,) that are marked, at parameters (P,)."""
    rows = encoded_rows(model, data.at(which))
    return float(Problem(model, rows).rowwise(theta)[2] @ rows.weight)


def held_out_on_source(result: MoEResults, folds: int, seed: int) -> float:
    """Mean log-density of held-out rows, or groups of rows, by fits to the other folds.

    The fits start at the estimate from all rows and share their passes.
    """
    inner = inner_fit(result, mode=True, passes=True)
    rows = result.rows_elsewhere
    assert isinstance(inner.data, BlockRows)
    family = inner.family
    training = [Draw("training", (seed, fold), folds) for fold in range(folds)]
    problems = [inner.problem.replace_data(replace(inner.data, draw=draw)) for draw in training]
    start, solver = np.clip(inner.theta, family.lower, family.upper), Newton()
    climbs = [solver.steps(problem, start) for problem in problems]
    ends = succeeded(attempt(climbs, problems, Passes(rows.threads)))
    thetas = [inner.outward(end.theta) for end in ends]
    draws = [Draw("held-out", (seed, fold), folds) for fold in range(folds)]
    work = partial(_density_of_folds, result.family, rows.reader, draws, thetas)
    return float(rows.sum_blocks(work, "held-out rows")) / float(result.weight.sum())


def _density_of_folds(
    family: Family,
    reader: Reader,
    draws: Sequence[Draw],
    thetas: Sequence[FloatArray],
    number: int,
    block: Block,
) -> float:
    """The log-density of the held-out rows of each fold in a block."""
    rows, total = reader.sample(block), 0.0
    for draw, theta in zip(draws, thetas, strict=True):
        part = draw.of(number, rows)
        total += float(Problem(family, part).rowwise(theta)[2] @ part.weight)
    return total
