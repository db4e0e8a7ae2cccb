"""Records as files: arrays and JSON in a NumPy archive, nothing that runs when it is read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from moestat.base.files import replacing
from moestat.base.memory import MEBIBYTE
from moestat.base.registry import UnknownNameError
from moestat.base.validate import as_path
from moestat.model.family import Family, from_table
from moestat.model.numbering import from_1

__all__ = ["MAX_BYTES", "read_record", "write_record"]

_FORMAT, _OLD_FORMAT = "moestat record 2", "moestat record 1"
"""The present format, and that of version 0.2, whose names of parameters count experts from 0."""

_RENAMED = {"Data": {"classes": "class_labels"}}
"""Fields of records that had other names in files of version 0.2, by class."""

MAX_BYTES = 1024 * MEBIBYTE
"""Size of a record in memory, 1 GiB, beyond which a file is not unpacked unless one asks for it: a
small archive can unpack to any size."""


def write_record(path: str | Path, record: object) -> None:
    """Write a record, a dataclass of numbers, words, arrays, families and records, to a file.

    An existing file of this name is replaced completely, or stays unchanged if writing fails.
    """
    arrays: dict[str, Any] = {}
    head = {"format": _FORMAT, "record": _plain(record, arrays)}
    with replacing(as_path("path", path)) as file:
        np.savez_compressed(file, head=np.array(json.dumps(head)), **arrays)


def _plain(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """`value` in the words of JSON; arrays go to `arrays`."""
    if isinstance(value, Family):
        return {"family": value.table}
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return {"tuple": [_plain(part, arrays) for part in value]}
    if hasattr(value, "get_level_values"):  # an index of pandas
        levels = [value.get_level_values(level) for level in range(value.nlevels)]
        return {"index": [_plain(_simple(level), arrays) for level in levels], "of": [*value.names]}
    if is_dataclass(value):
        stored = [f.name for f in fields(value) if f.metadata.get("stored", True)]
        parts = {name: _plain(getattr(value, name), arrays) for name in stored}
        return {"class": type(value).__name__, "fields": parts}
    return value


def _simple(level: Any) -> np.ndarray:
    """A level of an index as numbers, dates or words."""
    values = level.to_numpy()
    return values.astype(str) if values.dtype.kind == "O" else values


def read_record(path: str | Path, classes: Sequence[type], max_bytes: int = MAX_BYTES) -> Any:
    """The record that `write_record` wrote; `classes` are those that it may contain."""
    path = as_path("path", path)
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > max_bytes:
            takes, allowed = (f"{each / MEBIBYTE:.0f} MiB" for each in (size, max_bytes))
            raise ValueError(f"it takes {takes} in memory, and max_bytes allows {allowed}")
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
        head = json.loads(str(arrays.pop("head")))
        if head["format"] not in (_FORMAT, _OLD_FORMAT):
            raise ValueError(f"its format is {head['format']!r}, not {_FORMAT!r}")
        if head["format"] == _OLD_FORMAT:
            _number_from_1(head["record"])
        return _restore(head["record"], arrays, {cls.__name__: cls for cls in classes})
    except UnknownNameError as error:
        raise ValueError(
            f"{error}. {path} holds a result that needs it: register it, as where the result was"
            " saved, and load again"
        ) from None
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} does not hold a record of moestat: {error}") from None


def _number_from_1(value: Any) -> None:
    """Names of parameters on a bound in a record of the older format, with experts from 1."""
    if not isinstance(value, dict):
        return
    if value.get("class") == "Certificate":
        fields_of = value["fields"]
        fields_of["active"] = {"tuple": [*map(from_1, fields_of["active"]["tuple"])]}
        return
    for part in value.values():
        for each in part if isinstance(part, list) else [part]:
            _number_from_1(each)


def _restore(value: Any, arrays: dict[str, np.ndarray], classes: dict[str, type]) -> Any:
    """The inverse of `_plain`."""
    if not isinstance(value, dict):
        return value
    if "family" in value:
        return from_table(value["family"])
    if "array" in value:
        return arrays[value["array"]]
    if "index" in value:
        import pandas as pd

        levels = [_restore(part, arrays, classes) for part in value["index"]]
        if len(levels) == 1:
            return pd.Index(levels[0], name=value["of"][0])
        return pd.MultiIndex.from_arrays(levels, names=value["of"])
    if "tuple" in value:
        return tuple(_restore(part, arrays, classes) for part in value["tuple"])
    parts = {name: _restore(part, arrays, classes) for name, part in value["fields"].items()}
    for before, name in _RENAMED.get(value["class"], {}).items():
        if before in parts:
            parts[name] = parts.pop(before)
    return classes[value["class"]](**parts)
