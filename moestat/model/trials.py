"""Successes in a known number of trials: the same number in all rows, or one of each row.

Rows with numbers of their own are stored as the complex number of successes and trials.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import Encoded, FloatArray, IntArray
from moestat.base.validate import as_floats, as_plain_array
from moestat.model.responses import counts

__all__ = ["decode_rows", "encode_rows", "successes_of"]


def successes_of(trials: int) -> Callable[[ArrayLike, int], FloatArray]:
    """An ``encode`` of successes (n,) in so many trials."""

    def encode(y: ArrayLike, n_classes: int) -> FloatArray:
        """Numbers of successes (n,), checked."""
        successes = counts(y, n_classes)
        if successes.size and successes.max() > trials:
            raise ValueError(
                f"y must be at most the number of trials, {trials}; got {successes.max():g}"
            )
        return successes

    return encode


def encode_rows(y: ArrayLike, n_classes: int) -> Encoded:
    """Successes and failures (n, 2), or outcomes (n,) of one trial each, as complex numbers."""
    values = as_plain_array("y", y)
    if values.ndim == 1:
        values = np.column_stack([values, 1 - counts(values, n_classes)])
    columns = as_floats("y", values, (None, 2)).T
    successes, failures = (counts(column, n_classes) for column in columns)
    empty = np.flatnonzero(successes + failures == 0.0)
    if empty.size:
        raise ValueError(f"y: row {empty[0]} (from 0) has no trials")
    return successes + 1j * (successes + failures)


def decode_rows(y: Encoded) -> IntArray:
    """Successes and failures (n, 2)."""
    return np.column_stack([np.real(y), np.imag(y) - np.real(y)]).astype(np.int64)
