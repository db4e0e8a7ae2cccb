"""What a loop over the data takes and writes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray, IntArray
from moestat.kernels.atom import Layout


class Coefficients(NamedTuple):
    """Coefficients of each channel in theta: position of the first (k, C), and number (C,)."""

    position: IntArray
    width: IntArray
    layout: Layout


Places = tuple[IntArray, IntArray, IntArray, tuple[int, int, int, int]]
"""`Coefficients` of a regression function with the first feature (C,) that each channel reads after
its intercept: position, number, first feature, layout; plain tuples, see `Pass`."""


class Data(NamedTuple):
    """X (d, n), y (n,), weight (n,), and given responsibilities (k, n) or none (0, 0)."""

    X: FloatArray
    y: Any
    weight: FloatArray
    tau: FloatArray


class Sums(NamedTuple):
    """Score (P,), Hessian (P, P), and sum of the outer products of the scores (P, P)."""

    score: FloatArray
    hessian: FloatArray
    information: FloatArray


class BySample(NamedTuple):
    """Gate probabilities (k, n), responsibilities (k, n) and log-density (n,)."""

    prior: FloatArray
    posterior: FloatArray
    log_density: FloatArray


Pass = tuple[
    tuple[int, int],
    tuple[IntArray, IntArray, Layout],
    tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    tuple[FloatArray, FloatArray, FloatArray],
    tuple[NDArray[np.int32], ...],
]
"""What passes over the same data have in common, in plain tuples: numba asks for the type of every
argument of a call, and takes three times as long for a named tuple.

They are the address of the loop of one atom with the number of scratch rows that it needs, the
`Coefficients`, the `Data` with the responses as `numbers_of` has them, a `BySample`, and the tables
of `moestat.kernels.terms.build_terms`.
"""


def numbers_of(y: Any) -> FloatArray:
    """The numbers that responses (n,) are made of, one response after the other.

    A `Pass` has them without their kind, as float64 whatever their bits mean.
    """
    return y if y.dtype == np.float64 else y.view(np.float64)


NO_SUMS = Sums(np.empty(0), np.empty((0, 0)), np.empty((0, 0)))
"""Empty sums, for passes that compute only the value."""
