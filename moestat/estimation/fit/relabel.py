"""Experts of a fit in another order: the same density, information and certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from moestat.base.door import door
from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_plain_array, short
from moestat.estimation.fit.fitted import Fitted
from moestat.model.family import Family
from moestat.model.numbering import ExpertNames, numbers_from_0
from moestat.solvers import Solution

__all__ = ["by_weight", "mean_weights", "relabelled"]

_Result = TypeVar("_Result", bound=Fitted)

_ROWS = 100_000
"""Rows whose gate probabilities are in memory at a time."""


@door()
def relabelled(result: _Result, order: Sequence[int | str]) -> _Result:
    """The same fit with the experts in the given order, see `MoEResults.relabel`."""
    new = _positions(result.experts, order)
    names = result.experts.own
    if names is not None and result.data is not None:
        in_order = tuple(names[int(i)] for i in new)
        result = replace(result, data=replace(result.data, experts=in_order))
    standard = result.standard
    for family in (result.family, *([standard.family] if standard else [])):
        if not _alike(family):
            raise ValueError(
                "order: the experts have different bounds, constraints or likelihoods, so their"
                " order is fixed"
            )
    robust = result.robust
    if robust is not None:
        move = _reorder_matrix(result.family, new)
        robust = move @ robust @ move.T
    if standard is not None:
        inner = _solution(standard.family, standard.solution, new)
        at = np.ix_(*2 * (_places(standard.family, new),))
        metric, penalty = (
            None if each is None else each[at] for each in (standard.metric, standard.penalty)
        )
        standard = replace(standard, solution=inner, metric=metric, penalty=penalty)
    outer = _solution(result.family, result.solution, new)
    fewer = result.order
    if fewer is not None:
        at = sorted(new.tolist().index(i) for i in fewer.experts)
        fewer = replace(fewer, experts=tuple(at))
    return replace(result, solution=outer, standard=standard, robust=robust, order=fewer)


def _positions(experts: ExpertNames, order: Sequence[int | str]) -> IntArray:
    """Positions, from 0, of the experts in an order of numbers or names."""
    given: list[Any] = as_plain_array("order", order).ravel().tolist()
    labels, wanted = list(map(str, given)), experts.labels
    if sorted(labels) == [str(i) for i in range(experts.count)] and numbers_from_0("order", given):
        return np.array(given, dtype=np.int64)
    numbered = ExpertNames(experts.count).labels
    for known in (wanted, numbered):
        if sorted(labels) == sorted(known):
            return np.array([known.index(label) for label in labels], dtype=np.int64)
    raise ValueError(
        f"order must hold each of the experts {', '.join(wanted)} once, got {short(order)}"
    )


def by_weight(result: _Result, share: FloatArray | None = None) -> _Result:
    """The fit with its experts in descending order of their mean weight `share` (k,).

    By default that is computed from the rows of the fit.  A fit whose experts are told apart, or
    with parameters of the gate on a bound, stays as it is.
    """
    family, certificate = result.family, result.certificate
    if family.n_experts == 1 or certificate.kinks or not _alike(family):
        return result
    # With another reference coefficients of the gate would leave their bounds.
    channels = family.channels[family.first_expert_channel :]
    own = {name for c in channels for name in (c.intercept, c.slope, c.products)}
    if any(name.removeprefix("log ").split("[")[0] not in own for name in certificate.active):
        return result
    order = np.argsort(-(mean_weights(result) if share is None else share), kind="stable")
    if np.array_equal(order, np.arange(order.size)):
        return result
    sorted_result = relabelled(result, (order + 1).tolist())
    inner = sorted_result.standard.family if sorted_result.standard else family
    theta = sorted_result.standard.solution.theta if sorted_result.standard else sorted_result.theta
    # Differences from another reference may lie beyond the bounds.
    inside = np.all((theta >= inner.lower) & (theta <= inner.upper))
    return sorted_result if inside else result


def mean_weights(result: Fitted) -> FloatArray:
    """Mean gate probability (k,) of each expert over the rows of a fit, some rows at a time."""
    X, weight, total = result.rows.X, result.weight, np.zeros(result.family.n_experts)
    for first in range(0, weight.size, _ROWS):
        rows = slice(first, first + _ROWS)
        total += weight[rows] @ result.family.gate_probabilities(result.theta, X[rows])
    return total / weight.sum()


def _places(family: Family, order: IntArray) -> IntArray:
    """Position in the old order of each parameter (P,) of the new order."""
    n_expert_params = family.n_experts * family.n_atom_params
    atoms = np.arange(n_expert_params).reshape(family.n_experts, -1)[order]
    return np.concatenate([atoms.ravel(), np.arange(n_expert_params, family.n_params)])


def _reorder_matrix(family: Family, order: IntArray) -> FloatArray:
    """The linear map (P, P) from parameters to those of the new order, its reference at 0."""
    matrix = np.eye(family.n_params)[_places(family, order)]
    return np.column_stack([family.pin(column) for column in matrix.T])


def _solution(family: Family, solution: Solution, order: IntArray) -> Solution:
    """A solution with its atoms in another order.

    The information of all coordinates is only put into the new order: the likelihood does not
    change along translations, of which another reference is one.
    """
    at, names = _places(family, order), family.param_names
    place: dict[str, str] = {names[old]: names[new] for new, old in enumerate(at)}
    certificate = replace(
        solution.certificate,
        active=tuple(
            sorted((place.get(name, name) for name in solution.certificate.active), key=names.index)
        ),
        collapsed=tuple(sorted(order.tolist().index(i) for i in solution.certificate.collapsed)),
    )
    theta = family.pin(solution.theta[at])
    information = solution.information[np.ix_(at, at)]
    return replace(solution, theta=theta, information=information, certificate=certificate)


def _alike(family: Family) -> bool:
    """Whether bounds and constraints are the same for all experts."""
    if family.told_apart:
        return False
    for name, positions in family.blocks.items():
        for side in family.box[name]:
            bounds = np.broadcast_to(side, positions.shape)
            if bounds.ndim and np.any(bounds != bounds[:1]):
                return False
    return True
