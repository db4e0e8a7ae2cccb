"""Diagnostics of a fit: quantile residuals, calibration, assignments, influence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import FloatArray, IntArray, Labels, Seed, TableLike
from moestat.base.validate import as_design, as_generator, positive_int
from moestat.compiler.jit import compact, compile_loop
from moestat.estimation.inference.inner_fit import InnerFit, check_likelihood, inner_fit
from moestat.estimation.rows.block_rows import BlockRows, Reader
from moestat.estimation.rows.blocks import Block
from moestat.kernels.build import call_mixture, mixture_address
from moestat.kernels.records import NO_SUMS, Data, Sums, numbers_of
from moestat.kernels.views import part, row
from moestat.model.censoring import bounds_of
from moestat.model.family import Family
from moestat.solvers.groups import group_sums
from moestat.solvers.problem import Objective, Problem, Request, Rows
from moestat.solvers.rules import BELOW_ONE
from moestat.solvers.trust_region.eigen import back_substitute, cholesky, forward_substitute

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = [
    "Influence",
    "calibration",
    "classification_table",
    "expert_residuals",
    "influence",
    "quantile_residuals",
]


@door()
def quantile_residuals(
    family: Family,
    theta: ArrayLike,
    X: ArrayLike | TableLike,
    y: ArrayLike,
    rng: Seed = None,
) -> FloatArray:
    """Randomised quantile residuals, standard normal if the model is true.

    ``r = Phi^-1(F(y | x))`` for a continuous response; for classes and counts u in place of F is
    uniform between ``F(y - 1 | x)`` and ``F(y | x)`` (Dunn and Smyth 1996).
    """
    from scipy.special import ndtri

    check_likelihood("quantile_residuals", family)
    design = as_design(X, family.n_features).T
    if family.likelihood.support is None:
        weight = family.gate_probabilities(theta, design).T
        params = np.asarray(theta, dtype=np.float64)
        return _residuals(family, params, design, y, weight, as_generator(rng))
    probability = family.probabilities(theta, design)
    cumulative = np.cumsum(probability, axis=1)
    label = family.likelihood.encode(y, family.n_classes)
    at = np.arange(label.size)
    high = cumulative[at, label]
    u = high - as_generator(rng).random(label.size) * probability[at, label]
    return ndtri(np.clip(u, 1.0 - BELOW_ONE, BELOW_ONE))


def expert_residuals(
    family: Family, theta: FloatArray, X: FloatArray, y: ArrayLike, rng: Seed
) -> FloatArray:
    """Quantile residuals (k, n) of real responses or counts under each expert by itself."""
    experts = np.eye(family.n_experts)
    return np.stack(
        [_residuals(family, theta, X, y, expert[:, None], as_generator(rng)) for expert in experts]
    )


def _residuals(
    family: Family,
    theta: FloatArray,
    design: FloatArray,
    y: ArrayLike,
    weight: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Quantile residuals (n,) under the mixture of the experts with weights (k, n) or (k, 1)."""
    from scipy.special import ndtr, ndtri

    assert family.likelihood.spread is not None
    eta = family.predictors(theta, np.ascontiguousarray(design.T))
    if family.likelihood.counts:
        at = family.likelihood
        if at.with_trials is not None:
            encoded = at.encode(y, 1)
            at, y = at.with_trials(encoded), np.real(encoded)
        assert at.law is not None
        return _count_residuals(at.law(eta), weight, *bounds_of(y), rng)
    mean, deviation = family.likelihood.spread(eta)
    cdf, sf = (lambda y: ndtr((y - mean) / deviation)), (lambda y: ndtr((mean - y) / deviation))
    if family.likelihood.law is not None:
        law = family.likelihood.law(eta)
        cdf, sf = law.cdf, law.sf
    low, high = bounds_of(y)
    below, above = (np.sum(weight * tail(low), axis=0) for tail in (cdf, sf))
    if np.any(low != high):
        # The residual of a censored response is drawn between those of its bounds.
        share = rng.random(low.size)
        above = above + share * (np.sum(weight * sf(high), axis=0) - above)
        below = below + share * (np.sum(weight * cdf(high), axis=0) - below)
    # The smaller tail keeps its digits.
    return np.where(below < 0.5, ndtri(below), -ndtri(above))


