"""Types that every layer shares: arrays, seeds, labels, tables, distributions."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import (
    Any,
    Protocol,
    SupportsIndex,
    TypeAlias,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Seed: TypeAlias = (
    SupportsIndex
    | Sequence[int]
    | np.random.Generator
    | np.random.RandomState
    | np.random.SeedSequence
    | np.random.BitGenerator
    | None
)
"""Source of random numbers: a generator, or a seed of one; None for a random seed."""
Labels: TypeAlias = NDArray[Any]
"""Names (n,) of rows, classes or groups: numbers, words or dates."""
Encoded: TypeAlias = NDArray[Any]
"""Responses (n,) as a likelihood reads them: of float64, int64, complex128 or a record of several,
as `Likelihood.dtype` says."""


@runtime_checkable
class TableLike(Protocol):
    """Columns by name: a data frame of pandas or polars, a table of pyarrow, or a mapping."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the column of this name."""
        ...


class Law(Protocol):
    """The distribution of a response, as frozen in scipy.stats, or several of one shape."""

    def cdf(self, y: float | FloatArray, /) -> FloatArray:
        """Probabilities up to y."""
        ...

    def sf(self, y: float | FloatArray, /) -> FloatArray:
        """Probabilities above y."""
        ...

    def ppf(self, q: float | FloatArray, /) -> FloatArray:
        """Quantiles."""
        ...

    def mean(self) -> FloatArray:
        """Means."""
        ...

    def std(self) -> FloatArray:
        """Standard deviations."""
        ...

    def support(self) -> tuple[float | FloatArray, float | FloatArray]:
        """The least and the largest response."""
        ...


_MOVED = ("Channel", "Units", "Gate", "Symmetry", "Expert", "Likelihood", "Part")


def __getattr__(name: str) -> Any:
    """Records of the axes, which were here in 0.2.0, also for pickles."""
    if name in _MOVED:
        return getattr(import_module("moestat.model.members"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
