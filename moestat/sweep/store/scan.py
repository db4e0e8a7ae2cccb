"""Scans: every row of a store checked once, and what status, resume and rates ask of all cells."""

from __future__ import annotations

import gc
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray, IntArray
from moestat.sweep.store.checksums import WORD, checksums_of
from moestat.sweep.store.rows import (
    CHECKSUM_BYTES,
    HEAD,
    IS_CERTIFIED,
    IS_DONE,
    IS_ON_BOUND,
    Texts,
    cell_key_of,
    key_of,
)

BLOCK = 4096
"""Rows that are read at a time, 2 MB, which caches of processors hold."""

_FIELDS = ["curve", "real", "n", "replicate", "flags", "shape", "maker", "loss", "seconds"]


@dataclass(frozen=True)
class Cells:
    """What is read of every cell of one curve, in the order of x and replicate."""

    rowid: IntArray  # (N,): numbers of the rows
    n: FloatArray | IntArray  # (N,): places on the x-axis, whole numbers where all of them are
    replicate: IntArray  # (N,): replicates
    # (N,): whether there is an estimate, whether it is certified, whether it lies on a bound.
    done: NDArray[np.bool_]
    certified: NDArray[np.bool_]
    on_bound: NDArray[np.bool_]
    loss: FloatArray  # (N,): losses, NaN where there is none, and times
    seconds: FloatArray
    shape: IntArray  # (N,): numbers of their shapes

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.rowid.size

    def where(self, chosen: NDArray[np.bool_] | slice) -> Cells:
        """Some of the cells, by a mask or a slice."""
        return Cells(**{name: values[chosen] for name, values in vars(self).items()})


@dataclass(frozen=True)
class Scan:
    """What a scan found."""

    # (N,): fields of the heads of rows, as in `moestat.sweep.store.rows.HEAD`, and their row's
    # number, in the order of the file.
    heads: NDArray[np.void]
    order: IntArray  # positions there of the sound rows, by curve, place and replicate
    # Number of the text of each curve that has rows, and where its rows begin and end in `order`.
    spans: Mapping[int, tuple[int, int]]
    texts: Texts  # the shared texts
    damaged: Mapping[int, str]  # what is wrong with damaged rows, in one line each, by their number
    total: int  # sum of all checksums modulo 2^64

    @property
    def size(self) -> int:
        """Number of sound rows."""
        return self.order.size

    @cached_property
    def curves(self) -> dict[str, int]:
        """Number of the text of each curve that has rows, by the curve's name, sorted."""
        names = ((json.loads(self.texts.sound[number])[0], number) for number in self.spans)
        return dict(sorted(names))

    @cached_property
    def makers(self) -> list[int]:
        """Numbers of the texts of what the sound rows were made by."""
        return np.unique(self.heads["maker"][self.order]).tolist()

    def cells(self, curve: str) -> Cells:
        """The cells of a curve."""
        first, end = self.spans.get(self.curves.get(curve, -1), (0, 0))
        heads = np.take(self.heads, self.order[first:end])
        flags = heads["flags"]
        n = _places(heads) if heads["real"].any() else heads["n"]
        return Cells(
            rowid=heads["rowid"],
            n=n,
            replicate=heads["replicate"],
            done=flags & IS_DONE > 0,
            certified=flags & IS_CERTIFIED > 0,
            on_bound=flags & IS_ON_BOUND > 0,
            loss=heads["loss"],
            seconds=heads["seconds"],
            shape=heads["shape"],
        )


_DTYPE = np.dtype(
    [("rowid", np.int64)] + [(name, HEAD[name].newbyteorder("=")) for name in _FIELDS]
)


