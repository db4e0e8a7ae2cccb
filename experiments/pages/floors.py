"""The microscopes with floored masses: quantiles of errors by cell size, beside theory and search.

    python -m experiments.pages.floors STORE [STORE ...]

writes microscope_floors.md and the pictures of floors_gates into `figures` (or the folder of
--out): for each truth and cell size the 90% quantile and the median of the errors in a block, their
slopes over the last four decades with percentile intervals of a bootstrap over replicates, shares
of light atoms, of fits on bounds and of certified ones, and the weighted powers sum w |d|^r that
the losses hold.

The lines of search are the modulus of continuity: the explorer's least distance falls like the
r-th power of the largest deviation, so at a distance n^(-1/2) deviations are of order n^(-1/(2 r)).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.folders import FIGURES
from experiments.pages import floors_gates
from experiments.pages.least_weight import least_weight
from experiments.pages.quantiles import FEWEST, LATE, QuantileSlope, pooled, quantile_slope
from moestat.base.types import FloatArray
from moestat.metrics.losses import make_loss, voronoi_terms
from moestat.rates.local_slopes import lightest_weight
from moestat.rates.style import caption, marks, plain_axes, style, wrapped
from moestat.sweep.kinds.fit.spec import Curve, Spec, as_fits
from moestat.sweep.store.record import DONE, Record
from moestat.sweep.store.store import open_store

__all__ = ["DRAWN", "Cell", "Panel", "beside_one", "draw", "late_quantile", "page", "read"]

_NODES = 12
"""Nodes per input at which experts are evaluated."""
_LIGHT = 0.05
"""An atom with less than this mean share of the gates is called light."""
_QUIET = 0.01
"""An expert that answers less than this at every node is called near 0."""
_SIZES = {2: "cells of two", 3: "cells of three", 4: "cells of four"}
DRAWN = {block: f"microscope_floors_search_{block}" for block in ("b", "a", "nu")}
"""Blocks with a picture, and the names of these, which `experiments.floors_search` writes."""
_CAPTION = (
    "Markers: 90% quantiles over data sets of the worst error in a cell; dotted: medians;"
    " numbers: slopes of the quantiles over the last four decades with 95% bootstrap intervals;"
    " dashed: slopes of the theorem for this block, from above the first marker."
)

_GATES = (
    "In cells of k = 3 the gate slope errs by n^(-1/4), although the theorem's bound allows"
    " n^(-1/8):  slopes beta1 +- h in a cell give it cosh(h x) times its total weight, and since"
    " the other cell has no such factor, h^2 is at most of the order of the distance.  With k = 4"
    " as two cells of two, and with a single true expert, every cell can have this factor, which"
    " then cancels: the case softmax-22 of the explorer has distance 0, and gate slopes do not"
    " converge.  So the bound is loose where one cell has several atoms, and fails where all have."
)
_QUIETED = (
    "A sigmoid gate is not normalised, so that an extra expert costs nothing when it answers 0,"
    " which GELU networks do at alpha = beta = 0, whatever their gate.  A floor on the gate leaves"
    " this open, and most fits under sigmoid-quadratic gates end there: no error in their cells of"
    " two falls, and none has to.  The rows `no expert near 0` are of the fits that are left."
)
_SEARCHED = (
    "Each estimate here is the best of 8 starts around the truth.  How often a longer search ends"
    " higher, what that changes in the slopes, and pictures of b, a and nu after it are in"
    " microscope_floors_search.md."
)
_ORDERS = (
    "Theorem and its refinement, in cells of m atoms: intercepts b err by n^(-1/(4 m)), variances"
    " nu by n^(-1/(2 m)).  Slopes a and gate slopes beta1 depend on the other cells: where one of"
    " them has a single atom, the least distance falls like the square of a deviation in a or beta1"
    " alone for m = 2 and 3 alike, so that both err by n^(-1/4); where all cells have several, gate"
    " slopes are not identified (the explorer's case softmax-22), and a errs by n^(-1/(2 m)).  Of a"
    " single true expert a falls faster than that at these sizes: -0.242 and -0.196 for m = 3 and 4"
    " exclude 1/6 and 1/8, which are not reached by 1e14.  Orders that the explorer's search finds:"
    " 3.99, 5.88 and 7.93 in cells of two, three and four (theory_explorer.md; theory 4, 6, 8)."
)


@dataclass(frozen=True)
class Cell:
    """One Voronoi cell of one estimate.

    Parameters
    ----------
    n : float
        Sample size.
    size : int
        Fitted atoms in it.
    errors : mapping of str to float
        Largest error by block.
    powers : mapping of str to float
        Sum of weight times error to the power of the loss, by block.
    """

    n: float
    size: int
    errors: dict[str, float]
    powers: dict[str, float]


def cells_of(spec: Spec, curve: Curve, records: Sequence[Record]) -> list[Cell]:
    """The cells of several atoms of all estimates of a curve."""
    fitted, loss, target = spec.fitted_family(curve), make_loss(curve.loss), spec.target(curve)
    out = []
    for record in records:
        measure = fitted.measure(np.array(record.params))
        terms = voronoi_terms(measure, target, loss)
        for j, cell in enumerate(record.losses["cells"]):
            if cell["size"] > 1:
                errors = {**cell["errors"], "expert": cell["expert_error"]}
                powers = {name: float(row[j]) for name, row in terms.block_errors.items()}
                out.append(Cell(record.n, cell["size"], errors, powers))
    return out


def _shares(spec: Spec, curve: Curve, records: Sequence[Record]) -> str:
    """Shares of estimates with a light atom, on a bound, and certified."""
    fitted = spec.fitted_family(curve)
    largest = max(record.n for record in records)
    late = [record for record in records if record.n >= 0.999 * LATE * largest]
    light = [
        lightest_weight(fitted, np.array(record.params), spec.design) < _LIGHT for record in late
    ]
    bound = [bool(record.certificate["active"]) for record in late]
    sure = [record.certified for record in late]
    told = [f"{np.mean(each):.0%}" for each in (light, bound, sure)]
    quiet = [_has_quiet(spec, curve, record) for record in late] if fitted.is_regression else None
    return " | ".join([*told, "" if quiet is None else f"{np.mean(quiet):.0%}"])


def _has_quiet(spec: Spec, curve: Curve, record: Record) -> bool:
    """Whether an expert of a least-squares fit answers next to nothing at every node."""
    fitted = spec.fitted_family(curve)
    nodes = np.ascontiguousarray(spec.design.quadrature(fitted.n_features, _NODES)[0])
    answers = fitted.predictors(np.array(record.params), nodes)[:, 0]
    return bool(np.abs(answers).max(axis=1).min() < _QUIET)


@dataclass(frozen=True)
class Panel:
    """All cells of one size at one truth; `beside_one` if another cell has one atom."""

    truth: str
    curve: str
    size: int
    cells: list[Cell]
    gate: str
    beside_one: bool

    @property
    def gaussian(self) -> bool:
        """Whether it is of Gaussian experts under the softmax gate."""
        return self.gate == "gaussian, softmax"

    def theory(self, block: str) -> float | None:
        """The power of n; one of several cells is of order 1/4 for all other gates.

        None where the block is not identified: gate slopes where every cell has several atoms.
        """
        if not self.gaussian:
            return -1 / 4
        if block in ("b", "expert"):
            return -1 / (4 * self.size)
        if block == "nu" or (block == "a" and not self.beside_one):
            return -1 / (2 * self.size)
        return -1 / 4 if self.beside_one else None

    def series(self, block: str, powers: bool = False) -> tuple[FloatArray, FloatArray]:
        """Sizes and positive errors of a block."""
        held = [(c.n, (c.powers if powers else c.errors).get(block)) for c in self.cells]
        pairs = [(n, value) for n, value in held if value is not None and value > 0.0]
        return np.array([n for n, _ in pairs]), np.array([value for _, value in pairs])


def read(paths: Sequence[Path]) -> tuple[list[Panel], list[str], list[str]]:
    """The panels of several stores, a line of shares per curve, and the floors of weights."""
    panels, lines, floors = [], [], []
    for path in paths:
        with open_store(path) as store:
            records = [record for record in store.records() if record.status == DONE]
            spec = as_fits(store.spec)
        for curve in spec.curves:
            own = [record for record in records if record.curve == curve.name]
            if not own:
                continue
            lines.append(
                f"| {path.stem} | {curve.name} | {len(own)} | {_shares(spec, curve, own)} |"
            )
            cells = cells_of(spec, curve, own)
            fitted = spec.fitted_family(curve)
            if fitted.gate.name == "competition-free":
                floors.append(f"{least_weight(spec, curve):.2g} ({curve.name})")
            gate = f"{fitted.likelihood.name}, {fitted.gate.name}"
            groups = {curve.name: cells}
            if fitted.is_regression and not fitted.gate.normalised:
                loud = [each for each in own if not _has_quiet(spec, curve, each)]
                groups[f"{curve.name}, no expert near 0"] = cells_of(spec, curve, loud)
            panels += [
                Panel(curve.truth, name, size, chosen, gate, beside_one(spec, curve, size))
                for name, group in groups.items()
                for size in _SIZES
                if len(chosen := [cell for cell in group if cell.size == size]) >= FEWEST
            ]
    told = f"Under competition no mean weight within the box is below {', '.join(floors)}."
    return panels, lines, [told, ""] if floors else []


def beside_one(spec: Spec, curve: Curve, size: int) -> bool:
    """Whether another cell has one atom, where one has `size`: all others if every atom is used."""
    others = spec.truths[curve.truth].family.n_experts - 1
    return others > 0 and curve.n_experts - size < 2 * others


def late_quantile(path: Path, curve: str, size: int, block: str) -> QuantileSlope | None:
    """The slope of the 90% quantile that the page has in one row.

    Parameters
    ----------
    path : Path
        A store.
    curve : str
        A curve as the page names it.
    size : int
        Fitted atoms in the cell.
    block : str
        The block.

    Returns
    -------
    QuantileSlope or None
        None where there are too few such cells.
    """
    panels, _, _ = read([path])
    found = [panel for panel in panels if (panel.curve, panel.size) == (curve, size)]
    return quantile_slope(*found[0].series(block), 0.9, _rng()) if found else None


def _rng() -> np.random.Generator:
    """A generator of its own for each slope, so that picture and table have one interval."""
    return np.random.default_rng(23)


def result(rows: Mapping[int, Sequence[QuantileSlope]]) -> str:
    """The result of the page in a sentence a cell size, from the slopes of b at all truths."""
    told = []
    for size, slopes in rows.items():
        theory, (slope, error) = -1 / (4 * size), pooled(slopes)
        far = abs(slope - theory) / error
        told.append(
            f"{_SIZES[size]} {slope:.3f} ± {error:.3f} for {theory:.4f}"
            + ("" if far < 2.0 else f", {far:.1f} errors from it, so not shown at these sizes")
        )
    return (
        "**Result: intercepts b of Gaussian experts under softmax, slopes of the 90% quantile"
        f" pooled over truths and fits: {'; '.join(told)}.**  Why the 90% quantile: errors of two"
        " normal atoms without inputs fall faster than the theorem's rate in half of the data sets"
        " (proved in docs/theory/limit_law.md), so that medians have no slope of their own and"
        " quantiles above 1/2 show the rate; that cells of lines do alike is seen, not proved."
    )


def draw(panels: Sequence[Panel]) -> list[Figure]:
    """A picture of each block, a panel for each cell size."""
    shown = [panel for panel in panels if panel.gaussian]
    sizes = sorted({panel.size for panel in shown})
    figures = []
    with style():
        for block in DRAWN:
            figure = Figure(figsize=(4.6 * len(sizes), 5.0), layout="constrained")
            figure.suptitle(f"Errors of {block}, masses floored: Gaussian experts under softmax")
            axes = figure.subplots(1, len(sizes), squeeze=False)[0]
            for ax, size in zip(axes, sizes, strict=True):
                _picture(ax, [panel for panel in shown if panel.size == size], block, size)
            axes[0].set_ylabel(f"error of {block}")
            caption(figure, _CAPTION)
            figures.append(figure)
    return figures


def _picture(ax: Any, panels: Sequence[Panel], block: str, size: int) -> None:
    lines: dict[float, tuple[FloatArray, float]] = {}
    for index, panel in enumerate(panels):
        n, error = panel.series(block)
        (distinct, high), (_, middle) = (_quantiles(n, error, level) for level in (0.9, 0.5))
        slope = quantile_slope(n, error, 0.9, _rng())
        told = "" if slope is None else f": {slope.slope:.3f} [{slope.low:.3f}, {slope.high:.3f}]"
        drawing = {k: v for k, v in marks(index).items() if k not in ("elinewidth", "capsize")}
        ax.plot(distinct, high, label=wrapped(f"{panel.curve}{told}", 3.6, 9.0), **drawing)
        ax.plot(distinct, middle, ":", color=drawing["color"], linewidth=0.9)
        exponent = panel.theory(block)
        if exponent is not None and distinct.size:
            lines.setdefault(exponent, (distinct, high[0]))
    for exponent, (n, first) in lines.items():
        ax.plot(
            n, 1.3 * first * (n / n[0]) ** exponent, "--", color="#666666", linewidth=1.0,
            zorder=1, label=f"theorem: {exponent:.3f}",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("sample size $n$")
    plain_axes(ax)
    ax.legend(title=_SIZES[size], fontsize="small", frameon=False, loc="lower left",
              bbox_to_anchor=(0.0, 1.0), alignment="left", borderaxespad=0.2)  # fmt: skip


def page(panels: Sequence[Panel], shares: Sequence[str], weights: Sequence[str] = ()) -> str:
    """The page: tables of slopes, of weighted powers and of shares."""
    lines = [
        "# The microscopes with floored masses",
        "",
        *([result(of_b), "", _SEARCHED, ""] if (of_b := _slopes_of_b(panels)) else []),
        "Slopes of log quantile on log n over the last four decades, with 95% percentile"
        " intervals of a bootstrap over replicates.  Errors are those of the worst atom of a cell;"
        " all fits enter.  The boxes were fixed by the rule in the specs before any run.",
        "",
        _ORDERS,
        "",
        _GATES,
        "",
        *_pictures(panels),
        *weights,
        *([_QUIETED, ""] if any(", no expert near 0" in panel.curve for panel in panels) else []),
        "| truth and fit | atoms in the cell | block | Voronoi cells at a size | theorem |"
        " 90% quantile | median |",
        "|---|---|---|---|---|---|---|",
    ]
    powers = [
        "",
        "## Weighted powers",
        "",
        "The sums of w |d|^r over a cell that the losses hold; the theorem is -1/2.",
        "",
        "| truth and fit | cell | block | 90% quantile | median |",
        "|---|---|---|---|---|",
    ]
    slopes, weighted = _rows(panels)
    lines += slopes
    powers += weighted
    lines += powers
    lines += _locals(panels)
    lines += [
        "",
        "## Shares over the last four decades",
        "",
        f"A light atom has a mean gate weight below {_LIGHT:g}; an expert near 0 (least squares"
        f" only) answers less than {_QUIET:g} at every node.",
        "",
        "| experiment | curve | fits | with a light atom | on a bound | certified |"
        " with an expert near 0 |",
        "|---|---|---|---|---|---|---|",
        *shares,
    ]
    return "\n".join(lines) + "\n"


def _rows(panels: Sequence[Panel]) -> tuple[list[str], list[str]]:
    """Rows of slopes of errors, and of weighted powers."""
    lines, powers = [], []
    for panel in panels:
        for block in panel.cells[0].errors:
            n, error = panel.series(block)
            if not n.size:
                continue
            counts = [int(np.sum(n == each)) for each in np.unique(n)]
            theory = panel.theory(block)
            told = "not identified" if theory is None else f"{theory:.4f}"
            lines.append(
                f"| {panel.curve} | {panel.size} | {block} | {min(counts)} to {max(counts)} |"
                f" {told} | {_told(n, error, 0.9)} | {_told(n, error, 0.5)} |"
            )
            n, power = panel.series(block, powers=True)
            if n.size:
                powers.append(
                    f"| {panel.curve} | {panel.size} | {block} | {_told(n, power, 0.9)} |"
                    f" {_told(n, power, 0.5)} |"
                )
    return lines, powers


def _slopes_of_b(panels: Sequence[Panel]) -> dict[int, list[QuantileSlope]]:
    """Cell size -> slopes of the intercepts at all truths of the Gaussian softmax."""
    out: dict[int, list[QuantileSlope]] = {}
    for panel in panels:
        if panel.gaussian and (slope := quantile_slope(*panel.series("b"), 0.9, _rng())):
            out.setdefault(panel.size, []).append(slope)
    return dict(sorted(out.items()))


def _pictures(panels: Sequence[Panel]) -> list[str]:
    """Links to the pictures of the other gates, four gates a picture."""
    gates = {panel.gate for panel in panels if not panel.gaussian and panel.size == 2}
    names = floors_gates.picture_names(-(-len(gates) // floors_gates.MOST_PANELS))
    return [f"![Errors of experts under the other gates](<{name}>)\n" for name in names]


def _locals(panels: Sequence[Panel]) -> list[str]:
    """Slopes of the 90% quantile from each size to the next, for the block that errs the most."""
    shown = [(panel, "b" if panel.gaussian else "expert") for panel in panels]
    held = [(panel, block, *_quantiles(*panel.series(block), 0.9)) for panel, block in shown]
    sizes = sorted({float(n) for *_, at, _ in held for n in at})
    steps = list(pairwise(sizes))
    lines = [
        "",
        "## Local slopes",
        "",
        "Of the 90% quantile, from one size to the next, of intercepts b of Gaussian experts under"
        " softmax and of experts elsewhere.",
        "",
        "| truth and fit | cell | theorem | "
        + " | ".join(f"{low:.0e} to {high:.0e}" for low, high in steps)
        + " |",
        "|---|---|---|" + "---|" * len(steps),
    ]
    for panel, block, at, height in held:
        place = dict(zip(at.tolist(), height.tolist(), strict=True))
        told = [
            f"{np.log(place[high] / place[low]) / np.log(high / low):.3f}"
            if low in place and high in place
            else ""
            for low, high in steps
        ]
        row = f"| {panel.curve} | {panel.size} | {panel.theory(block):.4f} | {' | '.join(told)} |"
        lines += [row] if any(told) else []
    return lines


def _quantiles(n: FloatArray, error: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Sizes with enough errors, and a quantile of the errors at each."""
    sizes = np.array([each for each in np.unique(n) if np.sum(n == each) >= FEWEST])
    return sizes, np.array([np.quantile(error[n == each], level) for each in sizes])


def _told(n: FloatArray, error: FloatArray, level: float) -> str:
    slope = quantile_slope(n, error, level, _rng())
    if slope is None:
        return "too few"
    return f"{slope.slope:.3f} [{slope.low:.3f}, {slope.high:.3f}]"


def _fall(panel: Panel) -> floors_gates.Fall:
    n, quantile = _quantiles(*panel.series("expert"), 0.9)
    slope = _told(*panel.series("expert"), 0.9)
    return floors_gates.Fall(panel.curve, panel.gate, -1 / 4, slope, n, quantile)


def main() -> None:
    """Read the stores named on the command line and write pictures and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=FIGURES)
    given = parser.parse_args()
    panels, shares, weights = read(given.stores)
    base = given.out / "microscope_floors"
    base.with_suffix(".md").write_text(page(panels, shares, weights), encoding="utf-8")
    falls = [_fall(each) for each in panels if not each.gaussian and each.size == 2]
    floors_gates.write(floors_gates.keep(falls, base.with_suffix(".json")))
    print(base.with_suffix(".md"))


if __name__ == "__main__":
    main()
