"""Fits by formula to sources: a first pass over the columns, then fits to blocks of the designs.

The first pass finds which rows have missing values, the levels and extremes of columns, and a
random sample of rows, from which the transforms of the formula learn their parameters.  Every later
pass computes the designs of a block from the columns that the formula names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from moestat.base.threads import ONE_THREAD
from moestat.base.types import FloatArray, IntArray, Labels
from moestat.base.validate import (
    as_generator,
    draw_seed,
    is_mapping,
    is_sequence,
    listed,
    positive_int,
)
from moestat.base.warnings import DroppedRowsWarning, warn_caller
from moestat.estimation.data.formula_terms import (
    FormulaRequest,
    arguments_of,
    check_finite,
    read_terms,
)
from moestat.estimation.data.random_terms import random_likelihood
from moestat.estimation.data.read import of_two_columns
from moestat.estimation.fitting.fit import Settings
from moestat.estimation.fitting.fit_blocks import SEARCHED, deadline_after, fit_rows
from moestat.estimation.progress import LOG, passing, reported
from moestat.estimation.reading.formula import (
    FormulaInputs,
    beside,
    response_column,
    used_names,
)
from moestat.estimation.reading.table import Column, Table, missing_values
from moestat.estimation.results.results import MoEResults
from moestat.estimation.rows.blocks import Block, Blocks, GroupedBlock
from moestat.estimation.rows.source_groups import (
    Ends,
    Gathered,
    ends_of_labels,
    gathered,
    labels_of,
)
from moestat.estimation.rows.sources import Source, digest_of
from moestat.estimation.rows.sums import Watch, sum_of
from moestat.estimation.rules import MOST_LEVELS, SAMPLED, SPARE
from moestat.model.joint import as_likelihood, likelihood_table
from moestat.solvers.rules import HALF_OF_DIGITS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SharedSource", "fit_source"]

T = TypeVar("T")

_PIECE = 1 << 16
"""Rows whose designs are in memory at a time for each thread: a part may have many more."""

_OPTIONS = (
    "starts",
    "n_starts",
    "time_limit",
    "risk",
    "maximum",
    "rng",
    "threads",
    "verbose",
    "classes",
    "prior",
    "resolution",
    "random",
)
"""Arguments of `moestat.fit` that a fit to a source takes; others need all rows in memory."""


def fit_source(
    formula: str | Mapping[Any, str],
    source: Source | SharedSource,
    family: object,
    n_experts: int | None,
    weights: str | None,
    offset: str | None,
    groups: str | None,
    missing: str,
    scope: Mapping[str, object] | None,
    options: Mapping[str, object],
    known: Sequence[str],
    resume: str | Path | None = None,
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
    request = read_terms(formula, names, family, *how, options)
    _check(request, known)
    if request.random is not None and request.random.within is not None:
        raise ValueError(
            "formula: nested groups are available only for data in memory; pass a table, such as"
            " pandas.read_parquet(path)"
        )
    # The random effects are still to be read, with the designs.
    options_of_fit = {
        name: request.options.pop(name)
        for name in _OPTIONS
        if name in request.options and name != "random"
    }
    threads = options_of_fit.get("threads")
    count = os.cpu_count() or 1 if threads is None else positive_int("threads", threads)
    with reported("fit_formula", options_of_fit.get("verbose", False), answers=True):
        deadline = deadline_after(options_of_fit.get("time_limit"))
        generator = as_generator(options_of_fit.get("rng"))
        looks, fits = generator.spawn(2)
        seed = draw_seed(looks)
        shared = source if isinstance(source, SharedSource) else SharedSource(source)
        chosen, survey = shared.first_pass(request, seed, missing, count)
        inputs = FormulaInputs.of(request.formula, request.terms, survey.sample, request.scope)
        designs = inputs.designs(survey.sample)
        several = is_sequence(family) or bool(as_likelihood(family).parts)
        design_inputs, given = arguments_of(request, inputs, survey.sample, designs, family)
        _check_by_row(inputs, request, survey.sample, designs, several)
        moves = None
        if request.groups is not None:
            how_complete = _complete, survey.counts, count
            moves = gathered(chosen, request.groups, survey.ends, *how_complete)
        plan = _Plan(inputs, weights, several, moves)
        blocks = _Designs.of(chosen, survey, plan, design_inputs.features, shared.source)
        columns = beside(request.terms.response) if several else [request.terms.response]
        own_family = _family_of(family, inputs, survey.sample, several, len(columns))
        if (random := given.pop("random", None)) is not None:
            own_family = random_likelihood(
                own_family, random, design_inputs.features, len(design_inputs.design)
            )
        extra = {
            "formula": inputs,
            "responses": tuple(used_names([request.terms.response], names, request.scope)[0]),
            "weights_column": None if source.weights else weights,
            "groups_column": request.groups,
            "dropped": survey.given - survey.rows,
        }
        result = fit_rows(
            own_family,
            blocks,
            options_of_fit.get("starts"),
            fits,
            count,
            {"n_experts": n_experts, **given},
            search_options={name: options_of_fit.get(name) for name in SEARCHED},
            deadline=deadline,
            order=options_of_fit.get("classes"),
            declared=[survey.column_of(each) for each in columns],
            names=[text for _, text in columns] if several else (),
            prior=options_of_fit.get("prior"),
            resolution=options_of_fit.get("resolution"),
            extra=extra,
            memory=shared.memory_of(request),
            resume=resume,
        )
    return _noted(result, inputs, survey)


@dataclass(frozen=True)
class SharedSource:
    """A source of several fits, which share passes that do not depend on the model.

    Formulas share the first pass over the columns of all of them, and leave out the rows with a gap
    in any of these.  Fits of one formula also share the pass that finds means, covariances and the
    sample of the design.
    """

    source: Source
    also: tuple[FormulaRequest, ...] = ()  # requests of further formulas
    # results of passes by what they depend on
    cache: dict[tuple[object, ...], Any] = field(
        default_factory=dict[tuple[object, ...], Any], repr=False
    )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.source.names

    @property
    def weights(self) -> str | None:
        """The column of weights that the source itself has."""
        return self.source.weights

    def first_pass(
        self, request: FormulaRequest, seed: int, missing: str, threads: int
    ) -> tuple[Source, _FirstPass]:
        """The source with the columns of the formulas, and what the first pass over them finds."""
        together = [request, *(each for each in self.also if each.groups == request.groups)]
        names = sorted({name for each in (*together, *self.also) for name in each.names})
        coded = sorted({name for each in together for name in _coded(each)})
        key = (*names, "|", *coded, request.groups)
        if key not in self.cache:
            chosen = self.source.chosen(names)
            with ONE_THREAD:
                how = coded, request.groups, names
                survey = _survey(chosen, *how, seed, missing, threads)
                self.cache[key] = chosen, survey
            if ("dropped",) not in self.cache:  # said once
                self.cache["dropped",] = None
                by_fit = [each.names for each in (request, *self.also)]
                warn_of_dropped_rows(by_fit, survey.gaps, survey.given - survey.rows, survey.given)
        return self.cache[key]

    def memory_of(self, request: FormulaRequest) -> dict[str, object]:
        """The results of passes over the design of a formula."""
        return self.cache.setdefault(("design", request.formula, request.groups), {})


def warn_of_dropped_rows(
    names_by_fit: Sequence[Sequence[str]], gaps: Sequence[str], lost: int, given: int
) -> None:
    """Say that rows with gaps in columns of some fits are left out of all that are compared."""
    some = [name for name in gaps if not all(name in names for names in names_by_fit)]
    if some:
        warn_caller(
            f"missing: {lost} of {given} rows are left out of all fits, so that these can be"
            f" compared, because of missing values in {listed(some)}, which not every formula"
            f" reads; all fits are to the other {given - lost} rows",
            DroppedRowsWarning,
        )


def _family_of(
    family: Any, inputs: FormulaInputs, sample: Table, several: bool, n_responses: int
) -> Any:
    """The likelihood of responses of as many columns as the formula has."""
    if not several:
        response = inputs.response_of(sample)
        assert isinstance(response, Column)
        return of_two_columns(family, response)
    if is_sequence(family) or (is_mapping(family) and "responses" in family):
        return family
    return {**likelihood_table(as_likelihood(family)), "responses": n_responses}


def columns_of_source(source: Source | SharedSource) -> list[str]:
    """Names of the columns of a source, with that of its own weights."""
    return [*source.names, *([source.weights] if source.weights else [])]


def _check(request: FormulaRequest, known: Sequence[str]) -> None:
    """Refuse by name what a fit to a source cannot have."""
    refused = [name for name in request.options if name in known and name not in _OPTIONS]
    if refused:
        raise ValueError(
            f"{refused[0]}: is for data in memory; a fit to a source that is read in parts has only"
            f" {', '.join(_OPTIONS)} of these arguments; read the table into memory for others"
        )
    options = request.options
    given: dict[str, Any] = {k: options[k] for k in ("starts", *SEARCHED) if k in options}
    Settings(**given)  # refuses what does not go together


@dataclass(frozen=True)
class _PartSummary:
    """The results of the first pass for one part."""

    given: int  # number of rows
    rows: int  # number of rows without missing values
    digest: int
    gaps: tuple[tuple[int, int], ...]  # number of missing values of each column, and the first row
    keys: FloatArray = field(repr=False)  # random numbers of the sampled rows
    sample: Table = field(repr=False)
    # a row for each level of the factors, and for the extremes of the numeric columns
    ends: Table = field(repr=False)
    groups: Ends = None  # smallest and largest label of its groups


@dataclass(frozen=True)
class _FirstPass:
    """The results of the first pass for all parts."""

    given: int
    rows: int
    counts: tuple[int, ...]  # rows of each part without missing values
    digests: tuple[int, ...]
    sample: Table = field(repr=False)
    whole: bool  # whether the sample is all rows
    ends: tuple[Ends, ...]  # smallest and largest label of the groups of each part
    gaps: tuple[str, ...]  # columns with missing values

    def column_of(self, factor: tuple[str, str]) -> Column | None:
        """The column of a response, with its declared levels; None for a function of columns."""
        return self.sample[factor[1]] if factor[0] == "lookup" else None


def _survey(
    source: Source,
    coded: Sequence[str],
    groups: str | None,
    names: Sequence[str],
    seed: int,
    missing: str,
    threads: int,
) -> _FirstPass:
    """One pass over all parts."""
    rows = source.rows()
    total = sum(rows)
    if not total:
        raise ValueError("data has no rows")
    LOG.info("first pass over %d rows in %d parts", total, len(rows))
    takes_all = total <= SAMPLED
    n_sampled = total if takes_all else SPARE * SAMPLED // len(rows) + 1
    summarise = partial(_summarise_part, coded, groups, n_sampled, seed)
    summaries: list[_PartSummary] = []
    samples: list[tuple[FloatArray, Table]] = []
    ends: list[Table] = []
    for summary in passing(source.map(summarise, threads), len(rows), total, "first pass"):
        summaries.append(replace(summary, keys=np.empty(0), sample=_NOTHING, ends=_NOTHING))
        if summary.rows:
            samples.append((summary.keys, summary.sample))
            ends.append(summary.ends)
        if sum(keys.size for keys, _ in samples) > 2 * SAMPLED:
            samples = [_smallest(samples)]
        if len(ends) > 1:
            ends = [_ends(_stacked(ends), coded, groups)]
    if missing == "raise":
        _check_gaps(summaries, names)
    if not samples:
        raise ValueError("data: every row has a missing value")
    sample = _stacked([table for _, table in samples]) if takes_all else _smallest(samples)[1]
    if not takes_all:
        sample = _stacked([sample, *ends])
    counts = tuple(summary.rows for summary in summaries)
    return _FirstPass(
        sum(summary.given for summary in summaries),
        sum(counts),
        counts,
        tuple(summary.digest for summary in summaries),
        sample,
        takes_all,
        tuple(summary.groups for summary in summaries),
        tuple(n for j, n in enumerate(names) if any(s.gaps[j][0] for s in summaries)),
    )


def _coded(request: FormulaRequest) -> tuple[str, ...]:
    """Columns in factors that may be coded by levels although they hold numbers."""
    factors = [f for part in request.terms.parts for term in part for f in term]
    texts = [(how, text) for how, text in factors if "C(" in text or "factor(" in text]
    return tuple(used_names(texts, request.columns, request.scope)[0])


def _summarise_part(
    coded: Sequence[str], groups: str | None, n_sampled: int, seed: int, number: int, table: Table
) -> _PartSummary:
    """The results of the first pass for one part."""
    gaps = [
        (int(column.missing.sum()), int(np.argmax(column.missing)) if column.missing.any() else -1)
        for column in table.columns
    ]
    complete = _complete(table)
    keys = np.random.default_rng([seed, number]).random(complete.n_rows)
    n_sampled = min(n_sampled, keys.size)
    sampled = (
        np.sort(np.argpartition(keys, n_sampled - 1)[:n_sampled]) if n_sampled else np.arange(0)
    )
    return _PartSummary(
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
    """A row for each level of the factors, and for the extremes of the numeric columns."""
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


def _smallest(samples: Sequence[tuple[FloatArray, Table]]) -> tuple[FloatArray, Table]:
    """The rows with the smallest keys, in their order: a uniform sample."""
    keys = np.concatenate([part for part, _ in samples])
    table = _stacked([part for _, part in samples])
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


def _levels(declared: Sequence[Labels | None]) -> Labels | None:
    """Declared levels of parts in the order in which they appear, as pandas joins them."""
    if any(levels is None for levels in declared):
        return None
    known_levels = dict.fromkeys(
        level for levels in declared for level in np.asarray(levels).tolist()
    )
    return np.array(list(known_levels), dtype=np.asarray(declared[0]).dtype)


def _check_gaps(summaries: Sequence[_PartSummary], names: Sequence[str]) -> None:
    """Refuse missing values, with the column, their number and the first row."""
    begin = np.cumsum([0, *(summary.given for summary in summaries)])
    for j, name in enumerate(names):
        count = sum(summary.gaps[j][0] for summary in summaries)
        if count:
            at = next(i for i, summary in enumerate(summaries) if summary.gaps[j][0])
            first = int(begin[at]) + summaries[at].gaps[j][1]
            raise missing_values(f"data: column {name!r}", count, first)


def _check_by_row(
    inputs: FormulaInputs,
    request: FormulaRequest,
    table: Table,
    designs: Sequence[pd.DataFrame],
    several: bool,
) -> None:
    """Refuse terms of which one row depends on other rows, as ``x - x.mean()`` does."""
    if table.n_rows < 3:
        return
    rows = np.arange(0, table.n_rows, 2)[::-1]
    some = table.at(rows)
    pairs: list[tuple[str, np.ndarray, np.ndarray]] = []
    for response in beside(request.terms.response) if several else [request.terms.response]:
        values = [response_column(response, each, request.scope).values for each in (table, some)]
        pairs.append((response[1], values[0][rows], values[1]))
    for design, design_of_some in zip(designs, inputs.designs(some), strict=True):
        pairs += [
            (str(name), np.asarray(design[name])[rows], np.asarray(design_of_some[name]))
            for name in design.columns
        ]
    for name, among_all, alone in pairs:
        if among_all.dtype.kind in "biuf" and not np.allclose(
            among_all.astype(float),
            alone.astype(float),
            rtol=HALF_OF_DIGITS,
            atol=0.0,
            equal_nan=True,
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
    """The rows of a part, as the first pass has read them."""

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
        survey: _FirstPass,
        plan: _Plan,
        features: tuple[str, ...] | None,
        whole: Source,
    ) -> _Designs:
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
            complete = partial(_complete_in, self.names)
            away = self.plan.moves.labels_away(source, columns, complete, first, threads)
        work = partial(_with_labels, self.plan, self.parts, self.names, columns, away, function)
        for results in source.map(work, threads):
            yield from results

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns of the source."""
        return tuple(self.whole.names)


def _read_block(source: Source, plan: _Plan, parts: Sequence[_Part], number: int) -> Block:
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
    """Apply a function to the pieces of a part, in order, and collect the results."""
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
    """Apply a function to the pieces of a part and their labels in further columns.

    `away` has the numbers and labels of rows that are read with another part than their own.
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
    """The complete rows of a part; refuses one that is not what the first pass has read."""
    if digest_of(table) != part.digest:
        raise ValueError("data: the rows have changed since the first pass; fit again")
    return _complete(table)


def _cut(table: Table, rows: slice) -> Table:
    at = np.arange(rows.start, rows.stop)
    return table if at.size == table.n_rows else table.at(at)


def _noted(result: MoEResults, inputs: FormulaInputs, survey: _FirstPass) -> MoEResults:
    """The result with a note where transforms have learnt from a sample."""
    learnt = sorted(set(_states(inputs)))
    if survey.whole or not learnt:
        return result
    message = (
        f"{', '.join(learnt)}: centres, scales and knots are those of a random sample of"
        f" {SAMPLED:,} of {survey.rows:,} rows, together with the rows at the ends of each column;"
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
