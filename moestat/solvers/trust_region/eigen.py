"""Symmetric eigenproblems of a few dozen coordinates, in plain scalar loops.

At this size a LAPACK call is mostly call.  These loops compile with the data loops and call
nothing, so that the same source could run inside a device kernel.  The eigenvectors are never
formed: a factorisation ``L^-1 H L^-T = Q R diag(values) R' Q'`` is kept as reflections Q and
rotations R, which is all it takes to move vectors into the eigenbasis and back.

Every function works on the leading n coordinates of arrays that the caller owns.
"""

from __future__ import annotations

import math

import numpy as np

from moestat.compiler.jit import compact, device
from moestat.kernels.views import row
from moestat.solvers.rules import TRUST

_EPSILON = float(np.finfo(np.float64).eps)


@device(forceinline=False)
@compact
def cholesky(n, matrix):
    """Overwrite the lower triangle by L with ``L L' = matrix``; False if it is not definite."""
    for j in range(n):
        for i in range(j, n):
            rest = matrix[i, j]
            for k in range(j):
                rest -= matrix[i, k] * matrix[j, k]
            if i > j:
                matrix[i, j] = rest / matrix[j, j]
            elif rest > 0.0:
                matrix[j, j] = math.sqrt(rest)
            else:
                return False
    return True


@device(forceinline=False)
@compact
def forward_substitute(n, lower, x):
    """Solve ``L z = x`` in place."""
    for i in range(n):
        rest = x[i]
        for k in range(i):
            rest -= lower[i, k] * x[k]
        x[i] = rest / lower[i, i]


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
        for k in range(i):
            factor = lower[i, k]
            if factor != 0.0:
                for j in range(n):
                    matrix[j, i] -= factor * matrix[j, k]
        scale = 1.0 / lower[i, i]
        for j in range(n):
            matrix[j, i] *= scale


@device(forceinline=False)
@compact
def tridiagonalise(n, matrix, diagonal, off, size, product):
    """Householder's reduction ``Q' A Q`` to tridiagonal form.

    Row k of `matrix` keeps the vector v of reflection ``1 - size[k] v v'`` right of its diagonal;
    `product` is scratch.
    """
    # Below rounding of the largest entry nothing is reflected: the squares of what is left of a
    # null space would underflow.
    largest = 0.0
    for i in range(n):
        for j in range(n):
            largest = abs(matrix[i, j]) if abs(matrix[i, j]) > largest else largest
    floor = 0.01 * _EPSILON * largest
    floor = floor * floor if floor > 1e-145 else 1e-290
    for k in range(n - 1):
        tail = 0.0
        for j in range(k + 2, n):
            tail += matrix[k, j] * matrix[k, j]
        first = matrix[k, k + 1]
        diagonal[k] = matrix[k, k]
        off[k] = first
        size[k] = 0.0
        if tail <= floor:
            continue
        # The sign that adds, not cancels.
        norm = -math.copysign(math.sqrt(first * first + tail), first)
        matrix[k, k + 1] = first - norm
        off[k] = norm
        size[k] = 1.0 / (norm * (norm - first))
        # A - v w' - w v' with w = size A v - (size^2 v'A v / 2) v.
        inner = 0.0
        for i in range(k + 1, n):
            total = 0.0
            for j in range(k + 1, n):
                total += matrix[i, j] * matrix[k, j]
            product[i] = size[k] * total
            inner += product[i] * matrix[k, i]
        for i in range(k + 1, n):
            product[i] -= 0.5 * size[k] * inner * matrix[k, i]
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                matrix[i, j] -= matrix[k, i] * product[j] + product[i] * matrix[k, j]
    diagonal[n - 1] = matrix[n - 1, n - 1]
    off[n - 1] = 0.0


@device(forceinline=False)
@compact
def _reflect(n, k, matrix, size, x):
    along = 0.0
    for j in range(k + 1, n):
        along += matrix[k, j] * x[j]
    along *= size[k]
    for j in range(k + 1, n):
        x[j] -= along * matrix[k, j]


@device(forceinline=False)
@compact
def reflect_into(n, matrix, size, x):
    """``Q' x`` in place, Q from `tridiagonalise`."""
    for k in range(n - 1):
        _reflect(n, k, matrix, size, x)


@device(forceinline=False)
@compact
def reflect_back(n, matrix, size, x):
    """``Q x`` in place."""
    for k in range(n - 2, -1, -1):
        _reflect(n, k, matrix, size, x)


