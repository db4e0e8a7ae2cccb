"""Predictions with their uncertainty: of the mean, of a new response, of class probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from moestat.base.door import doors
from moestat.base.types import FloatArray
from moestat.base.validate import real_in
from moestat.estimation.fit.delta import gradients, normal_reach
from moestat.model.family import Family
from moestat.model.quantiles import mixture_quantile
from moestat.solvers.groups import group_sums
from moestat.solvers.problem import Rows
from moestat.solvers.rules import BELOW_ONE, TINY, ZERO_CURVATURE

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Prediction",
    "distribution",
    "expert_log_densities",
    "extrapolation",
    "mixed_mean",
    "predict_with_errors",
    "quantile",
    "variance",
]

_TELLING = (-100.0, 300.0)
"""Range of the predictors of positive means and of shares; others are moved to its ends."""
_OUT_OF_SPAN = 1e-5
"""Smallest distance of an input from the span of the data, in standard deviations, that counts."""

_AT_END = 1e-3
"""Distance from the end of its range within which a share or a mean of counts is at the end."""


@doors
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
        Standard errors; infinite if the data do not determine the mean or probability.
    noise : float or None
        Variance of the errors of a regression function.
    index : pandas.Index, optional
        Labels of the rows.
    labels : sequence, optional
        Labels of the classes; by default their numbers from 1.
    extrapolation : ndarray of shape (n,), optional
        How far outside of the data of the fit each row lies, see `extrapolation`.
    untold : ndarray of bool of the shape of `predicted`, optional
        Whether each prediction depends on parameters whose maximum lies at infinity, so that its
        standard error has no meaning.
    profiled : callable, optional
        ``profiled(alpha, rows)``: profile likelihood intervals of such predictions, with the shape
        of `predicted` at these rows and 2, or None if there are none.
    quantiles : callable, optional
        ``quantiles(q)``: quantiles (n,) of a new response if they do not depend on the inputs
        alone, as for rows of known groups.
    """

    family: Family = field(repr=False)
    params: FloatArray = field(repr=False)
    X: FloatArray = field(repr=False)
    predicted: FloatArray
    se: FloatArray
    noise: float | None = field(default=None, repr=False)
    index: pd.Index | None = field(default=None, repr=False)
    labels: Sequence[object] | None = field(default=None, repr=False)
    extrapolation: FloatArray | None = field(default=None, repr=False)
    untold: np.ndarray | None = field(default=None, repr=False)
    profiled: Callable[[float, FloatArray], FloatArray | None] | None = field(
        default=None, repr=False
    )
    quantiles: Callable[[float], FloatArray] | None = field(default=None, repr=False)

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Intervals of level ``1 - alpha`` for the mean (n, 2) or the probabilities (n, K, 2).

        Intervals of probabilities, and of means between two limits, are computed on the logit
        scale, and intervals of positive means on the log scale, so that they contain only possible
        values.

        If the maximum lies at infinity, as for a level of a factor with only counts of 0, a model
        with one expert has profile likelihood intervals: ``[0, 1.92 / n]`` for n such counts.
        With several experts, or with three or more classes, the interval is the whole range of
        possible values if the estimate is within 1e-3 of a limit of this range.
        """
        intervals = self._by_errors(alpha)
        if self.untold is None or not self.untold.any():
            return intervals
        rows = self.untold if self.untold.ndim == 1 else self.untold.any(axis=1)
        other = None if self.profiled is None else self.profiled(alpha, self.X[rows])
        if other is not None:
            intervals[rows] = other
            return intervals
        low, high = _support(self.family, self.params, self.X)
        intervals[
            self.untold & (np.minimum(self.predicted - low, high - self.predicted) < _AT_END)
        ] = (
            low,
            high,
        )
        return intervals

    def _by_errors(self, alpha: float) -> FloatArray:
        half = normal_reach(alpha) * self.se
        low, high = _support(self.family, self.params, self.X)
        sides = np.array([-1.0, 1.0])
        if not np.isfinite(low):
            return self.predicted[..., None] + half[..., None] * sides
        above = np.maximum(self.predicted - low, TINY)
        if not np.isfinite(high):
            with np.errstate(over="ignore"):
                return low + above[..., None] * np.exp((half / above)[..., None] * sides)
        p = np.clip(above / (high - low), TINY, BELOW_ONE)
        move = (half / (high - low) / (p * (1.0 - p)))[..., None] * sides
        return low + (high - low) * expit((np.log(p) - np.log1p(-p))[..., None] + move)

    @property
    def _has_new_responses(self) -> bool:
        """Whether new responses have a known distribution, which includes numbers of trials."""
        return self.quantiles is not None or self.family.likelihood.with_trials is None

    def prediction_interval(self, alpha: float = 0.05) -> FloatArray:
        """Intervals (n, 2) that contain a new response with probability ``1 - alpha``.

        The ends are the quantiles ``alpha / 2`` and ``1 - alpha / 2`` of the fitted density at each
        input.  The uncertainty of the parameters is not included.

        Raises
        ------
        ValueError
            If the response is a class, or numbers of trials are not known.
        """
        level = real_in("alpha", alpha, 0.0, 1.0, open_low=True)
        if self.predicted.ndim > 1:
            raise ValueError("a class has no prediction interval; use conf_int")
        known = self.quantiles
        if not self._has_new_responses:
            raise ValueError(
                "trials: numbers of trials differ between rows of the fit, and X does not have"
                " them; give trials= to get_prediction"
            )
        sides = [
            quantile(self.family, self.params, self.X, q, self.noise) if known is None else known(q)
            for q in (level / 2, 1 - level / 2)
        ]
        return np.stack(sides, axis=-1)

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """A pandas frame, one row per input, with statsmodels' column names.

        Columns are ``mean, mean_se, mean_ci_lower, mean_ci_upper, obs_ci_lower, obs_ci_upper``;
        for classes they are ``p[s], se[s], ci_lower[s], ci_upper[s]`` for each class label s.  The
        last two need numbers of trials, where rows have them, and are left out without them.  If
        some rows lie outside the data of the fit, so that their predictions depend on the model
        alone, there is a last column ``extrapolation``, which is above 1 for these rows
        (`moestat.estimation.inference.prediction.extrapolation`).  The index is that of the frame
        of inputs.
        """
        import pandas as pd

        ci = self.conf_int(alpha)
        far = self.extrapolation
        outside = {} if far is None or (far <= 1.0).all() else {"extrapolation": far}
        if self.predicted.ndim == 1:
            columns = {
                "mean": self.predicted,
                "mean_se": self.se,
                "mean_ci_lower": ci[:, 0],
                "mean_ci_upper": ci[:, 1],
            }
            if self._has_new_responses:
                new = self.prediction_interval(alpha)
                columns |= {"obs_ci_lower": new[:, 0], "obs_ci_upper": new[:, 1]}
            return pd.DataFrame({**columns, **outside}, index=self.index)
        parts = {}
        count = self.predicted.shape[1]
        for s, name in enumerate(range(1, count + 1) if self.labels is None else self.labels):
            label = f"[{name}]"
            parts[f"p{label}"] = self.predicted[:, s]
            parts[f"se{label}"] = self.se[:, s]
            parts[f"ci_lower{label}"] = ci[:, s, 0]
            parts[f"ci_upper{label}"] = ci[:, s, 1]
        return pd.DataFrame({**parts, **outside}, index=self.index)


@np.errstate(all="ignore")
def predict_with_errors(
    family: Family,
    theta: FloatArray,
    errors: Callable[[FloatArray], FloatArray],
    X: ArrayLike,
    noise: float | None = None,
    index: pd.Index | None = None,
    labels: Sequence[object] | None = None,
    outside: FloatArray | None = None,
    open_: Callable[[FloatArray], np.ndarray] | None = None,
    profiled: Callable[[float, FloatArray], FloatArray | None] | None = None,
) -> Prediction:
    """Conditional means or class probabilities with standard errors, in memory O(n)."""
    X = np.asarray(X, dtype=np.float64)
    classes = family.likelihood.support is not None
    with np.errstate(over="ignore", invalid="ignore"):
        predicted = np.asarray((family.probabilities if classes else family.mean)(theta, X))
        wild = np.flatnonzero(~np.isfinite(predicted.reshape(len(X), -1)).all(axis=1))
        if wild.size:
            raise ValueError(
                f"X: the mean at row {wild[0]} is beyond the range of float64: it lies too far"
                " outside of the data of the fit"
            )
        se, untold = np.empty_like(predicted), np.zeros(predicted.shape, dtype=bool)
        ends = classes or family.likelihood.counts
        for rows, _, gradient in gradients(family, theta, X):
            errors_of_rows = errors(gradient.reshape(theta.size, -1).T).reshape(gradient.shape[1:])
            se[rows] = errors_of_rows.T if classes else errors_of_rows[0]
            if open_ is not None and ends:
                lost = open_(gradient.reshape(theta.size, -1).T).reshape(gradient.shape[1:])
                untold[rows] = (lost & np.isfinite(errors_of_rows)).T.reshape(untold[rows].shape)
    se[np.isnan(se)] = np.inf
    low, high = _support(family, theta, X)
    return Prediction(
        family,
        theta,
        X,
        predicted,
        np.minimum(se, (high - low) / 2),
        noise,
        index,
        labels,
        outside,
        untold,
        profiled,
    )


@np.errstate(all="ignore")
def extrapolation(
    family: Family, theta: FloatArray, rows: FloatArray, weight: FloatArray, X: FloatArray
) -> FloatArray:
    """Leverage of inputs over the largest leverage of a row of the fit, shape (m,).

    Within each expert leverage is ``x' (sum_i w_i pi(x_i) x_i x_i')^-1 x``, with an intercept, over
    the rows as the gate shares them out; it is averaged over experts by the gate at x.  Above 1 an
    input is further from the data, as the fit divides them up, than any of them from the others; it
    is infinite where the data do not tell a direction.

    For one expert this is what Montgomery, Peck and Vining (2012, Sec. 3.8) call hidden
    extrapolation.
    """
    used = weight > 0.0
    rows, weight = rows[used], weight[used]
    centre, spread = rows.mean(axis=0), rows.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    chance = family.gate_probabilities(theta, rows)
    row_features, new_features = _features(rows, centre, spread), _features(X, centre, spread)
    row_leverage, new_leverage = np.zeros(len(rows)), np.zeros(len(X))
    for share, elsewhere in zip(chance.T, family.gate_probabilities(theta, X).T, strict=True):
        values, vectors = np.linalg.eigh(
            row_features.T @ (row_features * (weight * share)[:, None])
        )
        known = values > ZERO_CURVATURE * max(float(values[-1]), TINY)
        root = vectors[:, known] / np.sqrt(values[known])
        row_leverage += share * np.sum((row_features @ root) ** 2, axis=1)
        leverage = np.sum((new_features @ root) ** 2, axis=1)
        untold = np.abs(new_features @ vectors[:, ~known]).max(axis=1, initial=0.0) > _OUT_OF_SPAN
        new_leverage += np.where(
            elsewhere > 0.0, elsewhere * np.where(untold, np.inf, leverage), 0.0
        )
    return new_leverage / row_leverage.max()


def _features(X: FloatArray, centre: FloatArray, spread: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(X)), (X - centre) / spread])


def _support(family: Family, theta: FloatArray, X: FloatArray) -> tuple[float, float]:
    """Least and largest value that means, or probabilities, can have."""
    if family.likelihood.support is not None:
        return 0.0, 1.0
    if family.likelihood.law is None:
        return -np.inf, np.inf
    low, high = family.likelihood.law(_predictors(family, theta, X[:1])).support()
    return float(np.min(low)), float(np.max(high))


@np.errstate(all="ignore")
def quantile(
    family: Family,
    theta: FloatArray,
    X: FloatArray,
    q: float,
    noise: float | None = None,
    shares: FloatArray | None = None,
) -> FloatArray:
    """The q-quantile (n,) of the fitted density at each input (n, d).

    In this module `shares` (k, n) are probabilities of the experts in place of the gate's.
    """
    if family.likelihood.support is not None:
        raise ValueError("classes have no quantiles; which='proba' gives their probabilities")
    if q in (0.0, 1.0) and family.likelihood.with_trials is not None:
        # From 0 to the number of trials of each row.
        law = family.likelihood.law
        assert law is not None
        ends = np.broadcast_arrays(*law(_predictors(family, theta, X)).support())
        return np.broadcast_to(np.max(np.atleast_2d(ends[int(q)]), axis=0), len(X)) * 1.0
    if q in (0.0, 1.0):
        return np.full(len(X), _support(family, theta, X)[int(q)])
    return mixture_quantile(
        q, *_components(family, theta, X, noise, shares), family.likelihood.counts
    )


@np.errstate(all="ignore")
def variance(
    family: Family,
    theta: FloatArray,
    X: FloatArray,
    noise: float | None = None,
    shares: FloatArray | None = None,
) -> FloatArray:
    """The variance (n,) of a response at each input (n, d), within and between experts."""
    if family.likelihood.support is not None:
        raise ValueError("classes have no variance; which='proba' gives their probabilities")
    weight, mean, deviation, _ = _components(family, theta, X, noise, shares)
    centre = np.sum(weight * mean, axis=0)
    return np.sum(weight * (deviation**2 + (mean - centre) ** 2), axis=0)


@np.errstate(all="ignore")
def distribution(
    family: Family,
    theta: FloatArray,
    X: FloatArray,
    y: FloatArray,
    noise: float | None = None,
    shares: FloatArray | None = None,
) -> FloatArray:
    """The probability (n,) of a response of at most y (n,) at each input (n, d)."""
    if family.likelihood.support is not None:
        raise ValueError(
            "classes have no distribution function; which='proba' gives their probabilities"
        )
    weight, _, _, cumulative = _components(family, theta, X, noise, shares)
    return np.sum(weight * cumulative(y), axis=0)


def mixed_mean(family: Family, theta: FloatArray, X: FloatArray, shares: FloatArray) -> FloatArray:
    """Means (n,), or probabilities of classes (n, K), with given probabilities of the experts."""
    design = np.ascontiguousarray(X.T)
    likelihood = family.likelihood
    if likelihood.support is None:
        assert likelihood.spread is not None
        return np.sum(shares * likelihood.spread(family.predictors(theta, design))[0], axis=0)
    columns = [
        np.sum(shares * np.exp(expert_log_densities(family, theta, design, s)), axis=0)
        for s in likelihood.support(family.n_classes)
    ]
    return np.stack(columns, axis=1)


def expert_log_densities(
    family: Family, theta: FloatArray, X: FloatArray, y: ArrayLike
) -> FloatArray:
    """Log-density (k, n) of responses (n,), or of one for all, under each expert; X (d, n)."""
    response = np.full(X.shape[1], y) if np.ndim(y) == 0 else np.asarray(y)
    rows = Rows(X, response, np.ones(X.shape[1]), begin=np.arange(X.shape[1]))
    sums = group_sums(family, theta, rows, 0)
    with np.errstate(divide="ignore"):
        return sums.log_density + np.log(sums.posterior) - np.log(sums.prior)


def _predictors(family: Family, theta: FloatArray, X: FloatArray) -> FloatArray:
    """Predictors (k, c, n); those of a likelihood with a link are moved into `_TELLING`."""
    eta = family.predictors(theta, np.ascontiguousarray(X.reshape(len(X), -1).T))
    return eta if family.likelihood.link is None else np.clip(eta, *_TELLING)


Components = tuple[FloatArray, FloatArray, FloatArray, Callable[[FloatArray], FloatArray]]


def _components(
    family: Family,
    theta: FloatArray,
    X: FloatArray,
    noise: float | None,
    shares: FloatArray | None = None,
) -> Components:
    """Weights, means, standard deviations (k, n) and distributions of the components."""
    if family.is_regression:
        mean = np.atleast_2d(family.mean(theta, X))
        deviation = np.full_like(mean, np.sqrt(noise or 0.0))
        return np.ones_like(mean), mean, deviation, lambda y: ndtr((y - mean) / deviation)
    weight = family.gate_probabilities(theta, X).T if shares is None else shares
    eta = _predictors(family, theta, X)
    moments = family.likelihood.moments or family.likelihood.spread
    assert moments is not None
    mean, deviation = moments(eta)
    deviation = np.broadcast_to(deviation, mean.shape)
    if family.likelihood.law is None:
        return weight, mean, deviation, lambda y: ndtr((y - mean) / deviation)
    law = family.likelihood.law(eta)

    def cumulative(y: FloatArray) -> FloatArray:
        # Beyond the range of float64 only the side of the mean is known.
        probability = law.cdf(y)
        return np.where(np.isnan(probability), y >= mean, probability)

    return weight, mean, deviation, cumulative
