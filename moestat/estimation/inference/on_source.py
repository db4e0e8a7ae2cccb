"""Statistics of the rows of a fit to blocks or a source, each computed by one more pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from moestat.base.memory import FLOAT_BYTES, check_room
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import short
from moestat.estimation.data.groups import grouped_labels
from moestat.estimation.inference.covariance import (
    information_at,
    information_of,
    middle_of_survey,
    rows_of_scores,
    sandwich,
    scale_of_clusters,
)
from moestat.estimation.inference.inner_fit import InnerFit, inner_fit
from moestat.estimation.rows.block_rows import BlockRows, Draw, Reader
from moestat.estimation.rows.blocks import Block, GroupedBlock
from moestat.estimation.rows.passes import Passes
from moestat.metrics.information import score_products
from moestat.model.family import Family
from moestat.solvers import Newton
from moestat.solvers.driver import attempt, succeeded
from moestat.solvers.problem import Objective, Problem, Request, Rows

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

T = TypeVar("T")

__all__ = [
    "covariance_on_source",
    "entropy_on_source",
    "held_out_on_source",
    "score_on_source",
    "top_rows",
]

_CLUSTERS, _STRATA = "groups", "strata"

_Key: TypeAlias = tuple[object, ...]
"""Labels of the cluster and the stratum of some rows, as far as there are columns of these."""

_Sums: TypeAlias = tuple[_Key, int, FloatArray, FloatArray | None]
"""Labels, number of rows, sum of scores (P,), and the sum (P, P) of their outer products."""


@runtime_checkable
class WithColumns(Protocol):
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


def covariance_on_source(result: Fitted, kind: str, groups: object, strata: object) -> FloatArray:
    """A covariance (P, P) in the user's coordinates, as `robust_covariance`, by one pass.

    `groups` and `strata` are names of columns of the source, in which the rows of a group of the
    fit have one label; without `groups` each group of the fit is a cluster.
    """
    inner = inner_fit(result, mode=True, passes=True)
    rows, family, theta = inner.data, inner.family, inner.theta
    assert isinstance(rows, BlockRows)
    if kind == "expected":
        return inner.outward_matrix(_inverse_of_expected(inner, rows))
    if kind in ("HC0", "HC1"):
        M = rows.sum_parts(partial(_sum_products, family, theta))
        if kind == "HC1":
            n = result.n_independent
            M = M * (n / (n - result.edf))
        return sandwich(inner, M)
    has_groups = result.data is not None and result.data.groups is not None
    if kind == "cluster" and has_groups and groups is None:
        M, count = rows.sum_parts(partial(_sum_squares, family, theta))
        return sandwich(inner, M * scale_of_clusters(count))
    M = _middle_of_labels(rows, family, theta, kind, groups, strata)
    return sandwich(inner, M)


def _inverse_of_expected(inner: InnerFit, rows: BlockRows) -> FloatArray:
    """The inverse (P, P) of the expected information at the inputs of all rows."""
    information = rows.sum_parts(partial(_information_of_part, inner.family, inner.theta))
    penalty = getattr(inner.problem, "penalty", None)
    if penalty is not None:
        information = information + penalty.hessian(inner.theta)
    basis = inner.known.determined
    return basis @ np.linalg.pinv(basis.T @ information @ basis, hermitian=True) @ basis.T


def _information_of_part(family: Family, theta: FloatArray, part: Rows) -> FloatArray:
    return information_at(family, part, theta)


def _sum_products(family: Family, theta: FloatArray, part: Rows) -> FloatArray:
    """Weighted sum (P, P) of the outer products of scores."""
    if part.begin is None:
        return score_products(family, theta, part.X, part.y, part.weight)
    scores = rows_of_scores(family, part, theta)
    return (scores * part.units[:, None]).T @ scores


def _sum_squares(family: Family, theta: FloatArray, part: Rows) -> tuple[FloatArray, int]:
    """Sum (P, P) of the outer products of weighted scores of groups, and the number of groups."""
    scores = rows_of_scores(family, part, theta) * part.units[:, None]
    return scores.T @ scores, len(scores)


def _middle_of_labels(
    rows: BlockRows,
    family: Family,
    theta: FloatArray,
    kind: str,
    groups: object,
    strata: object,
) -> FloatArray:
    """The matrix M (P, P) of a sandwich of clusters, or of strata of clusters."""
    arguments = {_CLUSTERS: groups, _STRATA: strata}
    requested = {name: given for name, given in arguments.items() if given is not None}
    if kind == "cluster" and not requested:
        raise ValueError("groups: 'cluster' needs the name of a column of the source")
    blocks = rows.blocks
    if requested and not isinstance(blocks, WithColumns):
        raise ValueError(
            f"{next(iter(requested))}: blocks have columns only for inputs, response and weights;"
            " fit a formula to a source that has the column"
        )
    columns: dict[str, str] = {}
    for name, given in requested.items():
        if not isinstance(given, str):
            raise ValueError(
                f"{name}: for a fit to a source, give the name of a column, got {short(given)}"
            )
        assert isinstance(blocks, WithColumns)
        if given not in blocks.columns:
            known = ", ".join(blocks.columns)
            raise ValueError(f"{name}: the source has no column {given!r}; it has {known}")
        columns[name] = given
    work = partial(_sums_by_labels, family, theta, rows.reader, columns, kind == "survey")
    sums: dict[_Key, FloatArray] = {}
    # Without clusters each row is one: number of rows and sums of each stratum.
    alone: dict[_Key, tuple[int, FloatArray, FloatArray]] = {}
    each = _map_without_labels(rows, work)
    if columns and isinstance(blocks, WithColumns):
        each = blocks.map_labels([*columns.values()], work, rows.threads)
    for found_in_part in each:
        for labels, number, total, square in found_in_part:
            if groups is None:
                assert square is not None
                before = alone.get(labels, (0, 0.0, 0.0))
                alone[labels] = before[0] + number, before[1] + total, before[2] + square
            else:
                sums[labels] = sums.get(labels, 0.0) + total
        check_room(
            FLOAT_BYTES * len(sums) * family.n_params,
            f"groups: sums of scores of {len(sums):,} groups",
            "; take HC0, or larger groups",
        )
    if groups is None:
        middles = [
            _middle_of_stratum(labels, *stratum_sums) for labels, stratum_sums in alone.items()
        ]
        return np.sum(middles, axis=0)
    scores = np.array([*sums.values()])
    if kind == "cluster":
        return scores.T @ scores * scale_of_clusters(len(scores))
    keys = [*sums]
    own_strata = None if strata is None else np.array([key[1] for key in keys])
    inside = np.any(scores != 0.0, axis=1).astype(np.float64)
    return middle_of_survey(scores, inside, np.arange(len(scores)), own_strata)


def _map_without_labels(rows: BlockRows, work: Callable[..., T]) -> Iterator[T]:
    """Results of a function of blocks and labels for every block, without labels."""
    return rows.blocks.map(partial(_call_without_labels, work), rows.threads)


def _call_without_labels(work: Callable[..., T], number: int, block: Block) -> T:
    return work(number, block, {})


def _sums_by_labels(
    family: Family,
    theta: FloatArray,
    reader: Reader,
    columns: Mapping[str, str],
    design: bool,
    number: int,
    block: Block,
    labels: Mapping[str, np.ndarray],
) -> list[_Sums]:
    """Number of rows and sum of weighted scores (P,) for each combination of labels in a block.

    Where rows are not in clusters also the sum (P, P) of the outer products of the scores.  Of a
    `design` combinations of labels of rows of weight 0 count, too.
    """
    part = reader.sample(block)
    scores = rows_of_scores(family, part, theta) * part.units[:, None]
    used, groups_of_rows = reader.rows(block)
    used_labels = [labels[name][used] for name in columns.values()]
    if groups_of_rows is not None:
        used_labels = [grouped_labels(groups_of_rows, each) for each in used_labels]
    codes = [np.unique(each, return_inverse=True) for each in used_labels]
    pairs, place = np.zeros((1, 0), dtype=np.int64), np.zeros(len(scores), dtype=np.int64)
    if codes:
        stacked = np.column_stack([code.reshape(-1) for _, code in codes])
        pairs, place = np.unique(stacked, axis=0, return_inverse=True)
        place = place.reshape(-1)
    sums = np.zeros((len(pairs), scores.shape[1]))
    np.add.at(sums, place, scores)
    entries: list[_Sums] = []
    for j, pair in enumerate(pairs):
        key = tuple(names[at].item() for (names, _), at in zip(codes, pair, strict=True))
        square = None
        if _CLUSTERS not in columns:
            inside = scores[place == j]
            square = inside.T @ inside
        entries.append((key, int(np.sum(place == j)), sums[j], square))
    return entries + _outside(reader, columns, block, labels, used, sums.shape[1]) * design


def _outside(
    reader: Reader,
    columns: Mapping[str, str],
    block: Block,
    labels: Mapping[str, np.ndarray],
    used: IntArray,
    n_params: int,
) -> list[_Sums]:
    """Combinations of labels of the rows, or groups, of weight 0 in a block, with sums of 0."""
    out = np.setdiff1d(np.arange(reader.count(block)), used)
    if isinstance(block, GroupedBlock):  # one row of each group
        out = out[np.unique(block.groups[out], return_index=True)[1]]
    square = None if _CLUSTERS in columns else np.zeros((n_params, n_params))
    keys = Counter(zip(*(labels[name][out].tolist() for name in columns.values()), strict=True))
    if not columns:
        keys = Counter({(): out.size})
    return [(key, count, np.zeros(n_params), square) for key, count in keys.items()]


def _middle_of_stratum(
    labels: _Key, number: int, total: FloatArray, square: FloatArray
) -> FloatArray:
    """The part of M (P, P) of a stratum whose clusters are single rows."""
    if number < 2 and not np.any(square):
        return np.zeros_like(square)
    if number < 2:
        raise ValueError(
            f"strata: {labels[0]!r} has one cluster, which has no variance; join it to another"
            " stratum"
        )
    return (square - np.outer(total, total) / number) * (number / (number - 1.0))


def score_on_source(inner: InnerFit, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient (P,) of minus the log-likelihood, and the information (P, P), at parameters (P,)."""
    rows = inner.data
    assert isinstance(rows, BlockRows)
    return rows.sum_parts(partial(_score_and_information, inner.family, theta))


