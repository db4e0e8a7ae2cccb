"""The dask executor: cells on the workers of a dask scheduler, near or far.

Only plain arguments travel out, the spec's text and the cells, and only records travel back; the
store stays with the coordinator.  Tasks are keyed by what they compute.  The scheduler runs a dead
worker's tasks again elsewhere; a task at which it has lost its patience is reported as `Lost`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moestat.base.door import door
from moestat.sweep.errors import SweepError
from moestat.sweep.run.executors._types import Executor, Lost, R, T
from moestat.sweep.run.executors.process import interrupts_held
from moestat.sweep.run.threads import one_thread
from moestat.sweep.spec.identity import digest

if TYPE_CHECKING:
    from distributed import Future, LocalCluster

_QUEUED_PER_THREAD = 2
_SECONDS_BETWEEN_COUNTS = 5.0  # how often the number of workers is asked for
_SECONDS_TO_CONNECT = 20.0
_UNWATCHED = {
    # What dask measures of its workers all the time takes processor time from the cells.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
}


@door()
def dask_executor(scheduler: str | None = None) -> Executor:
    """An executor that uses the dask scheduler at an address, or a cluster of its own.

    Parameters
    ----------
    scheduler : str, optional
        Address, such as ``tcp://host:8786`` or ``tls://host:8786``, or the scheduler's JSON file.
        By default a cluster is started on this machine, with a process for each worker of the
        run, and stopped at the end.  TLS follows dask's own configuration
        (``distributed.comm.tls``).

    Returns
    -------
    Executor
        The executor.

    Examples
    --------
    >>> dask_executor("tcp://localhost:8786").name
    'dask'
    """
    return Executor("dask", partial(_run, scheduler), task_seconds=0.5)


def _run(
    scheduler: str | None,
    function: Callable[[T], R],
    tasks: Iterable[T],
    workers: int,
) -> Generator[R | Lost[T], None, None]:
    """``function(task)`` for each task on the scheduler's workers, as they complete.

    When a worker dies again and again, the scheduler gives up on all the tasks that it held then.
    They run once more, one at a time, so that the blame falls on the right one.
    """
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise SweepError(
            "the dask executor needs the package distributed: pip install 'moestat[dask]'"
        ) from None
    with _client(scheduler, workers) as client:
        suspects: list[T] = []
        for result in _drain(client, function, tasks, "moestat"):
            if isinstance(result, Lost):
                suspects.append(result.task)
            else:
                yield result
        for task in suspects:
            yield from _drain(client, function, [task], "moestat-alone")


def _drain(
    client: Any, function: Callable[[T], R], tasks: Iterable[T], prefix: str
) -> Iterator[R | Lost[T]]:
    """Results of the tasks, drawn as the scheduler's workers have room for them."""
    from distributed import as_completed

    done, running = as_completed(loop=client.loop), dict[str, T]()
    source, width, counted_at = iter(tasks), 0, -_SECONDS_BETWEEN_COUNTS
    while True:
        if time.monotonic() - counted_at >= _SECONDS_BETWEEN_COUNTS:
            counted_at = time.monotonic()
            width = max(_QUEUED_PER_THREAD * sum(client.nthreads().values()), 1)
        for task in islice(source, max(width - len(running), 0)):
            future = client.submit(function, task, key=f"{prefix}-{digest(repr(task))}")
            running[future.key] = task
            done.add(future)
        if not running:
            return
        future = next(done)
        yield _outcome(future, running.pop(future.key))


def _outcome(future: Future, task: T) -> Any | Lost[T]:
    """The result of a task that has ended; `Lost` if workers died at it."""
    from distributed import CancelledError, KilledWorker

    try:
        # A worker may die with a result that was announced already: then this waits for the next.
        error = future.exception()
        if error is None:
            return future.result()
    except CancelledError as cancelled:
        error = cancelled
    if isinstance(error, CancelledError):
        raise SweepError("the dask scheduler was lost; run the same command again to continue")
    if isinstance(error, KilledWorker):
        return Lost(task, "dask workers died at this cell, every time it was tried")
    raise SweepError(
        f"a dask worker cannot run cells ({type(error).__name__}: {error}); the workers need the"
        " same moestat as this machine"
    )


@contextmanager
def _client(scheduler: str | None, workers: int) -> Iterator[Any]:
    """A client of the scheduler; its unfinished tasks are dropped when it closes."""
    import distributed

    with ExitStack() as stack:
        stack.enter_context(_quiet())
        if scheduler is None:
            address = stack.enter_context(_local_cluster(workers))
        else:
            address = _address(scheduler)
        try:
            if isinstance(address, str):
                _ask(address)
            client = distributed.Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
        except Exception as error:  # whatever is at the address may answer anything
            reason = " ".join(str(error).split()) or type(error).__name__
            raise SweepError(f"no dask scheduler answers at {scheduler}: {reason:.300}") from None
        yield stack.enter_context(client)


def _address(scheduler: str) -> str:
    """The address of a scheduler: itself, or what its file says."""
    if not Path(scheduler).is_file():
        return scheduler
    try:
        return str(json.loads(Path(scheduler).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError):
        raise SweepError(
            f"{scheduler} is not a file of a dask scheduler: it has no address"
        ) from None


def _ask(address: str) -> None:
    """Wait until a scheduler says what it is; the client would wait for one that says nothing."""
    from distributed import Security, rpc

    async def identity() -> None:
        arguments = Security().get_connection_args("client")
        async with rpc(address, connection_args=arguments) as remote:
            await remote.identity()

    async def bounded() -> None:
        await asyncio.wait_for(identity(), _SECONDS_TO_CONNECT)

    with ThreadPoolExecutor(1) as thread:  # the caller may have a loop of its own
        thread.submit(asyncio.run, bounded()).result()


@contextmanager
def _quiet() -> Iterator[None]:
    """The client's log, which shows tracebacks of lost connections, says nothing: we do."""
    log = logging.getLogger("distributed.client")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def _local_cluster(workers: int) -> Iterator[LocalCluster]:
    """A cluster on this machine whose workers leave the keyboard's interrupt to us."""
    import distributed
    from dask import config

    with one_thread(), interrupts_held(), config.set(_UNWATCHED):
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",  # any free port: two runs may share a machine
            silence_logs=logging.CRITICAL,
        )
    with cluster:
        yield cluster


EXECUTOR = dask_executor()
