"""Stores: one SQLite file per sweep, one durable row per cell."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Any

from moestat.sweep.errors import SweepError
from moestat.sweep.record import Record, versions
from moestat.sweep.spec import Spec, parse_spec

__all__ = ["SCHEMA_VERSION", "Store", "create_store", "open_store"]

SCHEMA_VERSION = 2
_APPLICATION_ID = 0x4D6F4553  # "MoES"
_MAGIC = b"SQLite format 3\0"

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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
    message        TEXT NOT NULL
);
"""
_COLUMNS = (
    "key, curve, n, replicate, status, loss, log_likelihood, certified, params, losses,"
    " certificate, seconds, versions, message"
)
_JSON_COLUMNS = ("params", "losses", "certificate", "versions")


class Store:
    """The results of one sweep.  Make one with `create_store` or `open_store`.

    Parameters
    ----------
    path : Path
        The file.
    connection : sqlite3.Connection
        Open connection.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    def meta(self, key: str) -> str:
        """An entry of the store's head: ``spec``, ``canonical``, ``digest`` or ``versions``."""
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise SweepError(f"the store {self.path} has no {key!r} in its head")
        return row[0]

    @property
    def spec(self) -> Spec:
        """The spec that the store was made for."""
        return parse_spec(self.meta("spec"))

    def refresh(self, spec: Spec) -> None:
        """Take over the text of `spec`, a spec with the same digest."""
        if self.meta("spec") != spec.text:
            self._write("UPDATE meta SET value = ? WHERE key = 'spec'", [spec.text])

    def statuses(self) -> dict[str, str]:
        """Key -> ``"done"`` or ``"failed"`` of every cell with a result."""
        return dict(self._connection.execute("SELECT key, status FROM cells"))

    def put(self, record: Record) -> None:
        """Write one record; when this returns, it survives a crash of program and machine.

        Raises
        ------
        SweepError
            If it cannot be written, for instance because the disk is full.
        """
        row = [getattr(record, column) for column in _COLUMNS.split(", ")]
        values = [
            json.dumps(value, allow_nan=False) if isinstance(value, (dict, list, tuple)) else value
            for value in row
        ]
        marks = ", ".join("?" * len(values))
        self._write(f"INSERT OR REPLACE INTO cells ({_COLUMNS}) VALUES ({marks})", values)

    def _write(self, statement: str, values: list[Any]) -> None:
        """One statement in a transaction of its own."""
        try:
            with self._connection:
                self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise SweepError(f"cannot write to the store {self.path}: {error}") from None

    def records(self) -> Iterator[Record]:
        """Every record, by curve, sample size and replicate."""
        query = f"SELECT {_COLUMNS} FROM cells ORDER BY curve, n, replicate"
        for row in self._connection.execute(query):
            values: dict[str, Any] = dict(zip(_COLUMNS.split(", "), row, strict=True))
            for column in _JSON_COLUMNS:
                values[column] = json.loads(values[column])
            yield Record(**{**values, "certified": bool(values["certified"])})


@contextmanager
def open_store(path: str | Path) -> Iterator[Store]:
    """Open a store for reading; a runner may be writing to it meanwhile.

    Parameters
    ----------
    path : str or Path
        The file.

    Yields
    ------
    Store
        The store.

    Raises
    ------
    SweepError
        If there is no such file, or it is no store, damaged, or from a moestat with another
        schema.  The file is left as it is.
    """
    path = Path(path)
    if not path.is_file():
        raise SweepError(f"there is no store {path}")
    if _is_blank(path):
        raise SweepError(f"the store {path} is empty: its sweep has not started")
    with closing(_connect(path)) as connection:
        yield Store(path, connection)


@contextmanager
def create_store(path: str | Path, spec: Spec) -> Iterator[Store]:
    """Open the store of `spec` for writing, and make it if there is none.

    Titles, notes and other words of the spec that no cell depends on are brought up to date.

    Parameters
    ----------
    path : str or Path
        The file.
    spec : Spec
        The spec that is about to run.

    Yields
    ------
    Store
        The store.

    Raises
    ------
    SweepError
        As `open_store`, or if the store belongs to another spec; then with the difference.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise SweepError(f"cannot make the store {path}: there is no directory {path.parent}")
    if _is_blank(path):
        _initialise(path, spec)
    with closing(_connect(path)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        store = Store(path, connection)
        _check_spec(store, spec)
        yield store


def _is_blank(path: Path) -> bool:
    """Whether nothing is there yet: no file, an empty one, or a database without tables."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return True
    with closing(_open_checked(path)) as connection:
        return connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0


def _open_checked(path: Path) -> sqlite3.Connection:
    """A connection to a sound SQLite file; damage is found before anything is written."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except OSError as error:
        raise SweepError(f"cannot read the store {path}: {error.strerror}") from None
    if head != _MAGIC:
        raise SweepError(f"{path} is not a store of moestat.sweep: it is no SQLite file")
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=60)
    except sqlite3.Error as error:
        raise SweepError(f"cannot open the store {path}: {error}") from None
    try:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict == "ok" and _ends_inside_a_page(path, connection):
            verdict = "its last page is cut"
    except sqlite3.DatabaseError as error:
        verdict = str(error)
    if verdict != "ok":
        connection.close()
        raise SweepError(
            f"the store {path} is damaged or truncated ({verdict}); restore a copy or run into"
            " another file"
        )
    return connection


def _ends_inside_a_page(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether the file stops short of a whole page, with no log that would complete it."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size > 0:
        return False
    return path.stat().st_size % connection.execute("PRAGMA page_size").fetchone()[0] != 0


def _connect(path: Path) -> sqlite3.Connection:
    """A connection to a store that this version can read."""
    connection = _open_checked(path)
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise SweepError(f"{path} is an SQLite file, but not a store of moestat.sweep")
        schema = connection.execute("PRAGMA user_version").fetchone()[0]
        if schema > SCHEMA_VERSION:
            raise SweepError(
                f"the store {path} was written by a newer moestat (schema {schema}; this one"
                f" reads {SCHEMA_VERSION}): update moestat"
            )
        if schema < SCHEMA_VERSION:
            raise SweepError(
                f"the store {path} was written by an older moestat (schema {schema}; this one"
                f" reads {SCHEMA_VERSION}), whose cells record less: run into another file"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _initialise(path: Path, spec: Spec) -> None:
    """Make the tables and the head in one transaction: a store is whole or blank."""
    head = {
        "spec": spec.text,
        "canonical": spec.canonical,
        "digest": spec.digest,
        "versions": json.dumps(versions()),
    }
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.executemany("INSERT INTO meta VALUES (?, ?)", head.items())
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise SweepError(f"cannot make the store {path}: {error}") from None


def _check_spec(store: Store, spec: Spec) -> None:
    """Refuse a store of another spec, and show where they differ."""
    if store.meta("digest") == spec.digest:
        store.refresh(spec)
        return
    before, after = store.meta("canonical").splitlines(), spec.canonical.splitlines()
    lines = unified_diff(before, after, "store", "spec", n=1, lineterm="")
    raise SweepError(
        f"the store {store.path} belongs to another spec; run into another file, or undo:\n"
        + "\n".join(lines)
    )
