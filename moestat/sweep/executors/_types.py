"""What an executor is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Executor", "Lost"]


@dataclass(frozen=True)
class Lost:
    """In place of a result: the worker died at this task, every time it was tried.

    Parameters
    ----------
    task : object
        The task.
    message : str
        What happened.
    """

    task: Any
    message: str


@dataclass(frozen=True)
class Executor:
    """A way to run one function on many tasks.

    Parameters
    ----------
    name : str
        Name in the registry.
    run : callable
        ``run(function, tasks, workers)`` yields ``function(task)``, or `Lost`, for each task, as
        they complete, in any order.  It draws tasks only as workers become free for them, since
        how much goes into a task is decided as it is drawn.  Closing the iterator stops the work.
    task_seconds : float
        How long a task should be for its scheduling to cost a few percent at most; 0 if
        scheduling costs nothing.
    """

    name: str
    run: Callable[[Callable[[Any], Any], Iterable[Any], int], Iterator[Any]]
    task_seconds: float
