"""Count cells by law, and list what fails.

python -m tests.laws [--all] [--refused] [--seed N] [--law WORDS] [--log FILE] [WORD]

With ``--log`` a line for each case judged is added to a file, and cases that the file names are
left out, so that a run that was interrupted goes on where it ended.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.laws.cases import CASES, SOME, _fitted
from tests.laws.every import LAWS
from tests.laws.laws import FAILS, HOLDS, REFUSED, judge, page


def main() -> int:
    """Judge the cases whose name has the word in it; 1 if a law fails."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("word", nargs="?", default="", help="part of the names of the cases")
    parser.add_argument("--all", action="store_true", help="every case, not the part of each run")
    parser.add_argument("--refused", action="store_true", help="list what is refused, too")
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    parser.add_argument("--law", choices=LAWS, metavar="WORDS", help="only the law of this name")
    parser.add_argument("--log", type=Path, help="file of the cases that were judged")
    options = parser.parse_args()
    judged = set()
    if options.log and options.log.exists():
        judged = {line.split("\t")[0] for line in options.log.read_text().splitlines()}
    cells = {name: [] for name in LAWS}
    for case in CASES if options.all else SOME:
        if options.word not in str(case) or str(case) in judged:
            continue
        case = replace(case, seed=options.seed)
        counts = Counter()
        for name in [options.law] if options.law else LAWS:
            for cell in judge(name, case):
                cells[name].append((case, cell))
                counts[cell.verdict] += 1
                if cell.verdict == FAILS or (options.refused and cell.verdict == REFUSED):
                    print(f"{case}: {name}: {cell.question}: {cell.words}", flush=True)
        _fitted.cache_clear()
        if options.log:
            with options.log.open("a") as log:
                log.write(f"{case}\t{counts[HOLDS]}\t{counts[REFUSED]}\t{counts[FAILS]}\n")
    print(page(cells))
    return int(any(c.verdict == FAILS for found in cells.values() for _, c in found))


if __name__ == "__main__":
    raise SystemExit(main())
