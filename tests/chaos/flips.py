"""Flipped bytes in a store: each is found on reading, refused in one line, or harmless.

python -m tests.chaos.flips STORE --flips 500
"""

import argparse
import random
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

from moestat.sweep import SweepError, open_store, summarise
from moestat.sweep.store.verification import verify

FATES = ("refused", "found", "harmless")


def _contents(store):
    """Everything that a reader may take from a store."""
    return {record.key: vars(record) for record in store.records()}, store.spec.text


def fates(source, target, flips, seed=0, rates=False):
    """How often each fate befell a copy of `source` in which one byte was changed."""
    whole, pick, found = source.read_bytes(), random.Random(seed), Counter()
    with open_store(source) as store:
        expected = _contents(store)
    for _ in range(flips):
        at = pick.randrange(len(whole))
        changed = bytes([whole[at] ^ (1 << pick.randrange(8))])
        target.write_bytes(whole[:at] + changed + whole[at + 1 :])
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
                summarise(store)
    except SweepError as error:
        return "refused" if "\n" not in str(error) else f"many lines: {error}"
    except Exception:
        return f"traceback: {traceback.format_exc()}"
    if damage and findings:
        return "found"
    return "harmless" if same else "silent"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.flips")
    parser.add_argument("store", type=Path)
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "flipped.sqlite"
        found = fates(options.store, target, options.flips, options.seed, rates=True)
    for fate, times in found.most_common():
        print(f"{times} {fate}")
    return 0 if set(found) <= set(FATES) else 1


if __name__ == "__main__":
    sys.exit(main())
