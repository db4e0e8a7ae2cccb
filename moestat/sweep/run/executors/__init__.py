"""Executors: how the cells of a sweep are scheduled; a new one is registered here."""

from collections.abc import Callable, Generator, Iterable

from moestat.base.registry import Registry
from moestat.sweep.run.executors import cuda, dask, process
from moestat.sweep.run.executors._types import Executor, Lost, R, T
from moestat.sweep.run.executors.dask import dask_executor

__all__ = ["EXECUTORS", "Executor", "Lost", "dask_executor"]


def _in_order(
    function: Callable[[T], R], tasks: Iterable[T], workers: int
) -> Generator[R, None, None]:
    """``function(task)`` for one task after the other in this process."""
    yield from map(function, tasks)


EXECUTORS: Registry[Executor] = Registry("executor", "moestat.executors")
EXECUTORS.register(cuda.EXECUTOR)
EXECUTORS.register(dask.EXECUTOR)
EXECUTORS.register(process.EXECUTOR)
EXECUTORS.register(Executor("serial", _in_order, task_seconds=0.0))


def __dir__() -> list[str]:
    return sorted(__all__)
