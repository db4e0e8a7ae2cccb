"""From a store to rates: what each curve has, what enters its rate, and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, is_dataclass, replace

import numpy as np
from numpy.typing import NDArray

from moestat.base.door import door
from moestat.base.types import FloatArray, IntArray
from moestat.model.numbering import from_1
from moestat.rates.bounds import EXPONENTS
from moestat.rates.rate import RateResult, Sizes, fit_rate, rate_at
from moestat.sweep.kinds.fit.evidence import NUMBERS, Evidence, gather, in_doubt
from moestat.sweep.kinds.fit.replication import Replication, entering_cells, first_pass, replication
from moestat.sweep.kinds.fit.spec import Curve, loss_label
from moestat.sweep.kinds.fit.verdicts import Verdict, judge
from moestat.sweep.store.columns import CERTIFICATE, LOSSES, Columns, literals, read_columns
from moestat.sweep.store.scan import Cells
from moestat.sweep.store.shapes import Shape
from moestat.sweep.store.store import Store

ABSORBED = "no error but rounding, as where a translation absorbs it"
"""Why an error within cells has no rate."""

CELL_KINDS = ("exact", "over")
"""Voronoi cells by their size: one fitted atom (exact-specified), several (over-specified)."""
SIZES = (1, 2, 3)
"""Numbers of fitted atoms in a Voronoi cell for which tables have a slope of their own."""
ROUNDING = 1e-12
"""An error of parameters up to here is that of arithmetic: a translation absorbs the rest."""

_RESAMPLES = 1000
_UNEVEN = 0.01
"""p-value below which cells leave a rate unevenly: of a report with twenty curves, one in five says
so by chance."""


_OMITTED = ("curve", "planned", "n", "loss", "uncertified", "errors")
"""Fields that `CurveSummary.as_dict` leaves out: the curve, and values of single fits."""


def _plain(value: object) -> object:
    """Rates and other records as dicts, also within dicts."""
    if isinstance(value, RateResult):
        return value.as_dict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return _plain(vars(value)) if is_dataclass(value) else value


@dataclass(frozen=True)
class Exponent:
    """The rate of one quantity of the fits, or the reason why there is none."""

    rate: RateResult | None  # the fitted rate
    note: str = ""  # why there is none; empty otherwise


@dataclass(frozen=True)
class CurveSummary:
    """The results of a sweep for one curve.

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
    uneven : str
        How unevenly over the sample sizes cells failed or were left out, in words; empty if they
        may be so by chance.
    also : mapping of str to Exponent
        Rate of each further loss of the same estimates, by its label.
    cell_errors : mapping of str to mapping of str to Exponent
        For each of `CELL_KINDS` the rates of the errors within Voronoi cells of that kind:
        ``mass``, each block (the largest unweighted error) and ``expert`` (sup norm).  One value
        per replicate, the mean over its cells of that kind; replicates without such a cell do
        not count.  A kind that no replicate has is left out.
    atoms : mapping of int to Exponent
        For each number of fitted atoms in `SIZES` the rate of the error of the atoms in cells of
        that many: the largest error of a block, in the mean over a replicate's cells of that size.
        A size that no replicate has is left out.
    sure : Exponent or None
        The rate without the estimates that may have missed their maximum; None where none may.
    first : RateResult or None
        The rate of the estimates before a second pass; None without one.
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
    uneven: str
    also: dict[str, Exponent]
    cell_errors: dict[str, dict[str, Exponent]]
    atoms: dict[int, Exponent]
    sure: Exponent | None
    first: RateResult | None
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

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        curve = self.curve
        facts: dict[str, object] = {
            "curve": curve.name,
            "panel": curve.panel,
            "loss": loss_label(curve.loss),
            "published": curve.published,
            "theory": curve.theory,
            "require_certificate": curve.require_certificate,
            "cells": self.planned,
            "left_out": self.left_out,
        }
        fields = {name: value for name, value in vars(self).items() if name not in _OMITTED}
        return {name: _plain(value) for name, value in (facts | fields).items()}


@door()
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
    counts = replication(spec, store)
    summaries = [
        _summary(store, curve, counts[curve.name], len(spec.sizes_of(curve)))
        for curve in spec.curves
    ]
    verdicts = judge([summary.rate for summary in summaries])
    return [
        replace(summary, verdict=verdict)
        for summary, verdict in zip(summaries, verdicts, strict=True)
    ]


