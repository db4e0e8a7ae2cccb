"""The command line of verifications."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moestat.sweep.cli._app import INTERRUPTED, SOME_FAILED, STOPPED, AsJson, console, show_json
from moestat.sweep.errors import SweepError

if TYPE_CHECKING:
    from rich.table import Table

    from moestat.papers.verify.verification import Verification

__all__ = ["app"]

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Say what becomes of every claim of the papers: prediction, evidence, verdict.",
)

_EPILOG = (
    "Exit codes: 0 every claim has its verdict; 1 the same, but some evidence could not be had"
    " because something went wrong; 2 stopped, by bad input or by what one line on standard error"
    " says; 130 interrupted. Cells that are done stay in their stores.\n\n"
    "Example: python -m moestat.verify --quick --claim mlmoe.theorem"
)


@app.command(epilog=_EPILOG)
def verify(
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="All cells of the sweeps, or as few as a first look takes; stores that hold more"
            " are used in full either way.",
        ),
    ] = False,
    claim: Annotated[
        list[str] | None,
        typer.Option(help="Only claims whose id begins so; may be repeated.", metavar="ID"),
    ] = None,
    stores: Annotated[
        Path, typer.Option(help="The folder of the experiments' stores.", metavar="DIR")
    ] = Path("figures"),
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; all processors by default.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the page with all evidence, a .md file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Gather the evidence of the claims and let their rules decide."""
    try:
        found = _verified(full, claim, stores, workers, out)
    except (SweepError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(STOPPED) from None
    except KeyboardInterrupt:
        typer.echo("interrupted: the same command goes on with the stores as they are", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        show_json(found.as_dict())
    else:
        _show(found)
    for line in found.broken:
        typer.echo(f"no evidence: {line}", err=True)
    if found.broken:
        raise typer.Exit(SOME_FAILED)


def _verified(
    full: bool, claims: list[str] | None, stores: Path, workers: int | None, out: Path | None
) -> Verification:
    from moestat.papers.verify.page import markdown
    from moestat.papers.verify.verification import verify as run
    from moestat.sweep.threads import available_cpus

    if out is not None and out.suffix != ".md":
        raise SweepError(f"--out must be a .md file, got {out}")
    if out is not None and not out.parent.is_dir():
        raise SweepError(f"--out: there is no directory {out.parent}")
    progress = console(stderr=True)
    found = run(
        claims,
        quick=not full,
        folder=stores,
        workers=workers or available_cpus(),
        tell=lambda line: progress.print(line, soft_wrap=True),
    )
    if out is not None:
        out.write_text(markdown(found), encoding="utf-8")
    return found


def _show(found: Verification) -> None:
    shown = console()
    shown.print(_table(found))
    words = ", ".join(f"{count} {verdict}" for verdict, count in found.counts.items())
    mode = "quick" if found.quick else "full"
    shown.print(f"{len(found.results)} claims: {words} ({mode}, {found.seconds:.0f} s)")


def _table(found: Verification) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_lines=False)
    for name in ("claim", "predicted", "evidence", "verdict"):
        table.add_column(name, overflow="fold")
    for result in found.results:
        predicted = "\n".join(
            f"{what} {power}" if power else f"{what} slow"
            for what, power in result.claim.predicted.items()
        )
        evidence = "\n".join(
            f"{_MARKS[each.outcome]} {each.check.name}: {each.text}" for each in result.checks
        )
        table.add_row(result.claim.id, predicted, evidence or result.claim.untested, result.verdict)
    return table


_MARKS = {"supports": "+", "refutes": "-", "open": "?"}
