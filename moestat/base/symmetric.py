"""Symmetric matrices as vectors, so that Euclidean norms are Frobenius norms.

A quadratic score ``x' A x`` sees the symmetric part of A only.  It is packed row by row from the
diagonal on, with off-diagonal entries times sqrt(2): then ``x' A x`` is the inner product of the
packed matrix with the packed products ``x x'``, and the length of the vector is ``||A||_F``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, as_numbers

_ROOT_2 = math.sqrt(2.0)


def pack_symmetric(matrices: Any) -> FloatArray:
    """Symmetric parts of square matrices (..., d, d) as vectors (..., d (d + 1) / 2).

    Of a matrix that is not symmetric ``(A + A') / 2`` is taken, which has the same quadratic form.

    Examples
    --------
    >>> pack_symmetric([[1.0, 3.0], [1.0, 5.0]]).round(4).tolist()
    [1.0, 2.8284, 5.0]
    """
    given = as_numbers("matrices", matrices)
    if given.ndim < 2 or given.shape[-1] != given.shape[-2]:
        raise ValueError(f"matrices must have shape (..., d, d), got {given.shape}")
    given = as_floats("matrices", given, given.shape)
    rows, columns = np.triu_indices(given.shape[-1])
    half = 0.5 * (given[..., rows, columns] + given[..., columns, rows])
    return half * np.where(rows == columns, 1.0, _ROOT_2)


def unpack_symmetric(vectors: Any) -> FloatArray:
    """Symmetric matrices (..., d, d) of packed vectors, the inverse of `pack_symmetric`.

    Examples
    --------
    >>> unpack_symmetric([1.0, 2.0 * 2.0**0.5, 5.0]).round(12).tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    given = as_numbers("vectors", vectors)
    size = given.shape[-1] if given.ndim else 0
    d = (math.isqrt(8 * size + 1) - 1) // 2
    if size < 1 or d * (d + 1) // 2 != size:
        raise ValueError(f"vectors must have d (d + 1) / 2 entries for some d, got {given.shape}")
    given = as_floats("vectors", given, given.shape)
    rows, columns = np.triu_indices(d)
    values = given / np.where(rows == columns, 1.0, _ROOT_2)
    out = np.empty((*given.shape[:-1], d, d))
    out[..., rows, columns] = values
    out[..., columns, rows] = values
    return out
