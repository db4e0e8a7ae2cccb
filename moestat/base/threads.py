"""Processors that may be used; one thread of BLAS while small or reproducible algebra runs."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

__all__ = ["ONE_THREAD", "available_cpus"]

_BRINGS_BLAS = ("scipy.special", "scipy.linalg")
"""Modules that load a BLAS of their own, beside that of NumPy."""


def available_cpus() -> int:
    """Number of processors that this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _libraries(loaded: tuple[bool, ...]) -> Any:
    """Libraries that have their own threads; cached, because finding them takes milliseconds."""
    return import_module("threadpoolctl").ThreadpoolController()


class _OneThread:
    """Limits BLAS to one thread while any thread is inside, then restores the limit."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                loaded = tuple(name in sys.modules for name in _BRINGS_BLAS)
                self._limit = _libraries(loaded).limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._limit is not None:
                self._limit.restore_original_limits()


ONE_THREAD = _OneThread()
