"""Covariance matrices of an estimate, from the information and the scores of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from moestat.base.types import FloatArray, Labels
from moestat.estimation.data.groups import grouped_labels
from moestat.estimation.inference.inner_fit import InnerFit, inner_fit
from moestat.metrics.information import (
    expected_information,
    gradient_rows,
    score_products,
    score_rows,
)
from moestat.model.family import Family
from moestat.solvers.groups import scores_of_groups
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Rows

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = [
    "KINDS",
    "AtInputs",
    "check_kind_of_covariance",
    "information_at",
    "information_of",
    "middle",
    "middle_of_survey",
    "robust_covariance",
    "rows_of_scores",
    "sandwich",
    "scale_of_clusters",
]

KINDS = ("observed", "expected", "HC0", "HC1", "cluster", "survey")
"""Inverse of the observed or of the expected information; sandwiches of rows (HC0, and HC1 with the
factor n / (n - p)), of groups, and of clusters in the strata of a survey."""


@dataclass(frozen=True, eq=False)
class AtInputs:
    """The inputs of a data set as a design, in place of a distribution of X."""

    data: Rows
    name: str = "inputs of the data"
    counted: ClassVar[bool] = False

    def draw(self, n: int, n_features: int, rng: np.random.Generator) -> FloatArray:
        """The inputs (d, n) as they are."""
        return self.data.X

    def quadrature(self, n_features: int, n_nodes: int) -> tuple[FloatArray, FloatArray]:
        """The inputs (d, n) with their weights (n,)."""
        return self.data.X, self.data.weight


def rows_of_scores(family: Family, data: Rows, theta: FloatArray) -> FloatArray:
    """The score of each row, shape (n, P), or of each group, without its weight.

    For a regression function the score is that of normal errors with the variance that is fitted,
    ``(y - f) grad f / sigma^2``; the variance is not among the parameters.
    """
    if data.begin is not None:
        return scores_of_groups(family, theta, data)
    ones = np.ones(data.size)
    if not family.is_regression:
        return score_rows(family, theta, np.ascontiguousarray(data.X.T), data.y, ones)
    residual, variance = _residuals(family, data, theta)
    return gradient_rows(family, theta, data.X, residual / variance)


_FEWEST_GROUPS = 5
"""With four degrees of freedom Student's 97.5% quantile is 1.4 times the normal one that intervals
use, and it grows fast with fewer (Cameron and Miller 2015, Sec. VI, on few clusters)."""


def _residuals(family: Family, data: Rows, theta: FloatArray) -> tuple[FloatArray, float]:
    """Residuals (n,) of a regression function, and their mean square."""
    residual = data.y - family.regression(theta, data.X)[0]
    return residual, float(np.average(residual**2, weights=data.weight))


def middle(
    family: Family, data: Rows, theta: FloatArray, kind: str, groups: Labels | None, rank: float
) -> FloatArray:
    """The matrix M (P, P) of a sandwich ``V M V`` with V the inverse observed information.

    M is the sum of the outer products of scores over rows (HC0); this sum times ``n / (n - rank)``
    (HC1); or the sum of the outer products of the scores of groups, times ``G / (G - 1)``
    (cluster).

    White (1982) for the sandwich, Liang and Zeger (1986) for groups.
    """
    weight = data.weight if data.begin is None else data.weight[data.begin]
    n = float(weight.sum())
    if kind == "cluster":
        labels = np.asarray(groups)
        if groups is None or labels.shape != weight.shape:
            given = "nothing" if groups is None else f"shape {labels.shape}"
            raise ValueError(
                f"groups must hold one label per row, shape ({data.size},), for 'cluster'; got"
                f" {given}"
            )
        _, index = np.unique(labels, return_inverse=True)
        count = np.unique(index[weight > 0.0]).size
        scale = scale_of_clusters(count)
        scores = rows_of_scores(family, data, theta)
        sums = np.zeros((int(index.max()) + 1, family.n_params))
        np.add.at(sums, index, scores * weight[:, None])
        return sums.T @ sums * scale
    if family.is_regression or data.begin is not None:
        scores = rows_of_scores(family, data, theta)
        total = (scores * weight[:, None]).T @ scores
    else:
        total = score_products(family, theta, data.X, data.y, data.weight)
    if kind == "HC0":
        return total
    return total * (n / (n - rank))


def sandwich(inner: InnerFit, M: FloatArray) -> FloatArray:
    """The matrix ``V M V`` (P, P) in the user's coordinates, with V the inverse information.

    With ``V = B B'`` the eigenvalues of ``B' M B`` are variances.  Those that rounding made
    negative become 0; in the product of three matrices they would be negative variances of
    estimates that a prior density determines alone.
    """
    B = inner.known.determined
    values, vectors = np.linalg.eigh(B.T @ M @ B)
    half = B @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    return inner.outward_matrix(half @ half.T)


def scale_of_clusters(count: int) -> float:
    """The factor ``G / (G - 1)`` of G clusters, of which there must be a few."""
    if count < _FEWEST_GROUPS:
        raise ValueError(
            f"groups must hold at least {_FEWEST_GROUPS} groups for cov_type 'cluster', got"
            f" {count}: with fewer groups the covariance cannot be estimated"
        )
    return count / (count - 1.0)


def middle_of_survey(
    scores: FloatArray, weight: FloatArray, clusters: Labels | None, strata: Labels | None
) -> FloatArray:
    """The matrix M (P, P) of a sandwich for a stratified sample of clusters.

    ``sum_h n_h / (n_h - 1) sum_c (z_hc - z_h)(z_hc - z_h)'`` with the weighted sums ``z_hc`` of
    scores (n, P) over the rows of the n_h clusters of stratum h, and their mean ``z_h``: the
    variance of a total when clusters are drawn with replacement within strata, as in
    Binder (1983).

    `clusters` and `strata` are labels (n,).  Without clusters each row is a cluster; without strata
    all rows are in one stratum.  Rows of weight 0 are outside of the part of the population that
    is studied, and inside the design: their clusters count, with a sum of 0.
    """
    cluster_labels = np.arange(weight.size) if clusters is None else clusters
    stratum = np.zeros(weight.size, dtype=np.int64) if strata is None else strata
    names, h = np.unique(np.asarray(stratum), return_inverse=True)
    _, c = np.unique(np.asarray(cluster_labels), return_inverse=True)
    pairs, at = np.unique(np.column_stack([h, c]), axis=0, return_inverse=True)
    sums = np.zeros((len(pairs), scores.shape[1]))
    # A row outside may have no finite score.
    weighted = np.where(weight[:, None] > 0.0, scores * weight[:, None], 0.0)
    np.add.at(sums, at.reshape(-1), weighted)
    inside = np.bincount(h.reshape(-1), weight > 0.0) > 0.0
    count = np.bincount(pairs[:, 0])
    alone = np.flatnonzero((count < 2) & inside)
    if alone.size:
        raise ValueError(
            f"strata: {names[alone[0]].item()!r} has one cluster, which has no variance; join it to"
            " another stratum"
        )
    mean = np.zeros((count.size, sums.shape[1]))
    np.add.at(mean, pairs[:, 0], sums / count[pairs[:, 0], None])
    apart = sums - mean[pairs[:, 0]]
    # A stratum outside, of one cluster, has a total of 0.
    factor = count / np.maximum(count - 1.0, 1.0)
    return (apart * factor[pairs[:, 0], None]).T @ apart


def information_at(family: Family, data: Rows, theta: FloatArray) -> FloatArray:
    """Expected information (P, P) at the inputs of the data, by quadrature over the response."""
    noise = _residuals(family, data, theta)[1] if family.is_regression else None
    if (given := family.likelihood.given) is not None:
        # The numbers of trials of the rows are known, as their inputs are.
        family = replace(family, likelihood=given(data.y))
    return expected_information(family, theta, AtInputs(data), n_nodes=1, noise=noise)


def information_of(family: Family, data: Rows, theta: FloatArray) -> FloatArray:
    """Expected information (P, P), or the products of the scores where there is none.

    Densities of groups and of several responses have no expected information here, and censored
    responses do not say what the bounds of the known ones would have been.
    """
    likelihood = family.likelihood
    if data.begin is None and not likelihood.parts and not likelihood.is_censored:
        return information_at(family, data, theta)
    scores = rows_of_scores(family, data, theta)
    return (scores * data.units[:, None]).T @ scores


def check_kind_of_covariance(result: Fitted, kind: str, groups: object, strata: object) -> bool:
    """Whether the kind is not "observed"; raise for arguments that the kind does not take."""
    if groups is not None and kind not in ("cluster", "survey"):
        raise ValueError(f"groups are for cov_type 'cluster' or 'survey', got cov_type {kind!r}")
    if strata is not None and kind != "survey":
        raise ValueError(f"strata are for cov_type 'survey', got cov_type {kind!r}")
    if kind == "expected" and result.data is not None and result.data.groups is not None:
        raise ValueError("cov_type 'expected': not available with groups")
    if kind == "expected" and result.family.likelihood.is_censored:
        raise ValueError("cov_type 'expected': not available for censored responses")
    return kind != "observed"


def robust_covariance(
    result: Fitted, kind: str, groups: Labels | None = None, strata: Labels | None = None
) -> FloatArray | None:
    """A covariance (P, P) of a `MoEResults` in the user's coordinates; None for "observed"."""
    if not check_kind_of_covariance(result, kind, groups, strata):
        return None
    inner = inner_fit(result, mode=True)
    groups_of_fit = result.rows.groups
    if groups_of_fit is not None and kind == "cluster":
        groups = grouped_labels(groups_of_fit, groups_of_fit if groups is None else groups)
    if kind == "expected":
        information = information_at(inner.family, inner.data, inner.theta)
        if isinstance(inner.problem, PenalisedProblem):
            information = information + inner.problem.penalty.hessian(inner.theta)
        # In the basis of the directions that the observed information determines.
        basis = inner.known.determined
        return inner.outward_matrix(
            basis @ np.linalg.pinv(basis.T @ information @ basis, hermitian=True) @ basis.T
        )
    if kind == "survey":
        labels = [
            one if one is None or groups_of_fit is None else grouped_labels(groups_of_fit, one)
            for one in (groups, strata)
        ]
        data = inner.data
        weight = data.weight if data.begin is None else data.weight[data.begin]
        scores = rows_of_scores(inner.family, data, inner.theta)
        return sandwich(inner, middle_of_survey(scores, weight, *labels))
    M = middle(inner.family, inner.data, inner.theta, kind, groups, result.edf)
    return sandwich(inner, M)
