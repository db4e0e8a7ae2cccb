"""Rows: records as a store holds them, each with a checksum of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from moestat.sweep.identity import digest
from moestat.sweep.record import Record

__all__ = ["COLUMNS", "checksum", "from_row", "is_sound", "to_row", "total"]

COLUMNS = (
    "key",
    "curve",
    "n",
    "replicate",
    "status",
    "loss",
    "log_likelihood",
    "certified",
    "params",
    "losses",
    "certificate",
    "seconds",
    "versions",
    "message",
    "identity",
    "machine",
)
"""Columns of a row that come from its record; its checksum stands after them."""

_JSON = frozenset({"params", "losses", "certificate", "versions", "machine"})


def to_row(record: Record) -> tuple[Any, ...]:
    """The values of a record, in the order of `COLUMNS`, and their checksum.

    Parameters
    ----------
    record : Record
        The record; its numbers must be finite.

    Returns
    -------
    tuple
        Text, whole numbers, floats and None.

    Raises
    ------
    ValueError
        If a number is NaN or infinite.

    Examples
    --------
    >>> row = to_row(Record("em | n=10 | replicate=0", "em", 10, 0, "done", loss=0.5))
    >>> from_row(row).loss, checksum(row[:-1]) == row[-1]
    (0.5, True)
    """
    values = {name: getattr(record, name) for name in COLUMNS}
    values |= {name: json.dumps(values[name], allow_nan=False) for name in _JSON}
    values |= {"certified": int(record.certified), "seconds": float(record.seconds)}
    row = tuple(values.values())
    return (*row, checksum(row))


def from_row(row: Sequence[Any]) -> Record:
    """The record of a row, whether its checksum is there or not."""
    values: dict[str, Any] = dict(zip(COLUMNS, row, strict=False))
    values |= {name: json.loads(values[name]) for name in _JSON}
    return Record(**{**values, "certified": bool(values["certified"])})


def checksum(row: Sequence[Any]) -> str:
    """SHA-256 over the values of a row, in the order of `COLUMNS`."""
    return digest(list(row))


def is_sound(row: Sequence[Any]) -> bool:
    """Whether a row with its checksum at the end is as it was written.

    Examples
    --------
    >>> row = to_row(Record("em | n=10 | replicate=0", "em", 10, 0, "done", loss=0.5))
    >>> is_sound(row), is_sound(("EM", *row[1:])), is_sound((b"", *row[1:]))
    (True, False, False)
    """
    try:
        return checksum(row[:-1]) == row[-1]
    except (TypeError, ValueError):  # not the values of any record
        return False


def total(checksums: Iterable[Any], start: str = "0") -> str:
    """Sum of checksums modulo 2^256, in hexadecimal: it depends on all rows, not on their order.

    Examples
    --------
    >>> total(["ff", "-1"])
    'fe'
    """
    value = int(start, 16)
    for each in checksums:
        try:
            value += int(each, 16)
        except (TypeError, ValueError):
            value += 1  # a damaged one: no sum fits
    return f"{value % 2**256:x}"
