"""Covariance matrices of an estimate, from the information and the scores of the rows.

Rows in memory and rows of a source are summed by the same functions: memory is one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from moestat.base.memory import FLOAT_BYTES, check_room
from moestat.base.types import FloatArray, Labels
from moestat.base.validate import short
from moestat.estimation.data.groups import grouped_labels
from moestat.estimation.inference.inner_fit import InnerFit, inner_fit
from moestat.estimation.rows.block_rows import BlockRows, Reader
from moestat.estimation.rows.blocks import Block
from moestat.metrics.information import (
    expected_information,
    gradient_rows,
    score_products,
    score_rows,
)
from moestat.model.family import Family
from moestat.solvers.groups import scores_of_groups
from moestat.solvers.problem import Rows

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = [
    "KINDS",
    "AtInputs",
    "check_kind_of_covariance",
    "information_of",
    "robust_covariance",
    "rows_of_scores",
    "sandwich",
    "strata_of",
]

T = TypeVar("T")

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


def sandwich(inner: InnerFit, M: FloatArray) -> FloatArray:
    """The matrix ``V M V`` (P, P) in the user's coordinates, with V the inverse information.

    With ``V = B B'`` the eigenvalues of ``B' M B`` are variances.  Those that rounding made
    negative become 0; in the product of three matrices they would be negative variances of
    estimates that a prior density determines alone.
    """
    B = inner.identified.determined
    values, vectors = np.linalg.eigh(B.T @ M @ B)
    half = B @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    return inner.outward_matrix(half @ half.T)


def _summed(family: Family, rows: Rows, function: Callable[[Rows], T]) -> T:
    """The sum of a function over the parts of all rows.

    The noise variance of a regression function is that of all rows, which are then one part.
    """
    return function(rows) if family.is_regression else rows.sum_parts(function)


def _products(family: Family, theta: FloatArray, part: Rows) -> FloatArray:
    """Weighted sum (P, P) of the outer products of the scores of rows, or of groups."""
    if part.begin is None and not family.is_regression:
        return score_products(family, theta, part.X, part.y, part.weight)
    scores = rows_of_scores(family, part, theta)
    return (scores * part.units[:, None]).T @ scores


def _squares(family: Family, theta: FloatArray, part: Rows) -> tuple[FloatArray, int]:
    """Sum (P, P) of the outer products of weighted scores of groups, and the number of groups."""
    scores = rows_of_scores(family, part, theta) * part.units[:, None]
    return scores.T @ scores, int(np.count_nonzero(part.units))


def _middle(result: Fitted, inner: InnerFit, kind: str, groups: Any, strata: Any) -> FloatArray:
    """The matrix M (P, P) of a sandwich ``V M V`` with V the inverse observed information.

    M is the sum of the outer products of scores over rows (HC0); this sum times ``n / (n - edf)``
    (HC1); the sum of the outer products of the scores of groups, times ``G / (G - 1)`` (cluster);
    or the variance of a total in a survey, see `strata_of`.

    White (1982) for the sandwich, Liang and Zeger (1986) for groups, Binder (1983) for surveys.
    """
    family, rows, theta = inner.family, inner.data, inner.theta
    if kind in ("HC0", "HC1"):
        M = _summed(family, rows, partial(_products, family, theta))
        n = result.n_independent
        return M if kind == "HC0" else M * (n / (n - result.edf))
    has_groups = result.data is not None and result.data.groups is not None
    if kind == "cluster" and groups is None and has_groups:
        M, count = rows.sum_parts(partial(_squares, family, theta))
        return M * _scale_of_clusters(count)
    arguments = {"strata": strata, "groups": groups}
    given = {name: labels for name, labels in arguments.items() if labels is not None}
    if kind == "cluster" and not given:
        raise ValueError(
            "groups: 'cluster' needs the name of a column of the source"
            if isinstance(rows, BlockRows)
            else f"groups must hold one label per row, shape ({rows.size},), for 'cluster'; got"
            " nothing"
        )
    if groups is None:
        return _middle_of_strata(_strata_of_rows(result, inner, given))
    sums = _sums_of_clusters(result, inner, given)
    if kind == "cluster":
        total = sums.total[sums.inside > 0.0]
        return total.T @ total * _scale_of_clusters(len(total))
    labels = sums.labels[0] if "strata" in given else None
    return _middle_of_strata(strata_of(sums.total, sums.inside, labels))


def _scale_of_clusters(count: int) -> float:
    """The factor ``G / (G - 1)`` of G clusters, of which there must be a few."""
    if count < _FEWEST_GROUPS:
        raise ValueError(
            f"groups must hold at least {_FEWEST_GROUPS} groups for cov_type 'cluster', got"
            f" {count}: with fewer groups the covariance cannot be estimated"
        )
    return count / (count - 1.0)


@dataclass(frozen=True)
class _Sums:
    """Sums of scores over the rows with the same labels."""

    labels: tuple[Labels, ...]  # (m,) each
    inside: FloatArray  # (m,): numbers of rows, or groups, with a weight
    total: FloatArray  # (m, P)

    @classmethod
    def of(cls, labels: Sequence[Labels], inside: FloatArray, total: FloatArray) -> _Sums:
        """The sums by label, in the order of the labels, of rows or of other sums."""
        codes = [np.unique(each, return_inverse=True)[1].reshape(-1) for each in labels]
        pairs, first, place = np.unique(
            np.column_stack(codes), axis=0, return_index=True, return_inverse=True
        )
        place, sums = place.reshape(-1), np.zeros((len(pairs), total.shape[1]))
        np.add.at(sums, place, total)
        return cls(
            tuple(each[first] for each in labels),
            np.bincount(place, inside).astype(np.float64),
            sums,
        )

    @classmethod
    def joined(cls, some: Sequence[_Sums]) -> _Sums:
        """The sums of several parts."""
        if len(some) == 1:
            return some[0]
        labels = [np.concatenate(each) for each in zip(*(one.labels for one in some), strict=True)]
        inside = np.concatenate([one.inside for one in some])
        return cls.of(labels, inside, np.concatenate([one.total for one in some]))


def _sums_of_clusters(result: Fitted, inner: InnerFit, given: Mapping[str, Any]) -> _Sums:
    """Sums of the scores of clusters, in the order of strata and clusters."""
    some: list[_Sums] = []
    for labels, inside, scores in _labelled_scores(result, inner, given):
        some.append(_Sums.of(labels, inside, scores))
        # Few joins of many clusters: each at least doubles what has been joined before.
        if sum(len(each.total) for each in some[1:]) > len(some[0].total):
            some = [_Sums.joined(some)]
        count = len(some[0].total)
        check_room(
            FLOAT_BYTES * count * inner.family.n_params,
            f"groups: sums of scores of {count:,} groups",
            "; take HC0, or larger groups",
        )
    return _Sums.joined(some)


@dataclass(frozen=True)
class _Stratum:
    """Units of a stratum: their number, and the mean and the squared deviations of their scores."""

    count: int
    inside: bool  # whether a unit has a weight
    mean: FloatArray  # (P,)
    square: FloatArray  # (P, P)

    def joined(self, other: _Stratum) -> _Stratum:
        """The union of two; sums of squares by Chan, Golub and LeVeque (1983)."""
        count, gap = self.count + other.count, other.mean - self.mean
        share = other.count / count
        return _Stratum(
            count,
            self.inside or other.inside,
            self.mean + gap * share,
            self.square + other.square + np.outer(gap, gap) * (self.count * share),
        )


def strata_of(
    scores: FloatArray, inside: FloatArray, strata: Labels | None
) -> dict[object, _Stratum]:
    """The strata of units with weighted scores (m, P): clusters, or single rows.

    Units of weight 0, which `inside` (m,) marks by 0, are outside of the part of the population
    that is studied, and inside the design: they count, with a score of 0.
    """
    labels = np.zeros(len(scores), dtype=np.int64) if strata is None else strata
    names, place = np.unique(labels, return_inverse=True)
    order = np.argsort(place.reshape(-1), kind="stable")
    ends = np.searchsorted(place.reshape(-1)[order], np.arange(names.size + 1))
    found = dict[object, _Stratum]()
    for name, begin, end in zip(names.tolist(), ends[:-1], ends[1:], strict=True):
        own = scores[order[begin:end]]
        mean = own.mean(axis=0)
        apart = own - mean
        weighted = bool(np.any(inside[order[begin:end]] > 0.0))
        found[name] = _Stratum(int(end - begin), weighted, mean, apart.T @ apart)
    return found


def _strata_of_rows(
    result: Fitted, inner: InnerFit, given: Mapping[str, Any]
) -> dict[object, _Stratum]:
    """The strata of rows that are not in clusters."""
    found = dict[object, _Stratum]()
    for labels, inside, scores in _labelled_scores(result, inner, given):
        for name, stratum in strata_of(scores, inside, labels[0] if labels else None).items():
            found[name] = found[name].joined(stratum) if name in found else stratum
    return found


def _middle_of_strata(strata: Mapping[object, _Stratum]) -> FloatArray:
    """The matrix M (P, P) of a sandwich for a stratified sample.

    ``sum_h n_h / (n_h - 1) sum_c (z_hc - z_h)(z_hc - z_h)'`` with the weighted sums ``z_hc`` of the
    scores of the n_h clusters of stratum h, or of its rows, and their mean ``z_h``: the variance of
    a total when clusters are drawn with replacement within strata, as in Binder (1983).
    """
    middle: Any = 0.0
    for name, stratum in strata.items():
        if stratum.count < 2 and stratum.inside:
            raise ValueError(
                f"strata: {name!r} has one cluster, which has no variance; join it to another"
                " stratum"
            )
        # A stratum outside, of one cluster, has a total of 0.
        middle = middle + stratum.square * (stratum.count / max(stratum.count - 1.0, 1.0))
    return middle


_Labelled = tuple[list[Labels], FloatArray, FloatArray]
"""Labels (m,) of rows, or groups; 0 (m,) for those of weight 0; and weighted scores (m, P)."""


def _labelled_scores(
    result: Fitted, inner: InnerFit, given: Mapping[str, Any]
) -> Iterator[_Labelled]:
    """Weighted scores of the rows, or groups, of each part, with their labels.

    Labels of rows in memory are arrays (n,), those of a source names of columns.
    """
    rows, groups = inner.data, result.data.groups if result.data is not None else None
    work = partial(_scores_of_part, inner.family, inner.theta)
    if isinstance(rows, BlockRows):
        return _map_labels(rows, given, work)
    labels = [result._of_rows(name, each) for name, each in given.items()]
    if groups is not None:
        labels = [grouped_labels(groups, each) for each in labels]
    for name, each in zip(given, labels, strict=True):
        if each.shape != rows.units.shape:
            raise ValueError(
                f"{name} must hold one label per row, shape {rows.units.shape}, got {each.shape}"
            )
    used = np.flatnonzero(rows.units > 0.0)
    out = np.setdiff1d(np.arange(rows.units.size), used)
    weighted = rows.take(used, rows.units[used]) if out.size else rows
    dropped, count = _labels_of_dropped(result, given)
    pairs = zip(labels, dropped, strict=True)
    of_units = [np.append(each[np.append(used, out)], more) for each, more in pairs]
    return iter([work(weighted, of_units, out.size + count)])


def _labels_of_dropped(result: Fitted, given: Mapping[str, Any]) -> tuple[list[Labels], int]:
    """Labels of rows left out because of missing values, and the number of these rows.

    They are outside of the part of the population that is studied, and inside the design, as rows
    of weight 0 are, where labels are given for them.
    """
    rows = result.rows
    found = [result._of_dropped(name, each) for name, each in given.items()]
    known = [each for each in found if each is not None]
    # The groups of the rows that were left out are not known.
    alone = rows.groups is not None and "groups" not in given
    if len(known) < len(found) or alone:
        return [result._of_rows(name, each)[:0] for name, each in given.items()], 0
    used = ~np.any([missing for _, missing in known], axis=0) if known else None
    count = rows.dropped if used is None else int(used.sum())
    return [each[used] for each, _ in known], count


def _scores_of_part(
    family: Family, theta: FloatArray, part: Rows, labels: list[Labels], n_outside: int
) -> _Labelled:
    """Scores of the rows of a part, and zeros for those of weight 0, which have the last labels."""
    scores = rows_of_scores(family, part, theta) * part.units[:, None]
    inside = np.repeat([1.0, 0.0], [len(scores), n_outside])
    if n_outside:
        scores = np.append(scores, np.zeros((n_outside, scores.shape[1])), axis=0)
    return labels, inside, scores


@runtime_checkable
class _WithColumns(Protocol):
    """Blocks of a source that has further columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        ...

    def map_labels(
        self, columns: Sequence[str], function: Callable[..., T], threads: int
    ) -> Iterator[T]:
        """``function(i, block, labels)`` for every block, with labels of some columns by name."""
        ...


