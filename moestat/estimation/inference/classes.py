"""Sizes of the classes of a fit and means of its responses within them, with standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit

from moestat.base.types import FloatArray, IntArray
from moestat.estimation.data.groups import Grouping
from moestat.estimation.fit.delta import COMPLEX_STEP, normal_reach, of_experts

if TYPE_CHECKING:
    import pandas as pd

    from moestat.estimation.fit.fitted import Fitted
    from moestat.model.family import Family

__all__ = ["classes"]


def _shares_and_means(
    result: Fitted,
    family: Family,
    theta: FloatArray,
    units: tuple[IntArray, FloatArray],
    members: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Sizes (k,) of the classes and weighted means (k, c) of their responses; theta may be complex.

    A unit is a row or a group of rows with one expert.  `units` has the first row and the weight of
    each unit, `members` the number of the unit of each row.
    """
    rows, weight = result.rows, result.weight
    chance, value = of_experts(family, theta, rows.X)
    places, mass = units
    unit_probabilities = chance[:, places]
    share = unit_probabilities[:, members] * weight
    mean = np.einsum("in,icn->ic", share, value) / share.sum(axis=1)[:, None]
    return unit_probabilities @ mass / mass.sum(), mean


def classes(result: Fitted, alpha: float = 0.05) -> pd.DataFrame:
    """Sizes of the classes and means of the responses within them, with standard errors.

    Each expert describes one class.  The size of a class is the mean gate probability over the
    rows or groups.  Its mean is the mean of the expert over the rows, weighted by the gate:
    ``sum w pi_k(x) mu_k(x) / sum w pi_k(x)``.  Standard errors come from the delta method at
    the inputs of the fit.  Intervals of sizes and probabilities are computed on the logit
    scale.

    Parameters
    ----------
    alpha : float
        Intervals have the level ``1 - alpha``.

    Returns
    -------
    DataFrame
        Columns ``estimate``, ``std_error``, ``conf_low`` and ``conf_high``.  There is
        one row for each class, from 1, and quantity: "size", "mean", or the probability of each
        class of a response.

    Raises
    ------
    ValueError
        If the family has no density, or the data were not stored.

    Examples
    --------
    >>> import numpy as np, moestat
    >>> x = np.linspace(-1, 1, 60)
    >>> result = moestat.fit("gaussian", x, np.abs(x) + 0.1 * np.sin(9 * x), rng=0)
    >>> round(float(result.classes()["estimate"].xs("size", level=1).sum()), 6)
    1.0
    """
    from moestat.estimation.columns import EstimateTable

    result._check_experts()
    half, n = normal_reach(alpha), len(result.rows.y)
    units, members = (np.arange(n), result.weight), np.arange(n)
    if result.rows.groups is not None:
        grouping = Grouping(result.rows.groups)
        places = grouping.order[grouping.begin]
        units, members = (places, result.weight[places]), grouping.index
    parts = result.family.likelihood.parts
    marginals = result.family.marginals if parts else [(result.family, slice(None))]
    names = [f"mean({part.name})" for part in parts] or ["mean"]
    k, rows = result.family.n_experts, list[dict[str, object]]()
    for r, (family, at) in enumerate(marginals):
        theta = result.theta[at]

        def evaluate(theta: FloatArray, family: Family = family) -> FloatArray:
            sizes, means = _shares_and_means(result, family, theta, units, members)
            return np.concatenate([sizes, means.ravel()])

        value = evaluate(theta)
        slope = np.zeros((value.size, result.theta.size))
        of_fit = np.arange(result.theta.size)[at]
        for j in np.flatnonzero(result.free[at]):
            perturbed = theta.astype(complex)
            perturbed[j] += 1j * COMPLEX_STEP
            slope[:, of_fit[j]] += evaluate(perturbed).imag / COMPLEX_STEP
        error = result._errors_of(slope)
        labels = None
        if family.likelihood.support is not None:
            own_labels = result.rows.class_labels[r] if parts else result._labels
            what = f"{parts[r].name} = " if parts else ""
            labels = [f"P({what}{label})" for label in own_labels]
        quantities = labels or [names[r]]
        for i in range(k):
            called = result.experts.keys[i]
            if r == 0:
                rows.append(_row(called, "size", value[i], error[i], half, True))
            for c, name in enumerate(quantities):
                place = k + i * len(quantities) + c
                share = labels is not None
                rows.append(_row(called, name, value[place], error[place], half, share))
    frame = EstimateTable(rows).set_index(["class", "quantity"])
    return frame.loc[result.experts.keys]


def _row(
    called: int | str, name: str, value: float, error: float, half: float, share: bool
) -> dict[str, object]:
    """A row of the table; the interval of a share is normal on the logit scale."""
    low, high = value - half * error, value + half * error
    if share and 0.0 < value < 1.0:
        reach = half * error / (value * (1.0 - value))
        ends: FloatArray = expit(logit(value) + np.array([-reach, reach]))
        low, high = float(ends[0]), float(ends[1])
    return {
        **{"class": called, "quantity": name, "estimate": float(value), "std_error": float(error)},
        **{"conf_low": float(low), "conf_high": float(high)},
    }
