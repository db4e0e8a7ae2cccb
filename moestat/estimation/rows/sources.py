"""Sources of rows: tables in parts, of which a few are in memory at a time, wherever they are.

A source knows its columns and the number of rows of each part before any part is read, and hands
out the named columns of one part after the other: row groups of Parquet files, fragments of a
pyarrow dataset, partitions of a dask frame, slices of a lazy frame of polars, or blocks.  A new
source is one class and one line, which registers it in `SOURCES`.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from moestat.base.registry import Registry
from moestat.estimation.reading.table import Column, Table, as_column, as_table, levels_of_arrow
from moestat.estimation.rows.blocks import Block, Blocks, dask_client, in_order
from moestat.estimation.rows.sums import Watch, sum_in_tree, sum_on_workers
from moestat.estimation.rules import SAMPLED

__all__ = [
    "SOURCES",
    "LazySource",
    "MemorySource",
    "ReadInThreads",
    "Source",
    "SourceKind",
    "as_source",
    "digest_of",
]

T = TypeVar("T")

_SLICE = 1 << 18
"""Rows of a slice of a lazy frame: a scan of files skips to it, and threads hold one each."""


class Source(Protocol):
    """A table in parts."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        ...

    @property
    def index(self) -> tuple[str, ...]:
        """Columns that hold the index of the rows."""
        ...

    @property
    def weights(self) -> str | None:
        """The column of weights that the source itself has, None without one."""
        ...

    def rows(self) -> list[int]:
        """Number of rows of each part."""
        ...

    def label(self, number: int) -> str:
        """Name of a part in messages."""
        ...

    def state(self) -> str:
        """A digest of what is known of the source without reading it."""
        ...

    def chosen(self, columns: Sequence[str]) -> Source:
        """The source with some of its columns."""
        ...

    def read(self, number: int) -> Table:
        """One part."""
        ...

    def map(
        self,
        function: Callable[[int, Table], T],
        threads: int,
        numbers: Sequence[int] | None = None,
    ) -> Iterator[T]:
        """``function(number, part)`` in order, of all parts, or at least of these."""
        ...

    def sum(self, function: Callable[[int, Table], T | None], threads: int, watch: Watch[Any]) -> T:
        """The sum of ``function(number, part)``, as `moestat.estimation.rows.sums` adds."""
        ...


def digest_of(table: Table) -> int:
    """A checksum of the rows of a table: another one if they change between two passes."""
    checksum = table.n_rows
    for column in table.columns:
        values = column.values
        if values.dtype.kind == "O":
            try:
                text = "\0".join(values)
            except TypeError:  # not all of them are words
                text = "\0".join(map(str, values))
            checksum = zlib.crc32(text.encode(), checksum)
        else:
            checksum = zlib.crc32(np.ascontiguousarray(values).view(np.uint8).data, checksum)
    return checksum


def _called(label: str, error: Exception) -> ValueError:
    """An error with the part in which it lies."""
    return ValueError(f"{label}: {error}")


@dataclass(frozen=True)
class ReadInThreads:
    """A base of sources whose parts are read in this process: `map` and `sum` from `read`."""

    def map(
        self: Source,
        function: Callable[[int, Table], T],
        threads: int,
        numbers: Sequence[int] | None = None,
    ) -> Iterator[T]:
        """``function(number, part)`` of each part, in order, one at a time for each thread."""

        def task(number: int) -> T:
            table = self.read(number)
            try:
                return function(number, table)
            except ValueError as error:
                raise _called(self.label(number), error) from None

        return in_order(task, range(len(self.rows())) if numbers is None else numbers, threads)

    def sum(
        self: Source, function: Callable[[int, Table], T | None], threads: int, watch: Watch[Any]
    ) -> T:
        """The sum of ``function(number, part)`` over all parts."""
        return sum_in_tree(watch(self.map(function, threads), len(self.rows())))


@dataclass(frozen=True)
class _Piece:
    """A row group of a file, or a fragment of another kind of data set."""

    fragment: Any = field(repr=False)
    label: str
    rows: int
    # path, size and time of the last change of its file; None for what is in no file
    file: tuple[str, int, int] | None


