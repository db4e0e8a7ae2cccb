"""Pictures of the floored microscopes under other gates, from the results kept beside their page.

    python -m experiments.pages.floors_gates [RESULT]

reads microscope_floors.json and writes microscope_floors_gates.png and, since a picture has at most
four panels, microscope_floors_gates_2.png beside it: the 90% quantile of the errors of experts in
cells of two.
"""

from __future__ import annotations

import json
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

__all__ = ["MOST_PANELS", "Fall", "draw_falls", "keep", "picture_names", "write"]

MOST_PANELS = 4
_CAPTION = (
    "Markers: the 90% quantile over data sets of the largest error of an expert in a cell of two;"
    " numbers: its slope over the last four decades with a 95% bootstrap interval; dashed, in each"
    " curve's colour: slope of the theorem, from its marker at the beginning of these decades."
)
_RELATIVE = (
    "  Quantiles are over those at the smallest size: this moves curves up and down and changes no"
    " slope."
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
    n, quantile : ndarray of shape (S,)
        Sizes, and the 90% quantile of the errors there.
    """

    curve: str
    gate: str
    theory: float
    slope: str
    n: FloatArray
    quantile: FloatArray


def keep(falls: Sequence[Fall], path: Path) -> Path:
    """Keep what the pictures show, as JSON, and return its path."""
    kept = {
        "relative": False,
        "falls": [
            {**vars(each), "n": each.n.tolist(), "quantile": each.quantile.tolist()}
            for each in falls
        ],
    }
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def draw_falls(shown: Sequence[Fall], relative: bool = False) -> list[Figure]:
    """Pictures of at most four panels, a gate a panel.

    Parameters
    ----------
    shown : sequence of Fall
        The curves.
    relative : bool
        Whether quantiles are over those at the smallest size.

    Returns
    -------
    list of matplotlib.figure.Figure
        The pictures.
    """
    gates = list(dict.fromkeys(fall.gate for fall in shown))
    parts = [gates[i : i + MOST_PANELS] for i in range(0, len(gates), MOST_PANELS)]
    with style():
        return [
            _picture([[fall for fall in shown if fall.gate == gate] for gate in part], relative)
            for part in parts
        ]


def _picture(panels: Sequence[Sequence[Fall]], relative: bool) -> Figure:
    rows = -(-len(panels) // 2)
    figure = Figure(figsize=(9.2, 4.3 * rows), layout="constrained")
    figure.suptitle("Errors of experts in cells of two, masses floored")
    grid = list(figure.subplots(rows, 2, squeeze=False).flat)
    for place, (ax, own) in enumerate(zip(grid, panels, strict=False)):
        _panel(ax, own)
        if place % 2 == 0:
            ax.set_ylabel(f"90% quantile{', relative to the first' if relative else ''}")
    for ax in grid[len(panels) :]:
        ax.set_axis_off()
    caption(figure, _CAPTION + (_RELATIVE if relative else ""))
    return figure


def _panel(ax: Any, own: Sequence[Fall]) -> None:
    for index, fall in enumerate(own):
        drawing = {k: v for k, v in marks(index).items() if k not in ("elinewidth", "capsize")}
        label = wrapped(f"{fall.curve}: {fall.slope}", 3.6, 9.0)
        ax.plot(fall.n, fall.quantile, label=label, **drawing)
        late = fall.n[fall.n >= 0.999e-4 * fall.n[-1]]
        line = fall.quantile[fall.n == late[0]] * (late / late[0]) ** fall.theory
        ax.plot(late, line, color=drawing["color"], linestyle="--", linewidth=1.0, zorder=1)
    ax.plot([], [], color="#666666", linestyle="--", label=f"theorem: {own[0].theory:g}")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("sample size $n$")
    plain_axes(ax)
    ax.legend(title=own[0].gate, fontsize="small", frameon=False, loc="lower left",
              bbox_to_anchor=(0.0, 1.0), alignment="left", borderaxespad=0.2)  # fmt: skip


def picture_names(count: int) -> list[str]:
    """File names of a number of pictures.

    Examples
    --------
    >>> picture_names(2)
    ['microscope_floors_gates.png', 'microscope_floors_gates_2.png']
    """
    return [f"microscope_floors_gates{'' if i == 0 else f'_{i + 1}'}.png" for i in range(count)]


def write(kept: Path) -> list[Path]:
    """Draw the pictures of kept results beside them."""
    result = json.loads(kept.read_text(encoding="utf-8"))
    falls = [
        Fall(**{**each, "n": np.array(each["n"]), "quantile": np.array(each["quantile"])})
        for each in result["falls"]
    ]
    figures = draw_falls(falls, result["relative"])
    paths = [kept.with_name(name) for name in picture_names(len(figures))]
    for path, figure in zip(paths, figures, strict=True):
        figure.savefig(path, dpi=120)
    return paths


def main() -> None:
    """Draw the results named on the command line, or the committed ones."""
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES / "microscope_floors.json"
    for path in write(given):
        print(path)


if __name__ == "__main__":
    main()
