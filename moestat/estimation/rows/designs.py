"""The designs of a source: a formula makes blocks of a fit of its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from moestat.base.sums import sum_of
from moestat.base.types import IntArray
from moestat.estimation.data.formula_terms import (
    check_finite,
)
from moestat.estimation.reading.formula import (
    FormulaInputs,
)
from moestat.estimation.reading.table import Table
from moestat.estimation.rows.blocks import Block, Blocks, GroupedBlock
from moestat.estimation.rows.first_pass import (
    FirstPass,
    rows_without_gaps,
    stacked,
    without_gaps,
    without_gaps_in,
)
from moestat.estimation.rows.source_groups import (
    Gathered,
    labels_of,
)
from moestat.estimation.rows.sources import Source, digest_of
from moestat.estimation.rows.sums import Watch

__all__ = ["Designs", "Plan"]

T = TypeVar("T")

_PIECE = 1 << 16
"""Rows whose designs are in memory at a time for each thread: a part may have many more."""


@dataclass(frozen=True)
class Plan:
    """How a part of a source becomes blocks of a fit."""

    inputs: FormulaInputs
    weights: str | None
    several: bool = False  # whether there are several responses
    moves: Gathered | None = None  # which rows go where, of groups

    def block(self, table: Table, numbers: IntArray) -> Block:
        """Inputs (b, d), responses (b,) and weights of rows that have these numbers."""
        designs = self.inputs.designs(table)
        for design, whose in zip(designs, ("experts", "gate", "offset"), strict=False):
            check_finite(design, whose, int(numbers[0]))
        X = self.inputs.inputs_of(table, designs).matrix
        y, weight = self.inputs.response_of(table, self.several), None
        if self.weights is not None:
            weight = table[self.weights].numbers(f"data: column {self.weights!r}")
        if self.moves is not None:
            return GroupedBlock(X, y, weight, labels_of(table[self.moves.column]), numbers)
        return (X, y) if weight is None else (X, y, weight)

    def rows_of(self, number: int, part: _Part, table: Table) -> tuple[Table, IntArray]:
        """The complete rows of a part, with their numbers; of groups those of whole groups."""
        numbers = part.first + np.arange(table.n_rows)
        if self.moves is None:
            return table, numbers
        return self.moves.apply(number, table, numbers, stacked)

    def pieces(self, part: _Part, table: Table) -> Iterator[tuple[int, slice]]:
        """Numbers and rows of the pieces of a part that have rows; whole groups are in each."""
        ends = np.minimum(np.arange(part.pieces + 1) * _PIECE, table.n_rows)
        if self.moves is not None:
            labels = labels_of(table[self.moves.column])
            begin = np.append(
                np.flatnonzero(np.append(True, labels[1:] != labels[:-1])), len(labels)
            )
            ends = begin[np.searchsorted(begin, ends)]
        for at, (first, last) in enumerate(pairwise(ends.tolist())):
            if last > first:
                yield part.piece + at, slice(first, last)


@dataclass(frozen=True)
class _Part:
    """The rows of a part, as the first pass has read them."""

    first: int  # number of its first complete row
    piece: int  # number of its first piece
    pieces: int  # number of its pieces
    digest: int


@dataclass(frozen=True)
class Designs(Blocks):
    """Blocks of a source: the parts in pieces, whose designs a formula makes."""

    source: Any = None
    plan: Any = None
    parts: tuple[_Part, ...] = ()
    names: tuple[str, ...] = ()  # columns that the formula reads
    whole: Any = None  # the source with all of its columns

    @classmethod
    def of(
        cls,
        source: Source,
        survey: FirstPass,
        plan: Plan,
        features: tuple[str, ...] | None,
        whole: Source,
    ) -> Designs:
        """Blocks of a source after the first pass."""
        parts: list[_Part] = []
        first = piece = 0
        for number, (rows, digest) in enumerate(zip(survey.counts, survey.digests, strict=True)):
            most_rows = rows + (plan.moves.n_received(number) if plan.moves is not None else 0)
            parts.append(_Part(first, piece, -(-most_rows // _PIECE), digest))
            first, piece = first + rows, piece + parts[-1].pieces
        response = None if plan.several else plan.inputs.response[1]
        read_part = partial(_read_block, source, plan, tuple(parts))
        names = tuple(source.names)
        return cls(read_part, piece, features, response, source, plan, tuple(parts), names, whole)

    def map(self, function: Callable[[int, Block], T], threads: int) -> Iterator[T]:
        """``function(i, block)`` for every block, in order."""
        work = partial(_on_part, list, self.plan, self.parts, function)
        for results in self.source.map(work, threads):
            yield from results

    def sum(self, function: Callable[[int, Block], T | None], threads: int, watch: Watch[Any]) -> T:
        """The sum of ``function(i, block)`` over all blocks: in each part, then of parts."""
        work = partial(_on_part, sum_of, self.plan, self.parts, function)
        return self.source.sum(work, threads, watch)

    def map_labels(
        self, columns: Sequence[str], function: Callable[..., T], threads: int
    ) -> Iterator[T]:
        """``function(i, block, labels)`` for every block, with labels of other columns by name."""
        source = self.whole.chosen(list(dict.fromkeys([*self.names, *columns])))
        away = None
        if self.plan.moves is not None:
            first = np.array([part.first for part in self.parts])
            complete = partial(without_gaps_in, self.names)
            away = self.plan.moves.labels_away(source, columns, complete, first, threads)
        work = partial(_with_labels, self.plan, self.parts, self.names, columns, away, function)
        for results in source.map(work, threads):
            yield from results

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns of the source."""
        return tuple(self.whole.names)


