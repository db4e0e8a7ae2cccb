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


def draw_counts(mean: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Poisson counts with means (n,); where float64 does not hold all counts, normal draws."""
    large = mean > MOST_COUNTS
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
    """Distributions of counts whose quantiles are continuous where counts are large.

    There the search of scipy returns NaN, or goes from a count to the next one, which is the same
    number of float64, and does not end.
    """
    from scipy.special import gammaincinv, ndtri
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
            """Where float64 lacks counts, quantiles of a gamma law of this mean and variance."""
            mean = n * (1.0 - p) / p
            large = mean > MOST_COUNTS
            near = super()._ppf(q, n, np.where(large, 0.5, p))
            return np.where(large, np.floor(gammaincinv(mean * p, q) / p), near)

    return Poisson(name="poisson"), NegativeBinomial(name="nbinom")