@dataclass(frozen=True)
class FileSource(ReadInThreads):
    """Row groups of Parquet files, or the fragments of any data set of pyarrow."""

    pieces: tuple[_Piece, ...] = field(repr=False)
    schema: Any = field(repr=False)
    names: tuple[str, ...]
    index: tuple[str, ...] = ()
    weights: None = None

    @classmethod
    def of_path(cls, path: str | Path) -> FileSource:
        """The source of a file, a folder, also with partitions ``column=value``, or a pattern."""
        data = _pyarrow_dataset()
        text = str(path)
        if Path(text).is_dir():
            files = sorted(str(each) for each in Path(text).rglob("*.parquet"))
            options: dict[str, str] = {"partitioning": "hive", "partition_base_dir": text}
        else:
            files, options = _matching(Path(text)), {}
        if not files:
            raise ValueError(f"data: no Parquet file is found at {text!r}")
        try:
            dataset = data.dataset(files, format="parquet", **options)
        except (OSError, ValueError) as error:
            raise ValueError(f"data: {text!r} cannot be read as Parquet: {_plain(error)}") from None
        return cls.of_dataset(dataset)

    @classmethod
    def of_dataset(cls, dataset: Any) -> FileSource:
        """The source of a `pyarrow.dataset.Dataset`."""
        try:
            fragments = list(dataset.get_fragments())
        except ValueError:
            raise ValueError(
                "data: a data set of pyarrow with a filter has no parts of its own; write the rows"
                " to Parquet first, or leave the filter out"
            ) from None
        pieces: list[_Piece] = []
        for fragment in fragments:
            pieces += _pieces(fragment)
        metadata = dataset.schema.pandas_metadata or {}
        index = [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]
        names = tuple(name for name in dataset.schema.names if name not in index)
        return cls(tuple(pieces), dataset.schema, names, tuple(index))

    def rows(self) -> list[int]:
        """Number of rows of each part."""
        return [piece.rows for piece in self.pieces]

    def label(self, number: int) -> str:
        """Name of a part in messages."""
        return self.pieces[number].label

    def state(self) -> str:
        """A digest of the files: their names, sizes and times of the last change."""
        known = [[piece.label, piece.rows, piece.file] for piece in self.pieces]
        return _digest([list(self.schema.names), known])

    def chosen(self, columns: Sequence[str]) -> FileSource:
        """The source with some of its columns."""
        return replace(self, names=tuple(columns))

    def read(self, number: int) -> Table:
        """One part; refuses a file that has changed since the source was opened."""
        import pyarrow as pa

        piece = self.pieces[number]
        _check_unchanged(piece)
        try:
            arrow = piece.fragment.to_table(
                schema=self.schema, columns=list(self.names), use_threads=False
            )
        except (OSError, pa.ArrowException, MemoryError) as error:
            _check_unchanged(piece)
            raise ValueError(f"{piece.label} cannot be read: {_plain(error)}") from None
        _check_unchanged(piece)
        return _table_of_arrow(arrow)


def _matching(path: Path) -> list[str]:
    """The file of this name, or the files that match it as a pattern, sorted."""
    if path.exists():
        return [str(path)]
    pattern = str(path.relative_to(path.anchor))
    return sorted(str(each) for each in Path(path.anchor).glob(pattern) if each.is_file())


def _pyarrow_dataset() -> Any:
    try:
        from pyarrow import dataset
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install 'moestat[parquet]'") from None
    return dataset


def _plain(error: Exception) -> str:
    """The message of an error of a library, on one line."""
    return " ".join(str(error).split()).rstrip(".")


def _pieces(fragment: Any) -> list[_Piece]:
    """Row groups of a fragment of Parquet; a fragment of another format as a whole."""
    path = getattr(fragment, "path", None)
    file = None if path is None else (path, *_file_state(fragment))
    name = "fragment" if path is None else Path(path).name
    if not hasattr(fragment, "split_by_row_group"):
        return [_Piece(fragment, name, fragment.count_rows(), file)]
    try:
        groups = fragment.split_by_row_group()
    except (OSError, ValueError) as error:
        raise ValueError(f"data: {path!r} cannot be read as Parquet: {_plain(error)}") from None
    return [
        _Piece(group, f"{name}, row group {group.row_groups[0].id}", n_rows, file)
        for group in groups
        if (n_rows := group.row_groups[0].num_rows)
    ]


