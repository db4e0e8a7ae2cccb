"""Fits by formula to sources: one pass to know the columns, then blocks whose designs are made.

The first pass finds which rows have missing values, levels and extremes of columns, and a random
sample of rows, from which the transforms of the formula learn what they have to know.  Every later
pass makes the designs of a block from the columns that the formula names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from moestat.base.threads import ONE_THREAD
from moestat.base.types import IntArray
from moestat.base.validate import as_generator, draw_seed, is_mapping, is_sequence, positive_int
from moestat.estimation.block_fits import SEARCHED, deadline_after, fit_rows
from moestat.estimation.block_sums import Watch, sum_of
from moestat.estimation.blocks import Block, Blocks, GroupedBlock
from moestat.estimation.data import of_two_columns
from moestat.estimation.fitting import Settings
from moestat.estimation.formula_terms import Asked, arguments_of, check_finite, read_terms
from moestat.estimation.progress import LOG, passing, reported
from moestat.estimation.random_terms import random_likelihood
from moestat.estimation.reading.formula import (
    FormulaInputs,
    beside,
    response_column,
    used_names,
)
from moestat.estimation.reading.table import Column, Table, missing_values
from moestat.estimation.results import MoEResults
from moestat.estimation.rules import MOST_LEVELS, SAMPLED, SPARE
from moestat.estimation.source_groups import (
    Ends,
    Gathered,
    ends_of_labels,
    gathered,
    labels_of,
)
from moestat.estimation.sources import Source, digest_of
from moestat.model.joint import as_likelihood, likelihood_table
from moestat.solvers.rules import HALF_OF_DIGITS

__all__ = ["SharedSource", "fit_source"]

T = TypeVar("T")

_PIECE = 1 << 16
"""Rows whose designs are in memory at a time for each thread: a part may have many more."""

_OPTIONS = (
    *(
        "starts",
        "n_starts",
        "time_limit",
        "risk",
        "rng",
        "threads",
        "verbose",
        "classes",
        "prior",
        "resolution",
        "random",
    ),
)
"""Arguments of `moestat.fit` that a fit to a source takes; others need all rows in memory."""


def fit_source(
    formula: Any,
    source: Source | SharedSource,
    family: Any,
    n_experts: int | None,
    weights: str | None,
    offset: str | None,
    groups: str | None,
    missing: str,
    scope: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    known: Sequence[str],
    resume: Any = None,
) -> MoEResults:
    """The fit by formula to a source; arguments are those of `fit_formula`.

    `known` are the names of the arguments of `moestat.fit`, of which few are for sources.
    """
    if source.weights is not None and weights is not None:
        raise ValueError(
            f"weights: the blocks already contain weights; leave out weights={weights!r}"
        )
    weights = source.weights if weights is None else weights
    names = columns_of_source(source)
    how = weights, offset, groups, missing, scope
    asked = read_terms(formula, names, family, *how, options)
    _check(asked, known)
    options_of_fit = {name: asked.options.pop(name) for name in _OPTIONS if name in asked.options}
    threads = options_of_fit.get("threads")
    count = os.cpu_count() or 1 if threads is None else positive_int("threads", threads)
    with reported("fit_formula", options_of_fit.get("verbose", False), answers=True):
        deadline = deadline_after(options_of_fit.get("time_limit"))
        generator = as_generator(options_of_fit.get("rng"))
        looks, fits = generator.spawn(2)
        seed = draw_seed(looks)
        shared = source if isinstance(source, SharedSource) else SharedSource(source)
        chosen, seen = shared.first_pass(asked, seed, missing, count)
        inputs = FormulaInputs.of(asked.formula, asked.terms, seen.sample, asked.scope)
        designs = inputs.designs(seen.sample)
        several = is_sequence(family) or bool(as_likelihood(family).parts)
        made, given = arguments_of(asked, inputs, seen.sample, designs, family)
        _check_by_row(inputs, asked, seen.sample, designs, several)
        moves = None
        if asked.groups is not None:
            how_complete = _complete, seen.counts, count
            moves = gathered(chosen, asked.groups, seen.ends, *how_complete)
        plan = _Plan(inputs, weights, several, moves)
        blocks = _Designs.of(chosen, seen, plan, made.features, shared.source)
        columns = beside(asked.terms.response) if several else [asked.terms.response]
        own_family = _family_of(family, inputs, seen.sample, several, len(columns))
        if (random := options_of_fit.get("random")) is not None:
            own_family = random_likelihood(own_family, random, made.features, len(made.design))
        extra = {
            "formula": inputs,
            "responses": tuple(used_names([asked.terms.response], names, asked.scope)[0]),
            "weights_column": None if source.weights else weights,
            "groups_column": asked.groups,
            "dropped": seen.given - seen.rows,
        }
        result = fit_rows(
            own_family,
            blocks,
            options_of_fit.get("starts"),
            fits,
            count,
            {"n_experts": n_experts, **given},
            searched={name: options_of_fit.get(name) for name in SEARCHED},
            deadline=deadline,
            order=options_of_fit.get("classes"),
            declared=[seen.column_of(each) for each in columns],
            names=[text for _, text in columns] if several else (),
            prior=options_of_fit.get("prior"),
            resolution=options_of_fit.get("resolution"),
            extra=extra,
            memory=shared.memory_of(asked),
            resume=resume,
        )
    return _noted(result, inputs, seen)


@dataclass(frozen=True)
class SharedSource:
    """A source of several fits, which share passes that do not depend on the model.

    Formulas share the first pass over the columns of all of them, which is one only if no row is
    left out: each formula alone says which rows are complete.  Fits of one formula also share the
    pass that finds means, covariances and the sample of the design.
    """

    source: Source
    also: tuple[Asked, ...] = ()  # what further formulas ask for
    kept: dict[Any, Any] = field(default_factory=dict[Any, Any], repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.source.names

    @property
    def weights(self) -> str | None:
        """The column of weights that the source itself has."""
        return self.source.weights

    def first_pass(
        self, asked: Asked, seed: int, missing: str, threads: int
    ) -> tuple[Source, _Seen]:
        """The source with the columns of the formulas, and what the first pass over them finds."""
        together = [asked]
        if missing == "raise":
            together += [each for each in self.also if each.groups == asked.groups]
        names = sorted({name for each in together for name in each.names})
        coded = sorted({name for each in together for name in _coded(each)})
        key = (*names, "|", *coded, asked.groups)
        if key not in self.kept:
            chosen = self.source.chosen(names)
            with ONE_THREAD:
                how = coded, asked.groups, names
                self.kept[key] = chosen, _survey(chosen, *how, seed, missing, threads)
        return self.kept[key]

    def memory_of(self, asked: Asked) -> dict[str, Any]:
        """What passes over the design of a formula have found."""
        return self.kept.setdefault(("design", asked.formula, asked.groups), {})


def _family_of(
    family: Any, inputs: FormulaInputs, sample: Table, several: bool, n_responses: int
) -> Any:
    """The likelihood of responses of as many columns as the formula has."""
    if not several:
        return of_two_columns(family, inputs.response_of(sample))
    if is_sequence(family) or (is_mapping(family) and "responses" in family):
        return family
    return {**likelihood_table(as_likelihood(family)), "responses": n_responses}


def columns_of_source(source: Any) -> list[str]:
    """Names of the columns of a source, with that of its own weights."""
    return [*source.names, *([source.weights] if source.weights else [])]


def _check(asked: Asked, known: Sequence[str]) -> None:
    """Refuse by name what a fit to a source cannot have."""
    refused = [name for name in asked.options if name in known and name not in _OPTIONS]
    if refused:
        raise ValueError(
            f"{refused[0]}: is for data in memory; a fit to a source that is read in parts has only"
            f" {', '.join(_OPTIONS)} of these arguments; read the table into memory for others"
        )
    given: dict[str, Any] = {name: asked.options.get(name) for name in ("starts", *SEARCHED)}
    Settings(**given)  # refuses what does not go together


@dataclass(frozen=True)
class _Look:
    """What the first pass finds in one part."""

    given: int  # number of rows
    rows: int  # number of rows without missing values
    digest: int
    gaps: tuple[tuple[int, int], ...]  # of each column how many are missing, and the first of them
    keys: Any = field(repr=False)  # random numbers of the drawn rows
    drawn: Table = field(repr=False)
    # a row for each level of the factors, and for both ends of the numbers
    ends: Table = field(repr=False)
    groups: Ends = None  # smallest and largest label of its groups


@dataclass(frozen=True)
class _Seen:
    """What the first pass has found in all parts."""

    given: int
    rows: int
    counts: tuple[int, ...]  # rows of each part without missing values
    digests: tuple[int, ...]
    sample: Table = field(repr=False)
    whole: bool  # whether the sample is all rows
    ends: tuple[Ends, ...]  # of each part the smallest and largest label of its groups

    def column_of(self, factor: tuple[str, str]) -> Column | None:
        """The column that a response is, with its declared levels; None of a function."""
        return self.sample[factor[1]] if factor[0] == "lookup" else None


def _survey(
    source: Source,
    coded: Sequence[str],
    groups: str | None,
    names: Sequence[str],
    seed: int,
    missing: str,
    threads: int,
) -> _Seen:
    """One pass over all parts."""
    rows = source.rows()
    total = sum(rows)
    if not total:
        raise ValueError("data has no rows")
    LOG.info("first pass over %d rows in %d parts", total, len(rows))
    few = total <= SAMPLED
    most = total if few else SPARE * SAMPLED // len(rows) + 1
    look = partial(_look, coded, groups, most, seed)
    looks: list[_Look] = []
    drawn: list[tuple[Any, Table]] = []
    ends: list[Table] = []
    for looked in passing(source.map(look, threads), len(rows), total, "first pass"):
        looks.append(replace(looked, keys=None, drawn=_NOTHING, ends=_NOTHING))
        if looked.rows:
            drawn.append((looked.keys, looked.drawn))
            ends.append(looked.ends)
        if sum(keys.size for keys, _ in drawn) > 2 * SAMPLED:
            drawn = [_smallest(drawn)]
        if len(ends) > 1:
            ends = [_ends(_stacked(ends), coded, groups)]
    if missing == "raise":
        _check_gaps(looks, names)
    if not drawn:
        raise ValueError("data: every row has a missing value")
    sample = _stacked([table for _, table in drawn]) if few else _smallest(drawn)[1]
    if not few:
        sample = _stacked([sample, *ends])
    counts = tuple(looked.rows for looked in looks)
    return _Seen(
        *(sum(looked.given for looked in looks), sum(counts), counts),
        *(tuple(looked.digest for looked in looks), sample, few),
        tuple(looked.groups for looked in looks),
    )


def _coded(asked: Asked) -> tuple[str, ...]:
    """Columns in factors that may be coded by levels although they hold numbers."""
    factors = [f for part in asked.terms.parts for term in part for f in term]
    texts = [(how, text) for how, text in factors if "C(" in text or "factor(" in text]
    return tuple(used_names(texts, asked.columns, asked.scope)[0])


def _look(
    coded: Sequence[str], groups: str | None, most: int, seed: int, number: int, table: Table
) -> _Look:
    """What the first pass finds in one part."""
    gaps = [
        (int(column.missing.sum()), int(np.argmax(column.missing)) if column.missing.any() else -1)
        for column in table.columns
    ]
    complete = _complete(table)
    keys = np.random.default_rng([seed, number]).random(complete.n_rows)
    most = min(most, keys.size)
    sampled = np.sort(np.argpartition(keys, most - 1)[:most]) if most else np.arange(0)
    return _Look(
        table.n_rows,
        complete.n_rows,
        digest_of(table),
        tuple(gaps),
        keys[sampled],
        complete.at(sampled),
        _ends(complete, coded, groups),
        None if groups is None else ends_of_labels(labels_of(complete[groups])),
    )


def _complete(table: Table) -> Table:
    """The rows in which nothing is missing, without their index."""
    table, complete_rows = replace(table, index=None), _complete_rows(table)
    return table if complete_rows.size == table.n_rows else table.at(complete_rows)


def _complete_in(names: Sequence[str], table: Table) -> Table:
    """The rows in which nothing is missing in some of the columns."""
    return table.at(_complete_rows(table.some(names)))


def _complete_rows(table: Table) -> IntArray:
    """Positions of the rows in which nothing is missing."""
    gaps = np.zeros(table.n_rows, dtype=bool)
    for column in table.columns:
        gaps |= column.missing
    return np.flatnonzero(~gaps)


def _ends(table: Table, coded: Sequence[str], groups: str | None) -> Table:
    """A row for each level of the factors, and for both ends of the numbers."""
    rows: set[int] = set()
    for column in table.columns if table.n_rows else ():
        values = column.values
        if column.name == groups:
            continue
        if column.categorical or column.name in coded:
            plain = values.astype(str) if values.dtype.kind == "O" else values
            places = np.unique(plain, return_index=True)[1]
            if places.size > MOST_LEVELS:
                raise ValueError(
                    f"data: column {column.name!r} has more than {MOST_LEVELS} levels; a design"
                    " has a column for each"
                )
            rows.update(places.tolist())
        elif values.dtype.kind in "iuf":
            rows.update((int(np.argmin(values)), int(np.argmax(values))))
    return table.at(np.array(sorted(rows), dtype=np.int64))


_NOTHING = Table((), True, 0)


def _smallest(drawn: Sequence[tuple[Any, Table]]) -> tuple[Any, Table]:
    """The rows with the smallest keys, in their order: a uniform sample."""
    keys = np.concatenate([part for part, _ in drawn])
    table = _stacked([part for _, part in drawn])
    if keys.size <= SAMPLED:
        return keys, table
    smallest = np.sort(np.argpartition(keys, SAMPLED)[:SAMPLED])
    return keys[smallest], table.at(smallest)


def _stacked(tables: Sequence[Table]) -> Table:
    """Rows of tables with the same columns, one after the other."""
    if len(tables) == 1:
        return tables[0]
    columns: list[Column] = []
    for parts in zip(*(table.columns for table in tables), strict=True):
        words = {part.categorical for part in parts if part.values.size}
        if len(words) > 1:
            raise ValueError(
                f"data: column {parts[0].name!r} has words in one part and numbers in another"
            )
        columns.append(
            replace(
                parts[0],
                values=np.concatenate([part.values for part in parts]),
                missing=np.concatenate([part.missing for part in parts]),
                levels=_levels([part.levels for part in parts]),
            )
        )
    return Table(tuple(columns), True, sum(table.n_rows for table in tables))


def _levels(declared: Sequence[Any]) -> Any:
    """Declared levels of parts in the order in which they appear, as pandas joins them."""
    if any(levels is None for levels in declared):
        return None
    known_levels = dict.fromkeys(
        level for levels in declared for level in np.asarray(levels).tolist()
    )
    return np.array(list(known_levels), dtype=np.asarray(declared[0]).dtype)


def _check_gaps(looks: Sequence[_Look], names: Sequence[str]) -> None:
    """Refuse missing values, with the column, their number and the first row."""
    begin = np.cumsum([0, *(looked.given for looked in looks)])
    for j, name in enumerate(names):
        count = sum(looked.gaps[j][0] for looked in looks)
        if count:
            at = next(i for i, looked in enumerate(looks) if looked.gaps[j][0])
            first = int(begin[at]) + looks[at].gaps[j][1]
            raise missing_values(f"data: column {name!r}", count, first)


def _check_by_row(
    inputs: FormulaInputs, asked: Asked, table: Table, designs: Any, several: bool
) -> None:
    """Refuse terms of which one row depends on other rows, as ``x - x.mean()`` does."""
    if table.n_rows < 3:
        return
    rows = np.arange(0, table.n_rows, 2)[::-1]
    some = table.at(rows)
    pairs: list[tuple[str, Any, Any]] = []
    for response in beside(asked.terms.response) if several else [asked.terms.response]:
        values = [response_column(response, each, asked.scope).values for each in (table, some)]
        pairs.append((response[1], values[0][rows], values[1]))
    for whole, part in zip(designs, inputs.designs(some), strict=True):
        pairs += [
            (str(name), np.asarray(whole[name])[rows], np.asarray(part[name]))
            for name in whole.columns
        ]
    for name, whole, part in pairs:
        if whole.dtype.kind in "biuf" and not np.allclose(
            whole.astype(float), part.astype(float), rtol=HALF_OF_DIGITS, atol=0.0, equal_nan=True
        ):
            raise ValueError(
                f"formula: {name!r} in one row depends on other rows, which are not in memory"
                " together if a source is read in parts; compute the value that it needs first,"
                " and write it as a number or a column"
            )


@dataclass(frozen=True)
class _Plan:
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
        return self.moves.apply(number, table, numbers, _stacked)

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
    """What the first pass has seen of a part."""

    first: int  # number of its first complete row
    piece: int  # number of its first piece
    pieces: int  # number of its pieces
    digest: int


@dataclass(frozen=True)
class _Designs(Blocks):
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
        seen: _Seen,
        plan: _Plan,
        features: tuple[str, ...] | None,
        whole: Source,
    ) -> _Designs:
        """Blocks of a source after the first pass."""
        parts: list[_Part] = []
        first = piece = 0
        for number, (rows, digest) in enumerate(zip(seen.counts, seen.digests, strict=True)):
            most = rows + (plan.moves.moved(number) if plan.moves is not None else 0)
            parts.append(_Part(first, piece, -(-most // _PIECE), digest))
            first, piece = first + rows, piece + parts[-1].pieces
        response = None if plan.several else plan.inputs.response[1]
        read_part = partial(_read, source, plan, tuple(parts))
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
            complete = partial(_complete_in, self.names)
            away = self.plan.moves.labels_away(source, columns, complete, first, threads)
        work = partial(_with_labels, self.plan, self.parts, self.names, columns, away, function)
        for results in source.map(work, threads):
            yield from results

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns of the source."""
        return tuple(self.whole.names)


