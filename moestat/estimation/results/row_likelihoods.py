"""Likelihoods of rows, and which expert they belong to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import TableLike
from moestat.estimation.data.groups import (
    density_of_groups,
    encoded_rows,
)
from moestat.estimation.results.rows_of_fit import RowsOfFit
from moestat.estimation.results.source_rows import values_over_parts
from moestat.solvers.problem import Objective, Problem, Request
from moestat.solvers.squares import profile_log_likelihood

__all__ = ["RowLikelihoods"]


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
class RowLikelihoods(RowsOfFit):
    """Methods of `MoEResults`: log-densities, log-likelihoods and responsibilities."""

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
            return values_over_parts(self, "score_samples", type(self).score_samples)
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
        values = values_over_parts(self, "responsibilities", lambda part: part._shares)
        shares = values.view(_Shares)
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
        return inputs.like(self._posterior(data), self.experts.keys)
