"""Predictions with their uncertainty: of the mean, of a new response, of class probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import real_in
from moestat.estimation.inference.delta import gradients, standard_errors
from moestat.model.family import Family

__all__ = ["Prediction", "distribution", "predict_with_errors", "quantile", "variance"]


@dataclass(frozen=True)
class Prediction:
    """Predictions at inputs, with standard errors by the delta method.

    Parameters
    ----------
    family : Family
        The model.
    params : ndarray of shape (P,)
        The estimate.
    X : ndarray of shape (n, d)
        The inputs.
    predicted : ndarray of shape (n,) or (n, K)
        Conditional means, or probabilities of the classes.
    se : ndarray of the same shape
        Standard errors; NaN where a parameter without one matters.
    noise : float or None
        Variance of the errors of a regression function.
    index : pandas.Index, optional
        What the rows are called.
    labels : sequence, optional
        Labels of the classes; their numbers from 1 by default.
    """

    family: Family = field(repr=False)
    params: FloatArray = field(repr=False)
    X: FloatArray = field(repr=False)
    predicted: FloatArray
    se: FloatArray
    noise: float | None = field(default=None, repr=False)
    index: Any = field(default=None, repr=False)
    labels: Any = field(default=None, repr=False)

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Intervals of level ``1 - alpha`` for the mean (n, 2) or the probabilities (n, K, 2).

        Those of probabilities are made on the logit scale, so that they stay between 0 and 1.
        """
        half = _normal_quantile(alpha) * self.se
        if self.predicted.ndim == 1:
            return np.stack([self.predicted - half, self.predicted + half], axis=-1)
        p = np.clip(self.predicted, 1e-300, 1.0 - 1e-16)
        logit, half = np.log(p) - np.log1p(-p), half / (p * (1.0 - p))
        ends = np.stack([logit - half, logit + half], axis=-1)
        return 1.0 / (1.0 + np.exp(-ends))

    def prediction_interval(self, alpha: float = 0.05) -> FloatArray:
        """Where a new response lies with probability ``1 - alpha``, shape (n, 2).

        Quantiles ``alpha / 2`` and ``1 - alpha / 2`` of the fitted density at each input; the
        uncertainty of the parameters is not added.

        Raises
        ------
        ValueError
            If the response is a class.
        """
        level = real_in("alpha", alpha, 0.0, 1.0, open_low=True)
        if self.predicted.ndim > 1:
            raise ValueError("a class has no prediction interval; use conf_int")
        sides = [
            quantile(self.family, self.params, self.X, q, self.noise)
            for q in (level / 2, 1 - level / 2)
        ]
        return np.stack(sides, axis=-1)

    def summary_frame(self, alpha: float = 0.05) -> Any:
        """A pandas frame, one row per input, with statsmodels' column names.

        Columns are ``mean, mean_se, mean_ci_lower, mean_ci_upper, obs_ci_lower, obs_ci_upper``;
        for classes ``p[s], se[s], ci_lower[s], ci_upper[s]`` of each class s, by its label.  Rows
        have the index of the frame they were predicted for.
        """
        import pandas as pd

        ci = self.conf_int(alpha)
        if self.predicted.ndim == 1:
            new = self.prediction_interval(alpha)
            columns = {
                "mean": self.predicted,
                "mean_se": self.se,
                "mean_ci_lower": ci[:, 0],
                "mean_ci_upper": ci[:, 1],
                "obs_ci_lower": new[:, 0],
                "obs_ci_upper": new[:, 1],
            }
            return pd.DataFrame(columns, index=self.index)
        parts = {}
        count = self.predicted.shape[1]
        for s, name in enumerate(range(1, count + 1) if self.labels is None else self.labels):
            label = f"[{name}]"
            parts[f"p{label}"] = self.predicted[:, s]
            parts[f"se{label}"] = self.se[:, s]
            parts[f"ci_lower{label}"] = ci[:, s, 0]
            parts[f"ci_upper{label}"] = ci[:, s, 1]
        return pd.DataFrame(parts, index=self.index)


