"""Rows: records as a store holds them, packed numbers with a checksum at the end.

A row begins with its place (curve, x and replicate, so that rows sort by them) and what is read of
every cell; then come the numbers whose entries its shape names, the texts that only this cell has,
and the checksum.  Texts that cells share (curves, shapes, what made the numbers) are stored once
and stand in a row as their numbers.
"""

from __future__ import annotations

import json
import math
import sqlite3
import struct
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moestat.sweep.spec.identity import digest
from moestat.sweep.spec.plan import cell_key
from moestat.sweep.store.checksums import WORD, checksum
from moestat.sweep.store.record import DONE, FAILED, Record
from moestat.sweep.store.shapes import Shape, pack

PLACE_BYTES = 17
CHECKSUM_BYTES = 8
IS_DONE, IS_CERTIFIED, IS_ON_BOUND, HAS_IDENTITY = 1, 2, 4, 8
HEAD = np.dtype(
    [
        ("curve", ">u4"),
        ("real", "u1"),
        ("n", ">i8"),
        ("replicate", ">u4"),
        ("flags", "u1"),
        ("shape", "<u4"),
        ("maker", "<u4"),
        ("loss", "<f8"),
        ("log_likelihood", "<f8"),
        ("seconds", "<f8"),
        ("identity", "u1", 32),
    ]
)
"""What stands first in every row.  Where ``real``, the eight bytes of n are those of a float."""

_PLACE, _VALUES = Struct(">IB8sI"), Struct("<BIIddd32s")
_WHOLE, _REAL = Struct(">q"), Struct(">d")


class Texts:
    """The texts that rows share: each is stored once, with a digest, under a number."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.sound: dict[int, str] = {}
        """Texts as they were written, by number."""
        self._largest = -1
        for number, text, written in connection.execute("SELECT number, text, digest FROM texts"):
            self._largest = max(self._largest, number)
            if digest([number, str(text)]) == written:
                self.sound[number] = text
        self._numbers = {text: number for number, text in self.sound.items()}

    def number_of(self, text: str) -> int:
        """The number of a text, which is written if it is new, in the caller's transaction."""
        number = self._numbers.get(text)
        if number is None:
            number = self._largest = self._largest + 1
            entry = (number, text, digest([number, text]))
            self._connection.execute("INSERT INTO texts VALUES (?, ?, ?)", entry)
            self.sound[number] = text
            self._numbers[text] = number
        return number


def to_row(record: Record, number_of: Callable[[str], int]) -> bytes:
    """A record, whose numbers must be finite, as a row; `number_of` numbers shared texts."""
    text, numbers = pack([list(record.params), record.losses, record.certificate])
    maker = json.dumps([dict(record.versions), dict(record.machine)])
    flags = IS_DONE * (record.status == DONE) + IS_CERTIFIED * bool(record.certified)
    flags += IS_ON_BOUND * record.on_bound
    identity = _digest_of(record.identity)
    flags += HAS_IDENTITY * (identity is not None)
    texts = [record.message, record.identity if identity is None else ""]
    n = record.n
    place = _place(number_of(json.dumps([record.curve, _axis(record)])), n, record.replicate)
    values = _VALUES.pack(
        flags,
        number_of(text),
        number_of(maker),
        _finite(record.loss),
        _finite(record.log_likelihood),
        _finite(record.seconds),
        identity or b"",
    )
    return seal(
        b"".join((place, values, numbers, json.dumps(texts).encode() if any(texts) else b""))
    )


def _place(curve: int, n: float, replicate: int) -> bytes:
    packed = _REAL.pack(n) if isinstance(n, float) else _WHOLE.pack(n)
    return _PLACE.pack(curve, isinstance(n, float), packed, replicate)


def _axis(record: Record) -> str:
    """Name of the x-axis, as the record's key has it."""
    axis = record.key.removeprefix(f"{record.curve} | ").partition("=")[0]
    if cell_key(record.curve, record.n, record.replicate, axis) != record.key:
        raise ValueError(f"a cell of {record.curve!r} cannot be called {record.key!r}")
    return axis


