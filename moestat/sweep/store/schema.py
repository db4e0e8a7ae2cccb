"""Schemas: the tables of a store, and the way from each older schema to this one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from moestat.sweep.spec.identity import digest
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import stored_spec
from moestat.sweep.store.record import Record
from moestat.sweep.store.rows import CHECKSUM_BYTES, PLACE_BYTES, Texts, to_row

SCHEMA_VERSION = 5
OLDEST = 2
"""The oldest schema that can be brought up to date: cells of schema 1 record less."""
APPLICATION_ID = 0x4D6F4553  # "MoES"
PAGE_BYTES = 16384
PLACE = f"substr(row, 1, {PLACE_BYTES})"
"""The place of a row, in SQL; no two rows have the same."""

_META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
_TABLES = (
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
    connection.execute(_META)
    _make_tables(connection)
    entries = {**head, "head": head_checksum(head), "rows": "0", "total": "0"}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", entries.items())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _make_tables(connection: sqlite3.Connection) -> None:
    for table in _TABLES:
        connection.execute(table)
    make_index(connection)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a store of an older schema up to date, in one transaction: all of it or nothing.

    Its schema is at least `OLDEST`.  A `SweepError` says that its spec can no longer be read.
    """
    before, connection.isolation_level = connection.isolation_level, None
    try:
        connection.execute("BEGIN IMMEDIATE")
        # Read inside the transaction: another process may have migrated the store meanwhile.
        for schema in range(schema_of(connection), SCHEMA_VERSION):
            _STEPS[schema](connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
        with suppress(sqlite3.Error):  # the store is whole; this gives back what rows took before
            connection.execute("VACUUM")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    finally:
        connection.isolation_level = before


def schema_of(connection: sqlite3.Connection) -> int:
    """Version of the schema that a file says it has."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


_OLD_COLUMNS = (
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
_OLD_JSON = ("params", "losses", "certificate", "versions", "machine")
_OLD_ROWS = f"SELECT {', '.join(_OLD_COLUMNS)}, checksum FROM cells NOT INDEXED"


def _from_2(connection: sqlite3.Connection) -> None:
    """Identity, machine (unknown for rows that are there) and checksum of each cell."""
    for column, default in (("identity", ""), ("machine", "{}"), ("checksum", "")):
        connection.execute(
            f"ALTER TABLE cells ADD COLUMN {column} TEXT NOT NULL DEFAULT '{default}'"
        )
    head = dict(connection.execute("SELECT key, value FROM meta"))
    spec = stored_spec(head["spec"], head.get("canonical", ""))
    identities = [(cell.identity, cell.key) for cell in plan_cells(spec)]
    connection.executemany("UPDATE cells SET identity = ? WHERE key = ?", identities)
    for *row, _ in connection.execute(_OLD_ROWS).fetchall():
        connection.execute("UPDATE cells SET checksum = ? WHERE key = ?", (digest(row), row[0]))


def _from_3(connection: sqlite3.Connection) -> None:
    """Checksum of the head, number of rows and the sum of their checksums."""
    head = dict(connection.execute("SELECT key, value FROM meta"))
    sums = [line[0] for line in connection.execute("SELECT checksum FROM cells")]
    entries = {"head": head_checksum(head), "rows": str(len(sums)), "total": _old_total(sums)}
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", entries.items())


def _from_4(connection: sqlite3.Connection) -> None:
    """Packed rows, and texts that rows share; damaged rows stay damaged, lost ones missing."""
    (total,) = connection.execute("SELECT value FROM meta WHERE key = 'total'").fetchone() or ("",)
    connection.execute("DROP INDEX IF EXISTS place")
    connection.execute("ALTER TABLE cells RENAME TO older")
    _make_tables(connection)
    texts, sums, has_damage, new_total = Texts(connection), [], False, 0
    for *row, checksum in connection.execute(_OLD_ROWS.replace("cells", "older")):
        sums.append(checksum)
        packed = _pack(row, checksum, texts)
        if packed is None:  # too short to be sound, and of no curve
            has_damage, packed = True, b"\xff" * 9 + len(sums).to_bytes(PLACE_BYTES - 9, "big")
        new_total += sum_of([packed])
        connection.execute("INSERT INTO cells (row) VALUES (?)", (packed,))
    connection.execute("DROP TABLE older")
    if has_damage or _old_total(sums) == total:
        entry = ("total", str(new_total % 2**64))
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", entry)


def _pack(row: Sequence[Any], checksum: object, texts: Texts) -> bytes | None:
    """A row of schema 4 as one of schema 5; None if it is damaged."""
    try:
        if digest(list(row)) != checksum:
            return None
        values = dict(zip(_OLD_COLUMNS, row, strict=True))
        values |= {name: json.loads(values[name]) for name in _OLD_JSON}
        # Schema 4 made whole floats integers; the key has the number as it was.
        written = values["key"].rpartition(" | replicate=")[0].rpartition("=")[2]
        values["n"] = int(written) if written.lstrip("-").isdecimal() else float(written)
        return to_row(Record(**{**values, "certified": bool(values["certified"])}), texts.number_of)
    except (TypeError, ValueError):
        return None


def _old_total(checksums: Sequence[Any]) -> str:
    """Sum of checksums of schema 4, modulo 2^256, in hexadecimal."""
    value = 0
    for each in checksums:
        try:
            value += int(each, 16)
        except (TypeError, ValueError):
            value += 1  # a damaged one: no sum fits
    return f"{value % 2**256:x}"


_STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {2: _from_2, 3: _from_3, 4: _from_4}
