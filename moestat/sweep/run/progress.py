"""Progress of a run: a live bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from moestat.compiler.notice import to_log
from moestat.sweep.run.cost import CostModel
from moestat.sweep.spec.plan import Cell, counts_of
from moestat.sweep.store.record import FAILED, Record

_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_BETWEEN_FRAMES = 0.2


class _Count:
    """Number of cells done, and the time that the open cells should take by their costs so far."""

    def __init__(self, cells: Sequence[Cell], costs: CostModel) -> None:
        self._began = time.monotonic()
        self._open = counts_of(cells)
        self._costs = costs
        self._busy = 0.0
        self._total, self._cells, self._failed = len(cells), 0, 0

    def add(self, record: Record) -> None:
        self._costs.add(record.curve, record.n, record.seconds)
        self._open[record.curve, record.n] -= 1
        self._busy += record.seconds
        self._cells += 1
        self._failed += record.status == FAILED

    def share(self) -> float:
        """Share of the work that is done."""
        work = self._costs.total(self._open)
        return 0.0 if work is None or not self._busy else self._busy / (self._busy + work)

    def text(self) -> str:
        """Cells done, their rate, the time left and the failures, e.g. ``3/30 cells, 1.3/s``."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        parts = [f"{self._cells}/{self._total} cells"]
        if self._cells:
            parts.append(f"{self._cells / seconds:.2g}/s")
        work = self._costs.total(self._open) if self._costs.knows(self._open) else None
        time_needed = time_left(work, self._busy, seconds)
        if time_needed is not None:
            parts.append(f"{duration(time_needed)} left")
        elif self._cells < self._total:
            parts.append("estimating")
        if self._failed:
            parts.append(f"{self._failed} failed")
        return ", ".join(parts)


def time_left(work: float | None, busy: float, seconds: float) -> float | None:
    """Seconds that a run still needs, if its workers go on as they did; None if unknown.

    `work` seconds of computing are left, `busy` were done in `seconds` of time.
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


@contextmanager
def reporter(
    console: Console, cells: Sequence[Cell], costs: CostModel
) -> Iterator[Callable[[Record], None]]:
    """A function that takes each record of a run over `cells` and adds its time to `costs`."""
    count = _Count(cells, costs)

    def counter(pause: float, show: Callable[[], None]) -> Callable[[Record], None]:
        """A function that counts a record, and shows the count anew only after a pause."""
        last = time.monotonic()

        def tell(record: Record) -> None:
            nonlocal last
            count.add(record)
            if time.monotonic() - last >= pause:
                last = time.monotonic()
                show()

        return tell

    if not console.is_terminal or not cells:
        yield counter(_SECONDS_BETWEEN_LINES, lambda: console.print(count.text()))
        return
    columns = (BarColumn(30), TextColumn("{task.fields[text]}"))
    with to_log(), Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=1.0, text=count.text())

        def show() -> None:
            progress.update(task, completed=count.share(), text=count.text())

        yield counter(_SECONDS_BETWEEN_FRAMES, show)
        show()
