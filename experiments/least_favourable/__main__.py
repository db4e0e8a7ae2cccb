"""``python -m experiments.least_favourable``: compute pairs that are not kept, write the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from experiments.folders import FIGURES
from experiments.least_favourable.page import write
from experiments.least_favourable.pairs import cases, compute
from experiments.time_limit import OutOfTimeError, at_most

_KEPT = "least_favourable.json"


def main(
    folder: Annotated[Path, typer.Argument(help="Where results, page and picture are.")] = FIGURES,
    redraw: Annotated[bool, typer.Option(help="Compute nothing; write the page alone.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="These cases, kept or not.")] = None,
    seconds: Annotated[
        float, typer.Option(help="Longest time for one case; it is left out if it takes longer.")
    ] = 1200.0,
) -> None:
    """Compute the worst measure near each truth of the papers, and the bound that follows from it.

    Each case is kept as it ends, and an interrupted run goes on where it was.
    """
    path = folder / _KEPT
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for case in () if redraw else cases():
        if case.name not in only if only else case.name in kept:
            continue
        try:
            with at_most(seconds):
                found = compute(case)
        except OutOfTimeError:
            typer.echo(f"{case.name}: not done in {seconds:g} s")
            continue
        kept[case.name] = found
        typer.echo(f"{case.name}: {found['verdict']}, {len(found['pairs'])} pairs")
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    write(kept, folder)


if __name__ == "__main__":
    typer.run(main)
