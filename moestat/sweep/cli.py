"""The command line of sweeps; each command imports what it needs, so that help is instant."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from moestat.sweep.errors import SweepError

if TYPE_CHECKING:
    from moestat.sweep.store import Store

__all__ = ["app"]

BAD_INPUT, SOME_FAILED, INTERRUPTED = 2, 1, 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure convergence rates: fits over sample sizes and replicates, in parallel.",
    epilog="Exit codes: 0 done, 1 done but some cells failed, 2 bad input, 130 interrupted.",
)

StorePath = Annotated[Path, typer.Argument(help="A store made by run.", metavar="STORE")]


def _plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """One clear line in place of a traceback, for errors that the user can mend."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except SweepError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None

    return wrapped


def _console(stderr: bool = False) -> Console:
    """A console whose tables do not fold when they are piped."""
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=160)


@app.command()
@_plain_errors
def run(
    spec: Annotated[
        str, typer.Argument(help="A spec file, or the name of a shipped experiment (see list).")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The store; SPEC's name with .sqlite in this directory by default."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; all processors by default.")
    ] = None,
    limit_cells: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many cells.")
    ] = None,
    executor: Annotated[str, typer.Option(help="process or serial.")] = "process",
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed cells again, too.")
    ] = False,
) -> None:
    """Run SPEC, or go on with it: cells that have a result are not run again.

    Interrupt or kill it at any time: the same command goes on, and ends with the same numbers.
    """
    from moestat._registry import UnknownNameError
    from moestat.sweep.executors import EXECUTORS
    from moestat.sweep.experiments import find_spec
    from moestat.sweep.lock import exclusive
    from moestat.sweep.progress import reporter
    from moestat.sweep.runner import open_cells, run_cells
    from moestat.sweep.spec import load_spec
    from moestat.sweep.store import create_store
    from moestat.sweep.threads import available_cpus

    try:
        EXECUTORS[executor]
    except UnknownNameError as error:
        raise SweepError(f"--executor: {error}") from None
    path = find_spec(spec)
    loaded = load_spec(path)
    target = out or Path(f"{path.stem}.sqlite")
    count = workers or available_cpus()
    console = _console(stderr=True)
    with exclusive(target), create_store(target, loaded) as store:
        cells = open_cells(loaded, store, retry_failed)
        console.print(
            f"{loaded.title}: {len(cells)} of {loaded.n_cells} cells to run, store {target}",
            soft_wrap=True,
        )
        try:
            with reporter(console, cells[:limit_cells]) as report:
                for record in run_cells(
                    loaded, store, cells[:limit_cells], executor=executor, workers=count
                ):
                    report.tell(record)
        except KeyboardInterrupt:
            kept = len(store.statuses())
            console.print(
                f"interrupted: {kept} of {loaded.n_cells} cells have results in {target};"
                " run the same command again to go on",
                soft_wrap=True,
            )
            raise typer.Exit(INTERRUPTED) from None
        failed = _conclude(store)
    if failed:
        raise typer.Exit(SOME_FAILED)


def _conclude(store: Store) -> int:
    """Show the rates, write the figures, and count the failed cells."""
    from moestat.sweep.analysis import summarise
    from moestat.sweep.display import rates_table
    from moestat.sweep.figure import draw, write_figures

    summaries = summarise(store)
    console = _console()
    console.print(rates_table(store.spec.title, summaries))
    _show_failures(store, console)
    if any(summary.n.size for summary in summaries):
        paths = [store.path.with_suffix(suffix) for suffix in (".png", ".pdf")]
        write_figures(draw(store.spec.title, summaries), paths)
        console.print("figures: " + ", ".join(map(str, paths)), soft_wrap=True)
    return sum(summary.failed for summary in summaries)


def _show_failures(store: Store, console: Console, limit: int = 5) -> None:
    """The reasons of the first few failed cells."""
    from moestat.sweep.record import FAILED

    failed = [record for record in store.records() if record.status == FAILED]
    for record in failed[:limit]:
        console.print(f"failed: {record.key}: {record.message}", markup=False, soft_wrap=True)
    if len(failed) > limit:
        console.print(f"and {len(failed) - limit} more; export the store to see them all")


@app.command()
@_plain_errors
def status(store: StorePath) -> None:
    """Show how far a sweep has come; also while it runs."""
    from moestat.sweep.analysis import summarise
    from moestat.sweep.display import status_table
    from moestat.sweep.store import open_store

    with open_store(store) as opened:
        console = _console()
        console.print(status_table(opened.spec.title, summarise(opened)))
        _show_failures(opened, console)


@app.command()
@_plain_errors
def rates(
    store: StorePath,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """Show the fitted rates; with --json everything, by loss, block and kind of Voronoi cell."""
    from moestat.sweep.analysis import summarise
    from moestat.sweep.display import rates_table
    from moestat.sweep.store import open_store

    with open_store(store) as opened:
        summaries = summarise(opened)
        if as_json:
            typer.echo(json.dumps([summary.as_dict() for summary in summaries], indent=2))
        else:
            _console().print(rates_table(opened.spec.title, summaries, details=True))


@app.command()
@_plain_errors
def plot(
    store: StorePath,
    out: Annotated[
        Path | None,
        typer.Option(help="A .png or .pdf file; both beside the store by default."),
    ] = None,
) -> None:
    """Draw losses against sample sizes with their fitted rates."""
    from moestat.sweep.analysis import summarise
    from moestat.sweep.figure import draw, write_figures
    from moestat.sweep.store import open_store

    with open_store(store) as opened:
        figure = draw(opened.spec.title, summarise(opened))
    paths = [out] if out else [store.with_suffix(suffix) for suffix in (".png", ".pdf")]
    write_figures(figure, paths)
    typer.echo("figures: " + ", ".join(map(str, paths)))


@app.command()
@_plain_errors
def report(
    store: StorePath,
    out: Annotated[
        Path | None, typer.Option(help="A directory; the store's own by default.", metavar="DIR")
    ] = None,
) -> None:
    """Write a report: figure (PNG, PDF), Markdown page with the evidence, LaTeX table."""
    from moestat.report import write_report
    from moestat.sweep.store import open_store

    with open_store(store) as opened:
        paths = write_report(opened, out)
    typer.echo("report: " + ", ".join(map(str, paths)))


@app.command()
@_plain_errors
def export(
    store: StorePath,
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file.")],
) -> None:
    """Write every cell as one row of a table."""
    from moestat.sweep.export import export as write
    from moestat.sweep.store import open_store

    with open_store(store) as opened:
        rows = write(opened, out)
    typer.echo(f"{rows} rows: {out}")


@app.command("list")
@_plain_errors
def list_experiments() -> None:
    """List the shipped experiments."""
    from moestat.sweep.display import experiments_table
    from moestat.sweep.experiments import shipped
    from moestat.sweep.spec import load_spec

    specs = [(name, load_spec(path)) for name, path in shipped().items()]
    if not specs:
        raise SweepError("found no shipped experiments")
    _console().print(experiments_table(specs))
