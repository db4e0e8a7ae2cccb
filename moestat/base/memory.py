"""Available memory, and refusals of work that would not fit into it."""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np

__all__ = ["FLOAT_BYTES", "MEBIBYTE", "available_memory", "check_room"]

MEBIBYTE = 2**20
"""Bytes of a MiB."""

FLOAT_BYTES = np.dtype(np.float64).itemsize
"""Bytes of a number."""


def available_memory() -> int:
    """Bytes of memory that this process may use: the machine's, or the remainder of a limit."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        available = page * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 2**34
    with suppress(ImportError, OSError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            with open("/proc/self/statm") as sizes:  # noqa: PTH123
                available = min(available, limit - page * int(sizes.read().split()[0]))
    return available


def check_room(needed: float, what: str, hint: str = "") -> None:
    """Refuse so many bytes if this machine's memory cannot hold them, with the estimate.

    `what` names the arguments that need them, `hint` says what to change.

    Examples
    --------
    >>> check_room(8e18, "n = 1e18 samples")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: n = 1e18 samples would take about 7.45e+09 GiB of memory, and there are ...
    """
    available = available_memory()
    if needed > available:
        raise ValueError(
            f"{what} would take about {needed / 2**30:.3g} GiB of memory, and there are"
            f" {available / 2**30:.3g}{hint}"
        )
