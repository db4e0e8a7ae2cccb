"""Batches: small cells travel together, so that scheduling them costs little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from moestat.sweep.run.cost import CostModel
from moestat.sweep.spec.plan import Cell
from moestat.sweep.store.record import Record

_SHARES = 4
"""A batch is at most one of this many shares, per worker, of the open cells.

Workers then end together."""


def batches(
    cells: Sequence[Cell],
    costs: CostModel,
    task_seconds: float,
    workers: int,
    at_least: int = 1,
) -> Iterator[tuple[Cell, ...]]:
    """Cells in order, as many at a time as should take `task_seconds`.

    The size of a batch is decided when it is drawn, by the `costs` known by then.  Until a cell has
    been measured, and with 0 seconds, a batch holds one cell.  It holds `at_least` so many in any
    case.
    """
    n_open, ahead = len(cells), iter(cells)
    while n_open:
        largest = min(max(-(-n_open // (_SHARES * workers)), at_least), n_open)
        batch, room = [next(ahead)], task_seconds
        while len(batch) < largest:
            # By the cell before: cells that follow each other cost about the same.
            cost = costs.seconds(batch[-1].curve, batch[-1].n)
            room -= task_seconds if cost is None else cost
            if room <= 0 and len(batch) >= at_least:
                break
            batch.append(next(ahead))
        n_open -= len(batch)
        yield tuple(batch)


def run_batch(
    cell_function: Callable[[str, Cell], Record], text: str, cells: Sequence[Cell]
) -> list[Record]:
    """The records of a batch; what a worker calls."""
    return [cell_function(text, cell) for cell in cells]
