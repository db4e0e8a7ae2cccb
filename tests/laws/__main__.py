"""Count cells by law, and list what fails.

python -m tests.laws [--all] [--refused] [--seed N] [--law WORDS] [WORD]
"""

from __future__ import annotations

import sys
from dataclasses import replace

import tests.laws.entries  # noqa: F401 - registers its laws
from tests.laws.cases import CASES, SOME
from tests.laws.laws import FAILS, LAWS, REFUSED, judge, page


def main(words: list[str]) -> int:
    """Judge the cases whose name has the word in it; 1 if a law fails."""
    seed = int(words[words.index("--seed") + 1]) if "--seed" in words else 0
    only = [words.pop(words.index("--law") + 1)] if "--law" in words else []
    plain = [w for w in words if not w.startswith("--") and not w.isdigit()]
    chosen = CASES if "--all" in words else SOME
    chosen = [c for c in chosen if not plain or plain[0] in str(c)]
    cells = {name: [] for name in LAWS}
    for case in chosen:
        own = replace(case, seed=seed)
        for name in only or LAWS:
            for cell in judge(name, own):
                cells[name].append((own, cell))
                if cell.verdict == FAILS or ("--refused" in words and cell.verdict == REFUSED):
                    print(f"{own}: {name}: {cell.question}: {cell.words}", flush=True)
    print(page(cells))
    return int(any(c.verdict == FAILS for found in cells.values() for _, c in found))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
