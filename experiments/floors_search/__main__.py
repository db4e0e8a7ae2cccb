"""``python -m experiments.floors_search run | page``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from experiments.floors_search import page as pages
from experiments.floors_search.search import search
from experiments.folders import FIGURES
from experiments.pages.quantiles import LATE
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.plan import plan_cells
from moestat.sweep.spec.read import load_spec

SPECS = ("microscope_floors_gaussian", "microscope_floors_gaussian_four")
app = typer.Typer(add_completion=False, help=__doc__)


@app.command("run")
def run(
    kept: Annotated[Path, typer.Argument(help="JSON lines; data sets that it has are not run.")],
    sets: Annotated[int, typer.Option(min=1, help="Data sets at each size.")] = 100,
    experiment: Annotated[list[str] | None, typer.Option(help="Only these microscopes.")] = None,
) -> None:
    """Search all data sets at the sizes that enter slopes, one line each, data set by data set."""
    done = {(each["curve"], each["n"], each["replicate"]) for each in pages.read(kept)}
    cells = []
    for name in experiment or SPECS:
        spec = as_fits(load_spec(find_spec(name)))
        late = 0.999 * LATE * max(cell.n for cell in plan_cells(spec))
        cells += [(spec, c) for c in plan_cells(spec) if c.n >= late and c.replicate < sets]
    cells.sort(key=lambda pair: pair[1].replicate)
    for spec, cell in cells:
        if (cell.curve, cell.n, cell.replicate) not in done:
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(search(spec, cell)) + "\n")


@app.command("page")
def page(
    kept: Annotated[Path, typer.Argument(help="What `run` has kept.")],
    out: Annotated[Path, typer.Option(help="Folder of the result and its page.")] = FIGURES,
) -> None:
    """Write the result as JSON and its page."""
    specs = [as_fits(load_spec(find_spec(name))) for name in SPECS]
    pages.write(pages.result(pages.read(kept), specs), out)


if __name__ == "__main__":
    app()
