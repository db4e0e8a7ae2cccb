"""Tables, figures and reports of sweeps of inference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from moestat.rates.style import caption, legend_above, marks, new_figure, plain_axes, wrapped
from moestat.sweep.escape import figure_text, markdown_table, markdown_text
from moestat.sweep.kinds.inference.analysis import InferenceSummary, Share
from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.kinds.inference.spec import InferenceSpec
from moestat.sweep.kinds.runs.outcomes import drawable, spec_of
from moestat.sweep.kinds.runs.pages import page_head, remarks
from moestat.sweep.store.store import Store
from moestat.sweep.terminal import WideTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BAND = {0.95: (0.93, 0.97), 0.05: (0.03, 0.07)}
"""Shares that count as nominal."""

_FOOT = "Bars: 95% intervals over replicates (Wilson); curves stand slightly apart"
_NOMINAL = "; line and band: nominal share and what counts as nominal"

_WORST = ", then those of the worst and the best"
_MISSING = "; missing: no certified fit or no standard error"
_SHARE = (
    "share and its 95% interval over replicates (Wilson); the share of an interval is over all"
    " parameters or places"
)


def _rows(summary: InferenceSummary) -> Iterable[list[str]]:
    for (name, label), places in summary.shares.items():
        for x, share in places.items():
            yield [
                label,
                f"{x:g}",
                str(share.count),
                _percent(share),
                _item(share.lowest, share),
                _item(share.highest, share),
                f"{100 * share.missing:.1f}%",
                _verdict(name, share),
            ]


def _item(item: tuple[str, float], share: Share) -> str:
    """An item's share; nothing where there is one item only."""
    if share.lowest[0] == share.highest[0] and share.lowest[1] == share.mean:
        return ""
    return f"{100 * item[1]:.1f}% ({item[0]})"


def _verdict(name: str, share: Share) -> str:
    """Whether the share is in the band about what the procedure promises."""
    nominal = PROCEDURES[name].nominal
    if nominal is None:
        return ""
    return {0: "yes", None: "unclear"}.get(_side(nominal, share), "**no**")


def _side(nominal: float, share: Share) -> int | None:
    """0 if the share's interval lies in the band, -1 or 1 if below or above; None if it may be."""
    (low, high), (least, most) = _BAND[nominal], share.interval
    if low <= least and most <= high:
        return 0
    return -1 if most < low else 1 if least > high else None


def _readings(summary: InferenceSummary) -> list[str]:
    """A paragraph on the shares, which is printed before their table."""
    sentences = [*_band_reading(summary), *_choice_readings(summary)]
    return [" ".join(sentences)] if sentences else []


def _band_reading(summary: InferenceSummary) -> list[str]:
    """A sentence on the number of shares in the band, and on the one farthest outside."""
    sides: list[int | None] = []
    outside: list[tuple[float, str]] = []
    for (name, label), places in summary.shares.items():
        for x, share in places.items():
            nominal = PROCEDURES[name].nominal
            if nominal is None:
                continue
            sides.append(_side(nominal, share))
            if sides[-1] in (-1, 1):
                words = f"{label} at {summary.axis} = {x:g} ({_percent(share)})"
                outside.append((abs(share.mean - nominal), words))
    if not sides:
        return []
    within, below, above, unclear = (sides.count(side) for side in (0, -1, 1, None))
    parts = [f"Of {len(sides)} shares {within} are in the band"]
    if below + above:
        parts.append(f"{below} are below and {above} above it, the farthest {max(outside)[1]}")
    if unclear:
        parts.append(f"{unclear} may lie in it or not, by their intervals")
    return [f"{', '.join(parts)}."]


def _choice_readings(summary: InferenceSummary) -> list[str]:
    """Which criteria choose the right number the most often, at each place."""
    places_by_criterion = {
        label.removesuffix(_RIGHT): places
        for (_, label), places in summary.shares.items()
        if label.endswith(_RIGHT)
    }
    out = []
    for x in sorted({x for places in places_by_criterion.values() for x in places}):
        shares = {label: places[x] for label, places in places_by_criterion.items() if x in places}
        best = max(share.mean for share in shares.values())
        near = [
            f"{label} ({_percent(share)})"
            for label, share in shares.items()
            if share.interval[1] >= best
        ]
        out.append(
            f"At {summary.axis} = {x:g} the right number is chosen most often, as far as their"
            f" intervals tell, by {', '.join(near)}."
        )
    return out


