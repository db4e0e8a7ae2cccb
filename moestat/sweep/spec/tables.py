"""Reading tables of a spec: every key is checked, and every complaint names its key."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, ParamSpec, TypeVar

from moestat.base.validate import is_mapping, is_sequence
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.keys import Key

P = ParamSpec("P")
T = TypeVar("T")

REQUIRED = object()
"""Default of a key that must be given."""


_SHOWN = 80


def short_text(value: object) -> str:
    """A value in a message: on one line, and no longer than a person reads.

    Examples
    --------
    >>> short_text("D1"), len(short_text(10**400)), len(short_text(10**9999))
    ("'D1'", 83, 31)
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes out no longer numbers
        return "a number of thousands of digits"
    except RecursionError:
        return "a deeply nested value"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_LARGEST_NUMBER = 2**128
_LONGEST_NAME = 200
_LONGEST_TEXT = 10_000


def check_values(value: object, label: str = "") -> None:
    """Refuse numbers and texts that no key has a use for, wherever in a spec they stand.

    Examples
    --------
    >>> check_values({"curve": [{"n_experts": 3}]})
    """
    if is_mapping(value):
        for key, item in value.items():
            if len(key) > _LONGEST_NAME:
                message = f"a name has at most {_LONGEST_NAME} characters, got {short_text(key)}"
                raise SweepError(f"{label}: {message}" if label else message)
            check_values(item, f"{label}.{key}" if label else str(key))
    elif is_sequence(value):
        for item in value:
            check_values(item, label)
    elif isinstance(value, int) and abs(value) >= _LARGEST_NUMBER:
        raise SweepError(f"{label}: must be at most 2^128, got {short_text(value)}")
    elif isinstance(value, str):
        longest = _LONGEST_TEXT if label.endswith("note") else _LONGEST_NAME
        if len(value) > longest:
            raise SweepError(
                f"{label}: has at most {longest:,} characters, got {short_text(value)}"
            )


class Table:
    """One table of a spec, whose keys are taken one by one until none is left.

    Parameters
    ----------
    values : mapping
        The table as read from TOML.
    label : str
        What messages call it: ``"truth 'sigmoid'"``; empty for the top level.

    Raises
    ------
    SweepError
        If `values` is not a table.

    Examples
    --------
    >>> table = Table({"replicates": 20}, "")
    >>> table.integer("replicates", 1)
    20
    >>> table.finish()
    """

    def __init__(self, values: object, label: str) -> None:
        self.label = label
        if not is_mapping(values):
            raise self.error("", f"must be a table, got {short_text(values)}")
        self._values: dict[str, Any] = dict(values)
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def error(self, key: str, message: str) -> SweepError:
        """The error `message` about `key` of this table ("" for the table itself)."""
        return SweepError(": ".join(part for part in (self.label, key, message) if part))

    def take(self, key: str, default: object = REQUIRED) -> Any:
        """The value of `key`, or `default`; no check."""
        self._known.append(key)
        value = self._values.pop(key, default)
        if value is REQUIRED:
            close = get_close_matches(key, self._values, n=1)
            hint = f"; is {close[0]!r} a misspelling of it?" if close else ""
            raise self.error(key, f"is missing{hint}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A non-empty string on one line; the key is required unless there is a `default`."""
        if default is not None and key not in self:
            return self.take(key, default)
        value = self.take(key)
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise self.error(key, f"must be text on one line, got {short_text(value)}")
        return value

    def read(self, keys: Iterable[Key]) -> dict[str, Any]:
        """The values of the declared keys that have not been taken yet."""
        return {key.name: self._value(key) for key in keys if key.name not in self._known}

    def _value(self, key: Key) -> object:
        if key.name not in self and not key.required:
            return self.take(key.name, key.default)
        if key.kind == "integer":
            return self.integer(key.name, key.minimum or 0, key.maximum)
        takes: dict[str, Callable[[str], object]] = {
            "string": self.text,
            "number": self.number,
            "boolean": self.flag,
            "object": self.table,
            "string object": self.name_or_table,
        }
        return takes[key.kind](key.name) if key.kind in takes else self.take(key.name)

    def check(self, key: Key, value: object) -> None:
        """Refuse a whole number beyond the largest of `key`."""
        if key.kind == "integer" and isinstance(value, int) and value > key.maximum:
            raise self.error(key.name, f"must be at most {key.maximum:,}, got {short_text(value)}")

    def integer(self, key: str, minimum: int, largest: int = 2**63 - 1) -> int:
        """An integer in a range."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise self.error(key, f"must be an integer >= {minimum}, got {short_text(value)}")
        if value > largest:
            raise self.error(key, f"must be at most {largest:,}, got {short_text(value)}")
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _finite(value):
            raise self.error(key, f"must be a finite number, got {short_text(value)}")
        return float(value)

    def numbers(self, key: str, value: object = REQUIRED) -> Any:
        """What is under `key`, or a `value` that was taken: numbers, in lists and tables.

        Their shapes are for others to check; here true and false are refused, which numpy takes
        for 1 and 0.
        """
        value = self.take(key) if value is REQUIRED else value
        flagged = _flagged(value)
        if flagged is not None:
            path, item = flagged
            message = f"must hold numbers, not true or false, got {short_text(item)}"
            raise self.error(": ".join([key, *path]), message)
        return value

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.take(key)
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, got {short_text(value)}")
        return value

    def table(self, key: str) -> dict[str, Any]:
        """A table, as a plain dict."""
        value = self.take(key)
        if not is_mapping(value):
            raise self.error(key, f"must be a table, got {short_text(value)}")
        return dict(value)

    def name_or_table(self, key: str) -> str | dict[str, Any]:
        """A name, or a table with a name and options, as a string or a plain dict."""
        return self.table(key) if is_mapping(self._values.get(key)) else self.text(key)

    def build(self, key: str, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """``make(*args, **kwargs)``; an error of it becomes an error about `key`."""
        try:
            return make(*args, **kwargs)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            message = " ".join(str(error).split())
            raise self.error(key, message.removeprefix(key).lstrip(": ")) from None

    def finish(self) -> None:
        """Refuse keys that were not taken; the message names the closest known key."""
        for key in self._values:
            close = get_close_matches(key, self._known, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            allowed = ", ".join(self._known)
            raise self.error("", f"unknown key {key!r}{hint}; allowed: {allowed}")


def _finite(value: float) -> bool:
    return abs(value) <= sys.float_info.max  # of integers, too, which math.isfinite cannot take


def _flagged(value: object) -> tuple[list[str], object] | None:
    """The first item that holds true or false, with its keys in the tables around it."""
    if is_mapping(value):
        for key, item in value.items():
            if (flagged := _flagged(item)) is not None:
                return [str(key), *flagged[0]], flagged[1]
    elif is_sequence(value):
        for item in value:
            if (flagged := _flagged(item)) is not None:
                return flagged if flagged[0] else ([], value)
    return ([], value) if isinstance(value, bool) else None