def _map_labels(rows: BlockRows, given: Mapping[str, Any], work: Callable[..., T]) -> Iterator[T]:
    """``work(part, labels, n_outside)`` of every block, with the labels of columns by name."""
    blocks, columns = rows.blocks, [*given.values()]
    if not columns:
        return blocks.map(partial(_on_block, rows.reader, work, (), labels={}), rows.threads)
    if not isinstance(blocks, _WithColumns):
        raise ValueError(
            f"{[*given][-1]}: blocks have columns only for inputs, response and weights; fit a"
            " formula to a source that has the column"
        )
    names: list[str] = []
    for name, column in reversed([*given.items()]):
        if not isinstance(column, str):
            raise ValueError(
                f"{name}: for a fit to a source, give the name of a column, got {short(column)}"
            )
        if column not in blocks.columns:
            known = ", ".join(blocks.columns)
            raise ValueError(f"{name}: the source has no column {column!r}; it has {known}")
        names.insert(0, column)
    return blocks.map_labels(names, partial(_on_block, rows.reader, work, names), rows.threads)


def _on_block(
    reader: Reader,
    work: Callable[..., T],
    columns: Sequence[str],
    number: int,
    block: Block,
    labels: Mapping[str, np.ndarray],
) -> T:
    """``work`` of the rows of a block, with the labels of those without a weight last."""
    part, used, out, groups = reader.split(block)
    of_used = [labels[name][used] for name in columns]
    if groups is not None:
        of_used = [grouped_labels(groups, each) for each in of_used]
    pairs = zip(of_used, columns, strict=True)
    return work(part, [np.append(each, labels[name][out]) for each, name in pairs], out.size)