def _score_and_information(
    family: Family, theta: FloatArray, part: Rows
) -> tuple[FloatArray, FloatArray]:
    evaluation = Problem(family, part).evaluate(Request(Objective.SCORE, theta))
    return evaluation.gradient, information_of(family, part, theta)


def held_out_on_source(result: Fitted, folds: int, seed: int) -> float:
    """Mean log-density of held-out rows, or groups of rows, by fits to the other folds.

    The fits start at the estimate from all rows and share their passes.
    """
    inner = inner_fit(result, mode=True, passes=True)
    rows: BlockRows = result.source
    assert isinstance(inner.data, BlockRows)
    family = inner.family
    training = [Draw("training", (seed, fold), folds) for fold in range(folds)]
    problems = [inner.problem.replace_data(replace(inner.data, draw=draw)) for draw in training]
    start, solver = np.clip(inner.theta, family.lower, family.upper), Newton()
    climbs = [solver.steps(problem, start) for problem in problems]
    ends = succeeded(attempt(climbs, problems, Passes(rows.threads)))
    thetas = [inner.outward(end.theta) for end in ends]
    draws = [Draw("held-out", (seed, fold), folds) for fold in range(folds)]
    work = partial(_density_of_folds, result.family, rows.reader, draws, thetas)
    return float(rows.sum_blocks(work, "held-out rows")) / float(result.weight.sum())


