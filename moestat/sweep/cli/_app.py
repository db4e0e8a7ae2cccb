"""Parts that the commands share: the application, exit codes, errors, consoles and JSON."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from moestat import __version__
from moestat.sweep.errors import SweepError
from moestat.sweep.run.signals import Terminated

if TYPE_CHECKING:
    from moestat.sweep.store.store import Store

SOME_FAILED, STOPPED, DAMAGED, INTERRUPTED, TERMINATED = 1, 2, 3, 130, 143
PROGRAM = "python -m moestat.sweep"

_FIRST = ("list", "run", "new", "status", "rates")
"""What help names first; the other commands follow by name."""


class _InReadingOrder(TyperGroup):
    """Commands in the order in which a new user needs them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_FIRST, *sorted(set(super().list_commands(ctx)) - set(_FIRST))]


app = typer.Typer(
    cls=_InReadingOrder,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure convergence rates: fits over sample sizes and replicates, in parallel.",
    epilog="Exit codes: 0, the command succeeded; 1, some cells failed; 2, the command stopped"
    " because of bad input or for the reason on standard error; 3, a store is damaged: the"
    " command names the damaged cells and leaves them out, and run computes them again; 130,"
    " interrupted; 143, terminated. Results are kept in every case.",
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"moestat {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


StorePath = Annotated[Path, typer.Argument(help="A store made by run.", metavar="STORE")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


def command(
    example: str, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command whose help shows an example.

    Errors that the user can mend end in one clear line in place of a traceback.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def wrapped(*args: object, **options: object) -> None:
            _not_sound.clear()
            try:
                function(*args, **options)
            except SweepError as error:
                typer.echo(f"error: {error}{_own_script(str(error))}", err=True)
                raise typer.Exit(STOPPED) from None
            except (OSError, MemoryError) as error:
                typer.echo(f"error: {_reason(error)}", err=True)
                raise typer.Exit(STOPPED) from None
            except KeyboardInterrupt as stop:
                typer.echo("interrupted", err=True)
                raise typer.Exit(exit_code(stop)) from None
            if _not_sound:
                raise typer.Exit(DAMAGED)

        return app.command(name, epilog=f"Example: {PROGRAM} {example}")(wrapped)

    return register


def _own_script(message: str) -> str:
    """What to do about a member that a script of the user's registers; else ""."""
    if not re.search(r"unknown (gate|expert|likelihood|loss|design|solver|kind) ", message):
        return ""
    return (
        "; if a script of yours registers it, run that script in place of python -m moestat.sweep"
        " (the page 'Extending')"
    )


def _reason(error: BaseException) -> str:
    if not isinstance(error, OSError):
        return "there is not enough memory"
    return ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)


def exit_code(stop: KeyboardInterrupt) -> int:
    """Exit code of a run that the keyboard or the system stopped."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


_not_sound: list[str] = []


@contextmanager
def reading(path: Path) -> Iterator[Store]:
    """Open a store for reading; what is damaged in it is named, and sets the exit code."""
    from moestat.sweep.store.store import open_store

    with open_store(path) as store:
        tell_damage(store.damage())
        yield store


def tell_damage(messages: list[str], set_code: bool = True) -> None:
    """Name what is damaged, one line each."""
    for line in messages:
        typer.echo(f"damaged: {line}", err=True)
    if set_code:
        _not_sound.extend(messages)


def console(stderr: bool = False) -> Console:
    """A console whose tables do not fold when they are piped; names are no markup."""
    terminal = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if terminal.is_terminal:
        return terminal
    return Console(stderr=stderr, width=160, highlight=False, markup=False, emoji=False)


def show_json(value: object) -> None:
    """Print plain data."""
    typer.echo(json.dumps(value, indent=2, default=str))


def answer(as_json: bool, data: object, text: str) -> None:
    """Print the result of a command, as plain data or in words."""
    if as_json:
        show_json(data)
    else:
        typer.echo(text)
