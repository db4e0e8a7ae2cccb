"""Predictions with standard errors for rows of groups that are in the fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from moestat.base.types import FloatArray, Labels
from moestat.estimation.data.groups import posterior_of_rows, shares_in_groups
from moestat.estimation.inference.prediction import Prediction, mixed_mean, quantile
from moestat.estimation.inference.random_effects import laws_of_groups, means_of_groups
from moestat.model.quantiles import mixture_quantile
from moestat.solvers.rules import DIFFERENCE_STEP

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = ["predict_known_groups"]


def _root(result: Fitted) -> FloatArray:
    """A root (P, q) of the covariance matrix of the parameters."""
    if result.robust is None:
        return result._matrix @ result.identified.determined
    values, vectors = np.linalg.eigh(result.robust)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def predict_known_groups(
    result: Fitted, plain: Prediction, labels: Labels, shares: FloatArray
) -> Prediction:
    """The prediction of rows by themselves, `plain`, as that of rows of labelled groups.

    `shares` (k, n) are the probabilities of their experts.  What the rows of a group say of its
    expert, and of its effects, depends on the parameters: the delta method goes through both, by
    central differences along the standard errors.  With random effects the variance of the
    group's own effects is added, mixed by the shares (Laird and Ware 1982, Sec. 3).
    """
    family, theta, X, rows = result.family, result.theta, plain.X, result.rows
    assert rows.groups is not None
    in_groups = np.isin(rows.groups, labels)
    if not in_groups.any():
        return plain
    data = replace(
        rows,
        X=rows.X[in_groups],
        y=rows.y[in_groups],
        weight=rows.weight[in_groups],
        groups=rows.groups[in_groups],
        index=None,
        kept=None,
        columns=(),
    )
    effects = family.likelihood.effects is not None
    if effects and family.likelihood.name != "gaussian":
        raise ValueError(
            "groups: with random effects, standard errors of predictions for known groups are"
            " available only for normal responses; result.predict has the predictions without"
            " standard errors"
        )

    def predicted(theta: FloatArray) -> FloatArray:
        posterior = posterior_of_rows(family, theta, data)
        shares, _ = shares_in_groups(family, theta, data, X, labels, posterior)
        if effects:
            return means_of_groups(family, theta, data, X, labels, shares)
        return mixed_mean(family, theta, X, shares)

    value, variance = predicted(theta), np.zeros(plain.predicted.shape)
    for column in _root(result).T:
        up, down = (
            predicted(theta + side * column) for side in (DIFFERENCE_STEP, -DIFFERENCE_STEP)
        )
        variance += ((up - down) / (2.0 * DIFFERENCE_STEP)) ** 2
    ends = partial(quantile, family, theta, X, shares=shares)
    if effects:
        mean, spread, nu = laws_of_groups(family, theta, data, X, labels)
        variance = variance + np.sum(shares * spread, axis=0)
        deviation = np.sqrt(spread + nu)
        ends = partial(
            mixture_quantile,
            weight=shares,
            mean=mean,
            deviation=deviation,
            cumulative=lambda y: ndtr((y - mean) / deviation),
        )
    se = np.where(np.isfinite(plain.se), np.sqrt(variance), np.inf)
    return replace(
        plain, predicted=value, se=se, untold=None, profiled=None, quantiles=lambda q: ends(q=q)
    )
