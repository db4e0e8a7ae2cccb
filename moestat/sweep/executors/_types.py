"""What an executor is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
        they complete, in any order.  Closing the iterator stops the work.
    """

    name: str
    run: Callable[[Callable[[Any], Any], Sequence[Any], int], Iterator[Any]]
