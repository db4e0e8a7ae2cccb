"""Figures: log-log plots of losses against sample sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from moestat.base.door import door
from moestat.base.figures import new_axes
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, check_kind, short
from moestat.rates.rate import RateCurve
from moestat.rates.style import COLOURS, INK, MARKERS, legend_above, plain_axes, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHIFT = 1.03
"""Curves stand apart by this factor in n, so that equal ones do not hide each other."""


def _label(curve: RateCurve) -> str:
    text = curve.label
    if curve.rate is not None:
        text += f": $n^{{{curve.rate.slope:.2f}}}$"
        low, high = curve.rate.interval
        if not math.isnan(low):
            numbers = f"[{low:.2f},\N{NO-BREAK SPACE}{high:.2f}]"  # on one line
            text += " " + numbers.replace("-", "\N{MINUS SIGN}")
    if curve.published is not None:
        text += f", paper $n^{{{curve.published:g}}}$"
    if curve.n_failed:
        text += f" ({curve.n_failed} failed)"
    return text


def _values(
    curve: RateCurve, n: ArrayLike, loss: ArrayLike, fewest: int = 0
) -> tuple[FloatArray, FloatArray]:
    sizes = as_floats("n", n, (None,))
    values = as_floats("loss", loss, sizes.shape)
    if sizes.size < fewest or np.any(sizes <= 0) or np.any(values <= 0):
        raise ValueError(f"curve {curve.label!r} must have positive n and loss, and at least one")
    return sizes, values


def _points(curve: RateCurve) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sizes (M,), geometric mean losses (M,) and the lengths of their intervals (2, M)."""
    n, loss = _values(curve, curve.n, curve.loss, 1)
    sizes = np.unique(n)
    groups = [np.log(loss[n == size]) for size in sizes]
    means = np.array([group.mean() for group in groups])
    half = np.array([_half_width(group) for group in groups])
    centre = np.exp(means)
    return sizes, centre, np.stack([centre - np.exp(means - half), np.exp(means + half) - centre])


def _half_width(logs: FloatArray) -> float:
    """Half of the 95% interval of a mean; 0 for a single value."""
    if logs.size < 2:
        return 0.0
    quantile = float(stdtrit(logs.size - 1, 0.975))
    return quantile * float(logs.std(ddof=1)) / math.sqrt(logs.size)


def _widen(set_limits: Callable[[float, float], object], values: Sequence[FloatArray]) -> None:
    """Give an axis a width where all values are one, on which matplotlib would warn or fail."""
    low, high = np.min(np.concatenate(values)), np.max(np.concatenate(values))
    if low == high:
        set_limits(low / 2.0, high * 2.0)


def _draw_curve(
    ax: Axes,
    curve: RateCurve,
    points: tuple[FloatArray, FloatArray, FloatArray],
    shift: float,
    marker: tuple[str, str],
    label: str,
) -> None:
    """Markers, bars and lines of one curve, its markers moved by the factor `shift`."""
    (sizes, mean, bars), (colour, shape) = points, marker
    ax.errorbar(
        sizes * shift,
        mean,
        yerr=bars,
        color=colour,
        marker=shape,
        markersize=5.0,
        markeredgecolor=colour if curve.replay else "white",
        markerfacecolor="white" if curve.replay else colour,
        markeredgewidth=0.9 if curve.replay else 0.6,
        linestyle="none",
        elinewidth=1.1,
        capsize=2.0,
        label=label,
        zorder=3,
    )
    if curve.rate is not None:
        line = np.exp(curve.rate.intercept + curve.rate.slope * np.log(sizes))
        ax.plot(sizes, line, color=colour, linewidth=1.2, zorder=2)
    if curve.published is not None:
        at = sizes.size // 2
        line = mean[at] * (sizes / sizes[at]) ** curve.published
        ax.plot(sizes, line, color=colour, linestyle=":", linewidth=1.2, zorder=2)
    if curve.uncertified is not None:
        n, loss = _values(curve, *curve.uncertified)
        ax.plot(n * shift, loss, "x", color=colour, alpha=0.5, markersize=3.5, zorder=1)


