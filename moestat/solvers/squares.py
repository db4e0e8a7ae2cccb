"""Sums of squared residuals with their Gauss-Newton model, in chunks of the data.

The Jacobian is never stored: a chunk of its rows, with the residuals as one more row, goes to BLAS
``dsyrk``, which adds its Gram matrix ``[J r]'[J r]`` to that of the chunks before.  Memory does not
depend on n, and with many parameters nearly all of the time is spent in BLAS.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import scipy

from moestat.base.types import FloatArray
from moestat.compiler.pointers import address_of
from moestat.kernels.records import NO_SUMS
from moestat.kernels.regression import NO_SQUARES, curvature_loop, squares, unfold_loop
from moestat.model.family import Family

CHUNK = 512
"""Rows of the Jacobian per call of dsyrk, where there are many parameters."""

CACHED = 65_536
"""Numbers that a chunk has at least, if a row has few of them: half a megabyte, so that they
stay in the second cache level."""

_ROUNDING = float(4.5 * np.finfo(np.float64).eps)  # of a response: such residuals are errors


def residual_squares(
    family: Family, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray
) -> tuple[float]:
    """The value ``sum w (f - y)^2 / 2`` without derivatives."""
    inputs = squares_inputs(family, X, y, weight)
    return (-squares(inputs, np.ascontiguousarray(theta), 0, tuple(NO_SUMS)),)


def gradient_squares(
    family: Family, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray
) -> tuple[float, FloatArray]:
    """Value and gradient, at a few percent of the cost of a matrix.

    Entries of pinned coefficients are 0, here and in the other functions.
    """
    score = np.empty(family.n_params)
    inputs = squares_inputs(family, X, y, weight)
    value = squares(inputs, np.ascontiguousarray(theta), 1, (score, *NO_SUMS[1:]))
    return -value, -score


def squares_inputs(
    family: Family, X: FloatArray, y: FloatArray, weight: FloatArray
) -> tuple[object, ...]:
    """What `moestat.kernels.regression.squares` reads besides theta."""
    code, places = family.loops.regression, family.channel_places
    return code, places, family.jacobian_rows, (X, y, weight)


@cache
def squares_address() -> int:
    """Address of the machine code of `moestat.kernels.regression.squares`."""
    return address_of(squares, *NO_SQUARES)


def _chunk(numbers: int, n: int) -> int:
    """Rows of a chunk with this many numbers in each."""
    return min(n, max(CHUNK, CACHED // numbers))


def gram_squares(
    family: Family, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Value, gradient ``J'r`` and the matrix ``J'J`` of Gauss and Newton."""
    n, n_params = y.size, family.n_params
    root = np.sqrt(weight)
    nothing = np.empty((family.n_experts, 0))
    at = np.flatnonzero(family.jacobian_rows >= 0)
    last = at.size
    width = _chunk(last + 1, n)
    rows = np.zeros((last + 1, width))
    syrk: Any = scipy.linalg.get_blas_funcs("syrk", (rows,))
    gram = np.zeros((last + 1, last + 1), order="F")
    f = np.empty(width)
    for start in range(0, n, width):
        m = min(width, n - start)
        if m < width:
            rows[:, m:] = 0.0
        family.residuals(theta, X, root, start, 1, f[:m], nothing, rows)
        np.subtract(f[:m], y[start : start + m], out=rows[last, :m])
        rows[last, :m] *= root[start : start + m]
        gram = syrk(1.0, rows.T, beta=1.0, c=gram, trans=1, overwrite_c=1)
    gradient, hessian = np.zeros(n_params), np.zeros((n_params, n_params))
    gradient[at] = gram[:last, last]
    unfold_loop(at, gram, hessian)
    return 0.5 * float(gram[last, last]), gradient, hessian


def newton_squares(
    family: Family, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Value, gradient, the exact Hessian ``sum w (grad f grad f' + r H_f)``, and ``J'J``.

    The part of H_f that joins the atoms of a normalised gate is ``-(v f' + f v')``, with the
    vectors v of `moestat.kernels.regression.curvature_loop` and the gradient f.
    """
    at = np.flatnonzero(family.jacobian_rows >= 0)
    last, joins = at.size, np.flatnonzero(family.gate_rows >= 0)
    width = _chunk(last + 1 + joins.size, y.size)
    rows, joined = np.zeros((last + 1, width)), np.zeros((joins.size, width))
    syrk: Any = scipy.linalg.get_blas_funcs("syrk", (rows,))
    gram = np.zeros((last + 1, last + 1), order="F")
    curvature, cross = np.zeros((last, last), order="F"), np.zeros((joins.size, last))
    before = squares_inputs(family, X, y, weight), family.gate_rows, np.ascontiguousarray(theta)
    for start in range(0, y.size, width):
        m = min(width, y.size - start)
        if m < width:
            rows[:, m:] = joined[:, m:] = 0.0
        curvature_loop(*before, start, m, rows, joined, curvature)
        gram = syrk(1.0, rows.T, beta=1.0, c=gram, trans=1, overwrite_c=1)
        cross += joined @ rows[:last].T
    joint = np.zeros((last, last))
    joint[family.jacobian_rows[joins]] = cross
    curvature += gram[:last, :last] - joint - joint.T
    gradient = np.zeros(family.n_params)
    hessian, information = (np.zeros((family.n_params, family.n_params)) for _ in range(2))
    gradient[at] = gram[:last, last]
    unfold_loop(at, curvature, hessian)
    unfold_loop(at, gram, information)
    return 0.5 * float(gram[last, last]), gradient, hessian, information


def variance_of(value: float, size: float) -> float:
    """Mean squared residual: the estimate of the noise variance, from half the sum of squares."""
    return 2.0 * value / size


def profile_log_likelihood(value: float, size: float) -> float:
    """Gaussian log-likelihood at the best noise variance, from half the sum of squares."""
    variance = max(variance_of(value, size), np.finfo(np.float64).tiny)
    return -0.5 * size * (math.log(2.0 * math.pi * variance) + 1.0)


def rounding_level(y: FloatArray, weight: FloatArray) -> float:
    """Half the sum of squares of an exact fit, which is that of rounding errors."""
    return 0.5 * _ROUNDING**2 * float(weight @ y**2)
