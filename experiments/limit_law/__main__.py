"""``python -m experiments.limit_law fit | page``."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from experiments.folders import FIGURES
from experiments.limit_law import page as pages
from experiments.limit_law.fits import draw_counts, fit
from experiments.limit_law.law import FLOOR

SIZES = tuple(10.0**power for power in range(6, 21, 2))
REPLICATES = 300
"""The design, fixed before any run: at 1e20 rounding is of order 1e-8 of a score's own noise."""

app = typer.Typer(add_completion=False, help=__doc__)


def _one(size: float, replicate: int) -> dict[str, float]:
    rng = np.random.default_rng([int(np.log10(size)), replicate])
    return asdict(fit(size, draw_counts(size, rng), rng))


@app.command("fit")
def fits(
    workers: Annotated[int, typer.Option(min=1)] = 1,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = FIGURES,
) -> None:
    """Fit all data sets and keep what the page needs."""
    kept = {}
    with ProcessPoolExecutor(workers) as pool:
        for size in SIZES:
            found = list(pool.map(partial(_one, size), range(REPLICATES), chunksize=10))
            names = ("error", "variance_error", "mass", "fourth")
            kept[f"{size:.0e}"] = {
                **{name: [float(f"{each[name]:.5g}") for each in found] for name in names},
                "agree": round(float(np.mean([each["agree"] for each in found])), 3),
                "doubling": float(f"{max(each['doubling'] for each in found):.2g}"),
            }
            typer.echo(f"n = {size:.0e}: {len(found)} fits")
    result = {"replicates": REPLICATES, "floor": FLOOR, "sizes": kept}
    (out / pages.RESULT).write_text(json.dumps(result, separators=(",", ":")) + "\n")


@app.command("page")
def page(out: Annotated[Path, typer.Option(help="Folder of the results.")] = FIGURES) -> None:
    """Write the page and its picture beside the results."""
    pages.write(json.loads((out / pages.RESULT).read_text()), out)


if __name__ == "__main__":
    app()
