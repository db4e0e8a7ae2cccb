"""``python -m experiments.atlas``: compute the cells that are not kept yet, then write the page."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.atlas.cells import SIZES, atlas_cells
from experiments.atlas.order import NOT_DONE, run_cell
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
    for cell in atlas_cells():
        if time.monotonic() - begun > 60.0 * minutes:
            break
        if cell.size not in (sizes or SIZES) or _is_done(kept.get(cell.key), seconds):
            continue
        found = run_cell(cell, seconds)
        kept[cell.key] = found.as_dict()
        typer.echo(f"{cell.key}: r = {found.order}, {found.found}; {found.far}")
        text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    write(kept, folder)


def _is_done(kept: Mapping[str, Any] | None, seconds: float) -> bool:
    """Whether a cell is kept, and not for want of time that it would have now."""
    if kept is None:
        return False
    short = any(str(kept[name]).startswith(NOT_DONE) for name in ("found", "far"))
    return not short or kept["seconds"] >= seconds


if __name__ == "__main__":
    typer.run(main)
