"""The eight curves of Yan et al. (2025), Figures 1 and 2, from finished sweeps' stores.

    python -m experiments.attention.slopes [FOLDER]

reads ``attention_figure1``, ``attention_figure2`` and ``attention_start_sensitivity`` (.sqlite) in
FOLDER, by default that of this file, and writes ``attention_slopes.md`` there and, once there are
slopes of the third, ``attention_start_sensitivity.png``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.folders import FIGURES
from moestat.rates.plots import save_figure
from moestat.rates.rate import RateResult
from moestat.rates.style import caption, marks, plain_axes, style
from moestat.sweep.kinds.fit.analysis import CurveSummary, summarise
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.store.store import open_store

PUBLISHED = ("attention_figure1", "attention_figure2")
STARTS = "attention_start_sensitivity"
HEAD = (
    "curve",
    "published",
    "SGD, noise 0.2",
    "SGD, noise 3 n^-1/4",
    "SGD, noise 3 n^-1/2",
    "least squares",
    "regression error",
    "certified",
    "starts agree",
    "empty cells",
)
DECAYS = ("0", "0.25", "0.5")
TEXT = """\
# Figures 1 and 2 of Yan et al. (2025): the slopes of eight curves

Slopes of the log loss on log n with 95% intervals (HC3 covariance, t quantiles). SGD is as App. E
describes it, from one start around the truth with the noise of the column's head; its fits are not
minima and none is certified. Least squares are certified local minima of the sum of squares, the
better of two starts, and the regression error is theirs: the distance to the true regression
function in L2(mu). Starts agree: share of the fits whose starts reach the same minimum. A cell of
this table is empty, and says so, where its sweep has no slope yet."""


def summaries_of(path: Path) -> dict[str, CurveSummary]:
    """Curve -> its summary; empty without a store."""
    if not path.exists():
        return {}
    with open_store(path) as store:
        return {summary.curve.name: summary for summary in summarise(store)}


def extent_of(path: Path) -> str:
    """Which sample sizes a store has, and how many of its cells have results."""
    if not path.exists():
        return f"- {path.stem}: not run yet"
    with open_store(path) as store:
        summaries, sizes = summarise(store), as_fits(store.spec).sizes
    settled = sum(summary.done + summary.failed for summary in summaries)
    planned = sum(summary.planned for summary in summaries)
    text = ", ".join(f"{size:,}" for size in sizes)
    return f"- {path.stem}: n = {text}; {settled} of {planned} cells have results"


def slope(rate: RateResult | None) -> str:
    """A slope with its interval."""
    if rate is None:
        return "no slope yet"
    low, high = rate.interval
    return f"{rate.slope:.2f} [{low:.2f}, {high:.2f}]"


def share(count: int, total: int) -> str:
    """A share of fits."""
    return f"{count} of {total}"


def rows(figures: dict[str, CurveSummary], starts: dict[str, CurveSummary]) -> Iterable[list[str]]:
    """One row per published curve."""
    for name, descent in figures.items():
        if not name.endswith(", SGD"):
            continue
        curve = name.removesuffix(", SGD")
        fit = figures[f"{curve}, least squares"]
        noisy = (starts.get(f"{curve}, start n^-{decay}") for decay in DECAYS)
        yield [
            curve,
            f"{descent.curve.published:g}",
            *(slope(None if one is None else one.rate) for one in noisy),
            slope(fit.rate),
            slope(fit.regression_error),
            share(fit.certified, fit.done),
            share(fit.evidence.unanimous, fit.evidence.with_several),
            share(fit.with_empty_cells, fit.done),
        ]


def result(table: Iterable[Sequence[str]]) -> str:
    """Whose intervals hold the published slopes, in a sentence before the table."""
    rows, told = [*table], []
    for place, name in enumerate(HEAD[2:6], 2):
        found = [(float(row[1]), row[place].partition("[")[2].rstrip("]")) for row in rows]
        ends = [(own, *map(float, words.split(", "))) for own, words in found if words]
        told.append(f"{sum(low <= own <= high for own, low, high in ends)} with {name}")
    return (
        f"**Of {len(rows)} published slopes the interval of the measured one holds"
        f" {', '.join(told)}.**"
    )


def slopes_by_start(starts: dict[str, CurveSummary]) -> dict[str, list[tuple[float, ...]]]:
    """Curve -> (exponent of the noise, slope, ends of its interval), where there are any."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for name, summary in starts.items():
        if summary.rate is not None:
            curve, decay = name.split(", start n^-")
            point = (float(decay), summary.rate.slope, *summary.rate.interval)
            found.setdefault(curve, []).append(point)
    return found


def draw(found: Mapping[str, Sequence[tuple[float, ...]]]) -> Figure:
    """Measured slope against the exponent of the noise, a panel for each figure's truths."""
    names = [name for name in found if name.startswith(("softmax", "sigmoid"))]
    panels = {"Figure 1": names, "Figure 2": [name for name in found if name not in names]}
    with style():
        figure = Figure(figsize=(9.2, 4.6), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for ax, (title, own) in zip(axes, panels.items(), strict=True):
            for index, name in enumerate(own):
                decay, value, low, high = np.array(sorted(found[name])).T
                bars = [value - low, high - value]
                ax.errorbar(decay + 0.006 * index, value, bars, label=name, **marks(index))
            ax.plot(
                [0.0, 0.5],
                [0.0, -0.5],
                color="#666666",
                linestyle="--",
                label="slope \N{MINUS SIGN}r",
            )
            ax.set_xlabel("exponent $r$ of the start's noise, $n^{-r}$")
            plain_axes(ax)
            ax.legend(
                title=title, title_fontproperties={"weight": "bold"}, fontsize="small", ncols=2,
                frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), alignment="left",
                borderaxespad=0.2,
            )  # fmt: skip
        axes[0].set_ylabel("slope of log loss on log $n$, SGD")
        caption(figure, "Bars: 95% intervals of the slopes; curves stand slightly apart in r.")
    return figure


def main() -> None:
    """Read the stores and write the table and the figure."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES
    figures: dict[str, CurveSummary] = {}
    for name in PUBLISHED:
        figures |= summaries_of(folder / f"{name}.sqlite")
    starts = summaries_of(folder / f"{STARTS}.sqlite")
    own = [*rows(figures, starts)]
    table = [list(HEAD), ["---"] * len(HEAD), *own]
    lines = ["| " + " | ".join(row) + " |" for row in table]
    target = folder / "attention_slopes.md"
    extents = [extent_of(folder / f"{name}.sqlite") for name in (*PUBLISHED, STARTS)]
    parts = [TEXT, "\n".join(extents), result(own), "\n".join(lines)]
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(target)
    if found := slopes_by_start(starts):
        print(save_figure(draw(found), folder / f"{STARTS}.png"))


if __name__ == "__main__":
    main()
