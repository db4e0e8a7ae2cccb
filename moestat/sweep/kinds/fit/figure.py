"""The figure of a sweep: one panel per group of curves, with the rates fitted to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from moestat.rates.plots import RateCurve, plot_rates
from moestat.rates.style import WIDTHS, caption, legend_beside, new_figure, wrapped
from moestat.sweep.errors import SweepError
from moestat.sweep.escape import figure_text, panel_label
from moestat.sweep.kinds.fit.analysis import CurveSummary
from moestat.sweep.kinds.fit.shares import share
from moestat.sweep.kinds.fit.spec import loss_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ERROR = "regression error"
_MISSED = 0.2
"""Estimated share of fits that miss their maximum from which on a legend says so."""


def draw(title: str, summaries: Sequence[CurveSummary], size: str = "screen") -> Figure:
    """Losses against sample sizes with their fitted rates.

    Curves of one panel share axes.  A single panel is as wide as two, with its legend beside it.
    Panels stand in the order of their names, in one row if there
    are three or fewer, else in two; in one column of a journal (size "single") they stand below
    each other, in two columns ("double") two by two.  Next to the losses of regression functions
    stand the regression errors of the same fits, one row per panel.  The marks are explained at the
    foot.  Draw and save it within `moestat.rates.style.style` of the same size.
    """
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    panels: dict[tuple[str, str], list[CurveSummary]] = {}
    for summary in summaries:
        if summary.n.size:
            panels.setdefault((summary.curve.panel, ""), []).append(summary)
        if summary.errors.size:
            panels.setdefault((summary.curve.panel, _ERROR), []).append(summary)
    if not panels:
        raise SweepError("there is nothing to plot: no estimate enters a rate yet")
    rows, columns = _grid(panels, size)
    tallest = max(len(curves) for curves in panels.values())
    figure_width = WIDTHS[size]
    width = 4.8 if figure_width is None else figure_width / columns
    height = 0.75 * width + (0.22 if size == "screen" else 0.3) * (tallest + 2)
    alone = size == "screen" and len(panels) == 1
    if alone:
        width, height = 2.0 * width, max(width, 0.4 * (tallest + 2))
    heading = wrapped(figure_text(title), width * columns, 1.2 * rcParams["font.size"])
    figure = new_figure(width * columns, height * rows, heading)
    weight = "normal" if "cmr10" in rcParams["font.family"] else "bold"  # cmr10 has no other
    for position, ((name, what), curves) in enumerate(sorted(panels.items()), 1):
        axes = figure.add_subplot(rows, columns, position)
        marks = _error_curve if what else _rate_curve
        plot_rates([marks(summary) for summary in curves], ax=axes)
        axes.set_ylabel("regression error $L_2(\\mu)$" if what else _loss_axis(curves))
        # The legend stands outside the axes: a title there hides no data and no other label.
        legend = legend_beside(axes, 0.36 * width) if alone else axes.get_legend()
        assert legend is not None
        title = ": ".join(part for part in (panel_label(name), what) if part)
        legend.set_title(figure_text(title), prop=FontProperties(weight=weight))
        legend.set_alignment("left")
    caption(figure, _caption(summaries))
    return figure


def _grid(panels: Collection[tuple[str, str]], size: str) -> tuple[int, int]:
    """Rows and columns of panels."""
    if any(what for _, what in panels) and size != "single":
        rows = len({name for name, _ in panels})
    elif WIDTHS[size] is not None:
        rows = len(panels) if size == "single" else -(-len(panels) // 2)
    else:
        rows = 1 if len(panels) <= 3 else 2
    return rows, -(-len(panels) // rows)


_WORDS = {"softmax", "gaussian", "competition", "top", "dense", "orbit", "identified"}
"""Words in names of the losses of papers, beside their symbols."""


def _loss_axis(curves: Sequence[CurveSummary]) -> str:
    """Symbols and names of the losses of a panel."""
    names = dict.fromkeys(loss_label(summary.curve.loss) for summary in curves)
    # One line for each loss: names of several are longer than the axis.
    text = ",\n".join(f"{s} ({name})" if (s := loss_symbol(name)) else name for name in names)
    return f"Voronoi loss {text}" if len(names) == 1 else text


def loss_symbol(label: str) -> str:
    r"""The symbol of a loss in its paper's formulas; empty for a loss that no paper has.

    Examples
    --------
    >>> print(loss_symbol("softmax-D2r, r = 2"), loss_symbol("competition-top-D"))
    $\mathcal{D}_{2r}$ $\mathcal{D}$
    >>> loss_symbol("D1-quartic")
    ''
    """
    parts = label.partition(",")[0].split("-")
    if any(part not in _WORDS and not re.fullmatch(r"[DL]\d*r?", part) for part in parts):
        return ""
    for part in parts:
        if match := re.fullmatch(r"([DL])(\d*r?)", part):
            index = f"_{{{match[2]}}}" if match[2] else ""
            return rf"$\mathcal{{{match[1]}}}{index}$"
    return ""


def _caption(summaries: Sequence[CurveSummary]) -> str:
    """An explanation of the marks that occur in the figure."""
    parts = [
        "Markers: geometric means, which the solid lines are fitted to; bars: their 95% intervals"
        " over replicates"
    ]
    if any(summary.curve.theory is not None for summary in summaries):
        parts.append("dashed: slope of the theorem")
    if any(summary.curve.published is not None for summary in summaries):
        parts.append("dotted: slope that the paper reports")
    if any((summary.evidence.missed or 0.0) > _MISSED for summary in summaries):
        parts.append("below the maximum: estimated share of fits with a higher one elsewhere")
    if any(summary.uncertified[0].size for summary in summaries):
        parts.append("crosses: uncertified fits")
    if not all(summary.curve.require_certificate for summary in summaries):
        parts.append("open markers: uncertified fits enter the rate")
    return "; ".join(parts) + "."


def _error_curve(summary: CurveSummary) -> RateCurve:
    return RateCurve(
        label=figure_text(summary.curve.name),
        n=summary.n,
        loss=summary.errors,
        rate=summary.regression_error,
        replay=not summary.curve.require_certificate,
    )


def _rate_curve(summary: CurveSummary) -> RateCurve:
    doubts = [f"{summary.left_out} uncertified"] if summary.left_out else []
    if 2 * summary.on_bound > summary.done:
        doubts.append(f"{share(summary.on_bound, summary.done)} on a bound")
    if summary.evidence.missed is not None and summary.evidence.missed > _MISSED:
        doubts.append(f"{summary.evidence.missed:.0%} below the maximum")
    suffix = f" ({', '.join(doubts)})" if doubts else ""
    return RateCurve(
        label=figure_text(summary.curve.name) + suffix,
        n=summary.n,
        loss=summary.loss,
        rate=summary.rate,
        n_failed=summary.failed,
        published=summary.curve.published,
        uncertified=summary.uncertified if summary.uncertified[0].size else None,
        replay=not summary.curve.require_certificate,
    )
