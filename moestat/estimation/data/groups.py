"""Groups of rows that share one choice of an expert: labels, and data group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import Encoded, FloatArray, IntArray, Labels
from moestat.estimation.data.data import Data
from moestat.estimation.reading.table import Column, as_column
from moestat.model.family import Family
from moestat.model.random_effects import RandomEffects, draw_of_groups
from moestat.model.random_intercept import drawn_in_groups
from moestat.solvers.groups import group_sums
from moestat.solvers.problem import Rows

__all__ = [
    "Grouping",
    "arranged",
    "check_gate_in_groups",
    "check_groups",
    "density_of_groups",
    "draw_in_groups",
    "encoded_rows",
    "grouped_labels",
    "grouping_of",
    "posterior_of_rows",
    "read_groups",
    "shares_in_groups",
]


class Grouping:
    """Which rows belong together."""

    def __init__(self, labels: Labels) -> None:
        # Labels (G,), ascending, and the position of the group of each row (n,) among them.
        self.names, index = np.unique(labels, return_inverse=True)
        self.index: IntArray = index.reshape(-1)

    @cached_property
    def order(self) -> IntArray:
        """The rows (n,), group by group."""
        return np.argsort(self.index, kind="stable")

    @cached_property
    def begin(self) -> IntArray:
        """The first row of each group (G,) in that order."""
        return np.searchsorted(self.index[self.order], np.arange(self.names.size))


def grouping_of(data: Data) -> Grouping:
    """The groups of the rows of a `Data` that has groups."""
    assert data.groups is not None
    return Grouping(data.groups)


def read_groups(groups: ArrayLike | Column, n: int) -> Labels:
    """Labels (n,) of the groups of the rows, checked."""
    column = as_column("groups", groups)
    if column.values.shape != (n,):
        shape = column.values.shape
        raise ValueError(f"groups must hold one label per row, shape ({n},), got {shape}")
    column.check_missing("groups")
    return column.as_labels("groups")


def arranged(
    X: FloatArray, y: Encoded, weight: FloatArray, groups: Labels | None, whole: bool = False
) -> Rows:
    """Data (d, n) for solvers, sorted by group if there are labels of groups (n,)."""
    if groups is None:
        return Rows(X, y, weight, whole=whole)
    grouping = Grouping(groups)
    sorted_X = np.ascontiguousarray(X[:, grouping.order])
    return Rows(sorted_X, y[grouping.order], weight[grouping.order], begin=grouping.begin)


def check_groups(family: Family, data: Data) -> None:
    """Raise unless one expert can be chosen for all rows of each group of the data."""
    rows = arranged(np.ascontiguousarray(data.X.T), data.y, data.weight, data.groups)
    names, features = grouping_of(data).names, data.features
    if family.is_regression or family.has_jumps:
        what = "is a regression function" if family.is_regression else "keeps only some experts"
        raise ValueError(
            f"groups: available only for a density that uses all experts; {family!r} {what}"
        )
    if (at := _varying(rows.weight, rows)) is not None:
        raise ValueError(f"groups: sample_weight differs within group {names[at].item()!r}")
    first_varying = ((f, _varying(rows.X[f], rows)) for f in _read_by_gate(family))
    check_gate_in_groups(
        family, {f: names[at].item() for f, at in first_varying if at is not None}, features
    )


def check_gate_in_groups(
    family: Family, varying: Mapping[int, object], features: Sequence[str] | None
) -> None:
    """Raise if the gate reads an input that differs within a group.

    `varying` maps each such input to the first group in which it differs.
    """
    for f in _read_by_gate(family):
        if f in varying:
            called = repr(features[f]) if features else f"column {f}"
            raise ValueError(
                "groups: all rows of a group have the same expert, so the gate cannot depend on"
                f" an input that differs within a group, as {called} does within group"
                f" {varying[f]!r}; choose inputs of the gate by gate_inputs=, or in a formula"
                " after '|' ('y ~ x | z'; 'y ~ x | 1' for a constant gate)"
            )


def _varying(values: FloatArray, data: Rows) -> int | None:
    """The first group in which values (n,) differ."""
    differ = values != values[data.begin][data.owner]
    return int(data.owner[np.argmax(differ)]) if differ.any() else None


def _read_by_gate(family: Family) -> list[int]:
    """Inputs that the gate's log-scores depend on."""
    if family.gate.reads_response and family.n_experts > 1:
        return list(family.read)
    channels = family.gate.channels(family.n_features)
    if family.n_experts == 1 or not any(c.slope or c.axis is not None for c in channels):
        return []
    inputs = range(family.n_features) if family.gate_inputs is None else family.gate_inputs
    return [f for f in inputs if f not in family.held]


