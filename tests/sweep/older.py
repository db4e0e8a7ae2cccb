"""Stores as older versions wrote them."""

import contextlib
import json
import sqlite3

from moestat.sweep import open_store
from moestat.sweep.spec.identity import digest

COLUMNS = (
    *("key", "curve", "n", "replicate", "status", "loss", "log_likelihood", "certified", "params"),
    *("losses", "certificate", "seconds", "versions", "message", "identity", "machine"),
)
JSON = {"params", "losses", "certificate", "versions", "machine"}
CELLS = """
CREATE TABLE cells (
    key TEXT PRIMARY KEY, curve TEXT NOT NULL, n INTEGER NOT NULL, replicate INTEGER NOT NULL,
    status TEXT NOT NULL, loss REAL, log_likelihood REAL, certified INTEGER NOT NULL,
    params TEXT NOT NULL, losses TEXT NOT NULL, certificate TEXT NOT NULL, seconds REAL NOT NULL,
    versions TEXT NOT NULL, message TEXT NOT NULL, identity TEXT NOT NULL DEFAULT '',
    machine TEXT NOT NULL DEFAULT '{}', checksum TEXT NOT NULL DEFAULT ''
)
"""


def row_of(record):
    """A record as a row of schema 4."""
    row = [getattr(record, name) for name in COLUMNS]
    row = [json.dumps(v) if name in JSON else v for name, v in zip(COLUMNS, row, strict=True)]
    row[COLUMNS.index("certified")] = int(record.certified)
    return (*row, digest(row))


def downgrade(path, schema):
    """Make a store what schema 4 or schema 2 was."""
    with open_store(path) as store:
        rows = [row_of(record) for record in store.records()]
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE cells")
        connection.execute("DROP TABLE texts")
        connection.execute(CELLS)
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        connection.executemany(f"INSERT INTO cells VALUES ({marks})", rows)
        total = f"{sum(int(row[-1], 16) for row in rows) % 2**256:x}"
        connection.execute("UPDATE meta SET value = ? WHERE key = 'total'", (total,))
        if schema == 2:
            for column in ("identity", "machine", "checksum"):
                connection.execute(f"ALTER TABLE cells DROP COLUMN {column}")
            connection.execute("DELETE FROM meta WHERE key IN ('head', 'rows', 'total')")
        connection.execute(f"PRAGMA user_version = {schema}")
