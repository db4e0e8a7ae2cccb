"""The page and the picture of the atlas of rates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.atlas.cells import SIZES, AtlasCell, atlas_cells
from experiments.atlas.derivatives import AT_LEAST, BY_DERIVATIVES
from experiments.atlas.grid import coloured_grid, keys_of
from experiments.atlas.labels import BY_GATES, gate_name, unseen
from experiments.atlas.links import Known, key_of, known_families
from experiments.atlas.order import BY_INFORMATION, NOT_DONE
from moestat.rates.plots import save_figure
from moestat.rates.style import style

__all__ = ["markdown", "write"]

_PAGE, _PICTURE = "theory_atlas.md", "theory_atlas.png"
_KINDS = (
    ("r = 1: n^(-1/2)", "#2a788e"),
    ("r = 2: n^(-1/4)", "#7ad151"),
    ("r = 4 or 5: n^(-1/8), n^(-1/10)", "#fde725"),
    ("r = 6 or 8: n^(-1/12), n^(-1/16)", "#f8961e"),
    ("d = 0: not identified", "#b5179e"),
    ("another order", "#6c757d"),
    ("no such measure, or not supported", "#dee2e6"),
    ("not done", "#ffffff"),
    ("d = 0 to rounding, in a search", "#e5a0d3"),
)
_NEAR = 0.15
"""How far a searched order may be from the whole number that it is counted as."""


@dataclass(frozen=True)
class _Row:
    """A family with its cells."""

    words: tuple[str, str, str]
    cells: Mapping[int, Mapping[str, Any]]
    known: Known
    gate: str
    unseen: str

    @property
    def far(self) -> str:
        """The search far from the truth: over-specified by one, else exactly specified."""
        told = (self.cells.get(size, {}).get("far", "") for size in (2, 1))
        return next((text for text in told if text), "")


def _kind(cell: Mapping[str, Any] | None) -> int:
    """Place in `_KINDS` of what was found in a cell."""
    if cell is None or str(cell["found"]).startswith(NOT_DONE):
        return 7
    order = cell["order"]
    if order is None:
        return 6
    if math.isinf(order):
        return 4 if cell["found"] == BY_INFORMATION else 8
    for place, orders in ((0, (1,)), (1, (2,)), (2, (4, 5)), (3, (6, 8))):
        if any(abs(order - whole) <= _NEAR for whole in orders):
            return place
    return 5


def _shown(cell: Mapping[str, Any] | None) -> str:
    kind = _kind(cell)
    if cell is None:
        return ""
    if kind == 7:
        return "not done"
    if kind == 6:
        return "none"
    if math.isinf(cell["order"]):
        return "d = 0" if kind == 4 else "d ≈ 0"
    if cell["found"] in (AT_LEAST, BY_GATES):
        return f"≥ {cell['order']:g}"
    return "2" if cell["found"] == BY_DERIVATIVES else f"{cell['order']:.2f}"


def _rows(kept: Mapping[str, Mapping[str, Any]], folder: Path) -> list[_Row]:
    known = known_families(folder)
    rows: dict[tuple[str, str, str], _Row] = {}
    for cell in atlas_cells():
        if cell.words not in rows:
            own = known.get(key_of(cell.true_family()), Known())
            found = {size: kept[key] for size in SIZES if (key := _key(cell, size)) in kept}
            null = next((tuple(each["null"]) for each in found.values() if each["null"]), ())
            told = unseen(cell.true_family(), null)
            rows[cell.words] = _Row(cell.words, found, own, gate_name(cell), told)
    return sorted(rows.values(), key=lambda row: (not row.known.claims, row.words))


def _key(cell: AtlasCell, size: int) -> str:
    return "; ".join((*cell.words, str(size)))


def markdown(rows: Sequence[_Row]) -> str:
    """The page.

    Parameters
    ----------
    rows : sequence of _Row
        All families.

    Returns
    -------
    str
        Markdown.
    """
    planned = len(rows) * len(SIZES)
    reasons = _reasons(rows)
    kinds = Counter(_kind(row.cells.get(size)) for row in rows for size in SIZES)
    counted = ", ".join(f"{kinds[place]} {name}" for place, (name, _) in enumerate(_KINDS))
    begun = [row for row in rows if row.cells]
    found = sum("another measure" in row.far for row in begun)
    searched = sum(bool(row.far) and not _empty(row.far) for row in begun)
    decided = (AT_LEAST, BY_DERIVATIVES)
    by_derivatives = sum(each["found"] in decided for row in rows for each in row.cells.values())
    lines = [
        "# An atlas of rates",
        "",
        f"Made by `python -m experiments.atlas`: {len(rows)} families with cells of"
        f" {SIZES[0]} to {SIZES[-1]} fitted atoms on one of two true ones, {planned} cells:"
        f" {counted}.  A cell that is not done has not been reached, or its search ran out of its"
        " processor time; the same command goes on where it was.",
        "",
        "Families are those of the explorer's cases, all that differ from one of these in gate or"
        " in expert, and a softmax gate over linear experts with every likelihood.  The truth is"
        " the"
        " best conditioned of twenty drawn from the normal law with the family's name as seed, on"
        " inputs uniform on [-2, 2]; under raw gates the first atom's gate is constant.  *r* is the"
        " order of the worst deviation: the least distance of a density with a largest deviation D"
        " falls like D^r, so that estimates of this size of cell err by n^(-1/(2 r)) in the worst"
        " case near the truth.  In cells of one it is 1 where the information is nonsingular, and"
        " *d = 0* where a direction is not seen, along which several atoms can move, too; *d ≈ 0*:"
        " a search ended at a distance that is 0 to rounding, where D is not small.  In cells of"
        " several derivatives decide it where"
        " they can: *2* where no displacements cancel to second order, whatever the size of the"
        " cell, and *≥* where the atom solves a heat equation, so that intercepts and variances"
        f" alone make an order of twice the cell's size; {by_derivatives} cells are decided so."
        "  Elsewhere r is searched from one start per deviation, upper"
        " bounds of the infimum: r may be larger than it is found.  Orders that the explorer found"
        " at a truth of the papers are taken from it (theory_explorer.md).  *none*: no measure with"
        " this truth's density has such a cell, or the explorer does not take the family.",
        "",
        "*d = 0* is of what the column *not seen* names: in cells of one all else is identified."
        "  The directions are those of derivatives, which are blind to jumps: under a gate that"
        " switches, a move of the switch by eps changes the density on an interval of that length,"
        " d ~ eps^(1/2) and r = 1/2, while in a cell of several an atom that is never chosen can"
        " move freely.  *≥ 5* for quadratic gates is attained by two of them, whatever the expert"
        " (fact quadratic-gates): searches have not reached it.",
        "",
        f"*Far*: whether a search from {searched} families' starts elsewhere (random, turned signs,"
        f" copies, experts that are 0) reached the truth's law at another measure; it did in"
        f" {found}.  *Facts* and *papers* are of claims that a check of this family stands"
        f" beside, their"
        " exponents for cells of one and of several; *measured*: slopes of sweeps, by size of"
        " cell.",
        "",
        "Families of classes have two of them and one input.  There the densities hardly curve in"
        " their parameters: under the sigmoid gate with three atoms in a cell a search ends at"
        " d = 2e-12 for D = 0.06, and below it at rounding, while derivatives show r = 2, as the"
        " fact second-order-classes proves for almost every truth (docs/theory/short_proofs.md).",
        "",
        "Cells without an order, by reason: "
        + "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        + ".",
        "",
        f"![Orders by family and size of cell]({_PICTURE})",
        "",
        "| likelihood | gate | expert | r, 1 | 2 | 3 | 4 | not seen | far | facts | papers |"
        " measured |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *map(_line, begun),
    ]
    return "\n".join(lines) + "\n"


def _reasons(rows: Sequence[_Row]) -> Counter[str]:
    """Why cells have no order, or none yet, and how many of each reason."""
    found: Counter[str] = Counter()
    for row in rows:
        for size in SIZES:
            cell = row.cells.get(size)
            if cell is None:
                found["not reached"] += 1
            elif cell["order"] is None:
                text = str(cell["found"])
                found["searches that ran out of time" if text.startswith(NOT_DONE) else text] += 1
    return found


def _empty(text: str) -> bool:
    return text.startswith(NOT_DONE) or "jumps" in text


def _line(row: _Row) -> str:
    known = row.known
    papers = "; ".join(f"{size}: {own}" for size in SIZES if (own := known.papers(size)))
    measured = "; ".join(
        f"{size}: {', '.join(all_)}" for size, all_ in sorted(known.measured.items())
    )
    facts = ", ".join(f"{name} ({role})" for name, role in known.facts.items())
    cells = [_shown(row.cells.get(size)) for size in SIZES]
    one, _, three = row.words
    told = (one, row.gate, three, *cells, row.unseen, row.far, facts, papers, measured)
    return "| " + " | ".join(each.replace("|alpha|", "\\|alpha\\|") for each in told) + " |"


def _draw(rows: Sequence[_Row], path: Path) -> None:
    begun = [row for row in rows if row.cells]
    kinds = np.array([[_kind(row.cells.get(size)) for size in SIZES] for row in begun])
    with style():
        figure, axes = coloured_grid(
            kinds,
            _KINDS,
            [str(size) for size in SIZES],
            [", ".join(row.words) for row in begun],
            head="fitted atoms in the cell",
            height=1.6 + 0.17 * len(begun),
        )
        for place, row in enumerate(begun):
            if "another measure" in row.far:
                axes.plot(1, place, marker="x", color="black", markersize=4)
        cross = axes.plot([], [], "x", color="black", markersize=4)[0]
        cross.set_label("another measure far away")
        handles = [*keys_of(_KINDS), cross]
        figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=6)
        save_figure(figure, path)


def write(kept: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Write page and picture.

    Parameters
    ----------
    kept : mapping
        Results by cell.
    folder : Path
        Where the kept evidence of the claims is, and page and picture go.
    """
    rows = _rows(kept, folder)
    _draw(rows, folder / _PICTURE)
    (folder / _PAGE).write_text(markdown(rows), encoding="utf-8")
