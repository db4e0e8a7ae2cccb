"""Log-likelihood, score, Hessian, information and E-step of a batch of problems in one launch.

A thread block takes a run of samples of one problem, a tile of one sample per thread at a time.
First each thread computes its own sample's atoms, as the loop on the CPU does for a block of
samples, and leaves their derivatives, weighted by the posterior tau and the prior pi, in a column
of shared memory.  Then each thread sums one *unit* of the result over the samples of the tile:
three products of features of one channel (score) or of one pair of channels (Hessian, and sum of
the outer products of the scores).  Nothing that is indexed at run time lives in a thread's own
memory, so that registers suffice.

With ``du = d(a + l)`` the rows of the tile are, for each atom, ``T = tau du``, ``G = pi da`` and
the curvature of its own pairs of channels,

    S = tau d2(a + l) - pi d2 a + (1 - tau) tau du du' - (1 - pi) pi da da'

The score of a channel is then the sum of ``T - G``, the curvature within an atom that of S, and
between two atoms that of ``G G' - T T'``; the information is that of ``(T - G) (T - G)'``.

Every sum is taken in an order that depends on the sizes of the problem alone: neither on the other
problems of the batch, nor on the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64

from moestat.base.types import IntArray
from moestat.compiler.math import log
from moestat.kernels.cuda.target import cuda
from moestat.kernels.cuda.views import column, part, row
from moestat.kernels.rows import (
    expect,
    fill_features,
    fill_products,
    padded,
    predict_channel,
    scale_rows,
    take_shares,
)

TILES = 16
"""Tiles per thread block: a block's sums stay on the device's multiprocessor so long."""


def row_starts(k, d, n_channels, n_gate, first, n_work):
    """First rows of a tile's quantities, and the number of rows.

    They are the response after the features, weight, prior, posterior, G, T, S, curvature that
    gate and expert share, weighted products, and temporaries.
    """
    both = max(n_gate - first, 0)
    n_expert = n_channels - first
    y = 1 + d
    weight = y + 1
    prior = weight + 1
    posterior = prior + k
    g = posterior + k
    t = g + k * n_gate
    s = t + k * n_channels
    shared = s + k * (n_channels * (n_channels + 1) // 2)
    psi = shared + k * (both * (both + 1) // 2)
    work = psi + padded((1 + d) * (2 + d) // 2)
    scratch = n_channels + n_work + n_gate * (n_gate + 1) // 2 + n_expert * (n_expert + 1) // 2
    return y, weight, prior, posterior, g, t, s, shared, psi, work, work + max(scratch, 4)


def units_of(k: int, width: IntArray, d: int, order: int) -> IntArray:
    """What threads sum, one row (channel of an atom, other channel, first product) each.

    In place of the other channel stand -1 for the score, and numbers from ``k C`` on, by which it
    is raised, for the information.
    """
    n_channels = width.size
    n_rows, n_products = k * n_channels, (1 + d) * (2 + d) // 2
    units = [(p, -1, q) for p in range(n_rows) for q in range(0, width[p % n_channels], 3)]
    # The curvature's, then the information's.
    for raised in range(order - 1):
        for p in range(n_rows):
            for other in range(p + 1):
                c, e = width[p % n_channels], width[other % n_channels]
                used = n_products if c > 1 and e > 1 else max(c, e)
                units += [(p, raised * n_rows + other, q) for q in range(0, used, 3)]
    return np.array(units, dtype=np.int64).reshape(-1, 3)


TILE = 0  # placeholder: threads of a block, a constant so that addresses take fewer registers
INFORMED = False  # placeholder: units of the information take registers even where there are none


def n_work(n_channels: int, n_mean: int) -> int:
    """Placeholder: scratch rows of the atom."""
    raise NotImplementedError


def atom(*arguments: Any) -> None:
    """Placeholder: block function of the atom, from `moestat.kernels.atom.build_atom`."""
    raise NotImplementedError


def dense(score: Any, n_active: int, m: int) -> None:
    """Every atom takes part: in place of `select_top`."""


def choose(score: Any, n_active: int, m: int) -> None:
    """Placeholder: `dense` or `select_top`."""
    raise NotImplementedError


def weigh_slopes(n_channels, n_gate, first, complete, tau, pi, g, t, s, shared):
    """Turn one atom's derivatives into G, T and S; on entry g is da, t is dl where there is one.

    s (pairs, 1) holds ``d2 a + d2 l`` and `shared` the d2 a of pairs that both have.
    """
    for c in range(n_gate):
        if c >= first:
            t[c, 0] += g[c, 0]
        else:
            t[c, 0] = g[c, 0]
    excess = tau - pi
    pair = 0
    for c in range(n_channels):
        for e in range(c + 1):
            # d2 l carries tau; d2 a carries tau - pi.
            value = (tau if c >= n_gate or e >= first else excess) * s[pair, 0]
            if c < n_gate and e < n_gate:
                if e >= first:
                    r = c - first
                    value -= pi * shared[r * (r + 1) // 2 + e - first, 0]
                value -= pi * (1.0 - pi) * g[c, 0] * g[e, 0]
            # Given responsibilities do not vary.
            if not complete:
                value += tau * (1.0 - tau) * t[c, 0] * t[e, 0]
            s[pair, 0] = value
            pair += 1
    for c in range(n_channels):
        t[c, 0] *= tau
    for c in range(n_gate):
        g[c, 0] *= pi


def add_curvature(n_channels, n_gate, first, d2a, d2l, s, shared):
    """``s = d2 a + d2 l`` by pairs of channels, and d2 a by itself where both have one."""
    pair = 0
    for c in range(n_channels):
        for e in range(c + 1):
            value = 0.0
            if c < n_gate:
                value = d2a[pair, 0]
                if e >= first:
                    r = c - first
                    shared[r * (r + 1) // 2 + e - first, 0] = value
            if e >= first:
                r = c - first
                value += d2l[r * (r + 1) // 2 + e - first, 0]
            s[pair, 0] = value
            pair += 1


def sum_unit(memory, stride, begin, end, kind, r0, r1, r2, r3, psi, out):
    """Three weighted sums of one unit over the samples `begin`, ..., `end` - 1 of the tile.

    Of the rows r0 to r3 the kinds sum 0: r0, 1: r0 - r1, 2: - r0 r1, 3: r2 r3 - r0 r1, and
    4: r2 r3.  The sums are added to `out` (3,).
    """
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    for b in range(begin, end):
        h = 0.0
        if kind < 4:
            h = memory[r0 * stride + b]
        if kind == 1:
            h -= memory[r1 * stride + b]
        if kind == 2 or kind == 3:
            h *= -memory[r1 * stride + b]
        if kind >= 3:
            h += memory[r2 * stride + b] * memory[r3 * stride + b]
        s0 += h * memory[psi * stride + b]
        s1 += h * memory[(psi + 1) * stride + b]
        s2 += h * memory[(psi + 2) * stride + b]
    out[0] += s0
    out[1] += s1
    out[2] += s2


def sum_slopes(memory, stride, begin, end, p_gate, q_gate, r0, r1, r2, r3, psi, out):
    """Three weighted sums of ``(r0 - r2) (r1 - r3)``, as `sum_unit` has them of its kinds.

    Where the gate does not read a channel, there is nothing to subtract.
    """
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    for b in range(begin, end):
        h = memory[r0 * stride + b]
        if p_gate:
            h -= memory[r2 * stride + b]
        other = memory[r1 * stride + b]
        if q_gate:
            other -= memory[r3 * stride + b]
        h *= other
        s0 += h * memory[psi * stride + b]
        s1 += h * memory[(psi + 1) * stride + b]
        s2 += h * memory[(psi + 2) * stride + b]
    out[0] += s0
    out[1] += s1
    out[2] += s2


def mixture_template(
    order,
    objective,
    theta,
    index,
    width,
    n_gate,
    first,
    n_mean,
    n_active,
    d,
    data,
    data_at,
    size,
    tau,
    tau_at,
    units,
    value,
    moments,
):
    """The kernel; launched on (runs of samples, problems) blocks of `TILE` threads.

    The order is that of the highest derivative; where the kernel is `INFORMED`, 3 stands for the
    second and the information.  The objective is 0 for the observed-data log-likelihood at theta
    (B, P), 1 for the complete-data one with the responsibilities in `tau`, 2 for the first, leaving
    responsibilities in `tau`.  `index` (k, C) and `width` (C,) are the family's, then come its
    `Layout` and d.  `data` holds, of each problem, from ``data_at[problem]`` on, X (d, n), y (n,)
    and weight (n,), with ``n = size[problem]``; `tau`, from ``tau_at[problem]`` on, (k, n).  Given
    `units` (U, 3) of `units_of`, written are `value` (B, runs, 1) and `moments` (B, runs times
    slices, 3 U), where a tile of T threads makes ``max(1, T // U)`` slices.
    """
    problem = cuda.blockIdx.y
    thread = cuda.threadIdx.x
    tile = TILE
    n = size[problem]
    run_begin = cuda.blockIdx.x * (TILES * tile)
    if run_begin >= n:
        return
    run_end = min(run_begin + TILES * tile, n)
    k, n_channels = index.shape
    n_expert = n_channels - first
    pairs = n_channels * (n_channels + 1) // 2
    both = max(n_gate - first, 0)
    both_pairs = both * (both + 1) // 2
    at_y, at_w, at_pi, at_share, at_g, at_t, at_s, at_both, at_psi, at_work, n_rows = row_starts(
        k, d, n_channels, n_gate, first, n_work(n_channels, n_mean)
    )
    # An odd stride keeps rows of one column in different banks of the memory.
    stride = tile + 1
    memory = cuda.shared.array(0, float64)
    mine = column(memory, 0, n_rows, stride, thread)
    phi = part(mine, 0, at_y)
    y = row(mine, at_y)
    w = row(mine, at_w)
    pi = part(mine, at_pi, at_share)
    share = part(mine, at_share, at_g)
    g = part(mine, at_g, at_t)
    t = part(mine, at_t, at_s)
    s = part(mine, at_s, at_both)
    shared = part(mine, at_both, at_psi)
    psi = part(mine, at_psi, at_work)
    # Temporaries of an atom, and after it of the mixture.
    at = at_work + n_channels
    eta = part(mine, at_work, at)
    d2a = part(mine, at, at + n_gate * (n_gate + 1) // 2)
    at += n_gate * (n_gate + 1) // 2
    d2l = part(mine, at, at + n_expert * (n_expert + 1) // 2)
    at += n_expert * (n_expert + 1) // 2
    work = part(mine, at, n_rows)
    top = row(mine, at_work)
    total = row(mine, at_work + 1)
    top_prior = row(mine, at_work + 2)
    total_prior = row(mine, at_work + 3)

    layout = (n_gate, first, n_mean, n_active)
    own_theta = row(theta, problem)
    base = data_at[problem]
    # Without derivatives there are no units.
    n_units = units.shape[0] if order > 0 else 0
    n_slices = max(1, tile // max(n_units, 1))
    own_slice = thread // max(n_units, 1) if n_slices > 1 else 0
    slice_begin = own_slice * tile // n_slices
    slice_end = (own_slice + 1) * tile // n_slices
    run = cuda.blockIdx.x * n_slices + own_slice
    if own_slice < n_slices:
        for u in range(thread - own_slice * n_units, n_units, tile):
            for q in range(3):
                moments[problem, run, 3 * u + q] = 0.0

    own_value = 0.0
    for tile_begin in range(run_begin, run_end, tile):
        # Threads past the last sample repeat it with weight 0.
        sample = min(tile_begin + thread, n - 1)
        fill_features(column(data, base, d, n, sample), 0, 1, phi)
        y[0] = data[base + d * n + sample]
        w[0] = data[base + (d + 1) * n + sample] if tile_begin + thread < n else 0.0
        for i in range(k):
            for c in range(n_channels):
                predict_channel(own_theta, index[i, c], width[c], phi, 1, row(eta, c))
            atom(
                eta,
                layout,
                phi,
                y,
                1,
                order,
                work,
                row(pi, i),
                part(g, i * n_gate, (i + 1) * n_gate),
                d2a,
                row(share, i),
                part(t, i * n_channels + first, (i + 1) * n_channels),
                d2l,
            )
            if order > 1:
                add_curvature(
                    n_channels,
                    n_gate,
                    first,
                    d2a,
                    d2l,
                    part(s, i * pairs, (i + 1) * pairs),
                    part(shared, i * both_pairs, (i + 1) * both_pairs),
                )
        choose(pi, n_active, 1)
        for i in range(k):
            share[i, 0] += pi[i, 0]
        if objective == 1:
            given = column(tau, tau_at[problem], k, n, sample)
            expect(share, given, 0, True, 1, top, total)
        else:
            take_shares(share, 1, top, total)
        take_shares(pi, 1, top_prior, total_prior)
        own_value += w[0] * (top[0] - top_prior[0] + log(total[0] / total_prior[0]))
        total_prior[0] = 1.0 / total_prior[0]
        scale_rows(pi, 1, total_prior)
        if objective != 1:
            total[0] = 1.0 / total[0]
            scale_rows(share, 1, total)
        if objective == 2 and tile_begin + thread < n:
            for i in range(k):
                tau[tau_at[problem] + i * n + sample] = share[i, 0]
        if order == 0:
            continue
        fill_products(phi, w, 1 + d if order > 1 else 1, 1, psi)
        for i in range(k):
            weigh_slopes(
                n_channels,
                n_gate,
                first,
                objective == 1,
                share[i, 0],
                pi[i, 0],
                part(g, i * n_gate, (i + 1) * n_gate),
                part(t, i * n_channels, (i + 1) * n_channels),
                part(s, i * pairs, (i + 1) * pairs),
                part(shared, i * both_pairs, (i + 1) * both_pairs),
            )
        cuda.syncthreads()
        if own_slice < n_slices:
            for u in range(thread - own_slice * n_units, n_units, tile):
                p = units[u, 0]
                q = units[u, 1]
                informs = INFORMED and q >= k * n_channels
                if informs:
                    q -= k * n_channels
                i = p // n_channels
                c = p - i * n_channels
                j = q // n_channels
                e = q - j * n_channels
                r0 = at_t + p
                r1 = at_t + q
                r2 = at_g + i * n_gate + c
                r3 = at_g + j * n_gate + e
                if informs:
                    sum_slopes(
                        memory,
                        stride,
                        slice_begin,
                        slice_end,
                        c < n_gate,
                        e < n_gate,
                        r0,
                        r1,
                        r2,
                        r3,
                        at_psi + units[u, 2],
                        part(row(row(moments, problem), run), 3 * u, 3 * u + 3),
                    )
                    continue
                kind = 0
                if q < 0:
                    kind = 1 if c < n_gate else 0
                    r1 = r2
                elif i == j:
                    r0 = at_s + i * pairs + c * (c + 1) // 2 + e
                else:
                    # Given responsibilities do not vary: then T T' is not there to subtract.
                    gates = c < n_gate and e < n_gate
                    if objective == 1:
                        if not gates:
                            continue
                        kind = 4
                    else:
                        kind = 3 if gates else 2
                sum_unit(
                    memory,
                    stride,
                    slice_begin,
                    slice_end,
                    kind,
                    r0,
                    r1,
                    r2,
                    r3,
                    at_psi + units[u, 2],
                    part(row(row(moments, problem), run), 3 * u, 3 * u + 3),
                )
        cuda.syncthreads()

    cuda.syncthreads()
    memory[thread] = own_value
    cuda.syncthreads()
    if thread == 0:
        total_value = 0.0
        for b in range(tile):
            total_value += memory[b]
        value[problem, cuda.blockIdx.x] = total_value


def sum_template(counts, partial, out):
    """Sum the first ``counts[problem]`` rows of ``partial[problem]`` (rows, M), in their order.

    Launched on (parts of the M columns, problems) blocks; `out` is (B, M).
    """
    problem = cuda.blockIdx.y
    at = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if at < out.shape[1]:
        total = 0.0
        for r in range(counts[problem]):
            total += partial[problem, r, at]
        out[problem, at] = total
