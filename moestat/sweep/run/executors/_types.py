"""What an executor is."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from moestat.sweep.spec.plan import Cell
    from moestat.sweep.store.record import Record

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Lost(Generic[T]):
    """Stands for the result of a task at which the worker died every time."""

    task: T  # the task
    message: str  # what happened


class Run(Protocol):
    """The function of an executor."""

    def __call__(
        self, function: Callable[[T], R], tasks: Iterable[T], workers: int, /
    ) -> Generator[R | Lost[T], None, None]:
        """Yield ``function(task)``, or `Lost`, for each task."""
        ...


@dataclass(frozen=True)
class Executor:
    """A way to run one function on many tasks."""

    name: str
    """Name in the registry."""
    run: Run
    """``run(function, tasks, workers)`` yields ``function(task)``, or `Lost`, for each task, as
    they complete, in any order.  It draws tasks only as workers become free for them, since how
    much goes into a task is decided as it is drawn.  Closing the iterator stops the work."""
    task_seconds: float
    """How long a task should be for its scheduling to cost a few percent at most; 0 if
    scheduling costs nothing."""
    together: Callable[[str, Sequence[Cell]], list[Record]] | None = None
    """``together(text, cells)``: the records of cells that are computed as one, in
    place of one call per cell."""
    cells_per_task: int = 1
    """Smallest number of cells in a task, as long as so many are open."""
    unavailable: Callable[[], str] = lambda: ""
    """Why it cannot run on this machine; empty if it can."""
