"""From a store to rates: what each curve has, what enters its rate, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.rates.rate import RateResult, fit_rate
from moestat.sweep.evidence import Evidence, gather
from moestat.sweep.record import DONE, FAILED, Record
from moestat.sweep.replication import Replication, entering, replication
from moestat.sweep.spec import Curve, loss_label
from moestat.sweep.store import Store
from moestat.sweep.verdicts import Verdict, judge

__all__ = ["CELL_KINDS", "CurveSummary", "Exponent", "average_rates", "summarise"]

CELL_KINDS = ("exact", "over")
"""Voronoi cells by their size: one fitted atom (exact-specified), several (over-specified)."""


@dataclass(frozen=True)
class Exponent:
    """The rate of one quantity of the fits, or the reason why there is none.

    Parameters
    ----------
    rate : RateResult or None
        The fitted rate.
    note : str
        Why there is none; empty otherwise.
    """

    rate: RateResult | None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"rate": None if self.rate is None else self.rate.as_dict(), "note": self.note}


@dataclass(frozen=True)
class CurveSummary:
    """Everything a sweep knows about one curve.

    Parameters
    ----------
    curve : Curve
        The curve of the spec.
    replication : Replication
        How many replicates there are per sample size, and why.
    planned, done, failed : int
        Cells of these replicates, cells with an estimate, cells that failed.
    certified, on_bound, with_empty_cells : int
        Estimates that are certified maxima; that lie on a bound of the parameter space; that
        leave some true atom without a fitted one.
    n : ndarray of shape (N,)
        Sample sizes of the estimates that enter the rate.
    loss : ndarray of shape (N,)
        Their losses.
    uncertified : tuple of two ndarrays of shape (M,)
        Sizes and losses of the estimates without a certificate, whether they enter or not.
    rate : RateResult or None
        Rate of the loss; None when it cannot be fitted.
    averages : mapping of str to RateResult
        Rates of the ``mean`` and the ``median`` loss at each sample size; empty without a rate.
    hellinger : RateResult or None
        Rate of the Hellinger distance of the same estimates.
    errors : ndarray of shape (N,)
        Their regression errors, the L2(mu) distances of the fitted functions to the true one;
        shape (0,) for densities.
    regression_error : RateResult or None
        Rate of the regression error of the same estimates.
    coverage : RateResult or None
        Rate of the distance from the true atoms to the nearest fitted ones, added up.
    blocks : mapping of str to RateResult
        Rate of each part of the loss: the masses, and each block of the atoms.
    note : str
        Why there is no rate.
    also : mapping of str to Exponent
        Rate of each further loss of the same estimates, by its label.
    cell_errors : mapping of str to mapping of str to Exponent
        For each of `CELL_KINDS` the rates of the errors within Voronoi cells of that kind:
        ``mass``, each block (the largest unweighted error) and ``expert`` (sup norm).  One value
        per replicate, the mean over its cells of that kind; replicates without such a cell do
        not count.  A kind that no replicate has is left out.
    evidence : Evidence
        What the certificates say, over all estimates.
    verdict : Verdict
        What the rate says about prediction and straightness, all curves of the sweep considered.
    """

    curve: Curve
    replication: Replication
    planned: int
    done: int
    failed: int
    certified: int
    on_bound: int
    with_empty_cells: int
    n: IntArray = field(repr=False)
    loss: FloatArray = field(repr=False)
    uncertified: tuple[IntArray, FloatArray] = field(repr=False)
    rate: RateResult | None
    averages: dict[str, RateResult]
    hellinger: RateResult | None
    errors: FloatArray = field(repr=False)
    regression_error: RateResult | None
    coverage: RateResult | None
    blocks: dict[str, RateResult]
    note: str
    also: dict[str, Exponent]
    cell_errors: dict[str, dict[str, Exponent]]
    evidence: Evidence = field(repr=False)
    verdict: Verdict

    @property
    def left_out(self) -> int:
        """Estimates that do not enter the rate because they are not certified."""
        return self.done - self.n.size

    @property
    def drawable(self) -> int:
        """Records that a figure has a use for."""
        return self.n.size

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "curve": self.curve.name,
            "panel": self.curve.panel,
            "loss": loss_label(self.curve.loss),
            "published": self.curve.published,
            "theory": self.curve.theory,
            "require_certificate": self.curve.require_certificate,
            "replication": self.replication.as_dict(),
            "cells": self.planned,
            "done": self.done,
            "failed": self.failed,
            "certified": self.certified,
            "on_bound": self.on_bound,
            "with_empty_cells": self.with_empty_cells,
            "left_out": self.left_out,
            "rate": None if self.rate is None else self.rate.as_dict(),
            "averages": {name: rate.as_dict() for name, rate in self.averages.items()},
            "hellinger": None if self.hellinger is None else self.hellinger.as_dict(),
            "regression_error": (
                None if self.regression_error is None else self.regression_error.as_dict()
            ),
            "coverage": None if self.coverage is None else self.coverage.as_dict(),
            "blocks": {name: rate.as_dict() for name, rate in self.blocks.items()},
            "note": self.note,
            "also": {label: exponent.as_dict() for label, exponent in self.also.items()},
            "cell_errors": {
                kind: {name: exponent.as_dict() for name, exponent in exponents.items()}
                for kind, exponents in self.cell_errors.items()
            },
            "evidence": self.evidence.as_dict(),
            "verdict": self.verdict.as_dict(),
        }


def summarise(store: Store) -> list[CurveSummary]:
    """One summary per curve of the store's spec, in its order.

    Parameters
    ----------
    store : Store
        An open store; its sweep need not be complete.

    Returns
    -------
    list of CurveSummary
        Counts and rates.
    """
    spec = store.spec
    by_curve: dict[str, list[Record]] = {curve.name: [] for curve in spec.curves}
    for record in store.records():
        by_curve[record.curve].append(record)
    counts = replication(spec, chain.from_iterable(by_curve.values()))
    summaries = [
        _summary(curve, counts[curve.name], len(spec.sizes_of(curve)), by_curve[curve.name])
        for curve in spec.curves
    ]
    verdicts = judge([summary.rate for summary in summaries])
    return [
        replace(summary, verdict=verdict)
        for summary, verdict in zip(summaries, verdicts, strict=True)
    ]


def _summary(
    curve: Curve, count: Replication, n_sizes: int, records: Sequence[Record]
) -> CurveSummary:
    done = [record for record in records if record.status == DONE]
    used = entering(curve, records)
    loss = _rate(used, lambda record: record.loss, curve.theory)
    hellinger = _rate(used, lambda record: record.losses["hellinger"])
    regression_error = _rate(used, lambda record: record.losses["regression_error"])
    coverage = _rate(used, lambda record: record.losses["coverage"], n_bootstrap=0)
    doubtful = [record for record in done if not record.certified]
    errors = [e for record in used if (e := record.losses.get("regression_error")) is not None]
    parts: dict[str, Callable[[Record], float]] = {
        "mass": lambda record: sum(record.losses["mass_errors"])
    }
    for block in used[0].losses.get("block_errors", {}) if used else ():
        parts[block] = lambda record, name=block: sum(record.losses["block_errors"][name])
    parts_rates = {name: _rate(used, part, n_bootstrap=0).rate for name, part in parts.items()}
    also = {
        label: _rate(used, lambda record, label=label: record.losses["also"][label])
        for label in map(loss_label, curve.also)
    }
    cells = {kind: _cell_rates(used, kind) for kind in CELL_KINDS}
    used_n = np.array([record.n for record in used], dtype=np.int64)
    used_loss = np.array([record.loss for record in used], dtype=np.float64)
    return CurveSummary(
        curve=curve,
        replication=count,
        planned=n_sizes * count.replicates,
        done=len(done),
        failed=sum(record.status == FAILED for record in records),
        certified=sum(record.certified for record in done),
        on_bound=sum(record.on_bound for record in done),
        with_empty_cells=sum(record.empty_cells > 0 for record in done),
        n=used_n,
        loss=used_loss,
        uncertified=(
            np.array([record.n for record in doubtful], dtype=np.int64),
            np.array([record.loss for record in doubtful], dtype=np.float64),
        ),
        rate=loss.rate,
        averages={} if loss.rate is None else average_rates(used_n, used_loss),
        hellinger=hellinger.rate,
        errors=np.array(errors, dtype=np.float64),
        regression_error=regression_error.rate,
        coverage=coverage.rate,
        blocks={name: rate for name, rate in parts_rates.items() if rate is not None},
        note=loss.note,
        also=also,
        cell_errors={kind: exponents for kind, exponents in cells.items() if exponents},
        evidence=gather(done),
        verdict=Verdict(),
    )


def average_rates(n: IntArray, loss: FloatArray) -> dict[str, RateResult]:
    """Rates of the mean and the median loss at each sample size.

    Papers fit a line to the logarithm of means; a median is not moved by a few fits that failed
    to converge, and the line through all logarithms is not that of either.

    Parameters
    ----------
    n : ndarray of shape (N,)
        Sample sizes, two different ones at least.
    loss : ndarray of shape (N,)
        Positive losses.

    Returns
    -------
    dict of str to RateResult
        For ``mean`` and ``median``.

    Examples
    --------
    >>> rates = average_rates(np.array([10, 10, 10, 100]), np.array([0.1, 0.2, 9.0, 0.02]))
    >>> round(rates["mean"].slope, 2), round(rates["median"].slope, 2)
    (-2.19, -1.0)
    """
    sizes = np.unique(n)
    return {
        name: fit_rate(sizes, [average(loss[n == size]) for size in sizes], n_bootstrap=0)
        for name, average in (("mean", np.mean), ("median", np.median))
    }


def _cell_rates(records: Sequence[Record], kind: str) -> dict[str, Exponent]:
    """Rate of each error within the Voronoi cells of one kind; empty if there is no such cell."""
    held = [(record, cells) for record in records if (cells := _cells_of(record, kind))]
    if not held:
        return {}
    means = {record.key: _means(cells) for record, cells in held}
    return {
        name: _rate(
            [record for record, _ in held],
            lambda record, name=name: means[record.key][name],
            n_bootstrap=0,
        )
        for name in means[held[0][0].key]
    }


def _cells_of(record: Record, kind: str) -> list[Mapping[str, Any]]:
    """The Voronoi cells of an estimate that are of one kind."""
    cells = record.losses.get("cells", ())
    return [cell for cell in cells if cell["size"] and (cell["size"] > 1) == (kind == "over")]


def _means(cells: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean over cells of each of their errors."""
    errors = [
        {"mass": cell["mass_error"], **cell["errors"], "expert": cell["expert_error"]}
        for cell in cells
    ]
    return {
        name: float(np.mean([np.nan if each[name] is None else each[name] for each in errors]))
        for name in errors[0]
    }


def _rate(
    records: Sequence[Record],
    value: Callable[[Record], Any],
    theory: float | None = None,
    n_bootstrap: int = 1000,
) -> Exponent:
    """The rate of a value over the records."""
    sizes = [record.n for record in records]
    if len(set(sizes)) < 2:
        return Exponent(
            None, f"estimates at {len(set(sizes))} of the 2 or more sample sizes it takes"
        )
    try:
        values = [value(record) for record in records]
        return Exponent(fit_rate(sizes, values, theory=theory, n_bootstrap=n_bootstrap))
    except KeyError as error:
        return Exponent(None, f"{error.args[0]} was not recorded")
    except ValueError as error:
        return Exponent(None, str(error))
