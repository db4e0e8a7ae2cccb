"""Signals: SIGTERM ends a run as the keyboard does; a third signal ends it at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_PATIENCE = 3


class Terminated(KeyboardInterrupt):
    """SIGTERM: the system asks the process to end."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGTERM into an exception, as SIGINT is; the third of either ends the process at once.

    The second one is only counted: it must not break what the first one has begun to put in order.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received == _PATIENCE:
            os._exit(128 + number)
        if received == 1:
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
