"""Draw the slope of a curve against the noise of its start, from a finished sweep's store.

    python -m experiments.pages.start_sensitivity STORE [FIGURE]

reads the store of the experiment ``mlmoe_start_sensitivity`` and writes STORE's name with .png,
or FIGURE.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

from moestat.rates.plots import save_figure
from moestat.rates.style import caption, marks, plain_axes
from moestat.sweep.kinds.fit.analysis import CurveSummary, summarise
from moestat.sweep.store.store import open_store


def slopes_by_rule(summaries: list[CurveSummary]) -> dict[str, dict[str, list[tuple]]]:
    """Gate -> stopping rule -> (noise, slope, low, high, share certified)."""
    found: dict[str, dict[str, list[tuple]]] = {}
    for summary in summaries:
        if summary.rate is None:
            continue
        gate, rule, _ = summary.curve.name.split(", ")
        noise = float(dict(summary.curve.starts)["noise"])
        low, high = summary.rate.interval
        row = (noise, summary.rate.slope, low, high, summary.certified / summary.done)
        found.setdefault(gate, {}).setdefault(rule, []).append(row)
    return found


def draw(summaries: list[CurveSummary]) -> Figure:
    """One panel per gate: slope with its 95% interval against the start's noise."""
    gates = slopes_by_rule(summaries)
    figure = Figure(figsize=(5.2 * len(gates), 4.4), layout="constrained")
    axes = figure.subplots(1, len(gates), squeeze=False)[0]
    for ax, (gate, rules) in zip(axes, gates.items(), strict=True):
        for shift, (rule, rows) in enumerate(rules.items()):
            noise, slope, low, high, certified = zip(*sorted(rows), strict=True)
            below = [s - x for s, x in zip(slope, low, strict=True)]
            above = [x - s for s, x in zip(slope, high, strict=True)]
            moved = [value * 1.04**shift for value in noise]
            label = f"{rule} ({sum(certified) / len(certified):.0%} certified)"
            ax.errorbar(moved, slope, yerr=[below, above], label=label, **marks(shift))
        ax.set_xscale("log")
        plain_axes(ax)
        ax.axhline(0.0, color="0.7", linewidth=0.8)
        ax.set_xlabel("standard deviation of the start's noise")
        ax.set_ylabel("slope of log loss on log n")
        ax.set_title(gate)
        ax.legend(
            fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2,
            frameon=False,
        )  # fmt: skip
    caption(figure, "Bars: 95% intervals of the slopes; rules stand slightly apart in noise.")
    return figure


def main() -> None:
    """Read the store named on the command line and write the figure."""
    store_path = Path(sys.argv[1])
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else store_path.with_suffix(".png")
    with open_store(store_path) as store:
        summaries = summarise(store)
    print(save_figure(draw(summaries), target))


if __name__ == "__main__":
    main()