def _summary(store: Store, curve: Curve, count: Replication, n_sizes: int) -> CurveSummary:
    cells = store.cells(curve.name)
    done, used = cells.where(cells.done), entering_cells(curve, cells)
    doubtful = done.where(~done.certified)
    sizes = Sizes.of(used.n)
    others = EXPONENTS if curve.alternatives is None else curve.alternatives
    loss = _rate(sizes, used.loss, curve.theory, others)
    also = {label: f"also {label}" for label in map(loss_label, curve.also)}
    columns = read_columns(store, done, _columns_of)
    evidence = _evidence(store, done, columns)
    with_empty_cells = int(np.sum(columns.take("empty_cells") > 0))
    values = columns.where(np.isin(done.rowid, used.rowid))
    del columns
    used_cells = np.isin(cells.rowid, used.rowid)
    sure = ~in_doubt({name: values.take(name) for name in NUMBERS})
    before = first_pass(store, cells)
    hellinger, regression_error, coverage, mass = (
        _exponent(sizes, values, name, n_bootstrap=resamples)
        for name, resamples in (
            ("hellinger", _RESAMPLES),
            ("regression_error", _RESAMPLES),
            ("coverage", 0),
            ("mass", 0),
        )
    )
    errors = values.take("regression_error")
    blocks = {name: name[6:] for name in values.names() if name.startswith("block ")}
    parts = {"mass": mass} | {
        block: _exponent(sizes, values, name, n_bootstrap=0) for name, block in blocks.items()
    }
    return CurveSummary(
        curve=curve,
        replication=count,
        planned=n_sizes * count.replicates,
        done=done.size,
        failed=cells.size - done.size,
        certified=int(done.certified.sum()),
        on_bound=int(done.on_bound.sum()),
        with_empty_cells=with_empty_cells,
        n=used.n.astype(np.int64),
        loss=used.loss,
        uncertified=(doubtful.n.astype(np.int64), doubtful.loss),
        rate=loss.rate,
        averages={} if loss.rate is None else average_rates(used.n, used.loss),
        hellinger=hellinger.rate,
        errors=errors[~np.isnan(errors)],
        regression_error=regression_error.rate,
        coverage=coverage.rate,
        blocks={name: part.rate for name, part in parts.items() if part.rate is not None},
        note=loss.note,
        uneven=uneven(cells.n, used_cells),
        also={
            label: _exponent(sizes, values, name, n_bootstrap=_RESAMPLES, label=label)
            for label, name in also.items()
        },
        cell_errors=_cell_rates(used, sizes, values),
        atoms=_atom_rates(used, sizes, values),
        sure=None if sure.all() else _rate(Sizes.of(used.n[sure]), used.loss[sure], n_bootstrap=0),
        first=None if before is cells else _plain_rate(entering_cells(curve, before)),
        evidence=evidence,
        verdict=Verdict(),
    )


def uneven(n: FloatArray | IntArray, entering: NDArray[np.bool_]) -> str:
    """How unevenly cells leave a rate over the sample sizes; empty if they may do so by chance.

    Pearson's test of equal shares at all sizes; where what decides whether a cell enters has to do
    with its loss, the slope is that of a selected sample, and its interval too short.

    Examples
    --------
    >>> n = np.repeat([100, 1000], 20)
    >>> uneven(n, np.arange(40) >= 15)
    '75% of the cells at n = 100 and 0% at n = 1,000 failed or were left out'
    >>> uneven(n, np.arange(40) % 20 >= 3)
    ''
    """
    sizes, group = np.unique(n, return_inverse=True)
    count, out = np.bincount(group), np.bincount(group, weights=~entering)
    total = float(out.sum() / max(n.size, 1))
    if sizes.size < 2 or total in (0.0, 1.0):
        return ""
    from scipy.special import chdtrc  # importing scipy.stats takes .7 s

    statistic = float(np.sum((out - total * count) ** 2 / (count * total * (1.0 - total))))
    if chdtrc(sizes.size - 1, statistic) >= _UNEVEN:
        return ""
    share = out / count
    most, least = int(np.argmax(share)), int(np.argmin(share))
    return (
        f"{share[most]:.0%} of the cells at n = {sizes[most]:,} and {share[least]:.0%} at"
        f" n = {sizes[least]:,} failed or were left out"
    )


def _columns_of(shape: Shape, numbers: NDArray[np.void]) -> dict[str, FloatArray]:
    """All columns of a summary for cells of one shape, so that each row is read once."""
    columns_by_name = certificate_columns(shape, numbers)
    columns_by_name["empty_cells"] = shape.column(numbers, LOSSES, "empty_cells")
    return columns_by_name | _values_of(shape, numbers) | _means_of(shape, numbers)


def certificate_columns(shape: Shape, numbers: NDArray[np.void]) -> dict[str, FloatArray]:
    """The numbers that evidence is made of, for cells of one shape."""
    return {name: shape.column(numbers, CERTIFICATE, *name.split(".")) for name in NUMBERS}


def _values_of(shape: Shape, numbers: NDArray[np.void]) -> dict[str, FloatArray]:
    """Distances, parts of the loss and further losses of cells of one shape."""

    def total(*path: str | int) -> FloatArray:
        parts = [shape.column(numbers, LOSSES, *path, i) for i in shape.entries(LOSSES, *path)]
        return np.sum(parts, axis=0) if parts else np.zeros(len(numbers))

    names = ("hellinger", "regression_error", "coverage")
    values = {
        name: shape.column(numbers, LOSSES, name) for name in names if shape.has(LOSSES, name)
    }
    if shape.has(LOSSES, "mass_errors"):
        values["mass"] = total("mass_errors")
    for block in shape.entries(LOSSES, "block_errors"):
        values[f"block {block}"] = total("block_errors", block)
    for label in shape.entries(LOSSES, "also"):
        values[f"also {label}"] = shape.column(numbers, LOSSES, "also", label)
    return values


