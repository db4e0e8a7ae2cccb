"""The page and the picture of the atlas by `moestat.theory.rates`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from experiments.atlas.cells import atlas_cells
from experiments.atlas.grid import coloured_grid, keys_of
from moestat.rates.plots import save_figure
from moestat.rates.style import style

__all__ = ["CELLS", "compared", "write"]

CELLS = ("1", "2", "3", "2, 2")
_PAGE, _PICTURE, _OLD = "atlas_rates.md", "atlas_rates.png", "theory_atlas.json"
_KINDS = (
    ("r = 1", "#2a788e"),
    ("r = 3/2 or 2", "#7ad151"),
    ("r = 4 or 5", "#fde725"),
    ("r = 6 or more", "#f8961e"),
    ("not identified", "#b5179e"),
    ("no such measure", "#dee2e6"),
    ("undecided or no answer", "#ffffff"),
)
_DECIDED = ("proved", "certified", "not identified", "no such measure")
_SHARED = "copies share the gate's constant"
"""Why masses of raw gates are not identified in larger cells; the older atlas leaves them out."""
_ALONE = "not looked at: two cells at once need masses to share, and no corners or jumps"
Told = Mapping[str, Any]


def _rows(told: Told, cell: str) -> list[Mapping[str, Any]]:
    return [row for row in told["rows"] if row["cell"] == cell]


def _is_decided(row: Mapping[str, Any]) -> bool:
    return row["status"] in _DECIDED and not row["at_least"]


def _worst(rows: list[Mapping[str, Any]]) -> tuple[float, bool]:
    """The largest exponent of some rows, and whether it is a lower bound (beside unknown ones)."""
    known = [(float(row["r"]), row["at_least"]) for row in rows if row["r"] is not None]
    if not known:
        return math.nan, False
    r, at_least = max(known)
    return r, at_least or any(row["status"] == "undecided" for row in rows)


def _kind(told: Told, cell: str) -> int:
    rows = _rows(told, cell)
    statuses = {row["status"] for row in rows}
    if rows and statuses == {"no such measure"}:
        return 5
    r = _worst(rows)[0]
    if math.isnan(r):
        return 6
    return 4 if math.isinf(r) else int(np.searchsorted([1.0, 3.5, 5.5], r))


def _shown(told: Told, cell: str) -> str:
    """Every block with its exponent and status, those of one answer together."""
    if told["why"]:
        return told["why"]
    groups: dict[str, list[str]] = {}
    if not _rows(told, cell):
        return _ALONE
    for row in _rows(told, cell):
        r = {"inf": "∞", None: "?"}.get(row["r"], row["r"])
        r = f"{r:g}" if isinstance(r, float) else r
        sign = "≥ " if row["at_least"] else ""
        text = row["status"] if r in ("∞", "?") else f"r = {sign}{r} {row['status']}"
        block = row["block"]
        if row["lower"] is not None:
            block += f" ({row['lower']:.2g})"
        groups.setdefault(text, []).append(block)
    return "; ".join(f"{', '.join(blocks)}: {text}" for text, blocks in groups.items())


def compared(kept: Mapping[str, Told], old: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each cell of one, two and three atoms with the old atlas's entry, and what is said of both.

    Yields
    ------
    tuple of str
        The cell, the old entry beside the new one, and the kind of difference.
    """
    for name, told in sorted(kept.items()):
        for cell in CELLS[:3]:
            one = old.get(f"{name}; {cell}")
            rows = [row for row in _rows(told, cell) if not row["reason"].startswith(_SHARED)]
            r, at_least = _worst(rows)
            new = f"{'≥ ' if at_least else ''}{r:g}" if rows else told["why"]
            order = None if one is None else one["order"]
            before = "not reached" if one is None else str(one["found"])
            yield (
                f"{name}; {cell}",
                f"{order} ({before}) / {new}",
                _difference(order, before, told, rows),
            )


def _difference(order: float | None, before: str, told: Told, rows: list[Mapping[str, Any]]) -> str:
    r, at_least = _worst(rows)
    none = bool(rows) and all(row["status"] == "no such measure" for row in rows)
    if told["why"]:
        return "no answer now, none before" if order is None else "no answer now, one before"
    if order is None:
        if none:
            return "none in both" if "no measure" in before else "new: there is no such measure"
        if math.isnan(r):
            return "undecided in both"
        return "new: not reached before" if before == "not reached" else f"new: before {before}"
    if none or math.isnan(r):
        return "the old atlas has a search, now undecided"
    if math.isinf(order) and math.isinf(r):
        return "equal"
    if math.isinf(r):
        return "now not identified: some block has a free direction"
    if at_least and r < order:
        return "the old atlas has a larger one; now a lower bound, without searches"
    if math.isinf(order):
        return "now finite"
    if abs(order - r) <= 0.15:
        return "equal"
    return "now slower" if r > order else "now faster"


def _reasons(kept: Mapping[str, Told]) -> Counter[str]:
    return Counter(told["why"] for told in kept.values() if told["why"])


