"""Counts as a response: how they are checked and stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.base.validate import as_floats

__all__ = ["decode", "encode"]


def encode(y: Any, n_classes: int) -> FloatArray:
    """Counts (n,), checked."""
    counts = as_floats("y", y, (None,))
    wrong = counts[(counts < 0.0) | (counts != np.floor(counts))]
    if wrong.size:
        raise ValueError(f"y must hold counts, whole numbers from 0; got {wrong[0]:g}")
    return counts


def decode(y: FloatArray) -> IntArray:
    """Counts as integers."""
    return y.astype(np.int64)
