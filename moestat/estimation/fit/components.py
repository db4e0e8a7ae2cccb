"""Variance components of random effects: their places, names, and whether data determine them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import grouping_of
from moestat.model.family import Family
from moestat.solvers.solution import Solution

__all__ = [
    "factor_index",
    "factor_places",
    "names_of_effects",
    "random_design",
    "undetermined_components",
    "with_positive_factors",
]

_SINGULAR = 1e-9
"""Eigenvalue, relative to the largest one, of variance components that are not determined, and part
of one in them: rounding of sums over groups is below this."""


def with_positive_factors(family: Family, solution: Solution) -> Solution:
    """The same solution with positive diagonals of the factors L: signs of columns are free."""
    effects = family.likelihood.effects
    if effects is None:
        return solution
    sign = np.ones(family.n_params)
    for j, first in enumerate(factor_index(family).T):
        for at in first:
            if solution.theta[at + effects.features[j]] < 0.0:
                coefficients = slice(int(at), int(at) + 1 + family.n_features)
                sign[coefficients] = -1.0
    return replace(
        solution,
        theta=np.where(solution.theta == 0.0, 0.0, solution.theta * sign),
        information=solution.information * np.outer(sign, sign),
    )


def factor_index(family: Family) -> IntArray:
    """Positions (k, q) of the first coefficient of each column of the factors."""
    return family.index[:, len(family.channels) - len(family.likelihood.random_effects.features) :]


def factor_places(family: Family) -> IntArray:
    """Positions of the entries of the factors L of all experts among the parameters."""
    effects = family.likelihood.random_effects
    return np.array(
        [
            first + effects.features[f]
            for columns in factor_index(family)
            for j, first in enumerate(columns)
            for f in range(j, int(effects.last[j]))
        ],
        dtype=np.int64,
    )


def names_of_effects(family: Family, data: Data | None) -> list[str]:
    """Names of the effects by those of inputs; of nested groups by those of parts and groups."""
    effects = family.likelihood.random_effects
    features = None if data is None else data.features

    def name_of(f: int) -> str:
        return f"x[{f}]" if features is None else str(features[f])

    if effects.within is not None:
        column = None if data is None else data.groups_column
        return [name_of(effects.within), column or "groups"]
    return ["Intercept" if f == 0 else name_of(f - 1) for f in effects.features]


def random_design(family: Family, X: FloatArray) -> FloatArray:
    """Design (n, q) of the random effects, from inputs (n, d)."""
    phi = np.column_stack([np.ones(len(X)), X])
    return phi[:, family.likelihood.random_effects.positions]


def undetermined_components(family: Family, data: Data) -> list[str]:
    """Names of variance components that the groups of the data do not determine.

    The covariance matrix ``Z D Z' + nu I`` of a group is linear in the entries of D and in nu: they
    are determined if no combination of them has the matrix 0 in all groups.  With ``S = Z'Z`` the
    inner products of these matrices are sums over groups of ``tr(A S B S)``, ``tr(A S)`` and of the
    numbers of rows.  The variance of a binary row says nothing, so that diagonals are left out, and
    that of a count has no nu.  As many effects as there are groups, or more, can be coefficients of
    the experts.
    """
    effects = family.likelihood.effects
    if effects is None or data.groups is None:
        return []
    grouping, names = grouping_of(data), names_of_effects(family, data)
    sizes = np.diff(np.append(grouping.begin, grouping.index.size))
    if sizes.size <= (len(names) if effects.within is None else 1):
        return [f"sd({name})" for name in names]
    binary = _has_binary_rows(family, data)
    if effects.within is not None:
        pairs = [(0, 0), (1, 1)]
        gram = _gram_of_nested(sizes, _part_sizes(grouping.index, data.X[:, effects.within]))
        gram[:2, :2] -= binary * float(sizes.sum())
    else:
        Z = random_design(family, data.X[grouping.order])
        Z = Z / np.maximum(np.sqrt(np.mean(Z**2, axis=0)), np.finfo(np.float64).tiny)
        squares = np.add.reduceat(Z[:, :, None] * Z[:, None, :], grouping.begin, axis=0)
        q = Z.shape[1]
        pairs = [(a, b) for a in range(q) for b in range(a + 1) if a == b or not effects.diagonal]
        basis = np.zeros((len(pairs), q, q))
        for j, (a, b) in enumerate(pairs):
            basis[j, a, b] = basis[j, b, a] = 1.0
        moved = np.einsum("jab,gbc->jgac", basis, squares)
        gram = np.empty((len(pairs) + 1, len(pairs) + 1))
        gram[:-1, :-1] = np.einsum("jgab,kgba->jk", moved, moved)
        gram[:-1, -1] = gram[-1, :-1] = np.einsum("jgaa->j", moved)
        gram[-1, -1] = sizes.sum()
        if binary:
            diagonal = np.einsum("na,jab,nb->jn", Z, basis, Z)
            gram[:-1, :-1] -= diagonal @ diagonal.T
    if "nu" not in family.blocks:
        gram = gram[:-1, :-1]
    if not np.diag(gram).max() > _SINGULAR * sizes.sum():
        gram = np.zeros_like(gram)
    unit = np.sqrt(np.maximum(np.diag(gram), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(gram / np.outer(unit, unit))
    free = np.max(np.abs(vectors[:, values <= _SINGULAR * values[-1]]), axis=1, initial=0.0)
    words = [f"sd({names[a]})" if a == b else f"corr({names[b]}, {names[a]})" for a, b in pairs]
    return [
        word for word, part in zip([*words, "sd(residual)"], free, strict=False) if part > _SINGULAR
    ]


def _has_binary_rows(family: Family, data: Data) -> bool:
    """Whether each row is one of two outcomes, whose probability is all that is known of it."""
    if family.likelihood.name != "binomial":
        return False
    y = family.likelihood.encode(data.y, family.n_classes)
    trials = np.imag(y) if np.iscomplexobj(y) else family.lower[np.ravel(family.blocks["trials"])]
    return bool(np.max(trials) == 1.0)


def _part_sizes(group: IntArray, code: FloatArray) -> IntArray:
    """Numbers of rows of the parts of groups."""
    return np.unique(np.column_stack([group, code]), axis=0, return_counts=True)[1]


def _gram_of_nested(sizes: IntArray, parts: IntArray) -> FloatArray:
    """Inner products of the matrices of 1 for rows of a part, of a group, and the identity."""
    within, between, n = float(np.sum(parts**2)), float(np.sum(sizes**2)), float(sizes.sum())
    return np.array([[within, within, n], [within, between, n], [n, n, n]])
