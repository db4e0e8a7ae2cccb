"""The designs of a source: a formula makes blocks of a fit of its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
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
    """How the parts of a source become blocks of a fit."""

    inputs: FormulaInputs
    weights: str | None
    counts: tuple[int, ...]  # complete rows of each part, as the first pass has read them
    digests: tuple[int, ...]  # of each part
    several: bool = False  # whether there are several responses
    moves: Gathered | None = None  # which rows go where, of groups

    @cached_property
    def first(self) -> IntArray:
        """Number of the first complete row of each part (m,)."""
        return np.cumsum([0, *self.counts[:-1]])

    @cached_property
    def pieces(self) -> IntArray:
        """Number of the first piece of each part, and of all pieces (m + 1,)."""
        received = [0] * len(self.counts)
        if self.moves is not None:
            received = [self.moves.n_received(number) for number in range(len(self.counts))]
        return np.cumsum([0, *(-(-(np.add(self.counts, received)) // _PIECE))])

    def blocks_of(
        self, number: int, table: Table, numbers: IntArray
    ) -> Iterator[tuple[int, slice, Block]]:
        """Number, rows and block of each piece of a part that has rows; groups are whole.

        The rows are those of `rows_of`.
        """
        begin, end = self.pieces[number : number + 2]
        ends = np.minimum(np.arange(end - begin + 1) * _PIECE, table.n_rows)
        if self.moves is not None:
            labels = labels_of(table[self.moves.column])
            starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
            starts = np.append(starts, len(labels))
            ends = starts[np.searchsorted(starts, ends)]
        for piece, (first, last) in enumerate(pairwise(ends.tolist()), int(begin)):
            if last > first:
                rows = slice(first, last)
                yield piece, rows, self._block(_cut(table, rows), numbers[rows])

    def _block(self, table: Table, numbers: IntArray) -> Block:
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

    def rows_of(self, number: int, table: Table) -> tuple[Table, IntArray]:
        """The complete rows of a part, with their numbers; of groups those of whole groups."""
        numbers = self.first[number] + np.arange(table.n_rows)
        if self.moves is None:
            return table, numbers
        return self.moves.apply(number, table, numbers, stacked)

    def check_unchanged(self, number: int, table: Table) -> None:
        """Refuse a part that is not what the first pass has read."""
        if digest_of(table) != self.digests[number]:
            raise ValueError("data: the rows have changed since the first pass; fit again")

    def on_part(
        self,
        collect: Callable[[Iterator[T]], Any],
        function: Callable[[int, Block], T],
        number: int,
        table: Table,
    ) -> Any:
        """Apply a function to the blocks of a part, in order, and collect the results."""
        self.check_unchanged(number, table)
        rows, numbers = self.rows_of(number, without_gaps(table))
        blocks = self.blocks_of(number, rows, numbers)
        return collect(function(piece, block) for piece, _, block in blocks)

    def with_labels(
        self,
        names: Sequence[str],
        columns: Sequence[str],
        away: tuple[IntArray, dict[str, np.ndarray]] | None,
        function: Callable[..., T],
        number: int,
        table: Table,
    ) -> list[T]:
        """Apply a function to the blocks of a part and their labels in further columns.

        The fit reads the columns `names`.  `away` has the numbers and labels of rows that are read
        with another part than their own.
        """
        chosen = table.some(names)
        self.check_unchanged(number, chosen)
        complete = rows_without_gaps(chosen)
        for name in columns:
            table[name].at(complete).check_missing(f"data: column {name!r}")
        chosen, numbers = self.rows_of(number, chosen.at(complete))
        place = numbers - self.first[number]
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
            function(piece, block, {name: values[rows] for name, values in labels.items()})
            for piece, rows, block in self.blocks_of(number, chosen, numbers)
        ]


@dataclass(frozen=True)
class Designs(Blocks):
    """Blocks of a source: the parts in pieces, whose designs a formula makes."""

    source: Source = field(kw_only=True)  # with the columns that the formula reads
    plan: Plan = field(kw_only=True)
    whole: Source = field(kw_only=True)  # the source with all of its columns

    @classmethod
    def of(
        cls, source: Source, plan: Plan, features: tuple[str, ...] | None, whole: Source
    ) -> Designs:
        """Blocks of a source after the first pass."""
        response = None if plan.several else plan.inputs.response[1]
        read = partial(_read_block, source, plan)
        count = int(plan.pieces[-1])
        return cls(read, count, features, response, source=source, plan=plan, whole=whole)

    def map(self, function: Callable[[int, Block], T], threads: int) -> Iterator[T]:
        """``function(i, block)`` for every block, in order."""
        for results in self.source.map(partial(self.plan.on_part, list, function), threads):
            yield from results

    def sum(self, function: Callable[[int, Block], T | None], threads: int, watch: Watch[Any]) -> T:
        """The sum of ``function(i, block)`` over all blocks: in each part, then of parts."""
        return self.source.sum(partial(self.plan.on_part, sum_of, function), threads, watch)

    def map_labels(
        self, columns: Sequence[str], function: Callable[..., T], threads: int
    ) -> Iterator[T]:
        """``function(i, block, labels)`` for every block, with labels of other columns by name."""
        names, plan = self.source.names, self.plan
        source = self.whole.chosen(list(dict.fromkeys([*names, *columns])))
        away = None
        if plan.moves is not None:
            complete = partial(without_gaps_in, names)
            away = plan.moves.labels_away(source, columns, complete, plan.first, threads)
        work = partial(plan.with_labels, names, columns, away, function)
        for results in source.map(work, threads):
            yield from results

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns of the source."""
        return tuple(self.whole.names)


def _read_block(source: Source, plan: Plan, number: int) -> Block:
    """One block."""
    part = int(np.searchsorted(plan.pieces, number, side="right")) - 1
    blocks = plan.on_part(dict, _numbered, part, source.read(part))
    return blocks[number]


def _numbered(number: int, block: Block) -> tuple[int, Block]:
    return number, block


def _cut(table: Table, rows: slice) -> Table:
    at = np.arange(rows.start, rows.stop)
    return table if at.size == table.n_rows else table.at(at)
