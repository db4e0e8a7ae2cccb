"""Damage to single rows of a store, as a failing disk would do it: the checksum stays."""

import contextlib
import sqlite3

from moestat.sweep.store.rows import HEAD, Texts, key_of

BEGIN = HEAD.itemsize


def change_row(path, key, change):
    """Put ``change(row)`` in place of the row of a cell."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        texts = Texts(connection).sound
        rows = connection.execute("SELECT rowid, row FROM cells").fetchall()
        (number,) = [rowid for rowid, row in rows if key_of(row, texts) == key]
        row = change(dict(rows)[number])
        connection.execute("UPDATE cells SET row = ? WHERE rowid = ?", (row, number))


def flipped(row, at, bit=1):
    """A row with one bit changed."""
    at %= len(row)
    return row[:at] + bytes([row[at] ^ bit]) + row[at + 1 :]


def flip_field(name):
    """A change of the lowest bit of a field of the head."""
    assert HEAD.fields is not None
    dtype, offset = HEAD.fields[name][:2]
    last = offset if dtype.byteorder != ">" else offset + dtype.itemsize - 1
    return lambda row: flipped(row, last)


def flip_file(path, pick):
    """Change one byte of some row in the file; returns whether there is one outside the log."""
    whole = bytearray(path.read_bytes())
    try:
        address = f"{path.as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            rows = [row for (row,) in connection.execute("SELECT row FROM cells")]
    except sqlite3.Error:  # not made yet
        rows = []
    row = pick.choice(rows) if rows else b""
    at = whole.find(row)
    if not row or at < 0:
        return False
    whole[at + pick.randrange(len(row))] ^= 1
    path.write_bytes(whole)
    return True
