"""Progress of a run: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from moestat.sweep.plan import Cell
from moestat.sweep.record import FAILED, Record

__all__ = ["Reporter", "reporter"]

_SECONDS_BETWEEN_LINES = 30.0


class Reporter(Protocol):
    """Something that is told of each record."""

    def tell(self, record: Record) -> None:
        """Count one record."""
        ...


class _Count:
    """Cells and work done so far; the work of a cell is taken to grow like n."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.began = time.monotonic()
        self.total, self.work_total = len(cells), sum(cell.n for cell in cells)
        self.cells = self.work = self.failed = 0

    def add(self, record: Record) -> None:
        self.cells += 1
        self.work += record.n
        self.failed += record.status == FAILED

    def text(self) -> str:
        """Cells done, their rate, the time left and the failures, e.g. ``3/30 cells, 1.3/s``."""
        seconds = max(time.monotonic() - self.began, 1e-9)
        parts = [f"{self.cells}/{self.total} cells"]
        if self.cells:
            left = timedelta(seconds=round(seconds * (self.work_total / self.work - 1)))
            parts += [f"{self.cells / seconds:.2g}/s", f"{left} left"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        return ", ".join(parts)


class _Bar:
    def __init__(self, progress: Progress, count: _Count) -> None:
        self._progress, self._count = progress, count
        self._task = progress.add_task("", total=count.work_total, text=count.text())

    def tell(self, record: Record) -> None:
        self._count.add(record)
        self._progress.update(self._task, advance=record.n, text=self._count.text())


class _Lines:
    def __init__(self, console: Console, count: _Count) -> None:
        self._console, self._count, self._last = console, count, time.monotonic()

    def tell(self, record: Record) -> None:
        self._count.add(record)
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            self._console.print(self._count.text())


@contextmanager
def reporter(console: Console, cells: Sequence[Cell]) -> Iterator[Reporter]:
    """A reporter for a run over `cells`.

    Parameters
    ----------
    console : rich.console.Console
        Where to report.
    cells : sequence of Cell
        The cells of the run.

    Yields
    ------
    Reporter
        To be told of each record.
    """
    count = _Count(cells)
    if not console.is_terminal or not cells:
        yield _Lines(console, count)
        return
    columns = (BarColumn(30), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=console) as progress:
        yield _Bar(progress, count)
