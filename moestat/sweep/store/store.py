"""Stores: one SQLite file per sweep, one durable row per cell."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from difflib import unified_diff
from itertools import chain
from pathlib import Path

import numpy as np

from moestat.base.types import IntArray
from moestat.base.validate import as_path
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.protocol import AnySpec
from moestat.sweep.spec.read import OLDER_DEFAULT, stored_spec
from moestat.sweep.store.disks import check_local
from moestat.sweep.store.file import (
    TIMEOUT,
    connect,
    drop_orphans,
    file_of,
    head_in,
    is_blank,
)
from moestat.sweep.store.lock import Holder, exclusive
from moestat.sweep.store.record import Record, versions
from moestat.sweep.store.rows import CHECKSUM_BYTES, PLACE_BYTES, Texts, from_row, to_row
from moestat.sweep.store.scan import BLOCK, Cells, Scan, scan
from moestat.sweep.store.schema import (
    PAGE_BYTES,
    PLACE,
    create_tables,
    head_checksum,
    make_index,
    sum_of,
)
from moestat.sweep.store.shapes import Shape


class Store:
    """The results of one sweep.  Make one with `create_store` or `open_store`.

    With a `holder`, the lock, it is open for writing.
    """

    def __init__(
        self, path: Path, connection: sqlite3.Connection, holder: Holder | None = None
    ) -> None:
        self.path = path
        self._connection = connection
        self._holder = holder
        self._file, self._head = file_of(path), {}
        if holder:
            self._note()
        self._last_scan: tuple[tuple[int, int], Scan, list[str]] | None = None
        self._texts: Texts | None = None
        self._shapes: dict[int, Shape] = {}

    def meta(self, key: str) -> str:
        """An entry of the store's head: ``spec``, ``canonical``, ``digest`` or ``versions``."""
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise SweepError(f"the store {self.path} has no {key!r} in its head")
        return row[0]

    @property
    def spec(self) -> AnySpec:
        """The spec that the store was made for."""
        if self.head_is_damaged():
            raise SweepError(
                f"the head of the store {self.path} is damaged: its spec is not as it was written;"
                " restore a copy or run into another file"
            )
        return stored_spec(self.meta("spec"), self.meta("canonical"))

    def head_is_damaged(self) -> bool:
        """Whether what the head says about the spec is not what was written."""
        head = dict(self._connection.execute("SELECT key, value FROM meta"))
        return head.get("head") != head_checksum(head)

    def adopt(self, spec: AnySpec) -> None:
        """Make `spec` the store's own; every row must be one of its cells."""
        if self.meta("spec") != spec.text:
            head = {**_head(spec), "versions": self.meta("versions")}
            entries = {**head, "head": head_checksum(head)}
            with self._writing() as connection:
                connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", entries.items())

    def statuses(self) -> dict[str, str]:
        """Key -> ``"done"`` or ``"failed"`` of every cell with a sound result."""
        return {record.key: record.status for record in self.records()}

    @property
    def n_sound(self) -> int:
        """Number of cells with a sound result."""
        return self._scan().size

    def cells(self, curve: str) -> Cells:
        """The cells of a curve that have a sound result, by place and replicate."""
        return self._scan().cells(curve)

    def timings(self) -> dict[tuple[str, float], tuple[float, int]]:
        """Total seconds and number of cells for each curve and place with a sound result."""
        timings: dict[tuple[str, float], tuple[float, int]] = {}
        for curve in self._scan().curves:
            cells = self.cells(curve)
            places, group = np.unique(cells.n, return_inverse=True)
            sums, counts = np.bincount(group, cells.seconds), np.bincount(group)
            for n, total, count in zip(places.tolist(), sums, counts, strict=True):
                timings[curve, n] = (float(total), int(count))
        return timings

    def put(self, records: Iterable[Record]) -> None:
        """Write records, all or none; when this returns, they survive a crash of the machine.

        If the file is no longer there, what the store held and these records are saved beside it.
        """
        records = list(records)
        if not self.is_there():
            raise SweepError(self._rescue(records))
        try:
            with self._writing() as connection:
                if self._texts is None:
                    self._texts = Texts(connection)
                _insert(connection, records, self._texts)
        except BaseException as error:
            self._texts = None  # what they name may not have been written
            if isinstance(error, SweepError) and not self.is_there():
                raise SweepError(self._rescue(records)) from None
            raise
        if file_of(self.path)[:1] != self._file[:1]:
            raise SweepError(self._rescue(records))
        self._note()

    def _note(self) -> None:
        """Empty the log into the file, and remember the file as it is.

        A copy of the file without its log then lacks nothing that was here before, and a log that
        is left beside another file that takes its place has nothing in it.
        """
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA busy_timeout = 0")  # wait for no reader
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._connection.execute(f"PRAGMA busy_timeout = {1000 * TIMEOUT}")
        self._head = dict(self._connection.execute("SELECT key, value FROM meta"))
        self._file = file_of(self.path)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction; an error of SQLite ends it and becomes one line."""
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")  # what is read is not written meanwhile
                yield self._connection
        except sqlite3.Error as error:
            raise SweepError(f"cannot write to the store {self.path}: {error}") from None

    def is_there(self) -> bool:
        """Whether the path still names the file that is open for writing, with its content."""
        now = file_of(self.path)
        if self._holder is None or now == self._file:
            return True
        if now[:1] != self._file[:1] or head_in(self.path) != self._head:
            return False
        self._file = now  # touched
        return True

    def _rescue(self, records: Sequence[Record]) -> str:
        """Save the results beside the place of a file that has gone; the message says where."""
        number = 1
        while (beside := self.path.with_name(f"{self.path.stem}.saved-{number}.sqlite")).exists():
            number += 1
        is_replaced = file_of(self.path)[:1] != self._file[:1]
        how = "removed or replaced" if is_replaced else "overwritten"
        reason = f"the store {self.path} was {how} while its sweep ran"
        try:
            with closing(sqlite3.connect(beside)) as copy:
                if is_replaced:
                    self._connection.backup(copy)
                else:
                    create_tables(copy, self._head)
                with copy:
                    _insert(copy, records, Texts(copy))
                count = copy.execute("SELECT count(*) FROM cells").fetchone()[0]
        except (sqlite3.Error, OSError) as error:
            return f"{reason}, and its results cannot be saved as {beside}: {error}"
        whose = "its" if is_replaced else "what it held is lost with it; the last"
        return f"{reason}; {whose} {count} results are saved as {beside}"

    def say(self, facts: Mapping[str, object]) -> None:
        """Tell readers how the run goes; only of a store that is open for writing."""
        assert self._holder is not None
        self._holder.say(facts)

    def records(self, curve: str | None = None) -> Iterator[Record]:
        """Every record, or of one curve, as it was written, by curve, place and replicate.

        Damaged rows are left out; `damage` names them.
        """
        scanned = self._scan()
        for name in scanned.curves if curve is None else (curve,):
            yield from self._records_of(scanned, scanned.cells(name))

    def failed(self) -> Iterator[Record]:
        """The records of failed cells, in the order of `records`."""
        scanned = self._scan()
        for name in scanned.curves:
            cells = scanned.cells(name)
            yield from self._records_of(scanned, cells.where(~cells.done))

    def _records_of(self, scanned: Scan, cells: Cells) -> Iterator[Record]:
        texts, shapes = scanned.texts.sound, {}
        for number in np.unique(cells.shape).tolist():
            shapes[number] = self.shape(number)
        for at, rows in self.blocks(cells):
            in_order = np.argsort(at).tolist()
            yield from (from_row(rows[place], texts, shapes) for place in in_order)

    def blocks(self, cells: Cells) -> Iterator[tuple[IntArray, list[bytes]]]:
        """Positions among the cells, and their rows, a block at a time, in the order of the file.

        A block holds neighbours in the order of the cells; a row that was replaced meanwhile is
        left out.
        """
        for start in range(0, cells.size, BLOCK):
            rowid = cells.rowid[start : start + BLOCK]
            order = np.argsort(rowid, kind="stable")
            wanted = rowid[order].tolist()
            among = str(wanted)[1:-1]  # SQLite limits the number of parameters
            query = f"SELECT rowid, row FROM cells WHERE rowid IN ({among}) ORDER BY rowid"
            records = self._connection.execute(query).fetchall()
            if len(records) < len(wanted):
                order = order[np.isin(wanted, [number for number, _ in records])]
            yield start + order, [row for _, row in records]

    def shape(self, number: int) -> Shape:
        """The shape that rows name by a number."""
        if number not in self._shapes:
            self._shapes[number] = Shape(self._scan().texts.sound[number])
        return self._shapes[number]

    def makers(self) -> list[dict[str, str]]:
        """The sets of versions that made the sound rows, each once."""
        scanned = self._scan()
        return [json.loads(scanned.texts.sound[number])[0] for number in scanned.makers]

    @property
    def n_rows(self) -> int:
        """Number of rows, damaged ones counted."""
        scanned = self._scan()
        return scanned.size + len(scanned.damaged)

    def damage(self) -> list[str]:
        """One line for each row that is not as it was written, and for rows that are missing."""
        lines = self._scan().damaged.values()
        assert self._last_scan is not None
        return [*lines, *self._last_scan[2]]

    def drop_damaged(self) -> list[str]:
        """Remove the damaged rows, so that their cells run again; returns what `damage` said."""
        damage = self.damage()
        if damage:
            damaged = [(number,) for number in self._scan().damaged]
            with self._writing() as connection:
                connection.execute("DROP INDEX IF EXISTS place")
                connection.executemany("DELETE FROM cells WHERE rowid = ?", damaged)
                make_index(connection)
                _recount(connection)
        return damage

    def _scan(self) -> Scan:
        """All rows, checked; read again once something has been written."""
        connection = self._connection
        try:
            version = connection.execute("PRAGMA data_version").fetchone()[0]
            state = version, connection.total_changes
            if self._last_scan is None or self._last_scan[0] != state:
                self._last_scan, self._shapes = None, {}
                self._last_scan = state, *self._read_rows()
        except sqlite3.Error as error:
            raise SweepError(
                f"the store {self.path} is damaged ({error}); restore a copy or run into another"
                " file"
            ) from None
        return self._last_scan[1]

    def _read_rows(self) -> tuple[Scan, list[str]]:
        begins = not self._connection.in_transaction
        if begins:
            self._connection.execute("BEGIN")  # head and rows of one moment
        try:
            head = dict(self._connection.execute("SELECT key, value FROM meta"))
            scanned = scan(self._connection, Texts(self._connection))
        finally:
            if begins:
                self._connection.execute("ROLLBACK")
        count, findings = scanned.size + len(scanned.damaged), []
        if head.get("rows") != str(count):
            findings.append(f"{count} rows are there, {head.get('rows')} were written")
        elif not scanned.damaged and head.get("total") != str(scanned.total):
            findings.append("the rows are not those that were written last")
        return scanned, findings

    def copy_into(self, copy: sqlite3.Connection) -> None:
        """Copy every page of the file."""
        self._connection.backup(copy)

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file; nothing for a sound one."""
        try:
            messages = [str(line) for (line,) in self._connection.execute("PRAGMA integrity_check")]
        except sqlite3.Error as error:
            return [str(error)]
        return [] if messages == ["ok"] else messages


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
    path = as_path("path", path)
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except OSError:  # also of a name that is too long
        is_file = False
    if not is_file:
        raise SweepError(f"there is no store {path}")
    with closing(connect(path)) as connection:
        yield Store(path, connection)