def _read_block(source: Source, plan: Plan, parts: Sequence[_Part], number: int) -> Block:
    """One block."""
    for at, part in enumerate(parts):
        if part.piece <= number < part.piece + part.pieces:
            blocks = _on_part(dict, plan, parts, _numbered, at, source.read(at))
            return blocks[number]
    raise IndexError(f"block {number}")


def _numbered(number: int, block: Block) -> tuple[int, Block]:
    return number, block


def _on_part(
    collect: Callable[[Iterator[T]], Any],
    plan: Plan,
    parts: Sequence[_Part],
    function: Callable[[int, Block], T],
    number: int,
    table: Table,
) -> Any:
    """Apply a function to the pieces of a part, in order, and collect the results."""
    part = parts[number]
    table, numbers = plan.rows_of(number, part, _unchanged(part, table))
    return collect(
        function(piece, plan.block(_cut(table, rows), numbers[rows]))
        for piece, rows in plan.pieces(part, table)
    )


def _with_labels(
    plan: Plan,
    parts: Sequence[_Part],
    names: Sequence[str],
    columns: Sequence[str],
    away: tuple[IntArray, dict[str, np.ndarray]] | None,
    function: Callable[..., T],
    number: int,
    table: Table,
) -> list[T]:
    """Apply a function to the pieces of a part and their labels in further columns.

    `away` has the numbers and labels of rows that are read with another part than their own.
    """
    part = parts[number]
    chosen = table.some(names)
    if digest_of(chosen) != part.digest:
        raise ValueError("data: the rows have changed since the first pass; fit again")
    complete = rows_without_gaps(chosen)
    for name in columns:
        table[name].at(complete).check_missing(f"data: column {name!r}")
    chosen, numbers = plan.rows_of(number, part, chosen.at(complete))
    place = numbers - part.first
    inside = (place >= 0) & (place < complete.size)
    labels = {name: labels_of(table[name].at(complete[place[inside]])) for name in columns}
    if away is not None and not inside.all():
        at = np.searchsorted(away[0], numbers[~inside])
        order = np.argsort(np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)]))
        labels = {
            name: np.concatenate([values, away[1][name][at]])[order]
            for name, values in labels.items()
        }
    return [
        function(
            piece,
            plan.block(_cut(chosen, rows), numbers[rows]),
            {name: values[rows] for name, values in labels.items()},
        )
        for piece, rows in plan.pieces(part, chosen)
    ]


def _unchanged(part: _Part, table: Table) -> Table:
    """The complete rows of a part; refuses one that is not what the first pass has read."""
    if digest_of(table) != part.digest:
        raise ValueError("data: the rows have changed since the first pass; fit again")
    return without_gaps(table)


def _cut(table: Table, rows: slice) -> Table:
    at = np.arange(rows.start, rows.stop)
    return table if at.size == table.n_rows else table.at(at)
