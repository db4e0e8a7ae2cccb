"""A limit of processor time on a computation that cannot be asked to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["OutOfTimeError", "at_most", "stopped_after"]


class OutOfTimeError(Exception):
    """The seconds are over."""


@contextmanager
def stopped_after(seconds: float, stop: Callable[..., object]) -> Iterator[None]:
    """Call `stop`, which raises, after so many seconds of this process's processor time."""
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` after so many seconds of the processor's time.

    Parameters
    ----------
    seconds : float
        Processor time, of this process.

    Raises
    ------
    OutOfTimeError
        If the block is not done by then.

    Examples
    --------
    >>> with at_most(60.0):
    ...     sum(range(10))
    45
    """

    def stop(*_: object) -> None:
        raise OutOfTimeError

    with stopped_after(seconds, stop):
        yield
