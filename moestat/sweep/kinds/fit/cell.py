"""The cell of a sweep of fits: sample, fit and score."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.data.data import Data
from moestat.estimation.fit.batches import fit_jobs
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.fit.job import FitJob
from moestat.estimation.starts import StartRule
from moestat.metrics.distances import DISTANCES, distances, regression_error
from moestat.metrics.expert_errors import expert_errors
from moestat.metrics.losses import (
    LossTo,
    VoronoiResult,
    cell_errors,
    make_loss,
)
from moestat.model.family import Family
from moestat.model.generate import sample_weighted
from moestat.model.measure import MixingMeasure
from moestat.model.numbering import stored_name
from moestat.solvers import Solver, make_solver
from moestat.solvers.driver import Cores
from moestat.solvers.problem import Target
from moestat.solvers.squares import rounding_level
from moestat.sweep.kinds.fit.spec import REGRESSION_ERROR, Spec, Truth, as_fits, loss_label
from moestat.sweep.spec.plan import Cell
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import Record, attempt, plain, settle

_CACHED_ROWS = 1_000_000  # larger samples are drawn again rather than kept in memory
_AT_ONCE = 1 << 18  # rows that the estimate is compared with the truth on, some megabytes each


@dataclass(frozen=True)
class _Shared:
    """What all cells of a curve share: made once, since in a tiny cell it takes a tenth of it."""

    family: Family  # the fitted one
    solver: Solver
    rules: Sequence[StartRule]
    target: MixingMeasure
    loss: LossTo
    also: Mapping[str, LossTo | None]  # further losses by label, None for `REGRESSION_ERROR`


@lru_cache(maxsize=64)
def _shared(text: str, curve_name: str) -> _Shared:
    spec = as_fits(parse_spec(text))
    curve = spec.curve(curve_name)
    target = spec.target(curve)
    return _Shared(
        spec.fitted_family(curve),
        make_solver(dict(curve.solver)),
        spec.start_rules(curve),
        target,
        LossTo(make_loss(curve.loss), target),
        {
            loss_label(loss): None if loss == REGRESSION_ERROR else LossTo(make_loss(loss), target)
            for loss in curve.also
        },
    )


def run_fit(spec: Spec, cell: Cell) -> Record:
    """The record of a cell that is a fit."""
    return run_cells_on(Cores(1), spec, [cell])[0]


def run_cells_on(target: Target, spec: Spec, cells: Sequence[Cell]) -> list[Record]:
    """Sample, fit and score cells whose fits run as one batch on a target.

    The time of a cell is its share of the batch's.
    """
    return _run(target, spec, cells, ())


def estimate_with(target: Target, spec: Spec, cell: Cell, more: Sequence[StartRule]) -> Record:
    """The record of a cell whose fit has more starts than the spec says, drawn after its own."""
    return _run(target, spec, [cell], more)[0]


def _run(
    target: Target, spec: Spec, cells: Sequence[Cell], more: Sequence[StartRule]
) -> list[Record]:
    began = time.perf_counter()
    jobs = [attempt(cell, lambda cell=cell: _job(spec, cell, more)) for cell in cells]
    results = iter(fit_jobs([job for job in jobs if isinstance(job, FitJob)], target))
    fits = [next(results) if isinstance(job, FitJob) else job for job in jobs]
    values = [
        attempt(cell, lambda cell=cell, job=job, fitted=fitted: _score(spec, cell, job, fitted))
        for cell, job, fitted in zip(cells, jobs, fits, strict=True)
    ]
    seconds = (time.perf_counter() - began) / max(len(cells), 1)
    return [settle(cell, value, seconds) for cell, value in zip(cells, values, strict=True)]


def data_of(spec: Spec, cell: Cell) -> tuple[FloatArray, np.ndarray, FloatArray]:
    """Inputs (m, d), responses (m,) and weights (m,) that a cell is fitted to.

    A weight says how often a row occurs: 1, or the counts of a lattice.
    """
    draw = _cached_sample if spec.design.counted or cell.n <= _CACHED_ROWS else _sample
    return draw(spec.text, spec.curve(cell.curve).truth, int(cell.n), cell.data_seed)


def _job(spec: Spec, cell: Cell, more: Sequence[StartRule] = ()) -> FitJob:
    """The fit of a cell: its data, solver, starts and generator."""
    of_curve = _shared(spec.text, cell.curve)
    return FitJob(
        of_curve.family,
        Data.of(of_curve.family, *data_of(spec, cell)),
        solver=of_curve.solver,
        starts=[*of_curve.rules, *more],
        rng=np.random.default_rng(cell.fit_seed).spawn(1)[0],
    )


def _score(
    spec: Spec, cell: Cell, job: FitJob | Exception, results: Fitted | Exception
) -> dict[str, object]:
    """The estimate of `cell` and its distances from the truth, as values of a record."""
    if isinstance(results, Exception):
        raise results
    assert isinstance(job, FitJob)
    curve, of_curve = spec.curve(cell.curve), _shared(spec.text, cell.curve)
    estimate, target = results.measure, of_curve.target
    terms = of_curve.loss.terms(estimate)
    if not math.isfinite(terms.value):
        raise ArithmeticError(f"the loss is {terms.value}")
    truth = spec.truths[curve.truth]
    certificate = results.certificate.as_dict()
    certificate["above_truth"] = above_truth(results, truth, job.data)
    apart = _distances(spec, truth, results)
    return {
        "loss": float(terms.value),
        "log_likelihood": float(results.llf),
        "certified": bool(certificate["certified"]),
        "params": [float(value) for value in results.theta],
        "losses": {
            "cell_sizes": plain(terms.cell_sizes),
            "mass_errors": plain(terms.mass_errors),
            "block_errors": plain(terms.block_errors),
            "empty_cells": int(terms.empty_cells),
            "coverage": plain(terms.coverage),
            **apart,
            "also": {
                label: apart["regression_error"]
                if loss is None
                else plain(loss.terms(estimate).value)
                for label, loss in of_curve.also.items()
            },
            "cells": _cells(spec, spec.scored(curve), results, estimate, target, terms),
        },
        "certificate": plain(certificate) | {"active": [*map(stored_name, certificate["active"])]},
    }


def above_truth(results: Fitted, truth: Truth, data: Data) -> float:
    """Log-likelihood of an estimate above that of the truth, summed as a difference by rows.

    Rounding of the two sums would be in their difference: up to .04 with the 1e14 rows of a
    lattice, where by rows it is .007.  For sums of squares the noise variance is the best one of
    each; squares up to `rounding_level` are those of an exact fit, and equal.
    """
    pieces = [slice(at, at + _AT_ONCE) for at in range(0, len(data.y), _AT_ONCE)]
    if not truth.family.is_regression:
        return math.fsum(_density_gain(results, truth, data, piece) for piece in pieces)
    sums = [_square_gain(results, truth, data, piece) for piece in pieces]
    of_truth, gain = (math.fsum(column) for column in zip(*sums, strict=True))
    least, size = 2.0 * rounding_level(data.y, data.weight), float(data.weight.sum())
    of_estimate = of_truth + gain
    if min(of_truth, of_estimate) < least:
        of_truth, of_estimate = max(of_truth, least), max(of_estimate, least)
        gain = of_estimate - of_truth
    return -0.5 * size * math.log1p(gain / of_truth) if gain else 0.0


def _density_gain(results: Fitted, truth: Truth, data: Data, rows: slice) -> float:
    """The log-likelihood of some rows above that of the truth."""
    X, y = data.X[rows], data.y[rows]
    gain = results.family.log_density(results.theta, X, y)
    gain -= truth.family.log_density(truth.theta, X, y)
    return float(np.sum(data.weight[rows] * gain))


def _square_gain(results: Fitted, truth: Truth, data: Data, rows: slice) -> tuple[float, float]:
    """The sum of squares of the truth over some rows, and how much more that of an estimate is."""
    inputs, y, weight = np.ascontiguousarray(data.X[rows].T), data.y[rows], data.weight[rows]
    fitted, true = (each.family.regression(each.theta, inputs)[0] - y for each in (results, truth))
    gain = (fitted - true) * (fitted + true)
    return float(np.sum(weight * true**2)), float(np.sum(weight * gain))


def _sample(text: str, truth: str, n: int, seed: int) -> tuple[FloatArray, np.ndarray, FloatArray]:
    spec = as_fits(parse_spec(text), "data")
    law = spec.truths[truth]
    rng = np.random.default_rng(seed)
    return sample_weighted(law.family, law.theta, n, rng, spec.design, law.noise)


# Curves on one truth see the same data and follow each other in the plan.
_cached_sample = lru_cache(maxsize=3)(_sample)


def _distances(spec: Spec, truth: Truth, results: Fitted) -> dict[str, object]:
    """Distances of densities or regression functions, with their numerical errors."""
    pair = (results.family, results.theta, truth.family, truth.theta)
    distance_of = (
        {"regression_error": regression_error(*pair, spec.design)}
        if results.family.is_regression
        else distances(DISTANCES if spec.distances is None else spec.distances, *pair, spec.design)
    )
    values: dict[str, object] = {}
    for name, distance in distance_of.items():
        values[name], values[f"{name}_error"] = plain(distance.value), plain(distance.error)
    return values


def _cells(
    spec: Spec,
    truth: Truth,
    results: Fitted,
    estimate: MixingMeasure,
    target: MixingMeasure,
    terms: VoronoiResult,
) -> list[dict[str, object]]:
    """One entry per true atom: the size of its cell and its errors, None where there are none."""
    experts = expert_errors(
        results.family, results.theta, truth.family, truth.theta, terms.assignment, spec.design
    )
    return [
        {
            "size": int(cell.size),
            "mass_error": plain(cell.mass_error),
            "errors": plain(cell.errors),
            "expert_error": plain(expert),
        }
        for cell, expert in zip(cell_errors(estimate, target, terms), experts.tolist(), strict=True)
    ]
