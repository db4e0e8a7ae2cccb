"""A picture of each gate; ``python docs/gates.py`` writes figures/gates.png anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import moestat
from moestat.model.gates import GATES
from moestat.rates.plots import save_figure
from moestat.rates.style import COLOURS, plain_axes, style

COLUMNS = 3


def draw() -> Figure:
    """The weights of two experts along x under each gate, at a typical truth."""
    grid = np.linspace(-3, 3, 300)
    figure = Figure(figsize=(9.0, 12.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(-(-len(GATES) // COLUMNS), COLUMNS, sharex=True, sharey=True).flat
    for gate in GATES:
        ax = next(panels)
        model = first_family(gate)
        weights = moestat.gate_probabilities(model, model.typical(rng=2), grid)
        for weight, colour in zip(weights.T, COLOURS, strict=False):
            ax.plot(grid, weight, color=colour, linewidth=1.5)
        ax.plot(grid, weights.sum(axis=1), ":", color="#666666", linewidth=1.0)
        ax.set_title(gate, fontsize="medium")
        plain_axes(ax)
    for ax in panels:
        ax.set_visible(False)
    figure.supxlabel("x")
    figure.supylabel("weight of each expert; dotted: their sum")
    return figure


def first_family(gate: str) -> moestat.Family:
    """A family of two linear experts with this gate."""
    for likelihood in ("gaussian", "least-squares"):
        try:
            return moestat.family(likelihood, gate=gate, n_experts=2)
        except ValueError:
            continue
    raise ValueError(f"no family of linear experts has gate {gate!r}")


if __name__ == "__main__":
    with style():
        save_figure(draw(), Path(__file__).parents[1] / "figures" / "gates.png")
