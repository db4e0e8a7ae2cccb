"""Kinds whose cells are numbers by name: means and deviations along the x-axis, and their pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from moestat.rates.style import caption, marks, new_figure, plain_axes
from moestat.sweep.escape import figure_text, markdown_table, markdown_text, panel_label
from moestat.sweep.kinds.runs.outcomes import Outcomes, counts, drawable, records_by_curve, spec_of
from moestat.sweep.kinds.runs.pages import page_head, remarks, runs_of_records, runs_section
from moestat.sweep.kinds.runs.spec import RunCurve, RunsSpec
from moestat.sweep.store.record import DONE, Record
from moestat.sweep.store.store import Store
from moestat.sweep.terminal import WideTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
_PLUS_MINUS = "\N{PLUS-MINUS SIGN}"


@dataclass(frozen=True)
class Place:
    """One metric of the runs of a curve at one place on the x-axis."""

    count: int  # runs
    mean: float  # their mean
    deviation: float | None  # their standard deviation, with count - 1; None for one run
    quantiles: tuple[float, ...]  # smallest value, quartiles, largest value


@dataclass(frozen=True)
class PlacesSummary(Outcomes):
    """The results of a sweep for one curve, in addition to `Outcomes`."""

    # For each metric its values over the runs, by place.
    metrics: dict[str, dict[float, Place]] = field(repr=False)

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        return {
            **super().as_dict(),
            "metrics": {
                name: [{self.axis: x, **vars(place)} for x, place in places.items()]
                for name, places in self.metrics.items()
            },
        }


@dataclass(frozen=True)
class Metrics:
    """The numbers of a kind, and how a store of it is summarised and shown.

    Parameters
    ----------
    words : mapping of str to str
        What tables call each metric, by its name under `losses` of a record.
    shown : tuple of str
        Metrics of the figure and the short table.
    limits : mapping of str to tuple of float
        Least and largest possible value of a metric, where bars are cut; of others there is none.
    note : str
        What a page says about the numbers, after "mean ± standard deviation over runs".
    cut : str
        What a figure says about bars that are cut, after "one standard deviation to either side".
    """

    words: Mapping[str, str]
    shown: tuple[str, ...]
    limits: Mapping[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    note: str = ""
    cut: str = ""

    @property
    def shows(self) -> dict[str, Any]:
        """The functions of a `Kind` that show its results."""
        return {name: getattr(self, name) for name in ("summarise", "table", "draw", "page")}

    def summarise(self, store: Store) -> list[PlacesSummary]:
        """One summary per curve of the store's spec, in its order; it need not be complete."""
        spec, by_curve = spec_of(store, RunsSpec), records_by_curve(store)
        return [self._summary(spec, curve, by_curve[curve.name]) for curve in spec.curves]

    def _summary(
        self, spec: RunsSpec[Any], curve: RunCurve, records: Sequence[Record]
    ) -> PlacesSummary:
        done = [record for record in records if record.status == DONE]
        metrics: dict[str, dict[float, Place]] = {name: {} for name in self.words}
        for x in spec.sizes:
            losses_at = [record.losses for record in done if record.n == x]
            for name, places in metrics.items():
                if losses_at:
                    places[x] = _place([losses[name] for losses in losses_at])
        return PlacesSummary(**counts(spec, curve, records), metrics=metrics)

    def table(self, title: str, summaries: Sequence[PlacesSummary], details: bool = False) -> Table:
        """Mean and standard deviation at each place, of all metrics or of those that are shown."""
        names = tuple(self.words) if details else self.shown
        heads = ("runs", *(self.words[name] for name in names), "failed")
        table = WideTable(title, ["curve", summaries[0].axis], heads)
        for summary in summaries:
            for cells in _rows(summary, names):
                table.add_row(summary.curve.name, *cells, str(summary.failed))
        table.caption = f"mean {_PLUS_MINUS} standard deviation over runs; there are no rates"
        return table

    def draw(self, title: str, summaries: Sequence[PlacesSummary], size: str = "screen") -> Figure:
        """A figure of the metrics along the x-axis, a row each, curves of one panel in a column."""
        panels: dict[str, list[PlacesSummary]] = {}
        for summary in drawable(summaries):
            panels.setdefault(summary.curve.panel, []).append(summary)
        figure = new_figure(5.2 * len(panels), 3.6 * len(self.shown), figure_text(title))
        shape = len(self.shown), len(panels)
        grid = figure.subplots(*shape, squeeze=False, sharey="row", sharex="col")
        for column, (name, curves) in enumerate(sorted(panels.items())):
            for row, metric in enumerate(self.shown):
                axes = grid[row, column]
                for index, summary in enumerate(curves):
                    self._add_curve(axes, summary, metric, index)
                if column == 0:
                    axes.set_ylabel(self.words[metric])
                plain_axes(axes)
            grid[0, column].set_title(figure_text(panel_label(name)), loc="left")
            grid[0, column].legend(frameon=False, fontsize="small")
            grid[-1, column].set_xlabel(curves[0].axis)
        note = f"Markers: means over runs; bars: one standard deviation to either side{self.cut}."
        caption(figure, note)
        return figure

    def _add_curve(self, axes: Axes, summary: PlacesSummary, metric: str, index: int) -> None:
        places = summary.metrics[metric]
        xs, (low, high) = list(places), self.limits.get(metric, (-math.inf, math.inf))
        bars = [
            (min(d, place.mean - low), min(d, high - place.mean))
            for place in places.values()
            for d in [place.deviation or 0.0]
        ]
        axes.errorbar(
            xs,
            [place.mean for place in places.values()],
            np.transpose(bars),
            label=figure_text(summary.curve.name),
            **marks(index),
        )
        if xs[-1] >= 4 * xs[0]:
            axes.set_xscale("log", base=2 if math.log2(xs[-1] / xs[0]) <= 6 else 10)
            axes.set_xticks(xs, [f"{x:g}" for x in xs])
            axes.minorticks_off()

    def page(
        self, store: Store, summaries: Sequence[PlacesSummary], figure: str | None = None
    ) -> str:
        """The report in Markdown, with the figure of that file name if there is one."""
        spec = spec_of(store, RunsSpec)
        planned = f"Planned: {spec.replicates} runs per curve and place"
        numbers = f"mean {_PLUS_MINUS} standard deviation over runs{self.note}"
        content = " and ".join(self.words[name] for name in self.shown)
        content = f"{content[:1].upper()}{content[1:]}"
        parts = page_head(spec, summaries, planned, numbers, figure, content)
        for summary in summaries:
            curve = summary.curve
            fields = ", ".join(f"{name} = {value}" for name, value in curve.fields.items())
            parts += [f"## {markdown_text(curve.name)}", f"{fields}.", *remarks(summary)]
            head = [summary.axis, "runs", *self.words.values()]
            parts.append(markdown_table(head, _rows(summary, tuple(self.words))))
        parts += runs_section(runs_of_records(store.records(), self.shown), spec.axis)
        return "\n\n".join(parts) + "\n"


def _place(values: Sequence[float]) -> Place:
    return Place(
        count=len(values),
        mean=float(np.mean(values)),
        deviation=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        quantiles=tuple(float(q) for q in np.quantile(values, _QUANTILES)),
    )


def _rows(summary: PlacesSummary, names: Sequence[str]) -> Iterable[list[str]]:
    """For each place that has runs: the place, their number, and the metrics in words."""
    for x, place in summary.metrics[names[0]].items():
        yield [f"{x:g}", str(place.count), *(_spread(summary.metrics[name][x]) for name in names)]


def _spread(place: Place) -> str:
    if place.deviation is None:
        return f"{place.mean:.3f}"
    return f"{place.mean:.3f} {_PLUS_MINUS} {place.deviation:.3f}"