def _read(source: Source, plan: _Plan, parts: Sequence[_Part], number: int) -> Block:
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
    plan: _Plan,
    parts: Sequence[_Part],
    function: Callable[[int, Block], T],
    number: int,
    table: Table,
) -> Any:
    """What a function finds in the pieces of a part, one after the other, as collected."""
    part = parts[number]
    table, numbers = plan.rows_of(number, part, _unchanged(part, table))
    return collect(
        function(piece, plan.block(_cut(table, rows), numbers[rows]))
        for piece, rows in plan.pieces(part, table)
    )


def _with_labels(
    plan: _Plan,
    parts: Sequence[_Part],
    names: Sequence[str],
    columns: Sequence[str],
    away: tuple[IntArray, dict[str, np.ndarray]] | None,
    function: Callable[..., T],
    number: int,
    table: Table,
) -> list[T]:
    """What a function finds in the pieces of a part and in further columns.

    `away` has the numbers and labels of rows that other parts than their own take in.
    """
    part = parts[number]
    chosen = table.some(names)
    if digest_of(chosen) != part.digest:
        raise ValueError("data: the rows have changed since the first pass; fit again")
    complete = _complete_rows(chosen)
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
    """The complete rows of a part; refuses one that is not what the first pass has seen."""
    if digest_of(table) != part.digest:
        raise ValueError("data: the rows have changed since the first pass; fit again")
    return _complete(table)


def _cut(table: Table, rows: slice) -> Table:
    at = np.arange(rows.start, rows.stop)
    return table if at.size == table.n_rows else table.at(at)


def _noted(result: MoEResults, inputs: FormulaInputs, seen: _Seen) -> MoEResults:
    """The result with a note where transforms have learnt from a sample."""
    learnt = sorted(set(_states(inputs)))
    if seen.whole or not learnt:
        return result
    message = (
        f"{', '.join(learnt)}: centres, scales and knots are those of a random sample of"
        f" {SAMPLED:,} of {seen.rows:,} rows, together with the rows at the ends of each column;"
        " they are part of the model, and another seed may give slightly different ones"
    )
    kinds = (*(result.kinds or ("",) * len(result.notes)), "")
    return replace(result, notes=(*result.notes, message), kinds=kinds)


def _states(inputs: FormulaInputs) -> Iterator[str]:
    """Transforms that have learnt something."""
    for part in json.loads(inputs.states):
        for name, value in part.get("dict", ()):
            if value not in ({"dict": []}, None):
                yield str(name)