def _digest_of(identity: str) -> bytes | None:
    """The bytes of a digest in hexadecimal; None if the text is no digest."""
    try:
        digest = bytes.fromhex(identity)
    except ValueError:
        return None
    return digest if len(digest) == 32 and digest.hex() == identity else None


def _finite(value: float | None) -> float:
    """A finite number, or NaN for None."""
    if value is None:
        return math.nan
    if not math.isfinite(value):
        raise ValueError(f"numbers must be finite, got {value}")
    return float(value)


def seal(content: bytes) -> bytes:
    """A row's content with its checksum; blanks fill up the last word.

    Examples
    --------
    >>> len(seal(b"12345"))
    16
    """
    content += b" " * (-len(content) % WORD)
    return content + checksum(content).to_bytes(CHECKSUM_BYTES, "little")


def heads_of(rows: Sequence[bytes]) -> NDArray[np.void]:
    """The heads of the rows, an array of `HEAD`."""
    return np.frombuffer(b"".join([row[: HEAD.itemsize] for row in rows]), HEAD)


def place_of(head: np.void) -> tuple[int, float, int]:
    """Number of the curve's text, place on the x-axis and replicate, of one head."""
    n = int(head["n"])
    position = _REAL.unpack(_WHOLE.pack(n))[0] if head["real"] else n
    return int(head["curve"]), position, int(head["replicate"])


def cell_key_of(head: np.void, texts: Mapping[int, str]) -> str:
    """Name of the cell of a sound head."""
    curve, n, replicate = place_of(head)
    name, axis = json.loads(texts[curve])
    return cell_key(name, n, replicate, axis)


def key_of(row: Any, texts: Mapping[int, str]) -> str | None:
    """Name of the cell of a row that may be damaged; None if it cannot be read."""
    try:
        curve, real, n, replicate = _PLACE.unpack(row[:PLACE_BYTES])
        name, axis = json.loads(texts[curve])
        return cell_key(name, (_REAL if real else _WHOLE).unpack(n)[0], replicate, axis)
    except (KeyError, TypeError, ValueError, struct.error):
        return None


def numbers_of(rows: Sequence[bytes], shape: Shape) -> NDArray[np.void]:
    """The numbers of rows of one shape, an array of its fields."""
    begin, end = HEAD.itemsize, HEAD.itemsize + shape.size
    lengths = {*map(len, rows)}
    if len(lengths) == 1:  # no row is cut, as only texts of single cells make lengths differ
        return np.frombuffer(b"".join(rows), shape.dtype_within(begin, *lengths))
    return np.frombuffer(b"".join([row[begin:end] for row in rows]), shape.dtype)


def from_row(row: bytes, texts: Mapping[int, str], shapes: Mapping[int, Shape]) -> Record:
    """The record of a sound row; `texts` and `shapes` belong to the numbers that rows hold."""
    (head,) = heads_of([row])
    curve, n, replicate = place_of(head)
    name, axis = json.loads(texts[curve])
    shape, flags = shapes[int(head["shape"])], int(head["flags"])
    own_texts = row[HEAD.itemsize + shape.size : -CHECKSUM_BYTES].strip()
    message, identity = json.loads(own_texts) if own_texts else ("", "")
    params, losses, certificate = shape.unpack(row[HEAD.itemsize :])
    versions, machine = json.loads(texts[int(head["maker"])])
    loss, log_likelihood = float(head["loss"]), float(head["log_likelihood"])
    return Record(
        key=cell_key(name, n, replicate, axis),
        curve=name,
        n=n,
        replicate=replicate,
        status=DONE if flags & IS_DONE else FAILED,
        loss=None if math.isnan(loss) else loss,
        log_likelihood=None if math.isnan(log_likelihood) else log_likelihood,
        certified=bool(flags & IS_CERTIFIED),
        params=params,
        losses=losses,
        certificate=certificate,
        seconds=float(head["seconds"]),
        versions=versions,
        message=message,
        identity=head["identity"].tobytes().hex() if flags & HAS_IDENTITY else identity,
        machine=machine,
    )
