"""The record of a kind whose cells are computed one by one, and have no rates."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from moestat.sweep.kinds.kind import Kind
from moestat.sweep.kinds.runs.spec import RunsSpec, keys_of, parse_runs
from moestat.sweep.spec.keys import Key
from moestat.sweep.spec.plan import Cell
from moestat.sweep.store.record import Record, attempt, settle
from moestat.sweep.store.shapes import pack

S = TypeVar("S", bound=RunsSpec[Any])


def kind_of_runs(
    name: str,
    what: str,
    fields: Sequence[Key],
    build: Callable[..., S],
    measure: Callable[[S, Cell], dict[str, object]],
    **views: Any,
) -> Kind[S, Any]:
    """A kind whose cells are `what`, with these fields.

    `build` is the class of its specs, `measure` gives the values of a cell's record, and `views`
    are the functions of `Kind` that show them.
    """
    return Kind(
        name=name,
        keys=keys_of(what, fields),
        parse=partial(parse_runs, keys=fields, build=partial(build, kind=name)),
        run_cell=_runner(measure),
        **views,
    )


def _runner(measure: Callable[[S, Cell], dict[str, object]]) -> Callable[[S, Cell], Record]:
    """``run_cell(spec, cell)`` of a kind: the record of what `measure` returns, or raises."""

    def run_cell(spec: S, cell: Cell) -> Record:
        def compute() -> dict[str, object]:
            values = measure(spec, cell)
            pack(values)  # what a row cannot hold, such as NaN, fails the cell and not its sweep
            return values

        began = time.perf_counter()
        outcome = attempt(cell, compute)
        return settle(cell, outcome, time.perf_counter() - began)

    return run_cell