def _file_state(fragment: Any) -> tuple[int, int]:
    """Size in bytes of the file of a fragment, and the time of its last change."""
    info = fragment.filesystem.get_file_info(fragment.path)
    return int(info.size or -1), int(info.mtime_ns or 0)


def _check_unchanged(piece: _Piece) -> None:
    """Raise if the file is another one than when the source was opened."""
    if piece.file is None:
        return
    path, *known = piece.file
    if [*_file_state(piece.fragment)] != known:
        raise ValueError(f"data: {path!r} has changed since the first pass; fit again")


def _table_of_arrow(arrow: Any) -> Table:
    """A table of pyarrow, whose dictionaries are declared levels, as pandas reads them."""
    import pyarrow as pa

    arrow = arrow.unify_dictionaries()
    columns: list[Column] = []
    for name in arrow.column_names:
        column = arrow.column(name)
        if not pa.types.is_dictionary(column.type):
            table = as_table("data", arrow.select([name]))
            assert table is not None
            columns.append(table.columns[0])
            continue
        _, ordered = levels_of_arrow(column)
        array = column.combine_chunks()
        array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
        levels = np.asarray(array.dictionary.to_numpy(zero_copy_only=False))
        missing = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
        place = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        values = levels[place] if levels.size else np.full(len(place), None, dtype=object)
        columns.append(Column(values, missing, name, levels, ordered, "category", True))
    return Table(tuple(columns), True, arrow.num_rows)


@dataclass(frozen=True)
class LazySource(ReadInThreads):
    """Slices of a lazy frame of polars.

    A scan of files skips to a slice; another query is computed up to the slice each time.
    """

    frame: Any = field(repr=False)
    index: tuple[str, ...] = ()
    weights: None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.frame.collect_schema().names())

    @cached_property
    def _count(self) -> int:
        import polars as pl

        return int(self.frame.select(pl.len()).collect().item())

    @property
    def is_small(self) -> bool:
        """Whether the rows are few enough to be read into memory and kept in a result."""
        return self._count <= SAMPLED

    def rows(self) -> list[int]:
        """Number of rows of each part."""
        return [min(_SLICE, self._count - at) for at in range(0, self._count, _SLICE)]

    def label(self, number: int) -> str:
        """Name of a part in messages."""
        begin = number * _SLICE
        return f"rows {begin} to {begin + self.rows()[number] - 1}"

    def state(self) -> str:
        """A digest of the query and of the number of rows."""
        return _digest([self.frame.explain(optimized=False), self._count])

    def chosen(self, columns: Sequence[str]) -> LazySource:
        """The source with some of its columns."""
        return LazySource(self.frame.select(list(columns)))

    def read(self, number: int) -> Table:
        """One part."""
        import polars as pl

        try:
            frame = self.frame.slice(number * _SLICE, _SLICE).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ValueError(f"{self.label(number)} cannot be read: {_plain(error)}") from None
        table = as_table("data", frame)
        assert table is not None
        return table


