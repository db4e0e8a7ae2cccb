"""Every key of a spec of fits, as data: the JSON schema and the page of reference come from here.

``python -m moestat.sweep.report.keys DOCS`` writes both into a folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moestat.sweep.spec.limits import LARGEST

__all__ = ["KEYS", "Key", "json_schema", "reference_page"]


@dataclass(frozen=True)
class Key:
    """One key of a table.

    Parameters
    ----------
    table : str
        Table it stands in: empty for the top level, ``truth`` or ``curve``.
    name : str
        The key.
    kind : str
        A type of JSON schema, or several between spaces.
    words : str
        What it means.
    required : bool
        Whether it must be given.
    minimum : int, optional
        Smallest whole number.
    """

    table: str
    name: str
    kind: str
    words: str
    required: bool = False
    minimum: int | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """The key in a JSON schema."""
        kinds = self.kind.split()
        found: dict[str, Any] = {"type": kinds if len(kinds) > 1 else kinds[0]}
        if self.minimum is not None:
            found["minimum"] = self.minimum
            found |= {"maximum": LARGEST[self.name]} if self.name in LARGEST else {}
        return {**found, "description": self.words}


_GRID = "a list, or { start, stop, num } with spacing log, the default, or linear"
KEYS = (
    Key("", "kind", "string", "What a cell is: fit, the default, or network."),
    Key("", "title", "string", "What the experiment shows.", True),
    Key("", "seed", "integer", "Seed of the whole sweep.", True, 0),
    Key("", "replicates", "integer", "Data sets per curve and sample size.", True, 1),
    Key("", "target_slope_halfwidth", "number", "Replicates are added until slopes are so sure."),
    Key("", "max_replicates", "integer", "Where adding ends; goes with the key before.", False, 1),
    Key("", "n", "array object", f"Sample sizes: {_GRID}.", True),
    Key("", "design", "object", "Inputs: law, uniform by default, and its options."),
    Key("", "truth", "object", "Tables [truth.NAME], the laws that data are drawn from.", True),
    Key("", "curve", "array", "Tables [[curve]], the families fitted to them.", True),
    Key("truth", "likelihood", "string", "A likelihood; multinomial by default."),
    Key("truth", "gate", "string object", "A gate, by its name or as a table with options.", True),
    Key("truth", "expert", "string object", "An expert, likewise; linear by default."),
    Key("truth", "n_features", "integer", "Number of inputs; 1 by default.", False, 1),
    Key("truth", "n_classes", "integer", "Number of classes; 2 by default.", False, 2),
    Key("truth", "bounds", "object", "Block = [low, high]: bounds of fits, not of data."),
    Key("truth", "noise", "number", "Variance around a regression function, and only there."),
    Key("curve", "name", "string", "Unique name.", True),
    Key("curve", "truth", "string", "Name of the truth that the data come from.", True),
    Key("curve", "n_experts", "integer", "Experts of the fit, at least the truth's.", True, 1),
    Key("curve", "loss", "string object", "A Voronoi loss.", True),
    Key("curve", "also", "array", "Further losses of the same fits."),
    Key("curve", "gate", "string object", "Gate of the fit; the truth's by default."),
    Key("curve", "target", "string", "Truth that losses compare with, if it is another one."),
    Key("curve", "solver", "object", "A solver with its options."),
    Key("curve", "starts", "object", "How many starts of which rule, or given ones."),
    Key("curve", "n", "array object", "Sample sizes of this curve alone, as at the top."),
    Key("curve", "require_certificate", "boolean", "Whether only certified fits enter the rate."),
    Key("curve", "theory", "number", "Slope that a theorem states; at most 0."),
    Key("curve", "published", "number", "Slope that a paper reports; shown only."),
    Key("curve", "panel", "string", "Curves of one panel share axes."),
    Key("curve", "note", "string", "What a reader should know."),
)
"""Keys in the order of the page; tables of truths hold the blocks of their family besides."""


def json_schema() -> dict[str, Any]:
    """A JSON schema with which editors complete and check the TOML of a spec of fits.

    Examples
    --------
    >>> json_schema()["properties"]["replicates"]["maximum"]
    1000000
    """
    top = _object("")
    top["properties"]["truth"]["additionalProperties"] = _object("truth", blocks=True)
    top["properties"]["curve"]["items"] = _object("curve")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "moestat sweep"}
    return {**head, **top}


def _of(table: str) -> Iterable[Key]:
    return (key for key in KEYS if key.table == table)


def _object(table: str, blocks: bool = False) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {key.name: key.schema for key in _of(table)},
        "required": [key.name for key in _of(table) if key.required],
        "additionalProperties": {"type": ["array", "number"]} if blocks else False,
    }


def reference_page() -> str:
    """The page of reference in Markdown."""
    parts = [
        "# Keys of a spec",
        "Made by `python -m moestat.sweep.report.keys docs`, as is the JSON schema"
        " `spec.schema.json`, with which an editor completes and checks specs of fits.",
    ]
    for table, title in (("", "Top level"), ("truth", "[truth.NAME]"), ("curve", "[[curve]]")):
        lines = ["| key | type | range | required | meaning |", "| --- | --- | --- | --- | --- |"]
        for key in _of(table):
            kind = " or ".join(key.kind.split())
            most = f" to {LARGEST[key.name]:,}" if key.name in LARGEST else " or more"
            span = "" if key.minimum is None else f"{key.minimum}{most}"
            asked = "yes" if key.required else ""
            lines.append(f"| `{key.name}` | {kind} | {span} | {asked} | {key.words} |")
        parts += [f"## `{title}`" if table else f"## {title}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _write(folder: Path) -> None:
    (folder / "spec.md").write_text(reference_page(), encoding="utf-8")
    text = json.dumps(json_schema(), indent=2) + "\n"
    (folder / "spec.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