@door()
def plot_rates(curves: Sequence[RateCurve], ax: Axes | None = None) -> Axes:
    """Plot losses against sample sizes on log-log axes, with fitted rates.

    Markers are geometric means of the losses; bars are their 95% intervals over replicates; solid
    lines are the fitted rates.  Slopes of theorems are dashed grey lines through the first marker,
    and published slopes are dotted lines through the middle one.  Each fit without a certificate is
    a cross; a curve whose rate includes such fits has open markers.  Curves are shifted slightly in
    n.  The legend is above the axes, in one column, so that it fits to panels side by side.

    Parameters
    ----------
    curves : sequence of RateCurve
        What to draw, in the order of the legend.
    ax : matplotlib Axes, optional
        Where to draw; a new figure of pyplot by default.

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
    from matplotlib import rcParams
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    curves = list(curves)
    if not curves:
        raise ValueError("curves must hold at least one RateCurve")
    points = [_points(curve) for curve in curves]
    axes: Axes = new_axes(6.4, 4.4 + 0.2 * len(curves)) if ax is None else ax
    check_kind("ax", axes, "has_data", "axes of matplotlib")
    if not axes.has_data():
        _widen(axes.set_xlim, [sizes for sizes, _, _ in points])
        _widen(axes.set_ylim, [np.concatenate([mean, mean + bars[1]]) for _, mean, bars in points])
    axes.set_xscale("log")
    axes.set_yscale("log")
    # About one decade wide matplotlib labels 3, 4 and 6, too, one on top of the other.
    axes.xaxis.set_minor_locator(LogLocator(subs=(2.0, 4.0)))
    figure = axes.figure
    is_root = isinstance(figure, Figure)
    width = figure.get_size_inches()[0] if is_root else figure.bbox.width / figure.dpi
    inches = axes.get_position().width * width - 0.5
    for index, (curve, (sizes, mean, bars)) in enumerate(zip(curves, points, strict=True)):
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        shift = _SHIFT ** (index - (len(curves) - 1) / 2) if sizes.size > 1 else 1.0
        label = wrapped(_label(curve), inches, 0.83 * rcParams["font.size"])
        _draw_curve(axes, curve, (sizes, mean, bars), shift, (colour, marker), label)
    _draw_theorems(axes, curves, points)
    axes.set_xlabel("sample size $n$", color=INK)
    axes.set_ylabel("loss", color=INK)
    plain_axes(axes)
    # Steep curves leave no corner inside that is free in every figure.
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda at: labels[at].startswith("theorem: "))
    legend_above(axes, [handles[at] for at in order], [labels[at] for at in order])
    return axes


def _draw_theorems(
    ax: Axes,
    curves: Sequence[RateCurve],
    points: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
) -> None:
    """Draw the slope of each curve's theorem through its first marker; name each slope once."""
    named: set[float] = set()
    for curve, (sizes, mean, _) in zip(curves, points, strict=True):
        theory = None if curve.rate is None else curve.rate.theory
        if theory is None:
            continue
        ax.plot(
            sizes,
            mean[0] * (sizes / sizes[0]) ** theory,
            color="#666666",
            linestyle="--",
            linewidth=0.9,
            label="_" if theory in named else f"theorem: $n^{{{theory:g}}}$",
            zorder=1,
        )
        named.add(theory)


_UNDATED = {"png": None, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Metadata by format."""


@door()
def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure as png, pdf or svg, without a display.

    The suffix, .png, .pdf or .svg, decides the format.  Returns the path.
    """
    from matplotlib import rc_context

    target = Path(path)
    kind = target.suffix.lower().lstrip(".")
    if kind not in _UNDATED:
        raise ValueError(f"path must end in .png, .pdf or .svg, got {short(target.name)}")
    # TrueType text stays text in a pdf; without a date the same figure gives the same bytes.
    with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "moestat"}):
        metadata = _UNDATED[kind]
        figure.savefig(target, format=kind, dpi=150, bbox_inches="tight", metadata=metadata)
    return target
