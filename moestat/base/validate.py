"""Checks that public entry points share: one clear message each, naming the argument."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from moestat.base.types import FloatArray

__all__ = ["as_design", "as_floats", "as_generator", "as_weights", "positive_int", "real_in"]


def positive_int(name: str, value: Any, minimum: int = 1) -> int:
    """`value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return int(value)


def real_in(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_low: bool = False
) -> float:
    """`value` as a finite float in [low, high], or (low, high] when `open_low`."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    outside = number < low or number > high or (open_low and number == low)
    if not np.isfinite(number) or outside:
        bracket = "(" if open_low else "["
        raise ValueError(f"{name} must be a number in {bracket}{low:g}, {high:g}], got {value!r}")
    return number


def as_floats(name: str, value: Any, shape: Iterable[int | None]) -> FloatArray:
    """`value` as a finite float64 array; None in `shape` allows any length on that axis."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {value!r}") from None
    wanted = tuple(shape)
    matches = array.ndim == len(wanted) and all(
        length is None or length == given for length, given in zip(wanted, array.shape, strict=True)
    )
    if not matches:
        shown = ", ".join("any" if length is None else str(length) for length in wanted)
        raise ValueError(f"{name} must have shape ({shown}), got {array.shape}")
    if not np.all(np.isfinite(array)):
        count = int(np.sum(~np.isfinite(array)))
        raise ValueError(f"{name} holds {count} NaN or infinite values; all must be finite")
    return array


def as_design(X: Any, n_features: int | None = None) -> FloatArray:
    """Inputs (n, d), or (n,) when d = 1, as the contiguous (d, n) array the loops read."""
    try:
        array = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("X must hold numbers") from None
    if array.ndim == 1 and n_features in (None, 1):
        array = array[:, None]
    return np.ascontiguousarray(as_floats("X", array, (None, n_features)).T)


def as_weights(sample_weight: Any, n: int) -> FloatArray:
    """Sample weights (n,), non-negative with a positive sum; ones for None."""
    if sample_weight is None:
        return np.ones(n)
    weight = as_floats("sample_weight", sample_weight, (n,))
    if np.any(weight < 0):
        raise ValueError(f"sample_weight must be >= 0, got a minimum of {weight.min():g}")
    if not weight.sum() > 0:
        raise ValueError("sample_weight must have a positive sum")
    return np.ascontiguousarray(weight)


def as_generator(rng: Any) -> np.random.Generator:
    """A numpy Generator from a Generator, a seed or None."""
    if isinstance(rng, np.random.Generator):
        return rng
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValueError(
            f"rng must be a numpy.random.Generator, a seed or None, got {rng!r}"
        ) from None
