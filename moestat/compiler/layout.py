"""What compiled code knows about numba's arrays, and about single functions."""

from __future__ import annotations

from typing import Any

ITEMSIZE, DATA, SHAPE, STRIDES = range(3, 7)
"""Fields of an array in numba's layout."""

COMPACT: set[Any] = set()
"""Code of functions to be made small: compiled in half the time, without vectors."""