@contextmanager
def no_collection() -> Iterator[None]:
    """No search for cycles: tuples of rows, which have none, would start one again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@no_collection()
def scan(connection: sqlite3.Connection, texts: Texts) -> Scan:
    """Read every row of a store once, in a transaction, and tell sound rows from damaged ones."""
    damaged, total, last = dict[int, str](), 0, -(2**62)
    sound_texts = _sound_texts(texts)
    heads, count = np.empty(0, _DTYPE), 0
    cursor = connection.execute("SELECT rowid, row FROM cells NOT INDEXED ORDER BY rowid")
    while block := cursor.fetchmany(BLOCK):
        rowids, rows = zip(*block, strict=True)
        if count + len(rows) > heads.size:
            # The memory is enlarged where it is: a list of parts, joined, would take twice as much.
            heads.resize(heads.size + max(len(rows), heads.size // 4), refcheck=False)
        records = heads[count : count + len(rows)]
        sound, added = _check_rows(rows, sound_texts, records)
        numbers = np.array(rowids)
        records["rowid"] = numbers
        if numbers[0] <= last or np.any(numbers[1:] <= numbers[:-1]):
            raise sqlite3.DatabaseError("its rows are out of order")
        last = rowids[-1]
        total += added
        if not sound.all():
            for place in np.flatnonzero(~sound).tolist():
                name = key_of(rows[place], texts.sound) or f"row {rowids[place]}"
                damaged[rowids[place]] = f"{name}: its values are not those that were written"
            some = records[sound]
            heads[count : count + some.size] = some
        count += int(sound.sum())
    heads.resize(count, refcheck=False)
    order, twice, spans = _order(heads)
    for head in heads[twice]:
        name = cell_key_of(head, texts.sound)
        damaged[int(head["rowid"])] = f"{name}: is there more than once"
    return Scan(heads, order, spans, texts, damaged, total % 2**64)


def _order(heads: NDArray[np.void]) -> tuple[IntArray, IntArray, dict[int, tuple[int, int]]]:
    """Positions of heads by curve, place and replicate; of those that are there already; spans.

    The first of several heads of one cell stays.
    """
    key, curves = _key(heads)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    twice = order[again]
    order = np.delete(order, again) if again.size else order
    counts = np.bincount(_positions(curves, heads["curve"][order]), minlength=curves.size)
    ends = np.cumsum(counts).tolist()
    return (
        order,
        twice,
        dict(zip(curves.tolist(), zip([0, *ends], ends, strict=False), strict=True)),
    )


def _key(heads: NDArray[np.void]) -> tuple[IntArray, IntArray]:
    """One number for curve, place and replicate, in their order, and the curves, sorted.

    No two sound rows share a number.
    """
    key, curves = np.zeros(heads.size, dtype=np.int64), np.empty(0, dtype=np.int64)
    for name in ("curve", "place", "replicate"):
        values: np.ndarray = _places(heads) if name == "place" else heads[name]
        different = np.unique(values)
        key *= different.size
        key += _positions(different, values)
        curves = different if name == "curve" else curves
    return key, curves


def _positions(different: np.ndarray, values: np.ndarray) -> IntArray:
    """Positions of values among the different ones, which are sorted."""
    if values.dtype.kind == "u" and different.size and different[-1] == different.size - 1:
        return values  # they are 0, 1, 2 and so on
    return np.searchsorted(different, values)


def _places(heads: NDArray[np.void]) -> FloatArray:
    """Places on the x-axis as floats."""
    bits = heads["n"]
    return np.where(heads["real"] > 0, bits.view(np.float64), bits.astype(np.float64))


def _check_rows(
    rows: Sequence[Any], sound_texts: NDArray[np.bool_], records: NDArray[np.void]
) -> tuple[NDArray[np.bool_], int]:
    """Check rows and put their heads into `records`.

    Returns whether each row is sound, and the sum of all checksums.
    """
    sound, total = np.zeros(len(rows), dtype=bool), 0
    lengths = [*map(len, rows)] if {*map(type, rows)} == {bytes} else [*map(_length, rows)]
    for length in set(lengths):
        if length < HEAD.itemsize + CHECKSUM_BYTES or length % WORD:
            continue
        alike, places = rows, slice(None)
        if lengths.count(length) < len(rows):
            places = [place for place, other in enumerate(lengths) if other == length]
            alike = [rows[place] for place in places]
        content = b"".join(alike)
        words = np.frombuffer(content, "<u4").reshape(len(alike), -1)
        ends = -(CHECKSUM_BYTES // WORD)
        written = np.ascontiguousarray(words[:, ends:]).view("<u8")[:, 0]
        total += int(written.sum(dtype=np.uint64))
        heads = np.frombuffer(content, _head_of(length))
        agree = checksums_of(words[:, :ends]) == written
        sound[places] = agree & _has_sound_texts(heads, sound_texts)
        for name in _FIELDS:
            records[name][places] = heads[name]
    return sound, total


def _length(row: object) -> int:
    """Number of bytes of a row; 0 for a value that is no row."""
    return len(row) if type(row) is bytes else 0


@lru_cache(maxsize=4096)
def _head_of(length: int) -> np.dtype[np.void]:
    """The fields of the head of a row of so many bytes."""
    names: list[str] = [*(HEAD.names or ())]
    fields: Any = HEAD.fields
    return np.dtype(
        {
            "names": names,
            "formats": [fields[name][0] for name in names],
            "offsets": [fields[name][1] for name in names],
            "itemsize": length,
        }
    )


def _sound_texts(texts: Texts) -> NDArray[np.bool_]:
    """Whether the shared text of each number exists and is as it was written; False at the end."""
    is_sound = np.zeros(max(texts.sound, default=-1) + 2, dtype=bool)
    is_sound[list(texts.sound)] = True
    return is_sound


def _has_sound_texts(heads: NDArray[np.void], sound_texts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the shared texts of rows exist and are as they were written."""
    last = sound_texts.size - 1
    numbers = (np.minimum(heads[name], last) for name in ("curve", "shape", "maker"))
    return np.logical_and.reduce([sound_texts[each] for each in numbers])
