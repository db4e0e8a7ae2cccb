"""The process executor: cells on worker processes of this machine.

Workers are started afresh (spawn), compute on one thread, leave the keyboard's interrupt to the
coordinator, and hold one end of a pipe whose other end only the coordinator has.  When that end
closes, because the coordinator stopped or was killed, they exit at once.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Generic

from moestat.sweep.errors import SweepError
from moestat.sweep.run.executors._types import Executor, Lost, R, T
from moestat.sweep.run.threads import one_thread

_RETRIES = 2
_QUEUED_PER_WORKER = 2


class _Pool:
    """A process pool whose workers cannot outlive it."""

    def __init__(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._watched, self._lifeline = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_watch, initargs=(self._watched,)
        )

    def submit(self, function: Callable[[T], R], task: T) -> Future[R]:
        """Queue ``function(task)``; this is also where workers are started."""
        with one_thread(), interrupts_held():
            return self._executor.submit(function, task)

    def check(self) -> None:
        """Wait until a worker answers."""
        try:
            self.submit(bool, True).result()
        except BrokenProcessPool:
            raise SweepError(
                "worker processes end as they start; a script that runs a sweep needs the guard"
                ' if __name__ == "__main__", or use the serial executor'
            ) from None

    def close(self, now: bool) -> None:
        """Wait for the workers to end, or end them `now`, in the middle of their tasks."""
        if now:
            self._lifeline.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._lifeline.close()
        self._watched.close()


def run(
    function: Callable[[T], R], tasks: Iterable[T], workers: int
) -> Generator[R | Lost[T], None, None]:
    """``function(task)`` for each task on `workers` processes, as they complete.

    A worker that dies takes the whole pool with it, and nobody knows which of the tasks in
    flight was to blame.  Those tasks run again one at a time, so that the blame falls on the
    right one; it gets two more tries and is then reported as `Lost`.
    """
    waiting, suspects = _Queue(tasks), _Queue[T](())
    compute = partial(_compute, function)
    deaths: Counter[T] = Counter()
    while waiting or suspects:
        pool, running = _Pool(workers), dict[Future[R], T]()
        finished = False
        try:
            pool.check()
            for queue, width in ((suspects, 1), (waiting, workers * _QUEUED_PER_WORKER)):
                yield from _drain(pool, compute, queue, width, running)
            finished = True
        except BrokenProcessPool:
            for task in running.values():
                deaths[task] += 1
                if deaths[task] <= _RETRIES:
                    suspects.append(task)
                else:
                    yield Lost(task, f"the worker process died {deaths[task]} times at this cell")
        finally:
            pool.close(now=not finished)


class _Queue(Generic[T]):
    """Tasks in order; a task is drawn from its source only when it is needed."""

    def __init__(self, tasks: Iterable[T]) -> None:
        self._source, self._tasks = iter(tasks), deque[T]()

    def __bool__(self) -> bool:
        if not self._tasks:
            self._tasks.extend(islice(self._source, 1))
        return bool(self._tasks)

    def append(self, task: T) -> None:
        self._tasks.append(task)

    def first(self) -> T:
        return self._tasks[0]

    def drop(self) -> None:
        self._tasks.popleft()


def _drain(
    pool: _Pool,
    function: Callable[[T], R],
    queue: _Queue[T],
    width: int,
    running: dict[Future[R], T],
) -> Iterator[R]:
    """Results of the tasks in `queue`, at most `width` of them in flight."""
    while queue or running:
        while len(running) < width and queue:
            running[pool.submit(function, queue.first())] = queue.first()
            queue.drop()
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            result = future.result()
            del running[future]
            yield result


def _compute(function: Callable[[T], R], task: T) -> R:
    """What a worker does with a task."""
    result = function(task)
    _settle()
    return result


@cache
def _settle() -> None:
    """Take what the first task has loaded from the objects that garbage collection looks at.

    They stay as long as the worker, and visiting them takes a tenth of the time of small cells.
    """
    gc.collect()
    gc.freeze()


def _watch(watched: Connection) -> None:
    """Start a thread that ends this worker when the coordinator's end of the pipe closes."""

    def wait_for_the_end() -> None:
        try:
            watched.recv_bytes()
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=wait_for_the_end, daemon=True).start()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold SIGINT back; processes started inside never see it, and the caller sees it after."""
    resource_tracker.ensure_running()  # its own start would lift the hold
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


EXECUTOR = Executor("process", run, task_seconds=0.1)