def _percent(share: Share) -> str:
    low, high = (100.0 * end for end in share.interval)
    return f"{100 * share.mean:.1f}% [{low:.1f}, {high:.1f}]"


_RIGHT = " right"
"""What the labels end with of shares of right choices."""


def inference_table(
    title: str, summaries: Sequence[InferenceSummary], details: bool = False
) -> Table:
    """Shares of each procedure at each place; with `details` also the worst and the best item."""
    columns = (0, 1, 2, 3, 4, 5, 6) if details else (0, 1, 2, 3, 6)
    names = ("what", summaries[0].axis, "runs", "share", "lowest", "highest", "missing")
    table = WideTable(title, ["curve", *names[:2]], [names[at] for at in columns[2:]])
    for summary in summaries:
        for row in _rows(summary):
            table.add_row(summary.curve.name, *(row[at] for at in columns))
    table.caption = _SHARE + ("; lowest and highest: those of one of them" * details) + _MISSING
    return table


def draw_inference(
    title: str, summaries: Sequence[InferenceSummary], size: str = "screen"
) -> Figure:
    """Shares along the x-axis with twice their Monte Carlo errors, one panel per curve."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    summaries = drawable(summaries)
    tallest = max(len(summary.shares) for summary in summaries)
    figure = new_figure(4.4 * len(summaries), 4.2 + 0.2 * tallest, figure_text(title))
    shaded = False
    for axes, summary in zip(
        figure.subplots(1, len(summaries), squeeze=False)[0], summaries, strict=True
    ):
        nominal = {PROCEDURES[name].nominal for name, _ in summary.shares}
        shaded = shaded or bool(nominal - {None})
        for value in (value for value in nominal if value is not None):
            axes.axhspan(*_BAND[value], color="0.92", zorder=0)
            axes.axhline(value, color="0.6", linewidth=0.8)
        for i, ((_, label), places) in enumerate(summary.shares.items()):
            axes.errorbar(
                # Side by side, so that no curve hides another.
                [x * 1.02**i for x in places],
                [share.mean for share in places.values()],
                np.transpose(
                    [
                        (share.mean - share.interval[0], share.interval[1] - share.mean)
                        for share in places.values()
                    ]
                ),
                label=figure_text(label),
                **marks(i),
            )
        axes.set_xscale("log")
        places = sorted({x for by_place in summary.shares.values() for x in by_place})
        axes.set_xticks(places, [f"{x:g}" for x in places])
        if len(places) == 1:
            axes.set_xlim(places[0] / 1.5, places[0] * 1.5)
        axes.minorticks_off()
        axes.set_xlabel(summary.axis)
        axes.set_ylabel("share of data sets")
        plain_axes(axes)
        legend = legend_above(axes, *axes.get_legend_handles_labels())
        name = wrapped(figure_text(summary.curve.name), 3.6, rcParams["font.size"])
        legend.set_title(name, prop=FontProperties(weight="bold"))
        legend.set_alignment("left")
    caption(figure, _FOOT + (_NOMINAL if shaded else ""))
    return figure


def inference_page(
    store: Store, summaries: Sequence[InferenceSummary], figure: str | None = None
) -> str:
    """The report in Markdown, with the figure of that file name if there is one."""
    spec = spec_of(store, InferenceSpec)
    planned = f"{spec.replicates} data sets per curve and place"
    band = "In band: 93 to 97% for a nominal coverage of 95%, 3 to 7% for a test of level 5%"
    parts = page_head(spec, summaries, planned, f"{_SHARE}{_WORST}{_MISSING}.  {band}", figure)
    head = ("what", spec.axis, "runs", "share", "worst", "best", "missing", "in band")
    for summary in summaries:
        parts += [f"## {markdown_text(summary.curve.name)}", *remarks(summary)]
        parts += [*_readings(summary), markdown_table(head, _rows(summary))]
    return "\n\n".join(parts) + "\n"