def grouped_labels(groups: Labels, labels: ArrayLike) -> Labels:
    """Labels (G,) of the groups, from labels (n,) of their rows."""
    grouping = Grouping(groups)
    values = np.asarray(labels)
    if values.shape != grouping.index.shape:
        raise ValueError(
            f"groups must hold one label per row, shape {grouping.index.shape}, got {values.shape}"
        )
    first_labels = values[grouping.order][grouping.begin]
    deviating = np.flatnonzero(values != first_labels[grouping.index])
    if deviating.size:
        name = grouping.names[grouping.index[deviating[0]]].item()
        raise ValueError(f"groups: rows of group {name!r} of the fit have several labels")
    return first_labels


def encoded_rows(family: Family, data: Data, whole: bool = False) -> Rows:
    """The rows of a `Data` for solvers, encoded, and sorted by group if there are groups."""
    y = family.likelihood.encode(data.y, family.n_classes)
    return arranged(np.ascontiguousarray(data.X.T), y, data.weight, data.groups, whole)


def density_of_groups(family: Family, theta: FloatArray, data: Data) -> tuple[Labels, FloatArray]:
    """Labels (G,) of the groups of a `Data`, and the log-density of each group's responses."""
    sums = group_sums(family, theta, encoded_rows(family, data), 0)
    return grouping_of(data).names, sums.log_density


def draw_in_groups(
    family: Family, theta: FloatArray, rows: Rows, rng: np.random.Generator
) -> FloatArray:
    """Encoded responses (n,) with one expert drawn for each group of a sample with groups."""
    assert rows.begin is not None
    first = np.ascontiguousarray(rows.X[:, rows.begin])
    prior = family.rowwise(theta, first, family.placeholder(first.shape[1]))[0]
    threshold = np.asarray(rng.random(first.shape[1]), dtype=np.float64)
    atom = np.sum(threshold >= np.cumsum(prior, axis=0)[:-1], axis=0)[rows.owner]
    eta = family.predictors(theta, rows.X)[atom, :, np.arange(rows.size)].T
    effects = family.likelihood.effects
    if effects is not None and effects.base is not None:
        return drawn_in_groups(effects.base, eta, _owners(effects, rows), rng)
    if effects is not None:
        return draw_of_groups(eta, rows.owner, rng)
    return family.likelihood.draw(eta, rng)


def _owners(effects: RandomEffects, rows: Rows) -> list[IntArray]:
    """The number of what has each effect, (n,) for each effect: a group, or a part of one."""
    if effects.within is None:
        return [rows.owner] * len(effects.features)
    pairs = np.column_stack([rows.owner, rows.X[effects.within]])
    return [np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1), rows.owner]


def posterior_of_rows(family: Family, theta: FloatArray, data: Data) -> FloatArray:
    """Responsibilities (k, n) given all rows of each row's group, of a `Data` with groups."""
    return group_sums(family, theta, encoded_rows(family, data), 0).posterior[
        :, grouping_of(data).index
    ]


def shares_in_groups(
    family: Family,
    theta: FloatArray,
    data: Data,
    X: FloatArray,
    labels: Labels,
    shares: FloatArray,
) -> tuple[FloatArray, np.ndarray]:
    """Probabilities (k, n) of the experts of new rows X (n, d), and which groups are known (n,).

    They are the responsibilities `shares` (k, m) that the rows of the fit in `data` give to a group
    that the fit knows, and the gate's probabilities for any other group.
    """
    share = family.gate_probabilities(theta, X).T
    grouping = grouping_of(data)
    if not grouping.names.size:  # the fit does not hold its rows
        return share, np.zeros(len(X), dtype=bool)
    place = np.asarray(np.searchsorted(grouping.names, labels), dtype=np.int64)
    place = np.minimum(place, grouping.names.size - 1)
    known = np.asarray(grouping.names[place] == labels, dtype=bool)
    of_group = shares[:, grouping.order[grouping.begin]]
    share[:, known] = of_group[:, place[known]]
    return share, known
