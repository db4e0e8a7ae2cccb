"""Residuals, Jacobians and their Gram matrices on a device.

The rows of the Jacobian of one chunk of samples, with the residuals as one more row, are written to
device memory; their Gram matrix ``[J r]'[J r]`` is added to that of the chunks before, as
`moestat.solvers.squares` does on the CPU.  Chunks follow each other in the order of
the data.
"""

from __future__ import annotations

import math
from typing import Any

from numba import float64

from moestat.kernels.cuda.target import cuda
from moestat.kernels.cuda.views import column, part, row
from moestat.kernels.regression import fill_block, fill_jacobian, working_rows

GRAM_TILE = 16
"""A thread block of the Gram kernel sums this many rows by as many columns."""

_GRAM_SHAPE = (GRAM_TILE, GRAM_TILE + 1)  # rows of one column in different banks


TILE = 0  # placeholder: threads of a block


def forward(*arguments: Any) -> None:
    """Placeholder: what `moestat.kernels.regression.forward_function` makes."""
    raise NotImplementedError


def residual_template(
    order,
    normalised,
    theta,
    index,
    width,
    offset,
    n_gate,
    first,
    n_mean,
    n_active,
    d,
    n_phi,
    rows,
    data,
    data_at,
    size,
    begin,
    jacobian,
    value,
):
    """The kernel; launched on (tiles of samples, problems) blocks of `TILE` threads.

    Arguments are as in `moestat.kernels.cuda.mixture.mixture_template`.  Besides, `offset` (C,) has
    the first feature of each channel, `rows` (P,) the row of the Jacobian of each coefficient or
    -1.  Order 0 writes half the sum of squared residuals to `value` (B, tiles, 1), order 1 to
    `jacobian` (B, R + 1, m) its rows for m samples from `begin` on, times the roots of their
    weights, and last the residuals; 0 past the last sample.
    """
    problem = cuda.blockIdx.y
    thread = cuda.threadIdx.x
    tile = TILE
    n = size[problem]
    at = cuda.blockIdx.x * tile + thread
    inside = begin + at < n
    sample = min(begin + at, n - 1)
    k, n_channels = index.shape
    # Second derivatives are never asked for: the room of one atom's is enough for views of them.
    starts = working_rows(k, n_phi, n_channels, n_gate, n_mean, 1)
    at_w, at_mean, at_da, at_d2a, at_dg, at_d2g, at_f, at_h, at_scale = starts
    stride = tile + 1
    memory = cuda.shared.array(0, float64)
    mine = column(memory, 0, at_scale + 1, stride, thread)
    phi = part(mine, 0, n_phi)
    w = part(mine, at_w, at_mean)
    mean = part(mine, at_mean, at_da)
    da = part(mine, at_da, at_d2a)
    dg = part(mine, at_dg, at_d2g)
    f = row(mine, at_f)
    h = row(mine, at_h)
    scale = row(mine, at_scale)
    base = data_at[problem]
    layout = (n_gate, first, n_mean, n_active)
    fill_block(column(data, base, d, n, sample), 0, 1, phi)
    forward(
        row(theta, problem),
        index,
        width,
        offset,
        layout,
        phi,
        1,
        order,
        part(mine, n_phi, at_w),
        w,
        mean,
        da,
        part(mine, at_d2a, at_dg),
        dg,
        part(mine, at_d2g, at_f),
        f,
        h,
    )
    scale[0] = math.sqrt(data[base + (d + 1) * n + sample]) if inside else 0.0
    residual = scale[0] * (f[0] - data[base + d * n + sample])
    if order > 0:
        if at < jacobian.shape[2]:
            last = jacobian.shape[1] - 1
            problem_jacobian = part(row(jacobian, problem), 0, last)
            fill_jacobian(
                (index, width, offset, layout),
                rows,
                normalised,
                scale,
                at,
                1,
                part(mine, 0, at_h),
                starts,
                h,
                problem_jacobian,
            )
            jacobian[problem, last, at] = residual
        return
    cuda.syncthreads()
    memory[thread] = residual * residual
    cuda.syncthreads()
    if thread == 0:
        total = 0.0
        for b in range(tile):
            total += memory[b]
        value[problem, cuda.blockIdx.x, 0] = 0.5 * total


def gram_template(jacobian, gram):
    """Add ``J J'`` of each problem's rows (R, m) to its `gram` (R, R), the lower triangle.

    Launched on (tiles of columns, tiles of rows, problems) blocks of `GRAM_TILE` squared threads.
    """
    problem = cuda.blockIdx.z
    if cuda.blockIdx.x > cuda.blockIdx.y:
        return
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    i = cuda.blockIdx.y * GRAM_TILE + y
    j = cuda.blockIdx.x * GRAM_TILE + x
    other = cuda.blockIdx.x * GRAM_TILE + y
    n_rows, m = jacobian.shape[1], jacobian.shape[2]
    one = cuda.shared.array(_GRAM_SHAPE, float64)
    two = cuda.shared.array(_GRAM_SHAPE, float64)
    total = 0.0
    for begin in range(0, m, GRAM_TILE):
        b = begin + x
        one[y, x] = jacobian[problem, i, b] if i < n_rows and b < m else 0.0
        two[y, x] = jacobian[problem, other, b] if other < n_rows and b < m else 0.0
        cuda.syncthreads()
        for q in range(GRAM_TILE):
            total += one[y, q] * two[x, q]
        cuda.syncthreads()
    if i < n_rows and j <= i:
        gram[problem, i, j] += total
