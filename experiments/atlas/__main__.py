"""``python -m experiments.atlas``: compute the cells that are not kept yet, then write the page."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from experiments.atlas.cells import SIZES, atlas_cells
from experiments.atlas.order import run_cell
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

    An interrupted run goes on where it was: a cell that is kept is not computed again.
    """
    path = folder / _KEPT
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    begun = time.monotonic()
    for cell in atlas_cells():
        if time.monotonic() - begun > 60.0 * minutes:
            break
        if cell.size not in (sizes or SIZES) or cell.key in kept:
            continue
        found = run_cell(cell, seconds)
        kept[cell.key] = found.as_dict()
        typer.echo(f"{cell.key}: r = {found.order}, {found.found}; {found.far}")
        text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
