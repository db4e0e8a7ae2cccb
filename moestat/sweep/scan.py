"""Scans: every row of a store checked once, and what status, resume and rates ask of all cells."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.types import IntArray
from moestat.sweep.checksums import checksums
from moestat.sweep.rows import (
    CHECKSUM_BYTES,
    HEAD,
    IS_CERTIFIED,
    IS_DONE,
    IS_ON_BOUND,
    heads_of,
    key_of,
)
from moestat.sweep.texts import Texts

__all__ = ["BLOCK", "Cells", "Scan", "scan"]

BLOCK = 4096
"""Rows that are read at a time."""

_KEPT = ["curve", "real", "n", "replicate", "flags", "shape", "maker", "loss", "seconds"]


@dataclass(frozen=True)
class Cells:
    """What is read of every cell of one curve, in the order of x and replicate.

    Parameters
    ----------
    rowid : ndarray of shape (N,)
        Numbers of the rows.
    n : ndarray of shape (N,)
        Places on the x-axis, whole numbers where all of them are.
    replicate : ndarray of shape (N,)
        Replicates.
    done, certified, on_bound : ndarrays of shape (N,)
        Whether there is an estimate, whether it is certified, whether it lies on a bound.
    loss, seconds : ndarrays of shape (N,)
        Losses, NaN where there is none, and times.
    shape : ndarray of shape (N,)
        Numbers of their shapes.
    """

    rowid: IntArray
    n: Any
    replicate: IntArray
    done: Any
    certified: Any
    on_bound: Any
    loss: Any
    seconds: Any
    shape: Any

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.rowid.size

    def where(self, chosen: Any) -> Cells:
        """Some of the cells, by a mask or a slice."""
        return Cells(**{name: values[chosen] for name, values in vars(self).items()})


@dataclass(frozen=True)
class Scan:
    """What a scan found.

    Parameters
    ----------
    heads : ndarray of shape (N,)
        Fields of the heads of the sound rows, as in `moestat.sweep.rows.HEAD`, and their row's
        number, by curve, place and replicate.
    texts : Texts
        The shared texts.
    damaged : mapping of int to str
        Names of the damaged rows by their number.
    total : int
        Sum of all checksums modulo 2^64.
    """

    heads: Any
    texts: Texts
    damaged: Mapping[int, str]
    total: int

    def curves(self) -> dict[str, int]:
        """Number of the text of each curve that has rows, by the curve's name, sorted."""
        numbers = np.unique(self.heads["curve"]).tolist()
        return dict(sorted((json.loads(self.texts.sound[number])[0], number) for number in numbers))

    def cells(self, curve: str) -> Cells:
        """The cells of a curve."""
        number = self.curves().get(curve, -1)
        first, end = np.searchsorted(self.heads["curve"], [number, number + 1])
        heads = self.heads[first:end]
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


_DTYPE = np.dtype([("rowid", np.int64)] + [(name, HEAD[name].newbyteorder("=")) for name in _KEPT])


def scan(connection: sqlite3.Connection, texts: Texts) -> Scan:
    """Read every row of a store once.

    Parameters
    ----------
    connection : sqlite3.Connection
        The store, in a transaction.
    texts : Texts
        Its texts.

    Returns
    -------
    Scan
        What is sound and what is not.
    """
    parts, damaged, total = [], dict[int, str](), 0
    cursor = connection.execute("SELECT rowid, row FROM cells NOT INDEXED")
    while block := cursor.fetchmany(BLOCK):
        by_length: dict[int, list[int]] = {}
        rows = [row for _, row in block]
        rowids = np.array([rowid for rowid, _ in block], dtype=np.int64)
        sound = np.zeros(len(rows), dtype=bool)
        for place, row in enumerate(rows):
            length = len(row) if type(row) is bytes else -1
            by_length.setdefault(length, []).append(place)
        for length, places in by_length.items():
            if length >= HEAD.itemsize + CHECKSUM_BYTES and length % 4 == 0:
                same = [rows[place] for place in places]
                sound[places], added = _agree(same)
                total += added
        good = [row for row, ok in zip(rows, sound.tolist(), strict=True) if ok]
        heads = heads_of(good)
        known = _known(heads, texts)
        kept = np.empty(int(known.sum()), _DTYPE)
        for name in _KEPT:
            kept[name] = heads[name][known]
        sound[sound] = known
        kept["rowid"] = rowids[sound]
        parts.append(kept)
        for place in np.flatnonzero(~sound).tolist():
            damaged[int(rowids[place])] = key_of(rows[place], texts.sound) or f"row {rowids[place]}"
    heads = np.concatenate(parts) if parts else np.empty(0, _DTYPE)
    heads = heads[np.lexsort((heads["replicate"], _places(heads), heads["curve"]))]
    return Scan(heads, texts, damaged, total % 2**64)


def _places(heads: Any) -> Any:
    """Places on the x-axis as floats."""
    whole = heads["n"]
    return np.where(heads["real"] > 0, whole.view(np.float64), whole.astype(np.float64))


def _agree(rows: Sequence[bytes]) -> tuple[Any, int]:
    """Whether rows of one length agree with their checksums, and the sum of these."""
    found = checksums([row[:-CHECKSUM_BYTES] for row in rows])
    written = np.frombuffer(b"".join([row[-CHECKSUM_BYTES:] for row in rows]), "<u8")
    return found == written, int(written.sum(dtype=np.uint64))


def _known(heads: Any, texts: Texts) -> Any:
    """Whether the shared texts of rows are there and as they were written."""
    known = np.ones(len(heads), dtype=bool)
    for name in ("curve", "shape", "maker"):
        numbers, place = np.unique(heads[name], return_inverse=True)
        known &= np.array([int(each) in texts.sound for each in numbers], dtype=bool)[place]
    return known
