"""Shapes: nested plain data as a text that many cells share and the numbers of one cell.

The text is JSON in which each number is replaced by its format, so that cells of one curve, whose
losses and certificates have the same entries, differ in their numbers only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import count
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray

_FLOAT = 0
_FORMATS = {_FLOAT: "d", 1: "b", 2: "h", 4: "i", 8: "q"}
"""Formats by the number that stands in their place: a float, or the bytes of a whole number."""

_quoted = lru_cache(maxsize=1024)(json.JSONEncoder().encode)
"""A key or a short text in quotation marks; the keys of all cells of a sweep are the same."""


def pack(value: object) -> tuple[str, bytes]:
    """Plain data as the text of its shape and its packed numbers, in the order of the text.

    Numbers must be finite, and whole ones have 64 bits at most, or a `ValueError` is raised; what
    is no plain data is a `TypeError`.
    """
    formats, numbers = ["<"], list[float]()

    def number(code: int, value: float) -> str:
        formats.append(_FORMATS[code])
        numbers.append(value)
        return str(code)

    def shape(value: object) -> str:
        if isinstance(value, float):  # most values are
            if not math.isfinite(value):
                raise ValueError(f"numbers must be finite, got {value}")
            return number(_FLOAT, value)
        if isinstance(value, str):
            return _quoted(value)
        if value is None or isinstance(value, bool):
            return "null" if value is None else "true" if value else "false"
        if isinstance(value, int):
            for width in (1, 2, 4, 8):
                if -(1 << 8 * width - 1) <= value < 1 << 8 * width - 1:
                    return number(width, value)
            raise ValueError(f"whole numbers must have 64 bits at most, got {value}")
        if isinstance(value, Mapping):
            items = [f"{_quoted(str(key))}:{shape(item)}" for key, item in value.items()]
            return "{" + ",".join(items) + "}"
        if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
            return "[" + ",".join([shape(item) for item in value]) + "]"
        raise TypeError(f"not plain data: {value!r}")

    text = shape(value)
    return text, Struct("".join(formats)).pack(*numbers)


class Shape:
    """Where the numbers of plain data belong, by the text that `pack` gives."""

    def __init__(self, text: str) -> None:
        self._tree = json.loads(text)
        self._codes: list[str] = []
        self._paths: dict[tuple[str | int, ...], object] = {}
        self._note_paths(self._tree, (), count())
        self._struct = Struct("<" + "".join(self._codes))

    def _note_paths(self, tree: object, path: tuple[str | int, ...], places: Iterator[int]) -> None:
        """Note the place of the number at each path, or the value that stands in the text."""
        if isinstance(tree, (dict, list)):
            self._paths[path] = tree
            for key, item in tree.items() if isinstance(tree, dict) else enumerate(tree):
                self._note_paths(item, (*path, key), places)
        elif isinstance(tree, int) and not isinstance(tree, bool):
            self._codes.append(_FORMATS[tree])
            self._paths[path] = next(places)
        else:
            self._paths[path] = _Literal(tree)

    @property
    def size(self) -> int:
        """Bytes of the numbers."""
        return self._struct.size

    def unpack(self, numbers: bytes) -> Any:
        """The plain data with these numbers."""
        return self._build(iter(self._struct.unpack(numbers[: self.size])))

    @cached_property
    def _build(self) -> Callable[[Iterator[float]], object]:
        return _builder(self._tree)

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The numbers as fields ``f0``, ``f1``, ..."""
        return np.dtype([(f"f{i}", f"<{_NUMPY[code]}") for i, code in enumerate(self._codes)])

    def dtype_within(self, begin: int, length: int) -> np.dtype[np.void]:
        """The same fields in rows of so many bytes, in which the numbers begin at a byte."""
        names: list[str] = [*(self.dtype.names or ())]
        fields: Any = self.dtype.fields or {}
        return np.dtype(
            {
                "names": names,
                "formats": [fields[name][0] for name in names],
                "offsets": [begin + fields[name][1] for name in names],
                "itemsize": length,
            }
        )

    def entries(self, *path: str | int) -> Sequence[str | int]:
        """Keys of the mapping, or numbers of the list, at a path; none if there is none."""
        tree = self._paths.get(path)
        if isinstance(tree, dict):
            return list(tree)
        return range(len(tree)) if isinstance(tree, list) else ()

    def literal(self, *path: str | int) -> object:
        """The text, truth value or list of texts that stands at a path; None if none does."""
        entry = self._paths.get(path)
        return entry.value if isinstance(entry, _Literal) else entry

    def has(self, *path: str | int) -> bool:
        """Whether the data have a value at a path."""
        return path in self._paths

    def column(self, numbers: NDArray[np.void], *path: str | int) -> FloatArray:
        """The numbers at a path, of N cells of `dtype`, as floats; NaN where none is."""
        place = self._paths.get(path)
        if isinstance(place, int):
            return numbers[f"f{place}"].astype(np.float64)
        return np.full(len(numbers), np.nan)


class _Literal:
    def __init__(self, value: object) -> None:
        self.value = value


_NUMPY = {"d": "f8", "b": "i1", "h": "i2", "i": "i4", "q": "i8"}


def _builder(tree: object) -> Callable[[Iterator[float]], object]:
    """A function from an iterator over the numbers to the data."""
    if isinstance(tree, dict):
        items = [(key, _builder(item)) for key, item in tree.items()]
        return lambda numbers: {key: build(numbers) for key, build in items}
    if isinstance(tree, list):
        parts = [_builder(item) for item in tree]
        return lambda numbers: [build(numbers) for build in parts]
    if isinstance(tree, int) and not isinstance(tree, bool):
        return next
    return lambda numbers: tree
