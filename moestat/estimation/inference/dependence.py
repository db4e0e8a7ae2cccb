"""Rows of a group that are more alike than their common expert explains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from moestat.base.types import FloatArray
from moestat.base.warnings import DependentRowsWarning, MoEWarning
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import Grouping, encoded_rows, grouping_of
from moestat.estimation.inference.diagnostics import expert_residuals
from moestat.estimation.rules import ALARM
from moestat.model.family import Family
from moestat.model.likelihoods import gaussian
from moestat.solvers.groups import group_sums
from moestat.solvers.rules import TINY

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = ["bounded", "dependence_in_groups", "dependence_in_selection"]

_FEW = 10
"""Number of groups with several rows below which the normal limit of the test says nothing."""


_WILDEST = 6.0
"""Standardised residuals are cut off at this value, so that one outlier cannot decide a test: a
normal residual exceeds it once in 5e8 rows."""


def bounded(residuals: FloatArray) -> FloatArray:
    """Standardised residuals cut off at `_WILDEST`, with 0 where one is missing."""
    return np.clip(np.nan_to_num(residuals), -_WILDEST, _WILDEST)


def dependence_in_groups(
    result: Fitted, rows: Data | None = None
) -> list[tuple[type[MoEWarning], str]]:
    """A warning if rows of a group are correlated given their expert, of a result with groups.

    `rows` are by default those of the fit.

    With residuals ``r_ij`` of row j under expert i, standard normal where the model is true, and
    the responsibilities ``tau_gi`` of group g, the statistic is the sum over groups of

        T_g = sum_i tau_gi sum_{j < l} x_j x_l r_ij r_il

    with x = 1 for an intercept of each group, and x an input of the experts for a slope.  Its mean
    is 0 where the rows of a group are independent given its expert, because ``E[tau_gi f(y_g)]``
    is the gate's probability times the mean of f under expert i.  With normal experts it is the
    part of the score for a random effect's variance that variances of the experts do not have.
    The variance of the sum is that of T_g less its regression on the scores of the parameters, as
    in a score test by the outer product of gradients.  The test is one-sided, of the level of
    other alarms over all x (Bonferroni).

    Sources: Laird and Ware (1982), Eq. 2.1 (the effects); Cox and Hinkley (1974), Sec. 9.3 (the
    score test).
    """
    family = result.family
    if family.likelihood.effects is not None:
        return []
    data = _some_groups(result.rows if rows is None else rows)
    if family.is_regression or np.ndim(data.y) != 1 or family.likelihood.support is not None:
        return []
    grouping = grouping_of(data)
    sizes = np.bincount(grouping.index)
    if np.sum(sizes > 1) < _FEW:
        return []
    order = grouping.order
    sums = group_sums(family, result.theta, encoded_rows(family, data), 1)
    r = expert_residuals(family, result.theta, data.X, data.y, 0)[:, order]
    r = bounded(r)
    X = data.X[order]
    inputs = range(family.n_features) if family.expert_inputs is None else family.expert_inputs
    varying = [f for f in inputs if f not in family.held and _varies(X[:, f], grouping)]
    columns = [np.ones(len(X)), *(_standard(X[:, f]) for f in varying)]
    weight = sums.weight
    root = np.sqrt(weight)[:, None]
    correlation, z = np.empty((2, len(columns)))
    for c, x in enumerate(columns):
        both = _pairs(x * r, grouping)
        T = np.sum(sums.posterior * both, axis=0)
        pairs = _pairs(np.abs(x)[None, :], grouping)[0]
        fitted = np.linalg.lstsq(root * sums.scores, root[:, 0] * T)[0]
        spread = np.sqrt(weight @ (T - sums.scores @ fitted) ** 2)
        z[c] = weight @ T / max(float(spread), TINY)
        correlation[c] = weight @ T / max(float(weight @ pairs), TINY)
    limit = -special.ndtri(ALARM.level / z.size)
    if not np.any(z > limit):
        return []
    at = int(np.argmax(z))
    alike = f"correlation of residuals {correlation[0]:.2f}, z = {z[0]:.1f}"
    if at > 0:
        f = varying[at - 1]
        named = repr(data.features[f]) if data.features else str(f)
        alike = f"their slopes in column {named} differ between groups, z = {z[at]:.1f}"
    return [
        (
            DependentRowsWarning,
            f"rows of a group are more similar than their expert explains ({alike}): groups differ"
            " within an expert, and criteria then choose more experts than there are classes."
            f" {_cure(family)}cov_type='HC0' gives standard errors that are valid for the mean",
        )
    ]


def dependence_in_selection(
    fits: Sequence[Fitted], chosen: Fitted
) -> list[tuple[type[MoEWarning], str]]:
    """A warning if groups differ within an expert of the chosen one of several fits.

    Superfluous experts describe a part of the differences between groups, and the residuals of such
    a fit then show less of them.  So fits with fewer normal experts, and with random intercepts of
    the groups, are also compared with the chosen fit by BIC.
    """
    doubts = dependence_in_groups(chosen)
    if doubts or chosen.rows.groups is None or chosen.family.likelihood.block is not gaussian.block:
        return doubts
    penalty = float(np.log(chosen.n_independent))
    for result in fits:
        if result.family.n_experts > chosen.family.n_experts:
            continue
        # In the chosen fit itself the intercepts have to be significant.
        least = max(penalty, special.chdtri(1, 2.0 * ALARM.level)) if result is chosen else penalty
        bic = result.bic - _gain_of_intercepts(result) + least
        if bic < chosen.bic:
            k = result.family.n_experts
            return [
                (
                    DependentRowsWarning,
                    f"rows of a group are more alike than their expert explains: {k}"
                    f" expert{'s' * (k > 1)} with a random intercept of each group"
                    f" {'have' if k > 1 else 'has'} the BIC {bic:.1f} at most, and the chosen"
                    f" {chosen.family.n_experts} have {chosen.bic:.1f}. Groups differ within an"
                    f" expert, and experts are not classes. {_cure(chosen.family).strip()}",
                )
            ]
    return []


def _cure(family: Family) -> str:
    """The advice of the warning: which fits have effects of groups, if there are any."""
    if family.likelihood.block is gaussian.block:
        return "random='1' fits an intercept of each group, and random='1 + x' a slope, too. "
    return "Do not read experts as classes. "


def _gain_of_intercepts(result: Fitted) -> float:
    """A lower bound of twice the gain in log-likelihood by random intercepts of groups.

    The variance of the intercepts is ``rho s_i^2`` in the normal expert i, the experts' variances
    are ``c s_i^2``, and rho and c maximise the likelihood with all else as it is.  With m residuals
    z of a group, in units of s_i, the log-density is that of independent rows and

        - (m log c + log(1 + m rho) + (z'z - rho (sum z)^2 / (1 + m rho)) / c - z'z) / 2

    (Laird and Ware 1982, by the inverse and the determinant of ``I + rho 1 1'``).
    """
    from scipy.optimize import minimize  # not at import: it is slow

    family, data, theta = result.family, result.rows, result.theta
    grouping = grouping_of(data)
    sums = group_sums(family, theta, encoded_rows(family, data), 0)
    mean, deviation = gaussian.spread(family.predictors(theta, np.ascontiguousarray(data.X.T)))
    z = ((data.y - mean) / deviation)[:, grouping.order]
    S, Q = (
        np.add.reduceat(z, grouping.begin, axis=1),
        np.add.reduceat(z * z, grouping.begin, axis=1),
    )
    m = np.bincount(grouping.index)
    base = np.log(np.maximum(sums.posterior, TINY)) + sums.log_density

    def loss(at: FloatArray) -> float:
        rho, c = np.exp(at)
        change = m * np.log(c) + np.log1p(m * rho) + (Q - rho * S**2 / (1.0 + m * rho)) / c - Q
        return -float(sums.weight @ special.logsumexp(base - 0.5 * change, axis=0))

    best = minimize(loss, np.array([-2.0, 0.0]), method="Nelder-Mead")
    return 2.0 * max(0.0, -float(best.fun) - sums.value)


def _some_groups(data: Data) -> Data:
    """The data of a random sample of the groups, with at most about `ALARM.rows` rows in total."""
    n = len(data.y)
    if n <= ALARM.rows:
        return data
    grouping = grouping_of(data)
    order = np.random.default_rng(0).permutation(grouping.names.size)
    rows = np.cumsum(np.bincount(grouping.index)[order])
    selected = order[: max(1, int(np.searchsorted(rows, ALARM.rows)))]
    return data.at(np.isin(grouping.index, selected))


def _varies(x: FloatArray, grouping: Grouping) -> bool:
    """Whether an input (n,), in the order of the groups, differs within a group."""
    return bool(np.any(x != x[grouping.begin][grouping.index[grouping.order]]))


def _standard(x: FloatArray) -> FloatArray:
    """An input (n,) less its mean, over its standard deviation."""
    return (x - x.mean()) / x.std()


def _pairs(r: FloatArray, grouping: Grouping) -> FloatArray:
    """Sums (k, G) of the products of pairs of values (k, n) of a group."""
    both = np.add.reduceat(r, grouping.begin, axis=1) ** 2 - np.add.reduceat(
        r * r, grouping.begin, axis=1
    )
    return 0.5 * both