@dataclass(frozen=True)
class DaskSource:
    """Partitions of a frame of dask, which stay on dask's workers.

    With a `dask.distributed.Client` the columns that are read are kept in its workers' memory, as
    far as that goes; without one each pass computes the partitions again.
    """

    frame: Any = field(repr=False)
    partitions: tuple[Any, ...] = field(repr=False)
    names: tuple[str, ...]
    index: tuple[str, ...] = ()
    weights: None = None

    @classmethod
    def of(cls, frame: Any) -> DaskSource:
        """The source of a frame; nothing is computed yet."""
        names = tuple(map(str, frame.columns))
        return cls(frame, _partitions(frame), names)

    @cached_property
    def _rows(self) -> list[int]:
        return list(self._map(_length))

    def rows(self) -> list[int]:
        """Number of rows of each part."""
        return self._rows

    def label(self, number: int) -> str:
        """Name of a part in messages."""
        return f"partition {number}"

    def state(self) -> str:
        """A digest of the graph of the frame."""
        return _digest([str(part.key) for part in self.partitions])

    def chosen(self, columns: Sequence[str]) -> DaskSource:
        """The source with some of its columns, which workers compute once."""
        frame = self.frame[list(columns)]
        partitions = list(_partitions(frame))
        if (client := dask_client()) is not None:
            partitions = client.persist(partitions)
        return DaskSource(frame, tuple(partitions), tuple(columns), self.index)

    def read(self, number: int) -> Table:
        """One part."""
        return _table_of_partition(self.partitions[number].compute())

    def map(
        self,
        function: Callable[[int, Table], T],
        threads: int,
        numbers: Sequence[int] | None = None,
    ) -> Iterator[T]:
        """``function(number, part)`` where each part is, in order."""
        return self._map(partial(_on_partition, function), numbers)

    def _map(
        self, function: Callable[[int, Any], T], numbers: Sequence[int] | None = None
    ) -> Iterator[T]:
        from dask.base import compute

        tasks = self._tasks(function, numbers)
        client = dask_client()
        if client is None:
            return iter(compute(*tasks))
        return (future.result() for future in client.compute(tasks))

    def sum(self, function: Callable[[int, Table], T | None], threads: int, watch: Watch[Any]) -> T:
        """The sum of ``function(number, part)`` over all parts, which the workers add."""
        return sum_on_workers(self._tasks(partial(_on_partition, function)), dask_client(), watch)

    def _tasks(
        self, function: Callable[[int, Any], object], numbers: Sequence[int] | None = None
    ) -> list[Any]:
        from dask.delayed import delayed

        task = delayed(function, pure=False)
        numbers = range(len(self.partitions)) if numbers is None else numbers
        return [task(number, self.partitions[number]) for number in numbers]


def _partitions(frame: Any) -> tuple[Any, ...]:
    """Partitions of a frame, the same for all of its columns: dask joins those of few columns."""
    if not hasattr(frame, "simplify"):
        return tuple(frame.to_delayed())
    return tuple(frame.simplify().to_delayed(optimize_graph=False))


def _length(number: int, frame: Sized) -> int:
    return len(frame)


def _table_of_partition(frame: Any) -> Table:
    table = as_table("data", frame)
    assert table is not None
    return table


def _on_partition(function: Callable[[int, Table], T], number: int, frame: Any) -> T:
    try:
        return function(number, _table_of_partition(frame))
    except ValueError as error:
        raise _called(f"partition {number}", error) from None


@dataclass(frozen=True)
class BlockSource:
    """Blocks whose inputs and response have names."""

    blocks: Blocks
    names: tuple[str, ...]
    columns: tuple[str, ...]
    index: tuple[str, ...] = ()
    weights: str | None = None

    @classmethod
    def of(cls, blocks: Blocks) -> BlockSource:
        """The source of blocks with names; blocks without names are refused."""
        if blocks.features is None or blocks.response is None:
            raise ValueError(
                "data: a formula needs names of the columns of blocks, such as Blocks(read, count,"
                ' features=("age", "income"), response="cost")'
            )
        names = (*blocks.features, blocks.response)
        if len({*names}) < len(names):
            raise ValueError(f"data: two columns of the blocks have one name, {', '.join(names)}")
        weights = _WEIGHTS if len(blocks[0]) > 2 else None
        return cls(blocks, names, names, weights=weights)

    @cached_property
    def _rows(self) -> list[int]:
        return list(self.blocks.map(_length_of_block, 1))

    def rows(self) -> list[int]:
        """Number of rows of each part."""
        return self._rows

    def label(self, number: int) -> str:
        """Name of a part in messages."""
        return f"block {number}"

    def state(self) -> str:
        """A digest of the names and sizes of the blocks."""
        return _digest([self.names, self.rows()])

    def chosen(self, columns: Sequence[str]) -> BlockSource:
        """The source with some of its columns."""
        return replace(self, columns=tuple(columns))

    def read(self, number: int) -> Table:
        """One part."""
        return _table_of_block(self.names, self.columns, self.blocks[number])

    def map(
        self,
        function: Callable[[int, Table], T],
        threads: int,
        numbers: Sequence[int] | None = None,
    ) -> Iterator[T]:
        """``function(number, part)`` of each part, in order."""
        return self.blocks.map(partial(_on_block, function, self.names, self.columns), threads)

    def sum(self, function: Callable[[int, Table], T | None], threads: int, watch: Watch[Any]) -> T:
        """The sum of ``function(number, part)`` over all parts."""
        work = partial(_on_block, function, self.names, self.columns)
        return self.blocks.sum(work, threads, watch)


