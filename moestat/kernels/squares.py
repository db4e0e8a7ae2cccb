"""Derivatives of a sum of squares, from those of the regression function in its channels.

A matrix over the rows of the Jacobian, the free coefficients, is kept as its upper triangle.
"""

from __future__ import annotations

from moestat.compiler.jit import compile_loop
from moestat.kernels.views import empty_rows, keep, row


@compile_loop
def second_order_loop(index, width, offset, rows, phi, second, weighted, triangle):
    """Add ``sum weighted H_f``, with the second derivatives H_f of a chunk within the atoms.

    The arguments are those of `moestat.kernels.regression.residual_loop`, with the row (P,) of each
    coefficient, and the phi (features, m) and second (pairs, m) of `channel_loop`; weighted holds
    the weighted residuals (m,).
    """
    k, n_channels = index.shape
    pairs, m = n_channels * (n_channels + 1) // 2, weighted.size
    work = empty_rows(1, m)
    scaled = row(work, 0)
    for i in range(k):
        for c in range(n_channels):
            for e in range(c + 1):
                derivative = second[i * pairs + c * (c + 1) // 2 + e]
                for q in range(width[c]):
                    first_row = rows[index[i, c] + q]
                    if first_row < 0:
                        continue
                    feature = phi[offset[c] + q - 1 if q > 0 else 0]
                    for b in range(m):
                        scaled[b] = weighted[b] * derivative[b] * feature[b]
                    for p in range(q + 1 if e == c else width[e]):
                        other_row = rows[index[i, e] + p]
                        if other_row < 0:
                            continue
                        other = phi[offset[e] + p - 1 if p > 0 else 0]
                        total = 0.0
                        for b in range(m):
                            total += scaled[b] * other[b]
                        triangle[min(first_row, other_row), max(first_row, other_row)] += total
    keep(work)


@compile_loop
def join_loop(index, width, offset, rows, n_gate, phi, v, residual, cross, jacobian):
    """Fill ``r v`` in the coefficients of a normalised gate, and take it from the Jacobian.

    v (k gate's channels, m) is that of `moestat.kernels.regression.channel_loop`, the residual r
    (m,); outputs are (rows, at least m).
    """
    k, m = index.shape[0], residual.size
    for r in range(cross.shape[0]):
        for b in range(m):
            cross[r, b] = 0.0
    for i in range(k):
        for c in range(n_gate):
            derivative = v[i * n_gate + c]
            for q in range(width[c]):
                coefficient_row = rows[index[i, c] + q]
                if coefficient_row < 0:
                    continue
                feature = phi[offset[c] + q - 1 if q > 0 else 0]
                out = cross[coefficient_row]
                for b in range(m):
                    out[b] += residual[b] * derivative[b] * feature[b]
    for r in range(cross.shape[0]):
        for b in range(m):
            jacobian[r, b] -= cross[r, b]


@compile_loop
def collect_loop(index, width, offset, rows, sums, gradient):
    """Add the free coefficients to a gradient (P,), from sums (k C, features) of slopes."""
    k, n_channels = index.shape
    for i in range(k):
        for c in range(n_channels):
            for q in range(width[c]):
                at = index[i, c] + q
                if rows[at] >= 0:
                    feature = offset[c] + q - 1 if q > 0 else 0
                    gradient[at] += sums[i * n_channels + c, feature]


@compile_loop
def unfold_loop(at, triangle, matrix):
    """Write an upper triangle in both triangles of the coordinates `at` of a matrix."""
    for i in range(at.size):
        for j in range(i, at.size):
            matrix[at[i], at[j]] = triangle[i, j]
            matrix[at[j], at[i]] = triangle[i, j]
