"""Rows in blocks: data that are read one block at a time, from files or from dask's workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import doors
from moestat.base.types import FloatArray, IntArray, Labels
from moestat.base.validate import as_path, check_kind, positive_int, short
from moestat.estimation.reading.responses import Columns
from moestat.estimation.reading.table import Column, check_aligned
from moestat.estimation.rows.sums import Watch, sum_in_tree, sum_on_workers

__all__ = ["Blocks", "GroupedBlock", "dask_client", "in_order"]

T = TypeVar("T")
Block = tuple[Any, ...]
"""Inputs (b, d), responses (b,) and, if there are any, weights (b,)."""


class GroupedBlock(NamedTuple):
    """Rows of whole groups, for each of which an expert is chosen once."""

    X: FloatArray  # inputs (b, d)
    y: Column | Columns  # responses (b,)
    weight: FloatArray | None  # (b,), or None
    groups: Labels  # (b,): labels of groups, none of which has rows in another block
    numbers: IntArray  # (b,): numbers of the rows among all rows


_ROWS = 1 << 17
"""Rows of a block of arrays: a thread has a few copies of one at a time."""


@doors
@dataclass(frozen=True)
class Blocks:
    """Data as a sequence of blocks of rows, of which a few are in memory at a time.

    Parameters
    ----------
    read : callable
        ``read(i)`` returns block i: inputs (b, d), or (b,) when d = 1, responses (b,) and, if rows
        have weights, weights (b,).  Threads call it at the same time, once for each pass, and it
        returns the same rows each time.
    count : int
        Number of blocks.
    features : tuple of str, optional
        Names of the inputs.
    response : str, optional
        Name of the response.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 1000)
    >>> blocks = Blocks(lambda i: (x[i::4], 2 * x[i::4]), 4)
    >>> len(blocks), blocks[1][0].shape
    (4, (250,))
    """

    read: Callable[[int], Block]
    count: int
    features: tuple[str, ...] | None = None
    response: str | None = None

    def __post_init__(self) -> None:
        check_kind("read", self.read, "__call__", "a function of the number of a block")
        positive_int("count", self.count, maximum=None)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Block:
        if not 0 <= number < self.count:
            raise IndexError(f"block {number} of {self.count}")
        return self.read(number)

    def map(self, function: Callable[[int, Block], T], threads: int) -> Iterator[T]:
        """``function(i, block)`` for every block, in order, with one in memory for each thread."""

        def task(number: int) -> T:
            try:
                return function(number, self.read(number))
            except ValueError as error:
                raise ValueError(f"block {number}: {error}") from None

        return in_order(task, range(self.count), threads)

    def sum(self, function: Callable[[int, Block], T | None], threads: int, watch: Watch[Any]) -> T:
        """The sum of ``function(i, block)`` over all blocks, as `moestat.estimation.rows.sums`."""
        return sum_in_tree(watch(self.map(function, threads), self.count))

    @classmethod
    def from_arrays(cls, X: Any, y: Any, sample_weight: Any = None, *, rows: int = _ROWS) -> Blocks:
        """Blocks of arrays, which may be memory-mapped and of any real type.

        Sums are in float64 whatever type the arrays have; the data of the fit are what is stored.

        Parameters
        ----------
        X : array of shape (n, d)
            Inputs, (n,) when d = 1.
        y : array of shape (n,)
            Responses.
        sample_weight : array of shape (n,), optional
            Weights.
        rows : int
            Rows of a block.

        Returns
        -------
        Blocks
            The blocks.

        Raises
        ------
        ValueError
            If lengths differ or are 0.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.linspace(0, 1, 1000, dtype=np.float32)
        >>> len(Blocks.from_arrays(x, x**2, rows=300))
        4
        """
        parts = [part for part in (X, y, sample_weight) if part is not None]
        for name, part in zip(("X", "y", "sample_weight"), parts, strict=False):
            check_kind(name, part, "shape", "an array, such as numpy.memmap")
            check_kind(name, part, "__getitem__", "an array of one row or more")
            if not np.shape(part):
                raise ValueError(f"{name} must be an array of one row or more, got a number")
        check_aligned({"X": X, "y": y, "sample_weight": sample_weight})
        lengths = [part.shape[0] for part in parts]
        if min(lengths) != max(lengths):
            raise ValueError(f"X, y and sample_weight must have the same length, got {lengths}")
        if not lengths[0]:
            raise ValueError("X has no rows")
        positive_int("rows", rows, maximum=None)
        names = [*getattr(X, "columns", ())]
        named = bool(names) and all(isinstance(name, str) for name in names)
        response = getattr(y, "name", None) if named else None
        count = -(-lengths[0] // rows)
        return cls(partial(_cut, parts, rows), count, tuple(names) if named else None, response)

    @classmethod
    def from_parquet(
        cls, path: str | Path, X: Sequence[str], y: str, sample_weight: str | None = None
    ) -> Blocks:
        """Blocks of a Parquet file: its row groups.

        Parameters
        ----------
        path : str or Path
            The file.
        X : sequence of str
            Columns of the inputs.
        y : str
            Column of the response.
        sample_weight : str, optional
            Column of the weights.

        Returns
        -------
        Blocks
            The blocks, with the names of the columns.

        Raises
        ------
        ValueError
            If a column is missing, or pyarrow is.

        Examples
        --------
        >>> import pandas as pd, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "data.parquet"
        >>> pd.DataFrame({"age": [1.0, 2.0, 3.0], "income": [2.0, 4.0, 6.0]}).to_parquet(path)
        >>> Blocks.from_parquet(path, X=["age"], y="income").features
        ('age',)
        """
        try:
            from pyarrow import parquet
        except ImportError:
            raise ValueError("Parquet files need pyarrow: pip install 'moestat[parquet]'") from None
        path = as_path("path", path)
        names = np.asarray(X, dtype=object).tolist()
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"X must be a list of names of columns, got {short(X)}")
        with parquet.ParquetFile(path) as file:
            names_in_file, count = file.schema_arrow.names, file.num_row_groups
        columns = [*X, y, *([sample_weight] if sample_weight is not None else [])]
        missing = [name for name in columns if name not in names_in_file]
        if missing:
            known = ", ".join(names_in_file)
            raise ValueError(f"{path} has no column {short(missing[0])}; it has {known}")
        return cls(partial(_row_group, path, columns, len(X)), count, tuple(X), y)

    @classmethod
    def from_dask(cls, X: Any, y: Any, sample_weight: Any = None) -> Blocks:
        """Blocks of dask arrays or frames: their partitions, which stay on dask's workers.

        Each pass is one map over the partitions, whose sums the workers add; one sum travels back.
        With a `dask.distributed.Client` the partitions are computed once and
        kept in its workers' memory; without one dask's default scheduler computes them again in
        each pass.

        Parameters
        ----------
        X : dask array of shape (n, d), or dask frame
            Inputs, in chunks of rows.
        y, sample_weight : dask array of shape (n,), or dask series
            Responses and, optionally, weights, in the same chunks.

        Returns
        -------
        Blocks
            The blocks.

        Raises
        ------
        ValueError
            If chunks differ or dask is missing.

        Examples
        --------
        >>> import dask.array as da
        >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(250, 2))
        >>> len(Blocks.from_dask(X, X[:, 0]))
        4
        """
        return _OnDask.from_collections(X, y, sample_weight)


def in_order(task: Callable[[int], T], numbers: Iterable[int], threads: int) -> Iterator[T]:
    """``task(number)`` of each number, in order, with one at work for each thread."""
    with ThreadPoolExecutor(threads) as pool:
        waiting = iter(numbers)
        running = deque(pool.submit(task, i) for i in islice(waiting, threads))
        while running:
            yield running.popleft().result()
            running.extend(pool.submit(task, i) for i in islice(waiting, 1))


def _cut(parts: list[Any], rows: int, number: int) -> Block:
    """One block of arrays."""
    rows_of_block = slice(number * rows, (number + 1) * rows)
    return tuple(getattr(part, "iloc", part)[rows_of_block] for part in parts)


def _row_group(path: Path, columns: list[str], d: int, number: int) -> Block:
    """One row group of a Parquet file."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        table = file.read_row_group(number, columns=columns, use_threads=False)
    values = [table.column(name).to_numpy() for name in columns]
    return (np.column_stack(values[:d]), *values[d:])


