"""Values of a truth at fixed inputs, which every cell of a sweep compares an estimate with."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.family import Family

__all__ = ["at_truth"]

Values = Callable[[Family, FloatArray, FloatArray], FloatArray]


def at_truth(values: Values, family: Family, theta: FloatArray, X: FloatArray) -> FloatArray:
    """``values(family, theta, X)``, read-only; that of the last few truths is kept.

    In a tiny cell the truth's values would take as long as those of the estimate.
    """
    return _kept(values, family, theta.tobytes(), X.tobytes(), X.shape)


@lru_cache(maxsize=8)
def _kept(
    values: Values, family: Family, theta: bytes, X: bytes, shape: tuple[int, ...]
) -> FloatArray:
    result = values(family, np.frombuffer(theta), np.frombuffer(X).reshape(shape))
    result.flags.writeable = False
    return result
