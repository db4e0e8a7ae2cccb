"""Damaged stores of all kinds: found on reading, refused in one line, or harmless.

    python -m tests.chaos.flips --flips 1000 --out flips.jsonl

A small sweep of each kind is run.  In a copy of its store one bit is flipped, bytes, words, pages
or rows change places, the end is cut off, a stretch is zeroed, or a row is there twice; then every
command reads it.  A failure is a traceback, an error of many lines, and an answer that is not the
one of the store as it was with no word about damage.
"""

import argparse
import random
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import closing
from pathlib import Path

from typer.testing import CliRunner

from moestat.sweep import SweepError, create_store, open_cells, open_store, parse_spec, run_cells
from moestat.sweep.cli import app
from moestat.sweep.kinds.kind import kind_of
from moestat.sweep.store.verification import verify
from tests.chaos.trials import run_trials, tell

FATES = ("refused", "found", "harmless")
COMMANDS = ("status", "rates", "failures", "export", "report", "verify-store")
_PAGE = 16384


def _contents(store):
    """Everything that a reader may take from a store."""
    return {record.key: vars(record) for record in store.records()}, store.spec.text


def damaged(whole, pick):
    """The bytes of a file with one thing changed."""
    at, how, changed = pick.randrange(len(whole)), pick.randrange(10), bytearray(whole)
    if how < 5:
        changed[at] ^= 1 << pick.randrange(8)
    elif how < 8:
        width = pick.choice((1, 2, 4, 8, 64, _PAGE))
        one, two = (pick.randrange(0, len(whole) - width + 1, width) for _ in range(2))
        changed[one : one + width], changed[two : two + width] = (
            whole[two : two + width],
            whole[one : one + width],
        )
    elif how == 8:
        del changed[at:]
    else:
        end = min(at + pick.choice((1, 16, 512)), len(whole))
        changed[at:end] = bytes(end - at)
    return bytes(changed)


def double_row(path, pick):
    """Put a row in twice, and let the head count it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP INDEX IF EXISTS place")
        rows = [row for (row,) in connection.execute("SELECT rowid FROM cells")]
        connection.execute(
            "INSERT INTO cells (row) SELECT row FROM cells WHERE rowid = ?", (pick.choice(rows),)
        )
        connection.execute(
            "UPDATE meta SET value = ? WHERE key = 'rows'", (str(len(rows) + pick.randrange(2)),)
        )


def fates(source, target, flips, seed=0, rates=False):
    """How often each fate befell a copy of `source` in which one thing was changed."""
    whole, pick, found = source.read_bytes(), random.Random(seed), Counter()
    with open_store(source) as store:
        expected = _contents(store)
    for _ in range(flips):
        target.write_bytes(damaged(whole, pick))
        found[_fate(target, expected, rates)] += 1
        for rest in target.parent.glob(f"{target.name}-*"):
            rest.unlink()
    return found


def _fate(path, expected, rates):
    try:
        with open_store(path) as store:
            damage, findings = store.damage(), verify(store)
            same = _contents(store) == expected
            if rates:
                kind_of(store.spec.kind).summarise(store)
    except SweepError as error:
        return "refused" if "\n" not in str(error) else f"many lines: {error}"
    except Exception:
        return f"traceback: {traceback.format_exc()}"
    if damage or findings:
        return "found"
    return "harmless" if same else "silent"


def _commands(path):
    """Complaint about what a command says of a damaged store."""
    for command in COMMANDS:
        more = {"export": ["--out", path.with_suffix(".csv")]}.get(command, [])
        more = {"report": ["--out", path.parent]}.get(command, more)
        result = CliRunner().invoke(app, [command, str(path), *map(str, more)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            trace = "".join(traceback.format_exception(result.exception))
            return f"{command}: {trace[-1200:]}"
        if result.exit_code not in (0, 1, 2, 3) or "Traceback" in result.output:
            return f"{command}: exit {result.exit_code}: {result.output[-500:]}"
    return ""


def made(folder):
    """A store of each kind."""
    from tests.chaos.kinds import SPECS

    found = {}
    for kind, text in SPECS.items():
        spec, found[kind] = parse_spec(text), folder / f"{kind}.sqlite"
        with create_store(found[kind], spec) as store:
            list(run_cells(spec, store, open_cells(spec, store), executor="serial"))
    return found


class Damage:
    """Damages by number, to stores of all kinds in turn."""

    def __init__(self, stores, seed):
        self.seed, self.stores, self.expected = seed, list(stores.items()), {}
        for kind, path in self.stores:
            with open_store(path) as store:
                self.expected[kind] = _contents(store)

    def trial(self, number):
        """What becomes of the damage of a number."""
        pick = random.Random(f"{self.seed}-{number}")
        kind, source = self.stores[number % len(self.stores)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.sqlite"
            path.write_bytes(source.read_bytes())
            if pick.random() < 0.05:
                double_row(path, pick)
            else:
                path.write_bytes(damaged(source.read_bytes(), pick))
            found = _fate(path, self.expected[kind], rates=True)
            complaint = _commands(path) if number % 4 == 0 or found not in FATES else ""
        return f"{kind}: {complaint}" if complaint else found


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.flips")
    parser.add_argument("store", type=Path, nargs="?", help="in place of one of each kind")
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where fates are kept, one a line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stores = {"given": options.store} if options.store else made(Path(folder))
        damage = Damage(stores, options.seed)
        describe = "damage {} of seed {}".format
        found = run_trials(
            damage.trial,
            lambda number: describe(number, options.seed),
            options.flips,
            options.out,
        )
    return tell(found, FATES)


if __name__ == "__main__":
    sys.exit(main())
