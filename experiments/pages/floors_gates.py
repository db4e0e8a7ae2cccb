"""Pictures of the floored microscopes under other gates, drawn from what their page says.

    python -m experiments.pages.floors_gates [PAGE]

reads microscope_floors.md and writes microscope_floors_gates.png and, since a picture has at most
four panels, microscope_floors_gates_2.png beside it: the 90% quantile of the errors of experts in
cells of two, relative to that at the smallest n, which is what local slopes determine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.folders import FIGURES
from moestat.base.types import FloatArray
from moestat.rates.style import caption, marks, plain_axes, style, wrapped
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec

__all__ = ["MOST_PANELS", "Fall", "draw_falls", "falls", "picture_names", "write"]

_EXPERIMENTS = tuple(f"microscope_floors_{name}" for name in ("competition", "mlmoe", "attention"))
MOST_PANELS = 4
_QUIET = ", no expert near 0"
_CAPTION = (
    "Markers: the 90% quantile over data sets of the largest error of an expert in a cell of two,"
    " divided by that at the smallest n; numbers: its slope over the last four decades with a 95%"
    " bootstrap interval; dashed: the slope of the theorem, through the last marker of the first"
    " truth."
)


@dataclass(frozen=True)
class Fall:
    """How the errors of experts in cells of two fall under one gate at one truth.

    Parameters
    ----------
    curve, gate : str
        The truth and fit, and likelihood and gate.
    theory : float
        The theorem's power of n.
    slope : str
        The slope over the last four decades with its interval, as the page has it.
    n, relative : ndarray of shape (S,)
        Sizes, and the 90% quantile there over that at the first size.
    """

    curve: str
    gate: str
    theory: float
    slope: str
    n: FloatArray
    relative: FloatArray


def _gates() -> dict[str, str]:
    """Likelihood and gate of the curves of the experiments."""
    specs = [load_spec(find_spec(name)) for name in _EXPERIMENTS]
    fitted = {curve.name: spec.fitted_family(curve) for spec in specs for curve in spec.curves}
    return {name: f"{each.likelihood.name}, {each.gate.name}" for name, each in fitted.items()}


def falls(page: str) -> list[Fall]:
    """What a page says on cells of two under gates other than the Gaussian softmax.

    Parameters
    ----------
    page : str
        The text of microscope_floors.md.

    Returns
    -------
    list of Fall
        In the page's order; curves with a local slope missing are left out.
    """
    gates = _gates()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    slopes = {row[0]: row[5] for row in rows if row[1:3] == ["2", "expert"] and len(row) == 7}
    steps: list[tuple[float, float]] = []
    found = []
    for row in rows:
        if row[:3] == ["truth and fit", "cell", "theorem"]:
            ends = [step.split(" to ") for step in row[3:]]
            steps = [(float(low), float(high)) for low, high in ends]
        gate = gates.get(row[0].removesuffix(_QUIET))
        if gate is None or row[1] != "2" or not steps or len(row) != 3 + len(steps):
            continue
        n = np.array([steps[0][0], *(high for _, high in steps)])
        logs = np.cumsum(
            [0.0, *(float(row[3:][i]) * np.log(b / a) for i, (a, b) in enumerate(steps))]
        )
        found.append(Fall(row[0], gate, float(row[2]), slopes[row[0]], n, np.exp(logs)))
    return found


def draw_falls(shown: Sequence[Fall]) -> list[Figure]:
    """Pictures of at most four panels, a gate a panel.

    Parameters
    ----------
    shown : sequence of Fall
        What `falls` found.

    Returns
    -------
    list of matplotlib.figure.Figure
        The pictures.
    """
    gates = list(dict.fromkeys(fall.gate for fall in shown))
    parts = [gates[i : i + MOST_PANELS] for i in range(0, len(gates), MOST_PANELS)]
    with style():
        return [
            _picture([[fall for fall in shown if fall.gate == gate] for gate in part])
            for part in parts
        ]


def _picture(panels: Sequence[Sequence[Fall]]) -> Figure:
    rows = -(-len(panels) // 2)
    figure = Figure(figsize=(9.2, 4.3 * rows), layout="constrained")
    figure.suptitle("Errors of experts in cells of two, masses floored")
    grid = list(figure.subplots(rows, 2, squeeze=False).flat)
    for place, (ax, own) in enumerate(zip(grid, panels, strict=False)):
        _panel(ax, own)
        if place % 2 == 0:
            ax.set_ylabel("90% quantile, relative")
    for ax in grid[len(panels) :]:
        ax.set_axis_off()
    caption(figure, _CAPTION)
    return figure


def _panel(ax: Any, own: Sequence[Fall]) -> None:
    for index, fall in enumerate(own):
        drawing = {k: v for k, v in marks(index).items() if k not in ("elinewidth", "capsize")}
        label = wrapped(f"{fall.curve}: {fall.slope}", 3.6, 9.0)
        ax.plot(fall.n, fall.relative, label=label, **drawing)
    first = own[0]
    late = first.n[first.n >= 0.999e-4 * first.n[-1]]
    line = first.relative[-1] * (late / late[-1]) ** first.theory
    ax.plot(late, line, color="#666666", linestyle="--", linewidth=1.0, zorder=1,
            label=f"theorem: {first.theory:g}")  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("sample size $n$")
    plain_axes(ax)
    ax.legend(title=first.gate, fontsize="small", frameon=False, loc="lower left",
              bbox_to_anchor=(0.0, 1.0), alignment="left", borderaxespad=0.2)  # fmt: skip


def picture_names(count: int) -> list[str]:
    """File names of a number of pictures.

    Examples
    --------
    >>> picture_names(2)
    ['microscope_floors_gates.png', 'microscope_floors_gates_2.png']
    """
    return [f"microscope_floors_gates{'' if i == 0 else f'_{i + 1}'}.png" for i in range(count)]


def write(page: Path) -> list[Path]:
    """Draw the pictures of a page beside it."""
    figures = draw_falls(falls(page.read_text(encoding="utf-8")))
    paths = [page.with_name(name) for name in picture_names(len(figures))]
    for path, figure in zip(paths, figures, strict=True):
        figure.savefig(path, dpi=120)
    return paths


def main() -> None:
    """Read the page named on the command line, or the committed one, and draw."""
    for path in write(Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES / "microscope_floors.md"):
        print(path)


if __name__ == "__main__":
    main()
