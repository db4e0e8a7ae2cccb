"""The command that writes a spec to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moestat.sweep.cli._app import PROGRAM, AsJson, command, show_json
from moestat.sweep.errors import SweepError


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
    if as_json:
        show_json({"spec": str(path)})
    else:
        typer.echo(f"{path}; next: {PROGRAM} run {path} --check")
