"""Copies of stores."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from moestat.base.validate import as_path
from moestat.sweep.errors import SweepError
from moestat.sweep.store.store import open_store


def backup(source: str | Path, target: str | Path) -> int:
    """Copy a store, also while a runner writes to it: a copy of the file alone may lack rows.

    A file that is there is refused.
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
