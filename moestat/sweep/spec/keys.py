"""Keys of specs as declarations: what parses a spec also makes its schema and its page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

LARGEST = 1_000_000
"""Largest whole number of a key that says nothing else: beyond it a number is a slip."""


@dataclass(frozen=True)
class Key:
    """One key of a table.

    Parameters
    ----------
    name : str
        The key.
    kind : str
        A type of JSON schema, or several between spaces.
    words : str
        What it means.
    required : bool
        Whether it must be given.
    minimum, maximum : int, optional
        Smallest and largest whole number.
    choices : sequence of str
        Names that it may take; empty for any.
    default : object
        Value of a key that is not given.
    """

    name: str
    kind: str
    words: str
    required: bool = False
    minimum: int | None = None
    maximum: int = LARGEST
    choices: Sequence[str] = ()
    default: object = None

    @property
    def schema(self) -> dict[str, object]:
        """The key in a JSON schema."""
        kinds = self.kind.split()
        schema: dict[str, object] = {"type": kinds if len(kinds) > 1 else kinds[0]}
        if self.minimum is not None:
            schema |= {"minimum": self.minimum, "maximum": self.maximum}
        if self.choices:
            schema["enum"] = list(self.choices)
        return {**schema, "description": self.words}


HEAD = (
    Key("title", "string", "What the experiment shows.", True),
    Key("seed", "integer", "Seed of the whole sweep.", True, 0, 2**128 - 1),
    Key(
        "replicates",
        "integer",
        "Cells per curve and place on the x-axis, each with data of its own.",
        True,
        1,
    ),
)
"""Keys that specs of all kinds begin with."""


@dataclass(frozen=True)
class Keys:
    """All keys of the specs of a kind."""

    what: str  # what a cell of the kind is
    # Keys by table: ``""`` for the top level, ``truth``, ``values``, ``curve``.
    tables: Mapping[str, Sequence[Key]] = field(repr=False)


_KINDS = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}
_ENTRY = re.compile(r"^    (\w[\w, ]*) : .*\n((?:        .*\n|\n)+)", re.MULTILINE)


def declared(record: type, **given: Mapping[str, Any]) -> tuple[Key, ...]:
    """Keys that are the fields of a documented dataclass.

    Types, defaults and words are those of its fields and its docstring; `given` has by field what
    these do not say, attributes of `Key`.
    """
    words = {
        name: " ".join(text.split())
        for entry, text in _ENTRY.findall(record.__doc__ or "")
        for name in entry.split(", ")
    }
    keys: list[Key] = []
    for each in fields(record):
        kind = _KINDS.get(str(each.type), "array")
        attributes: dict[str, Any] = {"kind": kind, "words": words[each.name]}
        attributes |= {"minimum": 1} if kind == "integer" else {}
        attributes |= {"required": each.default is MISSING and each.default_factory is MISSING}
        keys.append(Key(each.name, **{**attributes, **given.get(each.name, {})}))
    return tuple(keys)
