"""New axes to draw on, which notebooks show."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.types import FloatArray

WIDTH, HEIGHT = 5.0, 3.5
"""Inches of one panel."""

CURVE_POINTS = 200
"""Points of a curve: three pixels apart in a panel of `WIDTH`."""

REFERENCE: dict[str, Any] = {"linewidth": 0.8}
"""Style of lines that stand for no data: as wide as the frame."""


def new_axes(width: float = WIDTH, height: float = HEIGHT, panels: int = 1, **options: Any) -> Any:
    """Axes of a new figure of pyplot of so many inches; an array (panels,) of several, in a row.

    Options are those of `matplotlib.pyplot.subplots`.
    """
    from matplotlib import pyplot

    size = (width, height)
    return pyplot.subplots(1, panels, figsize=size, layout="constrained", **options)[1]


def spread_out(count: int) -> FloatArray:
    """Numbers (count,) between -1/2 and 1/2, neighbours far apart: multiples of the golden ratio.

    Examples
    --------
    >>> spread_out(3).round(2).tolist()
    [-0.5, 0.12, -0.26]
    """
    return np.arange(count) * (5**0.5 - 1) / 2 % 1.0 - 0.5