@device(forceinline=False)
@compact
def diagonalise(n, diagonal, off, negligible, plane, cosine, sine):
    """Implicit QL: a tridiagonal matrix becomes ``R' T R``, diagonal, in place.

    Rotation r turns coordinates (plane[r], plane[r] + 1) by (cosine[r], sine[r]).  Returns their
    number.  Off-diagonals are iterated until they are `negligible` or below rounding; a full store
    of rotations or too many sweeps end it early, which only NaN has been seen to do.
    """
    # What the reduction to tridiagonal form has blurred anyway needs no iteration; without this
    # floor, sweeps over a null space would underflow and never end.
    floor = negligible
    for i in range(n):
        size = 0.01 * _EPSILON * (abs(diagonal[i]) + abs(off[i]))
        floor = size if size > floor else floor
    used = 0
    for low in range(n):
        for _ in range(TRUST.sweeps):
            high = low
            while high < n - 1:
                least = _EPSILON * (abs(diagonal[high]) + abs(diagonal[high + 1]))
                if abs(off[high]) <= (least if least > floor else floor):
                    break
                high += 1
            if high == low or used + high - low > plane.shape[0]:
                break
            # The shift is the eigenvalue of the leading 2 by 2 block next to diagonal[low].
            g = (diagonal[low + 1] - diagonal[low]) / (2.0 * off[low])
            g = off[low] / (g + math.copysign(math.sqrt(g * g + 1.0), g))
            g += diagonal[high] - diagonal[low]
            s = 1.0
            c = 1.0
            shift = 0.0
            split = False
            for i in range(high - 1, low - 1, -1):
                f = s * off[i]
                b = c * off[i]
                r = math.sqrt(f * f + g * g)
                off[i + 1] = r
                if r == 0.0:
                    diagonal[i + 1] -= shift
                    split = True
                    break
                s = f / r
                c = g / r
                g = diagonal[i + 1] - shift
                r = (diagonal[i] - g) * s + 2.0 * c * b
                shift = s * r
                diagonal[i + 1] = g + shift
                g = c * r - b
                plane[used] = i
                cosine[used] = c
                sine[used] = s
                used += 1
            if not split:
                diagonal[low] -= shift
                off[low] = g
            off[high] = 0.0
    return used


@device(forceinline=False)
@compact
def rotate_into(used, plane, cosine, sine, x):
    """``R' x`` in place, R from `diagonalise`."""
    for r in range(used):
        i = plane[r]
        below = x[i + 1]
        x[i + 1] = sine[r] * x[i] + cosine[r] * below
        x[i] = cosine[r] * x[i] - sine[r] * below


@device(forceinline=False)
@compact
def rotate_back(used, plane, cosine, sine, x):
    """``R x`` in place."""
    for r in range(used - 1, -1, -1):
        i = plane[r]
        below = x[i + 1]
        x[i + 1] = cosine[r] * below - sine[r] * x[i]
        x[i] = sine[r] * below + cosine[r] * x[i]


@device(forceinline=False)
@compact
def into_eigenbasis(n, lower, model, work, negligible, rotations):
    """Move a quadratic model into the eigenbasis of its curvature in a metric ``L L'``.

    The `model` is the curvature H and the gradient, which are overwritten, and room for the
    eigenvalues of ``L^-1 H L^-T``, in no order, up to what is `negligible` next to them, and for
    the sizes of reflections.  `work` (2, n) is scratch.  Returns the number of rotations.
    """
    matrix, slope, values, size = model
    plane, cosine, sine = rotations
    reduce_to_standard(n, lower, matrix)
    tridiagonalise(n, matrix, values, row(work, 0), size, row(work, 1))
    used = diagonalise(n, values, row(work, 0), negligible, plane, cosine, sine)
    forward_substitute(n, lower, slope)
    reflect_into(n, matrix, size, slope)
    rotate_into(used, plane, cosine, sine, slope)
    return used


@device(forceinline=False)
@compact
def out_of_eigenbasis(n, used, lower, reflections, rotations, step):
    """Move a step back from the eigenbasis, in place."""
    matrix, size = reflections
    plane, cosine, sine = rotations
    rotate_back(used, plane, cosine, sine, step)
    reflect_back(n, matrix, size, step)
    back_substitute(n, lower, step)
