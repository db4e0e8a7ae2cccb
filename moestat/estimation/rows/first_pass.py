"""The first pass over a source.

It finds which rows have missing values, the levels and extremes of columns, a digest of each part,
and a random sample of rows, from which the transforms of a formula learn their parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from moestat.base.types import FloatArray, IntArray, Labels
from moestat.estimation.data.formula_terms import (
    FormulaRequest,
)
from moestat.estimation.progress import LOG, passing
from moestat.estimation.reading.formula import (
    used_names,
)
from moestat.estimation.reading.table import Column, Table, missing_values
from moestat.estimation.rows.source_groups import (
    Ends,
    ends_of_labels,
    labels_of,
)
from moestat.estimation.rows.sources import Source, digest_of
from moestat.estimation.rules import MOST_LEVELS, SAMPLED, SPARE

__all__ = [
    "FirstPass",
    "coded_columns",
    "first_pass",
    "rows_without_gaps",
    "stacked",
    "without_gaps",
    "without_gaps_in",
]


@dataclass(frozen=True)
class _PartSummary:
    """The results of the first pass for one part."""

    n_given: int  # number of rows
    n_rows: int  # of these without missing values
    digest: int
    gaps: tuple[tuple[int, int], ...]  # number of missing values of each column, and the first row
    keys: FloatArray = field(repr=False)  # random numbers of the sampled rows
    sample: Table = field(repr=False)
    # a row for each level of the factors, and for the extremes of the numeric columns
    ends: Table = field(repr=False)
    groups: Ends = None  # smallest and largest label of its groups


@dataclass(frozen=True)
class FirstPass:
    """The results of the first pass for all parts."""

    n_given: int
    n_rows: int  # rows without missing values
    counts: tuple[int, ...]  # rows of each part without missing values
    digests: tuple[int, ...]
    sample: Table = field(repr=False)
    whole: bool  # whether the sample is all rows
    ends: tuple[Ends, ...]  # smallest and largest label of the groups of each part
    gaps: tuple[str, ...]  # columns with missing values

    def column_of(self, factor: tuple[str, str]) -> Column | None:
        """The column of a response, with its declared levels; None for a function of columns."""
        return self.sample[factor[1]] if factor[0] == "lookup" else None


def first_pass(
    source: Source,
    coded: Sequence[str],
    groups: str | None,
    names: Sequence[str],
    seed: int,
    missing: str,
    threads: int,
) -> FirstPass:
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
        if summary.n_rows:
            samples.append((summary.keys, summary.sample))
            ends.append(summary.ends)
        if sum(keys.size for keys, _ in samples) > 2 * SAMPLED:
            samples = [_smallest(samples)]
        if len(ends) > 1:
            ends = [_ends(stacked(ends), coded, groups)]
    if missing == "raise":
        _check_gaps(summaries, names)
    if not samples:
        raise ValueError("data: every row has a missing value")
    sample = stacked([table for _, table in samples]) if takes_all else _smallest(samples)[1]
    if not takes_all:
        sample = stacked([sample, *ends])
    counts = tuple(summary.n_rows for summary in summaries)
    return FirstPass(
        sum(summary.n_given for summary in summaries),
        sum(counts),
        counts,
        tuple(summary.digest for summary in summaries),
        sample,
        takes_all,
        tuple(summary.groups for summary in summaries),
        tuple(n for j, n in enumerate(names) if any(s.gaps[j][0] for s in summaries)),
    )


def coded_columns(request: FormulaRequest) -> tuple[str, ...]:
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
    complete = without_gaps(table)
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


def without_gaps(table: Table) -> Table:
    """The rows in which nothing is missing, without their index."""
    table, complete_rows = replace(table, index=None), rows_without_gaps(table)
    return table if complete_rows.size == table.n_rows else table.at(complete_rows)


def without_gaps_in(names: Sequence[str], table: Table) -> Table:
    """The rows in which nothing is missing in some of the columns."""
    return table.at(rows_without_gaps(table.some(names)))


def rows_without_gaps(table: Table) -> IntArray:
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
    table = stacked([part for _, part in samples])
    if keys.size <= SAMPLED:
        return keys, table
    smallest = np.sort(np.argpartition(keys, SAMPLED)[:SAMPLED])
    return keys[smallest], table.at(smallest)


def stacked(tables: Sequence[Table]) -> Table:
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
    begin = np.cumsum([0, *(summary.n_given for summary in summaries)])
    for j, name in enumerate(names):
        count = sum(summary.gaps[j][0] for summary in summaries)
        if count:
            at = next(i for i, summary in enumerate(summaries) if summary.gaps[j][0])
            first = int(begin[at]) + summaries[at].gaps[j][1]
            raise missing_values(f"data: column {name!r}", count, first)
