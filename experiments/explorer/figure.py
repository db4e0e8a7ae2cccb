"""Explore the bounds of the papers without noise; write the table and draw local exponents.

    python -m experiments.explorer.figure [FOLDER] [--only CASE ...]
    python -m experiments.explorer.figure --redraw [FOLDER]

writes theory_explorer with .json, .md, .png and .pdf into FOLDER; with --only the other cases are
those that are kept there, and --redraw explores nothing and writes page and picture of the kept
results.  Left: the
ratio d / D against D; a theorem d >~ D says that it is bounded from below.  Right: local exponents
of d against the largest deviations, whose limit is the order of the worst direction.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.claims.rules import STEEP
from experiments.explorer.cases import CASES, Case, run_case
from experiments.explorer.report import HEAD, as_expected, details, row
from experiments.folders import FIGURES
from moestat.rates.plots import save_figure
from moestat.rates.style import COLOURS, MARKERS
from moestat.theory.explorer import Exploration

RESULT = "theory_explorer.json"
_GREY = "0.6"
_BELOW: dict[str, Any] = {
    **{"fontsize": 8, "frameon": False, "loc": "upper left"},
    "bbox_to_anchor": (0.0, -0.12),
}
INTRODUCTION = """# The bounds of the papers, explored without noise

Written by `python -m experiments.explorer.figure`; `python -m experiments.explorer` prints
the same numbers.

A theorem of the papers is a bound d >~ D: there is a constant C > 0 with d >= C D for all fitted
measures. **D** is the theorem's Voronoi loss, the distance of the fitted parameters to the true
ones: fitted atoms are put to the nearest true one, and each adds its mass times powers of its
errors. **d** is the distance of what they describe: the mean over inputs of the Hellinger distance
of the densities, or for least squares the L2(mu) distance of the regression functions. For
decreasing values of D the least d was searched for; the exponent r is that of d ~ D^r.

A **case** is named after paper and theorem: mlmoe-1 is Theorem 1 of mlmoe, compete-32 Theorem 3.2
and compete-J1 Theorem J.1 of compete, compete-v1-42 Theorem 4.2 of its first version, and
softmax-m has m fitted atoms in a cell beside one of a single atom (softmax-22: two and two). What
follows is the variant: a printed truth (table-2), masses as printed (unit), experts without output
weight (neurons), which meet the condition of Theorem 3.2 where networks do not, a part of the
parameters (identified), or D with all exponents 1 (order). `python -m experiments.explorer CASE`
runs one.

- **bounded**: d / D stays away from 0, as the theorem says; the exponent of d against D is 1.
- **falls**: d / D goes to 0. With all exponents of the loss 1 ("order of the worst deviation") this
  is what the theory says, and the exponent is the order; otherwise the bound is refuted.
- **zero**: measures with D > 0, not small, have the truth's density: the bound is refuted.

"rounding" is the relative difference of the last resolved d from the same sum at 50 digits;
"error" in the tables is its change when the nodes are doubled. Both are small where d is not 0.
The infimum is searched: a refutation is certain, a confirmation as good as the search.

