"""The commands that look at cells: how far a sweep is, what failed, one cell by itself."""

from __future__ import annotations

import csv
import json
import logging
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from moestat.sweep.cli._app import (
    PROGRAM,
    SOME_FAILED,
    AsJson,
    StorePath,
    command,
    console,
    reading,
    show_json,
)
from moestat.sweep.errors import SweepError

if TYPE_CHECKING:
    from collections.abc import Callable

    from moestat.sweep.spec.plan import Cell
    from moestat.sweep.spec.protocol import AnySpec
    from moestat.sweep.store.record import Record
    from moestat.sweep.store.store import Store

_SHOWN = 5
_SECONDS_BETWEEN_LOOKS = 1.0


@command("status quickstart.sqlite --watch")
def status(
    store: StorePath,
    watch: Annotated[
        bool, typer.Option("--watch", help="Update the table until the sweep has ended.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a sweep and the time that it still needs, also while it runs."""
    from moestat.sweep.run.status import status_of, status_table

    if watch and as_json:
        raise SweepError("--watch draws a table: use it without --json")
    if watch:
        _watch(store)
    with reading(store) as opened:
        current = status_of(opened)
        if as_json:
            show_json({"store": str(store), **current.as_dict()})
            return
        terminal = console()
        terminal.print(status_table(current))
        show_failures(opened, terminal)


def _watch(path: Path) -> None:
    """The table of a sweep, drawn anew in place until its runner has ended."""
    from rich.live import Live

    from moestat.sweep.run.status import status_of, status_table
    from moestat.sweep.store.store import open_store

    with Live(console=console(), transient=True, auto_refresh=False) as live:
        while True:
            with open_store(path) as store:
                current = status_of(store)
            if current.runner is None:
                return
            live.update(status_table(current), refresh=True)
            time.sleep(_SECONDS_BETWEEN_LOOKS)


@command("failures quickstart.sqlite")
def failures(store: StorePath, as_json: AsJson = False) -> None:
    """Show why each failed cell failed, and the command that runs this cell alone."""
    with reading(store) as opened:
        failed = list(opened.failed())
        spec = opened.spec
    if as_json:
        show_json(
            [
                {"key": each.key, "message": each.message, "command": _command_of(store, each.key)}
                for each in failed
            ]
        )
        return
    typer.echo(f"{spec.title}: {len(failed)} failed cells")
    for record in failed:
        typer.echo(f"{record.key}: {record.message}\n    {_command_of(store, record.key)}")


def show_failures(store: Store, terminal: Console) -> None:
    """The reasons of the first few failed cells."""
    failed = list(store.failed())
    for record in failed[:_SHOWN]:
        terminal.print(f"failed: {record.key}: {record.message}", markup=False, soft_wrap=True)
    if failed:
        more = f"{len(failed) - _SHOWN} more; " if len(failed) > _SHOWN else ""
        line = f"{more}see them all: {PROGRAM} failures {shlex.quote(str(store.path))}"
        terminal.print(line, markup=False, soft_wrap=True)


def _command_of(store: Path, key: str) -> str:
    """The command that runs one cell by itself."""
    return f"{PROGRAM} cell {shlex.quote(str(store))} {shlex.quote(key)}"


@command('cell quickstart.sqlite "softmax, k = 2 | n=10000 | replicate=0"')
def cell(
    source: Annotated[
        str,
        typer.Argument(help="A store, a spec file or a shipped experiment.", metavar="SOURCE"),
    ],
    key: Annotated[
        str, typer.Argument(help="Name of the cell, as in the output of failures and export.")
    ],
    data: Annotated[
        Path | None, typer.Option(help="A .csv file for the data that the cell is fitted to.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run one cell alone, print its results, and compare them with those in the store.

    If the cell fails, the command shows the traceback.  The command does not change the store.
    """
    from moestat.sweep.run.cell import run_cell
    from moestat.sweep.spec.plan import find_cell
    from moestat.sweep.store.record import FAILED, attempt

    spec, stored = _spec_and_record(source, key)
    if data is not None:
        write_data(spec, key, data, "--data")
    logging.basicConfig()
    logging.getLogger(attempt.__module__).setLevel(logging.DEBUG)
    compute = run_cell if stored is None else _computes(stored)
    record = compute(spec.text, find_cell(spec, key))
    same = None if stored is None else record.numbers == stored.numbers
    if as_json:
        show_json({**vars(record), "same_as_stored": same})
    else:
        for name, value in vars(record).items():
            typer.echo(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")
        if same is not None:
            typer.echo(f"the store has {'the same' if same else 'OTHER'} numbers")
    if record.status == FAILED:
        raise typer.Exit(SOME_FAILED)


def _computes(stored: Record) -> Callable[[str, Cell], Record]:
    """What has computed a record: one pass, or two."""
    from moestat.sweep.kinds.fit.doubts import has_second_pass
    from moestat.sweep.run.cell import run_cell

    if not has_second_pass(stored.certificate):
        return run_cell
    from moestat.sweep.kinds.fit.confirm import confirm_cell

    return confirm_cell


def write_data(spec: AnySpec, key: str, path: Path, option: str) -> int:
    """Write the data of a cell, one row a line: inputs, response, and how often the row occurs.

    Returns the number of rows; `option` is the one that names the path.
    """
    from moestat.sweep.kinds.fit.cell import data_of
    from moestat.sweep.kinds.fit.spec import as_fits
    from moestat.sweep.spec.plan import find_cell

    if path.suffix != ".csv":
        raise SweepError(f"{option} must end in .csv, got {path.name!r}")
    X, y, weight = data_of(as_fits(spec, "--data"), find_cell(spec, key))
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*(f"x{j}" for j in range(X.shape[1])), "y", "weight"])
        rows.writerows(
            [*row, value, count]
            for row, value, count in zip(X.tolist(), y.tolist(), weight.tolist(), strict=True)
        )
    return len(X)


def _spec_and_record(source: str, key: str) -> tuple[AnySpec, Record | None]:
    """The spec that `source` is or belongs to, and the record of a cell in a store."""
    from moestat.sweep.spec.experiments import find_spec
    from moestat.sweep.spec.read import load_spec
    from moestat.sweep.store.file import is_store

    if not is_store(Path(source)):
        return load_spec(find_spec(source)), None
    with reading(Path(source)) as store:
        curves = [curve.name for curve in store.spec.curves if key.startswith(f"{curve.name} | ")]
        records = [record for name in curves for record in store.records(name) if record.key == key]
        return store.spec, records[0] if records else None
