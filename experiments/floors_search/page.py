"""The page of the search: agreement, gains, and the slopes before and after."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.floors_search.pool import KINDS
from experiments.floors_search.search import FIRST, MOST, SAME, SHARE
from experiments.pages.floors import DRAWN, Cell, Panel, beside_one, draw
from experiments.pages.quantiles import FEWEST, QuantileSlope, pooled, quantile_slope
from moestat.sweep.kinds.fit.spec import Curve, Spec

__all__ = ["RESULT", "markdown", "read", "result", "write"]

RESULT, _PAGE = "microscope_floors_search.json", "microscope_floors_search.md"
_GATE = "gaussian, softmax"
_BLOCKS = ("beta1", "a", "b", "nu")
_BEFORE, _AFTER = "shipped", "found"
_HIGHER = 0.1
"""Log-likelihood by which a search is called higher: far above rounding at n = 1e14."""


def read(kept: Path) -> list[dict[str, Any]]:
    """The data sets that were searched, one a line."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    return [json.loads(line) for line in lines]


def result(found: Sequence[Mapping[str, Any]], specs: Iterable[Spec]) -> dict[str, Any]:
    """What the page tells, as plain data.

    Parameters
    ----------
    found : sequence of mapping
        Records of `experiments.floors_search.search.search`.
    specs : iterable of Spec
        The experiments.

    Returns
    -------
    dict
        ``searches``, a row for each curve and size, ``slopes``, one for each curve, cell size and
        block, ``pooled``, the slopes of b by cell size, and ``errors`` after the search by curve
        and cell size.
    """
    searches: list[dict[str, Any]] = []
    slopes: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    of_b: dict[int, list[tuple[QuantileSlope, QuantileSlope]]] = {}
    for spec in specs:
        for curve in spec.curves:
            own = [each for each in found if each["curve"] == curve.name]
            searches += [_search(curve.name, n, own) for n in sorted({each["n"] for each in own})]
            for size in (2, 3, 4):
                beside = beside_one(spec, curve, size)
                panel = Panel(curve.truth, curve.name, size, [], _GATE, beside)
                kept = _errors(curve, own, size, beside)
                errors += [] if kept is None else [kept]
                for block in _BLOCKS:
                    before = _slope(own, _BEFORE, size, block)
                    after = _slope(own, _AFTER, size, block)
                    if before is None or after is None:
                        continue
                    both = {_BEFORE: before, _AFTER: after}
                    slopes.append(
                        {
                            "curve": curve.name,
                            "size": size,
                            "block": block,
                            "theory": panel.theory(block),
                            **{
                                name: [each.slope, each.low, each.high]
                                for name, each in both.items()
                            },
                        }
                    )
                    if block == "b":
                        of_b.setdefault(size, []).append((before, after))
    return {
        "searches": searches,
        "slopes": slopes,
        "pooled": {
            size: [pooled([pair[which] for pair in pairs]) for which in (0, 1)]
            for size, pairs in of_b.items()
        },
        "errors": errors,
    }


def _errors(curve: Curve, own: Sequence[Mapping[str, Any]], size: int, beside: bool) -> Any:
    """Errors after the search in a curve's cells of one size, or None where there are too few."""
    cells = [(each["n"], cell) for each in own for cell in each[_AFTER] if cell["size"] == size]
    if len(cells) < FEWEST:
        return None
    held = {name: [cell.get(name, 0.0) for _, cell in cells] for name in ("a", "b", "nu")}
    return {
        "curve": curve.name, "truth": curve.truth, "size": size, "beside_one": beside,
        "n": [n for n, _ in cells], **held,
    }  # fmt: skip


def _panel(each: Mapping[str, Any]) -> Panel:
    """Kept errors as `experiments.pages.floors` draws them."""
    blocks = zip(each["a"], each["b"], each["nu"], strict=True)
    cells = [
        Cell(n, each["size"], dict(zip(("a", "b", "nu"), errors, strict=True)), {})
        for n, errors in zip(each["n"], blocks, strict=True)
    ]
    return Panel(each["truth"], each["curve"], each["size"], cells, _GATE, each["beside_one"])


