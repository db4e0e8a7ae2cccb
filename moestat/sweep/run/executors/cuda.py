"""The CUDA executor: many cells at a time, whose fits are one batch on the device.

Host processes sample, run the solvers' small algebra and score; each has its own batch, and all
share the device.  The data, starts and seeds of a cell are those of every other executor.  Its
estimate does not depend on the cells that are fitted with it, and differs from the processor's as
two certified maxima of one likelihood may: sums are taken in another order, and solvers start on
all of the data instead of previews.  The record's ``machine.device`` says where it was fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from moestat.sweep.errors import SweepError
from moestat.sweep.run.executors import process
from moestat.sweep.run.executors._types import Executor, Lost, R, T

if TYPE_CHECKING:
    from moestat.solvers.targets import CudaTarget
    from moestat.sweep.spec.plan import Cell
    from moestat.sweep.store.record import Record

_CELLS = 64
_SHARE = 0.7  # of the device's memory, for all processes together


def _unavailable() -> str:
    from moestat.solvers.targets import missing

    reason = missing()
    return f"no CUDA device: {reason}" if reason else ""


def run(
    function: Callable[[T], R], tasks: Iterable[T], workers: int
) -> Generator[R | Lost[T], None, None]:
    """``function(task)`` for each task on `workers` processes that share the device."""
    reason = _unavailable()
    if reason:
        raise SweepError(f"{reason}; the executor 'process' runs on the processor's cores")
    yield from process.run(partial(_share, function, workers), tasks, workers)


_sharing = 1  # processes that share the device


def _share(function: Callable[[T], R], workers: int, task: T) -> R:
    """``function(task)`` in one of the processes that share the device."""
    global _sharing
    _sharing = workers
    return function(task)


@lru_cache(maxsize=1)
def _target() -> CudaTarget:
    """The target of one process, with its part of the memory."""
    from moestat.solvers.targets import CudaTarget

    return CudaTarget(share=_SHARE / _sharing)


def together(text: str, cells: Sequence[Cell]) -> list[Record]:
    """The records of cells that are fitted as one batch on the device.

    Where a batch fails as a whole, for want of memory or for a family that the device cannot
    take, its cells are computed one by one; one that fails by itself has a failed record.
    """
    from moestat.solvers.targets import device_name
    from moestat.sweep.kinds.kind import kind_of
    from moestat.sweep.spec.read import parse_spec
    from moestat.sweep.store.record import FAILED, record_of

    target, spec = _target(), parse_spec(text)
    run_together = kind_of(spec.kind).run_together
    assert run_together is not None  # the command line asks before it starts
    try:
        records = run_together(target, spec, cells)
    except Exception as error:
        if len(cells) > 1:
            return [record for cell in cells for record in together(text, [cell])]
        records = [record_of(cells[0], FAILED, message=f"{type(error).__name__}: {error}")]
    facts = {"device": device_name()}
    if target.plan is not None:
        facts["device_memory"] = target.plan.summary()
    return [replace(record, machine={**record.machine, **facts}) for record in records]


EXECUTOR = Executor(
    "cuda",
    run,
    task_seconds=10.0,
    together=together,
    cells_per_task=_CELLS,
    unavailable=_unavailable,
)
