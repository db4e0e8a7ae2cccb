"""The command line of verifications."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moestat.sweep.cli._app import INTERRUPTED, SOME_FAILED, STOPPED, AsJson, console, show_json
from moestat.sweep.errors import SweepError

if TYPE_CHECKING:
    from rich.table import Table

    from experiments.verify.results import Verification

__all__ = ["CLAIMS_PAGE", "FACTS_PAGE", "app"]

CLAIMS_PAGE, FACTS_PAGE = "theory_claims.md", "theory_facts.md"
"""Pages of a verification."""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Say what becomes of every claim of the papers: prediction, evidence, verdict.",
)

_EPILOG = (
    "Without --claim the pages theory_claims.md and theory_facts.md and the evidence"
    " theory_claims.json are written into --out.\n\n"
    "Exit codes: 0 every claim has its verdict; 1 the same, but some evidence could not be had"
    " because something went wrong, or a claim that is consistent or proved has a witness in its"
    " scope; 2 stopped, by bad input or by what one line on standard error"
    " says; 130 interrupted.\n\n"
    "Example: python -m experiments.verify --claim mlmoe.theorem"
)


@app.callback(invoke_without_command=True, epilog=_EPILOG)
def verify(
    context: typer.Context,
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="Long searches, for claims that facts decide too."),
    ] = False,
    claim: Annotated[
        list[str] | None,
        typer.Option(help="Only claims whose id begins so; may be repeated.", metavar="ID"),
    ] = None,
    stores: Annotated[
        Path,
        typer.Option(help="The folder of stores and kept evidence.", metavar="DIR"),
    ] = Path("figures"),
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; all processors by default.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the pages; that of --stores by default.", metavar="DIR"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Gather the evidence of the claims and let their rules decide."""
    if context.invoked_subcommand is not None:
        return
    try:
        found = _verified(full, claim, stores, workers, out)
    except (SweepError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(STOPPED) from None
    except KeyboardInterrupt:
        typer.echo("interrupted: nothing was written", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        show_json(found.as_dict())
    else:
        _show(found)
    for line in found.broken:
        typer.echo(f"no evidence: {line}", err=True)
    denied = found.comparison.contradictions
    for claim_id, name in denied:
        typer.echo(f"contradiction: {claim_id} has a witness of {name} in its scope", err=True)
    if found.broken or denied:
        raise typer.Exit(SOME_FAILED)


@app.command()
def fact(
    name: Annotated[str, typer.Argument(help="Name of the fact, as theory_facts.md has it.")],
) -> None:
    """Reproduce one fact alone, without any store, and print its page."""
    from experiments.verify.page import fact_markdown
    from experiments.verify.verification import verify_fact

    try:
        found = verify_fact(name)
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(STOPPED) from None
    typer.echo(fact_markdown(found), nl=False)
    if not found.confirmed:
        raise typer.Exit(SOME_FAILED)


def _verified(
    full: bool, claims: list[str] | None, stores: Path, workers: int | None, out: Path | None
) -> Verification:
    from experiments.verify.page import facts_markdown, markdown
    from experiments.verify.results import EVIDENCE
    from experiments.verify.verification import verify as run
    from moestat.base.threads import available_cpus

    if out is not None and not out.is_dir():
        raise SweepError(f"--out: there is no directory {out}")
    if out is not None and claims:
        raise SweepError("--out: the pages are of all claims; leave --claim out")
    progress = console(stderr=True)
    found = run(
        claims,
        quick=not full,
        folder=stores,
        workers=workers or available_cpus(),
        tell=lambda line: progress.print(line, soft_wrap=True),
    )
    if not claims:
        folder = out or stores
        kept = json.dumps(found.evidence(), indent=1, ensure_ascii=False) + "\n"
        (folder / EVIDENCE).write_text(kept, encoding="utf-8")
        (folder / CLAIMS_PAGE).write_text(markdown(found), encoding="utf-8")
        (folder / FACTS_PAGE).write_text(facts_markdown(found), encoding="utf-8")
    return found


def _show(found: Verification) -> None:
    shown = console()
    shown.print(_table(found))
    words = ", ".join(f"{count} {verdict}" for verdict, count in found.counts.items())
    mode = "quick" if found.quick else "full"
    shown.print(f"{len(found.results)} claims: {words} ({mode}, {found.seconds:.0f} s)")
    for name, count in found.without_store.items():
        from experiments.verify.measured import command

        shown.print(f"without a store {count} slopes of {name}: {command(name)}", soft_wrap=True)


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
        facts = [f"fact {each.fact.name}" for each in result.facts]
        checks = [
            f"{_MARKS[each.outcome]} {each.check.name}: {each.text}" for each in result.checks
        ]
        evidence = "\n".join([*facts, *checks])
        table.add_row(result.claim.id, predicted, evidence or result.claim.untested, result.verdict)
    return table


_MARKS = {"supports": "+", "refutes": "-", "open": "?"}
