"""Explore the bounds of the papers without noise; write the table and draw local exponents.

    python -m experiments.explorer.figure [FOLDER]
    python -m experiments.explorer.figure --redraw [FOLDER]

writes theory_explorer with .md, .png and .pdf into FOLDER; the second command explores nothing and
draws the page that is there.  Left: the
ratio d / D against D; a theorem d >~ D says that it is bounded from below.  Right: local exponents
of d against the largest deviations, whose limit is the order of the worst direction.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.explorer.cases import CASES, run_case
from experiments.explorer.report import HEAD, as_expected, details, row
from experiments.folders import FIGURES
from moestat.base.types import FloatArray
from moestat.rates.plots import save_figure
from moestat.rates.style import COLOURS, MARKERS

ORDERS = (2, 4, 6, 8)
INTRODUCTION = """# The bounds of the papers, explored without noise

Written by `python -m experiments.explorer.figure`; `python -m experiments.explorer` prints
the same numbers. For every bound d >~ D, with D a Voronoi loss and d the mean Hellinger distance
(L2(mu) distance of regression functions), this is the least d that was found at decreasing values
of D.

- **bounded**: d / D stays away from 0, as the theorem says; the exponent of d against D is 1.
- **falls**: d / D goes to 0. With all exponents of the loss 1 ("order of the worst deviation") this
  is what the theory says, and the exponent is the order; otherwise the bound is refuted.
- **zero**: measures with D > 0, not small, have the truth's density: the bound is refuted.

"rounding" is the relative difference of the last resolved d from the same sum at 50 digits;
"error" in the tables is its change when the nodes are doubled. Both are small where d is not 0.
The infimum is searched: a refutation is certain, a confirmation as good as the search.

![Ratios and local exponents](theory_explorer.png)
"""


@dataclass(frozen=True)
class Ladder:
    """What the page shows of a case: D, d and the exponent r, infinite where d vanishes."""

    name: str
    loss: FloatArray
    distance: FloatArray
    exponent: float


def ladders(text: str) -> list[Ladder]:
    """The cases of a page, from the tables that it shows.

    Parameters
    ----------
    text : str
        The page.

    Returns
    -------
    list of Ladder
        One per case, in the page's order.
    """
    told = dict(re.findall(r"^\| ([\w-]+) \|(?:[^|]*\|){4} ([^|]*?) \|", text, re.MULTILINE))
    out = []
    for name, table in re.findall(r"^### ([\w-]+):.*?```text\n(.*?)```", text, re.M | re.S):
        rungs = [[float(each) for each in line.split()[:2]] for line in table.splitlines()[1:]]
        exponent = math.inf if told[name] == "d = 0" else float(told[name] or "nan")
        loss, distance = np.array(rungs).reshape(-1, 2).T
        out.append(Ladder(name, loss, distance, exponent))
    return out


def draw(found: Sequence[Ladder]) -> Figure:
    """Both panels."""
    figure = Figure(figsize=(10.0, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    plain = [each for each in found if not CASES[each.name].deviations]
    plain = [each for each in plain if len(each.loss) > 1 and not math.isinf(each.exponent)]
    for at, each in enumerate(plain):
        style = {"color": COLOURS[at % 7], "marker": MARKERS[at % 7], "ls": "-" if at < 7 else "--"}
        left.loglog(each.loss, each.distance / each.loss, label=each.name, ms=4, lw=1, **style)
    left.set_xlabel("D")
    left.set_ylabel("d / D")
    left.legend(fontsize=7, ncols=2)
    for at, each in enumerate(one for one in found if CASES[one.name].deviations):
        middle = np.sqrt(each.loss[1:] * each.loss[:-1])
        local = np.diff(np.log(each.distance)) / np.diff(np.log(each.loss))
        label = f"{each.name}: {each.exponent:.2f}"
        right.semilogx(middle, local, color=COLOURS[at], marker=MARKERS[at], label=label, lw=1)
    for order in ORDERS:
        right.axhline(order, color="0.6", lw=0.8, zorder=0)
    right.set_ylim(0, 9)
    right.set_xlabel("D with all exponents 1")
    right.set_ylabel("local exponent of d")
    right.legend(fontsize=7)
    return figure


def _save(folder: Path) -> None:
    found = ladders((folder / "theory_explorer.md").read_text(encoding="utf-8"))
    for suffix in ("png", "pdf"):
        save_figure(draw(found), folder / f"theory_explorer.{suffix}")


def main(arguments: Sequence[str]) -> None:
    """Write the three files, the table anew after every case, or draw the present page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redraw", action="store_true")
    parser.add_argument("folder", type=Path, nargs="?", default=FIGURES)
    given = parser.parse_args(arguments)
    rows, parts = [], []
    for name, case in () if given.redraw else CASES.items():
        exploration = run_case(case)
        rows.append(row(case, exploration))
        parts.append(details(case, exploration))
        text = [INTRODUCTION, "\n".join([HEAD, *rows]), *parts]
        (given.folder / "theory_explorer.md").write_text("\n\n".join(text) + "\n")
        print(
            name, exploration.verdict, "" if as_expected(case, exploration) else "NOT AS EXPECTED"
        )
    _save(given.folder)


if __name__ == "__main__":
    main(sys.argv[1:])
