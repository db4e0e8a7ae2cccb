"""Figures: log-log plots of losses against sample sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_floats
from moestat.rates.rate import RateCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["RateCurve", "plot_rates", "save_figure"]

# Okabe and Ito's colours, told apart under every common colour blindness; the darkest first.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = ("o", "s", "D", "^", "v", "P", "X")
_INK = "#333333"


def _label(curve: RateCurve) -> str:
    text = curve.label
    if curve.rate is not None:
        text += f": $n^{{{curve.rate.slope:.2f}}}$"
        low, high = curve.rate.interval
        if not math.isnan(low):
            text += f" [{low:.2f}, {high:.2f}]".replace("-", "\N{MINUS SIGN}")
    if curve.n_failed:
        text += f" ({curve.n_failed} failed)"
    return text


def _points(curve: RateCurve) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sizes (M,), mean losses (M,) and the lengths of the error bars (2, M)."""
    n = as_floats("n", curve.n, (None,))
    loss = as_floats("loss", curve.loss, n.shape)
    if n.size == 0 or np.any(n <= 0) or np.any(loss <= 0):
        raise ValueError(f"curve {curve.label!r} must have positive n and loss, and at least one")
    sizes = np.unique(n)
    groups = [loss[n == size] for size in sizes]
    mean = np.array([group.mean() for group in groups])
    smallest = np.array([group.min() for group in groups])
    bar = np.array([2.0 * group.std(ddof=1) if group.size > 1 else 0.0 for group in groups])
    # A bar that reaches 0 has no place on a log axis: it ends at half the smallest loss instead.
    below = np.minimum(bar, mean - smallest / 2.0)
    return sizes, mean, np.stack([below, bar])


def _new_axes(n_curves: int) -> Axes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6 + 0.2 * n_curves), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def _widen(set_limits: Callable[[float, float], Any], values: Sequence[FloatArray]) -> None:
    """Give an axis a width where all values are one, on which matplotlib would warn or fail."""
    low, high = np.min(np.concatenate(values)), np.max(np.concatenate(values))
    if low == high:
        set_limits(low / 2.0, high * 2.0)


def plot_rates(curves: Sequence[RateCurve], ax: Any = None) -> Axes:
    """Losses against sample sizes on log-log axes, with fitted rates.

    Markers are mean losses; bars are two empirical standard deviations over replicates (they end
    no lower than half the smallest loss); dash-dotted lines are the fitted rates.
    A line is fitted to log losses, so it runs through their geometric means, somewhat below the
    markers where replicates scatter widely.  The legend stands above the axes, in one column, so
    that it fits panels side by side.

    Parameters
    ----------
    curves : sequence of RateCurve
        What to draw, in the order of the legend.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default, made without touching the backend or pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; ``.figure`` goes to `save_figure`.

    Raises
    ------
    ValueError
        If there is no curve, or one has losses or sizes that are not positive.

    Notes
    -----
    The layout of Pham et al. (2026), Fig. 1.

    Examples
    --------
    >>> from moestat.rates.rate import fit_rate
    >>> n, loss = [100, 100, 1000, 1000], [0.11, 0.09, 0.03, 0.034]
    >>> ax = plot_rates([RateCurve("sigmoid", n, loss, fit_rate(n, loss))])
    >>> ax.get_xscale(), ax.get_xlabel()
    ('log', 'sample size $n$')
    """
    from matplotlib.ticker import LogLocator

    curves = list(curves)
    if not curves:
        raise ValueError("curves must hold at least one RateCurve")
    points = [_points(curve) for curve in curves]
    ax = _new_axes(len(curves)) if ax is None else ax
    if not ax.has_data():
        _widen(ax.set_xlim, [sizes for sizes, _, _ in points])
        _widen(ax.set_ylim, [np.concatenate([mean, mean + bars[1]]) for _, mean, bars in points])
    ax.set_xscale("log")
    ax.set_yscale("log")
    # About one decade wide matplotlib labels 3, 4 and 6, too, one on top of the other.
    ax.xaxis.set_minor_locator(LogLocator(subs=(2.0, 4.0)))
    for index, (curve, (sizes, mean, bars)) in enumerate(zip(curves, points, strict=True)):
        colour = _COLOURS[index % len(_COLOURS)]
        ax.errorbar(
            sizes,
            mean,
            yerr=bars,
            color=colour,
            marker=_MARKERS[index % len(_MARKERS)],
            markersize=5.5,
            markeredgecolor="white",
            markeredgewidth=0.7,
            linewidth=0.9,
            ecolor=(colour, 0.5),
            elinewidth=1.1,
            capsize=2.5,
            label=_label(curve),
            zorder=3,
        )
        if curve.rate is not None:
            line = np.exp(curve.rate.intercept + curve.rate.slope * np.log(sizes))
            ax.plot(sizes, line, color=colour, linestyle="-.", linewidth=1.8, zorder=2)
    ax.set_xlabel("sample size $n$", color=_INK)
    ax.set_ylabel("loss", color=_INK)
    ax.grid(True, which="major", color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#888888")
    ax.tick_params(which="both", color="#888888", labelcolor=_INK)
    # Above the axes: steep error bars leave no corner inside that is free in every figure.
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.01),
        borderaxespad=0.0,
        fontsize="small",
        frameon=False,
        labelcolor=_INK,
    )
    return ax


_UNDATED = {"png": None, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Metadata by format."""


def save_figure(figure: Figure, path: Any) -> Path:
    """Write a figure as png, pdf or svg, without a display.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : path-like
        Where to; the suffix, .png, .pdf or .svg, decides the format.

    Returns
    -------
    pathlib.Path
        The path written.

    Raises
    ------
    ValueError
        If the suffix is another one.

    Examples
    --------
    >>> import tempfile
    >>> ax = plot_rates([RateCurve("loss", [10, 100], [1.0, 0.3])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(ax.figure, folder + "/rates.pdf").name
    'rates.pdf'
    """
    from matplotlib import rc_context

    target = Path(path)
    kind = target.suffix.lower().lstrip(".")
    if kind not in _UNDATED:
        raise ValueError(f"path must end in .png, .pdf or .svg, got {target.name!r}")
    # TrueType text stays text in a pdf; without a date the same figure gives the same bytes.
    with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "moestat"}):
        metadata = _UNDATED[kind]
        figure.savefig(target, format=kind, dpi=120, bbox_inches="tight", metadata=metadata)
    return target
