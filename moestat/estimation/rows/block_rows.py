"""Rows in blocks: how they are read, what one pass computes, and the interface for solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from moestat.base.types import FloatArray, IntArray, Labels
from moestat.base.validate import as_weights, short
from moestat.estimation.data.data import Data
from moestat.estimation.data.groups import arranged
from moestat.estimation.progress import passing
from moestat.estimation.reading.inputs import read_inputs
from moestat.estimation.reading.responses import as_columns, labels_in, read_columns, values_of
from moestat.estimation.reading.table import as_column
from moestat.estimation.rows.blocks import Block, Blocks, GroupedBlock
from moestat.estimation.rules import MOST_LEVELS, SAMPLED, SPARE
from moestat.model.family import Family
from moestat.model.members import Likelihood
from moestat.model.responses import columns_of
from moestat.model.units import DataUnits
from moestat.solvers.problem import Rows
from moestat.solvers.rules import TINY

__all__ = [
    "BlockRows",
    "Draw",
    "ReadRows",
    "Reader",
    "Totals",
    "find_labels",
    "rows_of_blocks",
    "survey",
]

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True)
class ReadRows:
    """Rows of a block, or a random sample of all rows, checked; labels are as they were given."""

    X: FloatArray  # (d, b)
    y: tuple[np.ndarray, ...]  # a column (b,) of numbers or labels for each response, or bound
    weight: FloatArray  # (b,)
    # (b,): numbers of the rows in their block; of a sample, or with groups, among all rows
    numbers: IntArray
    groups: Labels | None = None  # (b,): labels of groups
    # (b,): random numbers of a sample, the same for all rows of a group; else none
    keys: FloatArray = field(default_factory=lambda: np.empty(0))

    def at(self, selected: IntArray) -> ReadRows:
        """Some of the rows."""
        return ReadRows(
            np.take(self.X, selected, axis=1),
            tuple(column[selected] for column in self.y),
            self.weight[selected],
            self.numbers[selected],
            None if self.groups is None else self.groups[selected],
            self.keys[selected] if self.keys.size else self.keys,
        )

    def with_weight(self) -> ReadRows:
        """The rows whose weight is positive."""
        used = self.weight > 0
        return self if used.all() else self.at(np.flatnonzero(used))

    def smallest(self, count: int) -> ReadRows:
        """The rows with the smallest keys, at most `count`, or one group that has more rows.

        They are a uniform sample of rows, or of whole groups.
        """
        if self.keys.size <= count:
            return self
        bound = max(np.partition(self.keys, count)[count], np.nextafter(self.keys.min(), 1.0))
        return self.at(np.flatnonzero(self.keys < bound))

    @classmethod
    def sampled(cls, some: Sequence[ReadRows]) -> ReadRows:
        """The sample of the rows that several blocks have drawn, in the order of the blocks."""
        if len(some) == 1:
            return some[0].smallest(SAMPLED)

        def join(name: str) -> np.ndarray:
            return np.concatenate([getattr(each, name) for each in some], axis=-1)

        y = tuple(np.concatenate(parts) for parts in zip(*(each.y for each in some), strict=True))
        groups = None if some[0].groups is None else join("groups")
        rows = cls(join("X"), y, join("weight"), join("numbers"), groups, join("keys"))
        return rows.smallest(SAMPLED)


def _labels_in(reader: Reader, rows: ReadRows) -> tuple[Labels | None, ...]:
    """Labels of the classes of each response in the rows of a block, None of numbers."""
    labels = labels_in(reader.likelihood, rows.y)
    if any(levels is not None and len(levels) > MOST_LEVELS for levels in labels):
        raise ValueError(f"y has more than {MOST_LEVELS} different labels in a block")
    return labels


def _united(
    one: tuple[Labels | None, ...], other: tuple[Labels | None, ...]
) -> tuple[Labels | None, ...]:
    """Labels of the classes of each response in either of two blocks."""
    for pair in zip(one, other, strict=True):
        words = {each.dtype.kind in "US" for each in pair if each is not None and each.size}
        if len(words) > 1:
            raise ValueError("blocks: y has words in one block and numbers in another")
    return tuple(
        None if a is None or b is None else np.union1d(a, b)
        for a, b in zip(one, other, strict=True)
    )


@dataclass(frozen=True)
class Reader:
    """How a block is checked, encoded, scaled and sorted by groups for the compiled loops."""

    likelihood: Likelihood
    n_features: int | None  # None: as many as the blocks have
    features: tuple[str, ...] | None
    labels: tuple[Labels | None, ...] = ()  # labels of the classes of each response, in their order
    n_classes: int | None = None
    held: frozenset[int] = frozenset()  # inputs whose coefficients are 0
    units: DataUnits | None = None

    @classmethod
    def of(
        cls, family: Family, labels: tuple[Labels | None, ...], features: tuple[str, ...] | None
    ) -> Reader:
        """The reader for a family."""
        return cls(
            family.likelihood,
            family.n_features,
            features,
            labels,
            family.n_classes,
            frozenset(family.held),
        )

    def read(self, block: Block) -> ReadRows:
        """All rows of a block."""
        groups = numbers = None
        if isinstance(block, GroupedBlock):
            groups, numbers = block.groups, block.numbers
            block = (block.X, block.y, *([] if block.weight is None else [block.weight]))
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise ValueError(
                f"a block must be a tuple of X, y and perhaps weights, got {short(block)}"
            )
        X = read_inputs(block[0], self.n_features, self.features).design
        law = self.likelihood
        names = [one.name for one in law.parts]
        given = as_columns(block[1], names) if names else as_column("y", block[1])
        y = read_columns(law, given, names)
        weight = block[2] if len(block) > 2 else None
        if weight is not None:
            weight = as_column("sample_weight", weight).numbers("sample_weight")
        if len(y[0]) != X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} samples but y has {len(y[0])}")
        weight = as_weights(weight, len(y[0]), some=False)
        numbers = np.arange(weight.size) if numbers is None else numbers
        return ReadRows(X, y, weight, numbers, groups)

    def sample(self, block: Block) -> Rows:
        """The rows of a block with a weight."""
        return self.encode(self.read(block).with_weight())

    def split(self, block: Block) -> tuple[Rows, IntArray, IntArray, Labels | None]:
        """The rows of a block with a weight, their positions, those of others, and their groups.

        Of the groups without a weight one row each.
        """
        rows = self.read(block)
        used, out = np.flatnonzero(rows.weight > 0), np.flatnonzero(rows.weight == 0)
        if rows.groups is not None:
            out = out[np.unique(rows.groups[out], return_index=True)[1]]
        rows = rows.with_weight()
        return self.encode(rows), used, out, rows.groups

    def encode(self, rows: ReadRows) -> Rows:
        """Rows as the loops read them."""
        response = self.likelihood.encode(self.values(rows), self.n_classes or 1)
        sample = arranged(self._design(rows), response, rows.weight, rows.groups)
        return sample if self.units is None else sample.convert(self.units)

    def _design(self, rows: ReadRows) -> FloatArray:
        """Inputs (d, b), with 0 for those that are held."""
        if not self.held:
            return rows.X
        X = rows.X.copy()  # it may be the caller's own
        X[list(self.held)] = 0.0
        return X

    def values(self, rows: ReadRows) -> np.ndarray:
        """Responses as in `Data`."""
        return values_of(self.likelihood, rows.y, self.labels)

    def data(self, like: Data, rows: ReadRows) -> Data:
        """Rows as `Data`, with the names of other rows of the same fit."""
        return replace(
            like,
            X=self._design(rows).T,
            y=self.values(rows),
            weight=rows.weight,
            groups=rows.groups,
            group_weight=None,
        )


@dataclass(frozen=True)
class Totals:
    """What one pass computes from the rows: sums, ranges, labels, and a random sample."""

    n_rows: int  # rows with a weight
    n_given: int  # all rows
    total: float
    mean: FloatArray
    squares: FloatArray  # sums of weighted products of deviations from the mean
    low: FloatArray
    high: FloatArray
    labels: tuple[Labels | None, ...]
    sample: ReadRows
    group_weight: float | None = None  # sum of the weights of the groups
    # inputs that differ within a group, each with the first such group
    varying: Mapping[int, object] = field(default_factory=dict[int, object])
    # rows before each block
    begin: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def variances(self, which: Sequence[int]) -> FloatArray:
        """Weighted variances of some inputs."""
        at = list(which)
        return self.squares[at, at] / self.total

    @np.errstate(over="ignore", invalid="ignore")
    def joined(self, other: Totals) -> Totals:
        """The union of two, except samples; sums of squares by Chan, Golub and LeVeque (1983)."""
        total = self.total + other.total
        gap = other.mean - self.mean
        groups = None
        if self.group_weight is not None and other.group_weight is not None:
            groups = self.group_weight + other.group_weight
        return Totals(
            n_rows=self.n_rows + other.n_rows,
            n_given=self.n_given + other.n_given,
            total=total,
            mean=self.mean + gap * (other.total / total if total else 0.0),
            squares=self.squares
            + other.squares
            + np.outer(gap, gap) * (self.total * other.total / total if total else 0.0),
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            labels=_united(self.labels, other.labels),
            sample=self.sample,
            group_weight=groups,
            varying={**other.varying, **self.varying},
        )


def _labels_of_block(reader: Reader, number: int, block: Block) -> tuple[Labels | None, ...]:
    """Labels of the classes in a block."""
    return _labels_in(reader, reader.read(block).with_weight())


@np.errstate(over="ignore", invalid="ignore")  # a fit refuses columns of this size
def _totals_of_block(
    reader: Reader, n_sampled: int, seed: int, number: int, block: Block
) -> Totals:
    """The sums, ranges, labels and sample of one block."""
    all_rows = reader.read(block)
    rows = all_rows.with_weight()
    labels = _labels_in(reader, rows)
    columns = rows.X
    if reader.likelihood.support is None:
        response = reader.likelihood.encode(reader.values(rows), 1)
        columns = np.vstack([rows.X, *columns_of(response)])
    total = float(rows.weight.sum())
    mean = columns @ rows.weight / total if total else np.zeros(len(columns))
    centred = columns - mean[:, None]
    # The random numbers of a block depend on its number alone, not on who reads it.
    generator = np.random.default_rng([seed, number])
    group_weight, varying, n_units = None, dict[int, object](), rows.weight.size
    unit: Any = slice(None)
    if rows.groups is not None:
        names, first, unit = np.unique(rows.groups, return_index=True, return_inverse=True)
        unit, n_units = unit.reshape(-1), names.size
        if (at := _differing(rows.weight, first, unit)) is not None:
            raise ValueError(f"groups: sample_weight differs within group {names[at].item()!r}")
        for f, x in enumerate(rows.X):
            if (at := _differing(x, first, unit)) is not None:
                varying[f] = names[at].item()
        group_weight = float(rows.weight[first].sum())
    sample = replace(rows, keys=generator.random(n_units)[unit])
    return Totals(
        n_rows=rows.weight.size,
        n_given=all_rows.weight.size,
        total=total,
        mean=mean,
        squares=(centred * rows.weight) @ centred.T,
        low=columns.min(axis=1, initial=np.inf),
        high=columns.max(axis=1, initial=-np.inf),
        labels=labels,
        sample=sample.smallest(n_sampled),
        group_weight=group_weight,
        varying=varying,
    )


def _differing(values: FloatArray, first: IntArray, unit: IntArray) -> int | None:
    """The first group in which values (n,) differ from those of its first row."""
    differ = values != values[first][unit]
    return int(unit[np.argmax(differ)]) if differ.any() else None


def find_labels(
    blocks: Blocks, likelihood: Likelihood, n_features: int | None, threads: int
) -> tuple[Labels | None, ...]:
    """Labels of the classes of each response, None of numbers, by one pass if there are any."""
    if not any(law.support is not None for law in likelihood.laws):
        return ()
    look = partial(_labels_of_block, Reader(likelihood, n_features, blocks.features))
    united: tuple[Labels | None, ...] = ()
    for labels in passing(blocks.map(look, threads), len(blocks), None, "labels of classes"):
        united = _united(united, labels) if united else labels
    return united


def survey(
    blocks: Blocks,
    likelihood: Likelihood,
    labels: tuple[Labels | None, ...],
    n_features: int | None,
    seed: int,
    threads: int,
) -> Totals:
    """The sums, ranges, labels and sample of all blocks, by one pass.

    For several responses the `labels` of their classes must be given; for one response they are
    found by this pass.
    """
    n_sampled = SPARE * SAMPLED // len(blocks) + 1
    reader = Reader(likelihood, n_features, blocks.features, labels)
    look = partial(_totals_of_block, reader, n_sampled, seed)
    totals: Totals | None = None
    samples: list[ReadRows] = []
    begin = [0]
    for of_block in passing(blocks.map(look, threads), len(blocks), None, "survey"):
        if totals is not None and of_block.mean.size != totals.mean.size:
            raise ValueError("blocks: X has another number of columns in another block")
        totals = of_block if totals is None else totals.joined(of_block)
        sample = of_block.sample
        if sample.groups is None:
            sample = replace(sample, numbers=begin[-1] + sample.numbers)
        samples.append(sample)
        begin.append(totals.n_given)
        if sum(each.keys.size for each in samples) > 3 * SAMPLED // 2:
            samples = [ReadRows.sampled(samples)]
    if totals is None:
        raise ValueError("blocks: there are no rows")
    return replace(totals, sample=ReadRows.sampled(samples), begin=np.array(begin[:-1]))


@dataclass(frozen=True)
class Draw:
    """Random weights of the rows, or groups of rows, of every block: a resample or a fold.

    They depend on the numbers of the resample and of the block alone.
    """

    kind: str  # "pairs", "bayesian", or "training" and "held-out" rows of a fold
    seed: tuple[int, int]  # of the bootstrap or the folds, and number of the resample or the fold
    folds: int = 0

    def of(self, number: int, rows: Rows) -> Rows:
        """The rows of a block with their weights, those without one left out."""
        units = rows.units
        if self.folds:
            seed, fold = self.seed
            label = np.random.default_rng([seed, number]).integers(self.folds, size=units.size)
            weight = np.where((label == fold) == (self.kind == "held-out"), units, 0.0)
            return self._weighted(rows, weight)
        generator = np.random.default_rng([*self.seed, number])
        if self.kind == "pairs":
            weight = generator.poisson(units).astype(np.float64)
        else:
            weight = generator.gamma(np.maximum(units, TINY))
        return self._weighted(rows, weight)

    @staticmethod
    def _weighted(rows: Rows, weight: FloatArray) -> Rows:
        if not weight.any():
            weight[0] = TINY  # loops need a row
        return rows.reweighted(weight)


@dataclass(frozen=True)
class BlockRows(Rows):
    """All rows of the blocks in place of a `Rows` of arrays, with moments from a first pass."""

    blocks: Blocks = field(kw_only=True)
    totals: Totals = field(kw_only=True)
    reader: Reader = field(kw_only=True)
    sampled: Rows = field(kw_only=True)
    threads: int = field(kw_only=True)
    draw: Draw | None = field(default=None, kw_only=True)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.totals.n_rows

    @cached_property
    def _move(self) -> tuple[FloatArray, FloatArray]:
        """Shift and scale of each column, with the continuous responses last."""
        units, count = self.reader.units, self.totals.mean.size
        if units is None:
            return np.zeros(count), np.ones(count)
        extra = count - units.centre.size
        ends = np.array([np.ravel(units.level), np.ravel(units.unit)])[:, :extra]
        return np.append(units.centre, ends[0]), np.append(units.scale, ends[1])

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of each input and, last, of the continuous responses."""
        shift, scale = self._move
        return (self.totals.mean - shift) / scale

    @property
    def covariance(self) -> FloatArray:
        """Their covariance matrix."""
        scale = self._move[1]
        return self.totals.squares / self.totals.total / np.outer(scale, scale)

    @cached_property
    def _coarser(self) -> list[Rows]:
        alone = self.draw is not None or self.sampled.size == self.size
        return [] if alone else [self.sampled]

    def parts(self, n_params: int) -> Sequence[slice]:
        """One part for each block."""
        return [slice(number, number + 1) for number in range(len(self.blocks))]

    def part(self, rows: slice) -> Rows:
        """The rows of one block."""
        return self.reader.sample(self.blocks[rows.start])

    def map_parts(self, function: Callable[[Rows], T]) -> Iterator[T]:
        """``function(part)`` of every block, in order, where the blocks are."""
        return self.visit(partial(_through, self.reader, self.draw, function), "pass")

    def visit(self, function: Callable[[int, Block], T], what: str) -> Iterator[T]:
        """``function(i, block)`` of every block, in order; the log says how far it is."""
        blocks = self.blocks
        return passing(blocks.map(function, self.threads), len(blocks), self.size, what)

    def sum_parts(self, function: Callable[[Rows], T]) -> T:
        """The sum of ``function(part)`` over every block, added where the blocks are."""
        return self.sum_blocks(partial(_through, self.reader, self.draw, function), "pass")

    def sum_blocks(self, function: Callable[[int, Block], T], what: str) -> T:
        """The sum of ``function(i, block)`` over every block; the log says how far it is."""

        def watch(steps: Iterable[V], count: int) -> Iterator[V]:
            return passing(steps, count, self.size, what)

        return self.blocks.sum(function, self.threads, watch)

    def resamples(self, kind: str, count: int, seed: int) -> Iterator[BlockRows]:
        """The same rows with the random weights of each of `count` resamples."""
        for number in range(count):
            yield replace(self, draw=Draw(kind, (seed, number)))

    def convert(self, units: DataUnits) -> BlockRows:
        """The same rows as (z, w) of these units."""
        reader = replace(self.reader, units=units)
        return replace(self, reader=reader, sampled=self.sampled.convert(units))


def _through(
    reader: Reader,
    draw: Draw | None,
    function: Callable[[Rows], T],
    number: int,
    block: Block,
) -> T:
    rows = reader.sample(block)
    return function(rows if draw is None else draw.of(number, rows))


def rows_of_blocks(
    blocks: Blocks, totals: Totals, family: Family, labels: tuple[Labels | None, ...], threads: int
) -> BlockRows:
    """The rows in the user's units."""
    reader = Reader.of(family, labels, blocks.features)
    totals.mean[list(family.held)] = 0.0
    sampled = reader.encode(totals.sample)
    alike = replace(
        sampled, weight=sampled.weight * (totals.total / sampled.weight.sum()), preview=True
    )
    nothing = np.empty((family.n_features, 0)), sampled.y[:0], np.array([totals.total])
    return BlockRows(
        *nothing, blocks=blocks, totals=totals, reader=reader, sampled=alike, threads=threads
    )
