"""The page of the limit law: quantiles of fits over those of the limit, theory and search."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.limit_law.fits import REPLICATES
from experiments.limit_law.law import (
    FLOOR,
    errors_in_the_limit,
    limit_constants,
    quantiles_in_the_limit,
)
from moestat.base.types import FloatArray
from moestat.rates.style import caption, marks, plain_axes, style

__all__ = [
    "RESULT",
    "Panels",
    "markdown",
    "panels",
    "read",
    "result",
    "slopes_of_quantiles",
    "write",
]

RESULT, _PAGE = "limit_law.json", "limit_law.md"
_EXPLORER, _SEARCHED = "theory_explorer.json", "microscope_floors_search.json"
LEVELS = np.array([0.25, 0.5, 0.75, 0.9])
_NAMES = {2: "two", 3: "three", 4: "four"}
_BOOTSTRAP = 1000
_CAPTION = (
    "Left: quantiles over data sets of the largest error of a mean (markers) and of the limit law"
    " (lines); dashed: slope of the theorem; dotted: slope from the order that the explorer's"
    " search found. Middle: each data set at the largest n by its score of order 2 m, and the limit"
    " law. Right: the microscopes' intercepts b with inputs, searched until starts agree, cells of"
    " this size at all truths together, for which no limit law is proved."
)


def read(kept: Path) -> list[dict[str, Any]]:
    """The data sets that were fitted, one a line."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    return [json.loads(line) for line in lines]


