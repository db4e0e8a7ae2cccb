"""New axes to draw on, which notebooks show."""

from __future__ import annotations

from typing import Any


def new_axes(width: float = 5.0, height: float = 3.5, panels: int = 1, **options: Any) -> Any:
    """Axes of a new figure of pyplot of so many inches; an array (panels,) of several, in a row.

    Options are those of `matplotlib.pyplot.subplots`.
    """
    from matplotlib import pyplot

    size = (width, height)
    return pyplot.subplots(1, panels, figsize=size, layout="constrained", **options)[1]
