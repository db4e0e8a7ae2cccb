"""Labels of classes as a response: how they are checked and stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.types import IntArray
from moestat.base.validate import as_plain_array

__all__ = ["decode", "encode"]


def encode(y: Any, n_classes: int) -> IntArray:
    """Class labels 1..K, as the paper writes them, to indices 0..K-1."""
    labels = as_plain_array("y", y)
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    if not (np.issubdtype(labels.dtype, np.number) or labels.dtype == bool):
        raise ValueError(f"y must hold integer class labels, got dtype {labels.dtype}")
    as_float = labels.astype(np.float64)
    if not np.all(np.isfinite(as_float)):
        raise ValueError("y holds NaN or infinite values; class labels are the integers 1..K")
    bad = (as_float != np.floor(as_float)) | (as_float < 1) | (as_float > n_classes)
    if np.any(bad):
        given = ", ".join(f"{value:g}" for value in np.unique(as_float[bad])[:5])
        hint = " (labels start at 1, not at 0)" if np.any(as_float == 0) else ""
        raise ValueError(f"y must hold class labels in 1..{n_classes}; got {given}{hint}")
    return as_float.astype(np.int64) - 1


def decode(index: IntArray) -> IntArray:
    """Class indices 0..K-1 to labels 1..K."""
    return np.asarray(index + 1, dtype=np.int64)
