"""Draw local slopes against n and say which exponents are seen, from a microscope sweep's store.

    python -m experiments.pages.microscope STORE [FOLDER]

writes STORE's name with .png, .pdf and .md next to it, or into FOLDER: the local slope of every
curve's loss, one panel per panel of the spec, with the theorems' exponents as lines.  Further
pictures, with the quantity in their names, are of the errors by block within Voronoi cells of one,
two and three fitted atoms and, where the truth has directions that nothing identifies, of the
errors along and across them.  A picture has at most four panels; more go to pictures with a number.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.quantities import Quantity, absorbed, entering, observed
from moestat import information_spectrum
from moestat.rates.local_slopes import (
    EXPONENTS,
    exponent_name,
    exponents_seen,
    local_slopes,
    null_part,
)
from moestat.rates.plots import save_figure
from moestat.rates.style import caption, marks, plain_axes, style, wrapped
from moestat.sweep.kinds.fit.spec import Curve, Spec, as_fits, loss_label
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import Store, open_store

CELLS = {1: "cells of one", 2: "cells of two", 3: "cells of three"}
NULL = "errors of all parameters"
CHEAP = 100_000
_MOST_PANELS = 4
_CAPTION = (
    "Markers: slopes of log means over two decades of n; bands: two standard errors to either side;"
    " grey lines: exponents of theorems."
)

Series = tuple[np.ndarray, np.ndarray]


def series(records: list[Record], name: Quantity) -> Series:
    """Sizes and values of a quantity, at sizes with enough of them."""
    pairs = observed(records, name)
    n = np.array([record.n for record, _ in pairs], dtype=float)
    return n, np.array([value for _, value in pairs], dtype=float)


def null_errors(spec: Spec, curve: Curve, used: list[Record]) -> dict[str, Series]:
    """Errors along and across what nothing identifies; empty where all is, or cells differ."""
    truth = spec.truths[curve.truth]
    exact = curve.n_experts == truth.family.n_experts and curve.gate is None
    if not exact or truth.family.is_regression or not used:
        return {}
    directions = information_spectrum(truth.family, truth.theta, spec.design).null_directions
    if not directions:
        return {}

    n = np.array([record.n for record in used], dtype=float)
    parts = np.array(
        [null_part(truth.family, truth.theta, record.params, directions) for record in used]
    )
    names = "; ".join(map(str, directions))
    return {f"along ({names})": (n, parts[:, 0]), "across it": (n, parts[:, 1])}


def quantities(spec: Spec, curve: Curve, records: list[Record]) -> dict[str, dict[str, Series]]:
    """Row of the figure -> label -> series, for one curve."""
    used = entering(curve, records)
    rows = {"loss": {loss_label(curve.loss): series(used, "loss")}}
    for loss in curve.also:
        rows["loss"][loss_label(loss)] = series(used, loss_label(loss))
    if not spec.truths[curve.truth].family.is_regression:
        rows["loss"]["Hellinger"] = series(used, "hellinger")
    if null := null_errors(spec, curve, used):
        rows[NULL] = null
    if used:
        for size, row in CELLS.items():
            blocks = ("mass", *used[0].losses["cells"][0]["errors"], "expert")
            rows[row] = {block: series(used, (size, block)) for block in blocks}
        _name_once(rows)
    return {
        row: {label: s for label, s in found.items() if np.unique(s[0]).size >= 3}
        for row, found in rows.items()
    }


def _name_once(rows: dict[str, dict[str, Series]]) -> None:
    """Leave out masses of larger cells that err as those of smaller ones: they add up to one."""
    for row, smaller in itertools.permutations([row for row in CELLS.values() if row in rows], 2):
        mine, other = rows[row].get("mass"), rows[smaller].get("mass")
        if row > smaller and mine is not None and other is not None and _equal(mine, other):
            del rows[row]["mass"]


def _equal(one: Series, other: Series) -> bool:
    return one[0].size > 0 and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=0.0)
        for a, b in zip(one, other, strict=True)
    )


def draw(store: Store, found: Mapping[str, dict[str, dict[str, Series]]]) -> dict[str, Figure]:
    """Local slopes: pictures by what their names end with, of one kind of quantity each."""
    panels = list(dict.fromkeys(curve.panel for curve in store.spec.curves))
    pictures = {}
    for row in ("loss", *CELLS.values(), NULL):
        lines = dict(_lines(store, found, panel, row) for panel in panels)
        shown = [panel for panel, own in lines.items() if own]
        for part in range(0, len(shown), _MOST_PANELS):
            name = "" if row == "loss" else "_" + row.replace(" ", "_")
            name += f"_{part // _MOST_PANELS + 1}" if part else ""
            chosen = {panel: lines[panel] for panel in shown[part : part + _MOST_PANELS]}
            with style():
                pictures[name] = _picture(store.spec.title, row, chosen)
    return pictures


def _lines(
    store: Store, found: Mapping[str, dict[str, dict[str, Series]]], panel: str, row: str
) -> tuple[str, dict[str, Series]]:
    """Heading of a panel and what it shows: the loss of each curve, or all errors of one curve."""
    mine = [curve.name for curve in store.spec.curves if curve.panel == panel]
    if row == "loss":
        firsts = ((name, next(iter(found[name]["loss"].values()), None)) for name in mine)
        return panel, {name: series for name, series in firsts if series is not None}
    # The curve with the most estimates that have such cells speaks for all.
    best = max(mine, key=lambda name: _count(found[name].get(row, {})))
    return best, found[best].get(row, {})


def _picture(title: str, row: str, panels: Mapping[str, Mapping[str, Series]]) -> Figure:
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.8 * columns, 4.2 * rows), layout="constrained")
    figure.suptitle(wrapped(title, 4.4 * columns, 12.0))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for place, (ax, (panel, lines)) in enumerate(zip(grid.flat, panels.items(), strict=False)):
        _panel(ax, panel, lines)
        if place + columns >= len(panels):  # nothing stands below
            ax.set_xlabel("sample size $n$")
            ax.tick_params(labelbottom=True)
        if place % columns == 0:
            ax.set_ylabel(f"local slope: {row}")
    for ax in list(grid.flat)[len(panels) :]:
        ax.set_axis_off()
    grid[0, 0].set_ylim(-0.85, 0.15)
    grid[0, 0].set_xscale("log")
    caption(figure, _CAPTION)
    return figure


def _count(series: Mapping[str, Series]) -> int:
    return max((s[0].size for s in series.values()), default=0)


def _panel(ax, panel: str, lines: Mapping[str, Series]) -> None:
    for exponent in EXPONENTS:
        ax.axhline(exponent, color="#bbbbbb", linewidth=0.8, zorder=1)
        ax.annotate(
            exponent_name(exponent), (1.0, exponent), xycoords=("axes fraction", "data"),
            xytext=(3, 0), textcoords="offset points", va="center", fontsize=6, color="#777777",
        )  # fmt: skip
    for index, (label, (n, value)) in enumerate(lines.items()):
        slopes = local_slopes(n, value)
        drawing = {k: v for k, v in marks(index).items() if k not in ("elinewidth", "capsize")}
        error = 2.0 * np.nan_to_num(slopes.error)
        band = slopes.slope - error, slopes.slope + error
        ax.fill_between(slopes.n, *band, color=drawing["color"], alpha=0.15, linewidth=0, zorder=2)
        ax.plot(slopes.n, slopes.slope, label=wrapped(label, 3.6, 8.3), zorder=3, **drawing)
    plain_axes(ax)
    ax.grid(visible=False, axis="y")  # the exponents are its lines
    # Above the axes: bands fill every corner inside in some picture.
    ax.legend(
        title=panel, title_fontproperties={"weight": "bold"}, fontsize="small", frameon=False,
        loc="lower left", bbox_to_anchor=(0.0, 1.0), alignment="left", borderaxespad=0.2,
        ncols=1 + (len(lines) > 3),
    )  # fmt: skip


def cost(records: list[Record]) -> str:
    """Passes of a fit and share certified at n = 1e5 and at the largest n, in words.

    A pass visits the cells of the lattice that occur.  Times would be those of a busy machine.
    """
    largest = max((record.n for record in records), default=0)
    medians, shares = [], []
    for n in (CHEAP, largest):
        done = [record for record in records if record.n == n and record.status == "done"]
        if not done:
            return ""
        medians.append(float(np.median([record.certificate["passes"] for record in done])))
        shares.append(f"{sum(bool(record.certified) for record in done)} of {len(done)}")
    return (
        f"Passes of the winning start, median: {medians[0]:.0f} at n = {CHEAP:.0e}"
        f" ({shares[0]} certified), {medians[1]:.0f} at {largest:.0e} ({shares[1]}):"
        f" {medians[1] / medians[0]:.1f} times as many."
    )


def mean_at(n: np.ndarray, value: np.ndarray, size: float) -> str:
    """Geometric mean at one sample size."""
    return f"{np.exp(np.mean(np.log(value[n == size]))):.2g}"


def page(
    store: Store,
    found: Mapping[str, dict[str, dict[str, Series]]],
    records: Mapping[str, list[Record]],
    pictures: Iterable[str] = (),
) -> str:
    """What is seen over the last four decades, curve by curve, as Markdown with pictures."""
    most = max((len({record.replicate for record in own}) for own in records.values()), default=0)
    planned = as_fits(store.spec).replicates
    lines = [
        f"# {store.spec.title}",
        "",
        "Slope of log value on log n over the last four decades with its 95% interval, which of"
        " the exponents 0, 1/12, 1/8, 1/6, 1/4, 1/2 lie inside, and the n from which on every"
        " local slope (over two decades) is within two standard errors of the first of them.  First"
        " and last are geometric means at the smallest and the largest n.  Masses of two kinds of"
        " cells that err alike, for they add up to one, are named once.",
        "",
        f"{most}{'' if most == planned else f' of {planned}'} replicates per sample size.",
    ]
    for name in pictures:
        lines += ["", f"![Local slopes]({name})"]
    for curve in store.spec.curves:
        own = records[curve.name]
        done, certified = sum(r.status == "done" for r in own), sum(r.certified for r in own)
        lines += ["", f"## {curve.name}", "", f"{certified} of {done} estimates are certified."]
        if not curve.require_certificate:
            lines[-1] += " All of them enter."
        lines[-1] += f"  {cost(own)}"
        if curve.note:
            lines += ["", curve.note]
        lines += [
            "",
            "| quantity | first | last | slope | 95% interval | seen | from n |",
            "|---|---|---|---|---|---|---|",
        ]
        for row, series in found[curve.name].items():
            for label, (n, value) in series.items():
                slope, (low, high), seen = exponents_seen(n, value)
                if np.isnan(slope):  # too few sizes in the last decades
                    continue
                names = " or ".join(map(exponent_name, seen)) or "none"
                start = local_slopes(n, value).agrees_from(seen[-1]) if seen else None
                since = "" if start is None else f"{start:.0e}"
                what = label if row == "loss" else f"{label}, {row}"
                ends = f"{mean_at(n, value, n.min())} | {mean_at(n, value, n.max())}"
                lines.append(
                    f"| {what} | {ends} | {slope:.3f} | [{low:.3f}, {high:.3f}] | {names} |"
                    f" {since} |"
                )
        lines += _absorbed(entering(curve, own))
    return "\n".join(lines) + "\n"


def _absorbed(used: list[Record]) -> list[str]:
    """Which errors are not in the table, because they are 0 but for rounding."""
    found = []
    for size, row in CELLS.items():
        for block in used[0].losses["cells"][0]["errors"] if used else ():
            zeros, all_of_them = absorbed(used, (size, block))
            if zeros:
                found.append(f"{block}, {row}: {zeros} of {all_of_them}")
    if not found:
        return []
    text = "Estimates without this error but for rounding, for a translation of the gate absorbs it"
    return [
        "",
        f"{text}: {'; '.join(found)}.  They are left out, where they are most the row, too.",
    ]


def read(store: Store) -> tuple[dict[str, list[Record]], dict[str, dict[str, dict]]]:
    """The records of a store, and their quantities, by curve."""
    records: dict[str, list[Record]] = {curve.name: [] for curve in store.spec.curves}
    for record in store.records():
        records[record.curve].append(record)
    spec = as_fits(store.spec)
    return records, {c.name: quantities(spec, c, records[c.name]) for c in spec.curves}


def main() -> None:
    """Read the store named on the command line and write figure and page."""
    path = Path(sys.argv[1])
    base = (Path(sys.argv[2]) if len(sys.argv) > 2 else path.parent) / path.stem
    base.parent.mkdir(parents=True, exist_ok=True)
    with open_store(path) as store:
        records, found = read(store)
        pictures = draw(store, found)
        names = [f"{base.name}{name}.png" for name in pictures]
        text = page(store, found, records, names)
    for name, figure in pictures.items():
        for suffix in (".png", ".pdf"):
            print(save_figure(figure, base.with_name(base.name + name + suffix)))
    base.with_suffix(".md").write_text(text, encoding="utf-8")
    print(base.with_suffix(".md"))


if __name__ == "__main__":
    main()
