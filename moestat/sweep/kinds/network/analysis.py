"""From a store of networks to means, standard deviations and quantiles along the x-axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat.sweep.kinds.network.spec import NetworkSpec
from moestat.sweep.kinds.runs.outcomes import Outcomes, counts, records_by_curve, spec_of
from moestat.sweep.kinds.runs.spec import RunCurve
from moestat.sweep.store.record import DONE, Record
from moestat.sweep.store.store import Store

__all__ = ["METRICS", "NetworkSummary", "Place", "summarise_networks"]

METRICS = {
    "test_accuracy": "test accuracy",
    "entropy": "dispatch entropy",
    "specialist_share": "share routed to a specialist",
    "experts_in_use": "experts in use",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
}
"""Metrics that summaries have, and what tables call them."""

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Place:
    """One metric of the runs of a curve at one place on the x-axis.

    Parameters
    ----------
    count : int
        Runs.
    mean : float
        Their mean.
    deviation : float or None
        Their standard deviation, with count - 1; None for one run.
    quantiles : tuple of float
        Smallest value, quartiles, largest value.
    """

    count: int
    mean: float
    deviation: float | None
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class NetworkSummary(Outcomes):
    """Everything a sweep knows about one curve of networks, beside what `Outcomes` says.

    Parameters
    ----------
    metrics : mapping of str to mapping of number to Place
        For each of `METRICS` what the runs say, by place.
    """

    metrics: dict[str, dict[float, Place]] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            **super().as_dict(),
            "metrics": {
                name: [{self.axis: x, **vars(place)} for x, place in places.items()]
                for name, places in self.metrics.items()
            },
        }


def summarise_networks(store: Store) -> list[NetworkSummary]:
    """One summary per curve of the store's spec, in its order.

    Parameters
    ----------
    store : Store
        An open store; its sweep need not be complete.

    Returns
    -------
    list of NetworkSummary
        Counts and metrics.
    """
    spec = spec_of(store, NetworkSpec)
    by_curve = records_by_curve(store)
    return [_summary(spec, curve, by_curve[curve.name]) for curve in spec.curves]


def _summary(spec: NetworkSpec, curve: RunCurve, records: Sequence[Record]) -> NetworkSummary:
    done = [record for record in records if record.status == DONE]
    metrics: dict[str, dict[float, Place]] = {name: {} for name in METRICS}
    for x in spec.sizes:
        here = [record.losses for record in done if record.n == x]
        for name, places in metrics.items():
            if here:
                places[x] = _place([losses[name] for losses in here])
    return NetworkSummary(**counts(spec, curve, records), metrics=metrics)


def _place(values: Sequence[float]) -> Place:
    return Place(
        count=len(values),
        mean=float(np.mean(values)),
        deviation=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        quantiles=tuple(float(q) for q in np.quantile(values, _QUANTILES)),
    )
