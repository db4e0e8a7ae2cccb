"""Says that a loop is compiled: the first fit and the first prediction of a kind wait for it."""

from __future__ import annotations

import logging
import multiprocessing
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

_log = logging.getLogger(__name__)
_FRAMES_PER_SECOND = 4.0


class _Notice(event.Listener):
    """A status line on a terminal, a log record elsewhere, while a loop of ours is compiled."""

    def __init__(self) -> None:
        self.on_terminal = True
        self._status: Any = None
        self._began = 0.0

    def on_start(self, event: Any) -> None:
        name = _loop_of(event)
        if name is None:
            return
        self._began = time.perf_counter()
        text = f"Compiling {name}, once for this kind of model; it is kept on disk"
        # The terminal of a worker process belongs to its coordinator.
        visible = self.on_terminal and multiprocessing.parent_process() is None
        if visible and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.status import Status

            console = Console(file=sys.stderr)
            self._status = Status(text, console=console, refresh_per_second=_FRAMES_PER_SECOND)
            self._status.start()
        else:
            _log.info("%s", text)

    def on_end(self, event: Any) -> None:
        name = _loop_of(event)
        if name is None:
            return
        if self._status is None:
            _log.info("compiled %s in %.1f s", name, time.perf_counter() - self._began)
        else:
            self._status.stop()
            self._status = None


def _loop_of(event: Any) -> str | None:
    """What is compiled, None for a function that is not one of our loops."""
    function = event.data["dispatcher"].py_func
    if not function.__module__.startswith("moestat."):
        return None
    return function.__qualname__.partition(".")[0].strip("_").replace("_", " ")


_NOTICE = _Notice()


def announce() -> None:
    """Announce compilations from now on."""
    event.register("numba:compile", _NOTICE)


@contextmanager
def to_log() -> Iterator[None]:
    """Leave the terminal to whoever calls: inside, compilations are announced in the log only."""
    before, _NOTICE.on_terminal = _NOTICE.on_terminal, False
    try:
        yield
    finally:
        _NOTICE.on_terminal = before
