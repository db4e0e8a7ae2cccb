"""``python -m experiments.limit_law fit | page``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.folders import FIGURES
from experiments.limit_law import page as pages
from experiments.limit_law.fits import REPLICATES, SIZES, draw_counts, fit

app = typer.Typer(add_completion=False, help=__doc__)


@app.command("fit")
def fits(
    kept: Annotated[Path, typer.Argument(help="JSON lines; data sets that it has are not run.")],
    atoms: Annotated[list[int] | None, typer.Option(help="Only so many atoms.")] = None,
) -> None:
    """Fit all data sets, one line each, data set by data set."""
    done = {(each["m"], each["n"], each["replicate"]) for each in pages.read(kept)}
    for m in atoms or REPLICATES:
        for replicate in range(REPLICATES[m]):
            for n in SIZES:
                if (m, n, replicate) in done:
                    continue
                rng = np.random.default_rng([m, int(np.log10(n)), replicate])
                found = asdict(fit(n, draw_counts(n, rng), m, rng))
                line = {name: float(f"{value:.5g}") for name, value in found.items()}
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"m": m, "n": n, "replicate": replicate, **line}) + "\n")


@app.command("page")
def page(
    kept: Annotated[
        Path | None, typer.Argument(help="What `fit` has kept; else the result.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the result and its page.")] = FIGURES,
) -> None:
    """Write the result as JSON, its page and its pictures."""
    if kept is not None:
        result = pages.result(pages.read(kept))
        text = json.dumps(result, separators=(",", ":")) + "\n"
        (out / pages.RESULT).write_text(text, encoding="utf-8")
    pages.write(json.loads((out / pages.RESULT).read_text(encoding="utf-8")), out)


if __name__ == "__main__":
    app()