def write(kept: Mapping[str, Told], folder: Path) -> None:
    """Write page and picture.

    Parameters
    ----------
    kept : mapping
        Answers by family.
    folder : Path
        Where the results of the older atlas are, and page and picture go.
    """
    old = json.loads((folder / _OLD).read_text(encoding="utf-8"))
    _draw(kept, folder / _PICTURE)
    (folder / _PAGE).write_text("\n".join(_markdown(kept, old)) + "\n", encoding="utf-8")


def _markdown(kept: Mapping[str, Told], old: Mapping[str, Any]) -> Iterator[str]:
    statuses = Counter(row["status"] for told in kept.values() for row in told["rows"])
    answered = sum(bool(_rows(told, cell)) for told in kept.values() for cell in CELLS)
    bounds = sum(row["lower"] is not None for told in kept.values() for row in told["rows"])
    spent = sum(told.get("cpu", 0.0) for told in kept.values())
    yield "# The atlas of rates, block by block"
    yield ""
    yield (
        f"Made by `python -m experiments.atlas.rates`, one call of `moestat.theory.rates` for each"
        f" of the {len(kept)} families of [the older atlas](theory_atlas.md): cells of one, two and"
        f" three fitted atoms and two cells of two, {len(kept) * len(CELLS)} cells, of which"
        f" {answered} have an answer ({spent / 60.0:.0f} minutes of processor time).  Truths are"
        " those of the older atlas, rounded to two digits, inputs uniform on [-2, 2].  Rows of"
        " blocks by status: "
        + ", ".join(f"{count} {status}" for status, count in statuses.most_common())
        + "."
    )
    yield ""
    yield (
        f"A number after a block is the constant c of a lower bound, {bounds} in all: for large n"
        " no estimator has an expected error below c n^(-1/(2 r)) both at the truth and at every"
        " measure near it (Le Cam's two points; the pair of measures is explicit, its Hellinger"
        " distance is computed by quadrature, so that the constant is no larger than it must be"
        " but may be far below the best).  The upper bound is r with its status: *proved* and"
        " *certified* exclude a slower rate, *searched* and ≥ do not.  The"
        " table with one line for each block is `figures/atlas_rates.csv`."
    )
    families = len({cell.words for cell in atlas_cells()})
    if len(kept) < families:
        yield ""
        yield (
            f"{len(kept)} of {families} families have been asked, those nearest to the papers"
            " first; the same command goes on where it was."
        )
    if reasons := _reasons(kept):
        yield ""
        yield (
            "Families without an answer: "
            + "; ".join(f"{count} {why}" for why, count in reasons.most_common())
            + "."
        )
    yield ""
    yield f"![Largest exponent of a block, by family and cell]({_PICTURE})"
    yield ""
    yield "## Beside the older atlas"
    yield ""
    yield (
        "The older atlas has one order for the worst deviation of a cell of one, two or three"
        " atoms.  Where the new one is undecided or a lower bound below the old, the old atlas has"
        " a search of minutes, of which this pass has none (`--seconds` adds them).  *Old / new* of"
        " the cells that differ where both have an answer:"
    )
    yield ""
    all_ = list(compared(kept, old))
    counts = Counter(kind for *_, kind in all_)
    yield from (f"- {count}: {kind}" for kind, count in counts.most_common())
    yield ""
    yield "| cell | old / new | difference |"
    yield "|---|---|---|"
    for name, both, kind in all_:
        if kind.startswith(("now", "the old")) or "one before" in kind:
            yield f"| {name} | {both} | {kind} |"
    yield ""
    yield "## All cells"
    yield ""
    yield "| likelihood | gate | expert | atoms | blocks |"
    yield "|---|---|---|---|---|"
    for name, told in sorted(kept.items()):
        for cell in CELLS:
            text = " | ".join([*name.split("; "), cell, _shown(told, cell)])
            yield f"| {text.replace('|alpha|', chr(92) + '|alpha' + chr(92) + '|')} |"


def _draw(kept: Mapping[str, Told], path: Path) -> None:
    names = sorted(kept)
    kinds = np.array([[_kind(kept[name], cell) for cell in CELLS] for name in names])
    with style():
        figure, axes = coloured_grid(
            kinds,
            _KINDS,
            CELLS,
            [name.replace(";", ",") for name in names],
            head="fitted atoms in the cell, or in two cells at once",
            height=1.4 + 0.16 * len(names),
        )
        for y, name in enumerate(names):
            for x, cell in enumerate(CELLS):
                rows = _rows(kept[name], cell)
                if rows and all(map(_is_decided, rows)):
                    axes.plot(x, y, "o", color="black", markersize=2.5)
        dot = Line2D([], [], marker="o", color="black", linestyle="", markersize=3)
        dot.set_label("all blocks proved or certified")
        figure.legend(
            handles=[*keys_of(_KINDS), dot], loc="outside upper center", ncols=3, fontsize=6
        )
        save_figure(figure, path)
