"""The commands that look after stores: export, merge, verify; and specs to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moestat.sweep.cli._app import (
    DAMAGED,
    PROGRAM,
    AsJson,
    StorePath,
    answer,
    command,
    console,
    reading,
    show_json,
)
from moestat.sweep.errors import SweepError


@command("export quickstart.sqlite --out cells.parquet")
def export(
    store: StorePath,
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file.")],
    data_of: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="CELL", help="Write the data that one cell is fitted to, as .csv."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write every cell as one row of a table, and a data dictionary that explains its columns.

    With --data CELL write the data of that cell instead: inputs, response and weights.
    """
    from moestat.sweep.cli._cells import write_data
    from moestat.sweep.store.export import export as write

    with reading(store) as opened:
        if data_of is not None:
            count = write_data(opened.spec, data_of, out, "--out")
            answer(as_json, {"rows": count, "data": str(out)}, f"{count} rows: {out}")
            return
        rows, dictionary = write(opened, out)
    data = {"rows": rows, "table": str(out), "dictionary": str(dictionary)}
    answer(as_json, data, f"{rows} rows: {out}, columns explained in {dictionary}")


@command("merge all.sqlite one.sqlite two.sqlite")
def merge(
    out: Annotated[Path, typer.Argument(help="The store to write.", metavar="OUT")],
    stores: Annotated[list[Path], typer.Argument(help="Stores of one spec.", metavar="STORE...")],
    as_json: AsJson = False,
) -> None:
    """Merge the results of several machines; stores that contradict each other are refused."""
    from moestat.sweep.store.merging import merge as join

    for store in stores:
        with reading(store):
            pass
    new = join(out, stores)
    answer(as_json, {"store": str(out), "new_rows": new}, f"{new} rows new in {out}")


@command("backup quickstart.sqlite copy.sqlite")
def backup(
    store: StorePath,
    out: Annotated[Path, typer.Argument(help="The copy to make.", metavar="OUT")],
    as_json: AsJson = False,
) -> None:
    """Copy a complete store, also while its sweep runs; an ordinary copy may lack rows."""
    from moestat.sweep.store.merging import backup as copy

    rows = copy(store, out)
    with reading(out):
        pass
    answer(as_json, {"store": str(out), "rows": rows}, f"{rows} rows in {out}")


@command("verify-store quickstart.sqlite", name="verify-store")
def verify_store(store: StorePath, as_json: AsJson = False) -> None:
    """Check the file, its spec's digest, and the identity and checksum of every row."""
    from moestat.sweep.store.store import open_store
    from moestat.sweep.store.verification import verify

    with open_store(store) as opened:
        findings = verify(opened)
        rows = opened.n_rows
    verdict = f"{len(findings)} findings" if findings else "sound"
    data = {"store": str(store), "rows": rows, "findings": findings}
    answer(as_json, data, "\n".join([*findings, f"{store}: {rows} rows, {verdict}"]))
    if findings:
        raise typer.Exit(DAMAGED)


@command("list", name="list")
def list_experiments(as_json: AsJson = False) -> None:
    """List the shipped experiments."""
    from dataclasses import asdict

    from moestat.sweep.report.listing import entries, entries_table
    from moestat.sweep.spec.experiments import shipped

    experiments = entries(shipped())
    if not experiments:
        raise SweepError("found no shipped experiments")
    if as_json:
        show_json([asdict(entry) for entry in experiments])
    else:
        console().print(entries_table(experiments))


@command("new mine --likelihood gaussian --gate softmax")
def new(
    name: Annotated[str, typer.Argument(help="Name of the file NAME.toml.")],
    likelihood: Annotated[str, typer.Option(help="A likelihood.")] = "multinomial",
    gate: Annotated[str, typer.Option(help="A gate.")] = "softmax",
    expert: Annotated[str, typer.Option(help="An expert.")] = "linear",
    experts: Annotated[int, typer.Option(min=1, help="Experts of the truth.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Write a commented spec of a family of your choice, which runs as it is."""
    from moestat.sweep.spec.template import template

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    text = template(path.stem, likelihood, gate, expert, experts)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SweepError(f"{path} exists already") from None
    answer(as_json, {"spec": str(path)}, f"{path}; next: {PROGRAM} run {path} --check")
