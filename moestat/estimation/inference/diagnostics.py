"""Diagnostics of a fit: quantile residuals, calibration, assignments, influence."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from moestat.base.door import door
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_design, as_generator
from moestat.estimation.inference.found import check_likelihood, found
from moestat.kernels.records import Data, Sums
from moestat.model.censoring import bounds_of
from moestat.model.family import Family
from moestat.solvers.groups import group_sums
from moestat.solvers.problem import Sample

__all__ = [
    "Influence",
    "calibration",
    "classification_table",
    "influence",
    "quantile_residuals",
]

_NONE = np.empty((0, 0))
_CHUNK = 1024  # rows whose Hessians are in memory at a time


@door(family="Family | MoEResults")
def quantile_residuals(
    family: Any, theta: Any = None, X: Any = None, y: Any = None, rng: Any = None
) -> Any:
    """Randomised quantile residuals, standard normal if the model is true.

    ``r = Phi^-1(F(y | x))`` for a continuous response; for classes and counts u in place of F is
    uniform between ``F(y - 1 | x)`` and ``F(y | x)``.

    Parameters
    ----------
    family : Family or MoEResults
        The model, with a density; of a result the residuals are those of its data, or of X and y
        read as it reads them, and theta is its own.
    theta : ndarray of shape (P,)
        Packed parameters.
    X, y : array_like of shape (n, d), (n,)
        Data.
    rng : numpy.random.Generator, int or None
        Source of the uniform numbers, for classes, counts and censored responses.

    Returns
    -------
    ndarray of shape (n,)
        The residuals.

    Notes
    -----
    Dunn and Smyth (1996).

    Examples
    --------
    >>> from moestat import family, sample
    >>> F = family("gaussian", gate="softmax", n_experts=1)
    >>> theta = F.pack({"beta0": [0], "beta1": [0], "a": [2], "b": [1], "nu": [4]})
    >>> quantile_residuals(F, theta, [[1.0]], [5.0]).round(6).tolist()
    [1.0]
    """
    from scipy.special import ndtr, ndtri

    if hasattr(family, "quantile_residuals"):
        return family.quantile_residuals(rng, X=X, y=y)
    check_likelihood("quantile_residuals", family)
    design = as_design(X, family.n_features).T
    if family.likelihood.support is None:
        assert family.likelihood.spread is not None
        eta = family.predictors(theta, np.ascontiguousarray(design.T))
        weight = family.gate_probabilities(theta, design).T
        if family.likelihood.counts:
            at = family.likelihood
            if at.given is not None:
                y = at.encode(y, 1)
                at, y = at.given(y), np.real(y)
            assert at.law is not None
            return _count_residuals(at.law(eta), weight, *bounds_of(y), as_generator(rng))
        mean, deviation = family.likelihood.spread(eta)
        cdf, sf = (lambda y: ndtr((y - mean) / deviation)), (lambda y: ndtr((mean - y) / deviation))
        if family.likelihood.law is not None:
            law = family.likelihood.law(eta)
            cdf, sf = law.cdf, law.sf
        low, high = bounds_of(y)
        below, above = (np.sum(weight * tail(low), axis=0) for tail in (cdf, sf))
        if np.any(low != high):
            # Anywhere between the bounds of a response that is censored.
            share = as_generator(rng).random(low.size)
            above = above + share * (np.sum(weight * sf(high), axis=0) - above)
            below = below + share * (np.sum(weight * cdf(high), axis=0) - below)
        # The smaller tail keeps its digits.
        return np.where(below < 0.5, ndtri(below), -ndtri(above))
    probability = family.probabilities(theta, design)
    cumulative = np.cumsum(probability, axis=1)
    label = family.likelihood.encode(y, family.n_classes)
    at = np.arange(label.size)
    high = cumulative[at, label]
    u = high - as_generator(rng).random(label.size) * probability[at, label]
    return ndtri(np.clip(u, 1e-16, 1.0 - 1e-16))


def _count_residuals(
    law: Any, weight: FloatArray, low: Any, high: Any, rng: np.random.Generator
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
def calibration(probability: FloatArray, occurred: Any, bins: int = 10) -> dict[str, FloatArray]:
    """Predicted probabilities of a class against how often it occurred, in bins of equal counts.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        Predicted probabilities.
    occurred : array_like of shape (n,)
        Whether the class occurred.
    bins : int
        Number of bins.

    Returns
    -------
    dict
        ``predicted``, ``observed`` and ``count`` of each bin.

    Examples
    --------
    >>> table = calibration(np.array([0.1, 0.1, 0.9, 0.9]), [0, 0, 1, 1], bins=2)
    >>> table["observed"].tolist()
    [0.0, 1.0]
    """
    order = np.argsort(probability, kind="stable")
    parts = np.array_split(order, min(bins, order.size))
    happened = np.asarray(occurred, dtype=np.float64)
    return {
        "predicted": np.array([probability[part].mean() for part in parts]),
        "observed": np.array([happened[part].mean() for part in parts]),
        "count": np.array([float(part.size) for part in parts]),
    }


@door()
def classification_table(responsibilities: FloatArray, labels: Any) -> tuple[Any, IntArray]:
    """Counts of known labels (rows) by most probable expert (columns).

    Parameters
    ----------
    responsibilities : ndarray of shape (n, k)
        Posterior probabilities of the experts.
    labels : array_like of shape (n,)
        Known labels.

    Returns
    -------
    labels : ndarray of shape (L,)
        The distinct labels.
    table : ndarray of shape (L, k)
        Counts.

    Examples
    --------
    >>> classification_table(np.array([[0.9, 0.1], [0.2, 0.8]]), ["u", "v"])[1].tolist()
    [[1, 0], [0, 1]]
    """
    names, rows = np.unique(np.asarray(labels), return_inverse=True)
    table = np.zeros((names.size, responsibilities.shape[1]), dtype=np.int64)
    np.add.at(table, (rows, np.argmax(responsibilities, axis=1)), 1)
    return names, table


@dataclass(frozen=True)
class Influence:
    """What leaving out each row does to an estimate; in a fit with groups, each group, by label.

    Parameters
    ----------
    moves : ndarray of shape (n, P)
        Estimate without the row less the estimate, by one Newton step.
    displacement : ndarray of shape (n,)
        Likelihood displacement ``d' I d`` of each move d with the information I: about twice the
        loss of the log-likelihood of all rows (Cook and Weisberg 1982).
    """

    moves: FloatArray = field(repr=False)
    displacement: FloatArray = field(repr=False)


@door(result="MoEResults")
def influence(result: Any) -> Influence:
    """Case deletion by one Newton step of the likelihood without the row.

    Parameters
    ----------
    result : MoEResults
        A fit to data, with a density.

    Returns
    -------
    Influence
        ``theta_(-t) - theta ~ -(I - I_t)^-1 s_t`` with the observed information I of all rows and
        score s_t and information I_t of row t, for the coordinates that are free; a row of weight
        w is left out as a whole.  In a fit with groups it is each group that is left out, in the
        ascending order of their labels.

    Raises
    ------
    ValueError
        If the family has no density.

    Notes
    -----
    Cook and Weisberg (1982).

    Examples
    --------
    >>> import moestat
    >>> x = np.linspace(-1, 1, 20)
    >>> y = np.where(x > 0.99, 9.0, 0.0) + np.sin(9 * x)
    >>> int(np.argmax(influence(moestat.fit("gaussian", x, y, n_experts=1, rng=0)).displacement))
    19
    """
    check_likelihood("influence", result.family)
    inner = found(result, mode=True)
    family, data, free = inner.family, inner.data, inner.free
    whole = inner.information[np.ix_(free, free)]
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(whole)), np.finfo(float).tiny))
    n = data.units.size
    moves = np.zeros((n, family.n_params))
    for first in range(0, n, _CHUNK):
        rows = slice(first, min(first + _CHUNK, n))
        each = _row_by_row if data.begin is None else _group_by_group
        score, hessian = each(family, inner.theta, data, rows)
        rest = (whole + hessian[:, free][:, :, free]) * np.outer(scale, scale)
        moves[rows, free] = -scale * _solved(rest, scale * score[:, free])
    displacement = np.einsum("ti,ij,tj->t", moves[:, free], whole, moves[:, free])
    if inner.coordinates is not None:
        moves = moves @ inner.coordinates.matrix.T
    return Influence(moves, displacement)


def _group_by_group(
    family: Family, theta: FloatArray, data: Sample, groups: slice
) -> tuple[FloatArray, FloatArray]:
    """Score (m, P) and Hessian (m, P, P) of each of some groups with its weight."""
    assert data.begin is not None
    edges = np.append(data.begin, data.size)[groups.start : groups.stop + 1]
    sums = []
    for start, stop in pairwise(edges.tolist()):
        own = slice(start, stop)
        X = np.ascontiguousarray(data.X[:, own])
        one = Sample(X, data.y[own], data.weight[own], begin=np.zeros(1, dtype=np.int64))
        sums.append(group_sums(family, theta, one, 2))
    return np.array([one.score for one in sums]), np.array([one.hessian for one in sums])


def _row_by_row(
    family: Family, theta: FloatArray, data: Sample, rows: slice
) -> tuple[FloatArray, FloatArray]:
    """Score (m, P) and Hessian (m, P, P) of each of some rows with its weight."""
    part = data.part(rows)
    scores = np.empty((part.size, family.n_params))
    hessians = np.empty((part.size, family.n_params, family.n_params))
    columns = np.ascontiguousarray(part.X.T)[:, :, None]
    for t, x in enumerate(columns):
        one = Data(x, part.y[t : t + 1], part.weight[t : t + 1], _NONE)
        sums = Sums(scores[t], hessians[t], _NONE)
        family.loops.log_likelihood(theta, family.coefficients, one, 2, sums)
    return scores, hessians


def _solved(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Symmetric matrices (m, F, F), inverted along what they determine, times vectors (m, F)."""
    try:
        np.linalg.cholesky(matrices)
        found = np.linalg.solve(matrices, vectors[:, :, None])
    except np.linalg.LinAlgError:
        found = np.linalg.pinv(matrices, hermitian=True) @ vectors[:, :, None]
    return np.asarray(found[:, :, 0], dtype=np.float64)
