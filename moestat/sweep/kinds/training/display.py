"""Tables, figures and reports of sweeps of training runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from moestat.rates.rate import holm
from moestat.rates.style import COLOURS, caption, marks, new_figure, plain_axes
from moestat.sweep.escape import figure_text, markdown_table, markdown_text
from moestat.sweep.kinds.runs.outcomes import drawable, spec_of
from moestat.sweep.kinds.runs.pages import page_head, runs_of_records, runs_section
from moestat.sweep.kinds.training.analysis import (
    METRICS,
    Estimate,
    TrainingSummary,
    as_called_now,
    p_value,
)
from moestat.sweep.kinds.training.spec import TrainingSpec
from moestat.sweep.store.store import Store
from moestat.sweep.terminal import WideTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
_MOST_CURVES = 10  # more learning curves than that are a thicket
_MOST_PANELS = 4  # more are too small in print; the page's tables have all metrics
_LONG_NAME = 24  # letters of a name that a legend has room for beside the curves
_SHIFT = 1.06  # curves stand apart by this factor in n, so that their bars do not hide each other
_DASHES = ("-", "--", "-.", ":")
"""Learning curves have no markers: dashes tell them apart in grey."""
_BRIEF = ("excess", "difference", "overlap", "change_rate")
_NOTE = (
    f"mean {_PLUS_MINUS} half-width of the 95% t interval over runs; the difference is paired,"
    " run by run, and to the first method of the panel"
)


def _format(value: Estimate | None) -> str:
    if value is None:
        return ""
    if value.halfwidth is None:
        return f"{value.mean:.4f}"
    return f"{value.mean:.4f} {_PLUS_MINUS} {value.halfwidth:.4f}"


def _format_p(value: float | None) -> str:
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _places(summary: TrainingSummary) -> list[float]:
    """The places that a table shows: of a grid the best one."""
    if summary.axis == "choice":
        return [] if summary.best is None else [summary.best]
    return list(summary.metrics)


def _names(summaries: Sequence[TrainingSummary], names: Sequence[str]) -> list[str]:
    """The metrics that some run has."""
    has = {
        name
        for summary in summaries
        for estimates in summary.metrics.values()
        for name in estimates
    }
    return [name for name in names if name in has]


def trainings_table(
    title: str, summaries: Sequence[TrainingSummary], details: bool = False
) -> Table:
    """Estimates of the metrics at each place, or at the best point of a grid.

    With `details` those of all `METRICS` instead of a few.
    """
    names = _names(summaries, tuple(METRICS) if details else _BRIEF)
    heads = ("runs", *(METRICS[name] for name in names), "failed")
    table = WideTable(title, ["method", summaries[0].axis], heads)
    for summary in summaries:
        for x in _places(summary):
            estimates = summary.metrics[x]
            cells = [_format(estimates.get(name)) for name in names]
            runs = str(estimates["excess"].count)
            table.add_row(summary.curve.name, f"{x:g}", runs, *cells, str(summary.failed))
    table.caption = _NOTE
    return table


def draw_trainings(
    title: str, summaries: Sequence[TrainingSummary], size: str = "screen"
) -> Figure:
    """Metrics by method or along the x-axis, and the learning curves, in at most four panels."""
    summaries = drawable(summaries)
    first = "expert_error" if _names(summaries, ["expert_error"]) else "excess"
    by_method = [
        name for name in (first, "difference", "overlap", "swap") if _names(summaries, [name])
    ]
    learning = len(summaries) <= _MOST_CURVES and "loss" in summaries[0].curves
    by_method = by_method[: _MOST_PANELS - learning]
    rows = sum(len(_places(summary)) for summary in summaries)
    lines = -(-(len(by_method) + learning) // 2)
    figure = new_figure(9.2, max(3.4, 0.28 * rows) * lines, figure_text(title))
    grid = list(figure.subplots(lines, 2, squeeze=False).flat)
    for place, (axes, name) in enumerate(zip(grid, by_method, strict=False)):
        plain_axes(axes)
        heading = METRICS[name] + (" (line: chance)" if name == "overlap" else "")
        if summaries[0].axis == "n":
            _add_places(axes, summaries, name, heading)
            continue
        _add_methods(axes, summaries, name)
        axes.set_title(heading, fontsize="medium")
        if place % 2:
            axes.tick_params(labelleft=False)
    if learning:
        _add_losses(grid[len(by_method)], summaries)
    for axes in grid[len(by_method) + learning :]:
        axes.set_axis_off()
    caption(figure, "Markers and lines: means over runs; bars and bands: their 95% t intervals.")
    return figure


def _add_methods(axes: Axes, summaries: Sequence[TrainingSummary], name: str) -> None:
    rows = [row for summary in reversed(summaries) for row in _rows(summary)]
    for place, (_, estimates, chance) in enumerate(rows):
        if name in estimates:
            value = estimates[name]
            axes.errorbar(value.mean, place, xerr=value.halfwidth, **marks(0))
            if name == "overlap":
                axes.plot([chance, chance], [place - 0.5, place + 0.5], color="0.4", linewidth=1)
    if name == "difference":
        axes.axvline(0.0, color="0.4", linewidth=1)
    axes.locator_params(axis="x", nbins=5)
    axes.set_ylim(-0.5, len(rows) - 0.5)
    axes.set_yticks(range(len(rows)), [label for label, *_ in rows])


def _rows(summary: TrainingSummary) -> list[tuple[str, Mapping[str, Estimate], float]]:
    if summary.axis == "choice":
        return [(summary.curve.name, summary.metrics[x], summary.chance) for x in _places(summary)]
    return [
        (f"{summary.curve.name}, {summary.axis} = {x:g}", summary.metrics[x], summary.chance)
        for x in reversed(_places(summary))
    ]


def _add_places(axes: Axes, summaries: Sequence[TrainingSummary], name: str, heading: str) -> None:
    for index, summary in enumerate(summaries):
        apart = _SHIFT ** (index - (len(summaries) - 1) / 2)
        values = {x * apart: value[name] for x, value in summary.metrics.items() if name in value}
        means = [value.mean for value in values.values()]
        spread = [value.halfwidth or 0.0 for value in values.values()]
        axes.errorbar(
            list(values), means, spread, label=figure_text(summary.curve.name), **marks(index)
        )
    for chance in {summary.chance for summary in summaries} if name == "overlap" else ():
        axes.axhline(chance, color="0.4", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("sample size $n$")
    # Above the axes: bars reach into every corner inside.
    axes.legend(
        title=heading,
        ncols=2,
        fontsize="small",
        frameon=False,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        alignment="left",
        borderaxespad=0.2,
    )


def _add_losses(axes: Axes, summaries: Sequence[TrainingSummary]) -> None:
    """The validation loss along the steps."""
    positive = True
    for index, summary in enumerate(summaries):
        if "loss" not in summary.curves:
            continue
        steps, values = summary.curves["step"], summary.curves["loss"]
        means = [value.mean for value in values]
        low = [value.mean - (value.halfwidth or 0.0) for value in values]
        high = [value.mean + (value.halfwidth or 0.0) for value in values]
        colour, label = COLOURS[index % len(COLOURS)], figure_text(summary.curve.name)
        axes.plot(steps, means, label=label, color=colour, linestyle=_DASHES[index % len(_DASHES)])
        axes.fill_between(steps, low, high, alpha=0.15, color=colour, linewidth=0)
        positive &= min(low) > 0
    if positive:
        axes.set_yscale("log")
    axes.set_title("validation loss", fontsize="medium")
    axes.set_xlabel("step")
    plain_axes(axes)
    longest = max(len(summary.curve.name) for summary in summaries)
    size = "small" if longest <= _LONG_NAME else "xx-small"
    axes.legend(fontsize=size, frameon=False, loc="upper right")


def training_page(
    store: Store, summaries: Sequence[TrainingSummary], figure: str | None = None
) -> str:
    """The report in Markdown, with the figure of that file name if there is one."""
    spec = spec_of(store, TrainingSpec)
    planned = f"{spec.replicates} runs per method and place"
    parts = page_head(spec, summaries, planned, _NOTE, figure)
    names = _names(summaries, tuple(METRICS))
    if spec.axis == "choice":
        parts.append("## At the point of the grid with the least validation loss")
        grid = [[f"{value:g}" for value in row] for row in zip(*spec.values.values(), strict=True)]
        at = dict(zip(spec.sizes, grid, strict=True))
        p_values = {
            summary.curve.name: p_value(summary.metrics[x]["difference"])
            for summary in summaries
            for x in _places(summary)
            if "difference" in summary.metrics[x]
        }
        adjusted = dict(zip(p_values, holm([*p_values.values()]), strict=True))
        rows = [
            [
                summary.curve.name,
                *at[x],
                *(_format(summary.metrics[x].get(n)) for n in names),
                _format_p(adjusted.get(summary.curve.name)),
            ]
            for summary in summaries
            for x in _places(summary)
        ]
        heads = ["method", *spec.values, *(METRICS[n] for n in names), "p of the difference"]
        parts.append(markdown_table(heads, rows))
        parts.append(
            f"p-values are of t tests, by Holm's rule for all {len(adjusted)} differences."
        )
        shares = sorted({f"{summary.chance:.4g}" for summary in summaries})
        parts.append(f"Expected overlap of random choices, K/N: {', '.join(shares)}.")
        parts += ["The grid, the same for every method:", markdown_table(list(spec.values), grid)]
        parts.append("## All points")
    rows = [
        [summary.curve.name, f"{x:g}", *(_format(estimates.get(name)) for name in names)]
        for summary in summaries
        for x, estimates in summary.metrics.items()
    ]
    parts.append(markdown_table(["method", spec.axis, *(METRICS[name] for name in names)], rows))
    for summary in summaries:
        name = markdown_text(summary.curve.name)
        if summary.failed:
            parts.append(f"{name}: {summary.failed} of {summary.planned} failed.")
        if summary.curve.note:
            parts.append(f"> {name}: {markdown_text(summary.curve.note)}")
    parts += runs_section(runs_of_records(map(as_called_now, store.records()), names), spec.axis)
    return "\n\n".join(parts) + "\n"