def _density_of_folds(
    family: Family,
    reader: Reader,
    draws: Sequence[Draw],
    thetas: Sequence[FloatArray],
    number: int,
    block: Block,
) -> float:
    """The log-density of the held-out rows of each fold in a block."""
    rows, total = reader.sample(block), 0.0
    for draw, theta in zip(draws, thetas, strict=True):
        part = draw.of(number, rows)
        total += float(Problem(family, part).rowwise(theta)[2] @ part.weight)
    return total


def entropy_on_source(result: Fitted) -> float:
    """Sum over rows, or groups of rows, of the entropy of their responsibilities."""
    rows: BlockRows = result.source
    return float(rows.sum_parts(partial(_entropy, result.family, result.theta)))


def _entropy(family: Family, theta: FloatArray, part: Rows) -> float:
    tau = Problem(family, part).rowwise(theta)[1]
    tau = tau if part.begin is None else tau[:, part.begin]
    return -float(np.sum(tau * np.log(np.maximum(tau, np.finfo(float).tiny)) @ part.units))


Top = tuple[FloatArray, FloatArray, np.ndarray]
"""Moves (m, P), displacements (m,) and names of rows (m,)."""


def top_rows(
    inner: InnerFit, moves_of: Callable[[Rows], tuple[FloatArray, FloatArray]], n_top: int
) -> Top:
    """The rows, or groups, of largest displacement, by one pass, the largest first."""
    rows = inner.data
    assert isinstance(rows, BlockRows)
    first = rows.totals.begin
    work = partial(_top_of_block, rows.reader, moves_of, n_top, first)
    best: Top | None = None
    for found_in_block in rows.visit(work, "influence"):
        if best is not None:
            pairs = zip(best, found_in_block, strict=True)
            joined = [np.concatenate(pair) for pair in pairs]
            best = _select_largest(joined[0], joined[1], joined[2], n_top)
        else:
            best = found_in_block
    assert best is not None
    return best


def _top_of_block(
    reader: Reader,
    moves_of: Callable[[Rows], tuple[FloatArray, FloatArray]],
    n_top: int,
    first: IntArray,
    number: int,
    block: Block,
) -> Top:
    names = reader.names(block, int(first[number]) if number < len(first) else 0)
    return _select_largest(*moves_of(reader.sample(block)), names, n_top)


def _select_largest(moves: FloatArray, size: FloatArray, names: np.ndarray, n_top: int) -> Top:
    order = np.argsort(-size, kind="stable")[:n_top]
    return moves[order], size[order], names[order]
