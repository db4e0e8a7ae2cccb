"""Malformed specs: each is a clear error in one line, or accepted and means what it says.

    python -m tests.chaos.specs --specs 5000

Shipped experiments are changed at random: values replaced, keys misspelt, lines dropped, doubled
or moved, characters changed.  Failures are whatever else happens: another exception, an error of
many lines, ten seconds of computing, four gigabytes, or a changed value that changes nothing.
"""

import argparse
import random
import re
import resource
import signal
import sys
import tempfile
import tomllib
import traceback
from collections import Counter
from pathlib import Path

from moestat.sweep import SweepError, load_spec
from moestat.sweep.spec.experiments import shipped

SECONDS = 10
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


def fates(number, seed=0, names=None):
    """How often each fate befell so many specs."""
    pick, found = random.Random(seed), Counter()
    sources = [
        load_spec(path) for name, path in shipped().items() if names is None or name in names
    ]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(number):
            original = pick.choice(sources)
            text, key = mutated(original.text, pick)
            found[fate(text, key, original, folder)] += 1
    return found


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.specs")
    parser.add_argument("--specs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--names", nargs="*", help="only these shipped experiments")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    found = fates(options.specs, options.seed, options.names)
    for which, times in found.most_common():
        print(f"{times} {which[-1500:]}")
    return 0 if set(found) <= set(FATES) else 1


if __name__ == "__main__":
    sys.exit(main())
