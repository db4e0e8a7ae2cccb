"""The runner: cells that have no result yet, to an executor, to the store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np

from moestat.base.door import door
from moestat.base.types import IntArray
from moestat.sweep.kinds.fit.replication import replication
from moestat.sweep.run.batches import batches, run_batch
from moestat.sweep.run.cost import CostModel
from moestat.sweep.run.executors import EXECUTORS, Executor, Lost
from moestat.sweep.spec.plan import Cell, Plan, plan_cells
from moestat.sweep.spec.protocol import AnySpec
from moestat.sweep.store.record import FAILED, Record, record_of
from moestat.sweep.store.store import Store

R = TypeVar("R")

CellFunction = Callable[[str, Cell], Record]

_SHOWN_IN_FLIGHT = 100


def planned_cells(spec: AnySpec, store: Store) -> Plan:
    """Cells that the spec and the results so far ask for, largest sample sizes first.

    Replicates that the rule has added are among them.
    """
    return plan_cells(spec, _replicates(spec, store))


@door()
def open_cells(spec: AnySpec, store: Store, retry_failed: bool = False) -> Plan:
    """Cells of `spec` that `store` has no result of, in the order they should run.

    A spec with a ``target_slope_halfwidth`` may have further cells once these have results.

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
    Plan
        The largest sample sizes first.
    """
    settled: dict[tuple[str, float], IntArray] = {}
    for curve in spec.curves:
        cells = store.cells(curve.name)
        if retry_failed:
            cells = cells.where(cells.done)
        for n in np.unique(cells.n).tolist():
            settled[curve.name, n] = cells.replicate[cells.n == n]
    return plan_cells(spec, _replicates(spec, store), settled)


def _replicates(spec: AnySpec, store: Store) -> dict[str, int] | None:
    """Replicates of each curve, where results decide."""
    if spec.target_slope_halfwidth is None:
        return None
    return {name: count.replicates for name, count in replication(spec, store).items()}


@door()
def run_cells(
    spec: AnySpec,
    store: Store,
    cells: Sequence[Cell],
    *,
    executor: str | Executor = "process",
    workers: int = 1,
    cell_function: CellFunction | None = None,
    accept: Callable[[Record], bool] | None = None,
) -> Iterator[Record]:
    """Run cells and write each record to the store before it is handed on.

    The records depend neither on the number of workers, nor on the order, nor on the executor; of
    the executor ``cuda`` they have the same data and starts, and estimates that agree as far as
    two certified maxima of one likelihood do.

    Parameters
    ----------
    spec : Spec
        The spec.
    store : Store
        Its store, open for writing.
    cells : sequence of Cell
        Cells to run.
    executor : str or Executor
        Name in `moestat.sweep.run.executors.EXECUTORS`, or an executor.
    workers : int
        Number of workers.
    cell_function : callable, optional
        ``cell_function(text, cell)``; by default `moestat.sweep.run.cell.run_cell`, or what the
        executor has to compute cells together.

    accept : callable, optional
        ``accept(record)``: whether a record is written; all are by default.

    Yields
    ------
    Record
        Records as they complete.
    """
    chosen = EXECUTORS[executor] if isinstance(executor, str) else executor
    if cell_function is None and chosen.together is not None:
        function = partial(chosen.together, spec.text)
    else:
        if cell_function is None:
            from moestat.sweep.run.cell import run_cell as cell_function
        function = partial(run_batch, cell_function, spec.text)
    costs, flight = CostModel.from_sums(store.timings()), _Flight(store, chosen.name)
    task_seconds, at_least = chosen.task_seconds, chosen.cells_per_task
    while cells:
        lost: list[Cell] = []
        tasks = flight.watch(batches(cells, costs, task_seconds, workers, at_least))
        results = _each(chosen.run(function, tasks, workers))
        with closing(results):
            for result in results:
                if isinstance(result, Lost) and len(result.task) > 1:
                    lost += result.task
                    continue
                records = [_lost_record(result)] if isinstance(result, Lost) else result
                store.put([each for each in records if accept is None or accept(each)])
                flight.land(records)
                for record in records:
                    costs.add(record.curve, record.n, record.seconds)
                    yield record
        flight.leave(lost)
        # A worker dies at one cell of a batch; each cell by itself tells which one.
        cells, task_seconds, at_least = lost, 0.0, 1


def _each(results: Iterable[R]) -> Generator[R, None, None]:
    """The results, of an executor that returns a list, too; closing it closes a generator."""
    yield from results


class _Flight:
    """The cells that workers have at the moment; the store's lock file tells readers."""

    def __init__(self, store: Store, executor: str) -> None:
        self._store, self._executor, self._cells = store, executor, dict[str, None]()
        self._counts: Counter[str] = Counter()
        self._began, self._busy = time.time(), 0.0

    def watch(self, tasks: Iterable[tuple[Cell, ...]]) -> Iterator[tuple[Cell, ...]]:
        """Hand on the tasks; the cells of a task count as in flight once it is drawn."""
        for task in tasks:
            new = [cell for cell in task if cell.key not in self._cells]
            self._cells.update(dict.fromkeys(cell.key for cell in new))
            self._counts.update(cell.curve for cell in new)
            self._report()
            yield task

    def land(self, records: Sequence[Record]) -> None:
        """Remove cells that have results."""
        for record in records:
            if record.key not in self._cells:
                raise ValueError(
                    f"executor {self._executor!r}: a second result of cell {record.key}; its"
                    " function must yield one result for each task"
                )
            del self._cells[record.key]
            self._counts[record.curve] -= 1
            self._busy += record.seconds
        self._report()

    def leave(self, lost: Sequence[Cell]) -> None:
        """Check that all cells have results but those that are `lost`, which run again."""
        missing = self._cells.keys() - {cell.key for cell in lost}
        if missing:
            raise ValueError(
                f"executor {self._executor!r}: no result of {len(missing)} cells, such as"
                f" {min(missing)}; its function must yield one result for each task"
            )

    def _report(self) -> None:
        self._store.say(
            {
                "began": self._began,
                "busy": self._busy,
                "in_flight": self._counts,
                "cells": list(islice(self._cells, _SHOWN_IN_FLIGHT)),
            }
        )


def _lost_record(lost: Lost[tuple[Cell, ...]]) -> Record:
    (cell,) = lost.task
    return record_of(cell, FAILED, message=lost.message)
