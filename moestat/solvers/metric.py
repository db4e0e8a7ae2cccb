"""Metrics of parameter space: a step's length is the root mean square change of the predictors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.solvers.rules import DETAIL, TRUST


def with_ridge(gram: FloatArray) -> FloatArray:
    """A matrix ``E[phi phi']`` with a ridge that makes it definite for constant inputs, too."""
    return gram + DETAIL.ridge * np.diag(np.diag(gram) + DETAIL.ridge)


def region_metric(gram: FloatArray, index: IntArray, width: IntArray, n_params: int) -> FloatArray:
    """The metric M (P, P) of channels at `index` (k, C) of `width` (C,), with a small ridge.

    `gram` is ``E[phi phi']`` (1 + d, 1 + d) over the data.
    """
    gram = with_ridge(gram)
    metric = np.zeros((n_params, n_params))
    for (_, c), first in np.ndenumerate(index):
        w = int(width[c])
        metric[first : first + w, first : first + w] = gram[:w, :w]
    return metric


def related(metric: FloatArray) -> FloatArray:
    """Directions (F, r) of length 1 along which a metric (F, F) is its ridge alone."""
    size = np.sqrt(np.diag(metric))
    values, vectors = np.linalg.eigh(metric / np.outer(size, size))
    null = values <= 2.0 * DETAIL.ridge
    return vectors[:, null] / (size[:, None] * np.sqrt(values[null]))


def without_relations(
    hessian: FloatArray, metric: FloatArray, at: IntArray
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """A Hessian (P, P) without rounding errors along linear relations among the inputs.

    Along such a relation the likelihood is flat (a prior density may not be), and the metric is
    its ridge alone.  Relative to the metric, the rounding errors of the Hessian are therefore a
    hundred million times as large as elsewhere, with either sign.  They are replaced by the largest
    curvature.  Also returns a function that sets to 0 the entries of these directions among the
    eigenvalues (F,) of the Hessian, relative to the metric, over the coordinates `at`.
    """
    free = np.ix_(at, at)
    inside = metric[free]
    relations = related(inside)
    if not relations.size:
        return hessian, lambda eigenvalues: eigenvalues
    rounding = TRUST.rounding / DETAIL.ridge
    stiff = float(np.max(np.abs(np.diag(hessian)[at]) / np.diag(inside)))
    bent, turned = np.linalg.eigh(relations.T @ hessian[free] @ relations)
    relations = relations @ turned[:, np.abs(bent) <= rounding * stiff]
    images = inside @ relations
    others = np.eye(at.size) - relations @ images.T
    stiffened = hessian.copy()
    stiffened[free] = others.T @ hessian[free] @ others + stiff * images @ images.T

    def curvatures(eigenvalues: FloatArray) -> FloatArray:
        known = eigenvalues.copy()
        known[np.argsort(np.abs(eigenvalues - stiff))[: relations.shape[1]]] = 0.0
        return known

    return stiffened, curvatures
