"""Time of a default call and of its peers; ``python docs/speed.py`` writes figures/speed.png.

It reads benchmarks/results/cpu.json, which ``python benchmarks/peers.py`` writes.
"""

from __future__ import annotations

import json
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from moestat.rates.plots import save_figure
from moestat.rates.style import COLOURS, MARKERS, plain_axes, style

ROOT = Path(__file__).parents[1]
TOOLS = {
    "default": "moestat.fit",
    "NumPy EM": "EM in NumPy",
    "JAX": "JAX, L-BFGS",
    "flexmix": "flexmix",
}
MOST = 40.0
"""Seconds that a tool was given."""


def draw() -> Figure:
    """Seconds against rows for three lines; beside a point how far below moestat it ends."""
    stored = json.loads((ROOT / "benchmarks" / "results" / "cpu.json").read_text(encoding="utf-8"))
    rows = {row["problem"]: row for row in stored["peers"]["rows"]}
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    sizes = (1e3, 1e4, 1e5, 1e6)
    for tool, colour, marker in zip(TOOLS, COLOURS, MARKERS, strict=False):
        points = []
        for n in sizes:
            row = rows[f"lines, k = 3, n = 1e{len(str(int(n))) - 1}"]
            seconds, below = row.get(f"{tool}, s"), row.get(f"{tool}, below")
            known = isinstance(seconds, float)
            points.append((n, seconds if known else MOST))
            if not known:
                ax.annotate(
                    ">", points[-1], xytext=(4, -3), textcoords="offset points", color=colour
                )
            elif isinstance(below, float) and below >= 0.05:
                ax.annotate(
                    f"-{below:.3g}" if below < 100.0 else f"-{below:.0f}",
                    points[-1],
                    xytext=(0, 7),
                    textcoords="offset points",
                    ha="center",
                    fontsize=8,
                    color=colour,
                    bbox={"color": "white", "pad": 0.5},
                )
        ax.loglog(
            *zip(*points, strict=True), marker, linestyle="-", color=colour, label=TOOLS[tool]
        )
    ax.set_xlabel("rows")
    ax.set_ylabel("seconds of processor time")
    ax.legend(frameon=False)
    plain_axes(ax)
    return figure


if __name__ == "__main__":
    with style():
        save_figure(draw(), ROOT / "figures" / "speed.png")
