"""Keys of specs of all kinds: the JSON schema and the page of reference, from their declarations.

``python -m moestat.sweep.report.keys DOCS`` writes both into a folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from moestat.metrics.losses import LOSSES
from moestat.model.designs import DESIGNS
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from moestat.solvers import SOLVERS
from moestat.sweep.kinds.kind import KINDS, kind_of
from moestat.sweep.spec.keys import Key


def json_schema() -> dict[str, Any]:
    """A JSON schema with which editors complete and check the TOML of a spec."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "moestat sweep",
        "anyOf": [_branch(name) for name in KINDS],
    }


def _branch(name: str) -> dict[str, Any]:
    """The schema of the specs of a kind; specs of fits need not say that they are."""
    tables = kind_of(name).keys.tables
    top = _object(tables[""])
    top["properties"] = {
        "kind": {"const": name, "description": "What a cell is."},
        **top["properties"],
    }
    if "truth" in tables:  # it holds the blocks of its family besides
        truth = {**_object(tables["truth"]), "additionalProperties": {"type": ["array", "number"]}}
        top["properties"]["truth"]["additionalProperties"] = truth
    if "values" in tables:
        top["properties"]["values"] |= _object(tables["values"])
    top["properties"]["curve"]["items"] = _object(tables["curve"])
    return {"title": name, **top, "required": [*["kind"] * (name != "fit"), *top["required"]]}


def _object(keys: Iterable[Key]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {key.name: key.schema for key in keys},
        "required": [key.name for key in keys if key.required],
        "additionalProperties": False,
    }


_TITLES = {"": "Top level", "truth": "`[truth.NAME]`", "curve": "`[[curve]]`"}


def reference_page() -> str:
    """The page of reference in Markdown."""
    parts = [
        "# Keys of a spec",
        "Made by `python -m moestat.sweep.report.keys docs`, as is the JSON schema"
        " `spec.schema.json`, with which an editor completes and checks specs.  The key `kind` at"
        " the top level says what a cell is; without it, a fit.  Names and titles have at most 200"
        " characters, notes 10,000.",
    ]
    for name in KINDS:
        keys = kind_of(name).keys
        parts.append(f'## `kind = "{name}"`: {keys.what}')
        for table, keys_of_table in keys.tables.items():
            if table == "values":
                parts.append("`[values]`: lists, one value for each place, of any field below.")
                continue
            keys_in_page = (
                keys_of_table
                if table != "curve" or "values" not in keys.tables
                else keys_of_table[:3]
            )
            parts += [f"### {_TITLES[table]}", _rows(keys_in_page)]
            if keys_in_page is not keys_of_table:
                parts.append("A curve may have any field of the top level as well.")
    parts.append("## Names")
    parts += [f"{what}: {_names(registry)}." for what, registry in _REGISTRIES.items()]
    return "\n\n".join(parts) + "\n"


def _rows(keys: Iterable[Key]) -> str:
    lines = ["| key | type | range | required | meaning |", "| --- | --- | --- | --- | --- |"]
    for key in keys:
        kind, required = " or ".join(key.kind.split()), "yes" if key.required else ""
        span = "" if key.minimum is None else f"{key.minimum:,} to {_limit(key.maximum)}"
        words = key.words + (f" One of {', '.join(key.choices)}." if key.choices else "")
        lines.append(f"| `{key.name}` | {kind} | {span} | {required} | {words} |")
    return "\n".join(lines)


def _limit(value: int) -> str:
    """A limit as people read it: 2^128 - 1 in place of its 39 digits."""
    return f"2^{value.bit_length()} - 1" if value & (value + 1) == 0 else f"{value:,}"


_REGISTRIES: Mapping[str, Mapping[str, object]] = {
    "Distributions of inputs (`design`, key `law`)": DESIGNS,
    "Likelihoods": LIKELIHOODS,
    "Gates": GATES,
    "Experts": EXPERTS,
    "Losses": LOSSES,
    "Solvers (`solver`, key `name`)": SOLVERS,
}


def _names(registry: Mapping[str, object]) -> str:
    """Names with their options and defaults, as ``name (option = default, ...)``."""
    names = []
    for name, member in registry.items():
        options = ", ".join(_options(member))
        names.append(f"`{name}`" + (f" ({options})" if options else ""))
    return ", ".join(names)


def _options(member: object) -> Iterable[str]:
    """Options of a member: what its class takes, or what a table may configure."""
    record = getattr(member, "make", None) or getattr(member, "configure", None)
    if record is None or not is_dataclass(record):
        yield from getattr(member, "options", ())
        return
    for each in fields(record):
        if each.init and each.name != "name":
            plain = isinstance(each.default, (int, float, str)) and each.default is not MISSING
            yield f"{each.name} = {each.default}" if plain else each.name


def _write(folder: Path) -> None:
    (folder / "spec.md").write_text(reference_page(), encoding="utf-8")
    text = json.dumps(json_schema(), indent=2) + "\n"
    (folder / "spec.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
