"""Progress reports of long calls, and the call that handles an interrupt."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import short
from moestat.compiler.notice import to_log

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["LOG", "Report", "answering", "keep", "passing", "reported", "so_far"]

T = TypeVar("T")

LOG = logging.getLogger("moestat")
"""The log of long calls, at level INFO."""

_SECONDS_BETWEEN_LINES = 5.0

_SECONDS_BETWEEN_PASSES = 1.0

_KEPT = 3
"""Number of runs of an interrupted search from which the fit goes on."""

_CALLS: ContextVar[tuple[Report, ...]] = ContextVar("calls", default=())
"""The long calls in progress, each made by the one before."""


def passing(parts: Iterable[T], count: int, rows: int | None, what: str) -> Iterator[T]:
    """Yield the parts of a pass over `rows` rows as they come, and log the progress.

    In a first pass the number of rows is not known yet, and `rows` is None.
    """
    began = last_message = time.monotonic()
    for done, part in enumerate(parts, 1):
        yield part
        now = time.monotonic()
        if now > last_message + _SECONDS_BETWEEN_PASSES:
            last_message, share = now, done / count
            wait = timedelta(seconds=round((now - began) * (1.0 - share) / share))
            amount = f"{count} blocks"
            if rows is not None:
                amount = f"{rows} rows, {rows * share / (now - began):.3g} a second"
            LOG.info("%s: %.0f%% of %s, %s left", what, 100.0 * share, amount, wait)


class Report:
    """Progress of a call, and whether it answers an interrupt with the best starts so far."""

    def __init__(self, answers: bool, display: _Display | None = None) -> None:
        self.answers, self._display = answers, display
        self.mark: tuple[int, int, float] = (0, 0, -np.inf)
        self.found: FloatArray | None = None

    def count(self, done: int) -> None:
        """Report the number of steps that are done."""
        if self._display is not None:
            self._display.done = done
            self._display.show()


def keep(runs: Sequence[tuple[FloatArray, float]], steps: int, rows: int) -> None:
    """Keep the best runs, parameters and heights, in case the search is interrupted.

    They replace runs of fewer steps, and runs of as many steps on fewer rows.
    """
    best = sorted(runs, key=lambda run: -run[1])[:_KEPT]
    mark = steps, rows, best[0][1]
    calls = _CALLS.get()
    if calls and mark > calls[0].mark:
        calls[0].mark, calls[0].found = mark, np.array([theta for theta, _ in best])
    LOG.info("%d runs of at most %d steps on %d rows", len(runs), steps, rows)


def answering() -> Report | None:
    """The report of the fit that answers an interrupt; None if the caller handles interrupts."""
    calls = _CALLS.get()
    return calls[0] if len(calls) == 1 and calls[0].answers else None


def so_far() -> FloatArray:
    """The best starts (m, P) so far; raises the interrupt if the fit does not answer it."""
    report = answering()
    if report is None or report.found is None:
        raise KeyboardInterrupt
    return report.found


class _Display(logging.Handler):
    """Steps and the last message of the log: a bar on a terminal, else a line from time to time."""

    def __init__(self, what: str, total: int | None, unit: str, bar: Any) -> None:
        super().__init__(logging.INFO)
        self.what, self.total, self.unit, self.bar = what, total, unit, bar
        self.task = None if bar is None else bar.add_task("", total=total, text=what)
        self.done, self.message = 0, ""
        self.began, self.last_line = time.monotonic(), 0.0

    def emit(self, record: logging.LogRecord) -> None:
        self.message = record.getMessage()
        self.show()

    def show(self, *, now: bool = False) -> None:
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done, text=self.text())
        elif now or time.monotonic() > self.last_line + _SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            print(self.text(), file=sys.stderr)

    def text(self) -> str:
        """Such as ``bootstrap: 128 of 500 resamples, 0:01:07 left``."""
        seconds, parts = time.monotonic() - self.began, [self.message] * bool(self.message)
        if self.total is not None:
            remaining = seconds * (self.total - self.done) / self.done if self.done > 0 else 0.0
            wait = f", {timedelta(seconds=round(remaining))} left" if remaining else ""
            parts.insert(0, f"{self.done} of {self.total} {self.unit}{wait}")
        return f"{self.what}: {'; '.join(parts) or 'begun'} ({timedelta(seconds=round(seconds))})"


@contextmanager
def reported(
    what: str,
    verbose: bool,
    total: int | None = None,
    unit: str = "steps",
    *,
    answers: bool = False,
) -> Iterator[Report]:
    """A long call that reports its progress on standard error if `verbose`."""
    if not isinstance(verbose, bool | int | np.bool_):
        raise ValueError(f"verbose must be True or False, got {short(verbose)}")
    with ExitStack() as stack:
        display = None
        if verbose:
            display = _Display(what, total, unit, _bar(stack))
            LOG.addHandler(display)
            stack.callback(LOG.removeHandler, display)
            stack.callback(LOG.setLevel, LOG.level)
            LOG.setLevel(logging.INFO)
        report = Report(answers, display)
        stack.callback(_CALLS.reset, _CALLS.set((*_CALLS.get(), report)))
        yield report
        if display is not None:
            display.message = "done" if total is None else ""
            display.show(now=True)


def _bar(stack: ExitStack) -> Progress | None:
    """A progress bar if standard error is a terminal, else None."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal or console.is_jupyter:
        return None
    stack.enter_context(to_log())
    columns = BarColumn(20), TextColumn("{task.fields[text]}")
    return stack.enter_context(Progress(*columns, console=console))