def result(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the page tells, as plain data: as many data sets as every size has.

    Parameters
    ----------
    found : sequence of mapping
        Lines of ``python -m experiments.limit_law fit``.

    Returns
    -------
    dict
        ``floor`` and ``atoms``: by number of atoms the constants of the limit law, and by size what
        the page needs.
    """
    atoms: dict[str, Any] = {}
    for m in sorted({each["m"] for each in found}):
        own = sorted((e for e in found if e["m"] == m), key=lambda e: (e["n"], e["replicate"]))
        sizes = {n: [e for e in own if e["n"] == n] for n in sorted({e["n"] for e in own})}
        whole = min(len(at) for at in sizes.values())
        constants = {str(sign): round(value, 4) for sign, value in limit_constants(m).items()}
        held = {
            f"{n:.0e}": {
                **{name: [e[name] for e in at[:whole]] for name in ("error", "score")},
                "variance": float(f"{np.quantile([e['variance_error'] for e in at], 0.9):.4g}"),
                "floor": round(float(np.mean([e["mass"] < FLOOR + 1e-3 for e in at])), 3),
                "agree": round(float(np.mean([e["agree"] for e in at[:whole]])), 3),
                "doubling": float(f"{max(e['doubling'] for e in at[:whole]):.2g}"),
            }
            for n, at in sizes.items()
        }
        atoms[str(m)] = {"constants": constants, "sizes": held}
    return {"floor": FLOOR, "atoms": atoms}


def slopes_of_quantiles(
    n: FloatArray, errors: Sequence[FloatArray] | FloatArray, levels: FloatArray = LEVELS
) -> tuple[FloatArray, FloatArray]:
    """Slopes of log quantiles on log n, and their curvatures, with 95% bootstrap intervals.

    Parameters
    ----------
    n : ndarray of shape (S,)
        Sizes, at least three.
    errors : sequence of S ndarrays
        Errors of the data sets at each.
    levels : ndarray of shape (L,)
        Of the quantiles.

    Returns
    -------
    slope, curvature : ndarray of shape (L, 3)
        Estimate and ends of the interval; the curvature is the change of the slope a decade.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> n = 10.0 ** np.arange(6, 13)
    >>> errors = n[:, None] ** -0.125 * rng.exponential(size=(7, 300))
    >>> slope, curvature = slopes_of_quantiles(n, errors, np.array([0.9]))
    >>> bool(slope[0, 1] < -0.125 < slope[0, 2]), bool(curvature[0, 1] < 0.0 < curvature[0, 2])
    (True, True)
    """
    rng, x = np.random.default_rng(29), np.log10(n)

    def fitted(logs: FloatArray) -> FloatArray:
        flat = logs.reshape(x.size, -1)
        both = [np.polyfit(x, flat, 1)[0], 2.0 * np.polyfit(x - x.mean(), flat, 2)[0]]
        return np.array(both).reshape(2, *logs.shape[1:])

    samples = [np.asarray(at) for at in errors]
    drawn = [at[rng.integers(at.size, size=(_BOOTSTRAP, at.size))] for at in samples]
    point = fitted(np.log10([np.quantile(at, levels) for at in samples]))
    ends = fitted(np.log10([np.quantile(at, levels, axis=1) for at in drawn]))
    low, high = np.quantile(ends, [0.025, 0.975], axis=-1)
    slope, curvature = np.stack([point, low, high], axis=-1)
    return slope, curvature


def panels(held: Mapping[str, Any], folder: Path) -> list[Panels]:
    """What the page says by number of atoms.

    Parameters
    ----------
    held : mapping
        Of `result`.
    folder : Path
        Where the explorer's and the search's results are.

    Returns
    -------
    list of Panels
        One for each number of atoms.
    """
    explorer, searched = (
        json.loads((folder / name).read_text(encoding="utf-8")) for name in (_EXPLORER, _SEARCHED)
    )
    parts = []
    for m in map(int, held["atoms"]):
        order = explorer[f"softmax-{m}-order"]["exponent"]
        inputs = [each for each in searched["errors"] if each["size"] == m]
        parts.append(Panels(m, held["atoms"][str(m)], order, inputs))
    return parts


def write(held: Mapping[str, Any], folder: Path) -> None:
    """Write the page and its pictures; the explorer's and the search's results are beside them.

    Parameters
    ----------
    held : mapping
        Of `result`.
    folder : Path
        Where.
    """
    parts = panels(held, folder)
    with style():
        for part in parts:
            part.draw().savefig(folder / part.picture, dpi=110)
    (folder / _PAGE).write_text(markdown(parts, held["floor"]), encoding="utf-8")


class Panels:
    """All that the page says on one number of atoms."""

    def __init__(
        self, m: int, held: Mapping[str, Any], order: float, inputs: Sequence[Mapping[str, Any]]
    ) -> None:
        sizes = held["sizes"]
        self.m, self.sizes, self.order = m, list(sizes.values()), order
        self.constants = {int(sign): value for sign, value in held["constants"].items()}
        self.n = np.array([float(size) for size in sizes])
        self.errors = np.array([each["error"] for each in self.sizes])
        self.limit = quantiles_in_the_limit(self.n, LEVELS, m, self.constants)
        self.theorem = -1.0 / (4 * m)
        n = np.concatenate([each["n"] for each in inputs]).astype(float)
        b = np.concatenate([each["b"] for each in inputs])
        self.inputs = {size: b[(n == size) & (b > 0.0)] for size in np.unique(n)}
        self.slope, self.curvature = slopes_of_quantiles(self.n, self.errors)

    @property
    def picture(self) -> str:
        """File name of the picture."""
        return "limit_law.png" if self.m == 2 else f"limit_law_{self.m}.png"

    def draw(self) -> Figure:
        """Theory, search, limit law and estimates."""
        figure = Figure(figsize=(14.0, 5.4), layout="constrained")
        figure.suptitle(f"{_NAMES[self.m].capitalize()} atoms on one normal law, and in a cell")
        left, middle, right = figure.subplots(1, 3)
        self._quantiles(left, self.n, self.errors, self.slope, "largest error of a mean")
        for index, level in enumerate(LEVELS):
            colour = marks(index)["color"]
            left.plot(self.n, self.limit[:, index], color=colour, linewidth=1.0)
            if level < 0.5 and self.m == 2:
                below = 0.5 * self.limit[0, index] * (self.n / self.n[0]) ** -0.25
                left.plot(self.n, below, "--", color="#666666", linewidth=0.9)
                left.annotate("-1/4", (self.n[-1], below[-1]), fontsize="small", color="#666666")
        score, last = np.array(self.sizes[-1]["score"]), self.n[-1] ** -self.theorem
        middle.plot(score, self.errors[-1] * last, ".", markersize=3, label="fits")
        grid = np.linspace(score.min(), score.max(), 400)
        typical = np.stack([np.full_like(grid, 0.674), grid], axis=1)
        at_last = errors_in_the_limit(self.n[-1], typical, self.m, self.constants) * last
        middle.plot(grid, at_last, color="#444444", linewidth=1.0, label="limit law")
        middle.set_xlabel(f"standardised score of order {2 * self.m}")
        middle.set_ylabel(f"error times $n^{{1/{4 * self.m}}}$")
        middle.set_title(f"n = {self.n[-1]:.0e}", fontsize="medium")
        middle.legend(fontsize="small", frameon=False)
        plain_axes(middle)
        sizes, errors = np.array(list(self.inputs)), list(self.inputs.values())
        slope = slopes_of_quantiles(sizes, errors)[0]
        self._quantiles(right, sizes, errors, slope, "error of b in a cell")
        caption(figure, _CAPTION)
        return figure

    def _quantiles(
        self, ax: Any, n: FloatArray, errors: Sequence[FloatArray] | FloatArray,
        slopes: FloatArray, name: str,
    ) -> None:  # fmt: skip
        """Quantiles with their slopes, beside the slopes of theorem and search."""
        for index, level in enumerate(LEVELS):
            drawing = {k: v for k, v in marks(index).items() if k not in ("elinewidth", "capsize")}
            told = f"{level:.0%}: {_told(slopes[index])}"
            values = [np.quantile(at, level) for at in errors]
            ax.plot(n, values, label=told, **{**drawing, "linestyle": "none"})
        top = np.quantile(errors[0], 0.9)
        for power, line, above, told in (
            (self.theorem, "--", 1.5, f"theorem: {self.theorem:.3f}"),
            (-0.5 / self.order, ":", 2.0, f"search: {-0.5 / self.order:.3f}"),
        ):
            ax.plot(n, above * top * (n / n[0]) ** power, line, color="#666666", label=told)
        ax.set(xscale="log", yscale="log", xlabel="sample size $n$", ylabel=name)
        ax.legend(
            title="quantile: slope over all sizes", fontsize="x-small", frameon=False, ncols=2,
            columnspacing=0.8, loc="lower left", bbox_to_anchor=(0.0, 1.0), alignment="left",
            borderaxespad=0.2,
        )  # fmt: skip
        plain_axes(ax)

    def slopes(self) -> list[str]:
        """Rows of slopes and curvatures."""
        rows = []
        for index, level in enumerate(LEVELS):
            slope, curvature = self.slope[index], self.curvature[index]
            own = np.polyfit(np.log10(self.n), np.log10(self.limit[:, index]), 1)[0]
            rows.append(
                f"| {self.m} | {level:.0%} | {self._predicted(level)} | {-0.5 / self.order:.4f} |"
                # Rounding of -1/16 must not decide about its third digit.
                f" {round(own, 9):.3f} | {_told(slope)} | {_told(curvature, 4)} |"
            )
        return rows

    def _predicted(self, level: float) -> str:
        if self.m > 2 or level > 0.5:
            return f"-1/{4 * self.m}"
        return "-1/4" if level < 0.5 else "none: on the border"

    def missed(self) -> list[str]:
        """Quantiles whose interval leaves out the limit law's own slope, and by how much."""
        own = np.polyfit(np.log10(self.n), np.log10(self.limit), 1)[0]
        away = np.maximum(self.slope[:, 1] - own, own - self.slope[:, 2])
        return [
            f"{level:.0%} of {_NAMES[self.m]} by {by:.1g}"
            for level, by in zip(LEVELS, away, strict=True)
            if by > 0.0
        ]

    def far(self) -> FloatArray:
        """How far quantiles of the fits are from the limit's, in parts, by size and level."""
        return np.abs(np.quantile(self.errors, LEVELS, axis=1).T / self.limit - 1.0)

    def details(self) -> list[str]:
        """Rows by size."""
        return [
            f"| {self.m} | {n:.0e} |"
            f" {' | '.join(f'{value:.3g}' for value in np.quantile(each['error'], LEVELS))} |"
            f" {' | '.join(f'{value:.3g}' for value in limit)} | {each['variance']:.2g} |"
            f" {each['floor']:.0%} | {each['agree']:.0%} | {each['doubling']:.0e} |"
            for n, each, limit in zip(self.n, self.sizes, self.limit, strict=True)
        ]


def markdown(parts: Sequence[Panels], floor: float) -> str:
    """The page.

    Parameters
    ----------
    parts : sequence of Panels
        Of `panels`.
    floor : float
        Least mass of an atom.

    Returns
    -------
    str
        Markdown.
    """
    told = "; ".join(
        f"{_NAMES[part.m]} atoms: quantiles of the errors are within"
        f" {part.far()[0, 2:].max():.0%} of the limit law's at n = {part.n[0]:.0e} and within"
        f" {part.far()[-1, 2:].max():.0%} at {part.n[-1]:.0e} (75 and 90%), slope of the 90%"
        f" quantile {_told(part.slope[-1])} for"
        f" {part.theorem:.4f}"
        for part in parts
    )
    missed = [each for part in parts for each in part.missed()]
    sets = ", ".join(
        f"{part.errors.shape[1]} of {REPLICATES[part.m]} for {_NAMES[part.m]}" for part in parts
    )
    head = " | ".join(f"{level:.0%}" for level in LEVELS)
    head += " | " + " | ".join(f"limit {level:.0%}" for level in LEVELS)
    return "\n".join(
        [
            "# The law of the error of an over-specified estimate",
            "",
            f"**Result: {told}.**",
            "",
            "Made by `python -m experiments.limit_law page` from limit_law.json: maximum likelihood"
            f" of normal atoms with masses of at least {floor:g} on standard normal samples of"
            f" {len(parts[0].n)} sizes; data sets at each, of the design's: {sets} atoms."
            "  Data sets are fitted in the order of their numbers, each at all sizes, and the"
            " last ones were not begun when the run was stopped: none is left out for what it"
            " found.  Theorems and proofs: docs/theory/limit_law.md.",
            "",
            "Two atoms: where the fourth score is negative, which has probability 1/2, they part by"
            " n^(-1/8); else by n^(-1/4).  So quantiles above one half fall like n^(-1/8), those"
            " below like n^(-1/4), and the median, on the border, has no slope.  Three and four:"
            " both signs of the score of order 2 m are met by errors of order n^(-1/(4 m)), with a"
            " constant for each sign, and all quantiles fall alike; where a point is off the line"
            " in the middle, another shape of the atoms has the higher likelihood at this n.",
            "",
            *(f"![Theory, search, limit, fits: {_NAMES[p.m]} atoms]({p.picture})\n" for p in parts),
            "The limit law is of atoms on a normal law without inputs.  Of cells of lines under a"
            " gate there is no limit law here, for no cell size: the panels on the right show what"
            " the search of microscope_floors_search.md found there, beside the theorem's slope.",
            "",
            "| atoms | quantile | theorem | search, lines with gates | slope of the limit |"
            " slope of the fits | change a decade |",
            "|---|---|---|---|---|---|---|",
            *(row for part in parts for row in part.slopes()),
            "",
            "Slopes are over all sizes, with 95% bootstrap intervals; a change a decade whose"
            " interval holds 0 shows no curvature.  The limit's slope is left out by the interval"
            f" of: {', '.join(missed) or 'none'}.  Search, lines with gates: -1/(2 r) with the"
            " order r that the explorer found for linear experts under a softmax gate, with inputs"
            " (theory_explorer.md); the theorem's exponent beside it is the same for both.",
            "",
            "Sizes end at 1e20 by design and not for want of digits: coefficients, which cancel to"
            " n^(-1/2), are known to 1e-16 of the means, so that at 1e20 rounding is below 1e-6 of"
            " a score's noise (tests/experiments/test_limit_law.py compares with fractions).  The"
            " microscopes with inputs stop at 1e14, where heights are known to .001.",
            "",
            "Variance: 90% quantile of the largest error of a variance.  Floor: share of the fits"
            " with a mass at its floor.  Agree: mean share of eight ascents that end within 0.01 of"
            " the best log-likelihood; doubling: the most that the second four added to it.",
            "",
            f"| atoms | n | {head} | variance | floor | agree | doubling |",
            "|" + "---|" * (6 + 2 * LEVELS.size),
            *(row for part in parts for row in part.details()),
        ]
    ) + "\n"  # fmt: skip


def _told(values: FloatArray, digits: int = 3) -> str:
    point, low, high = (f"{value:.{digits}f}" for value in values)
    return f"{point} [{low}, {high}]"