![Ratios and local exponents](theory_explorer.png)
"""


def result(case: Case, found: Exploration) -> dict[str, Any]:
    """What is kept of a case: D and d at each radius, the exponent, whether d vanishes, and words.

    Parameters
    ----------
    case : Case
        The case.
    found : Exploration
        What the search found.

    Returns
    -------
    dict
        Its result, its row and its details on the page.
    """
    exponent = None if math.isnan(found.exponent) else found.exponent
    return {
        "loss": [rung.loss for rung in found.rungs],
        "distance": [rung.distance for rung in found.rungs],
        "exponent": None if found.vanishes else exponent,
        "vanishes": found.vanishes,
        "row": row(case, found),
        "details": details(case, found),
    }


def draw(found: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Both panels, from the kept results by case."""
    figure = Figure(figsize=(10.0, 6.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    plain = {name: each for name, each in found.items() if not CASES[name].deviations}
    shown = {name: each for name, each in plain.items() if len(each["loss"]) > 1}
    bounded = {name: each for name, each in shown.items() if not each["vanishes"]}
    for at, (name, each) in enumerate(bounded.items()):
        style = {"color": COLOURS[at % 7], "marker": MARKERS[at % 7], "ls": "-" if at < 7 else "--"}
        ratio = np.array(each["distance"]) / each["loss"]
        left.loglog(each["loss"], ratio, label=_titled(name), ms=4, lw=1, **style)
    left.set_title("d / D: flat where the bound holds", fontsize="medium", loc="left")
    left.set_xlabel("D: Voronoi loss, the distance of the parameters")
    left.set_ylabel("d / D, with d the distance of the densities")
    left.legend(**_BELOW)
    orders = {name: each for name, each in found.items() if CASES[name].deviations}
    for at, (name, each) in enumerate(orders.items()):
        loss, distance = np.array(each["loss"]), np.array(each["distance"])
        middle = np.sqrt(loss[1:] * loss[:-1])
        local = np.diff(np.log(distance)) / np.diff(np.log(loss))
        label = f"{_titled(name)}: {each['exponent']:.2f}"
        right.semilogx(middle, local, color=COLOURS[at], marker=MARKERS[at], label=label, lw=1)
    for order in sorted({_order(CASES[name]) for name in orders}):
        right.axhline(order, color=_GREY, lw=0.8, zorder=0)
    right.lines[-1].set_label("theory: 2 m in cells of m, 2 under competition")
    right.set_ylim(0, 9)
    right.set_title("Order of the worst deviation", fontsize="medium", loc="left")
    right.set_xlabel("D with all exponents 1: size of the deviation")
    right.set_ylabel("local exponent r of d ~ D$^r$")
    right.legend(**_BELOW)
    return figure


def _order(case: Case) -> int:
    """The theory's order: 2 m with m atoms in a cell beside a cell of one, 2 under competition."""
    return 2 * (case.n_experts - 1) if case.truth["gate"] == "softmax" else 2


def _titled(name: str) -> str:
    """A case by paper and theorem, with its name."""
    return f"{CASES[name].source} ({name})"


def page(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The page of the kept results."""
    rows, parts = ([each[key] for each in found.values()] for key in ("row", "details"))
    return "\n\n".join([INTRODUCTION, _told(found), "\n".join([HEAD, *rows]), *parts]) + "\n"


def _told(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The result of the page in a sentence."""
    zero = sum(each["vanishes"] for each in found.values())
    powers = {name: each["exponent"] for name, each in found.items() if not each["vanishes"]}
    orders = [f"{name} {power:.2f}" for name, power in powers.items() if CASES[name].deviations]
    bounds = [power for name, power in powers.items() if not CASES[name].deviations]
    held = [power for power in bounds if power < STEEP]
    return (
        f"**Result: of {zero + len(bounds)} bounds, {len(held)} hold as far as was searched (r from"
        f" {min(held):.3f} to {max(held):.3f}), along {len(bounds) - len(held)} d falls faster than"
        f" D (r from {min(set(bounds) - set(held)):.2f} on), and in {zero} other measures have the"
        f" truth's law.  Orders of the worst deviation: {', '.join(orders)}.**"
    )


def _save(folder: Path) -> None:
    found = _kept(folder)
    (folder / "theory_explorer.md").write_text(page(found), encoding="utf-8")
    for suffix in ("png", "pdf"):
        save_figure(draw(found), folder / f"theory_explorer.{suffix}")


def _kept(folder: Path) -> dict[str, dict[str, Any]]:
    place = folder / RESULT
    return json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}


def main(arguments: Sequence[str]) -> None:
    """Explore cases, keeping each as it ends, or none, and write page and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redraw", action="store_true")
    parser.add_argument("folder", type=Path, nargs="?", default=FIGURES)
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="CASE")
    given = parser.parse_args(arguments)
    kept = _kept(given.folder) if given.only or given.redraw else {}
    for name in () if given.redraw else given.only or CASES:
        case, exploration = CASES[name], run_case(CASES[name])
        kept[name] = result(case, exploration)
        kept = {each: kept[each] for each in CASES if each in kept}
        (given.folder / RESULT).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        print(
            name, exploration.verdict, "" if as_expected(case, exploration) else "NOT AS EXPECTED"
        )
    _save(given.folder)


if __name__ == "__main__":
    main(sys.argv[1:])
