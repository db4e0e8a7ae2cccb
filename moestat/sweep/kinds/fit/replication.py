"""Replication: how many replicates each curve gets, by a rule that only the results decide.

A curve begins with the spec's ``replicates``.  When all of its cells have results, the 95%
interval of its slope is looked at.  If it is no wider than ``target_slope_halfwidth`` to either
side, or the curve has ``max_replicates``, it stays as it is.  Otherwise every sample size gets more
replicates: as many as the interval should need, since its width falls like one over the square
root of their number, but no more than twice as many as there are; twice as many also while there
is no interval.

Nothing but the results of complete rounds enters, so the same cells come out in whatever order,
on whatever machine and after whatever interruptions they are run.  Of a cell that had a second pass
it is the result of the first one: a run that was interrupted between its rounds and the second
pass would else add other replicates than one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray
from moestat.rates.rate import fit_rate
from moestat.sweep.kinds.fit.spec import Curve
from moestat.sweep.spec.protocol import AnySpec
from moestat.sweep.store.columns import CERTIFICATE, read_columns
from moestat.sweep.store.scan import Cells
from moestat.sweep.store.shapes import Shape
from moestat.sweep.store.store import Store

_SECOND = "second_pass"
"""Where a certificate has what the second pass did."""


@dataclass(frozen=True)
class Replication:
    """How many replicates a curve has, or is about to get, and why."""

    replicates: int  # replicates per sample size
    # Half-width of the slope's 95% interval after the last complete round; None without an
    # interval, and for a fixed number of replicates.
    halfwidth: float | None = None
    settled: bool = True  # whether no more will be added
    why: str = ""  # the reason, in words; empty for a fixed number of replicates


def replication(spec: AnySpec, store: Store) -> dict[str, Replication]:
    """Replicates of each curve of a spec, as the results in its store decide."""
    again = set[str]()

    def first(name: str) -> Cells:
        cells = store.cells(name)
        before = first_pass(store, cells)
        if before is not cells:
            again.add(name)
        return before

    return {
        name: replace(count, why=f"{count.why}, by the losses before the second pass")
        if name in again
        else count
        for name, count in replication_by(spec, first).items()
    }


def replication_by(spec: AnySpec, cells_of: Callable[[str], Cells]) -> dict[str, Replication]:
    """Replicates of each curve, as the results of the first pass decide, by the curve's name."""
    if spec.target_slope_halfwidth is None:
        return {curve.name: Replication(spec.replicates) for curve in spec.curves}
    return {curve.name: _follow(spec, curve, cells_of(curve.name)) for curve in spec.curves}


def first_pass(store: Store, cells: Cells) -> Cells:
    """Cells with the losses, and whether they are certified, that they had before a second pass."""
    shapes = {number: store.shape(number) for number in np.unique(cells.shape[cells.done]).tolist()}
    again = [n for n, shape in shapes.items() if shape.has(CERTIFICATE, _SECOND)]
    if not again:
        return cells
    loss, certified = cells.loss.copy(), cells.certified.copy()
    chosen = cells.done & np.isin(cells.shape, again)
    loss[chosen] = read_columns(store, cells.where(chosen), _first_losses).take("loss")
    for number in again:
        was = shapes[number].literal(CERTIFICATE, _SECOND, "first_certified")
        if was is not None:
            certified[cells.shape == number] = was
    return replace(cells, loss=loss, certified=certified)


def _first_losses(shape: Shape, numbers: NDArray[np.void]) -> dict[str, FloatArray]:
    """The losses (N,) before a second pass."""
    return {"loss": shape.column(numbers, CERTIFICATE, _SECOND, "first_loss")}


def entering_cells(curve: Curve, cells: Cells) -> Cells:
    """The estimates that enter the rate of a curve: certified ones, unless it takes all."""
    return cells.where(cells.done & (cells.certified | (not curve.require_certificate)))


def _follow(spec: AnySpec, curve: Curve, cells: Cells) -> Replication:
    """The replicates of a curve after all rounds that the results complete."""
    target, limit = spec.target_slope_halfwidth, spec.most_replicates
    assert target is not None
    count, halfwidth = spec.replicates, None
    while True:
        results = cells.where(cells.replicate < count)
        if results.size < count * len(spec.sizes_of(curve)):
            why = "first round" if halfwidth is None else f"half-width was {halfwidth:.3g}"
            return Replication(count, halfwidth, False, f"{why}, target {target:g}")
        halfwidth = _halfwidth(curve, results)
        if halfwidth is not None and halfwidth <= target:
            why = f"half-width {halfwidth:.3g} is within the target {target:g}"
            return Replication(count, halfwidth, True, why)
        if count >= limit:
            reached = "there is no interval" if halfwidth is None else f"half-width {halfwidth:.3g}"
            why = f"max_replicates; {reached}, target {target:g}"
            return Replication(count, halfwidth, True, why)
        needed = 2 * count if halfwidth is None else math.ceil(count * (halfwidth / target) ** 2)
        count = min(max(needed, count + 1), 2 * count, limit)


def _halfwidth(curve: Curve, cells: Cells) -> float | None:
    """Half-width of the slope's interval; None if there is none."""
    used = entering_cells(curve, cells)
    try:
        rate = fit_rate(used.n, used.loss, n_bootstrap=0)
    except ValueError:
        return None
    halfwidth = (rate.interval[1] - rate.interval[0]) / 2
    return None if math.isnan(halfwidth) else halfwidth
