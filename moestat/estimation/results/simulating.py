"""Responses drawn from a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import Encoded, Labels, Seed, TableLike
from moestat.base.validate import (
    as_generator,
)
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import (
    Grouping,
    arranged,
    check_groups,
    draw_in_groups,
)
from moestat.estimation.data.rows import (
    read_groups_of_new,
)
from moestat.estimation.inference.covariance import AtInputs
from moestat.estimation.reading.inputs import Inputs
from moestat.estimation.reading.table import (
    check_aligned,
)
from moestat.estimation.results.rows_of_fit import RowsOfFit
from moestat.model.generate import sample
from moestat.solvers.problem import Rows

__all__ = ["Simulating"]


@doors
class Simulating(RowsOfFit):
    """Methods of `MoEResults`: simulated responses."""

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