def _information_at(
    family: Family, theta: FloatArray, noise: float | None, part: Rows
) -> FloatArray:
    """Expected information (P, P) at the inputs of rows, by quadrature over the response."""
    if (with_trials := family.likelihood.with_trials) is not None:
        # The numbers of trials of the rows are known, as their inputs are.
        family = replace(family, likelihood=with_trials(part.y))
    return expected_information(family, theta, AtInputs(part), n_nodes=1, noise=noise)


def _noise(family: Family, rows: Rows, theta: FloatArray) -> float | None:
    """The variance of the errors of a regression function; None for a density."""
    return _residuals(family, rows, theta)[1] if family.is_regression else None


def information_of(family: Family, data: Rows, theta: FloatArray) -> FloatArray:
    """Expected information (P, P), or the products of the scores where there is none.

    Densities of groups and of several responses have no expected information here, and censored
    responses do not say what the bounds of the known ones would have been.
    """
    likelihood = family.likelihood
    if data.begin is None and not likelihood.parts and not likelihood.is_censored:
        return _information_at(family, theta, _noise(family, data, theta), data)
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
    result: Fitted, kind: str, groups: Any = None, strata: Any = None
) -> FloatArray | None:
    """A covariance (P, P) of a fit in the user's coordinates; None for "observed".

    `groups` and `strata` are labels (n,) of rows in memory; of a source they are names of columns,
    in which the rows of a group of the fit have one label.
    """
    if not check_kind_of_covariance(result, kind, groups, strata):
        return None
    inner = inner_fit(result, mode=True, passes=True)
    if kind == "expected":
        return inner.outward_matrix(_inverse_of_expected(inner))
    return sandwich(inner, _middle(result, inner, kind, groups, strata))


def _inverse_of_expected(inner: InnerFit) -> FloatArray:
    """The inverse (P, P) of the expected information at the inputs of all rows."""
    family, theta, rows = inner.family, inner.theta, inner.data
    noise = _noise(family, rows, theta)
    information = _summed(family, rows, partial(_information_at, family, theta, noise))
    penalty = getattr(inner.problem, "penalty", None)
    if penalty is not None:
        information = information + penalty.hessian(theta)
    # In the basis of the directions that the observed information determines.
    basis = inner.identified.determined
    return basis @ np.linalg.pinv(basis.T @ information @ basis, hermitian=True) @ basis.T