@dataclass(frozen=True)
class MemorySource(ReadInThreads):
    """A table in memory, as one part."""

    table: Table
    index: tuple[str, ...] = ()
    weights: None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.table.names

    def rows(self) -> list[int]:
        """Number of rows of the part."""
        return [self.table.n_rows]

    def label(self, number: int) -> str:
        """Name of the part in messages."""
        return "data"

    def state(self) -> str:
        """A digest of the rows."""
        return _digest([self.names, digest_of(self.table)])

    def chosen(self, columns: Sequence[str]) -> MemorySource:
        """The source with some of its columns."""
        return MemorySource(self.table.some(columns))

    def read(self, number: int) -> Table:
        """The part."""
        return self.table


_WEIGHTS = "sample_weight"
"""Name of the column of weights of blocks."""


def _length_of_block(number: int, block: Block) -> int:
    return len(block[1])


def _on_block(
    function: Callable[[int, Table], T],
    names: tuple[str, ...],
    columns: tuple[str, ...],
    number: int,
    block: Block,
) -> T:
    return function(number, _table_of_block(names, columns, block))


def _table_of_block(names: tuple[str, ...], columns: tuple[str, ...], block: Block) -> Table:
    """Columns of a block, by the names of its inputs and response."""
    X, y, *weight = block
    table = as_table("X", X)
    d = len(names) - 1
    if table is not None and len(table.columns) == d:
        parts: list[Any] = list(table.columns)
    else:
        values = np.asarray(X)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or values.shape[1] != d:
            raise ValueError(f"X must have {d} columns, {', '.join(names[:-1])}")
        parts = list(values.T)
    column_of = dict(zip(names, [*parts, y], strict=True))
    if weight:
        column_of[_WEIGHTS] = weight[0]
    named = tuple(
        replace(as_column(f"data: column {name!r}", column_of[name], name), name=name)
        for name in columns
    )
    lengths = sorted({len(column.values) for column in named})
    if len(lengths) > 1:
        raise ValueError(f"X, y and weights must have the same length, got {lengths}")
    return Table(named, True, lengths[0])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


@dataclass(frozen=True)
class SourceKind:
    """A kind of source, and how it is recognised.

    Parameters
    ----------
    name : str
        The name.
    takes : callable
        ``takes(given)``: whether what people pass as data is of this kind.
    of : callable
        ``of(given)``: the source for it.
    """

    name: str
    takes: Callable[[Any], bool]
    of: Callable[[Any], Source]


SOURCES: Registry[SourceKind] = Registry("source", "moestat.sources")
SOURCES.register(
    SourceKind("files", lambda given: isinstance(given, str | Path), FileSource.of_path)
)
SOURCES.register(
    SourceKind(
        "pyarrow", lambda given: _has(given, "pyarrow", "get_fragments"), FileSource.of_dataset
    )
)
SOURCES.register(
    SourceKind(
        "polars", lambda given: _has(given, "polars", "collect_schema", "collect"), LazySource
    )
)
SOURCES.register(
    SourceKind("dask", lambda given: _has(given, "dask", "to_delayed", "columns"), DaskSource.of)
)
SOURCES.register(SourceKind("blocks", lambda given: isinstance(given, Blocks), BlockSource.of))


def _has(given: object, home: str, *names: str) -> bool:
    """Whether an object is of a library, which need not be installed, and has these attributes."""
    package = type(given).__module__.partition(".")[0]
    return package.startswith(home) and all(hasattr(given, name) for name in names)


def as_source(given: object) -> Source | None:
    """The source for a path, a dataset, a frame of dask, a lazy frame, or blocks.

    None for anything else, such as a table in memory.  What was registered last is asked first, so
    that a kind of one's own can take files that another one would.
    """
    if given is None or isinstance(given, Mapping | np.ndarray | Table) or _has(given, "pandas"):
        return None
    kinds = reversed(list(SOURCES.values()))
    return next((kind.of(given) for kind in kinds if kind.takes(given)), None)
