"""The SQLite file of a store: opening, checks, and recognition of other files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from moestat.sweep.errors import SweepError
from moestat.sweep.store.schema import APPLICATION_ID, SCHEMA_VERSION, schema_of

_MAGIC = b"SQLite format 3\0"
TIMEOUT = 60  # seconds that a lock is waited for
_CACHED_STATEMENTS = 4
"""A statement that names the rows of a block takes 2 MB; by default 128 would stay in memory."""

_DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file raises: SQLite quotes the damage, which may be no text."""


def is_store(path: Path) -> bool:
    """Whether a file exists and begins like a store."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def is_blank(path: Path) -> bool:
    """Whether a path holds no store yet: no file, an empty one, or a database without tables."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return True
    with closing(_open(path)) as connection:
        return not _has_tables(connection)


def connect(path: Path, with_cells: bool = False) -> sqlite3.Connection:
    """A connection to a store that this version can read.

    The table of cells is checked only `with_cells`, before the store is written to.
    """
    if path.stat().st_size == 0:
        raise SweepError(f"the store {path} is empty: its sweep has not started")
    connection = _open_checked(path, with_cells)
    try:
        if not _has_tables(connection):
            raise SweepError(f"the store {path} is empty: its sweep has not started")
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise SweepError(f"{path} is an SQLite file, but not a store of moestat.sweep")
        schema = schema_of(connection)
        if schema > SCHEMA_VERSION:
            raise SweepError(
                f"the store {path} was written by a newer moestat (schema {schema}; this one"
                f" reads {SCHEMA_VERSION}): update moestat"
            )
        if schema < SCHEMA_VERSION:
            raise SweepError(
                f"the store {path} was written by a moestat before its first release (schema"
                f" {schema}; this one reads {SCHEMA_VERSION}): run its spec into another file"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def file_of(path: Path) -> tuple[object, ...]:
    """Which file stands at a path, and when it was written last; empty for none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_dev, status.st_ino), status.st_mtime_ns, status.st_size


def head_in(path: Path) -> dict[str, str]:
    """The head as it stands in the file itself; empty where it cannot be read."""
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return dict(connection.execute("SELECT key, value FROM meta"))
    except (sqlite3.Error, UnicodeDecodeError):
        return {}


def drop_orphans(path: Path, identity: tuple[object, ...]) -> None:
    """Remove the log of a file that has gone: SQLite would replay it into what stands there now."""
    if file_of(path)[:1] != identity:
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)


def _open(path: Path) -> sqlite3.Connection:
    """A connection to an SQLite file, which may be damaged."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except OSError as error:
        raise SweepError(f"cannot read the store {path}: {error.strerror}") from None
    if head != _MAGIC:
        raise SweepError(f"{path} is not a store of moestat.sweep: it is not an SQLite file")
    return _readable(path)


def _open_checked(path: Path, with_cells: bool) -> sqlite3.Connection:
    """A connection to a sound SQLite file; damage is found before anything is written.

    Without `with_cells` the table of cells is not checked, because reading scans it anyway.
    """
    connection = _open(path)
    try:
        tables = () if with_cells else _tables(connection)
        checks = [f"'{name}'" for name in tables if name != "cells"] or ["1"]
        verdicts = [
            connection.execute(f"PRAGMA quick_check({name})").fetchone()[0] for name in checks
        ]
        verdict = next((line for line in verdicts if line != "ok"), "ok")
        if verdict == "ok" and _ends_inside_a_page(path, connection):
            verdict = "its last page is cut"
    except _DAMAGE as error:
        verdict = str(error)
    verdict = " ".join(str(verdict).split())
    if verdict != "ok":
        connection.close()
        raise SweepError(
            f"the store {path} is damaged or truncated ({verdict}); restore a copy or run into"
            " another file"
        )
    return connection


def _readable(path: Path) -> sqlite3.Connection:
    """A connection that can read, also in a folder where SQLite may not put its log."""
    address = path.resolve().as_uri()
    try:
        connection = sqlite3.connect(
            f"{address}?mode=rw",
            timeout=TIMEOUT,
            uri=True,
            cached_statements=_CACHED_STATEMENTS,
        )
        connection.text_factory = _text
        try:
            connection.execute("PRAGMA schema_version")
            return connection
        except sqlite3.OperationalError:
            connection.close()
            if _has_log(path):
                raise
            connection = sqlite3.connect(
                f"{address}?mode=ro&immutable=1", uri=True, cached_statements=_CACHED_STATEMENTS
            )
            connection.text_factory = _text
            return connection
        except _DAMAGE:
            return connection  # damaged: the caller says how
    except sqlite3.Error as error:
        raise SweepError(f"cannot open the store {path}: {error}") from None


def _text(raw: bytes) -> str:
    """Text as it is stored; where it is damaged its checksum tells, and reading goes on."""
    return raw.decode("utf-8", "replace")


def _has_log(path: Path) -> bool:
    """Whether a log beside the file holds what the file does not."""
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _ends_inside_a_page(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether the file stops short of a whole page, with no log that would complete it."""
    if _has_log(path):
        return False
    return path.stat().st_size % connection.execute("PRAGMA page_size").fetchone()[0] != 0


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return [name for (name,) in rows]


def _has_tables(connection: sqlite3.Connection) -> bool:
    try:
        return bool(_tables(connection))
    except _DAMAGE:  # damaged: whoever reads on says how
        return True
