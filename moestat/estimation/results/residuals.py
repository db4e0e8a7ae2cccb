"""Fitted values and residuals of the rows of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import Seed, TableLike
from moestat.base.validate import (
    as_generator,
)
from moestat.estimation.inference.diagnostics import quantile_residuals
from moestat.estimation.results.predicting import Predicting
from moestat.estimation.results.source_rows import by_parts, values_over_parts

__all__ = ["Residuals"]


@doors
class Residuals(Predicting):
    """Methods of `MoEResults`: fitted values and residuals."""

    @property
    @by_parts
    def fittedvalues(self) -> Any:
        """Conditional mean of y for each row of the fit (n,), or class probabilities (n, K).

        For R responses the shape is (n, R).
        """
        if self._responses:
            return self._beside(None, [response.fittedvalues for response in self._responses])
        return self.predict(None, "mean" if self.family.likelihood.support is None else "proba")

    @property
    @by_parts
    def resid(self) -> Any:
        """Responses minus fitted values (n,); for classes, indicators minus probabilities (n, K).

        For R responses the shape is (n, R).
        """
        if self._responses:
            return self._beside(None, [response.resid for response in self._responses])
        y, likelihood = self.rows.y, self.family.likelihood
        if "censored" in likelihood.options:
            raise ValueError("censored responses have no residuals; use quantile_residuals")
        if likelihood.with_trials is not None:
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
            return values_over_parts(self, "quantile_residuals()", answer, as_generator(rng))
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
