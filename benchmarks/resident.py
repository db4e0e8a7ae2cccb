"""By how much the memory of a process grows while a block of code runs, on Linux."""

from __future__ import annotations

import threading
from pathlib import Path

__all__ = ["Growth"]


class Growth:
    """A context manager that looks 50 times a second; `megabytes` is the largest growth seen.

    Pages of files do not count.
    """

    def __enter__(self) -> Growth:
        self._before = self._highest = _resident()
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    @property
    def megabytes(self) -> float:
        """The largest growth so far."""
        return self._highest - self._before

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self._highest = max(self._highest, _resident())


def _resident() -> float:
    """Megabytes of memory of this process that are no pages of files."""
    with Path("/proc/self/status").open(encoding="utf-8") as status:
        return next(int(line.split()[1]) / 1e3 for line in status if line.startswith("RssAnon"))
