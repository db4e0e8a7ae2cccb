"""Which tests each run has: every test, and of its cells some in which every value takes part.

A test with parameters has one cell for each combination of their values.  `pytest` runs the cells
that together have every value once, such as every gate and every shape but not every gate with
every shape; `pytest -m thorough` runs the others.  A file or a test that is marked `thorough` by
hand has a reason beside the mark.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["covering", "mark_the_rest", "values_of"]

_LONGEST = 6
"""Longest list among parameters whose members are values of their own, such as a kind of family."""


def values_of(name: str, value: object) -> list[tuple[str, str]]:
    """The values of a parameter, with their places: members of a short list, else itself."""
    if isinstance(value, (tuple, list)) and 0 < len(value) <= _LONGEST:
        return [v for i, each in enumerate(value) for v in values_of(f"{name}.{i}", each)]
    # Texts of functions and of objects without one have their place in memory.
    return [(name, repr(value))]


def covering(cells: Iterable[tuple[str, list[tuple[str, str]]]]) -> set[str]:
    """Names of cells that together have every value of all cells.

    Parameters
    ----------
    cells : iterable of (str, list)
        Name and values of each cell.  Cells are taken in the order of checksums of their names, so
        that tests with the same cells have the same ones.

    Examples
    --------
    >>> cells = [(a + b, [("a", a), ("b", b)]) for a in "xyz" for b in "xyz"]
    >>> len(covering(cells)) < 6
    True
    """
    seen: set[tuple[str, str]] = set()
    chosen = set()
    for name, values in sorted(cells, key=lambda cell: zlib.crc32(cell[0].encode())):
        if not seen.issuperset(values):
            seen.update(values)
            chosen.add(name)
    return chosen


def mark_the_rest(items: Iterable[pytest.Item]) -> None:
    """Mark the cells that are not in the part of each run as thorough; slow ones are in neither."""
    tests: dict[str, dict[str, tuple[pytest.Item, list[tuple[str, str]]]]] = {}
    for item in items:
        call: Any = getattr(item, "callspec", None)
        if item.get_closest_marker("slow"):
            item.own_markers = [mark for mark in item.own_markers if mark.name != "thorough"]
            continue
        if call is None or item.get_closest_marker("thorough"):
            continue
        test, _, cell = item.nodeid.partition("[")
        values = [v for name, value in call.params.items() for v in values_of(name, value)]
        tests.setdefault(test, {})[cell] = (item, values)
    for cells in tests.values():
        chosen = covering((cell, values) for cell, (_, values) in cells.items())
        for cell, (item, _) in cells.items():
            if cell not in chosen:
                item.add_marker(pytest.mark.thorough)
