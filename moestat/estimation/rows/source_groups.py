"""Groups of rows of a source: no group may lie in two of its parts.

Where a source is sorted by group, a group can begin in one part and end in the next; its rows are
then read with the first part in which it has any.  A pass over the column of the labels finds such
groups, and it looks only at labels that other parts may have, too, by the smallest and the largest
label of each part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from moestat.base.types import IntArray
from moestat.estimation.progress import LOG
from moestat.estimation.reading.table import Column, Table
from moestat.estimation.rows.sources import Source

__all__ = ["Gathered", "ends_of_labels", "gathered", "labels_of"]

_MOST_MOVED = 1_000_000
"""Rows that are kept in memory so that groups are not split: a tenth of a gigabyte with 10
columns."""

Ends = tuple[Any, Any] | None
"""Smallest and largest label of a part; None of a part without rows."""


def labels_of(column: Column) -> np.ndarray:
    """Labels (n,) of groups, numbers or words."""
    values = column.values
    return values.astype(str) if values.dtype.kind == "O" else values


def ends_of_labels(labels: np.ndarray) -> Ends:
    """The smallest and the largest of some labels (n,)."""
    if not labels.size:
        return None
    # NumPy has no minimum of words.
    ends = np.sort(labels)[[0, -1]] if labels.dtype.kind in "US" else [labels.min(), labels.max()]
    return ends[0], ends[1]


@dataclass(frozen=True)
class Gathered:
    """Which rows of a source are read with another part, so that no group is split."""

    column: str
    # labels of the groups whose rows in a part belong to an earlier part, by the number of the part
    away: dict[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])
    # rows that a part receives, with their numbers among all complete rows
    received: dict[int, list[tuple[Table, IntArray]]] = field(
        default_factory=dict[int, list[tuple[Table, IntArray]]], repr=False
    )

    def n_received(self, number: int) -> int:
        """Number of rows that a part receives from other parts."""
        return sum(table.n_rows for table, _ in self.received.get(number, ()))

    def labels_away(
        self,
        source: Source,
        columns: Sequence[str],
        complete: Callable[[Table], Table],
        first: IntArray,
        threads: int,
    ) -> tuple[IntArray, dict[str, np.ndarray]]:
        """Numbers (m,), ascending, of the rows that other parts take in, and their labels (m,).

        `first` are the numbers of the first complete rows of the parts, which `complete` finds in
        a table with the columns of the fit and these `columns` of labels.
        """
        work = partial(_labels_away, self.column, self.away, columns, complete, first)
        parts = [*source.map(work, threads, sorted(self.away))] if self.away else []
        numbers = np.concatenate([np.arange(0), *(part_numbers for part_numbers, _ in parts)])
        order = np.argsort(numbers, kind="stable")
        labels = {
            name: np.concatenate([part_labels[name] for _, part_labels in parts])[order]
            if parts
            else numbers
            for name in columns
        }
        return numbers[order], labels

    def apply(
        self,
        number: int,
        table: Table,
        numbers: IntArray,
        stacked: Callable[[Sequence[Table]], Table],
    ) -> tuple[Table, IntArray]:
        """The rows of whole groups of a part, group by group, with their numbers."""
        if number in self.away:
            remaining = np.flatnonzero(~np.isin(labels_of(table[self.column]), self.away[number]))
            table, numbers = table.at(remaining), numbers[remaining]
        more = self.received.get(number, [])
        if more:
            table = stacked([table, *(each for each, _ in more)])
            numbers = np.concatenate([numbers, *(each for _, each in more)])
        order = np.argsort(labels_of(table[self.column]), kind="stable")
        return table.at(order), numbers[order]


def gathered(
    source: Source,
    column: str,
    ends: Sequence[Ends],
    complete: Callable[[Table], Table],
    counts: Sequence[int],
    threads: int,
) -> Gathered:
    """Which part receives the rows of each group that lies in several parts of a source.

    `ends` are the labels between which those of each part lie, `complete` leaves the complete rows
    of a table, and `counts` says how many each part has.
    """
    limits = _shared(ends)
    involved = [number for number, limit in enumerate(limits) if limit is not None]
    if not involved:
        return Gathered(column)
    LOG.info("labels of groups of %d parts", len(involved))
    look = partial(_suspicious, column, limits)
    distinct = [*source.chosen([column]).map(look, threads, involved)]
    labels = np.concatenate([in_part for _, in_part in distinct])
    part = np.repeat([number for number, _ in distinct], [in_part.size for _, in_part in distinct])
    order = np.argsort(labels, kind="stable")
    labels, part = labels[order], part[order]
    # The first part with a label keeps it; in the others it is away.
    also = np.append(False, labels[1:] == labels[:-1])
    if not also.any():
        return Gathered(column)
    first = np.maximum.accumulate(np.where(also, 0, np.arange(labels.size)))
    home = dict(zip(labels[also].tolist(), part[first[also]].tolist(), strict=True))
    away = {number: labels[also & (part == number)] for number in np.unique(part[also]).tolist()}
    extract = partial(_extract, column, away, complete, np.cumsum([0, *counts]))
    received: dict[int, list[tuple[Table, IntArray]]] = {}
    total = 0
    for groups_of_part in source.map(extract, threads, sorted(away)):
        for label, table, numbers in groups_of_part:
            received.setdefault(home[label], []).append((table, numbers))
            total += table.n_rows
        if total > _MOST_MOVED:
            label = labels[also][0]
            parts_named = ", ".join(map(source.label, part[labels == label][:3].tolist()))
            raise ValueError(
                f"groups: {len(home)} groups are split over parts of the source, such as"
                f" {label.item()!r} ({parts_named}), and their rows are more than {_MOST_MOVED:,};"
                f" sort the source by {column!r}, or partition it by groups, as"
                f" frame.shuffle({column!r}) of dask does"
            )
    return Gathered(column, away, received)


def _shared(ends: Sequence[Ends]) -> list[tuple[Any, Any] | None]:
    """For each part the labels (a, b) such that other parts may have labels <= a and >= b; or None.

    With parts sorted by their smallest labels, a is the largest label of earlier parts and b is the
    smallest label of later parts.
    """
    neighbours: list[tuple[Any, Any] | None] = [None] * len(ends)
    known = [(*pair, number) for number, pair in enumerate(ends) if pair is not None]
    known.sort(key=lambda each: each[0])
    reach: Any = None
    for place, (low, high, number) in enumerate(known):
        after = known[place + 1][0] if place + 1 < len(known) else None
        before = reach if reach is not None and reach >= low else None
        after = after if after is not None and after <= high else None
        if before is not None or after is not None:
            neighbours[number] = before, after
        reach = high if reach is None or high > reach else reach
    return neighbours


def _suspicious(
    column: str, limits: Sequence[tuple[Any, Any] | None], number: int, table: Table
) -> tuple[int, np.ndarray]:
    """Labels of a part that other parts may have, too."""
    labels_column, limit = table[column], limits[number]
    if limit is None:  # of a source that reads all parts
        return number, labels_of(labels_column)[:0]
    before, after = limit
    labels = np.unique(labels_of(labels_column.at(np.flatnonzero(~labels_column.missing))))
    shared = np.zeros(labels.size, dtype=bool)
    if before is not None:
        shared |= labels <= before
    if after is not None:
        shared |= labels >= after
    return number, labels[shared]


def _extract(
    column: str,
    away: dict[int, np.ndarray],
    complete: Callable[[Table], Table],
    first: IntArray,
    number: int,
    table: Table,
) -> list[tuple[Any, Table, IntArray]]:
    """Rows of a part that go to an earlier one, by their label."""
    if number not in away:
        return []
    table = complete(table)
    labels, groups_found = labels_of(table[column]), []
    for label in away[number].tolist():
        at = np.flatnonzero(labels == label)
        if at.size:
            groups_found.append((label, table.at(at), first[number] + at))
    return groups_found


def _labels_away(
    column: str,
    away: Mapping[int, np.ndarray],
    columns: Sequence[str],
    complete: Callable[[Table], Table],
    first: IntArray,
    number: int,
    table: Table,
) -> tuple[IntArray, dict[str, np.ndarray]]:
    """Numbers and labels of the rows of a part that go to an earlier one."""
    table = complete(table)
    at = np.arange(0)
    if number in away:  # else of a source that reads all parts
        at = np.flatnonzero(np.isin(labels_of(table[column]), away[number]))
    return first[number] + at, {name: labels_of(table[name].at(at)) for name in columns}