def _search(curve: str, n: float, own: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A row on the searches of a curve at one size."""
    at = [each for each in own if each["n"] == n]
    gains = np.array([each["gain"] for each in at])
    sizes = [[sorted(cell["size"] for cell in each[w]) for w in (_BEFORE, _AFTER)] for each in at]
    return {
        "curve": curve, "n": n, "sets": len(at),
        "starts": float(np.mean([each["starts"] for each in at])),
        "agree": float(np.mean([each["agree"] for each in at])),
        "done": float(np.mean([each["done"] for each in at])),
        "doubling": float(max(each["doubling"] for each in at)),
        "doubled": float(np.mean([each["doubling"] > SAME for each in at])),
        "higher": float(np.mean(gains > _HIGHER)), "gain": float(gains.max()),
        "moved": float(np.mean([before != after for before, after in sizes])),
        "kinds": np.mean([each["kinds"] for each in at], axis=0).tolist(),
    }  # fmt: skip


def _slope(
    own: Sequence[Mapping[str, Any]], which: str, size: int, block: str
) -> QuantileSlope | None:
    """Slope of the 90% quantile of a block's errors in cells of one size."""
    pairs = [
        (each["n"], cell[block])
        for each in own
        for cell in each[which]
        if cell["size"] == size and cell.get(block, 0.0) > 0.0
    ]
    if not pairs:
        return None
    n, error = np.array(pairs).T
    return quantile_slope(n, error, 0.9, np.random.default_rng(23))


def write(held: Mapping[str, Any], folder: Path) -> None:
    """Write the result, its page and its pictures.

    Parameters
    ----------
    held : mapping
        Of `result`.
    folder : Path
        Where.
    """
    plain = json.loads(json.dumps(held), parse_float=lambda text: float(f"{float(text):.4g}"))
    (folder / RESULT).write_text(json.dumps(plain, separators=(",", ":")) + "\n", encoding="utf-8")
    panels = [_panel(each) for each in plain["errors"]]
    for name, figure in zip(DRAWN.values(), draw(panels), strict=True):
        figure.savefig(folder / f"{name}.png", dpi=110)
    (folder / _PAGE).write_text(markdown(plain), encoding="utf-8")


def markdown(held: Mapping[str, Any]) -> str:
    """The page."""
    rows = held["searches"]
    sets = [row["sets"] for row in rows]
    names = {2: "two", 3: "three", 4: "four"}
    told = "; ".join(
        f"cells of {names[int(size)]} {before[0]:.3f} ± {before[1]:.3f} before,"
        f" {after[0]:.3f} ± {after[1]:.3f} after, for {-1 / (4 * int(size)):.4f}"
        for size, (before, after) in held["pooled"].items()
    )
    told = (
        f"  Slopes of the 90% quantile of b, pooled over truths and fits: {told}." if told else ""
    )
    few = "" if min(sets) >= 100 else " of the 100 that the design has at each size"
    return "\n".join(
        [
            "# The floored microscopes, searched until starts agree",
            "",
            "Made by `python -m experiments.floors_search run FILE --sets 100`, then `page FILE`,"
            f" here with {min(sets)} to {max(sets)} data sets{few}.",
            "",
            f"**Result: the estimates of microscope_floors.md, each the best of 8 starts, are lower"
            f" by more than {_HIGHER:g} than what a search finds in {_share(rows, 'higher'):.0%} of"
            f" these data sets ({_by_curve(rows)}), by up to"
            f" {max(row['gain'] for row in rows):.2g}; the sizes of the"
            f" Voronoi cells are others in {_share(rows, 'moved'):.0%}, and"
            f" {_share(rows, 'done'):.0%} of the searches ended by agreement.{told}**",
            "",
            "A search draws independent starts of four kinds in turn: around the truth at a"
            " distance of .03 to 1, split atoms that keep mean and variance, atoms at Gauss-Hermite"
            " nodes that keep 2 m - 1 moments, and merged atoms whose variances differ; each is run"
            f" to its end.  There are {FIRST} of them, then twice as many, until at least"
            f" {SHARE:.1%} of all are within {SAME:g} of the highest log-likelihood and the last"
            f" doubling has raised it by at most {SAME:g}, or there are {MOST}.  Share, tolerance"
            " and numbers were fixed after trials of six data sets with twice as many.  Heights are"
            " sums of differences to the truth's log-density, known to .001 at n = 1e14.",
            "",
            "## Searches",
            "",
            "Ended: share of the data sets whose search ended by this rule and not at the most"
            " starts.  Agree: mean share of independent starts at the highest log-likelihood."
            "  Doubling: the most that the last doubling of starts added, and the share of data"
            f" sets where it added more than {SAME:g}.  Higher: share of the data sets where the"
            f" shipped estimate is lower by more than {_HIGHER:g}, and the largest difference."
            "  Cells: share where the sizes of the Voronoi cells are others.  Last column:"
            f" agreement by kind ({', '.join(KINDS)}).",
            "",
            "| truth and fit | n | data sets | starts | ended | agree | doubling | higher | most |"
            " cells | agree, by kind |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *(_told(row) for row in rows),
            "",
            *(f"![90% quantiles of errors of {b}](<{name}.png>)\n" for b, name in DRAWN.items()),
            "## Slopes",
            "",
            "Of the 90% quantile on log n over these sizes, with 95% bootstrap intervals, of the"
            " same data sets; theorem and its refinement as in microscope_floors.md."
            + ("" if min(sets) >= 100 else "  With so few data sets slopes and their intervals are"
               " rough; what can be read is the change."),
            "",
            "| truth and fit | atoms in the cell | block | theorem | shipped starts | searched |"
            " change |",
            "|---|---|---|---|---|---|---|",
            *(_compared(row) for row in held["slopes"]),
        ]
    ) + "\n"  # fmt: skip


def _share(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    """A share over all data sets."""
    return float(np.average([row[name] for row in rows], weights=[row["sets"] for row in rows]))


def _by_curve(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many data sets of each curve are higher after the search."""
    told = []
    for curve in dict.fromkeys(row["curve"] for row in rows):
        own = [row for row in rows if row["curve"] == curve]
        higher = round(sum(row["higher"] * row["sets"] for row in own))
        told.append(f"{curve}: {higher} of {sum(row['sets'] for row in own)}")
    return "; ".join(told)


def _told(row: Mapping[str, Any]) -> str:
    kinds = ", ".join(f"{each:.0%}" for each in row["kinds"])
    return (
        f"| {row['curve']} | {row['n']:.0e} | {row['sets']} | {row['starts']:.0f} |"
        f" {row['done']:.0%} | {row['agree']:.0%} | {row['doubling']:.2g} ({row['doubled']:.0%}) |"
        f" {row['higher']:.0%} | {row['gain']:.2g} | {row['moved']:.0%} | {kinds} |"
    )


def _compared(row: Mapping[str, Any]) -> str:
    theory = "not identified" if row["theory"] is None else f"{row['theory']:.4f}"
    before, after = ("{:.3f} [{:.3f}, {:.3f}]".format(*row[which]) for which in (_BEFORE, _AFTER))
    change = row[_AFTER][0] - row[_BEFORE][0]
    return (
        f"| {row['curve']} | {row['size']} | {row['block']} | {theory} | {before} | {after} |"
        f" {change:+.3f} |"
    )
