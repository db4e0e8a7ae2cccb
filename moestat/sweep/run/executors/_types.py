"""What an executor is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Lost:
    """In place of a result: the worker died at this task, every time it was tried."""

    task: Any  # the task
    message: str  # what happened


@dataclass(frozen=True)
class Executor:
    """A way to run one function on many tasks."""

    name: str
    """Name in the registry."""
    run: Callable[[Callable[[Any], Any], Iterable[Any], int], Iterator[Any]]
    """``run(function, tasks, workers)`` yields ``function(task)``, or `Lost`, for each task, as
    they complete, in any order.  It draws tasks only as workers become free for them, since how
    much goes into a task is decided as it is drawn.  Closing the iterator stops the work."""
    task_seconds: float
    """How long a task should be for its scheduling to cost a few percent at most; 0 if
    scheduling costs nothing."""
    together: Callable[[str, Sequence[Any]], list[Any]] | None = None
    """``together(text, cells)``: the records of cells that are computed as one, in
    place of one call per cell."""
    cells_per_task: int = 1
    """Cells that a task holds at least, as long as there are so many."""
    unavailable: Callable[[], str] = lambda: ""
    """Why it cannot run on this machine; empty if it can."""