def predict_with_errors(
    family: Family,
    theta: FloatArray,
    covariance: FloatArray,
    X: Any,
    noise: float | None = None,
    index: Any = None,
    labels: Any = None,
) -> Prediction:
    """Conditional means or class probabilities with standard errors, in memory O(n).

    Parameters
    ----------
    family : Family
        The model.
    theta : ndarray of shape (P,)
        The estimate.
    covariance : ndarray of shape (P, P)
        Its covariance.
    X : ndarray of shape (n, d)
        Inputs.
    noise : float, optional
        Variance of the errors of a regression function.
    index, labels : optional
        Of `Prediction`.

    Examples
    --------
    >>> from moestat import family, fit
    >>> x = np.linspace(-1, 1, 50)
    >>> y = 1 + 2 * x + np.where(np.arange(50) % 2, 0.1, -0.1)
    >>> result = fit(family("gaussian", gate="softmax", n_experts=1), x, y, rng=0)
    >>> p = predict_with_errors(result.family, result.params, result.cov_params(), x[:1, None])
    >>> p.predicted.round(3).tolist(), p.se.round(4).tolist()
    ([-1.006], [0.0278])
    """
    X = np.asarray(X, dtype=np.float64)
    classes = family.likelihood.support is not None
    predicted = np.asarray((family.probabilities if classes else family.mean)(theta, X))
    scale, se = float(np.abs(predicted).max(initial=1.0)), np.empty_like(predicted)
    for rows, _, gradient in gradients(family, theta, X):
        errors = standard_errors(gradient, covariance, scale)
        se[rows] = errors.T if classes else errors[0]
    return Prediction(family, theta, X, predicted, se, noise, index, labels)


def quantile(
    family: Family, theta: FloatArray, X: FloatArray, q: float, noise: float | None = None
) -> FloatArray:
    """The q-quantile (n,) of the fitted density at each input (n, d)."""
    if family.likelihood.support is not None:
        raise ValueError("classes have no quantiles; which='proba' are their probabilities")
    if family.likelihood.law is not None:
        return _law_quantile(family, theta, X, q)
    return _mixture_quantile(q, *_components(family, theta, X, noise))


def variance(
    family: Family, theta: FloatArray, X: FloatArray, noise: float | None = None
) -> FloatArray:
    """The variance (n,) of a response at each input (n, d), within and between experts."""
    if family.likelihood.support is not None:
        raise ValueError("classes have no variance; which='proba' are their probabilities")
    weight, mean, deviation = _components(family, theta, X, noise)
    centre = np.sum(weight * mean, axis=0)
    return np.sum(weight * (deviation**2 + (mean - centre) ** 2), axis=0)


def distribution(
    family: Family, theta: FloatArray, X: FloatArray, y: FloatArray, noise: float | None = None
) -> FloatArray:
    """The probability (n,) of a response of at most y (n,) at each input (n, d)."""
    from scipy.special import ndtr

    if family.likelihood.support is not None:
        raise ValueError("classes have no distribution function; which='density' has theirs")
    if family.likelihood.law is not None:
        eta = family.predictors(theta, np.ascontiguousarray(X.T))
        share = family.gate_probabilities(theta, X).T
        return np.sum(share * family.likelihood.law(eta).cdf(y), axis=0)
    weight, mean, deviation = _components(family, theta, X, noise)
    return np.sum(weight * ndtr((y - mean) / deviation), axis=0)


def _normal_quantile(alpha: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf(1.0 - real_in("alpha", alpha, 0.0, 1.0, open_low=True) / 2.0))


def _components(
    family: Family, theta: FloatArray, X: FloatArray, noise: float | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, means and standard deviations of the components at each input, each (k, n)."""
    if family.is_regression:
        mean = np.atleast_2d(family.mean(theta, X))
        return np.ones_like(mean), mean, np.full_like(mean, np.sqrt(noise or 0.0))
    weight = family.gate_probabilities(theta, X).T
    design = np.ascontiguousarray(X.reshape(len(X), -1).T)
    assert family.likelihood.spread is not None
    mean, deviation = family.likelihood.spread(family.predictors(theta, design))
    return weight, mean, np.broadcast_to(deviation, mean.shape)


def _law_quantile(family: Family, theta: FloatArray, X: FloatArray, q: float) -> FloatArray:
    """The least response (n,) that is not exceeded with probability q at each input (n, d).

    By bisection between those of the experts, of counts to the count.
    """
    assert family.likelihood.law is not None
    weight = family.gate_probabilities(theta, X).T
    law = family.likelihood.law(
        family.predictors(theta, np.ascontiguousarray(X.reshape(len(X), -1).T))
    )
    counts, ends = family.likelihood.counts, law.ppf(q)
    low, high = ends.min(axis=0) - (1.0 if counts else 0.0), ends.max(axis=0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        middle = np.floor(middle) if counts else middle
        below = np.sum(weight * law.cdf(middle), axis=0) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def _mixture_quantile(
    q: float, weight: FloatArray, mean: FloatArray, deviation: FloatArray
) -> FloatArray:
    """The q-quantile of normal mixtures (k, n) by bisection, to 1e-12 of the spread."""
    from scipy.special import ndtr, ndtri

    ends = mean + deviation * ndtri(q)
    low, high = ends.min(axis=0), ends.max(axis=0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = np.sum(weight * ndtr((middle - mean) / deviation), axis=0) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)
