"""What the commands share: the application, exit codes, errors, consoles and JSON."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from moestat.sweep.errors import SweepError

__all__ = [
    "INTERRUPTED",
    "PROGRAM",
    "SOME_FAILED",
    "STOPPED",
    "AsJson",
    "StorePath",
    "app",
    "command",
    "console",
    "show_json",
]

STOPPED, SOME_FAILED, INTERRUPTED = 2, 1, 130
PROGRAM = "python -m moestat.sweep"

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure convergence rates: fits over sample sizes and replicates, in parallel.",
    epilog="Exit codes: 0 done; 1 done, but some cells failed or a store is not sound; 2 stopped,"
    " by bad input or by what one line on standard error says; 130 interrupted. Results are kept.",
)

StorePath = Annotated[Path, typer.Argument(help="A store made by run.", metavar="STORE")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


def command(example: str, name: str | None = None) -> Callable[[Callable[..., None]], Any]:
    """Register a command whose help shows an example.

    Errors that the user can mend end in one clear line in place of a traceback.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def wrapped(*args: Any, **options: Any) -> None:
            try:
                function(*args, **options)
            except SweepError as error:
                typer.echo(f"error: {error}", err=True)
                raise typer.Exit(STOPPED) from None
            except KeyboardInterrupt:
                typer.echo("interrupted", err=True)
                raise typer.Exit(INTERRUPTED) from None

        return app.command(name, epilog=f"Example: {PROGRAM} {example}")(wrapped)

    return register


def console(stderr: bool = False) -> Console:
    """A console whose tables do not fold when they are piped."""
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=160)


def show_json(value: Any) -> None:
    """Print plain data."""
    typer.echo(json.dumps(value, indent=2, default=str))
