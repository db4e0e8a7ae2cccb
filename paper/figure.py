"""The figure of the paper; ``python paper/figure.py`` writes paper/figure.png.

Left a fit to the penguins, right how probable its gate finds each expert.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import moestat


def draw() -> Figure:
    """The data and the fit, and the gate."""
    penguins = moestat.datasets.load("penguins").dropna()
    lines = "body_mass_g ~ flipper_length_mm | flipper_length_mm"
    # Flippers separate the gate's regions; a prior makes the estimate finite.
    result = moestat.fit_formula(lines, penguins, prior=moestat.Prior(), rng=0)
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    result.plot(ax=left)
    result.plot_gate(ax=right)
    for ax in (left, right):
        ax.set_xlabel("flipper length, mm")
    left.set_ylabel("body mass, g")
    return figure


if __name__ == "__main__":
    draw().savefig(Path(__file__).parent / "figure.png", dpi=150)