def _evidence(store: Store, done: Cells, columns: Columns) -> Evidence:
    return gather(
        {name: columns.take(name) for name in NUMBERS},
        done.certified,
        literals(store, done, CERTIFICATE, "status"),
        {from_1(name): n for name, n in literals(store, done, CERTIFICATE, "active").items()},
    )


def average_rates(n: FloatArray | IntArray, loss: FloatArray) -> dict[str, RateResult]:
    """Rates of the mean and the median loss at each sample size.

    Papers fit a line to the logarithm of means; a median is not moved by a few fits that failed
    to converge, and the line through all logarithms is not that of either.

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


def _cell_rates(used: Cells, sizes: Sizes, columns: Columns) -> dict[str, dict[str, Exponent]]:
    """Rate of each error within the Voronoi cells of each kind; no kind that no estimate has."""
    rates: dict[str, dict[str, Exponent]] = {}
    for kind in CELL_KINDS:
        has_cells = columns.take(f"{kind} cells") > 0
        if not has_cells.any():
            continue
        at = sizes if has_cells.all() else Sizes.of(used.n[has_cells])
        rates[kind] = {
            name.removeprefix(f"{kind} error "): _cell_rate(at, columns.take(name)[has_cells])
            for name in columns.names()
            if name.startswith(f"{kind} error ")
        }
    return rates


def _atom_rates(used: Cells, sizes: Sizes, columns: Columns) -> dict[int, Exponent]:
    """Rate of the error of the atoms in cells of each size; no size that no estimate has."""
    rates: dict[int, Exponent] = {}
    for size in SIZES:
        errors = columns.take(f"atoms {size}")
        has_cells = ~np.isnan(errors)
        if has_cells.any():
            at = sizes if has_cells.all() else Sizes.of(used.n[has_cells])
            rates[size] = _cell_rate(at, errors[has_cells])
    return rates


def _cell_rate(sizes: Sizes, errors: FloatArray) -> Exponent:
    """The rate of an error; none where all of it is rounding."""
    if errors.size and np.all(np.abs(errors) <= ROUNDING):
        return Exponent(None, ABSORBED)
    return _rate(sizes, errors, n_bootstrap=0)


def _means_of(shape: Shape, numbers: NDArray[np.void]) -> dict[str, FloatArray]:
    """For each kind of Voronoi cell the mean of each error over an estimate's cells of that kind.

    NaN where one of them has no such error.
    """
    cells = shape.entries(LOSSES, "cells")
    if not cells:
        return {}

    def over_cells(*path: str | int) -> FloatArray:
        return np.stack([shape.column(numbers, LOSSES, "cells", i, *path) for i in cells])

    sizes, means = over_cells("size"), {}
    for kind in CELL_KINDS:
        chosen = sizes > 1 if kind == "over" else sizes == 1
        count = chosen.sum(axis=0)
        means[f"{kind} cells"] = (count > 0).astype(np.float64)
        if not count.any():
            continue
        paths = {"mass": ("mass_error",), "expert": ("expert_error",)}
        blocks = shape.entries(LOSSES, "cells", 0, "errors")
        paths = {"mass": paths["mass"]} | {name: ("errors", name) for name in blocks} | paths
        for name, path in paths.items():
            total = np.where(chosen, over_cells(*path), 0.0).sum(axis=0)
            means[f"{kind} error {name}"] = total / np.maximum(count, 1)
    blocks = shape.entries(LOSSES, "cells", 0, "errors")
    if blocks:
        worst = np.fmax.reduce([over_cells("errors", name) for name in blocks])
        for size in SIZES:
            chosen = sizes == size
            count = chosen.sum(axis=0)
            total = np.where(chosen, worst, 0.0).sum(axis=0)
            means[f"atoms {size}"] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def _exponent(
    sizes: Sizes, columns: Columns, name: str, n_bootstrap: int, label: str = ""
) -> Exponent:
    """The rate of a column."""
    if sizes.group.size and columns.lacking(name):
        return Exponent(None, f"{label or name} was not recorded")
    return _rate(sizes, columns.take(name), n_bootstrap=n_bootstrap)


def _plain_rate(cells: Cells) -> RateResult | None:
    """The rate of the losses of cells, without a bootstrap."""
    return _rate(Sizes.of(cells.n), cells.loss, n_bootstrap=0).rate


def _rate(
    sizes: Sizes,
    values: FloatArray,
    theory: float | None = None,
    alternatives: Sequence[float] = EXPONENTS,
    n_bootstrap: int = _RESAMPLES,
) -> Exponent:
    """The rate of a value over the cells."""
    count = sizes.distinct.size
    if count < 2:
        return Exponent(None, f"estimates at {count} of the 2 or more sample sizes it takes")
    try:
        rate = rate_at(
            sizes, values, theory=theory, alternatives=alternatives, n_bootstrap=n_bootstrap
        )
        return Exponent(rate)
    except ValueError as error:
        return Exponent(None, str(error))
