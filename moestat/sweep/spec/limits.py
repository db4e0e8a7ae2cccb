"""Limits of specs: beyond them a number is a slip, and memory would end before the sweep does."""

from __future__ import annotations

import os
from collections.abc import Mapping

from moestat.sweep.errors import SweepError

__all__ = ["LARGEST", "MOST_CELLS", "available_memory", "check_cells", "check_memory", "memory_of"]

LARGEST: Mapping[str, int] = {
    "seed": 2**128 - 1,
    "replicates": 1_000_000,
    "max_replicates": 1_000_000,
    "num": 10_000,
    "n_experts": 1_000,
    "n_classes": 1_000,
    "n_features": 1_000,
}
"""Largest value of each whole number of a spec."""

MOST_CELLS = 10_000_000
_COPIES = 6
"""A sample while it is fitted: itself and what is made of it on the way, measured at the peak."""


def check_cells(cells: int) -> None:
    """Refuse a sweep of more cells than a store should hold."""
    if cells > MOST_CELLS:
        raise SweepError(
            f"curves x sample sizes x replicates are {cells:,} cells; at most {MOST_CELLS:,}"
        )


def memory_of(n: int, n_features: int) -> int:
    """Bytes that a sample of n rows takes while it is fitted: inputs, response and weight."""
    return 8 * n * (n_features + 2) * _COPIES


def check_memory(n: int, n_features: int, where: str) -> None:
    """Refuse samples that the memory of this machine cannot hold, with the estimate.

    Parameters
    ----------
    n : int
        Largest sample size of rows, not of counts.
    n_features : int
        Inputs of each row; response and weight come to them.
    where : str
        Curve that needs it.
    """
    needed, there = memory_of(n, n_features), available_memory()
    if needed > there:
        raise SweepError(
            f"{where}: n: {n} rows need about {needed / 2**30:.3g} GiB of memory, this machine has"
            f" {there / 2**30:.3g}; a lattice design takes counts in place of rows"
        )


def available_memory() -> int:
    """Bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 2**34
