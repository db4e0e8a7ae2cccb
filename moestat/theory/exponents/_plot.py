"""The picture of rates: distances against deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from moestat.rates.style import plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from moestat.theory.exponents._found import Found

__all__ = ["draw"]

_MARKS = "osD^vP*X"


def draw(rates: Found, ax: Axes | None) -> Axes:
    """Draw the ladders of a table of rates; see `Rates.plot`."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(5.2, 3.8), layout="constrained").add_subplot()
    shown = {}
    for cell, block, ladder in rates.analysis.ladders:
        best = shown.get((block, cell))
        if best is None or ladder.exponent > best.exponent:
            shown[block, cell] = ladder
    for at, ((block, cell), ladder) in enumerate(sorted(shown.items(), key=lambda one: one[0][1])):
        if min(ladder.distances) < 1e-40:
            continue
        known = {(row.block, row.cell): row.r for row in rates.rows}
        r = known.get((block, cell), np.nan)
        label = f"{block}, {cell} atoms: r = {r:.3g}"
        mark = _MARKS[at % len(_MARKS)]
        (line,) = ax.plot(ladder.deviations, ladder.distances, mark, markersize=5, label=label)
        if np.isfinite(r):
            h = np.array(ladder.deviations)
            ax.plot(
                h, ladder.distances[-1] * (h / h[-1]) ** r, "--", color=line.get_color(), lw=0.8
            )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("deviation of the block")
    ax.set_ylabel("least relative change of the density found")
    if ax.lines:
        ax.legend(fontsize=7, frameon=False)
    plain_axes(ax)
    return ax
