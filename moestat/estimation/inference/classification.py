"""Assignments of units to experts, and how often they are wrong.

A unit is a row or, in a fit with groups, a group of rows: that for which an expert is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import short
from moestat.estimation.data.groups import Grouping
from moestat.estimation.inference.covariance import rows_of_scores
from moestat.estimation.inference.inner_fit import InnerFit, inner_fit
from moestat.solvers.rules import DIFFERENCE_STEP

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted


__all__ = ["ASSIGNMENTS", "FirstStep", "assigned", "classification_errors", "first_step"]

ASSIGNMENTS = ("modal", "proportional")
"""Each unit is assigned to its most probable expert, or to all experts in proportion to their
probabilities."""


@dataclass(frozen=True, eq=False)
class FirstStep:
    """The parts of a fit that later steps use, with its sampling variation.

    Parameters
    ----------
    prior, posterior : ndarray of shape (m, k)
        Prior and posterior probabilities of the experts for each unit.
    weight : ndarray of shape (m,)
        Weights of the units.
    places : ndarray of int of shape (m,)
        The first row of each unit.
    coordinates : ndarray of shape (m, q)
        ``L' s_i`` with the score s_i of a unit and a root L (P, q) of the covariance matrix of the
        parameters: the contribution of unit i to the estimate, in standard errors.
    """

    prior: FloatArray
    posterior: FloatArray
    weight: FloatArray
    places: IntArray
    coordinates: FloatArray = field(repr=False)
    inner: InnerFit = field(repr=False)

    def at(self, direction: int, side: float) -> tuple[FloatArray, FloatArray]:
        """Prior and posterior probabilities (m, k) at parameters moved along a column of L."""
        theta = (
            self.inner.theta
            + side * DIFFERENCE_STEP * self.inner.identified.determined[:, direction]
        )
        return _probabilities(self.inner, theta)

    def derivative(self, function: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
        """Derivatives (r, q) of a ``function(prior, posterior)`` (r,) along the columns of L."""
        sides = [
            [np.asarray(function(*self.at(j, side))) for side in (1.0, -1.0)]
            for j in range(self.coordinates.shape[1])
        ]
        if not sides:
            return np.zeros((np.size(function(self.prior, self.posterior)), 0))
        return np.column_stack([(up - down) / (2.0 * DIFFERENCE_STEP) for up, down in sides])


def _probabilities(inner: InnerFit, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    prior, posterior, _ = inner.problem.rowwise(theta)
    begin = inner.data.begin
    units = slice(None) if begin is None else begin
    return prior[:, units].T, posterior[:, units].T


def first_step(result: Fitted) -> FirstStep:
    """The first step of a `MoEResults` with two experts or more."""
    if result.family.is_regression or result.family.n_experts < 2:
        what = "is a regression function" if result.family.is_regression else "has one expert"
        raise ValueError(f"latent classes need a mixture of two or more experts; this fit {what}")
    inner = inner_fit(result, mode=True)
    data, groups = inner.data, result.rows.groups
    places = np.arange(data.size)
    if groups is not None:
        grouping = Grouping(groups)
        places = grouping.order[grouping.begin]
    weight = data.weight if data.begin is None else data.weight[data.begin]
    scores = rows_of_scores(inner.family, data, inner.theta)
    return FirstStep(
        *_probabilities(inner, inner.theta),
        weight,
        places,
        scores @ inner.identified.determined,
        inner,
    )


def assigned(posterior: FloatArray, how: str) -> FloatArray:
    """Assignments (m, k) of units by their posterior probabilities, rows that sum to 1."""
    if how not in ASSIGNMENTS:
        raise ValueError(f"assignment must be one of {', '.join(ASSIGNMENTS)}, got {short(how)}")
    if how == "proportional":
        return posterior
    return np.eye(posterior.shape[1])[np.argmax(posterior, axis=1)]


def classification_errors(
    posterior: FloatArray, weight: FloatArray, assignment: FloatArray
) -> FloatArray:
    """Probability (k, k) that a unit of expert t (row) is assigned to expert s (column).

    ``P(W = s | X = t) = sum_i w_i tau_it omega_is / sum_i w_i tau_it``: Vermunt (2010), eq. (6),
    over the units of the sample.
    """
    shares = posterior * weight[:, None]
    return shares.T @ assignment / shares.sum(axis=0)[:, None]
