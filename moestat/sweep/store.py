"""Stores: one SQLite file per sweep, one durable row per cell."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Any

from moestat.sweep.errors import SweepError
from moestat.sweep.lock import Holder, exclusive
from moestat.sweep.plan import plan_cells
from moestat.sweep.record import Record, versions
from moestat.sweep.rows import COLUMNS, from_row, to_row
from moestat.sweep.schema import APPLICATION_ID, OLDEST, SCHEMA_VERSION, create_tables, migrate
from moestat.sweep.spec import Spec, parse_spec

__all__ = ["Store", "create_store", "is_store", "open_store"]

_MAGIC = b"SQLite format 3\0"
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM cells ORDER BY curve, n, replicate"
_INSERT = (
    f"INSERT OR REPLACE INTO cells ({', '.join(COLUMNS)}, checksum)"
    f" VALUES ({', '.join('?' * len(COLUMNS))}, ?)"
)


class Store:
    """The results of one sweep.  Make one with `create_store` or `open_store`.

    Parameters
    ----------
    path : Path
        The file.
    connection : sqlite3.Connection
        Open connection.
    holder : Holder, optional
        The lock, of a store that is open for writing.
    """

    def __init__(
        self, path: Path, connection: sqlite3.Connection, holder: Holder | None = None
    ) -> None:
        self.path = path
        self._connection = connection
        self._holder = holder

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

    def adopt(self, spec: Spec) -> None:
        """Make `spec` the store's own; every row must be one of its cells."""
        if self.meta("spec") != spec.text:
            head = [(value, key) for key, value in _head(spec).items()]
            self._write("UPDATE meta SET value = ? WHERE key = ?", head)

    def statuses(self) -> dict[str, str]:
        """Key -> ``"done"`` or ``"failed"`` of every cell with a result."""
        return dict(self._connection.execute("SELECT key, status FROM cells"))

    def identities(self) -> dict[str, str]:
        """Key -> identity of every cell with a result."""
        return dict(self._connection.execute("SELECT key, identity FROM cells"))

    def timings(self) -> list[tuple[str, float, float]]:
        """Curve, sample size and seconds of every cell with a result."""
        return self._connection.execute("SELECT curve, n, seconds FROM cells").fetchall()

    def put(self, records: Iterable[Record]) -> None:
        """Write records, all or none; when this returns, they survive a crash of the machine.

        Raises
        ------
        SweepError
            If they cannot be written, for instance because the disk is full.
        """
        self._write(_INSERT, [to_row(record) for record in records])

    def _write(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """One statement for each row, in a transaction of their own."""
        try:
            with self._connection:
                self._connection.executemany(statement, rows)
        except sqlite3.Error as error:
            raise SweepError(f"cannot write to the store {self.path}: {error}") from None

    def say(self, facts: Mapping[str, Any]) -> None:
        """Tell readers how the run goes; only of a store that is open for writing."""
        assert self._holder is not None
        self._holder.say(facts)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Every row with its checksum, by curve, sample size and replicate."""
        return self._connection.execute(_SELECT.replace(" FROM", ", checksum FROM"))

    def records(self) -> Iterator[Record]:
        """Every record, by curve, sample size and replicate."""
        return map(from_row, self._connection.execute(_SELECT))

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file; nothing for a sound one."""
        found = [line for (line,) in self._connection.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found


@contextmanager
def open_store(path: str | Path) -> Iterator[Store]:
    """Open a store for reading; a runner may be writing to it meanwhile.

    A store of an older schema is read as it will be once a runner has brought it up to date.

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
        if _schema(connection) == SCHEMA_VERSION:
            yield Store(path, connection)
            return
        with closing(sqlite3.connect(":memory:")) as copy:
            connection.backup(copy)
            _bring_up_to_date(path, copy)
            yield Store(path, copy)


@contextmanager
def create_store(path: str | Path, spec: Spec, *, extend: bool = False) -> Iterator[Store]:
    """Open the store of `spec` for writing, and make it if there is none.

    Titles, notes and other words of the spec that no cell depends on are brought up to date, and
    so is a store of an older schema.

    Parameters
    ----------
    path : str or Path
        The file.
    spec : Spec
        The spec that is about to run.
    extend : bool
        Whether the store may become one of `spec` if that only adds cells: sample sizes,
        replicates or curves.  Its rows stay as they are, since their cells have the same
        identities in both.

    Yields
    ------
    Store
        The store.

    Raises
    ------
    SweepError
        As `open_store`; if the store belongs to another spec, then with the difference; or if
        another process has it open for writing.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise SweepError(f"cannot make the store {path}: there is no directory {path.parent}")
    with exclusive(path) as holder:
        if _is_blank(path):
            _initialise(path, spec)
        with closing(_connect(path)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            if _schema(connection) < SCHEMA_VERSION:
                _bring_up_to_date(path, connection)
            store = Store(path, connection, holder)
            _check_spec(store, spec, extend)
            yield store


def is_store(path: Path) -> bool:
    """Whether a file is there that begins like a store."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


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
    connection = _readable(path)
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


def _readable(path: Path) -> sqlite3.Connection:
    """A connection that can read, also in a folder where SQLite may not put its log."""
    address = path.resolve().as_uri()
    try:
        connection = sqlite3.connect(f"{address}?mode=rw", uri=True, timeout=60)
        try:
            connection.execute("PRAGMA schema_version")
            return connection
        except sqlite3.OperationalError:
            connection.close()
            if _has_log(path):
                raise
            return sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True)
        except sqlite3.DatabaseError:
            return connection  # damaged: the caller says how
    except sqlite3.Error as error:
        raise SweepError(f"cannot open the store {path}: {error}") from None


def _has_log(path: Path) -> bool:
    """Whether a log beside the file holds what the file does not."""
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _ends_inside_a_page(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether the file stops short of a whole page, with no log that would complete it."""
    if _has_log(path):
        return False
    return path.stat().st_size % connection.execute("PRAGMA page_size").fetchone()[0] != 0


def _connect(path: Path) -> sqlite3.Connection:
    """A connection to a store that this version can read."""
    connection = _open_checked(path)
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise SweepError(f"{path} is an SQLite file, but not a store of moestat.sweep")
        schema = _schema(connection)
        if schema > SCHEMA_VERSION:
            raise SweepError(
                f"the store {path} was written by a newer moestat (schema {schema}; this one"
                f" reads {SCHEMA_VERSION}): update moestat"
            )
        if schema < OLDEST:
            raise SweepError(
                f"the store {path} was written by an older moestat (schema {schema}; this one"
                f" reads {OLDEST} to {SCHEMA_VERSION}), whose cells record less: run into another"
                " file"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _schema(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _bring_up_to_date(path: Path, connection: sqlite3.Connection) -> None:
    """Migrate a store, or leave it as it is and say why."""
    try:
        migrate(connection)
    except (sqlite3.Error, SweepError) as error:
        raise SweepError(
            f"cannot bring the store {path} from schema {_schema(connection)} to"
            f" {SCHEMA_VERSION}: {error}"
        ) from None


def _head(spec: Spec) -> dict[str, str]:
    """What a store says about its spec."""
    return {"spec": spec.text, "canonical": spec.canonical, "digest": spec.digest}


def _initialise(path: Path, spec: Spec) -> None:
    head = {**_head(spec), "versions": json.dumps(versions())}
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            create_tables(connection, head)
    except sqlite3.Error as error:
        raise SweepError(f"cannot make the store {path}: {error}") from None


def _check_spec(store: Store, spec: Spec, extend: bool) -> None:
    """Refuse a store of another spec, and show where they differ."""
    only_adds = store.meta("digest") != spec.digest and _only_adds(store, spec)
    if store.meta("digest") == spec.digest or (extend and only_adds):
        store.adopt(spec)
        return
    before, after = store.meta("canonical").splitlines(), spec.canonical.splitlines()
    lines = unified_diff(before, after, "store", "spec", n=1, lineterm="")
    way_out = (
        "it only adds cells: allow that with --extend"
        if only_adds
        else "run into another file, or undo"
    )
    raise SweepError(
        f"the store {store.path} belongs to another spec; {way_out}:\n" + "\n".join(lines)
    )


def _only_adds(store: Store, spec: Spec) -> bool:
    """Whether every cell of the store's spec, and every row, is in `spec` as it was."""
    before = {cell.key: cell.identity for cell in plan_cells(store.spec)} | store.identities()
    most = {curve.name: spec.most_replicates for curve in spec.curves}
    after = {cell.key: cell.identity for cell in plan_cells(spec, most)}
    return before.items() <= after.items()
