"""Cells of a store whose estimate may have missed its maximum, and which of them run again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray
from moestat.rates.rate import fit_rate
from moestat.sweep.kinds.fit.analysis import certificate_columns
from moestat.sweep.kinds.fit.evidence import NUMBERS, in_doubt
from moestat.sweep.kinds.fit.parse import NEAR_TRUTH
from moestat.sweep.kinds.fit.replication import entering_cells
from moestat.sweep.kinds.fit.spec import Curve, Spec
from moestat.sweep.spec.plan import Plan, plan_cells
from moestat.sweep.store.columns import read_columns
from moestat.sweep.store.scan import Cells
from moestat.sweep.store.store import Store

AUTOMATIC = 0.5
"""Estimated share of missed maxima above which a curve has a second pass unasked: more than half of
its points are then lower than the maximum."""


def evidence_columns(store: Store, curve: str) -> tuple[Cells, Mapping[str, FloatArray]]:
    """The estimates of a curve, and the numbers of their certificates."""
    cells = store.cells(curve)
    done = cells.where(cells.done)
    columns = read_columns(store, done, certificate_columns)
    return done, {name: columns.take(name) for name in NUMBERS}


def seeks_maximum(spec: Spec, curve: Curve) -> bool:
    """Whether a curve has more experts than its truth, and is no replay and not ``near-truth``.

    An estimate near the truth that gave way to a higher maximum would be that of another theory.
    """
    over = curve.n_experts > spec.truths[curve.truth].family.n_experts
    return over and curve.require_certificate and dict(curve.starts) != NEAR_TRUTH


def missed(spec: Spec, store: Store) -> dict[str, float]:
    """The estimated share of missed maxima of each curve where it was estimated."""
    shares: dict[str, float] = {}
    for curve in spec.curves:
        if "maximum" in curve.starts:
            chance = evidence_columns(store, curve.name)[1]["p_higher"]
            if not np.all(np.isnan(chance)):
                shares[curve.name] = float(np.nanmean(chance))
    return shares


def cells_in_doubt(spec: Spec, store: Store, only_automatic: bool = False) -> Plan:
    """Cells in doubt that have had no second pass, the largest sample sizes first.

    `only_automatic` takes curves that more than `AUTOMATIC` of the fits are estimated to miss the
    maximum of, and curves whose second pass has begun: it lowers the estimate, so that the rest of
    an interrupted one would be left out.
    """
    settled: dict[tuple[str, float], NDArray[np.int64]] = {}
    shares = missed(spec, store) if only_automatic else {}
    for curve in spec.curves:
        done, columns = evidence_columns(store, curve.name)
        first = np.isnan(columns["second_pass.gain"])
        chosen = in_doubt(columns) & first
        if not seeks_maximum(spec, curve):
            chosen[:] = False
        if only_automatic and first.all() and shares.get(curve.name, 0.0) <= AUTOMATIC:
            chosen[:] = False
        for n in spec.sizes_of(curve):
            again = done.replicate[chosen & (done.n == n)]
            all_replicates = np.arange(spec.most_replicates)
            settled[curve.name, n] = np.setdiff1d(all_replicates, again)
    replicates = {curve.name: spec.most_replicates for curve in spec.curves}
    return plan_cells(spec, replicates, settled)


def slopes(spec: Spec, store: Store) -> dict[str, float]:
    """The slope of each curve that has one."""
    found: dict[str, float] = {}
    for curve in spec.curves:
        used = entering_cells(curve, store.cells(curve.name))
        with suppress(ValueError):
            found[curve.name] = fit_rate(used.n, used.loss, n_bootstrap=0).slope
    return found


def has_second_pass(certificate: Mapping[str, object]) -> bool:
    """Whether the record with this certificate had a second pass."""
    return "second_pass" in certificate