@contextmanager
def create_store(path: str | Path, spec: AnySpec, *, extend: bool = False) -> Iterator[Store]:
    """Open the store of `spec` for writing, and make it if there is none.

    Titles, notes and other words of the spec that no cell depends on are brought up to date.

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
        As `open_store`; if the store belongs to another spec, then with the difference; if another
        process has it open for writing, or if it is on a network disk.
    """
    path = as_path("path", path)
    if not path.parent.is_dir():
        raise SweepError(f"cannot make the store {path}: there is no directory {path.parent}")
    check_local(path)
    with exclusive(path) as holder:
        if is_blank(path):
            _initialise(path, spec)
        identity = path.resolve(), file_of(path)[:1]
        try:
            with closing(connect(path, with_cells=True)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                store = Store(path, connection, holder)
                _check_spec(store, spec, extend)
                yield store
                if not store.is_there():
                    store.put(())
        finally:
            drop_orphans(*identity)


def _head(spec: AnySpec) -> dict[str, str]:
    """What a store says about its spec."""
    return {"spec": spec.text, "canonical": spec.canonical, "digest": spec.digest}


def _initialise(path: Path, spec: AnySpec) -> None:
    head = {**_head(spec), "versions": json.dumps(versions())}
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise SweepError(
                    f"cannot make the store {path}: its disk has no shared memory for the log of"
                    " SQLite; run into a file on a local disk"
                )
            connection.execute("PRAGMA synchronous = FULL")
            create_tables(connection, head)
    except sqlite3.Error as error:
        raise SweepError(f"cannot make the store {path}: {error}") from None


def _check_spec(store: Store, spec: AnySpec, extend: bool) -> None:
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
    if store.spec.text == OLDER_DEFAULT + spec.text:
        way_out = (
            "its over-specified fits began near the truth, the default when it was made: to go on,"
            f" put {OLDER_DEFAULT.strip()} at the top of the spec, or run into another file"
        )
    raise SweepError(
        f"the store {store.path} belongs to another spec; {way_out}:\n" + "\n".join(lines)
    )


def _only_adds(store: Store, spec: AnySpec) -> bool:
    """Whether every cell of the store's spec, and every row, is in `spec` as it was."""
    before, replicates = store.spec, {curve.name: spec.most_replicates for curve in spec.curves}
    after = {cell.key: cell.identity for cell in plan_cells(spec, replicates)}
    planned = ((cell.key, cell.identity) for cell in plan_cells(before))
    stored = ((record.key, record.identity) for record in store.records())
    return all(after.get(key) == identity for key, identity in chain(planned, stored))


def _insert(connection: sqlite3.Connection, records: Sequence[Record], texts: Texts) -> None:
    """Put records into a store, in the caller's transaction, and count them in its head."""
    rows = [to_row(record, texts.number_of) for record in records]
    head = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('rows', 'total')"))
    replaced = [
        old
        for row in rows
        for (old,) in connection.execute(
            f"SELECT row FROM cells WHERE {PLACE} = ?", (row[:PLACE_BYTES],)
        )
    ]
    connection.executemany(
        "INSERT OR REPLACE INTO cells (row) VALUES (?)", ((row,) for row in rows)
    )
    with suppress(KeyError, ValueError):  # a damaged head stays so: readers are to know
        count = int(head["rows"]) + len(rows) - len(replaced)
        changed = (int(head["total"]) + sum_of(rows) - sum_of(replaced)) % 2**64
        entries = {"rows": str(count), "total": str(changed)}
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", entries.items())


def _recount(connection: sqlite3.Connection) -> None:
    """Number of rows and sum of their checksums, for the head."""
    count, total = 0, 0
    cursor = connection.execute(f"SELECT substr(row, -{CHECKSUM_BYTES}) FROM cells NOT INDEXED")
    while block := cursor.fetchmany(BLOCK):
        count += len(block)
        total += sum_of([end for (end,) in block])
    entries = {"rows": str(count), "total": str(total % 2**64)}
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", entries.items())