def _count_residuals(
    law: Any, weight: FloatArray, low: FloatArray, high: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Residuals (n,) of counts between bounds (n,) under laws (k, n) with weights (k, n)."""
    from scipy.special import ndtri

    inside = law.pmf(high) if low is high else law.cdf(high) - law.cdf(low - 1.0)
    share = rng.random(low.size) * np.sum(weight * inside, axis=0)
    below = np.sum(weight * law.cdf(high), axis=0) - share
    above = np.sum(weight * law.sf(high), axis=0) + share
    # The smaller tail keeps its digits.
    tiny = np.finfo(float).tiny
    low, high = ndtri(np.maximum(below, tiny)), -ndtri(np.maximum(above, tiny))
    return np.where(below < 0.5, low, high)


@door()
def calibration(
    probability: FloatArray, occurred: ArrayLike, weight: FloatArray, bins: int = 10
) -> dict[str, np.ndarray]:
    """Predicted probabilities of a class against how often it occurred.

    Bins have about equal weights; rows with the same probability share a bin.
    """
    counted = np.flatnonzero(weight)  # rows without weight have no bins of their own
    weight = np.take(weight, counted)
    values, place = np.unique(probability[counted], return_inverse=True)
    weights = np.bincount(place, weight)
    happened = np.bincount(place, weight * np.asarray(occurred, dtype=np.float64)[counted])
    middle = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    _, part = np.unique((bins * middle).astype(np.int64), return_inverse=True)
    count = np.bincount(part, weights)
    return {
        "predicted": np.bincount(part, weights * values) / count,
        "observed": np.bincount(part, happened) / count,
        "count": count,
    }


@door()
def classification_table(
    responsibilities: FloatArray, labels: ArrayLike, weight: FloatArray
) -> tuple[Labels, FloatArray | IntArray]:
    """Sums of weights by known label (rows) and most probable expert (columns).

    The sums are integers if all weights are.
    """
    names, rows = np.unique(np.asarray(labels), return_inverse=True)
    table = np.zeros((names.size, responsibilities.shape[1]))
    np.add.at(table, (rows, np.argmax(responsibilities, axis=1)), weight)
    are_counts = np.array_equal(weight, np.round(weight))
    return names, table.astype(np.int64) if are_counts else table


@dataclass(frozen=True)
class Influence:
    """Influence of each row on the estimate; in a fit with groups, of each group, by label.

    Parameters
    ----------
    moves : ndarray of shape (n, P)
        Estimate without the row minus the estimate, by one Newton step.  NaN for parameters that
        the data do not determine.
    displacement : ndarray of shape (n,)
        Likelihood displacement ``d' I d`` of each move d with the information I: about twice the
        decrease of the log-likelihood of all rows (Cook and Weisberg 1982).
    rows : ndarray of shape (n,), optional
        For a fit to blocks or a source: the numbers of these rows, from 0, among those without
        missing values, or the labels of the groups, beginning with the largest displacement.
    """

    moves: FloatArray = field(repr=False)
    displacement: FloatArray = field(repr=False)
    rows: Labels | None = field(default=None, repr=False)


@door(result="MoEResults")
def influence(result: Fitted, top: int = 100) -> Influence:
    """Case deletion by one Newton step of the likelihood without the row.

    ``theta_(-t) - theta ~ -(I - I_t)^-1 s_t`` with the observed information I of all rows and score
    s_t and information I_t of row t, for the coordinates that are free; a row of weight w is left
    out with its whole weight.  In a fit with groups, each group is left out in turn, in the order
    of their labels.

    Cook and Weisberg (1982).
    """
    check_likelihood("influence", result.family)
    inner = inner_fit(result, mode=True, passes=True)
    if result.reads_source:
        n_top = positive_int("top", top, maximum=None)
        moves, displacement, rows = _top_rows(inner, partial(_moves, *_estimate_of(inner)), n_top)
    else:
        moves, displacement = _moves(*_estimate_of(inner), inner.data)
        rows = None
    if inner.coordinates is not None:
        moves = moves @ inner.coordinates.matrix.T
    moves[:, inner.identified.untold(result._matrix)] = np.nan
    return Influence(moves, displacement, rows)


_Top = tuple[FloatArray, FloatArray, np.ndarray]
"""Moves (m, P), displacements (m,) and names of rows (m,)."""


def _top_rows(
    inner: InnerFit, moves_of: Callable[[Rows], tuple[FloatArray, FloatArray]], n_top: int
) -> _Top:
    """The rows, or groups, of largest displacement, by one pass, the largest first."""
    rows = inner.data
    assert isinstance(rows, BlockRows)
    first = rows.totals.begin
    work = partial(_top_of_block, rows.reader, moves_of, n_top, first)
    best: _Top | None = None
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
) -> _Top:
    rows, used, _, groups = reader.split(block)
    begin = int(first[number]) if number < len(first) else 0
    names = begin + used if groups is None else np.unique(groups)
    return _select_largest(*moves_of(rows), names, n_top)


def _select_largest(moves: FloatArray, size: FloatArray, names: np.ndarray, n_top: int) -> _Top:
    order = np.argsort(-size, kind="stable")[:n_top]
    return moves[order], size[order], names[order]


def _estimate_of(inner: InnerFit) -> tuple[Family, FloatArray, FloatArray, IntArray]:
    """The family, the estimate (P,), the information of all rows and the free coordinates."""
    return inner.family, inner.theta, inner.information, inner.free


def _moves(
    family: Family, theta: FloatArray, information: FloatArray, free: IntArray, data: Rows
) -> tuple[FloatArray, FloatArray]:
    """Moves (n, P) of the estimate without each row, or group, and their displacements (n,)."""
    free_information = information[np.ix_(free, free)]
    if data.begin is None:
        moves = _deletions(family, data, theta, information, free)
    else:
        moves = _deleted_groups(family, data, theta, free_information, free)
    free_moves = moves[:, free]
    return moves, np.einsum("np,np->n", free_moves @ free_information, free_moves)


def _deleted_groups(
    family: Family, data: Rows, theta: FloatArray, free_information: FloatArray, free: IntArray
) -> FloatArray:
    """Moves (m, P) of the estimate by leaving out each group."""
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(free_information)), np.finfo(float).tiny))
    n = data.units.size
    score, hessian = _group_by_group(family, theta, data, slice(0, n))
    remaining = (free_information + hessian[:, free][:, :, free]) * np.outer(scale, scale)
    moves, scaled_score = np.zeros((n, family.n_params)), scale * score[:, free]
    solved = np.linalg.pinv(remaining, hermitian=True) @ scaled_score[:, :, None]
    moves[:, free] = -scale * solved[:, :, 0]
    return moves


def _group_by_group(
    family: Family, theta: FloatArray, data: Rows, groups: slice
) -> tuple[FloatArray, FloatArray]:
    """Score (m, P) and Hessian (m, P, P) of each of some groups with its weight."""
    assert data.begin is not None
    edges = np.append(data.begin, data.size)[groups.start : groups.stop + 1]
    sums = []
    for start, stop in pairwise(edges.tolist()):
        rows = slice(start, stop)
        X = np.ascontiguousarray(data.X[:, rows])
        one = Rows(X, data.y[rows], data.weight[rows], begin=np.zeros(1, dtype=np.int64))
        sums.append(group_sums(family, theta, one, 2))
    return np.array([one.score for one in sums]), np.array([one.hessian for one in sums])


def _deletions(
    family: Family, data: Rows, theta: FloatArray, information: FloatArray, free: IntArray
) -> FloatArray:
    """Moves (n, P) of the estimate by leaving out each row."""
    P, none = family.n_params, NO_SUMS.information
    block = information[np.ix_(free, free)]
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(block)), np.finfo(float).tiny))
    moves, solved = np.zeros((data.size, P)), np.ones(data.size, dtype=bool)
    first = data.part(slice(0, 1))
    one = Data(*first.arrays, none)
    _deletion_loop(
        mixture_address(),
        family.loops.inputs(family.coefficients, one, 2),
        (np.ascontiguousarray(data.X.T)[:, :, None], numbers_of(data.y), data.weight, none),
        theta,
        (information, free, scale),
        Sums(np.empty(P), np.empty((P, P)), none),
        (np.empty((free.size, free.size)), np.empty(free.size)),
        moves,
        solved,
    )
    for t in np.flatnonzero(~solved):
        evaluation = Problem(family, data.part(slice(t, t + 1))).evaluate(
            Request(Objective.OBSERVED, theta)
        )
        remaining = (block - evaluation.hessian[np.ix_(free, free)]) * np.outer(scale, scale)
        moves[t, free] = scale * (
            np.linalg.pinv(remaining, hermitian=True) @ (scale * evaluation.gradient[free])
        )
    return moves


@compile_loop
@compact
def _deletion_loop(address, first_inputs, rows, theta, free_model, sums, work, moves, solved):
    """Solve for the move of each row (n, P), or say that its matrix is not definite."""
    code, coefficients, first, by_sample, terms = first_inputs
    columns, y, weight, none = rows
    w = first[1].size
    information, free, scale = free_model
    matrix, move = work
    n = free.size
    for t in range(weight.size):
        one = Data(row(columns, t), part(y, w * t, w * (t + 1)), part(weight, t, t + 1), none)
        inputs = code, coefficients, one, by_sample, terms
        call_mixture(address, (inputs, theta, 2, sums))
        for j in range(n):
            at = free[j]
            move[j] = -scale[j] * sums.score[at]
            for i in range(j + 1):
                entry = information[at, free[i]] + sums.hessian[at, free[i]]
                matrix[j, i] = scale[j] * scale[i] * entry
        solved[t] = cholesky(n, matrix)
        if solved[t]:
            forward_substitute(n, matrix, move)
            back_substitute(n, matrix, move)
            for j in range(n):
                moves[t, free[j]] = scale[j] * move[j]
