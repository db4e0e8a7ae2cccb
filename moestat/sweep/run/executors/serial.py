"""The serial executor: one cell after the other in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moestat.sweep.run.executors._types import Executor


def run(function: Callable[[Any], Any], tasks: Iterable[Any], workers: int) -> Iterator[Any]:
    """``function(task)`` for each task, in order; `workers` is not used."""
    for task in tasks:
        yield function(task)


EXECUTOR = Executor("serial", run, task_seconds=0.0)
