"""Distances of fitted experts from the true expert in whose Voronoi cell they lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import FloatArray
from moestat.base.validate import short
from moestat.metrics.at_truth import at_truth
from moestat.metrics.distances import SEED, check_pair
from moestat.model.designs import Design, Uniform, design_of, nodes_per_input
from moestat.model.family import Family

_DRAWS_PER_NODE = 100  # of a supremum over several inputs


def _support(design: Design, n_features: int, n_nodes: int) -> FloatArray:
    """Fixed inputs (n, d) over which a supremum is taken."""
    if n_features > 1:
        n = _DRAWS_PER_NODE * n_nodes
        return design.draw(n, n_features, np.random.default_rng(SEED)).T
    if isinstance(design, Uniform):
        return np.linspace(design.low, design.high, n_nodes)[:, None]
    return design.quadrature(1, n_nodes)[0].T


def _expert_responses(family: Family, theta: FloatArray, X: FloatArray) -> FloatArray:
    """Responses of each single expert: class probabilities (k, n, K), or means (k, n, 1)."""
    if family.likelihood.spread is not None:
        predictors = family.predictors(theta, np.ascontiguousarray(X.T))
        return family.likelihood.spread(predictors)[0][..., None]
    alone = family.with_experts(1)
    atoms, shared = family.split(theta)
    return np.stack([alone.probabilities(alone.join(atom, shared), X) for atom in atoms])


def expert_errors(
    family: Family,
    theta: ArrayLike,
    truth_family: Family,
    truth_theta: ArrayLike,
    assignment: ArrayLike,
    design: Design | None = None,
    n_nodes: int = 201,
) -> FloatArray:
    """For each true expert the largest error of the fitted experts in its cell, shape (k*,).

    The error of a true expert without a fitted one is NaN.

    `assignment` (k,) has the true atom whose cell holds each fitted atom, as in
    ``VoronoiResult.assignment``; the other arguments are those of `hellinger`.  With classes the
    error is ``sup_x max_s |f(s | x; a_i, b_i) - f(s | x; a*_j, b*_j)|``, in [0, 1]; with a
    continuous response it is the distance of the means, ``sup_x |g_i(x) - g*_j(x)|``, in the units
    of y.

    Notes
    -----
    Pham et al. (2026), eq. (5), and Nguyen et al. (2025), remark (i) after Theorem 3.2.  The gates
    play no part, nor do variances.  With one input, x runs over `n_nodes` equally
    spaced points of a uniform design's interval, its ends included, or over the quadrature nodes
    of another design.  With several, x runs over ``100 * n_nodes`` draws of the design from a
    generator with a fixed seed, so that the value is the same in every call but somewhat below
    the supremum.
    """
    theta, truth_theta = check_pair(family, theta, truth_family, truth_theta)
    k, true_k = family.n_experts, truth_family.n_experts
    cells = np.asarray(assignment)
    has_indices = cells.shape == (k,) and np.issubdtype(cells.dtype, np.integer)
    if not has_indices or cells.min() < 0 or cells.max() >= true_k:
        raise ValueError(
            f"assignment must give a true atom in 0..{true_k - 1} for each of the {k} fitted "
            f"atoms, got {short(assignment)}"
        )
    X = _support(design_of(design), family.n_features, nodes_per_input(n_nodes, 1, 2))
    gaps = _expert_responses(family, theta, X)
    gaps -= at_truth(_expert_responses, truth_family, truth_theta, X)[cells]
    errors = np.full(true_k, -np.inf)
    np.maximum.at(errors, cells, np.max(np.abs(gaps), axis=(1, 2)))
    return np.where(np.isneginf(errors), np.nan, errors)