@dataclass(frozen=True)
class _OnDask(Blocks):
    """Partitions of dask collections, each a delayed tuple."""

    partitions: tuple[Any, ...] = ()

    @classmethod
    def from_collections(cls, X: Any, y: Any, sample_weight: Any) -> _OnDask:
        """Blocks of dask collections with the same partitions."""
        try:
            from dask.delayed import delayed
        except ImportError:
            raise ValueError("dask is missing: pip install 'moestat[dask]'") from None
        given = {"X": X, "y": y, "sample_weight": sample_weight}
        parts = []
        for name, part in given.items():
            if part is None:
                continue
            check_kind(name, part, "to_delayed", "a dask array, frame or series")
            if len(getattr(part, "numblocks", (1,))) > 1 and part.numblocks[1] > 1:
                raise ValueError(f"{name} must be chunked by rows only, got chunks {part.chunks}")
            parts.append(np.ravel(part.to_delayed()).tolist())
        if len({len(chunks) for chunks in parts}) > 1:
            raise ValueError(
                f"X, y and sample_weight must have the same partitions, got {[*map(len, parts)]}"
            )
        together = delayed(_together, pure=True)
        partitions = [together(*chunks) for chunks in zip(*parts, strict=True)]
        client = dask_client()
        if client is not None:
            partitions = client.persist(partitions)
        columns = [str(name) for name in getattr(X, "columns", ())]
        names = tuple(columns) if columns else None
        read_block = partial(_computed, tuple(partitions))
        response = getattr(y, "name", None) if names else None
        return cls(read_block, len(partitions), names, response, tuple(partitions))

    def map(self, function: Callable[[int, Block], T], threads: int) -> Iterator[T]:
        """``function(i, block)`` where each block is, in order."""
        from dask.base import compute

        tasks = self._tasks(function)
        client = dask_client()
        if client is None:
            return iter(compute(*tasks))
        return (future.result() for future in client.compute(tasks))

    def sum(self, function: Callable[[int, Block], T | None], threads: int, watch: Watch[Any]) -> T:
        """The sum of ``function(i, block)`` over all blocks, which the workers add."""
        return sum_on_workers(self._tasks(function), dask_client(), watch)

    def _tasks(self, function: Callable[[int, Block], object]) -> list[Any]:
        from dask.delayed import delayed

        task = delayed(function, pure=False)
        return [task(number, block) for number, block in enumerate(self.partitions)]


def _together(*parts: ArrayLike) -> Block:
    return tuple(np.asarray(part) for part in parts)


def _computed(partitions: tuple[Any, ...], number: int) -> Block:
    return partitions[number].compute()


def dask_client() -> Any:
    """The client of a dask scheduler that is in use, or None."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None
