"""The runner: cells that have no result yet, to an executor, to the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from moestat.sweep.executors import EXECUTORS, Lost
from moestat.sweep.plan import Cell, plan_cells
from moestat.sweep.record import FAILED, Record, versions
from moestat.sweep.spec import Spec
from moestat.sweep.store import Store

__all__ = ["CellFunction", "open_cells", "run_cells"]

CellFunction = Callable[[str, Cell], Record]


def open_cells(spec: Spec, store: Store, retry_failed: bool = False) -> list[Cell]:
    """Cells of `spec` that `store` has no result of, in the order they should run.

    Parameters
    ----------
    spec : Spec
        The spec.
    store : Store
        Its store.
    retry_failed : bool
        Whether failed cells count as open.

    Returns
    -------
    list of Cell
        The largest sample sizes first.
    """
    statuses = store.statuses()
    settled = {key for key, status in statuses.items() if not (retry_failed and status == FAILED)}
    return [cell for cell in plan_cells(spec) if cell.key not in settled]


def run_cells(
    spec: Spec,
    store: Store,
    cells: Sequence[Cell],
    *,
    executor: str = "process",
    workers: int = 1,
    cell_function: CellFunction | None = None,
) -> Iterator[Record]:
    """Run cells and write each record to the store before it is handed on.

    The records depend neither on the executor, nor on the number of workers, nor on the order.

    Parameters
    ----------
    spec : Spec
        The spec.
    store : Store
        Its store, open for writing.
    cells : sequence of Cell
        Cells to run.
    executor : str
        Name in `moestat.sweep.executors.EXECUTORS`.
    workers : int
        Number of workers.
    cell_function : callable, optional
        ``cell_function(text, cell)``, `moestat.sweep.cell.run_cell` by default.

    Yields
    ------
    Record
        Records as they complete.
    """
    if cell_function is None:
        from moestat.sweep.cell import run_cell as cell_function
    results: Any = EXECUTORS[executor].run(partial(cell_function, spec.text), cells, workers)
    with closing(results):
        for result in results:
            record = _lost_record(result) if isinstance(result, Lost) else result
            store.put(record)
            yield record


def _lost_record(lost: Lost) -> Record:
    cell: Cell = lost.task
    return Record(
        key=cell.key,
        curve=cell.curve,
        n=cell.n,
        replicate=cell.replicate,
        status=FAILED,
        message=lost.message,
        versions=versions(),
    )
