"""Predictions and other values for each row of the fit, or for new rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import Encoded, FloatArray, Labels, Seed, TableLike
from moestat.base.validate import (
    as_generator,
    as_numbers,
    did_you_mean,
    real_in,
    short,
)
from moestat.base.warnings import ExtrapolationWarning, warn_caller
from moestat.estimation.data.data import Data, without_rows
from moestat.estimation.data.groups import (
    Grouping,
    arranged,
    check_groups,
    density_of_groups,
    draw_in_groups,
    encoded_rows,
    shares_in_groups,
)
from moestat.estimation.data.rows import (
    read_groups_of_new,
    read_rows,
)
from moestat.estimation.fit.delta import of_experts
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.inference.covariance import AtInputs
from moestat.estimation.inference.diagnostics import quantile_residuals
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
from moestat.estimation.reading.formula import UnknownColumnError
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.responses import as_columns
from moestat.estimation.reading.table import (
    check_aligned,
)
from moestat.estimation.results.source_predictions import predict_to
from moestat.estimation.results.source_rows import at_sample, values_of_source
from moestat.estimation.rules import DOUBT
from moestat.model.censoring import bounds_of
from moestat.model.family import Family
from moestat.model.generate import sample
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.squares import profile_log_likelihood

__all__ = ["Predicting"]

_OF_RESPONSE = ("variance", "quantile")
"""Predictions that depend on numbers of trials."""

_KINDS = ("mean", "class", "proba", "experts", "gate", "variance", "quantile", "cdf", "density")


class _UnknownTrialsError(ValueError):
    """The numbers of trials of new rows are not known."""

    def __init__(self, reason: object) -> None:
        super().__init__(
            "trials: numbers of trials differ between rows of the fit; give trials=, one number or"
            f" one for each row, or the columns of the response in X ({reason})"
        )


class _Total(float):
    """The log-likelihood of the data of the fit; a call returns that of other data."""

    elsewhere: Callable[..., float]

    def __call__(
        self,
        X: ArrayLike | TableLike | None = None,
        y: ArrayLike | TableLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> float:
        return self.elsewhere(X, y, sample_weight, groups)

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


class _Shares(np.ndarray):
    """Posterior probabilities for the data of the fit; a call returns those for other data."""

    elsewhere: Callable[..., object]

    def __call__(
        self,
        X: ArrayLike | TableLike | None = None,
        y: ArrayLike | TableLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Any:
        return self.elsewhere(X, y, groups)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return np.asarray(self).__reduce__()


@doors
class Predicting(Fitted):
    """Methods of `moestat.estimation.results.results.MoEResults` with a value for each row.

    Inputs X are used as in `moestat.fit`: columns of a table by their names, the columns of a
    formula by its names, arrays by position.  Without X, the methods use the rows of the fit.  If X
    is a table of pandas, polars or pyarrow, the result is a series or a frame with the index of X;
    otherwise it is an array.
    """

    def at_sample(self) -> Self:
        """Return a fit to blocks or a source with the rows of its random sample.

        Residuals, assignments, predictions and plots are then those of the sample, at most 100,000
        rows, without a pass over all rows.  The weights are scaled to the sum of all weights.
        Covariances, tests and refits are refused; use the fit itself.

        Returns
        -------
        MoEResults
            The fit with the rows of the sample; ``data.kept`` has their numbers among all rows.

        Raises
        ------
        ValueError
            If the fit has all of its rows, or neither rows nor a source.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 1000)
        >>> blocks = moestat.Blocks.from_arrays(x, x + np.sin(7 * x), rows=300)
        >>> result = moestat.fit_blocks("gaussian", blocks, n_experts=1, rng=0)
        >>> result.at_sample().resid.shape
        (1000,)
        """
        if not self.reads_source:
            raise ValueError(
                "at_sample: is for fits to blocks or a source, whose rows are not in memory"
                if self.has_rows
                else "at_sample: the result was stored without the data and has no source"
            )
        return at_sample(self)

    def _without_rows(self) -> Self:
        """The fit without the rows that it holds."""
        if self.data is None or not self.has_rows:
            return self
        return replace(self, data=without_rows(self.data))

    def _some(self, X: ArrayLike | TableLike | None) -> Inputs:
        """Inputs of one row or more."""
        inputs = self._inputs(X)
        if not inputs.design.shape[1]:
            raise ValueError("X has no rows")
        return inputs

    def _read_rows(
        self,
        X: ArrayLike | TableLike | None,
        y: ArrayLike | TableLike | None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **depends: bool,
    ) -> tuple[Inputs, Data]:
        """Rows with responses, new ones or those of the fit, see `read_rows`."""
        at_fit = X is None
        fitted = self.rows if at_fit else self.data
        return read_rows(self.family, fitted, X, y, sample_weight, groups, **depends)

    def _sample(
        self, X: ArrayLike | TableLike | None, y: ArrayLike | TableLike | None
    ) -> tuple[Inputs, Rows]:
        """Rows with responses, each by itself, as solvers read them."""
        inputs, rows = self._read_rows(X, y)
        return inputs, encoded_rows(self.family, rows, whole=True)

    @property
    def _response(self) -> str | None:
        return None if self.data is None else self.data.response

    @property
    def _noise(self) -> float | None:
        return self.residual_variance if self.family.is_regression else None

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
            of_trials = self.family.likelihood.given is not None and kind in _OF_RESPONSE
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
        experts = range(family.n_experts)
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

    @cached_property
    def _responses(self) -> Sequence[Any]:
        """The fit of each response, if there are several."""
        return ()

    def _columns(
        self, X: ArrayLike | TableLike | None, y: ArrayLike | TableLike | None
    ) -> Sequence[np.ndarray | None]:
        """The column of each of several responses; None for each without y."""
        names = [response.name for response in self._responses]
        if y is None:
            return [None] * len(names)
        check_aligned({"X": X, "y": y})
        return [column.values for column in as_columns(y, names).columns]

    def _beside(self, X: ArrayLike | TableLike | None, by_response: Sequence[ArrayLike]) -> Any:
        """Values of each of several responses, (n,) or (n, m), as one array (n, R) or (n, R, m)."""
        values = [np.asarray(each) for each in by_response]
        if len({each.shape for each in values}) > 1:
            names = [response.name for response in self._responses]
            raise ValueError(
                "the values for the responses have different shapes, for example probabilities of"
                f" classes and a mean; use one response at a time, result.response({names[0]!r})"
            )
        if not all(each.dtype.kind in "biuf" for each in values):
            values = [each.astype(object) for each in values]
        names = [response.name for response in self._responses]
        return self._inputs(X).like(np.stack(values, axis=1), names)

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
            if family.likelihood.given is not None:
                family, response = self._at_rows(rows.y), np.real(rows.y)
            return inputs.like(
                distribution(family, self.theta, inputs.matrix, response, self._noise, shares)
            )
        if shares is not None:
            log_densities = expert_log_densities(self.family, self.theta, rows.X, rows.y)
            return inputs.like(np.sum(shares * np.exp(log_densities), axis=0))
        return inputs.like(np.exp(self._log_density(rows)))

    def _at_rows(self, y: Encoded) -> Family:
        """The family with the numbers of trials, or the like, that encoded responses hold."""
        given = self.family.likelihood.given
        return self.family if given is None else replace(self.family, likelihood=given(y))

    def predict_proba(self, X: ArrayLike | TableLike | None = None) -> Any:
        """Predict class probabilities (n, K) at inputs X (n, d), in the order of the labels."""
        if self.family.likelihood.support is None:
            raise ValueError(
                f"the {self.family.likelihood.name} likelihood has no class probabilities"
            )
        return self.predict(X, "proba")

    def _log_density(self, rows: Rows) -> FloatArray:
        """Log-density of each row (n,), of a regression function with normal errors."""
        if not self.family.is_regression:
            log_density = self.family.rowwise(self.theta, rows.X, rows.y)[2]
            overflowing = np.flatnonzero(np.isnan(log_density))
            if overflowing.size:
                raise ValueError(
                    f"X: the density at row {overflowing[0]} is beyond the range of float64: it"
                    " lies too far outside of the data of the fit"
                )
            return log_density
        residual = rows.y - self.family.regression(self.theta, rows.X)[0]
        variance = self.residual_variance
        return -0.5 * (np.log(2.0 * np.pi * variance) + residual**2 / variance)

    def score_samples(
        self,
        X: ArrayLike | TableLike | None = None,
        y: ArrayLike | TableLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Log-density of each row (n,), or of each group (G,) of a fit with groups, natural log.

        Groups are in ascending order of their labels.  If the result is a series, these labels are
        its index.

        Parameters
        ----------
        X, y : optional
            New rows with their responses; by default those of the fit.
        groups : array_like of shape (n,), optional
            Labels of the groups of new rows; a fit by formula finds them in X.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> bool(np.isclose(result.score_samples().sum(), result.llf))
        True
        """
        if X is None and y is None and self.reads_source:
            if self.data is not None and self.data.groups is not None:
                raise ValueError(
                    "score_samples: a fit with groups to a source has no table of all groups; give"
                    " rows X, or take at_sample().score_samples()"
                )
            return values_of_source(self, "score_samples", type(self).score_samples)
        inputs, data = self._read_rows(X, y, None, groups, grouped=True)
        if data.groups is None:
            rows = encoded_rows(self.family, data, whole=True)
            return inputs.like(self._log_density(rows))
        names, log_density = density_of_groups(self.family, self.theta, data)
        return self._by_group(log_density, names, inputs.index)

    @property
    def log_likelihood(self) -> _Total:
        """Total log-likelihood (natural log) of the data of the fit, or of other data.

        ``result.log_likelihood``, without parentheses, is a number: the log-likelihood of the fit.
        ``result.log_likelihood(X, y, sample_weight, groups=)`` is the log-likelihood of new rows.
        After a fit by formula, the responses, weights and groups are columns of the table X.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> y = X + np.sin(7 * X)
        >>> result = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
        >>> bool(np.isclose(result.log_likelihood(X, y), result.log_likelihood))
        True
        """
        total = _Total(self.llf)
        total.elsewhere = self._log_likelihood_of
        return total

    def _log_likelihood_of(
        self,
        X: ArrayLike | TableLike | None,
        y: ArrayLike | TableLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> float:
        if X is None and y is None and sample_weight is None and groups is None:
            return self.llf
        _, data = self._read_rows(X, y, sample_weight, groups, weighted=True, grouped=True)
        rows = encoded_rows(self.family, data, whole=True)
        if not rows.size:
            raise ValueError("X has no rows")
        if self.family.is_regression:
            residual = rows.y - self.family.regression(self.theta, rows.X)[0]
            half = 0.5 * float(rows.weight @ residual**2)
            return profile_log_likelihood(half, float(rows.weight.sum()))
        problem = Problem(self.family, rows)
        return -problem.evaluate(Request(Objective.VALUE, self.theta)).value

    @property
    def responsibilities(self) -> _Shares:
        """Posterior probability of each expert at each row, shape (n, k).

        ``result.responsibilities``, without parentheses, is an array for the rows of the fit;
        ``result.responsibilities(X, y, groups=)`` computes the probabilities for new rows.  In a
        fit with groups they are the probabilities given all rows of the group.

        Raises
        ------
        ValueError
            If the family has no density, or the data were not stored.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> x = np.linspace(-1, 1, 60)
        >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
        >>> result.responsibilities.shape, result.responsibilities([0.5], [0.5]).shape
        ((60, 2), (1, 2))
        """
        self._check_experts()
        if self.reads_source:
            values = values_of_source(self, "responsibilities", lambda part: part._shares)
            shares = values.view(_Shares)
        else:
            shares = self._shares.view(_Shares)
        shares.elsewhere = self._responsibilities_of
        return shares

    def _responsibilities_of(
        self,
        X: ArrayLike | TableLike | None,
        y: ArrayLike | TableLike | None,
        groups: ArrayLike | None,
    ) -> Any:
        self._check_experts()
        inputs, data = self._read_rows(X, y, None, groups, grouped=True)
        return inputs.like(self._posterior(data), range(self.family.n_experts))

    def simulate(
        self,
        X: ArrayLike | TableLike | None = None,
        rng: Seed = None,
        *,
        groups: ArrayLike | None = None,
        trials: ArrayLike | None = None,
    ) -> Any:
        """Simulate responses (n,) from the fitted density at each input.

        In a fit with groups, one expert is drawn for all rows of a group.

        Parameters
        ----------
        X : array_like or table of shape (n, d), optional
            Inputs; those of the fit by default.
        rng : numpy.random.Generator, int or None
            Source of random numbers.
        groups : array_like of shape (n,), optional
            Labels of the groups of new rows; a fit by formula finds them in X.
        trials : int or array_like of shape (n,), optional
            Numbers of trials of the rows, if they differ between rows of the fit.  By default those
            of the fit, or those of the response in the table X.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> result.simulate([0.0, 0.5], rng=0).shape
        (2,)
        """
        inputs = self._some(X)
        n = inputs.design.shape[1]
        y = self._read_trials(X, inputs, trials)
        if self.data is not None and self.data.groups is not None:
            labels = self.rows.groups
            if X is not None or groups is not None:
                check_aligned({"X": inputs.table, "groups": groups})
                labels = read_groups_of_new(self.data, X, groups, n)
            assert labels is not None
            y = self._simulate_groups(inputs, y, labels, as_generator(rng))
        else:
            if groups is not None:
                raise ValueError("groups: the fit has no groups; leave groups out")
            design = AtInputs(Rows(inputs.design, np.empty(0), np.ones(int(n))))
            family_of_rows = self.family if y is None else self._at_rows(y)
            _, y = sample(family_of_rows, self.theta, n, rng, design, noise=self._noise)
        if self._responses:
            pairs = zip(self._responses, y.T, strict=True)
            return self._beside(X, [response._in_labels(column) for response, column in pairs])
        y = self._in_labels(y)
        return inputs.like(y, self._response if y.ndim == 1 else ("successes", "failures"))

    def _read_trials(
        self, X: ArrayLike | TableLike | None, inputs: Inputs, trials: ArrayLike | None
    ) -> Encoded | None:
        """Encoded responses (n,) that hold the numbers of trials; None without trials."""
        n = inputs.design.shape[1]
        if self.family.likelihood.given is None:
            if trials is not None:
                raise ValueError("trials: rows of the fit have no numbers of trials; leave it out")
            return None
        if trials is not None:
            check_aligned({"X": inputs.table, "trials": trials})
            numbers = as_numbers("trials", trials)
            if numbers.shape not in ((), (n,)):
                raise ValueError(
                    f"trials must be one number, or one for each row, shape ({n},),"
                    f" got {numbers.shape}"
                )
            if numbers.size and not np.all((numbers >= 1) & (numbers == np.floor(numbers))):
                raise ValueError("trials must be whole numbers of at least 1")
            failures = np.broadcast_to(numbers, (n,))
            pairs = np.column_stack([np.zeros(n), failures])
            return self.family.likelihood.encode(pairs, self.family.n_classes)
        formula = None if self.data is None else self.data.formula
        if X is not None and formula is None:
            raise _UnknownTrialsError("X has no column of the response")
        try:
            return self._sample(X, None)[1].y
        except UnknownColumnError as error:
            raise _UnknownTrialsError(error) from None

    def _simulate_groups(
        self, inputs: Inputs, y: Encoded | None, labels: Labels, rng: np.random.Generator
    ) -> np.ndarray:
        """Responses of rows of labelled groups, decoded, in the order of the rows.

        Encoded responses y of the fit, if given, hold numbers of trials, or the like, of the rows.
        """
        n, order = len(labels), Grouping(labels).order
        check_groups(self.family, Data(inputs.matrix, np.zeros(n), np.ones(n), groups=labels))
        rows = arranged(inputs.design, np.zeros(n), np.ones(n), labels)
        family_of_rows = self.family if y is None else self._at_rows(y[order])
        responses = family_of_rows.likelihood.decode(
            draw_in_groups(family_of_rows, self.theta, rows, rng)
        )
        return responses[np.argsort(order)]

    def _in_labels(self, y: np.ndarray) -> np.ndarray:
        """Labels of classes, from their positions; other responses are returned unchanged."""
        if self.family.likelihood.support is None:
            return y
        return np.asarray(self._labels)[y.astype(np.int64) - 1]

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
        if self.family.likelihood.given is None and trials is None:
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
        except _UnknownTrialsError:
            return None
        assert y is not None
        family = self._at_rows(y)
        return lambda q: quantile(family, self.theta, inputs.matrix, q, None, shares) / np.imag(y)

    def _intervals_of_means(self, alpha: float, X: FloatArray) -> FloatArray | None:
        return intervals_of_means(self, alpha, X)

    def _check_one(self, method: str) -> None:
        """Raise if there are several responses."""
        names = [response.name for response in self._responses]
        if names:
            raise ValueError(
                f"{method} is available for one response at a time: use"
                f" result.response({names[0]!r}).{method}(); responses: "
                + ", ".join(map(repr, names))
            )

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

    @property
    def fittedvalues(self) -> Any:
        """Conditional mean of y for each row of the fit (n,), or class probabilities (n, K).

        For R responses the shape is (n, R).
        """
        if self.reads_source:
            return values_of_source(self, "fittedvalues", lambda part: part.fittedvalues)
        if self._responses:
            return self._beside(None, [response.fittedvalues for response in self._responses])
        return self.predict(None, "mean" if self.family.likelihood.support is None else "proba")

    @property
    def resid(self) -> Any:
        """Responses minus fitted values (n,); for classes, indicators minus probabilities (n, K).

        For R responses the shape is (n, R).
        """
        if self.reads_source:
            return values_of_source(self, "resid", lambda part: part.resid)
        if self._responses:
            return self._beside(None, [response.resid for response in self._responses])
        y, likelihood = self.rows.y, self.family.likelihood
        if "censored" in likelihood.options:
            raise ValueError("censored responses have no residuals; use quantile_residuals")
        if likelihood.given is not None:
            y = likelihood.level(likelihood.encode(y, 1))
        if self.family.likelihood.support is not None:
            y = np.equal.outer(y, np.arange(1, self.family.n_classes + 1)).astype(float)
        return y - self.fittedvalues

    def quantile_residuals(
        self,
        rng: Seed = None,
        *,
        X: ArrayLike | TableLike | None = None,
        y: ArrayLike | TableLike | None = None,
    ) -> Any:
        """Residuals (n,) that are standard normal if the model is correct (Dunn and Smyth 1996).

        They are randomised for classes and counts.  For R responses the shape is (n, R).

        Parameters
        ----------
        rng : numpy.random.Generator, int or None
            Source of the uniform random numbers for classes and counts.
        X, y : optional
            New rows; by default those of the fit.

        Examples
        --------
        >>> import numpy as np, moestat
        >>> X = np.linspace(-1, 1, 50)
        >>> result = moestat.fit("gaussian", X, X + np.sin(7 * X), n_experts=1, rng=0)
        >>> bool(abs(result.quantile_residuals().mean()) < 0.01)
        True
        """
        if X is None and y is None and self.reads_source:
            answer = type(self).quantile_residuals
            return values_of_source(self, "quantile_residuals()", answer, as_generator(rng))
        if self._responses:
            pairs = zip(self._responses, self._columns(X, y), strict=True)
            source = as_generator(rng)
            residuals = [
                response.quantile_residuals(source, X=X, y=column) for response, column in pairs
            ]
            return self._beside(X, residuals)
        inputs, rows = self._sample(X, y)
        response = self.family.likelihood.decode(rows.y)
        residuals = quantile_residuals(self.family, self.theta, inputs.matrix, response, rng)
        return inputs.like(residuals)
