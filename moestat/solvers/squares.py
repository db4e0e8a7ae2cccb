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

from moestat.base.types import FloatArray, IntArray
from moestat.kernels.squares import collect_loop, join_loop, second_order_loop, unfold_loop
from moestat.model.family import Family
from moestat.solvers.rules import WORK

CHUNK = 512
"""Rows of the Jacobian per call of dsyrk: at 500 parameters they fill the second-level cache."""

_CACHED = 500 * CHUNK  # numbers in that cache

_ROUNDING = float(4.5 * np.finfo(np.float64).eps)  # of a response: such residuals are errors


def residual_squares(
    family: Family, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray
) -> tuple[float]:
    """The value ``sum w (f - y)^2 / 2`` without derivatives."""
    root, nothing = np.sqrt(weight), np.empty((family.n_experts, 0))
    value, f = 0.0, np.empty(min(y.size, WORK.values))
    for start in range(0, y.size, f.size):
        part = slice(start, min(start + f.size, y.size))
        fitted = f[: part.stop - start]
        family.residuals(theta, X, root, start, 0, fitted, nothing, np.empty((0, 0)))
        residual = root[part] * (fitted - y[part])
        value += float(residual @ residual)
    return (0.5 * value,)


def gram_squares(
    family: Family, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Value, gradient ``J'r`` and the matrix ``J'J`` of Gauss and Newton.

    Entries of pinned coefficients are 0.
    """
    n, n_params = y.size, family.n_params
    root = np.sqrt(weight)
    nothing = np.empty((family.n_experts, 0))
    at = np.flatnonzero(family.jacobian_rows >= 0)
    last = at.size
    width = min(CHUNK, n)
    rows = np.zeros((last + 1, width))
    syrk: Any = scipy.linalg.get_blas_funcs("syrk", (rows,))
    gram = np.zeros((last + 1, last + 1), order="F")
    f = np.empty(width)
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
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


def _channel_places(family: Family) -> tuple[IntArray, ...]:
    """Position, number, first feature and row in the Jacobian of the channels' coefficients."""
    return family.index, family.width, family.offset, family.jacobian_rows


class _Chunks:
    """Derivatives of the regression function in its channels, chunk by chunk of the data."""

    def __init__(
        self, family: Family, X: FloatArray, theta: FloatArray, order: int, rows: int = CHUNK
    ) -> None:
        k, n_channels = family.index.shape
        pairs = k * n_channels * (n_channels + 1) // 2 if order > 1 else 0
        joined = order > 1 and family.gate.normalised
        self._arguments = theta, family.index, family.width, family.offset, family.layout, X
        self._loop, self._order = family.loops.channels, order
        counts = family.n_quadratic_features, k * n_channels, pairs, k * family.layout[0]
        self._sizes = [(count, rows) for count in counts[:3]] + [(counts[3], rows * joined)]
        self._f, self._buffers = np.empty(rows), [np.empty(a * b) for a, b in self._sizes]

    def differentiate(self, start: int, m: int) -> tuple[FloatArray, ...]:
        """(f, phi, slope, second, v) of m samples: `moestat.kernels.regression.channel_loop`."""
        # Contiguous for a shorter last chunk, too: strided outputs are of another type, for which
        # the loop would be compiled a second time.
        outputs = [self._f[:m]]
        for flat, (count, rows) in zip(self._buffers, self._sizes, strict=True):
            columns = min(m, rows)
            outputs.append(flat[: count * columns].reshape(count, columns))
        self._loop(*self._arguments, start, self._order, *outputs)
        return tuple(outputs)


def gradient_squares(
    family: Family, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray
) -> tuple[float, FloatArray]:
    """Value and gradient, at a few percent of the cost of a matrix."""
    sums = np.zeros((family.index.size, family.n_quadratic_features))
    rows = min(y.size, max(CHUNK, _CACHED // sum(sums.shape)))
    chunks, value = _Chunks(family, X, theta, 1, rows), 0.0
    for start in range(0, y.size, rows):
        part = slice(start, min(start + rows, y.size))
        f, phi, slope, _, _ = chunks.differentiate(start, part.stop - start)
        residual = f - y[part]
        weighted = weight[part] * residual
        value += float(weighted @ residual)
        slope *= weighted
        sums += slope @ phi.T
    gradient = np.zeros(family.n_params)
    collect_loop(*_channel_places(family), sums, gradient)
    return 0.5 * value, gradient


def newton_squares(
    family: Family, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Value, gradient, the exact Hessian ``sum w (grad f grad f' + r H_f)``, and ``J'J``.

    The part of H_f that joins the atoms of a normalised gate, ``-(v f' + f v')`` with the vectors
    v of `moestat.kernels.regression.channel_loop` and f the gradient, takes a second dsyrk:
    ``f f' - r (v f' + f v') = (f - r v)(f - r v)' - r^2 v v'``.
    """
    at = np.flatnonzero(family.jacobian_rows >= 0)
    joined = family.gate.normalised
    reads, width = _channel_places(family), min(CHUNK, y.size)
    root, chunks = np.sqrt(weight), _Chunks(family, X, theta, 2)
    rows = np.zeros((at.size, width))
    cross = np.zeros((at.size if joined else 0, width))
    syrk: Any = scipy.linalg.get_blas_funcs("syrk", (rows,))
    gram, plain = (np.zeros((at.size, at.size), order="F") for _ in range(2))
    slopes, value = np.zeros(at.size), 0.0
    nothing = np.empty((family.n_experts, 0))
    for start in range(0, y.size, CHUNK):
        m = min(CHUNK, y.size - start)
        part = slice(start, start + m)
        if m < width:
            rows[:, m:] = cross[:, m:] = 0.0
        f, phi, _, second, v = chunks.differentiate(start, m)
        family.residuals(theta, X, root, start, 1, f, nothing, rows)
        residual = root[part] * (f - y[part])
        value += float(residual @ residual)
        slopes += rows[:, :m] @ residual
        plain = syrk(1.0, rows.T, beta=1.0, c=plain, trans=1, overwrite_c=1)
        second_order_loop(*reads, phi, second, root[part] * residual, gram)
        if joined:
            join_loop(*reads, family.layout[0], phi, v, residual, cross, rows)
            gram = syrk(-1.0, cross.T, beta=1.0, c=gram, trans=1, overwrite_c=1)
        gram = syrk(1.0, rows.T, beta=1.0, c=gram, trans=1, overwrite_c=1)
    gradient = np.zeros(family.n_params)
    hessian, information = (np.zeros((family.n_params, family.n_params)) for _ in range(2))
    gradient[at] = slopes
    unfold_loop(at, gram, hessian)
    unfold_loop(at, plain, information)
    return 0.5 * value, gradient, hessian, information


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
