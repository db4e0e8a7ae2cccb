"""The schema: the tables of a store and its head."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from moestat.sweep.spec.identity import digest
from moestat.sweep.store.rows import CHECKSUM_BYTES, PLACE_BYTES

SCHEMA_VERSION = 5
"""Schema of all releases; those below were written before version 0.1.0."""
APPLICATION_ID = 0x4D6F4553  # "MoES"
PAGE_BYTES = 16384
PLACE = f"substr(row, 1, {PLACE_BYTES})"
"""The place of a row, in SQL; no two rows have the same."""

_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE cells (row BLOB NOT NULL)",
    "CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT NOT NULL, digest TEXT NOT NULL)",
)
_HEAD = ("spec", "canonical", "digest", "versions")


def head_checksum(head: Mapping[str, str]) -> str:
    """Checksum of what the head of a store says about its spec."""
    return digest([head.get(key) for key in _HEAD])


def sum_of(rows: Sequence[bytes]) -> int:
    """Sum of the checksums of rows, modulo 2^64: it depends on all rows, not on their order."""
    ends = (int.from_bytes(row[-CHECKSUM_BYTES:], "little") for row in rows)
    return sum(ends) % 2**64


def make_index(connection: sqlite3.Connection) -> None:
    """The index that finds a row by its place."""
    connection.execute(f"CREATE UNIQUE INDEX place ON cells ({PLACE})")


def create_tables(connection: sqlite3.Connection, head: Mapping[str, str]) -> None:
    """Make the tables and write the head in one transaction: a store is whole or blank.

    The connection begins no transactions of its own; `head` has the entries of the table ``meta``.
    """
    connection.execute("BEGIN IMMEDIATE")
    for table in _TABLES:
        connection.execute(table)
    make_index(connection)
    entries = {**head, "head": head_checksum(head), "rows": "0", "total": "0"}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", entries.items())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def schema_of(connection: sqlite3.Connection) -> int:
    """Version of the schema that a file says it has."""
    return connection.execute("PRAGMA user_version").fetchone()[0]
