"""``python -m experiments.explorer``: explore the named bounds and print what was found."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from experiments.explorer.cases import CASES, quick_search, run_case
from experiments.explorer.report import as_expected, details, summary
from moestat.base.registry import UnknownNameError


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help="Cases; all by default.", metavar="[CASE]...")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Three radii and one start per deviation.")] = False,
    show: Annotated[bool, typer.Option(help="What was found at each radius, too.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write it all to this Markdown file.")] = None,
) -> None:
    """Search for the least distance of densities at given values of a Voronoi loss.

    Exit codes: 0 all as expected, 1 some not, 2 an unknown case.
    """
    unknown = sorted(set(names or ()) - set(CASES))
    if unknown:
        typer.echo(
            str(UnknownNameError(f"unknown case {unknown[0]!r}; known: {list(CASES)}")), err=True
        )
        raise typer.Exit(2)
    found = []
    for name in names or CASES:
        case, begun = CASES[name], time.process_time()
        exploration = (quick_search if quick else run_case)(case)
        found.append((case, exploration))
        seconds = time.process_time() - begun
        mark = "" if as_expected(case, exploration) else "  NOT AS EXPECTED"
        typer.echo(
            f"{name:22s} {exploration.verdict:9s} r = {exploration.exponent:6.3f}"
            f"  residual {exploration.residual:6.3f}  {seconds:5.1f} s{mark}"
        )
        if show:
            typer.echo(exploration.table())
            typer.echo(exploration.worst_direction)
    if out is not None:
        text = [summary(found), *(details(*pair) for pair in found)]
        out.write_text("\n\n".join(text) + "\n")
    if not all(as_expected(*pair) for pair in found):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
