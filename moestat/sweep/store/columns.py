"""Columns: numbers of the losses and certificates of many cells, read a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray, IntArray
from moestat.sweep.store.rows import numbers_of
from moestat.sweep.store.scan import Cells, no_collection
from moestat.sweep.store.shapes import Shape
from moestat.sweep.store.store import Store

LOSSES, CERTIFICATE = 1, 2
"""Where the losses and the certificate stand in a shape; the parameters come first."""


class Columns:
    """Columns of cells; NaN where a cell has no number."""

    def __init__(self, size: int) -> None:
        self._values: dict[str, FloatArray] = {}
        self._recorded: dict[str, NDArray[np.bool_]] = {}
        self._size = size

    def put(self, at: IntArray | NDArray[np.bool_], values: Mapping[str, FloatArray]) -> None:
        """Put numbers of some of the cells, given by a mask or by indices, into the columns."""
        for name, column in values.items():
            if name not in self._values:
                self._values[name] = np.full(self._size, np.nan)
                self._recorded[name] = np.zeros(self._size, dtype=bool)
            self._values[name][at] = column
            self._recorded[name][at] = True

    def names(self) -> list[str]:
        """Names of the columns that some cell has."""
        return list(self._values)

    def take(self, name: str) -> FloatArray:
        """A column, all NaN if no cell has it."""
        return self._values.get(name, np.full(self._size, np.nan))

    def lacking(self, name: str) -> bool:
        """Whether one of the cells has no number of this name, not even an infinite one."""
        recorded = self._recorded.get(name)
        return recorded is None or not bool(np.all(recorded))

    def where(self, chosen: NDArray[np.bool_]) -> Columns:
        """The columns of the cells that a mask chooses."""
        if np.all(chosen):
            return self
        some = Columns(int(np.sum(chosen)))
        some._values = {name: column[chosen] for name, column in self._values.items()}
        some._recorded = {name: column[chosen] for name, column in self._recorded.items()}
        return some


@no_collection()
def read_columns(
    store: Store,
    cells: Cells,
    columns_of: Callable[[Shape, NDArray[np.void]], Mapping[str, FloatArray]],
) -> Columns:
    """Columns of cells, in their order; ``columns_of(shape, numbers)`` gives those of one shape."""
    columns = Columns(cells.size)
    for at, rows in store.blocks(cells):
        shapes = cells.shape[at]
        for number in np.unique(shapes).tolist():
            shape, chosen = store.shape(number), np.flatnonzero(shapes == number)
            alike = rows if chosen.size == len(rows) else [rows[i] for i in chosen.tolist()]
            columns.put(at[chosen], columns_of(shape, numbers_of(alike, shape)))
    return columns


def literals(store: Store, cells: Cells, *path: str | int) -> Counter[str]:
    """Number of cells in which each text stands at a path; each text of a list counts."""
    counts: Counter[str] = Counter()
    for number, count in zip(*np.unique(cells.shape, return_counts=True), strict=True):
        value = store.shape(int(number)).literal(*path)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                counts[text] += int(count)
    return counts
