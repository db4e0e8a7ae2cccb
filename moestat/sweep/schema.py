"""Schemas: the tables of a store, and the way from each older schema to this one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

from moestat.sweep.identity import digest
from moestat.sweep.plan import plan_cells
from moestat.sweep.rows import COLUMNS, checksum, total
from moestat.sweep.spec import parse_spec

__all__ = [
    "APPLICATION_ID",
    "OLDEST",
    "SCHEMA_VERSION",
    "create_tables",
    "head_checksum",
    "migrate",
]

SCHEMA_VERSION = 4
OLDEST = 2
"""The oldest schema that can be brought up to date: cells of schema 1 record less."""
APPLICATION_ID = 0x4D6F4553  # "MoES"

_META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
_CELLS = """
CREATE TABLE cells (
    key            TEXT PRIMARY KEY,
    curve          TEXT NOT NULL,
    n              INTEGER NOT NULL,
    replicate      INTEGER NOT NULL,
    status         TEXT NOT NULL CHECK (status IN ('done', 'failed')),
    loss           REAL,
    log_likelihood REAL,
    certified      INTEGER NOT NULL,
    params         TEXT NOT NULL,
    losses         TEXT NOT NULL,
    certificate    TEXT NOT NULL,
    seconds        REAL NOT NULL,
    versions       TEXT NOT NULL,
    message        TEXT NOT NULL,
    identity       TEXT NOT NULL DEFAULT '',
    machine        TEXT NOT NULL DEFAULT '{}',
    checksum       TEXT NOT NULL DEFAULT ''
)
"""


_HEAD = ("spec", "canonical", "digest", "versions")


def head_checksum(head: Mapping[str, str]) -> str:
    """Checksum of what the head of a store says about its spec."""
    return digest([head.get(key) for key in _HEAD])


def create_tables(connection: sqlite3.Connection, head: Mapping[str, str]) -> None:
    """Make the tables and write the head in one transaction: a store is whole or blank.

    Parameters
    ----------
    connection : sqlite3.Connection
        A connection that begins no transactions of its own.
    head : mapping of str to str
        Entries of the table ``meta``.
    """
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(_META)
    connection.execute(_CELLS)
    entries = {**head, "head": head_checksum(head), "rows": "0", "total": "0"}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", entries.items())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a store of an older schema up to date, in one transaction: all of it or nothing.

    Parameters
    ----------
    connection : sqlite3.Connection
        The store; its schema is at least `OLDEST`.

    Raises
    ------
    SweepError
        If the store's spec can no longer be read.
    sqlite3.Error
        If the store cannot be written.
    """
    before, connection.isolation_level = connection.isolation_level, None
    try:
        connection.execute("BEGIN IMMEDIATE")
        # Read inside the transaction: another process may have migrated the store meanwhile.
        for schema in range(_version(connection), SCHEMA_VERSION):
            _STEPS[schema](connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    finally:
        connection.isolation_level = before


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _from_2(connection: sqlite3.Connection) -> None:
    """Identity, machine (unknown for rows that are there) and checksum of each cell."""
    for column, default in (("identity", ""), ("machine", "{}"), ("checksum", "")):
        connection.execute(
            f"ALTER TABLE cells ADD COLUMN {column} TEXT NOT NULL DEFAULT '{default}'"
        )
    (text,) = connection.execute("SELECT value FROM meta WHERE key = 'spec'").fetchone()
    identities = [(cell.identity, cell.key) for cell in plan_cells(parse_spec(text))]
    connection.executemany("UPDATE cells SET identity = ? WHERE key = ?", identities)
    for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM cells").fetchall():
        connection.execute("UPDATE cells SET checksum = ? WHERE key = ?", (checksum(row), row[0]))


def _from_3(connection: sqlite3.Connection) -> None:
    """Checksum of the head, number of rows and the sum of their checksums."""
    head = dict(connection.execute("SELECT key, value FROM meta"))
    sums = [line[0] for line in connection.execute("SELECT checksum FROM cells")]
    entries = {"head": head_checksum(head), "rows": str(len(sums)), "total": total(sums)}
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", entries.items())


_STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {2: _from_2, 3: _from_3}
