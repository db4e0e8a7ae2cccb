"""Factors and eigenvectors of symmetric matrices in compiled loops, by LAPACK.

Every function works on the leading n coordinates of arrays that the caller owns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, device, primitive
from moestat.compiler.layout import DATA, ITEMSIZE, STRIDES

if TYPE_CHECKING:
    from numba.core.cpu import CPUContext
    from numba.core.typing.templates import Signature

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)


def _call(
    context: CPUContext, builder: ir.IRBuilder, name: str, letters: str, n: Any, *arrays: Any
) -> Any:
    """Call a LAPACK routine for float64 through numba's wrapper; returns `info`.

    The leading dimension is the length of a row of the first array.
    """
    matrix = arrays[0]
    step, item = (
        builder.extract_value(matrix, (STRIDES, 0)),
        builder.extract_value(matrix, ITEMSIZE),
    )
    data = [builder.bitcast(builder.extract_value(a, DATA), cgutils.voidptr_t) for a in arrays]
    given = [*(ir.Constant(_BYTE, ord(letter)) for letter in "d" + letters), n]
    given += [data[0], builder.sdiv(step, item), *data[1:]]
    kind = ir.FunctionType(ir.IntType(32), [value.type for value in given])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)


def cholesky(n: int, matrix: FloatArray) -> bool:
    """Overwrite the lower triangle by L with ``L L' = matrix``; False if it is not definite."""
    try:
        factor = np.linalg.cholesky(matrix[:n, :n])
    except np.linalg.LinAlgError:
        return False
    matrix[:n, :n] = factor + np.triu(matrix[:n, :n], 1)
    return True


def eigenvectors(n: int, matrix: FloatArray, values: FloatArray) -> bool:
    """Overwrite a matrix by its eigenvectors as rows; False if there are none, as for NaN."""
    try:
        values[:n], vectors = np.linalg.eigh(matrix[:n, :n])
    except np.linalg.LinAlgError:
        return False
    matrix[:n, :n] = vectors.T
    return True


def _type_cholesky(n: types.Type, matrix: types.Type) -> Signature:
    return types.boolean(types.intp, matrix)


def _type_eigenvectors(n: types.Type, matrix: types.Type, values: types.Type) -> Signature:
    return types.boolean(types.intp, matrix, values)


# LAPACK's matrices are by columns: the lower triangle by rows is its upper one.
@primitive(cholesky, _type_cholesky, types.Integer, types.Array)
def _cholesky(context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any) -> Any:
    info = _call(context, builder, "numba_xxpotrf", "U", *args)
    return builder.icmp_signed("==", info, info.type(0))


@primitive(eigenvectors, _type_eigenvectors, types.Integer, types.Array, types.Array)
def _eigenvectors(
    context: CPUContext, builder: ir.IRBuilder, signature: Signature, args: Any
) -> Any:
    info = _call(context, builder, "numba_ez_xxxevd", "VU", *args)
    return builder.icmp_signed("==", info, info.type(0))


@device(forceinline=False)
@compact
def forward_substitute(n, lower, x):
    """Solve ``L z = x`` in place."""
    for i in range(n):
        remainder = x[i]
        for k in range(i):
            remainder -= lower[i, k] * x[k]
        x[i] = remainder / lower[i, i]


@device(forceinline=False)
@compact
def back_substitute(n, lower, x):
    """Solve ``L' z = x`` in place."""
    for i in range(n - 1, -1, -1):
        x[i] /= lower[i, i]
        for k in range(i):
            x[k] -= lower[i, k] * x[i]


@device(forceinline=False)
@compact
def reduce_to_standard(n, lower, matrix):
    """Overwrite a symmetric matrix H by ``L^-1 H L^-T``.

    Zeros of L are skipped: a metric that is diagonal by channels has few other entries.
    """
    for _ in range(2):
        for i in range(n):
            for k in range(i):
                factor = lower[i, k]
                if factor != 0.0:
                    for j in range(n):
                        matrix[i, j] -= factor * matrix[k, j]
            scale = 1.0 / lower[i, i]
            for j in range(n):
                matrix[i, j] *= scale
        for i in range(n):
            for j in range(i):
                matrix[i, j], matrix[j, i] = matrix[j, i], matrix[i, j]


@device(forceinline=False)
@compact
def into_eigenbasis(n, lower, model, scratch):
    """Move a quadratic model into the eigenbasis of its curvature in a metric ``L L'``.

    The `model` is the curvature H, which becomes the eigenvectors, the gradient, which is
    overwritten, and room for the eigenvalues of ``L^-1 H L^-T``: NaN where there are none.
    """
    matrix, slope, values = model
    reduce_to_standard(n, lower, matrix)
    forward_substitute(n, lower, slope)
    converged = eigenvectors(n, matrix, values)
    for i in range(n):
        scratch[i] = slope[i]
        values[i] = values[i] if converged else np.nan
    for i in range(n):
        slope[i] = 0.0
        for j in range(n):
            slope[i] += matrix[i, j] * scratch[j]


@device(forceinline=False)
@compact
def out_of_eigenbasis(n, lower, matrix, scratch, step):
    """Move a step back from the eigenbasis, in place."""
    for j in range(n):
        scratch[j] = step[j]
        step[j] = 0.0
    for i in range(n):
        for j in range(n):
            step[j] += matrix[i, j] * scratch[i]
    back_substitute(n, lower, step)
