"""What compiled code knows about numba's arrays and about single functions."""

from __future__ import annotations

from typing import Any

__all__ = ["COMPACT", "DATA", "ITEMSIZE", "SHAPE", "STRIDES", "UNOWNED"]

ITEMSIZE, DATA, SHAPE, STRIDES = 3, 4, 5, 6
"""Fields of an array in numba's layout."""

UNOWNED: set[Any] = set()
"""Functions whose results own no memory."""

COMPACT: set[Any] = set()
"""Functions to be made small: compiled in half the time, without vectors."""
