"""Poisson and negative binomial distributions, also where counts are too large for scipy's."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, Law

__all__ = ["MOST_COUNTS", "draw_counts", "negative_binomial", "poisson"]

MOST_COUNTS = 2.0**53
"""Largest number up to which float64 holds all whole numbers."""

_NORMAL = 1e10
"""Mean of a Poisson distribution from which normal quantiles serve: scipy's are NaN from 1e12."""

_FARTHEST = 1e300
"""Largest count that is looked for."""

_LONG = 1e6
"""Sum of the mean and of the scale of the tail from which quantiles are bisected: a bisection takes
less time than the search of scipy from count to count, which did not end for means of 1e7."""


def draw_counts(mean: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Poisson counts with means (n,); where float64 does not hold all counts, normal draws."""
    large = ~(mean <= MOST_COUNTS)  # also where float64 has no mean
    counts = rng.poisson(np.where(large, 0.0, mean)).astype(np.float64)
    if large.any():
        counts[large] = mean[large] + np.sqrt(mean[large]) * rng.standard_normal(large.sum())
    return counts


def poisson(mean: FloatArray) -> Law:
    """The Poisson distribution of scipy, with quantiles where counts are large."""
    return _of_large_counts()[0](mean)


def negative_binomial(size: float | FloatArray, probability: FloatArray) -> Law:
    """The negative binomial distribution of scipy, with quantiles where counts are large."""
    return _of_large_counts()[1](size, probability)


@cache
def _of_large_counts() -> tuple[Any, Any]:
    """Distributions of counts with quantiles of their own where counts are large.

    There the search of scipy returns NaN, or goes from a count to the next one, which is the same
    number of float64, and does not end.
    """
    from scipy.special import ndtri
    from scipy.stats import nbinom
    from scipy.stats import poisson as counts

    class Poisson(type(counts)):
        def _ppf(self, q: FloatArray, mu: FloatArray) -> FloatArray:
            """Beyond a mean of 1e10 normal quantiles, whose error is below a count."""
            large = mu > _NORMAL
            return np.where(
                large,
                np.floor(mu + np.sqrt(mu) * ndtri(q)),
                super()._ppf(q, np.where(large, 0.0, mu)),
            )

    class NegativeBinomial(type(nbinom)):
        def _ppf(self, q: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
            """By scipy, or by bisection where the tail is long."""
            large = n * (1.0 - p) / p + 1.0 / p > _LONG
            quantile = super()._ppf(q, np.where(large, 1.0, n), np.where(large, 0.5, p))
            if np.any(large):
                q, n, p, large = np.broadcast_arrays(q, n, p, large)
                quantile[large] = _bisected(q[large], n[large], p[large])
            return quantile

    return Poisson(name="poisson"), NegativeBinomial(name="nbinom")


def _bisected(q: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """Quantiles (m,) of negative binomial distributions, to a count or to the last digit."""
    from scipy.special import betainc

    low, high = np.full(q.shape, -1.0), np.floor(n * (1.0 - p) / p) + 1.0
    while np.any(short := (betainc(n, high + 1.0, p) < q) & (high < _FARTHEST)):
        low[short], high[short] = high[short], 2.0 * high[short]
    while True:
        # By orders of magnitude first.
        below = np.maximum(low, 1.0)
        middle = np.floor(
            np.where(high > 4.0 * below, np.sqrt(below) * np.sqrt(high), 0.5 * (low + high))
        )
        open_ = (middle > low) & (middle < high)
        if not open_.any():
            return high
        reached = betainc(n, middle + 1.0, p) >= q
        high = np.where(open_ & reached, middle, high)
        low = np.where(open_ & ~reached, middle, low)
