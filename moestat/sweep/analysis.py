"""From a store to rates: what each curve has, what enters its rate, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat._types import FloatArray, IntArray
from moestat.rates import RateResult, fit_rate
from moestat.sweep.record import DONE, FAILED, Record
from moestat.sweep.spec import Curve
from moestat.sweep.store import Store

__all__ = ["CurveSummary", "summarise"]


@dataclass(frozen=True)
class CurveSummary:
    """Everything a sweep knows about one curve.

    Parameters
    ----------
    curve : Curve
        The curve of the spec.
    planned, done, failed : int
        Cells of the spec, cells with an estimate, cells that failed.
    certified, on_bound, with_empty_cells : int
        Estimates that are certified maxima; that lie on a bound of the parameter space; that
        leave some true atom without a fitted one.
    n : ndarray of shape (N,)
        Sample sizes of the estimates that enter the rate.
    loss : ndarray of shape (N,)
        Their losses.
    rate : RateResult or None
        Rate of the loss; None when it cannot be fitted.
    hellinger : RateResult or None
        Rate of the Hellinger distance of the same estimates.
    blocks : mapping of str to float
        Slope of each part of the loss: the masses, and each block of the atoms.
    note : str
        Why there is no rate.
    """

    curve: Curve
    planned: int
    done: int
    failed: int
    certified: int
    on_bound: int
    with_empty_cells: int
    n: IntArray = field(repr=False)
    loss: FloatArray = field(repr=False)
    rate: RateResult | None
    hellinger: RateResult | None
    blocks: dict[str, float]
    note: str

    @property
    def left_out(self) -> int:
        """Estimates that do not enter the rate because they are not certified."""
        return self.done - self.n.size

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "curve": self.curve.name,
            "theory": self.curve.theory,
            "require_certificate": self.curve.require_certificate,
            "cells": self.planned,
            "done": self.done,
            "failed": self.failed,
            "certified": self.certified,
            "on_bound": self.on_bound,
            "with_empty_cells": self.with_empty_cells,
            "left_out": self.left_out,
            "rate": None if self.rate is None else self.rate.as_dict(),
            "hellinger": None if self.hellinger is None else self.hellinger.as_dict(),
            "blocks": self.blocks,
            "note": self.note,
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
    planned = len(spec.sizes) * spec.replicates
    return [_summary(curve, planned, by_curve[curve.name]) for curve in spec.curves]


def _summary(curve: Curve, planned: int, records: Sequence[Record]) -> CurveSummary:
    done = [record for record in records if record.status == DONE]
    used = [record for record in done if record.certified or not curve.require_certificate]
    rate, note = _rate(used, lambda record: record.loss, curve.theory)
    hellinger, _ = _rate(used, lambda record: record.losses.get("hellinger"))
    parts: dict[str, Callable[[Record], float]] = {
        "mass": lambda record: sum(record.losses["mass_errors"])
    }
    for block in used[0].losses.get("block_errors", {}) if used else ():
        parts[block] = lambda record, name=block: sum(record.losses["block_errors"][name])
    slopes = {name: _rate(used, part, n_bootstrap=0)[0] for name, part in parts.items()}
    return CurveSummary(
        curve=curve,
        planned=planned,
        done=len(done),
        failed=sum(record.status == FAILED for record in records),
        certified=sum(record.certified for record in done),
        on_bound=sum(record.on_bound for record in done),
        with_empty_cells=sum(record.empty_cells > 0 for record in done),
        n=np.array([record.n for record in used], dtype=np.int64),
        loss=np.array([record.loss for record in used], dtype=np.float64),
        rate=rate,
        hellinger=hellinger,
        blocks={name: part.slope for name, part in slopes.items() if part is not None},
        note=note,
    )


def _rate(
    records: Sequence[Record],
    value: Callable[[Record], Any],
    theory: float | None = None,
    n_bootstrap: int = 1000,
) -> tuple[RateResult | None, str]:
    """The rate of a value, or None and the reason."""
    sizes = [record.n for record in records]
    if len(set(sizes)) < 2:
        return None, f"estimates at {len(set(sizes))} of the 2 or more sample sizes it takes"
    try:
        values = [value(record) for record in records]
        return fit_rate(sizes, values, theory=theory, n_bootstrap=n_bootstrap), ""
    except (ValueError, KeyError) as error:
        return None, str(error)
