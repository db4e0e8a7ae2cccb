"""Sums of squared residuals with their Gauss-Newton model, in chunks of the data.

The Jacobian is never stored: a chunk of its rows, with the residuals as one more row, goes to BLAS
``dsyrk``, which adds its Gram matrix ``[J r]'[J r]`` to that of the chunks before.  Memory does not
depend on n, and nearly all of the time is spent in BLAS.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

from moestat._types import FloatArray
from moestat.families import Family

__all__ = ["profile_log_likelihood", "rounding_level", "squares", "variance_of"]

CHUNK = 512
"""Rows of the Jacobian per call of dsyrk: at 500 parameters they fill the second-level cache."""

_VALUE_CHUNK = 1 << 16
_ROUNDING = 1e-15  # residuals below this share of the response are rounding errors


def squares(
    family: Family,
    X: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    theta: FloatArray,
    order: int,
) -> tuple[float, FloatArray, FloatArray]:
    """``sum w (f - y)^2 / 2`` with ``J'r`` (P,) and ``J'J`` (P, P), which are empty for order 0.

    Entries of pinned coefficients are 0.
    """
    n, n_params = y.size, family.n_params
    root = np.sqrt(weight)
    nothing = np.empty((family.n_experts, 0))
    if order == 0:
        value, f = 0.0, np.empty(min(n, _VALUE_CHUNK))
        for start in range(0, n, f.size):
            part = slice(start, min(start + f.size, n))
            fitted = f[: part.stop - start]
            family.residuals(theta, X, root, start, 0, fitted, nothing, np.empty((0, 0)))
            residual = root[part] * (fitted - y[part])
            value += float(residual @ residual)
        return 0.5 * value, np.empty(0), np.empty((0, 0))
    at = np.flatnonzero(family.jacobian_rows >= 0)
    last = at.size
    rows = np.zeros((last + 1, CHUNK))
    syrk: Any = scipy.linalg.get_blas_funcs("syrk", (rows,))
    gram = np.zeros((last + 1, last + 1), order="F")
    f = np.empty(CHUNK)
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        if m < CHUNK:
            rows[:, m:] = 0.0
        family.residuals(theta, X, root, start, 1, f[:m], nothing, rows)
        np.subtract(f[:m], y[start : start + m], out=rows[last, :m])
        rows[last, :m] *= root[start : start + m]
        gram = syrk(1.0, rows.T, beta=1.0, c=gram, trans=1, overwrite_c=1)
    gradient, hessian = np.zeros(n_params), np.zeros((n_params, n_params))
    gradient[at] = gram[:last, last]
    upper = np.triu(gram[:last, :last])
    hessian[np.ix_(at, at)] = upper + np.triu(upper, 1).T
    return 0.5 * float(gram[last, last]), gradient, hessian


def variance_of(value: float, size: float) -> float:
    """Mean squared residual: the estimate of the noise variance, from half the sum of squares."""
    return 2.0 * value / size


def profile_log_likelihood(value: float, size: float) -> float:
    """Gaussian log-likelihood at the best noise variance, from half the sum of squares."""
    variance = max(variance_of(value, size), np.finfo(np.float64).tiny)
    return -0.5 * size * (math.log(2.0 * math.pi * variance) + 1.0)


def rounding_level(y: FloatArray, weight: FloatArray) -> float:
    """Half the sum of squares that rounding errors alone leave."""
    return 0.5 * _ROUNDING**2 * float(weight @ y**2)
