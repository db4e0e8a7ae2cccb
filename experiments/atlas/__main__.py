"""``python -m experiments.atlas``: compute the cells that are not kept yet, then write the page."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.atlas.cells import SIZES, AtlasCell, atlas_cells
from experiments.atlas.derivatives import AT_LEAST, BY_DERIVATIVES, is_mixture
from experiments.atlas.labels import BY_GATES, order_of_gates
from experiments.atlas.links import explored_orders
from experiments.atlas.order import (
    BY_CASE,
    NOT_DONE,
    AtlasResult,
    by_rule,
    drawn_truth,
    run_cell,
)
from experiments.atlas.page import write
from experiments.folders import FIGURES

_KEPT = "theory_atlas.json"


def main(
    folder: Annotated[Path, typer.Argument(help="Where the results and the page are.")] = FIGURES,
    minutes: Annotated[
        float, typer.Option(help="Stop to begin cells after so long; 0 writes the page alone.")
    ] = 600.0,
    seconds: Annotated[float, typer.Option(help="Longest time for one search.")] = 600.0,
    sizes: Annotated[list[int] | None, typer.Option(help="Cells of these sizes.")] = None,
) -> None:
    """Compute what is missing of the atlas of rates, keep each cell as it ends, write the page.

    An interrupted run goes on where it was: a cell that is kept is computed again only if it ran
    out of a shorter time.
    """
    path = folder / _KEPT
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    begun = time.monotonic()
    explored = explored_orders(folder)
    for cell in sorted(atlas_cells(), key=_is_searched):
        _by_explorer(cell, kept, explored)
        _by_gates(cell, kept)
        if _by_rule(cell, kept) or time.monotonic() - begun > 60.0 * minutes:
            continue
        if cell.size not in (sizes or SIZES) or _is_done(kept.get(cell.key), seconds):
            continue
        found = run_cell(cell, seconds)
        kept[cell.key] = found.as_dict()
        typer.echo(f"{cell.key}: r = {found.order}, {found.found}; {found.far}")
        _keep(kept, path)
    _keep(kept, path)
    write(kept, folder)


def _is_searched(cell: AtlasCell) -> bool:
    """Whether only a search can answer a cell, for minutes where derivatives take seconds."""
    return not is_mixture(cell.true_family())


def _keep(kept: Mapping[str, Any], path: Path) -> None:
    text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _by_explorer(cell: AtlasCell, kept: dict[str, Any], explored: Mapping[Any, Any]) -> None:
    """Take the order that the explorer found, where the atlas has none."""
    own = explored.get((cell.likelihood, cell.gate, cell.expert, cell.size))
    known = kept.get(cell.key, {})
    if own is not None and known.get("order") is None:
        one = kept.get(replace(cell, size=1).key, {"null": ()})
        found = AtlasResult(one["null"], own[0], f"{BY_CASE} {own[1]}", far=known.get("far", ""))
        kept[cell.key] = found.as_dict()


def _by_gates(cell: AtlasCell, kept: dict[str, Any]) -> None:
    """Take the order that two gates attain, where a search found a smaller one.

    Searched distances are upper bounds of the least ones, so that their order is one of these.
    """
    known = kept.get(cell.key)
    if known is None or known["null"] or known["order"] is None or known["found"] == BY_GATES:
        return
    if _gate_of(cell) != "sigmoid-quadratic":
        return
    model = cell.true_family()
    attained = order_of_gates(model, drawn_truth(cell)[0], cell.size)
    if attained is not None and known["order"] < attained:
        kept[cell.key] = known | {"order": float(attained), "found": BY_GATES}


def _gate_of(cell: AtlasCell) -> str:
    gate = cell.axes[1]
    return gate if isinstance(gate, str) else str(gate["name"])


def _by_rule(cell: AtlasCell, kept: dict[str, Any]) -> bool:
    """Answer a cell without a search, if those of other sizes of its family say enough."""
    one = kept.get(replace(cell, size=1).key)
    if one is None or cell.size == 1:
        return False
    others = (kept.get(replace(cell, size=size).key, {}).get("found") for size in SIZES[1:])
    decided = next((told for told in others if told in (AT_LEAST, BY_DERIVATIVES)), "")
    found = by_rule(cell, tuple(one["null"]), decided)
    if found is None:
        return False
    far = kept.get(cell.key, {}).get("far", "")
    kept[cell.key] = replace(found, far=far).as_dict()
    return True


def _is_done(kept: Mapping[str, Any] | None, seconds: float) -> bool:
    """Whether a cell is kept, and not for want of time that it would have now."""
    if kept is None:
        return False
    if str(kept["found"]).startswith(BY_CASE):
        return True
    short = any(str(kept[name]).startswith(NOT_DONE) for name in ("found", "far"))
    return not short or kept["seconds"] >= seconds


if __name__ == "__main__":
    typer.run(main)
