"""Regressions of log losses: weights, least squares with HC3 errors, bootstrap of a linear form."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from moestat.base.types import FloatArray, IntArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_SMALLEST_SHARE = 1e-6  # of the pooled variance; replicates that agree exactly have more than none
_CHUNK = 2_000_000  # entries of a block of bootstrap indices
# Replicates at one n, whose resampled sum is normal to within the Monte Carlo error: the skewness
# 1.5 of the logarithm of a chi-square variable moves its 2.5% quantile by .03 standard deviations,
# and that of 1000 resamples has an error of .08.
_MANY = 500
_LEVEL = 0.95


@dataclass(frozen=True)
class Groups:
    """Values (N,) in groups, the replicates at one n, with sums that regressions share."""

    values: FloatArray  # (N,)
    group: IntArray  # (N,): group of each value
    count: IntArray  # (G,): number of values of each group
    mean: FloatArray  # (G,): their mean
    spread: FloatArray  # (G,): sum of their squared deviations from the mean

    @classmethod
    def of(cls, values: FloatArray, group: IntArray) -> Groups:
        """The values of groups 0, 1, ..., none of which is empty."""
        count = np.bincount(group)
        mean = np.bincount(group, weights=values) / count
        squares = np.bincount(group, weights=(values - mean[group]) ** 2)
        spread = np.asarray(squares, dtype=np.float64)
        return cls(values, group, count, mean, spread)


def precision_weights(log_losses: Groups, log_n: FloatArray) -> FloatArray:
    """One over the variance of log loss among replicates, taken to be a power of n.

    A variance for each n by itself would follow its few replicates, and so would the slope: the
    intervals would be too short.  The power is shrunk towards 0 by what it owes to chance.
    """
    from scipy.special import digamma, polygamma

    count, squares = log_losses.count, log_losses.spread
    df = count - 1.0
    known = df > 0
    pooled = squares.sum() / max(df.sum(), 1.0)
    if known.sum() < 2 or not pooled > 1e-24 * (1.0 + np.max(np.abs(log_losses.values))) ** 2:
        return np.ones(log_losses.values.size)
    half = df[known] / 2
    # The logarithm of a chi-square variable has these moments.
    variance = np.maximum(squares[known] / df[known], _SMALLEST_SHARE * pooled)
    log_variance = np.log(variance) - digamma(half) + np.log(half)
    weight = 1.0 / polygamma(1, half)
    x = (np.bincount(log_losses.group, weights=log_n) / count)[known]
    x = x - np.average(x, weights=weight)
    information = weight @ x**2
    power = (weight * x) @ log_variance / information
    power *= max(0.0, 1.0 - 1.0 / (information * power**2)) if power else 0.0
    return np.exp(-power * (log_n - log_n.mean()))


def least_squares(
    design: FloatArray, y: Groups, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and their HC3 covariance, NaN where a point determines its own fit.

    Sums over the observations of a group, which share a row of the design (G, p) and a weight
    (G,), are all that enters.
    """
    count, mean = y.count, y.mean
    root = np.sqrt(weights * count)
    q, r = np.linalg.qr(root[:, None] * design)
    leverage = np.sum(q**2, axis=1) / count  # of one observation
    if np.max(leverage) > 1.0 - 1e-9:
        params = np.asarray(np.linalg.lstsq(root[:, None] * design, root * mean)[0], dtype=float)
        return params, np.full((design.shape[1],) * 2, np.nan)
    inverse = np.linalg.inv(r)
    params = inverse @ (q.T @ (root * mean))
    squares = y.spread + count * (mean - design @ params) ** 2
    linear = inverse @ q.T / root * weights  # params as a linear form of each group's sum
    covariance = linear * (squares / (1.0 - leverage) ** 2) @ linear.T
    return np.asarray(params, dtype=float), np.asarray(covariance, dtype=float)


def t_interval(estimate: float, error: float, df: float) -> tuple[float, float]:
    """95% interval by t quantiles; NaN without degrees of freedom."""
    from scipy.special import stdtrit  # importing scipy.stats takes .7 s

    reach = float(stdtrit(df, 0.5 + _LEVEL / 2)) * error if df > 0 else math.nan
    return (estimate - reach, estimate + reach)


