"""A store with JSON rows beside the store of packed rows: bytes, and processor time.

    python benchmarks/json_store.py [--cells 200000] [--folder DIR]

The candidate is the simplest durable store: one table of SQLite with the key of a cell, its record
as JSON and a checksum, written in transactions with a log (WAL, ``synchronous = FULL``).  Versions
and machine, which rows share, stand in a table of their own.  With ``zlib`` the JSON is compressed.
The rows are those of `large_sweeps`; nothing is fitted.  Each store is filled by batches of 1,000
cells, and read as a user's commands read it: the status of all cells, the cells that are left
after an interruption, and all records.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from large_sweeps import record_of, spec_text

from moestat.sweep import create_store, open_cells, open_store, parse_spec
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.store.record import Record

_BATCH = 1000


def checksum(key: str, row: bytes) -> int:
    """Eight bytes of BLAKE2 of a key and its row."""
    found = hashlib.blake2b(key.encode() + row, digest_size=8).digest()
    return int.from_bytes(found, "little", signed=True)


class JsonStore:
    """One table: key, JSON, checksum."""

    def __init__(self, path: Path, compressed: bool) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=60)
        self.pack, self.unpack = bytes, bytes
        if compressed:
            self.pack, self.unpack = lambda raw: zlib.compress(raw, 1), zlib.decompress
        for setting in ("page_size = 16384", "journal_mode = WAL", "synchronous = FULL"):
            self.connection.execute(f"PRAGMA {setting}")
        self.connection.execute("CREATE TABLE IF NOT EXISTS texts (number INTEGER, text TEXT)")
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS cells (key TEXT UNIQUE, row BLOB, checksum INTEGER)"
        )
        texts = self.connection.execute("SELECT text, number FROM texts")
        self.numbers: dict[str, int] = dict(texts.fetchall())

    def _number(self, text: str) -> int:
        if text not in self.numbers:
            self.numbers[text] = len(self.numbers)
            self.connection.execute("INSERT INTO texts VALUES (?, ?)", (self.numbers[text], text))
        return self.numbers[text]

    def put(self, records: list[Record]) -> None:
        """Write records, all or none."""
        self.connection.execute("BEGIN IMMEDIATE")
        for record in records:
            values = dict(vars(record))
            key = values.pop("key")
            shared = json.dumps([values.pop("versions"), values.pop("machine")])
            values["maker"] = self._number(shared)
            row = self.pack(json.dumps(values, separators=(",", ":")).encode())
            self.connection.execute(
                "INSERT OR REPLACE INTO cells VALUES (?, ?, ?)", (key, row, checksum(key, row))
            )
        self.connection.execute("COMMIT")

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Keys and values of the sound rows."""
        for key, row, written in self.connection.execute("SELECT key, row, checksum FROM cells"):
            if checksum(key, row) == written:
                yield key, json.loads(self.unpack(row))

    def records(self) -> Iterator[Record]:
        """All records."""
        makers = {number: json.loads(text) for text, number in self.numbers.items()}
        for key, values in self.rows():
            versions, machine = makers[values.pop("maker")]
            yield Record(key=key, **values, versions=versions, machine=machine)


def seconds(function: Callable[..., object], *arguments: object) -> float:
    """Processor time of a call."""
    began = time.process_time()
    function(*arguments)
    return time.process_time() - began


def fill(text: str, put: Callable[[list[Record]], None]) -> float:
    """Processor time of writing the records of a spec, without that of making them."""
    rng, block, total = np.random.default_rng(0), list[Record](), 0.0
    for cell in plan_cells(parse_spec(text)):
        block.append(record_of(cell, rng))
        if len(block) == _BATCH:
            total += seconds(put, block)
            block = []
    put(block)
    return total


def packed(path: Path, text: str) -> list[float]:
    """Bytes a row and seconds of the store of packed rows."""
    spec = parse_spec(text)
    with create_store(path, spec) as store:
        written = fill(text, store.put)
    found = [path.stat().st_size / spec.n_cells, written]
    for ask in (
        lambda store: store.n_sound,
        lambda store: open_cells(spec, store),
        lambda store: sum(1 for _ in store.records()),
    ):
        with open_store(path) as store:
            found.append(seconds(ask, store))
    return found


def as_json(path: Path, text: str, compressed: bool) -> list[float]:
    """The same of the candidate."""
    spec = parse_spec(text)
    store = JsonStore(path, compressed)
    with closing(store.connection):
        written = fill(text, store.put)
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        found = [path.stat().st_size / spec.n_cells, written]

        def left() -> list[str]:
            done = {key: values["status"] for key, values in store.rows()}
            return [cell.key for cell in plan_cells(spec) if cell.key not in done]

        found.append(seconds(lambda: [values["status"] for _, values in store.rows()]))
        found.append(seconds(left))
        found.append(seconds(lambda: sum(1 for _ in store.records())))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=200_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    text = spec_text(options.cells)
    print("| store | bytes a row | write | status | resume | records |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, found in (
            ("packed rows", packed(Path(folder, "packed.sqlite"), text)),
            ("JSON", as_json(Path(folder, "json.sqlite"), text, False)),
            ("JSON, zlib", as_json(Path(folder, "zlib.sqlite"), text, True)),
        ):
            times = " | ".join(f"{1e6 * each / options.cells:.1f}" for each in found[1:])
            print(f"| {name} | {found[0]:.0f} | {times} |", flush=True)


if __name__ == "__main__":
    main()
