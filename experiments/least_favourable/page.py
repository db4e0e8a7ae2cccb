"""The page and the picture of the least-favourable pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.explorer import CASES
from experiments.explorer.cases import Case
from experiments.least_favourable.measured import Measured, measured
from experiments.least_favourable.pairs import SIZES, bound_at, cases
from moestat.rates.plots import save_figure
from moestat.rates.style import COLOURS, style

__all__ = ["markdown", "own_size", "write"]

_PAGE, _PICTURE = "least_favourable.md", "least_favourable.png"
_SHOWN = (1e4, 1e6, 1e8, 1e10, 1e12, 1e14)
"""Sample sizes of the table."""
_COLUMNS = 4
_ERRORS = (1e-4, 1e2)
"""Errors that a panel shows, the same in all, so that panels can be compared."""
_SEEN = 0.5
"""A pair's own n has n h^2 = 1/2: n observations tell the two measures apart half of the time."""


@dataclass(frozen=True)
class _Row:
    """A case with its pairs, the block that errs most, and what was measured of it."""

    case: Case
    found: Mapping[str, Any]
    block: str
    measured: Measured | None

    @property
    def pairs(self) -> Sequence[Mapping[str, Any]]:
        """The kept pairs, the widest first."""
        return self.found["pairs"]

    @property
    def vanishes(self) -> bool:
        """Whether some measure cannot be told from the truth at all."""
        return self.found["verdict"] == "zero"

    def bound(self, n: float) -> float | None:
        """The bound at n; None where even the narrowest pair is told apart."""
        last = own_size(self.pairs[-1])
        return bound_at(self.pairs, self.block, n) if n <= last else None


def own_size(pair: Mapping[str, Any]) -> float:
    """The sample size at which a pair is about to be told apart; inf where it never is.

    Parameters
    ----------
    pair : mapping
        As `experiments.least_favourable.pairs.compute` gives it.

    Returns
    -------
    float
        n with n h^2 = 1/2.

    Examples
    --------
    >>> own_size({"squared": 5e-7})
    1000000.0
    """
    return _SEEN / pair["squared"] if pair["squared"] else math.inf


def _rows(kept: Mapping[str, Mapping[str, Any]], folder: Path) -> list[_Row]:
    rows = []
    for name, case in CASES.items():
        found = kept.get(name)
        if found is None or not found["pairs"]:
            continue
        errors = found["pairs"][0 if found["verdict"] == "zero" else -1]["errors"]
        block = max(errors, key=lambda each: errors[each])
        rows.append(_Row(case, found, block, measured(case, block, folder)))
    return rows


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _line(row: _Row) -> str:
    if row.vanishes and not row.pairs[0]["errors"][row.block]:
        cells = [*([""] * len(_SHOWN)), "masses alone differ"]
    else:
        bounds = [_number(row.bound(n)) for n in _SHOWN]
        cells = [*bounds, _told(row.measured)]
    order = "d = 0" if row.vanishes else f"{row.found['order']:.2f}"
    first, last = (_number(own_size(row.pairs[at])) for at in (0, -1))
    reach = "every n" if row.vanishes else f"{first} to {last}"
    place = f"{row.case.name}: {row.case.source}, {row.case.setting}"
    return "| " + " | ".join((place, row.block, order, reach, *cells)) + " |"


def _left_line(name: str) -> str:
    case = CASES[name]
    cells = (f"{name}: {case.source}, {case.setting}", *("not computed",) * (len(_SHOWN) + 3), "")
    return "| " + " | ".join(cells) + " |"


def _told(found: Measured | None) -> str:
    if found is None:
        return ""
    first, last = (f"{error:.2g} at {n:.0e}" for error, n in zip(found.error, found.n, strict=True))
    return f"{first}, {last} ({found.sweep}, cells of {found.cell})"


