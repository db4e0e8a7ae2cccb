"""Explore the bounds of the papers without noise; write the table and draw local exponents.

    python -m moestat.papers.explorer.figure [FOLDER]

writes theory_explorer with .md, .png and .pdf into FOLDER, next to this file by default.  Left: the
ratio d / D against D; a theorem d >~ D says that it is bounded from below.  Right: local exponents
of d against the largest deviations, whose limit is the order of the worst direction.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from moestat.papers.explorer.cases import CASES, run_case
from moestat.papers.explorer.report import HEAD, as_expected, details, row
from moestat.papers.folders import FIGURES
from moestat.rates.plots import save_figure
from moestat.rates.style import COLOURS, MARKERS

ORDERS = (2, 4, 6, 8)
INTRODUCTION = """# The bounds of the papers, explored without noise

Written by `python -m moestat.papers.explorer.figure`; `python -m moestat.papers.explorer` prints
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


def draw(found) -> Figure:
    """Both panels."""
    figure = Figure(figsize=(10.0, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    plain = [pair for pair in found if not pair[0].deviations and not pair[1].vanishes]
    plain = [pair for pair in plain if len(pair[1].rungs) > 1]
    for at, (case, exploration) in enumerate(plain):
        loss = [rung.loss for rung in exploration.rungs]
        style = {"color": COLOURS[at % 7], "marker": MARKERS[at % 7], "ls": "-" if at < 7 else "--"}
        left.loglog(loss, exploration.ratios, label=case.name, ms=4, lw=1, **style)
    left.set_xlabel("D")
    left.set_ylabel("d / D")
    left.legend(fontsize=7, ncols=2)
    for at, (case, exploration) in enumerate(pair for pair in found if pair[0].deviations):
        loss = np.array([rung.loss for rung in exploration.rungs])
        middle = np.sqrt(loss[1:] * loss[:-1])
        label = f"{case.name}: {exploration.exponent:.2f}"
        colour, marker = COLOURS[at], MARKERS[at]
        right.semilogx(
            middle, exploration.local_exponents, color=colour, marker=marker, label=label, lw=1
        )
    for order in ORDERS:
        right.axhline(order, color="0.6", lw=0.8, zorder=0)
    right.set_ylim(0, 9)
    right.set_xlabel("D with all exponents 1")
    right.set_ylabel("local exponent of d")
    right.legend(fontsize=7)
    return figure


def main(arguments: list[str]) -> None:
    """Run all cases and write the three files, the table anew after every case."""
    folder = Path(arguments[0]) if arguments else FIGURES
    found, rows, parts = [], [], []
    for name, case in CASES.items():
        exploration = run_case(case)
        found.append((case, exploration))
        rows.append(row(case, exploration))
        parts.append(details(case, exploration))
        text = [INTRODUCTION, "\n".join([HEAD, *rows]), *parts]
        (folder / "theory_explorer.md").write_text("\n\n".join(text) + "\n")
        print(
            name, exploration.verdict, "" if as_expected(case, exploration) else "NOT AS EXPECTED"
        )
    for suffix in ("png", "pdf"):
        save_figure(draw(found), folder / f"theory_explorer.{suffix}")


if __name__ == "__main__":
    main(sys.argv[1:])
