"""The rows that a method of a fit is asked about: those of the fit, or new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import Encoded, FloatArray, TableLike
from moestat.base.validate import (
    as_numbers,
)
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import (
    encoded_rows,
)
from moestat.estimation.data.rows import (
    read_rows,
)
from moestat.estimation.fit.fitted import Fitted
from moestat.estimation.reading.formula import UnknownColumnError
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.responses import as_columns
from moestat.estimation.reading.table import (
    check_aligned,
)
from moestat.estimation.results.source_rows import at_sample
from moestat.model.family import Family
from moestat.solvers.problem import Rows

__all__ = ["RowsOfFit", "UnknownTrialsError"]


class UnknownTrialsError(ValueError):
    """The numbers of trials of new rows are not known."""

    def __init__(self, reason: object) -> None:
        super().__init__(
            "trials: numbers of trials differ between rows of the fit; give trials=, one number or"
            f" one for each row, or the columns of the response in X ({reason})"
        )


@doors
class RowsOfFit(Fitted):
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

    @property
    def _noise(self) -> float | None:
        return self.residual_variance if self.family.is_regression else None

    def _in_labels(self, y: np.ndarray) -> np.ndarray:
        """Labels of classes, from their positions; other responses are returned unchanged."""
        if self.family.likelihood.support is None:
            return y
        return np.asarray(self._labels)[y.astype(np.int64) - 1]

    def _at_rows(self, y: Encoded) -> Family:
        """The family with the numbers of trials that encoded responses hold."""
        with_trials = self.family.likelihood.with_trials
        return (
            self.family if with_trials is None else replace(self.family, likelihood=with_trials(y))
        )

    def _read_trials(
        self, X: ArrayLike | TableLike | None, inputs: Inputs, trials: ArrayLike | None
    ) -> Encoded | None:
        """Encoded responses (n,) that hold the numbers of trials; None without trials."""
        n = inputs.design.shape[1]
        if self.family.likelihood.with_trials is None:
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
            raise UnknownTrialsError("X has no column of the response")
        try:
            return self._sample(X, None)[1].y
        except UnknownColumnError as error:
            raise UnknownTrialsError(error) from None

    def _check_one(self, method: str) -> None:
        """Raise if there are several responses."""
        names = [response.name for response in self._responses]
        if names:
            raise ValueError(
                f"{method} is available for one response at a time: use"
                f" result.response({names[0]!r}).{method}(); responses: "
                + ", ".join(map(repr, names))
            )
