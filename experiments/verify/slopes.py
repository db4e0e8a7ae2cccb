"""Slopes of what a sweep recorded, over its last four decades of sample sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.claims.checks import Slope
from experiments.claims.evidence import Missing, SlopeEvidence
from moestat.base.types import FloatArray
from moestat.rates.rate import fit_rate
from moestat.sweep.kinds.fit.quantities import Quantity, observed
from moestat.sweep.kinds.fit.spec import Curve
from moestat.sweep.run.replication import entering
from moestat.sweep.store.record import DONE, FAILED, Record

__all__ = ["slope_evidence"]

_LATE = 1e-4
"""Sizes from this share of the largest on enter a slope."""


def slope_evidence(
    check: Slope, curve: Curve, records: Sequence[Record]
) -> SlopeEvidence | Missing:
    """The evidence of a check on a curve.

    Parameters
    ----------
    check : Slope
        The check.
    curve : Curve
        Its curve.
    records : sequence of Record
        The curve's records.

    Returns
    -------
    SlopeEvidence or Missing
        The slope, or why there is none.
    """
    return _slope(check.quantity, curve, records)


def _slope(quantity: Quantity, curve: Curve, records: Sequence[Record]) -> SlopeEvidence | Missing:
    if not records:
        return Missing("no cell has a result")
    first = 0.999 * _LATE * max(record.n for record in records)
    late = [record for record in records if record.n >= first]
    kept = observed(entering(curve, late), quantity)
    sizes = sorted({record.n for record, _ in kept})
    if len(sizes) < 2:
        return Missing(f"estimates with this error at {len(sizes)} sample sizes, a slope takes 2")
    n: FloatArray = np.array([record.n for record, _ in kept], dtype=float)
    rate = fit_rate(n, [error for _, error in kept], n_bootstrap=0)
    done = [record for record in late if record.status == DONE]
    return SlopeEvidence(
        slope=rate.slope,
        interval=rate.interval,
        n=(float(sizes[0]), float(sizes[-1])),
        n_fits=len(kept),
        n_certified=sum(record.certified for record, _ in kept),
        n_left_out=len(done) - len(kept),
        n_failed=sum(record.status == FAILED for record in late),
    )
