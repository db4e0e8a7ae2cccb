"""Merging: the stores of one sweep from several machines as one store; and copies of stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from moestat.base.door import door
from moestat.base.validate import as_path
from moestat.sweep.errors import SweepError
from moestat.sweep.store.record import DONE, Record
from moestat.sweep.store.store import create_store, open_store

_SHOWN = 5


@door()
def merge(target: str | Path, sources: Sequence[str | Path]) -> int:
    """Bring the rows of stores together in one store.

    A cell that several stores have is taken once: an estimate rather than a failure, and else the
    first.  Estimates of one cell must have the same numbers, to the last bit, or nothing is
    written; times, versions and machines may differ.

    Parameters
    ----------
    target : str or Path
        The store to write; made if it is not there, and else one of those that are merged.
    sources : sequence of str or Path
        The stores to read; their specs must have the same digest.

    Returns
    -------
    int
        Number of rows that the target gained or that changed from failed to done.

    Raises
    ------
    SweepError
        If a store cannot be read, belongs to another spec or contradicts another one.
    """
    target = as_path("target", target)
    existing = [target] if target.is_file() and target.stat().st_size else []
    with ExitStack() as stack:
        stores = [stack.enter_context(open_store(path)) for path in (*existing, *sources)]
        for store in stores[1:]:
            if store.meta("digest") != stores[0].meta("digest"):
                raise SweepError(f"{store.path} and {stores[0].path} belong to different specs")
        best: dict[str, tuple[Record, Path]] = {}
        conflicts: list[str] = []
        for store in stores:
            for record in store.records():
                known, home = best.setdefault(record.key, (record, store.path))
                if record.status == known.status == DONE and record.numbers != known.numbers:
                    conflicts.append(_conflict(known, home, record, store.path))
                if record.status == DONE != known.status:
                    best[record.key] = (record, store.path)
        if conflicts:
            more = len(conflicts) - _SHOWN
            lines = conflicts[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])
            raise SweepError(
                "the stores contradict each other; nothing was written:\n" + "\n".join(lines)
            )
        new = [record for record, home in best.values() if home != target]
        spec = stores[0].spec
    with create_store(target, spec) as written:
        written.put(new)
    return len(new)


def _conflict(one: Record, home: Path, other: Record, elsewhere: Path) -> str:
    first, second = one.numbers, other.numbers
    differing = ", ".join(name for name in first if first[name] != second[name])
    return f"{one.key}: {differing} differ between {home} and {elsewhere}"


def backup(source: str | Path, target: str | Path) -> int:
    """Copy a store, also while a runner writes to it: a copy of the file alone may lack rows.

    An existing target is refused.
    """
    target = as_path("target", target)
    if target.exists():
        raise SweepError(f"there is a file {target} already; a backup overwrites nothing")
    with open_store(source) as store:
        store.damage()  # a file whose rows cannot be read is refused: it is not worth a copy
        try:
            with closing(sqlite3.connect(target)) as copy:
                store.copy_into(copy)
                return copy.execute("SELECT count(*) FROM cells").fetchone()[0]
        except sqlite3.Error as error:
            with suppress(OSError):
                target.unlink(missing_ok=True)
            raise SweepError(f"cannot write the backup {target}: {error}") from None
