"""The picture of an atlas: a coloured cell for each family and kind of cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

__all__ = ["coloured_grid", "keys_of"]

Palette = Sequence[tuple[str, str]]
"""Name and colour of each kind."""


def coloured_grid(
    kinds: np.ndarray,
    palette: Palette,
    columns: Sequence[str],
    families: Sequence[str],
    *,
    head: str,
    height: float,
) -> tuple[Figure, Axes]:
    """A figure of kinds (m, c), positions in the palette, by family and column.

    `head` is the label of the columns, `height` that of the figure in inches.
    """
    figure = Figure(figsize=(7.5, height), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(
        kinds,
        cmap=ListedColormap([colour for _, colour in palette]),
        vmin=-0.5,
        vmax=len(palette) - 0.5,
        aspect="auto",
    )
    axes.set_xticks(range(len(columns)), list(columns))
    axes.set_xlabel(head)
    axes.set_yticks(range(len(families)), list(families), fontsize=5.5)
    return figure, axes


def keys_of(palette: Palette) -> list[Patch]:
    """Entries of a legend."""
    return [Patch(facecolor=colour, edgecolor="grey", label=name) for name, colour in palette]
