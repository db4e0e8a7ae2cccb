"""Predictions for the rows of a fit, or for new rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import Encoded, FloatArray, TableLike
from moestat.base.validate import (
    as_numbers,
    did_you_mean,
    real_in,
    short,
)
from moestat.base.warnings import ExtrapolationWarning, warn_caller
from moestat.estimation.data.data import without_rows
from moestat.estimation.data.groups import (
    shares_in_groups,
)
from moestat.estimation.data.rows import (
    read_groups_of_new,
)
from moestat.estimation.fit.delta import of_experts
from moestat.estimation.inference.known_groups import predict_known_groups
from moestat.estimation.inference.prediction import (
    Prediction,
    distribution,
    expert_log_densities,
    extrapolation,
    mixed_mean,
    predict_with_errors,
    quantile,
    variance,
)
from moestat.estimation.inference.profile import intervals_of_means
from moestat.estimation.inference.random_effects import means_of_groups
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.table import (
    check_aligned,
)
from moestat.estimation.results.rows_of_fit import RowsOfFit, UnknownTrialsError
from moestat.estimation.results.source_predictions import predict_to
from moestat.estimation.rules import DOUBT
from moestat.model.censoring import bounds_of

__all__ = ["Predicting"]

_OF_RESPONSE = ("variance", "quantile")
"""Predictions that depend on numbers of trials."""


_KINDS = ("mean", "class", "proba", "experts", "gate", "variance", "quantile", "cdf", "density")


@doors
class Predicting(RowsOfFit):
    """Methods of `MoEResults`: predictions, with errors and intervals."""

    def _without_rows(self) -> Self:
        """The fit without the rows that it holds."""
        if self.data is None or not self.has_rows:
            return self
        return replace(self, data=without_rows(self.data))

    def predict(
        self,
        X: Any = None,
        which: str | None = None,
        *,
        y: ArrayLike | TableLike | None = None,
        q: float | Sequence[float] | FloatArray = 0.5,
        groups: ArrayLike | None = None,
        trials: ArrayLike | None = None,
        to: str | Path | None = None,
    ) -> Any:
        """Predict the conditional mean or the most probable class, or another quantity.

        Parameters
        ----------
        X : array_like or table of shape (n, d), optional
            Inputs; by default those of the fit.
        which : str, optional
            "mean": the conditional mean of y (n,); "class": the most probable label (n,);
            "proba": class probabilities (n, K); "experts": the mean of each expert (n, k), or the
            probabilities of its classes (n, k, K); "gate": the probability of each expert (n, k);
            "variance": the conditional variance of y (n,);
            "quantile": quantiles of y (n,) or (n, m); "cdf": the probability that a response is
            at most y (n,); "density": the density, or probability, of y (n,).
        y : array_like of shape (n,), or scalar, optional
            Responses, for "cdf" and "density"; by default those of the fit.
        q : float or sequence of float
            Levels of the quantiles, between 0 and 1.
        groups : array_like of shape (n,), optional
            In a fit with groups: the label of the group of each row.  Experts are then weighted by
            their posterior probabilities given the rows of this group in the fit.  Without labels,
            or for a group that is not in the fit, they are weighted by the gate.  With random
            effects, the predicted effects of the group are added within each expert.
        trials : int or array_like of shape (n,), optional
            For "variance" and "quantile" of rows with numbers of trials of their own: these
            numbers; by default those of the fit, or of the columns of the response in X.  The mean
            and the variance are then those of the share of successes, and quantiles, "cdf" and
            "density" those of the number of successes.
        to : str or Path, optional
            A folder for the predictions, which are written as Parquet, one file for each part of X.
            X may then be a source such as a folder of Parquet files, see `moestat.fit_formula`.
            The files have the order and the index of the source.  If the call is stopped, repeat
            it: it continues with the files that are missing.

        Returns
        -------
        ndarray, series or frame
            The predictions, with the index of X if it is a table; or the folder `to`.

        Raises
        ------
        ValueError
            If `which` is unknown or not available for this likelihood, or the columns of X differ
            from those of the fit.

        Examples
        --------
        >>> import numpy as np, pandas as pd, moestat
        >>> data = pd.DataFrame({"age": np.linspace(-1, 1, 50)})
        >>> y = data.age + np.sin(7 * data.age)
        >>> result = moestat.fit("gaussian", data, y, n_experts=1, rng=0)
        >>> new = pd.DataFrame({"age": [0.0, 0.5]}, index=["Ann", "Bob"])
        >>> result.predict(new).index.tolist(), result.predict(new, "quantile", q=[0.1, 0.9]).shape
        (['Ann', 'Bob'], (2, 2))
        """
        classes = self.family.likelihood.support is not None
        kind = which or ("class" if classes else "mean")
        if kind not in _KINDS:
            raise ValueError(
                f"which must be one of {', '.join(_KINDS)}, got {short(which)}"
                f"{did_you_mean(which, _KINDS)}"
            )
        if to is not None:
            of_trials = self.family.likelihood.with_trials is not None and kind in _OF_RESPONSE
            if y is not None or groups is not None or kind in ("cdf", "density") or of_trials:
                raise ValueError(
                    "to: only predictions that depend on inputs alone can be written to files;"
                    " leave out y and groups, and quantiles and variances of numbers of successes"
                )
            return predict_to(self, self._without_rows().predict, X, to, kind, q)
        if trials is not None and kind not in _OF_RESPONSE:
            raise ValueError(
                f"trials: {kind!r} does not depend on numbers of trials, or has them with y;"
                f" they are for {' and '.join(_OF_RESPONSE)}"
            )
        if self._responses and kind not in ("gate", "density"):
            columns = self._columns(X, y)
            return self._beside(
                X,
                [
                    response.predict(X, which, y=column, q=q, groups=groups, trials=trials)
                    for response, column in zip(self._responses, columns, strict=True)
                ],
            )
        if classes != (kind in ("class", "proba")) and kind in ("class", "proba", "mean"):
            raise ValueError(
                f"which = {kind!r} is not available for the {self.family.likelihood.name} response"
            )
        effects = self.family.likelihood.effects is not None
        if groups is not None and effects and kind not in ("mean", "gate"):
            raise ValueError(
                "groups: with random effects means of known groups are predicted, not their"
                f" {kind}; leave them out for a row of any group"
            )
        if groups is not None and kind == "experts":
            raise ValueError(
                "groups: the means of the experts do not depend on groups; leave groups out"
            )
        if kind in ("cdf", "density"):
            return self._at_responses(kind, X, y, groups)
        inputs = self._inputs(X)
        family, theta, matrix = self.family, self.theta, inputs.matrix
        experts = self.experts.keys
        shares = self._shares_of(inputs, X, groups)
        if kind == "gate":
            chances = family.gate_probabilities(theta, matrix) if shares is None else shares.T
            return inputs.like(chances, experts)
        if kind == "experts":
            value = of_experts(family, theta, matrix)[1]
            return inputs.like(np.moveaxis(value, 2, 0) if classes else value[:, 0].T, experts)
        if kind in _OF_RESPONSE:
            y = self._read_trials(X, inputs, trials)
            return self._of_response(kind, inputs, q, shares, y)
        if shares is not None and family.likelihood.effects is not None:
            labels = read_groups_of_new(self.rows, X, groups, len(matrix))
            value = means_of_groups(family, theta, self.rows, matrix, labels, shares)
        elif shares is not None:
            value = mixed_mean(family, theta, matrix, shares)
        else:
            value = (family.probabilities if classes else family.mean)(theta, matrix)
        if kind == "mean":
            if X is not None:
                self._warn_of_wild(value, inputs)
            return inputs.like(value, self._response)
        if kind == "proba":
            return inputs.like(value, self._labels)
        return inputs.like(np.asarray(self._labels)[np.argmax(value, axis=1)], self._response)

    def _shares_of(
        self, inputs: Inputs, X: ArrayLike | TableLike | None, groups: ArrayLike | None
    ) -> FloatArray | None:
        """Probabilities (k, n) of the experts of rows of known groups; None without groups."""
        if groups is None:
            return None
        rows, n = self.rows, inputs.design.shape[1]
        if rows.groups is None:
            raise ValueError(
                "groups: the fit has no groups; fit with groups= or by 'y ~ x | z | id'"
            )
        check_aligned({"X": inputs.table, "groups": groups})
        labels = read_groups_of_new(rows, X, groups, n)
        arguments = self.family, self.theta, rows, inputs.matrix, labels, self._shares.T
        shares, known = shares_in_groups(*arguments)
        if not known.all():
            new = np.unique(labels[~known])
            warn_caller(
                f"groups: {new.size} of {np.unique(labels).size} groups, such as"
                f" {new[0].item()!r}, are not in the fit; the gate alone gives the probabilities of"
                " their experts",
                ExtrapolationWarning,
            )
        return shares

    def _of_response(
        self,
        kind: str,
        inputs: Inputs,
        q: float | Sequence[float] | FloatArray,
        shares: FloatArray | None,
        y: Encoded | None,
    ) -> Any:
        """Variances (n,), or quantiles (n,) or (n, m).

        Encoded responses y, if given, hold the number of trials of each row.
        """
        family, theta, matrix = self.family, self.theta, inputs.matrix
        family, unit = (family, 1.0) if y is None else (self._at_rows(y), np.imag(y))
        if kind == "variance":
            value = variance(family, theta, matrix, self._noise, shares)
            return inputs.like(value / unit**2)
        levels = np.atleast_1d(as_numbers("q", q))
        for level in levels:
            real_in("q", float(level), 0.0, 1.0)
        sides = [
            quantile(family, theta, matrix, float(each), self._noise, shares) for each in levels
        ]
        if np.ndim(q) == 0:
            return inputs.like(sides[0], self._response)
        return inputs.like(np.column_stack(sides), levels.tolist())

    def _at_responses(
        self,
        kind: str,
        X: ArrayLike | TableLike | None,
        y: Any,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Distribution function or density (n,) at responses."""
        if y is not None and np.ndim(y) == 0:
            y = np.full(self._inputs(X).design.shape[1], y)
        inputs, rows = self._sample(X, y)
        shares = self._shares_of(inputs, X, groups)
        if kind == "cdf":
            family, response = self.family, self.family.likelihood.decode(rows.y)
            if "censored" in family.likelihood.options:
                low, high = bounds_of(response)
                if np.any(low != high):
                    raise ValueError(
                        "y: some responses are censored, and the distribution function needs"
                        " known values; give y=, one number or one for each row"
                    )
                response = low
            if family.likelihood.with_trials is not None:
                family, response = self._at_rows(rows.y), np.real(rows.y)
            return inputs.like(
                distribution(family, self.theta, inputs.matrix, response, self._noise, shares)
            )
        if shares is not None:
            log_densities = expert_log_densities(self.family, self.theta, rows.X, rows.y)
            return inputs.like(np.sum(shares * np.exp(log_densities), axis=0))
        return inputs.like(np.exp(self._log_density(rows)))

    def predict_proba(self, X: ArrayLike | TableLike | None = None) -> Any:
        """Predict class probabilities (n, K) at inputs X (n, d), in the order of the labels."""
        if self.family.likelihood.support is None:
            raise ValueError(
                f"the {self.family.likelihood.name} likelihood has no class probabilities"
            )
        return self.predict(X, "proba")

    def get_prediction(
        self,
        X: ArrayLike | TableLike | None = None,
        *,
        groups: ArrayLike | None = None,
        trials: ArrayLike | None = None,
    ) -> Prediction:
        """Predict at inputs X (n, d), with standard errors and intervals.

        Parameters
        ----------
        X : array_like or table of shape (n, d), optional
            Inputs; those of the fit by default.
        groups : array_like of shape (n,), optional
            In a fit with groups: the label of the group of each row, as in `predict`.  The standard
            errors take into account that the posterior probabilities of the experts given the group
            depend on estimated parameters, and, with random effects, that the effects of the group
            are predicted.
        trials : int or array_like of shape (n,), optional
            Numbers of trials of the rows, as in `predict`, for intervals of the share of successes
            of a new response.  Without them, where neither the fit nor X has them, there are
            intervals of means only.

        Returns
        -------
        Prediction
            Conditional means, or class probabilities; `summary_frame` returns them as a table.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> result.get_prediction([0.0]).conf_int().shape
        (1, 2)
        """
        self._check_one("get_prediction")
        inputs = self._some(X)
        prediction = predict_with_errors(
            self.family,
            self.theta,
            self._errors_of,
            inputs.matrix,
            self._noise,
            inputs.index,
            self._labels,
            self._extrapolation(inputs.matrix),
            self._open,
            self._intervals_of_means,
        )
        if X is not None:
            self._warn_of_wild(prediction.predicted, inputs)
        shares = self._shares_of(inputs, X, groups)
        if shares is not None:
            labels = read_groups_of_new(self.rows, X, groups, len(inputs.matrix))
            prediction = predict_known_groups(self, prediction, labels, shares)
        if self.family.likelihood.with_trials is None and trials is None:
            return prediction
        return replace(prediction, quantiles=self._quantiles_of_shares(X, inputs, trials, shares))

    def _quantiles_of_shares(
        self,
        X: ArrayLike | TableLike | None,
        inputs: Inputs,
        trials: ArrayLike | None,
        shares: FloatArray | None,
    ) -> Callable[[float], FloatArray] | None:
        """Quantiles (n,) of shares of successes, None where numbers of trials are not known."""
        try:
            y = self._read_trials(X, inputs, trials)
        except UnknownTrialsError:
            return None
        assert y is not None
        family = self._at_rows(y)
        return lambda q: quantile(family, self.theta, inputs.matrix, q, None, shares) / np.imag(y)

    _intervals_of_means = intervals_of_means

    def _extrapolation(self, X: FloatArray) -> FloatArray | None:
        """Distance of inputs from those of the fit; None if the fit does not hold its rows."""
        if not self.has_rows:
            return None
        rows = self.rows
        return extrapolation(self.family, self.theta, rows.X, rows.weight, X)

    def _warn_of_wild(self, mean: FloatArray, inputs: Inputs) -> None:
        """Warn of means, outside of the data, that no response of the fit comes near to."""
        if not self.has_rows or mean.ndim > 1 or np.ndim(self.rows.y) > 1:
            return
        y = self.rows.y
        low, high = float(np.min(y)), float(np.max(y))
        beyond = np.maximum(low - mean, mean - high)
        wild = np.flatnonzero(beyond > DOUBT.wild * (high - low))
        if not wild.size:
            return
        at = wild[np.argmax(beyond[wild])]
        far = self._extrapolation(inputs.matrix[[at]])
        assert far is not None
        if far[0] > 1.0:
            warn_caller(
                f"X: {wild.size} rows lie outside of the data of the fit, and their means far"
                f" outside of its responses, which are in [{low:.4g}, {high:.4g}]: the mean of row"
                f" {at} is {mean[at]:.4g}. This value depends only on the form of the model, not"
                " on rows near it",
                ExtrapolationWarning,
            )
