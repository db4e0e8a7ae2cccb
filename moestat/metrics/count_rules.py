"""Rules that sum over counts, also where one mean is so large that they cannot be listed.

Up to `_LISTED` counts, and all numbers of successes, are nodes of weight 1.  Of a longer range the
first `_FIRST` are, and beyond them the sum is an integral by panels: densities vary there over
`_SMOOTH` counts or more, so that the two differ by what the first derivative has at the border, at
most 2.4e-6 (a Poisson atom whose flank is there; 1.3e-8 was the most in 54 distances).  Panels are
at most three standard deviations of the narrowest atom that they meet, and at most double the
count, since negative binomial densities are like powers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.metrics.panels import ORDER, ResponseRule, chunks, panels_of
from moestat.model.altered import Altered

__all__ = ["count_rules"]

_TAIL = 1e-18  # probability beyond the ends
_LISTED = 16_384
"""Counts of one input that are all listed: a distance at 384 inputs takes about a second."""
_FIRST = 342 * ORDER
"""Counts that are listed of a longer range."""
_SMOOTH = 16.0
"""Least standard deviation of an atom that is integrated: the sum over counts and the integral of a
normal density of this width differ by exp(-2 pi^2 16^2), which is 0."""
_ROUNDING = 1e-2
"""Largest error of log-probabilities, differences of numbers near ``y log y``; means to 1e12."""


def count_rules(
    laws: Sequence[Any], pairs: Sequence[tuple[FloatArray, FloatArray]], width: float
) -> Iterator[tuple[slice, ResponseRule]]:
    """Rules over the counts of some distributions with means and deviations (k, n), by chunks.

    `width` is the longest panel in standard deviations.
    """
    ends = [_ends(law, *pair) for law, pair in zip(laws, pairs, strict=True)]
    low, high = (np.concatenate(side) for side in zip(*ends, strict=True))
    first, last = low.min(axis=0), high.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        rounding = np.finfo(float).eps * last * np.log1p(last)
    if not np.all(rounding <= _ROUNDING):
        raise ValueError(
            "theta, truth_theta: a mean there is so large that probabilities of counts are beyond"
            " the precision of float64"
        )
    bounded = all(np.all(np.isfinite(law.support()[1])) for law in laws)
    if bounded or np.max(last - first) < _LISTED:
        yield from _counts(first, last)
        return
    yield from _long(laws, pairs, width, first, last)


def _long(
    laws: Sequence[Any],
    pairs: Sequence[tuple[FloatArray, FloatArray]],
    width: float,
    first: FloatArray,
    last: FloatArray,
) -> Iterator[tuple[slice, ResponseRule]]:
    """Rules over the counts from `first` to `last`, of which some are too many to be listed."""
    border = first + (_FIRST - 0.5)
    end = np.maximum(last + 0.5, border)
    lows, highs, steps = [], [], []
    for law, pair in zip(laws, pairs, strict=True):
        # A count that is 0 for itself widens a law; its other counts are as narrow as they were.
        inner = law.law if isinstance(law, Altered) else law
        mean, deviation = (inner.mean(), inner.std()) if inner is not law else pair
        low, high = _ends(inner, mean, deviation)
        lows.append(np.clip(low, border, end))
        highs.append(np.clip(high + 0.5, border, end))
        steps.append(np.broadcast_to(deviation, low.shape))
    low, high, deviation = map(np.concatenate, (lows, highs, steps))
    if np.any((deviation < _SMOOTH) & (high > low)):
        raise ValueError(
            f"theta, truth_theta: counts there reach to {last.max():.3g}, too many to be listed,"
            " and some atom is too narrow for an integral in place of their sum"
        )
    octaves = np.arange(int(np.ceil(np.log2(np.max(end / border)))))[:, None]
    starts = np.minimum(border * 2.0**octaves, end)
    low = np.concatenate([low, starts])
    high = np.concatenate([high, np.minimum(2.0 * starts, end)])
    step = np.concatenate([width * np.maximum(deviation, _SMOOTH), starts * width / 3.0])
    listed = np.arange(_FIRST).reshape(-1, ORDER)
    for part in chunks(first.size, _FIRST):
        n = part.stop - part.start
        y = first[part, None, None] + listed
        weight = np.where(y <= last[part, None, None], 1.0, 0.0)
        y = np.minimum(y, last[part, None, None])
        owner = [np.repeat(np.arange(n), len(listed))]
        nodes, weights = [y.reshape(-1, ORDER)], [weight.reshape(-1, ORDER)]
        for chunk, rule in panels_of(low[:, part], high[:, part], step[:, part]):
            owner.append(rule.owner + chunk.start)
            nodes.append(rule.y)
            weights.append(rule.weight)
        order = np.argsort(np.concatenate(owner), kind="stable")
        at, y, weight = (np.concatenate(each)[order] for each in (owner, nodes, weights))
        yield part, ResponseRule(at, y, weight, True)


def _ends(law: Any, mean: FloatArray, deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Counts (k, n) below and above which a distribution has almost no mass, by doubling.

    Quantiles of so small a probability are beyond what scipy finds for counts.
    """
    ends = []
    for sign, tail in ((-1.0, law.cdf), (1.0, law.sf)):
        reach = 1.0 + deviation
        while np.any(more := tail(mean + sign * reach) > _TAIL):
            reach = np.where(more, 2.0 * reach, reach)
        ends.append(mean + sign * reach)
    smallest, largest = law.support()
    return np.maximum(np.floor(ends[0]), smallest), np.minimum(np.ceil(ends[1]), largest)


def _counts(first: FloatArray, last: FloatArray) -> Iterator[tuple[slice, ResponseRule]]:
    """Counts from `first` (n,) to `last` (n,) with weight 1, one panel per input."""
    size = int((last - first).max()) + 1
    for chunk in chunks(first.size, size):
        y, end = first[chunk, None] + np.arange(size), last[chunk, None]
        weight = np.where(y <= end, 1.0, 0.0)
        yield chunk, ResponseRule(np.arange(len(y)), np.minimum(y, end), weight, True)
