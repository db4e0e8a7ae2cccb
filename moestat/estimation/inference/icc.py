"""The intraclass correlation: the share of the variance within an expert that groups have."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.fit.components import factor_index, random_design
from moestat.estimation.fit.delta import normal_reach
from moestat.estimation.inference.questions import sum_rows
from moestat.estimation.inference.random_effects import effects_of
from moestat.model.family import Family
from moestat.model.random_effects import RandomEffects, factors
from moestat.solvers.rows import Rows

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.fit.fitted import Fitted

__all__ = ["icc"]

_NO_SHARE = 1e-10
"""Share of the variance that counts as 0: that of a standard deviation of 1e-5 of the rows'."""


def icc(result: Fitted, alpha: float = 0.05) -> pd.DataFrame:
    """Compute the intraclass correlation of each expert, with errors and intervals.

    It is the share of the variance between groups in that within the expert, on the scale of the
    linear predictor: ``B / (B + W)``, the correlation of two rows of a group.  ``B`` is the
    variance of the random intercept; with random slopes, or of nested groups, it is the mean over
    the rows of the variance of all of their random effects.  ``W`` is the residual variance of
    normal responses, pi^2 / 3 of binomial ones, the variance of the logistic distribution, and
    ``log(1 + 1 / m)`` of Poisson ones, where ``m`` is the mean over the rows of the mean count.

    Parameters
    ----------
    alpha : float
        Intervals have level ``1 - alpha``.

    Returns
    -------
    DataFrame
        One row per expert, from 1, with the columns ``estimate``, ``std_error``, ``conf_low`` and
        ``conf_high``, without unit.  Errors are by the delta method from the covariance of the fit;
        intervals are normal for the logit.  A variance of 0 has neither.

    Raises
    ------
    ValueError
        If the fit has no random effects, `alpha` is not in (0, 1), or the rows are needed and were
        not stored.

    Notes
    -----
    Nakagawa and Schielzeth (2010), Sec. 3; Johnson (2014) for random slopes; Nakagawa, Johnson and
    Schielzeth (2017) for counts.  Rows enter means with their weights.  The row ``ICC`` of
    `variance_components` is that at inputs of 0, which differs with random slopes.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> who, t = np.repeat(np.arange(20), 4), np.tile(np.arange(4.0), 20)
    >>> y = t + np.sin(who) + 0.2 * np.cos(7.0 * np.arange(80))
    >>> result = moestat.fit("gaussian", t, y, groups=who, random="1", n_experts=1, rng=0)
    >>> result.icc().round(2).loc[1].tolist()
    [0.98, 0.01, 0.95, 0.99]
    """
    import pandas as pd

    theta, half = np.asarray(result.theta), normal_reach(alpha)
    effects = effects_of(result, "icc: ")
    between, between_slopes = _between(result, theta, effects)
    within, within_slopes = _within(result, theta, effects)
    share = between / (between + within)
    with np.errstate(all="ignore"):
        slopes = between_slopes / between[:, None] - within_slopes / within[:, None]
        error = np.sqrt(np.einsum("ip,pq,iq->i", slopes, result._covariance, slopes))
        logit = np.log(between) - np.log(within)
        ends = 1.0 / (1.0 + np.exp(-logit[:, None] - np.array([-half, half]) * error[:, None]))
    error, none = share * (1.0 - share) * error, share < _NO_SHARE
    share[none], error[none], ends[none] = 0.0, np.nan, np.nan
    columns = {
        **{"estimate": share, "std_error": error},
        **{"conf_low": ends[:, 0], "conf_high": ends[:, 1]},
    }
    from moestat.estimation.columns import EstimateTable

    return EstimateTable(columns, pd.Index(result.experts.keys, name="expert"))


def _between(
    result: Fitted, theta: FloatArray, effects: RandomEffects
) -> tuple[FloatArray, FloatArray]:
    """Mean variance (k,) of the random effects of a row, and its derivatives (k, P)."""
    family, index = result.family, factor_index(result.family)
    L = factors(effects, theta, index)
    moments = np.ones((1, 1))
    if effects.features != (0,):
        products, total = sum_rows(result, partial(_products, family))
        moments = products / total
    moved = moments @ L
    slopes = np.zeros((len(L), theta.size))
    for j in range(index.shape[1]):
        for f in range(j, int(effects.last[j])):
            slopes[range(len(L)), index[:, j] + effects.features[f]] = 2.0 * moved[:, f, j]
    return np.einsum("iab,iab->i", L, moved), slopes


def _products(family: Family, rows: Rows) -> tuple[FloatArray, float]:
    """Weighted sum (q, q) of the products of the rows' random design, and of the weights."""
    Z = random_design(family, rows.X.T)
    return (Z.T * rows.weight) @ Z, float(rows.weight.sum())


def _within(
    result: Fitted, theta: FloatArray, effects: RandomEffects
) -> tuple[FloatArray, FloatArray]:
    """Variance (k,) of a row within its group, on the predictor's scale, and derivatives (k, P)."""
    family = result.family
    k, base = family.n_experts, effects.base
    slopes = np.zeros((k, theta.size))
    if base is None or base.name == "gaussian":
        at = family.index[:, family.first_expert_channel + 1]
        variance = np.exp(theta[at])
        slopes[range(k), at] = variance
        return variance, slopes
    if base.name == "binomial":
        return np.full(k, np.pi**2 / 3.0), slopes
    if base.name != "poisson":
        raise ValueError(f"icc: not available for {base.name!r} responses with random effects")
    means, moved, total = sum_rows(result, partial(_mean_counts, family, theta, effects))
    mean = means / total
    # The derivative of log(1 + 1 / m) by log m is -1 / (1 + m).
    return np.log1p(1.0 / mean), -moved / means[:, None] / (1.0 + mean)[:, None]


def _mean_counts(
    family: Family, theta: FloatArray, effects: RandomEffects, rows: Rows
) -> tuple[FloatArray, FloatArray, float]:
    """Weighted sums of the mean counts (k,), of their derivatives (k, P), and of the weights."""
    index = factor_index(family)
    first = family.first_expert_channel
    Z, L = random_design(family, rows.X.T), factors(effects, theta, index)
    eta = family.predictors(theta, rows.X)[:, 0]
    moved = np.zeros((family.n_experts, theta.size))
    sums = np.empty(family.n_experts)
    for i in range(family.n_experts):
        scores = Z @ L[i]
        mean = rows.weight * np.exp(eta[i] + 0.5 * np.einsum("nj,nj->n", scores, scores))
        sums[i] = mean.sum()
        at, width = int(family.index[i, first]), int(family.width[first])
        moved[i, at] = sums[i]
        moved[i, at + 1 : at + width] = rows.X[: width - 1] @ mean
        by_factor = (Z.T * mean) @ scores
        for j in range(index.shape[1]):
            for f in range(j, int(effects.last[j])):
                moved[i, index[i, j] + effects.features[f]] = by_factor[f, j]
    return sums, moved, float(rows.weight.sum())
