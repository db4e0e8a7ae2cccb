"""The cell of a kind whose cells are computed one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from moestat.sweep.spec.plan import Cell
from moestat.sweep.store.record import Record, attempt, settle
from moestat.sweep.store.shapes import pack

S = TypeVar("S")


def measured(
    measure: Callable[[S, Cell], dict[str, Any]],
) -> Callable[[S, Cell], Record]:
    """``run_cell(spec, cell)`` of a kind: the record of what `measure` returns, or raises."""

    def _plain(values: dict[str, Any]) -> dict[str, Any]:
        pack(values)  # what a row cannot hold, such as NaN, fails the cell and not its sweep
        return values

    def run_cell(spec: S, cell: Cell) -> Record:
        began = time.perf_counter()
        found = attempt(cell, lambda: _plain(measure(spec, cell)))
        return settle(cell, found, time.perf_counter() - began)

    return run_cell
