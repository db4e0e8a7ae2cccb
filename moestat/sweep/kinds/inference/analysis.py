"""From a store of trials to shares with Monte Carlo errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from moestat.model.numbering import from_1
from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.kinds.inference.spec import InferenceSpec
from moestat.sweep.kinds.runs.outcomes import Outcomes, counts, records_by_curve, spec_of
from moestat.sweep.kinds.runs.spec import RunCurve
from moestat.sweep.store.record import DONE, Record
from moestat.sweep.store.store import Store


@dataclass(frozen=True)
class Share:
    """How often something happened, over items and replicates."""

    count: int  # replicates with an answer
    mean: float  # share over replicates and items
    error: float  # its Monte Carlo standard error, over replicates, with a floor: see `share`
    lowest: tuple[str, float]  # items with the smallest and the largest share
    highest: tuple[str, float]
    # Share of items and replicates without an answer: no certified fit, no standard error.
    missing: float
    # 95% interval of the share over replicates, within 0 and 1: that of Wilson (1927).
    interval: tuple[float, float] = (0.0, 1.0)


def wilson(mean: float, n_trials: float) -> tuple[float, float]:
    """The 95% interval of a share of so many independent trials, by Wilson (1927).

    Examples
    --------
    >>> [round(end, 3) for end in wilson(1.0, 50)], [round(end, 3) for end in wilson(0.95, 1000)]
    ([0.929, 1.0], [0.935, 0.962])
    """
    square = _NORMAL**2 / n_trials
    centre = (mean + 0.5 * square) / (1.0 + square)
    spread = mean * (1.0 - mean) * square + 0.25 * square**2
    reach = math.sqrt(spread) / (1.0 + square)
    # Rounding may lead beyond a share of none or all, which is an end of its own interval.
    return (min(max(centre - reach, 0.0), mean), max(min(centre + reach, 1.0), mean))


_NORMAL = 1.959963984540054
"""The 97.5% quantile of the normal distribution."""


def share(outcomes: Sequence[Mapping[str, float | None]]) -> Share | None:
    """Summary of one label over replicates; None where no replicate has an answer.

    The standard error is that of a mean of replicates, at least as if one more replicate had
    the other answer: no share of 1000 out of 1000 is certain.
    """
    values = [[v for v in items.values() if v is not None] for items in outcomes]
    means = np.array([np.mean(answered) for answered in values if answered])
    if not means.size:
        return None
    count = int(means.size)
    spread = float(np.std(means, ddof=1)) if count > 1 else 0.0
    error = max(spread / math.sqrt(count), math.sqrt(count) / (count + 1) ** 1.5)
    mean, variance = float(np.mean(means)), spread**2 / count
    n_answers = float(sum(map(len, values)))
    # As many trials as have the variance of this mean: items of a replicate are dependent.
    n_trials = min(mean * (1.0 - mean) / variance, n_answers) if variance > 0.0 else float(count)
    by_item: dict[str, list[float]] = {}
    for items in outcomes:
        for name, value in items.items():
            if value is not None:
                by_item.setdefault(from_1(name), []).append(value)
    shares = {name: float(np.mean(answered)) for name, answered in by_item.items()}
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    answers = [answered for answered in values if answered]
    n_items = sum(len(items) if len(items) > 1 else _width(outcomes) for items in outcomes)
    return Share(
        count,
        float(np.mean(means)),
        error,
        (low, shares[low]),
        (high, shares[high]),
        1.0 - sum(map(len, answers)) / n_items,
        wilson(mean, n_trials),
    )


def _width(outcomes: Sequence[Mapping[str, float | None]]) -> int:
    """Number of items of a replicate with a fit; a replicate without a fit has a single item."""
    return max(map(len, outcomes))


@dataclass(frozen=True)
class InferenceSummary(Outcomes):
    """The results of a sweep for one curve, in addition to `Outcomes`."""

    # By procedure and label, the shares at each place.
    shares: Mapping[tuple[str, str], Mapping[float, Share]] = field(repr=False)

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        return {
            **super().as_dict(),
            "shares": [
                {"procedure": name, "label": label, self.axis: x, **vars(share)}
                for (name, label), places in self.shares.items()
                for x, share in places.items()
            ],
        }


def summarise_inference(store: Store) -> list[InferenceSummary]:
    """One summary per curve of the store's spec, in its order; it need not be complete."""
    spec = spec_of(store, InferenceSpec)
    by_curve = records_by_curve(store)
    return [_summary(spec, curve, by_curve[curve.name]) for curve in spec.curves]


def _summary(spec: InferenceSpec, curve: RunCurve, records: Sequence[Record]) -> InferenceSummary:
    done = [record for record in records if record.status == DONE]
    outcomes: dict[tuple[str, str], dict[float, list[Mapping[str, float | None]]]] = {}
    for record in sorted(done, key=lambda record: record.n):
        for name in PROCEDURES:
            for label, items in record.losses.get(name, {}).items():
                places = outcomes.setdefault((name, label), {})
                places.setdefault(record.n, []).append(items)
    shares = {
        key: {
            x: summary_at
            for x, outcomes_at in places.items()
            if (summary_at := share(outcomes_at)) is not None
        }
        for key, places in outcomes.items()
    }
    return InferenceSummary(**counts(spec, curve, records), shares=shares)
