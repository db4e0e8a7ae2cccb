"""Limits of specs: beyond them a number is a slip, and memory would end before the sweep does."""

from __future__ import annotations

from moestat.base.memory import available_memory
from moestat.sweep.errors import SweepError

MOST_CELLS = 10_000_000
_COPIES = 6
"""A sample while it is fitted: itself and what is made of it on the way, measured at the peak."""


def check_cells(cells: int) -> None:
    """Refuse a sweep of more cells than a store should hold."""
    if cells > MOST_CELLS:
        raise SweepError(
            f"curves x places x replicates are {cells:,} cells; at most {MOST_CELLS:,}"
        )


def memory_of(n: int, n_features: int) -> int:
    """Bytes that a sample of n rows takes while it is fitted: inputs, response and weight."""
    return 8 * n * (n_features + 2) * _COPIES


def check_memory(needed: float | None, label: str, hint: str = "") -> None:
    """Refuse cells that do not fit the memory of this machine; `needed` is None without rows."""
    available = available_memory()
    if needed is not None and needed > available:
        raise SweepError(
            f"{label} need about {needed / 2**30:.3g} GiB of memory, this machine has"
            f" {available / 2**30:.3g}{hint}"
        )
