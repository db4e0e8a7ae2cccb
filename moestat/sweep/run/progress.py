"""Progress of a run: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from moestat.compiler.notice import to_log
from moestat.sweep.run.cost import CostModel
from moestat.sweep.spec.plan import Cell, counts_of
from moestat.sweep.store.record import FAILED, Record

_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_BETWEEN_FRAMES = 0.2


class Reporter(Protocol):
    """Something that is told of each record."""

    def tell(self, record: Record) -> None:
        """Count one record."""
        ...


class _Count:
    """Cells done so far, and the time that the others should take by what these have cost."""

    def __init__(self, cells: Sequence[Cell], costs: CostModel) -> None:
        self._began = time.monotonic()
        self._left = counts_of(cells)
        self._costs = costs
        self._busy = 0.0
        self._total, self._cells, self._failed = len(cells), 0, 0

    def add(self, record: Record) -> None:
        self._costs.add(record.curve, record.n, record.seconds)
        self._left[record.curve, record.n] -= 1
        self._busy += record.seconds
        self._cells += 1
        self._failed += record.status == FAILED

    def share(self) -> float:
        """Share of the work that is done."""
        left = self._costs.total(self._left)
        return 0.0 if left is None or not self._busy else self._busy / (self._busy + left)

    def text(self) -> str:
        """Cells done, their rate, the time left and the failures, e.g. ``3/30 cells, 1.3/s``."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        parts = [f"{self._cells}/{self._total} cells"]
        if self._cells:
            parts.append(f"{self._cells / seconds:.2g}/s")
        work = self._costs.total(self._left) if self._costs.knows(self._left) else None
        left = time_left(work, self._busy, seconds)
        if left is not None:
            parts.append(f"{duration(left)} left")
        elif self._cells < self._total:
            parts.append("estimating")
        if self._failed:
            parts.append(f"{self._failed} failed")
        return ", ".join(parts)


def time_left(work: float | None, busy: float, seconds: float) -> float | None:
    """Seconds that a run still needs, if its workers go on as they did; None if unknown.

    `work` seconds of computing are left, `busy` were done in `seconds` of time.

    Examples
    --------
    >>> time_left(60.0, busy=20.0, seconds=10.0)
    30.0
    """
    return None if work is None or not busy else work * seconds / busy


def duration(seconds: float) -> str:
    """Seconds as people read them.

    Examples
    --------
    >>> duration(3723.4)
    '1:02:03'
    """
    return str(timedelta(seconds=round(seconds)))


class _Told:
    """A count that is shown anew only after a pause."""

    def __init__(self, count: _Count, pause: float) -> None:
        self.count, self._pause, self._last = count, pause, time.monotonic()

    def tell(self, record: Record) -> None:
        self.count.add(record)
        now = time.monotonic()
        if now - self._last >= self._pause:
            self._last = now
            self.show()

    def show(self) -> None:
        raise NotImplementedError


class _Bar(_Told):
    def __init__(self, progress: Progress, count: _Count) -> None:
        super().__init__(count, _SECONDS_BETWEEN_FRAMES)
        self._progress = progress
        self._task = progress.add_task("", total=1.0, text=count.text())

    def show(self) -> None:
        share, text = self.count.share(), self.count.text()
        self._progress.update(self._task, completed=share, text=text)


class _Lines(_Told):
    def __init__(self, console: Console, count: _Count) -> None:
        super().__init__(count, _SECONDS_BETWEEN_LINES)
        self._console = console

    def show(self) -> None:
        self._console.print(self.count.text())


@contextmanager
def reporter(console: Console, cells: Sequence[Cell], costs: CostModel) -> Iterator[Reporter]:
    """A reporter to be told of each record of a run over `cells`; `costs` learns from them."""
    count = _Count(cells, costs)
    if not console.is_terminal or not cells:
        yield _Lines(console, count)
        return
    columns = (BarColumn(30), TextColumn("{task.fields[text]}"))
    with to_log(), Progress(*columns, console=console) as progress:
        bar = _Bar(progress, count)
        yield bar
        bar.show()
