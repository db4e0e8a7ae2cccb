"""Answers for the rows of a fit to blocks or a source: of all rows by one pass, or of a sample.

A fit with the rows of one block in place of all answers for these as a fit in memory does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.memory import FLOAT_BYTES, check_room
from moestat.base.types import FloatArray, IntArray, Seed
from moestat.base.validate import as_generator, draw_seed
from moestat.estimation.block_rows import BlockRows, Reader
from moestat.estimation.blocks import Block
from moestat.estimation.data import Data

if TYPE_CHECKING:
    pass


__all__ = ["at_sample", "sample_data", "sum_of_source", "values_of_source"]


def sample_data(result: Any) -> Data:
    """The sample of the rows of a fit to blocks, as the data of a fit."""
    rows: BlockRows = result.source
    known, family = rows.totals, result.family
    drawn = known.drawn
    X = drawn.X.copy() if family.held else drawn.X
    X[list(family.held)] = 0.0
    return replace(
        result.data,
        X=X.T,
        y=rows.reader.values(drawn.y),
        weight=drawn.weight,
        groups=drawn.groups,
        group_weight=None,
        kept=known.numbers,
        drawn=True,
    )


def at_sample(result: Any) -> Any:
    """The fit with the rows of its sample in place of all, with weights that sum to all."""
    data, total = sample_data(result), float(result.weight.sum())
    weight = data.weight * (total / data.weight.sum())
    return replace(result, data=replace(data, weight=weight), weight=weight, source=None)


def values_of_source(
    result: Any, name: str, answer: Callable[[Any], Any], rng: Seed = None
) -> FloatArray:
    """Values (n,) or (n, m) of all rows, in their order, by one pass.

    `answer` takes a fit to the rows of a block; with `rng` also a generator of its own for each
    block.  Rows have their order in the source, without those that have missing values.
    """
    rows: BlockRows = result.source
    check_room(
        2 * FLOAT_BYTES * rows.totals.given * max(1, result.family.n_experts),
        f"{name}: values of {rows.totals.given:,} rows",
        f"; take those of a sample, at_sample().{name}",
    )
    seed = None if rng is None else draw_seed(as_generator(rng))
    work = partial(_answered, replace(result, source=None), rows.reader, answer, seed)
    with _told():
        found = list(rows.visit(work, name))
    values = np.concatenate([own for own, _ in found])
    places = [numbers for _, numbers in found if numbers is not None]
    return values[np.argsort(np.concatenate(places), kind="stable")] if places else values


def sum_of_source(result: Any, name: str, answer: Callable[[Any], float]) -> float:
    """The sum over blocks of a number of each, by one pass."""
    rows: BlockRows = result.source
    work = partial(_answered, replace(result, source=None), rows.reader, answer, None)
    with _told():
        return float(rows.sum_blocks(partial(_first, work), name))


def _first(work: Callable[[int, Block], tuple[Any, Any]], number: int, block: Block) -> Any:
    return work(number, block)[0]


class _NoAnswerError(Exception):
    """What a fit does not answer, whatever its rows: no message names a part of the source."""


@contextmanager
def _told() -> Iterator[None]:
    """A refusal as a `ValueError`, as in memory."""
    try:
        yield
    except _NoAnswerError as refusal:
        raise ValueError(str(refusal)) from None


def _answered(
    result: Any,
    reader: Reader,
    answer: Callable[..., Any],
    seed: int | None,
    number: int,
    block: Block,
) -> tuple[Any, IntArray | None]:
    """What a fit to the rows of a block answers, and the numbers of the rows if it has groups."""
    part, numbers = reader.data(result.data, block)
    here = replace(result, data=part, weight=part.weight)
    generator = () if seed is None else (np.random.default_rng([seed, number]),)
    try:
        return np.asarray(answer(here, *generator)), numbers
    except ValueError as error:
        raise _NoAnswerError(str(error)) from None
