"""What long calls say while they run, and which of them an interrupt is for."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import short
from moestat.compiler.notice import to_log

__all__ = ["LOG", "Report", "answering", "keep", "passing", "reported", "so_far"]

T = TypeVar("T")

LOG = logging.getLogger("moestat")
"""Long calls say here what they do, at level INFO."""

_SECONDS_BETWEEN_LINES = 5.0

_SECONDS_BETWEEN_PASSES = 1.0

_KEPT = 3
"""Runs of an interrupted search that are climbed to their ends."""

_CALLS: ContextVar[tuple[Report, ...]] = ContextVar("calls", default=())
"""Long calls, each made by the one before."""


def passing(parts: Iterable[T], count: int, rows: int | None, what: str) -> Iterator[T]:
    """Parts of a pass over so many rows as they come; the log says now and then how far it is.

    In a first pass the number of rows is not known yet, and `rows` is None.
    """
    began = last_message = time.monotonic()
    for done, part in enumerate(parts, 1):
        yield part
        now = time.monotonic()
        if now > last_message + _SECONDS_BETWEEN_PASSES:
            last_message, share = now, done / count
            left = timedelta(seconds=round((now - began) * (1.0 - share) / share))
            of = f"{count} blocks"
            if rows is not None:
                of = f"{rows} rows, {rows * share / (now - began):.3g} a second"
            LOG.info("%s: %.0f%% of %s, %s left", what, 100.0 * share, of, left)


class Report:
    """The steps of a call that are done; does it answer an interrupt with what has been found?"""

    def __init__(self, answers: bool, display: _Display | None = None) -> None:
        self.answers, self._display = answers, display
        self.mark: tuple[int, int, float] = (0, 0, -np.inf)
        self.found: FloatArray | None = None

    def count(self, done: int) -> None:
        """Say that so many steps are done."""
        if self._display is not None:
            self._display.done = done
            self._display.show()


def keep(runs: Sequence[tuple[FloatArray, float]], steps: int, rows: int) -> None:
    """Keep the best runs, parameters and heights, for the case that their search is interrupted.

    Runs of more steps are better than others, and of as many those on more rows.
    """
    best = sorted(runs, key=lambda run: -run[1])[:_KEPT]
    mark = steps, rows, best[0][1]
    calls = _CALLS.get()
    if calls and mark > calls[0].mark:
        calls[0].mark, calls[0].found = mark, np.array([theta for theta, _ in best])
    LOG.info("%d runs of at most %d steps on %d rows", len(runs), steps, rows)


def answering() -> Report | None:
    """The fit that answers an interrupt; None where whoever has made it is to hear of it."""
    calls = _CALLS.get()
    return calls[0] if len(calls) == 1 and calls[0].answers else None


def so_far() -> FloatArray:
    """The starts (m, P) that were kept, for a fit that answers an interrupt; else raise it."""
    report = answering()
    if report is None or report.found is None:
        raise KeyboardInterrupt
    return report.found


class _Display(logging.Handler):
    """Steps and the last message of the log: a bar on a terminal, now and then a line elsewhere."""

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
            left = seconds * (self.total - self.done) / self.done if self.done > 0 else 0.0
            wait = f", {timedelta(seconds=round(left))} left" if left else ""
            parts.insert(0, f"{self.done} of {self.total} {self.unit}{wait}")
        return f"{self.what}: {'; '.join(parts) or 'begun'} ({timedelta(seconds=round(seconds))})"


@contextmanager
def reported(
    what: str,
    verbose: Any,
    total: int | None = None,
    unit: str = "steps",
    *,
    answers: bool = False,
) -> Iterator[Report]:
    """A long call, that says on standard error what it does if `verbose`."""
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


def _bar(stack: ExitStack) -> Any:
    """A live bar, where standard error is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal or console.is_jupyter:
        return None
    stack.enter_context(to_log())
    columns = BarColumn(20), TextColumn("{task.fields[text]}")
    return stack.enter_context(Progress(*columns, console=console))
