"""Tables, figures and reports of sweeps of networks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from moestat.rates.style import caption, marks, plain_axes
from moestat.sweep.errors import SweepError
from moestat.sweep.escape import figure_text, markdown_text
from moestat.sweep.kinds.fit.figure import panel_label
from moestat.sweep.kinds.network.analysis import METRICS, NetworkSummary, Place
from moestat.sweep.kinds.network.spec import NetworkSpec
from moestat.sweep.kinds.runs.outcomes import spec_of
from moestat.sweep.kinds.runs.pages import markdown_table, page_head
from moestat.sweep.kinds.runs.single_runs import runs_of_records, runs_section
from moestat.sweep.store.store import Store
from moestat.sweep.terminal import WideTable

__all__ = ["draw_networks", "network_page", "networks_table"]

_SHOWN = ("test_accuracy", "entropy")
"""Metrics of the figure."""

_PLUS_MINUS = "\N{PLUS-MINUS SIGN}"


def networks_table(title: str, summaries: Sequence[NetworkSummary], details: bool = False) -> Table:
    """Mean and standard deviation of the metrics at each place.

    Parameters
    ----------
    title : str
        Heading.
    summaries : sequence of NetworkSummary
        The curves.
    details : bool
        All of `METRICS` instead of accuracy and entropy.

    Returns
    -------
    rich.table.Table
        The table.
    """
    names = tuple(METRICS) if details else _SHOWN
    heads = ("runs", *(METRICS[name] for name in names), "failed")
    table = WideTable(title, ["curve", summaries[0].axis], heads)
    for summary in summaries:
        for cells in _rows(summary, names):
            table.add_row(summary.curve.name, *cells, str(summary.failed))
    table.caption = f"mean {_PLUS_MINUS} standard deviation over runs; networks have no rates"
    return table


def _rows(summary: NetworkSummary, names: Sequence[str]) -> Iterable[list[str]]:
    """For each place that has runs: the place, their number, and the metrics in words."""
    for x, place in summary.metrics[names[0]].items():
        yield [f"{x:g}", str(place.count), *(_spread(summary.metrics[name][x]) for name in names)]


def _spread(place: Place) -> str:
    if place.deviation is None:
        return f"{place.mean:.3f}"
    return f"{place.mean:.3f} {_PLUS_MINUS} {place.deviation:.3f}"


def draw_networks(title: str, summaries: Sequence[NetworkSummary], size: str = "screen") -> Any:
    """Accuracy and dispatch entropy along the x-axis, with standard deviations as bars.

    Parameters
    ----------
    title : str
        Heading.
    summaries : sequence of NetworkSummary
        The curves; those of one panel share a column.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    SweepError
        If no curve has a result yet.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels: dict[str, list[NetworkSummary]] = {}
    for summary in summaries:
        if summary.drawable:
            panels.setdefault(summary.curve.panel, []).append(summary)
    if not panels:
        raise SweepError("there is nothing to plot: no cell has a result yet")
    figure = Figure(figsize=(5.2 * len(panels), 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(figure_text(title))
    grid = figure.subplots(len(_SHOWN), len(panels), squeeze=False, sharey="row", sharex="col")
    for column, (name, curves) in enumerate(sorted(panels.items())):
        for row, metric in enumerate(_SHOWN):
            axes = grid[row, column]
            for index, summary in enumerate(curves):
                _add_curve(axes, summary, metric, index)
            if column == 0:
                axes.set_ylabel(METRICS[metric])
            plain_axes(axes)
        grid[0, column].set_title(figure_text(panel_label(name)), loc="left")
        grid[0, column].legend(frameon=False, fontsize="small")
        grid[-1, column].set_xlabel(curves[0].axis)
    caption(
        figure,
        "Markers: means over runs; bars: one standard deviation to either side, cut where an"
        " accuracy would be above 1 or an entropy below 0.",
    )
    return figure


def _add_curve(axes: Any, summary: NetworkSummary, metric: str, index: int) -> None:
    places = summary.metrics[metric]
    xs = list(places)
    axes.errorbar(
        xs,
        [place.mean for place in places.values()],
        np.transpose([_bar(place, metric) for place in places.values()]),
        label=figure_text(summary.curve.name),
        **marks(index),
    )
    if xs[-1] >= 4 * xs[0]:
        axes.set_xscale("log", base=2 if math.log2(xs[-1] / xs[0]) <= 6 else 10)
        axes.set_xticks(xs, [f"{x:g}" for x in xs])
        axes.minorticks_off()


def _bar(place: Place, metric: str) -> tuple[float, float]:
    """How far a bar reaches down and up: no further than the metric can."""
    deviation = place.deviation or 0.0
    above = 1.0 - place.mean if metric == "test_accuracy" else math.inf
    return min(deviation, place.mean), min(deviation, above)


def network_page(
    store: Store, summaries: Sequence[NetworkSummary], figure: str | None = None
) -> str:
    """The report of a sweep of networks in Markdown.

    Parameters
    ----------
    store : Store
        The store.
    summaries : sequence of NetworkSummary
        Its curves.
    figure : str, optional
        File name of the figure.

    Returns
    -------
    str
        The page.
    """
    spec = spec_of(store, NetworkSpec)
    planned = f"Planned: {spec.replicates} runs per curve and place"
    numbers = (
        f"mean {_PLUS_MINUS} standard deviation over runs; accuracy and entropy are those of a"
        " test sample, routed without noise"
    )
    parts = page_head(spec, summaries, planned, numbers)
    if figure:
        parts.append(f"![Accuracy and dispatch entropy](<{figure}>)")
    for summary in summaries:
        curve = summary.curve
        fields = ", ".join(f"{name} = {value}" for name, value in curve.fields.items())
        parts += [f"## {markdown_text(curve.name)}", f"{fields}."]
        if curve.note:
            parts.append(f"> {markdown_text(curve.note)}")
        if summary.failed:
            parts.append(f"{summary.failed} of {summary.planned} cells failed.")
        head = [summary.axis, "runs", *METRICS.values()]
        parts.append(markdown_table(head, list(_rows(summary, tuple(METRICS)))))
    parts.append(runs_section(runs_of_records(store.records(), _SHOWN), spec.axis))
    return "\n\n".join(parts) + "\n"
