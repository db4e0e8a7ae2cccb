"""Relations among functions: a sparse basis of a null space, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.theory.identifiability.derivatives import Term
from moestat.theory.identifiability.rank import Rank, unit_columns

_RESIDUAL = 1e-12  # of a column of length 1 that counts as a combination of others
_ORDERS = 12  # random orders of the columns in the search for short relations
_SMALL = 1e-7  # share of the largest coefficient below which one is left out


@dataclass(frozen=True)
class Relation:
    """A linear relation ``left = sum of coefficient times function``, the same for all x."""

    left: str
    """The function that depends on the others."""
    right: Mapping[str, str]
    """Coefficients of the others as text: exact functions of the parameters where sympy found them,
    numbers at one random point otherwise; empty where the left one is zero."""
    exact: bool
    """Whether the relation is proved, for all parameters."""
    implied: bool = False
    """Whether it follows by differentiating a relation of first order."""

    def __str__(self) -> str:
        sign = "=" if self.exact else "≈"
        return f"{self.left} {sign} {_sum_text(self.right)}"


def _sum_text(right: Mapping[str, str]) -> str:
    text = ""
    for label, coefficient in right.items():
        negative = coefficient.startswith("-")
        size = coefficient.lstrip("-") if negative else coefficient
        if any(mark in size[1:] for mark in "+-") and not size.startswith("("):
            # A sum: its sign stays inside.
            negative, size = False, f"({coefficient})"
        part = label if size == "1" else f"{size}·{label}"
        join = (" - " if negative else " + ") if text else ("-" if negative else "")
        text += join + part
    return text or "0"


def sparse_relations(columns: FloatArray, rank: Rank) -> list[dict[int, float]]:
    """A basis of the null space, as sparse as found.

    Each relation holds the coefficients of its functions, which add up to zero.
    """
    scaled = np.asarray(np.linalg.qr(unit_columns(columns, rank.scale), mode="r"))
    relations: list[dict[int, float]] = [{int(j): 1.0} for j in np.flatnonzero(rank.scale == 0.0)]
    used = np.flatnonzero(rank.scale).tolist()
    relations += _circuits(scaled, used, rank.nullity - len(relations))
    return [
        {i: w / (rank.scale[i] or 1.0) for i, w in sorted(relation.items())}
        for relation in sorted(relations, key=lambda relation: (max(relation), min(relation)))
    ]


def _circuits(scaled: FloatArray, used: Sequence[int], count: int) -> list[dict[int, float]]:
    """`count` independent relations among the columns in use with few functions each.

    A column as a combination of independent ones before it is a relation from which no function
    can be left out.  Different orders of the columns give different ones; the shortest are kept.
    """
    if count <= 0:
        return []
    rng = np.random.default_rng(0)
    orders = [used, used[::-1], *(rng.permutation(used).tolist() for _ in range(_ORDERS))]
    candidates: dict[tuple[int, ...], dict[int, float]] = {}
    for order in orders:
        for relation in _in_order(scaled, order):
            candidates.setdefault(tuple(sorted(relation)), relation)
    chosen: list[dict[int, float]] = []
    basis = np.zeros((scaled.shape[1], 0))
    for support in sorted(candidates, key=lambda support: (len(support), support)):
        relation = candidates[support]
        vector = np.zeros(scaled.shape[1])
        vector[list(relation)] = list(relation.values())
        vector /= np.linalg.norm(vector)
        residual = vector - basis @ (basis.T @ vector)
        if np.linalg.norm(residual) > 1e-6:
            basis = np.column_stack([basis, residual / np.linalg.norm(residual)])
            chosen.append(relation)
        if len(chosen) == count:
            break
    return chosen


def _in_order(scaled: FloatArray, order: Sequence[int]) -> list[dict[int, float]]:
    """The relation of each column that depends on those before it."""
    relations = []
    pivots: list[int] = []
    for j in order:
        basis = scaled[:, pivots]
        weights = np.linalg.lstsq(basis, scaled[:, j], rcond=None)[0] if pivots else np.empty(0)
        if not pivots or np.linalg.norm(basis @ weights - scaled[:, j]) >= _RESIDUAL:
            pivots.append(j)
            continue
        used = np.flatnonzero(np.abs(weights) > _SMALL * np.abs(weights).max())
        weights = np.linalg.lstsq(basis[:, used], scaled[:, j], rcond=None)[0]
        relation = {int(pivots[i]): float(w) for i, w in zip(used, weights, strict=True)}
        relations.append({**relation, int(j): -1.0})
    return relations


def follow_from_first_order(
    terms: Sequence[Term], relations: Sequence[Mapping[int, float]]
) -> list[bool]:
    """Which relations follow by differentiating those of first order.

    Differentiating ``sum c_j d_j u = 0`` once more gives ``sum c_j d_j d_k u`` and terms of first
    order, so that only the parts of second order are compared.
    """
    p = 1 + max((j for term in terms for j in term.at), default=0)
    if any(term.product for term in terms):
        return [False] * len(relations)
    first, parts = [], []
    for relation in relations:
        vector, square = np.zeros(p), np.zeros((p, p))
        for i, weight in relation.items():
            at = terms[i].at
            if len(at) == 1:
                vector[at[0]] += weight
            elif len(at) == 2:
                square[at] += 0.5 * weight
                square[at[::-1]] += 0.5 * weight
        parts.append(square)
        if not square.any():
            first.append(vector)
    outer = [np.outer(vector, unit) for vector in first for unit in np.eye(p)]
    known = [(each + each.T).ravel() for each in outer]
    follows = []
    for square in parts:
        residual = target = square.ravel() / (np.linalg.norm(square) or 1.0)
        if known:
            basis = np.stack(known, axis=1)
            residual = target - basis @ np.linalg.lstsq(basis, target, rcond=None)[0]
        follows.append(bool(square.any() and np.linalg.norm(residual) < 1e-6))
        if square.any() and not follows[-1]:
            known.append(target)
    return follows


def number(relation: Mapping[int, float], labels: Sequence[str]) -> Relation:
    """A relation with its numerical coefficients."""
    return write_relation(relation, labels, lambda value: f"{value:.6g}", exact=False)


def write_relation(
    relation: Mapping[int, Any], labels: Sequence[str], text: Callable[[Any], str], exact: bool
) -> Relation:
    """Solve a relation for the function that gives the shortest text, the last one among ties."""
    solved = [
        Relation(
            labels[j],
            {labels[i]: text(-c / relation[j]) for i, c in relation.items() if i != j},
            exact,
        )
        for j in sorted(relation, reverse=True)
    ]
    return min(solved, key=lambda one: len(str(one)))
