"""Values for the rows of a fit, wherever they are: of each row, or a sum over all rows.

Rows in memory are one part, the fit itself.  Rows of blocks or a source are many, read by one pass
that replaces the data of the fit by the rows of one block after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from moestat.base.memory import FLOAT_BYTES, check_room
from moestat.base.types import IntArray, Seed
from moestat.base.validate import as_generator, draw_seed
from moestat.estimation.data.data import Data
from moestat.estimation.rows.block_rows import Reader
from moestat.estimation.rows.blocks import Block

if TYPE_CHECKING:
    from moestat.estimation.fit.fitted import Fitted

__all__ = ["at_sample", "by_parts", "sample_data", "sum_over_parts", "values_over_parts"]

Fit = TypeVar("Fit", bound="Fitted")


def sample_data(result: Fitted) -> Data:
    """The sample of the rows of a fit to blocks, as the data of a fit."""
    rows = result.rows_elsewhere
    sample = rows.totals.sample
    assert result.data is not None
    data = rows.reader.data(result.data, sample)
    return replace(data, kept=sample.numbers, drawn=True)


def at_sample(result: Fit) -> Fit:
    """The fit with the rows of its sample, whose weights sum to those of all rows."""
    data, total = sample_data(result), float(result.weight.sum())
    weight = data.weight * (total / data.weight.sum())
    return replace(result, data=replace(data, weight=weight), weight=weight, source=None)


def values_over_parts(
    result: Fitted, name: str, answer: Callable[[Any], Any], rng: Seed = None
) -> Any:
    """Values (n,) or (n, m) of all rows, in their order.

    `answer` takes a fit to the rows of a part; with `rng` also a generator of its own for each
    block.  Rows have their order in the source, without those that have missing values.
    """
    if not result.reads_source:
        return answer(result)
    rows = result.rows_elsewhere
    check_room(
        2 * FLOAT_BYTES * rows.totals.n_given * max(1, result.family.n_experts),
        f"{name}: values of {rows.totals.n_given:,} rows",
        f"; take those of a sample, at_sample().{name}",
    )
    seed = None if rng is None else draw_seed(as_generator(rng))
    work = partial(_answered, replace(result, source=None), rows.reader, answer, seed)
    with _raise_refusals():
        parts = list(rows.visit(work, name))
    values = np.concatenate([part_values for part_values, _ in parts])
    places = [numbers for _, numbers in parts if numbers is not None]
    return values[np.argsort(np.concatenate(places), kind="stable")] if places else values


def by_parts(values: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A method of a fit that returns values of all rows, also of rows that are elsewhere."""

    @wraps(values)
    def of_all_rows(self: Fitted) -> Any:
        return values_over_parts(self, values.__name__, values)

    return of_all_rows


def sum_over_parts(result: Fitted, name: str, answer: Callable[[Any], float]) -> float:
    """The sum over all parts of a number of each."""
    if not result.reads_source:
        return answer(result)
    rows = result.rows_elsewhere
    work = partial(_answered, replace(result, source=None), rows.reader, answer, None)
    with _raise_refusals():
        return float(rows.sum_blocks(partial(_first, work), name))


def _first(
    work: Callable[[int, Block], tuple[np.ndarray, object]], number: int, block: Block
) -> np.ndarray:
    return work(number, block)[0]


class _NoAnswerError(Exception):
    """A method refuses whatever the rows are, so the message does not name a part of the source."""


@contextmanager
def _raise_refusals() -> Iterator[None]:
    """Raise a refusal as a `ValueError`, as for data in memory."""
    try:
        yield
    except _NoAnswerError as refusal:
        raise ValueError(str(refusal)) from None


def _answered(
    result: Fitted,
    reader: Reader,
    answer: Callable[..., object],
    seed: int | None,
    number: int,
    block: Block,
) -> tuple[np.ndarray, IntArray | None]:
    """The answer of a fit to the rows of a block, and the numbers of the rows if it has groups."""
    assert result.data is not None
    rows = reader.read(block)
    part = reader.data(result.data, rows)
    numbers = None if rows.groups is None else rows.numbers
    result_of_block = replace(result, data=part, weight=part.weight)
    generator = () if seed is None else (np.random.default_rng([seed, number]),)
    try:
        return np.asarray(answer(result_of_block, *generator)), numbers
    except ValueError as error:
        raise _NoAnswerError(str(error)) from None
