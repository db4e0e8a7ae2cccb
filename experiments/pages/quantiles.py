"""Slopes of quantiles of errors over the last decades of n, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.types import FloatArray

__all__ = ["FEWEST", "LATE", "QuantileSlope", "pooled", "quantile_slope"]

LATE = 1e-4
"""Sizes from this share of the largest on enter a slope."""
FEWEST = 5
"""Errors that a size needs to enter."""
_BOOTSTRAP = 1000
_ERRORS = 2.0 * 1.96
"""Length of a 95% interval in standard errors."""


@dataclass(frozen=True)
class QuantileSlope:
    """The slope of a quantile of errors.

    Parameters
    ----------
    slope : float
        Of the log quantile on log n.
    low, high : float
        Percentile interval, 95%, of a bootstrap over replicates at every size.
    """

    slope: float
    low: float
    high: float


def quantile_slope(
    n: Any, error: Any, level: float, rng: np.random.Generator, late: float = LATE
) -> QuantileSlope | None:
    """The slope of a quantile of errors over the last decades of n.

    Parameters
    ----------
    n, error : array_like of shape (N,)
        Sample size and positive error of each estimate.
    level : float
        Level of the quantile, between 0 and 1.
    rng : numpy.random.Generator
        Draws the bootstrap's replicates.
    late : float
        Share of the largest size from which on sizes enter.

    Returns
    -------
    QuantileSlope or None
        None where fewer than two sizes have at least five errors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> n = np.repeat([1e10, 1e12, 1e14], 200)
    >>> found = quantile_slope(n, n**-0.125 * rng.exponential(size=600), 0.9, rng)
    >>> round(found.slope, 2), found.low < -0.125 < found.high
    (-0.15, True)
    """
    sizes, values = np.asarray(n, float), np.asarray(error, float)
    groups = [values[sizes == each] for each in np.unique(sizes)]
    kept = [
        (size, group)
        for size, group in zip(np.unique(sizes), groups, strict=True)
        if size >= 0.999 * late * sizes.max() and group.size >= FEWEST
    ]
    if len(kept) < 2:
        return None
    x = np.log([size for size, _ in kept])

    def slope(quantiles: FloatArray) -> FloatArray:
        centred = x - x.mean()
        return np.log(quantiles) @ centred / (centred @ centred)

    point = slope(np.array([np.quantile(group, level) for _, group in kept]))
    drawn = [
        np.quantile(rng.choice(group, (_BOOTSTRAP, group.size)), level, axis=1) for _, group in kept
    ]
    low, high = np.quantile(slope(np.stack(drawn, axis=1)), [0.025, 0.975])
    return QuantileSlope(float(point), float(low), float(high))


def pooled(slopes: Sequence[QuantileSlope]) -> tuple[float, float]:
    """Mean slope, weighted by the inverse squares of the intervals' lengths, and its error.

    Examples
    --------
    >>> slope, error = pooled([QuantileSlope(-0.1, -0.12, -0.08), QuantileSlope(-0.2, -0.3, -0.1)])
    >>> round(slope, 3), round(error, 3)
    (-0.104, 0.01)
    """
    weights = np.array([(_ERRORS / (each.high - each.low)) ** 2 for each in slopes])
    slope = np.average([each.slope for each in slopes], weights=weights)
    return float(slope), float(weights.sum() ** -0.5)
