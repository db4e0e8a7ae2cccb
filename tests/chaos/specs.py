"""Malformed specs: each is a clear error in one line, or accepted and means what it says.

    python -m tests.chaos.specs --specs 5000 --out specs.jsonl

Shipped experiments, and a small sweep of each kind, are changed at random: values replaced, keys
misspelt, lines dropped, doubled or moved, characters changed.  Of small sweeps that are accepted
the first cell is run and its row written.  Failures are whatever else happens: another exception,
an error of many lines, a minute of computing, four gigabytes, a changed value that changes nothing,
a cell that fails by a slip.  Each spec is tried in a process that may die, and a run goes on where
one with the same file was ended.
"""

import argparse
import random
import re
import signal
import sys
import tempfile
import tomllib
import traceback
from collections import defaultdict
from contextlib import suppress
from functools import cache
from pathlib import Path

from moestat.sweep import SweepError, create_store, load_spec, parse_spec, plan_cells, run_cell
from moestat.sweep.spec.experiments import shipped
from moestat.sweep.store.record import FAILED
from tests.chaos.kinds import SPECS
from tests.chaos.trials import run_trials, tell

SECONDS = 20
FATES = ("clear error", "accepted")
_WORDS = ("title", "note", "panel", "published", "theory")
_LONGEST = 1000
_VALUES = (
    *("-1", "0", "1", "2", "3", "1e9", "1e30", "1e308", "-1e308", "1e-320", "inf", "-inf", "nan"),
    *("1" + "0" * 30, "1" + "0" * 400, "1" + "0" * 5000, "0x" + "f" * 9000, "1_000_000_000"),
    *("true", "false", '""', '"nope"', '"D1"', '"\\u0000"', '"[/]"', '"$\\\\frac{$"', "'''a\nb'''"),
    *(
        "[]",
        "{}",
        "[[]]",
        "[1, 2]",
        "[nan]",
        '["a"]',
        "[true]",
        "{ name = 3 }",
        "{ a = { b = 1 } }",
    ),
    *("1979-05-27", "07:32:00", "[" * 300 + "]" * 300, '{ name = "newton", max_iterations = 1e9 }'),
    *("18446744073709551616", "20000000000", f'"{"x" * 100_000}"', "[1, 18446744073709551616]"),
    *("{ truth = 1e9 }", "{ start = 10, stop = 1e6, num = 1000000000 }", "[1, 1]", "[10, inf]"),
)
_ENTRY = re.compile(r"^\s*([A-Za-z_0-9]+)\s*=\s*(.+?)\s*$")


def mutated(text, pick):
    """A changed text, and the key whose value was replaced if that is all that was changed."""
    lines = text.splitlines()
    entries = [i for i, line in enumerate(lines) if _ENTRY.match(line)]
    at, how = pick.choice(entries), pick.randrange(10)
    key, value = _ENTRY.match(lines[at]).groups()
    if how < 5:
        lines[at] = f"{key} = {pick.choice(_VALUES)}"
        return "\n".join(lines), key
    if how == 5:
        number = re.compile(r"-?\d+\.?\d*(e-?\d+)?")
        lines[at] = f"{key} = {number.sub(lambda _: pick.choice(_VALUES[:18]), value, count=1)}"
    elif how == 6:
        lines[at] = f"{key[:-1] + pick.choice('xyz_')} = {value}"
    elif how == 7:
        del lines[at]
    elif how == 8:
        lines.insert(pick.randrange(len(lines)), lines[at])
    else:
        changed = list(text)
        for _ in range(pick.randrange(1, 4)):
            changed[pick.randrange(len(changed))] = pick.choice("[]{}=\"',.#\n09aZ\0\u00e9")
        return "".join(changed), None
    return "\n".join(lines), None


def fate(text, key, original, folder):
    """What becomes of a spec."""
    path = Path(folder) / "spec.toml"
    path.write_text(text, encoding="utf-8")

    def stop(number, frame):
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        spec = load_spec(path)
        again = load_spec(path)
        same = again.digest == spec.digest, spec.canonical == original.canonical
    except SweepError as error:
        message = str(error)
        return "clear error" if "\n" not in message and len(message) < _LONGEST else message
    except TimeoutError:
        return f"more than {SECONDS} s: {text}"
    except Exception:
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if not same[0]:
        return "another digest on second reading"
    equal = tomllib.loads(text) == tomllib.loads(original.text)
    if key not in (None, *_WORDS) and same[1] and not equal:
        return f"ignored {key}: {text}"
    return "accepted"


_SLIPS = ("Attribute", "Type", "Index", "Key", "Overflow", "Memory", "LinAlg", "ZeroDivision")


def _cell(text, folder):
    """What becomes of the first cell of an accepted spec; one that takes long is no failure."""
    spec, store = parse_spec(text), Path(folder) / "a.sqlite"
    if spec.n_cells > 1000:
        return "accepted"
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        record = run_cell(text, plan_cells(spec)[0])
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        with create_store(store, spec) as opened:
            opened.put([record])
    except SweepError as error:
        return "clear error" if "\n" not in str(error) else f"many lines: {error}"
    except TimeoutError:
        return "accepted"
    except Exception:
        return f"{traceback.format_exc()[-600:]}: {text}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        for path in store.parent.glob("a.*"):
            path.unlink()
    message = record.message or ""
    if record.status == FAILED and message.partition("Error")[0].endswith(_SLIPS):
        return f"a cell fails: {message}: {text}"
    return "accepted"


@cache
def sources(names=None):
    """Specs by kind: shipped ones and the small one of the kind, which is as likely as all."""
    found = defaultdict(list)
    for name, path in shipped().items():
        if names is None or name in names:
            spec = load_spec(path)
            found[spec.kind].append(spec)
    for kind, text in SPECS.items():
        found[kind] += [parse_spec(text)] * max(len(found[kind]), 1)
    return dict(sorted(found.items()))


def drawn(number, seed, names=None):
    """The changed spec of a number, the key whose value was replaced, and the original."""
    pick = random.Random(f"{seed}-{number}")
    of_kind = sources(names)
    original = pick.choice(of_kind[pick.choice(list(of_kind))])
    return *mutated(original.text, pick), original


def trial(number, seed=0, names=None):
    """What becomes of the spec of a number."""
    text, key, original = drawn(number, seed, names)
    with tempfile.TemporaryDirectory() as folder:
        found = fate(text, key, original, folder)
        small = original.text in SPECS.values()
        with suppress(TimeoutError):
            return _cell(text, folder) if small and found == "accepted" else found
    return found


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.specs")
    parser.add_argument("--specs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where fates are kept, one a line")
    parser.add_argument("--names", nargs="*", help="only these shipped experiments")
    options = parser.parse_args()
    names = tuple(options.names) if options.names else None
    for text in SPECS.values():  # compiled before any clock runs
        run_cell(text, plan_cells(parse_spec(text))[0])
    found = run_trials(
        lambda number: trial(number, options.seed, names)[-1500:],
        lambda number: drawn(number, options.seed, names)[0],
        options.specs,
        options.out,
    )
    return tell(found, FATES)


if __name__ == "__main__":
    sys.exit(main())
