"""From a store of training runs to means with intervals, and differences to the first method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from moestat.rates.regression import t_interval
from moestat.sweep.kinds.runs.outcomes import Outcomes, counts, records_by_curve, spec_of
from moestat.sweep.kinds.training.spec import TrainingSpec
from moestat.sweep.store.record import DONE, Record
from moestat.sweep.store.store import Store

TUNED_BY = "validation_loss"
"""The metric whose smallest mean chooses the point of the grid at which a method is judged."""


METRICS = {
    "excess": "excess test loss",
    "difference": "test loss less the first method's",
    "overlap": "overlap with competition",
    "change_rate": "expert change rate",
    "router_entropy": "router entropy",
    "load_entropy": "entropy of the load",
    "weight_entropy": "entropy of weights",
    "swap": "loss added by the swap",
    "expert_error": "expert error",
    TUNED_BY: "validation loss",
    "processor_seconds": "processor seconds",
}
"""Metrics that summaries may have, and what tables call them."""


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with the half-width of its 95% t interval."""

    count: int  # runs
    mean: float  # their mean
    halfwidth: float | None  # half-width; None for one run


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and 95% t interval of some runs.

    Examples
    --------
    >>> round(estimate([1.0, 2.0, 3.0]).halfwidth, 4)
    2.4841
    """
    count, mean = len(values), float(np.mean(values))
    if count < 2:
        return Estimate(count, mean, None)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    return Estimate(count, mean, t_interval(0.0, error, count - 1)[1])


def p_value(value: Estimate) -> float:
    """Two-sided p-value of the t test that a mean is 0.

    Examples
    --------
    >>> round(p_value(estimate([1.0, 2.0, 3.0])), 4)
    0.0742
    """
    from scipy.stats import t

    if not value.halfwidth:
        return 1.0 if value.halfwidth is None or value.mean == 0 else 0.0
    degrees = value.count - 1
    ratio = value.mean / value.halfwidth * t.ppf(0.975, degrees)
    return float(2 * t.sf(abs(ratio), degrees))


@dataclass(frozen=True)
class TrainingSummary(Outcomes):
    """The results of a sweep for one method, in addition to `Outcomes`."""

    # By place, the estimate of each metric over the runs.
    metrics: Mapping[float, Mapping[str, Estimate]] = field(repr=False)
    best: float | None  # the place with the smallest mean loss on the validation samples
    # Learning curves at that place: ``step``, and mean and half-width of each other.
    curves: Mapping[str, Any] = field(repr=False)
    chance: float  # K / N, the overlap with a competition of a router that knows nothing of it

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        return {
            **super().as_dict(),
            "best": self.best,
            "chance": self.chance,
            "metrics": [
                {self.axis: x, **{name: vars(value) for name, value in estimates.items()}}
                for x, estimates in self.metrics.items()
            ],
        }


def summarise_trainings(store: Store) -> list[TrainingSummary]:
    """One summary per curve of the store's spec, in its order.

    The metric ``difference`` is the excess loss minus that of the first curve of its panel, run by
    run, each at its own best place for a grid and at the same place else.
    """
    spec = spec_of(store, TrainingSpec)
    by_curve = records_by_curve(store)
    done = {
        name: [as_called_now(record) for record in records if record.status == DONE]
        for name, records in by_curve.items()
    }
    best = {name: _best(records) for name, records in done.items()}
    firsts: dict[str, str] = {}
    summaries = []
    for curve in spec.curves:
        first = firsts.setdefault(curve.panel, curve.name)
        records, metrics = done[curve.name], {}
        for x in spec.sizes:
            at_place = [record for record in records if record.n == x]
            if at_place:
                beside = best[first] if spec.axis == "choice" else x
                other = {r.replicate: r for r in done[first] if r.n == beside}
                metrics[x] = _estimates(at_place, {} if curve.name == first else other)
        run = spec.run(curve, spec.sizes[0])
        at_best = [record for record in records if record.n == best[curve.name]]
        summaries.append(
            TrainingSummary(
                **counts(spec, curve, by_curve[curve.name]),
                metrics=metrics,
                best=best[curve.name],
                curves=_curves(at_best),
                chance=run.top_k / run.n_experts,
            )
        )
    return summaries


def as_called_now(record: Record) -> Record:
    """A record whose metrics have their present names, whatever version wrote it."""
    if "dispatch_entropy" not in record.losses:
        return record
    losses = dict(record.losses)
    losses["load_entropy"] = losses.pop("dispatch_entropy")
    return replace(record, losses=losses)


def best_place(losses: Mapping[float, Sequence[float]]) -> float | None:
    """The place where the mean loss is least, among those with the most runs; None without runs.

    Examples
    --------
    >>> best_place({1: [0.3, 0.5], 2: [0.1], 3: [0.2, 0.4]})
    3
    """
    n_runs = max(map(len, losses.values()), default=0)
    means = {x: float(np.mean(v)) for x, v in losses.items() if len(v) == n_runs}
    return min(means, key=means.__getitem__) if means else None


def _best(records: Sequence[Record]) -> float | None:
    places: dict[float, list[float]] = {}
    for record in records:
        places.setdefault(record.n, []).append(record.losses[TUNED_BY])
    return best_place(places)


def _estimates(at_place: Sequence[Record], other: Mapping[int, Record]) -> dict[str, Estimate]:
    estimates = {
        name: estimate([record.losses[name] for record in at_place])
        for name in METRICS
        if all(name in record.losses for record in at_place)
    }
    pairs = [
        record.losses["test_loss"] - other[record.replicate].losses["test_loss"]
        for record in at_place
        if record.replicate in other
    ]
    return {**estimates, "difference": estimate(pairs)} if pairs else estimates


def _curves(records: Sequence[Record]) -> dict[str, Any]:
    """Mean learning curves."""
    if not records:
        return {}
    curves = [record.losses["curve"] for record in records]
    columns: dict[str, Any] = {"step": curves[0]["step"]}
    for name in curves[0]:
        if name != "step":
            points = zip(*(curve[name] for curve in curves), strict=True)
            columns[name] = [estimate(values) for values in points]
    return columns