def markdown(rows: Sequence[_Row]) -> str:
    """The page.

    Parameters
    ----------
    rows : sequence of _Row
        All cases.

    Returns
    -------
    str
        Markdown.
    """
    planned = [case.name for case in cases()]
    left = [name for name in planned if name not in {row.case.name for row in rows}]
    zero = sum(row.vanishes for row in rows)
    out_of_reach = [
        row.case.name for row in rows if not row.vanishes and own_size(row.pairs[0]) > SIZES[-1]
    ]
    lines = [
        "# Least-favourable pairs: a local minimax bound with its constant",
        "",
        "Made by `python -m experiments.least_favourable`.  For each truth of the papers the"
        " explorer looks for the measures that are hardest to tell from it: of all measures at a"
        " given sum of deviations, from 0.3 to 0.001, the one with the least Hellinger distance h"
        " of one observation.  Each is continued from the last one, so that h^2 falls; where it"
        " rises the search has lost its branch, and the smallest sum is raised, to half the range"
        " in logarithms, until it does not (attention-1, whose distances of fifth order come to"
        " the rounding of the residuals).  A pair of truth and measure has the sample size *n* = 1"
        " / (2 h^2) at which it is about to be told apart, and with e the distance of the two in a"
        " block no estimator errs by less than e (1 - (1 - (1 - h^2)^(2 n))^(1/2)) / 4 at both (Le"
        " Cam, 1973; Tsybakov, 2009, Theorem 2.2).  The error of a block, such as the intercepts"
        " b, is the Hausdorff distance of the fitted and the true values; the block is the one"
        " that errs most.  The bound at n is the best one of all pairs.  Every pair is an explicit"
        " measure, so each bound holds however good the search was; a better search can only raise"
        " it.  It is of the *worst case* near the truth, not of the truth alone.",
        "",
        f"**Result: of {len(rows)} truths and numbers of atoms {zero} have a measure with the same"
        " distribution, so that the bound does not fall with n."
        + (
            f"  At {len(out_of_reach)} others ({', '.join(out_of_reach)}) no sample of up to"
            " 1e14 observations tells deviations that add up to 0.3 from none.**"
            if out_of_reach
            else "**"
        ),
        "",
        f"Computed so far: {len(rows)} of {len(planned)} cases"
        + ("; the others are *not computed* below: their searches take longer." if left else "."),
        "",
        "Where n is below the first number of *n of the pairs* the bound is that of the widest"
        " pair, and wider ones would give more; beyond the last number it is left empty."
        "  *Measured*: geometric means of the block's errors at the smallest and the largest n of a"
        " committed sweep at the same truth, of fits with free masses, whose atoms of small"
        " mass are far off, where a pair's atoms have a tenth of their cell's mass at least.",
        "",
        f"![Bounds and measured errors]({_PICTURE})",
        "",
        "| truth | block | r | n of the pairs | "
        + " | ".join(f"bound, n = {n:.0e}" for n in _SHOWN)
        + " | measured |",
        "|---|---|---|---|" + "---|" * (len(_SHOWN) + 1),
        *map(_line, rows),
        *map(_left_line, left),
        "",
        "The pairs:",
        "",
        "| truth | the paper's loss | error of the block | h^2 | total variation | n |",
        "|---|---|---|---|---|---|",
        *(
            _pair_line(row, pair)
            for row in rows
            for pair in (row.pairs[:1] if row.vanishes else row.pairs)
        ),
    ]
    return "\n".join(lines) + "\n"


def _pair_line(row: _Row, pair: Mapping[str, Any]) -> str:
    cells = (
        row.case.name,
        f"{pair['loss']:.3g}",
        f"{row.block} {pair['errors'][row.block]:.3g}",
        f"{pair['squared']:.3g}",
        _number(pair["total_variation"]),
        "every n" if row.vanishes else _number(own_size(pair)),
    )
    return "| " + " | ".join(cells) + " |"


def _panel(axes: Any, row: _Row) -> None:
    sizes = np.geomspace(SIZES[0], SIZES[-1], 111)
    bounds = [(n, value) for n in sizes if (value := row.bound(n)) is not None]
    axes.loglog(*zip(*bounds, strict=True), color=COLOURS[0], lw=1.4)
    own = [(own_size(pair), 0.5 * pair["errors"][row.block]) for pair in row.pairs]
    inside = [(n, half) for n, half in own if SIZES[0] <= n <= SIZES[-1]]
    if inside:
        axes.loglog(*zip(*inside, strict=True), color=COLOURS[1], marker="o", ms=3, lw=0, zorder=3)
    if row.measured is not None:
        axes.loglog(row.measured.n, row.measured.error, color=COLOURS[2], marker="s", ms=4, ls=":")
    order = "d = 0" if row.vanishes else f"r = {row.found['order']:.2f}"
    axes.set_title(f"{row.case.name}: {row.block}, {order}", fontsize=8)
    axes.set_xlim(SIZES[0], SIZES[-1])
    axes.set_ylim(*_ERRORS)
    axes.tick_params(labelsize=7)


def _draw(rows: Sequence[_Row], path: Path) -> None:
    shown = [row for row in rows if row.pairs[0]["errors"][row.block]]
    height = -(-len(shown) // _COLUMNS)
    with style():
        figure = Figure(figsize=(10.0, 2.0 * height + 0.8), layout="constrained")
        grid = figure.subplots(height, _COLUMNS, squeeze=False, sharex=True, sharey=True)
        for axes in grid.flat[len(shown) :]:
            axes.set_axis_off()
        for axes, row in zip(grid.flat, shown, strict=False):
            _panel(axes, row)
        figure.supxlabel("sample size n", fontsize=9)
        figure.supylabel("error of the block", fontsize=9)
        last = grid.flat[0]
        handles = [
            last.plot([], [], color=COLOURS[0], lw=1.4)[0],
            last.plot([], [], color=COLOURS[1], marker="o", ms=3, lw=0)[0],
            last.plot([], [], color=COLOURS[2], marker="s", ms=4, ls=":")[0],
        ]
        names = [
            "two-point bound: no estimator errs by less at truth and pair",
            "half of a pair's distance, at its own n",
            "measured, geometric means at the first and the last n",
        ]
        figure.legend(handles, names, loc="outside upper center", ncols=3, fontsize=8)
        save_figure(figure, path)


def write(kept: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Write page and picture.

    Parameters
    ----------
    kept : mapping
        Pairs by case.
    folder : Path
        Where the pages of the sweeps are, and page and picture go.
    """
    rows = _rows(kept, folder)
    _draw(rows, folder / _PICTURE)
    (folder / _PAGE).write_text(markdown(rows), encoding="utf-8")