def t_p_value(estimate: float, error: float, df: float) -> float:
    """Two-sided p-value of estimate = 0; NaN without an error or degrees of freedom."""
    from scipy.special import stdtr

    if math.isnan(error) or not df > 0:
        return math.nan
    if abs(estimate) <= 1e-9:  # rounding, for losses without noise
        return 1.0
    return float(2.0 * stdtr(df, -abs(estimate) / error)) if error > 0 else 0.0


def bootstrap(
    influence: FloatArray,
    log_losses: Groups,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Percentile interval of ``influence @ log_losses`` over replicates resampled within groups.

    Deviations from a group's mean are stretched by ``sqrt(R / (R - 1))``: R replicates resampled
    from themselves would vary too little by that factor.  The interval is stretched from normal
    to t quantiles, with Satterthwaite's degrees of freedom: few replicates do not know their own
    variance.  The second pair holds the Monte Carlo standard errors of the two ends.  The sum over
    a group of more than 500 replicates is drawn from the normal distribution with the moments that
    resampling gives it.
    """
    from scipy.special import ndtri, stdtrit

    count, group = log_losses.count, log_losses.group
    if n_bootstrap == 0 or np.min(count) < 2:
        return (math.nan, math.nan), (math.nan, math.nan)
    mean = log_losses.mean[group]
    log_loss = mean + (log_losses.values - mean) * np.sqrt(count / (count - 1.0))[group]
    if np.any(group[1:] < group[:-1]):
        order = np.argsort(group, kind="stable")
        group = group[order]
        influence = influence[order]
        log_loss = log_loss[order]
    first = np.concatenate([[0], np.cumsum(count)[:-1]])[group]
    size = count[group]
    mean = np.bincount(group, weights=log_loss) / count
    variance = np.bincount(group, weights=(log_loss - mean[group]) ** 2) / count
    slopes, is_small = np.zeros(n_bootstrap), size <= _MANY
    if not is_small.all():
        summed = np.bincount(group, weights=influence)[count > _MANY]
        squared = np.bincount(group, weights=influence**2)[count > _MANY]
        slopes += summed @ mean[count > _MANY]
        slopes += np.sqrt(squared @ variance[count > _MANY]) * rng.standard_normal(n_bootstrap)
    first = first[is_small]
    size = size[is_small]
    influence_of_small = influence[is_small]
    rows = max(1, _CHUNK // max(size.size, 1))
    for start in range(0, n_bootstrap if size.size else 0, rows):
        stop = min(start + rows, n_bootstrap)
        indices = first + (rng.random((stop - start, size.size)) * size).astype(np.int64)
        slopes[start:stop] += log_loss[indices] @ influence_of_small
    low, high = ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2)
    # The rank of a quantile has a binomial error; the quantiles two such errors away bracket it.
    spread = 2.0 * math.sqrt(low * high / n_bootstrap)
    ranks = np.clip([low - spread, low, low + spread, high - spread, high, high + spread], 0, 1)
    share = np.bincount(group, weights=(influence * (log_loss - _means(log_loss, group))) ** 2)
    df = share.sum() ** 2 / np.sum(share**2 / (count - 1.0)) if share.any() else np.inf
    stretch = float(stdtrit(df, high) / ndtri(high))
    centre = influence @ log_loss
    at = centre + stretch * (np.quantile(slopes, ranks) - centre)
    errors = ((at[2] - at[0]) / 4, (at[5] - at[3]) / 4)
    return (float(at[1]), float(at[4])), (float(errors[0]), float(errors[1]))


def plain(record: DataclassInstance) -> dict[str, object]:
    """Fields of a dataclass ready for JSON: tuples as lists, NaN as None."""

    def each(value: object) -> object:
        if isinstance(value, tuple):
            return [each(item) for item in value]
        return None if isinstance(value, float) and math.isnan(value) else value

    return {name: each(value) for name, value in asdict(record).items()}


def _means(values: FloatArray, group: IntArray) -> FloatArray:
    """For each value the mean of its group."""
    return (np.bincount(group, weights=values) / np.bincount(group))[group]
