"""Rows put into a store, and counted in its head."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress

from moestat.sweep.store.record import Record
from moestat.sweep.store.rows import CHECKSUM_BYTES, PLACE_BYTES, to_row
from moestat.sweep.store.scan import BLOCK
from moestat.sweep.store.schema import PLACE, sum_of
from moestat.sweep.store.texts import Texts

_INSERT = "INSERT OR REPLACE INTO cells (row) VALUES (?)"


def insert(connection: sqlite3.Connection, records: Sequence[Record], texts: Texts) -> None:
    """Put records into a store, in the caller's transaction, and count them in its head."""
    rows = [to_row(record, texts.number_of) for record in records]
    head = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('rows', 'total')"))
    gone = [
        old
        for row in rows
        for (old,) in connection.execute(
            f"SELECT row FROM cells WHERE {PLACE} = ?", (row[:PLACE_BYTES],)
        )
    ]
    connection.executemany(_INSERT, ((row,) for row in rows))
    with suppress(KeyError, ValueError):  # a damaged head stays so: readers are to know
        count = int(head["rows"]) + len(rows) - len(gone)
        changed = (int(head["total"]) + sum_of(rows) - sum_of(gone)) % 2**64
        entries = {"rows": str(count), "total": str(changed)}
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", entries.items())


def recount(connection: sqlite3.Connection) -> None:
    """Number of rows and sum of their checksums, for the head."""
    count, total = 0, 0
    cursor = connection.execute(f"SELECT substr(row, -{CHECKSUM_BYTES}) FROM cells NOT INDEXED")
    while block := cursor.fetchmany(BLOCK):
        count += len(block)
        total += sum_of([end for (end,) in block])
    entries = {"rows": str(count), "total": str(total % 2**64)}
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", entries.items())
