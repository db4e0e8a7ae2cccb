"""Regression functions ``f = sum_i w_i g_i``: weights, residuals and the rows of the Jacobian.

The atom's own pieces are those of the mixtures: the log-score a of the gate and the mean g of the
expert, each with derivatives in a few channels.  With ``w_i = exp(a_i)``, divided by the sum for a
normalised gate,

    df / d(channel of the gate)    = w_i g_i da_i, or w_i (g_i - f) da_i when normalised
    df / d(channel of the expert)  = w_i dg_i

and a coefficient of a channel adds its feature of x as a factor.  A row of the Jacobian is one
coefficient; the sample is the innermost index.

Source: Yan et al. (2025), eqs. (5), (49) and (84).
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from numba import types

from moestat.compiler.jit import BLOCK, compile_code, compile_loop, device
from moestat.compiler.math import exp
from moestat.compiler.pointers import call_by_address
from moestat.kernels.records import NO_SUMS
from moestat.kernels.rows import normalise
from moestat.kernels.views import empty_like, empty_rows, keep, part, row, rows_at, start_of

_ROOT_2 = 1.4142135623730951


@device
def fill_quadratic_features(X, samples, start, m, phi):
    """Features ``phi = (1, x, products)`` of the samples at start, ..., start + m - 1 of a list.

    The products run over the upper triangle, row by row, and are scaled by sqrt(2) off the
    diagonal; they are left out when phi has no rows for them.
    """
    d = X.shape[0]
    for b in range(m):
        phi[0, b] = 1.0
    for f in range(d):
        for b in range(m):
            phi[1 + f, b] = X[f, samples[start + b]]
    _fill_products(d, m, phi)


@device
def _fill_products(d, m, phi):
    if phi.shape[0] == 1 + d:
        return
    q = 1 + d
    for f in range(d):
        for b in range(m):
            phi[q, b] = phi[1 + f, b] * phi[1 + f, b]
        q += 1
        for g in range(f + 1, d):
            for b in range(m):
                phi[q, b] = _ROOT_2 * phi[1 + f, b] * phi[1 + g, b]
            q += 1


@device
def fill_block(X, start, m, phi):
    """Fill features as `fill_quadratic_features`, but of neighbouring samples."""
    d = X.shape[0]
    for b in range(m):
        phi[0, b] = 1.0
    for f in range(d):
        for b in range(m):
            phi[1 + f, b] = X[f, start + b]
    _fill_products(d, m, phi)


@device
def _predict(theta, first, width, offset, phi, m, eta):
    """``eta = theta_0 + sum_f theta_f phi_(offset + f - 1)`` for one channel, four at a time."""
    intercept = theta[first]
    for b in range(m):
        eta[b] = intercept
    f = 1
    while f + 3 < width:
        t0 = theta[first + f]
        t1 = theta[first + f + 1]
        t2 = theta[first + f + 2]
        t3 = theta[first + f + 3]
        at = offset + f - 1
        for b in range(m):
            eta[b] += (t0 * phi[at, b] + t1 * phi[at + 1, b]) + (
                t2 * phi[at + 2, b] + t3 * phi[at + 3, b]
            )
        f += 4
    while f < width:
        slope = theta[first + f]
        at = offset + f - 1
        for b in range(m):
            eta[b] += slope * phi[at, b]
        f += 1


@device
def _n_features(X, channels):
    """Rows of phi that any channel reads, at least 1 + d."""
    _, width, offset, _ = channels
    rows = 1 + X.shape[0]
    for c in range(width.size):
        reach = offset[c] + width[c] - 1
        rows = reach if reach > rows else rows
    return rows


def forward_function(
    gate: Callable[..., None], expert: Callable[..., None] | None, normalised: bool
) -> Callable[..., None]:
    """The block function that fills weights, means, their derivatives and f."""

    @device
    def forward(
        theta, index, width, offset, layout, phi, m, order, eta, w, mean, da, d2a, dg, d2g, f, work
    ):
        k, n_channels = index.shape
        n_gate, first, n_mean, _ = layout
        q_gate, q_mean = n_gate * (n_gate + 1) // 2, n_mean * (n_mean + 1) // 2
        for i in range(k):
            for c in range(n_channels):
                _predict(theta, index[i, c], width[c], offset[c], phi, m, row(eta, c))
            slopes = part(da, i * n_gate, (i + 1) * n_gate)
            second = part(d2a, i * q_gate, (i + 1) * q_gate)
            gate(part(eta, 0, n_gate), phi, m, order, row(w, i), slopes, second)
            if expert is None:
                for b in range(m):
                    mean[i, b] = eta[first, b]
                if order > 0:
                    for b in range(m):
                        dg[i * n_mean, b] = 1.0
                if order > 1:
                    for b in range(m):
                        d2g[i * q_mean, b] = 0.0
            else:
                slopes = part(dg, i * n_mean, (i + 1) * n_mean)
                second = part(d2g, i * q_mean, (i + 1) * q_mean)
                expert(part(eta, first, first + n_mean), m, order, row(mean, i), slopes, second)
        if normalised:
            normalise(w, m, f, work)
        else:
            for i in range(k):
                for b in range(m):
                    w[i, b] = exp(w[i, b])
        for b in range(m):
            f[b] = 0.0
        for i in range(k):
            for b in range(m):
                f[b] += w[i, b] * mean[i, b]

    return forward


@device
def working_rows(k, n_phi, n_channels, n_gate, n_mean, curved):
    """First working rows of what a regression function leaves, and the number of rows.

    After features and predictors there are weights, means, first and second derivatives of gate and
    mean, fitted value and scratch; `curved` atoms have room for second derivatives.
    """
    w = n_phi + n_channels
    mean = w + k
    da = mean + k
    d2a = da + k * n_gate
    dg = d2a + curved * (n_gate * (n_gate + 1) // 2)
    d2g = dg + k * n_mean
    f = d2g + curved * (n_mean * (n_mean + 1) // 2)
    return w, mean, da, d2a, dg, d2g, f, f + 1, f + 2


def forward_loop(
    gate: Callable[..., None], expert: Callable[..., None] | None, normalised: bool
) -> Callable[..., None]:
    """A regression function at a block of samples, called by the other loops of this module.

    It is ``loop(theta, channels, at_rows, n_phi, m, order)`` with the address of working rows,
    which have the features, and get what `working_rows` names.
    """
    forward = forward_function(gate, expert, normalised)

    @compile_code
    def loop(theta, channels, at_rows, n_phi, m, order):
        index, width, offset, layout = channels
        k, n_channels = index.shape
        n_gate, _, n_mean, _ = layout
        at_w, at_mean, at_da, at_d2a, at_dg, at_d2g, at_f, at_h, _ = working_rows(
            k, n_phi, n_channels, n_gate, n_mean, k
        )
        forward(
            theta,
            index,
            width,
            offset,
            layout,
            rows_at(at_rows, 0, n_phi, BLOCK),
            m,
            order,
            rows_at(at_rows, n_phi, n_channels, BLOCK),
            rows_at(at_rows, at_w, k, BLOCK),
            rows_at(at_rows, at_mean, k, BLOCK),
            rows_at(at_rows, at_da, at_d2a - at_da, BLOCK),
            rows_at(at_rows, at_d2a, at_dg - at_d2a, BLOCK),
            rows_at(at_rows, at_dg, at_d2g - at_dg, BLOCK),
            rows_at(at_rows, at_d2g, at_f - at_d2g, BLOCK),
            row(rows_at(at_rows, at_f, 1, BLOCK), 0),
            row(rows_at(at_rows, at_h, 1, BLOCK), 0),
        )

    return loop


_call_forward = call_by_address(types.none)

NO_CHANNELS = np.empty((0, 0), np.int64), *2 * (np.empty(0, np.int64),), (0, 0, 0, 0)
NO_FUNCTION = np.empty(0), NO_CHANNELS, 0, 0, 0, 0
"""Arguments of a `forward_loop`, for their kinds."""
_NO_DATA = np.empty((0, 0)), *2 * (np.empty(0),)
NO_SQUARES = ((0, True), NO_CHANNELS, NO_CHANNELS[1], _NO_DATA), np.empty(0), 1, tuple(NO_SUMS)
"""Arguments of `squares`, for their kinds."""


@device
def _fill_pull(i, c, layout, normalised, scale, m, rows, starts, h):
    """``h = scale df/deta`` of channel c of atom i over a block, from rows that forward leaves."""
    n_gate, first, n_mean, _ = layout
    at_w, at_mean, at_da, _, at_dg, _, at_f, _, _ = starts
    w = at_w + i
    if c < n_gate:
        p, mean = at_da + i * n_gate + c, at_mean + i
        if normalised:
            for b in range(m):
                h[b] = scale[b] * (rows[w, b] * (rows[mean, b] - rows[at_f, b]) * rows[p, b])
        else:
            for b in range(m):
                h[b] = scale[b] * (rows[w, b] * rows[mean, b] * rows[p, b])
    else:
        p = at_dg + i * n_mean + c - first
        for b in range(m):
            h[b] = scale[b] * (rows[w, b] * rows[p, b])


@device(forceinline=False)
def _multiply(one, other, m, out):
    """``out = one other``, of m samples."""
    for b in range(m):
        out[b] = one[b] * other[b]


@device(forceinline=False)
def _add_multiple(one, other, m, out):
    """``out += one other``, of m samples."""
    for b in range(m):
        out[b] += one[b] * other[b]


@device
def _write_rows(h, phi, first, width, offset, shared, at_row, start, m, out):
    """``out = h phi`` in the rows of a channel's coefficients, of m samples from `start` on.

    Where atoms share the coefficients the product is added.
    """
    for q in range(width):
        r = at_row[first + q]
        if r < 0:
            continue
        feature = row(phi, offset + q - 1 if q > 0 else 0)
        samples = part(row(out, r), start, start + m)
        if shared:
            _add_multiple(h, feature, m, samples)
        else:
            _multiply(h, feature, m, samples)


@device
def fill_jacobian(channels, at_row, normalised, scale, start, m, rows, starts, h, jacobian):
    """``scale df/dtheta`` of m samples, in the columns of the Jacobian from `start` on.

    It is made of rows that forward leaves; h is scratch, and none of these.
    """
    index, width, offset, layout = channels
    k, n_channels = index.shape
    for i in range(k):
        for c in range(n_channels):
            first = index[i, c]
            shared = i > 0 and first == index[0, c]
            _fill_pull(i, c, layout, normalised, scale, m, rows, starts, h)
            _write_rows(h, rows, first, width[c], offset[c], shared, at_row, start, m, jacobian)


@device
def _add_products(h, phi, first, width, offset, m, gradient):
    """Add the sums of h with the features of a channel to its coefficients, four at a time."""
    total = 0.0
    for b in range(m):
        total += h[b]
    gradient[first] += total
    f = 1
    while f + 3 < width:
        at = offset + f - 1
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for b in range(m):
            s0 += h[b] * phi[at, b]
            s1 += h[b] * phi[at + 1, b]
            s2 += h[b] * phi[at + 2, b]
            s3 += h[b] * phi[at + 3, b]
        gradient[first + f] += s0
        gradient[first + f + 1] += s1
        gradient[first + f + 2] += s2
        gradient[first + f + 3] += s3
        f += 4
    while f < width:
        at = offset + f - 1
        s0 = 0.0
        for b in range(m):
            s0 += h[b] * phi[at, b]
        gradient[first + f] += s0
        f += 1


@device
def _add_slopes(channels, normalised, scale, m, rows, starts, h, gradient):
    """Add ``sum scale df/dtheta`` of a block to a gradient (P,), as `fill_jacobian` makes it."""
    index, width, offset, layout = channels
    k, n_channels = index.shape
    for i in range(k):
        for c in range(n_channels):
            _fill_pull(i, c, layout, normalised, scale, m, rows, starts, h)
            _add_products(h, rows, index[i, c], width[c], offset[c], m, gradient)


@device
def _starts(channels, n_phi):
    """The `working_rows` of a regression function with second derivatives of all atoms."""
    index, _, _, layout = channels
    k, n_channels = index.shape
    n_gate, _, n_mean, _ = layout
    return working_rows(k, n_phi, n_channels, n_gate, n_mean, k)


@compile_loop
def squares(inputs, theta, order, sums):
    """Minus half the sum of ``w (f - y)^2`` over all samples, and its score (P,) for order 1.

    It is called as `moestat.kernels.cpu.mixture` is.  The inputs are the code, which is the address
    of a `forward_loop` and whether its gate is normalised, the `Places` of the channels'
    coefficients, the row (P,) of the Jacobian of each coefficient or -1 for a pinned one, and the
    data.  Scores of pinned coefficients are 0.
    """
    (at_forward, normalised), channels, at_row, (X, y, weight) = inputs
    gradient = sums[0]
    n_phi = _n_features(X, channels)
    starts = _starts(channels, n_phi)
    _, _, _, _, _, _, at_f, at_h, n_rows = starts
    rows = empty_rows(n_rows + 1, BLOCK)
    phi, made, f, h = part(rows, 0, n_phi), part(rows, 0, at_h), row(rows, at_f), row(rows, at_h)
    pull = row(rows, n_rows)
    value = 0.0
    for j in range(gradient.size):
        gradient[j] = 0.0
    for start in range(0, y.size, BLOCK):
        m = y.size - start if y.size - start < BLOCK else BLOCK
        fill_block(X, start, m, phi)
        _call_forward(at_forward, (theta, channels, start_of(rows), n_phi, m, order))
        block = 0.0
        for b in range(m):
            residual = y[start + b] - f[b]
            pull[b] = weight[start + b] * residual
            block += pull[b] * residual
        value -= 0.5 * block
        if order > 0:
            _add_slopes(channels, normalised, pull, m, made, starts, h, gradient)
    for j in range(gradient.size):
        if at_row[j] < 0:
            gradient[j] = 0.0
    keep(rows)
    return value


@compile_loop
def residual_loop(code, channels, theta, at_row, X, scale, start, order, f, w, jacobian):
    """Regression function, weights of the atoms and Jacobian of a range of samples.

    Code, channels and rows of the Jacobian are those of `squares`; besides there is the factor (n,)
    of each sample.  Outputs for the m samples from `start` on: f (m,), w (k, m), which may have no
    columns, and ``scale df/dtheta`` (rows, at least m) when order is 1.
    """
    at_forward, normalised = code
    n_phi = _n_features(X, channels)
    starts = _starts(channels, n_phi)
    at_w, at_mean, _, _, _, _, at_f, at_h, n_rows = starts
    rows = empty_rows(n_rows, BLOCK)
    phi, made, h = part(rows, 0, n_phi), part(rows, 0, at_h), row(rows, at_h)
    weights, fitted = part(rows, at_w, at_mean), row(rows, at_f)
    for begin in range(0, f.size, BLOCK):
        m = f.size - begin if f.size - begin < BLOCK else BLOCK
        fill_block(X, start + begin, m, phi)
        _call_forward(at_forward, (theta, channels, start_of(rows), n_phi, m, order))
        for b in range(m):
            f[begin + b] = fitted[b]
        if w.shape[1] > 0:
            for i in range(w.shape[0]):
                for b in range(m):
                    w[i, begin + b] = weights[i, b]
        if order > 0:
            factor = scale[start + begin : start + begin + m]
            fill_jacobian(channels, at_row, normalised, factor, begin, m, made, starts, h, jacobian)
    keep(rows)


@device(forceinline=False)
def _inner(one, other, m):
    """Sum of ``one other`` over m samples."""
    total = 0.0
    for b in range(m):
        total += one[b] * other[b]
    return total


@device
def _fill_second(i, c, e, layout, normalised, m, rows, starts, h):
    """``h *= d2f / (d channel c) (d channel e)`` within atom i, for e at most c.

    The second derivatives are, with ``w_i = exp(a_i)``,

        gate, gate        w_i g_i (da_i da_i' + d2a_i)
        gate, expert      w_i da_i dg_i'
        expert, expert    w_i d2g_i

    A normalised gate has ``g_i - f`` in place of ``g_i``.
    """
    n_gate, first, n_mean, _ = layout
    at_w, at_mean, at_da, at_d2a, at_dg, at_d2g, at_f, _, _ = starts
    w, gate, response = at_w + i, at_da + i * n_gate, at_dg + i * n_mean - first
    if c < n_gate:
        mean, pair = at_mean + i, at_d2a + i * (n_gate * (n_gate + 1) // 2) + c * (c + 1) // 2 + e
        for b in range(m):
            level = rows[mean, b] - rows[at_f, b] if normalised else rows[mean, b]
            h[b] *= rows[w, b] * level * (rows[gate + c, b] * rows[gate + e, b] + rows[pair, b])
    elif e < n_gate:
        for b in range(m):
            h[b] *= rows[w, b] * rows[gate + e, b] * rows[response + c, b]
    else:
        g, j = c - first, e - first
        pair = at_d2g + i * (n_mean * (n_mean + 1) // 2) + g * (g + 1) // 2 + j
        for b in range(m):
            h[b] *= rows[w, b] * rows[pair, b]


@compile_loop
def curvature_loop(inputs, gate_row, theta, start, count, jacobian, joined, curvature):
    """What an exact Hessian of a sum of squares is made of, for `count` samples from `start` on.

    The inputs are those of `squares`.  With residuals ``r = sqrt(w) (f - y)`` the loop writes
    ``sqrt(w) df/dtheta`` in the rows of `jacobian`, the residuals in its last row, and adds the
    sums of ``sqrt(w) r`` times the second derivatives within the atoms to the upper triangle of
    `curvature`.

    A normalised gate has second derivatives between atoms: with the vector v of all ``w_i da_i``,
    zero in the channels of experts, they are ``-(v df' + df v')``.  The loop writes ``r v`` in the
    rows of `joined`, of which `gate_row` (P,) has the number of each coefficient, or -1.
    """
    (at_forward, normalised), channels, at_row, (X, y, weight) = inputs
    index, width, offset, layout = channels
    k, n_channels = index.shape
    n_gate = layout[0]
    n_phi = _n_features(X, channels)
    starts = _starts(channels, n_phi)
    at_w, _, at_da, _, _, _, at_f, at_h, n_rows = starts
    rows = empty_rows(n_rows + 4, BLOCK)
    phi, made, f, h = part(rows, 0, n_phi), part(rows, 0, at_h), row(rows, at_f), row(rows, at_h)
    root, residual = row(rows, n_rows), row(rows, n_rows + 1)
    pull, scaled = row(rows, n_rows + 2), row(rows, n_rows + 3)
    residuals = row(jacobian, jacobian.shape[0] - 1)
    for begin in range(0, count, BLOCK):
        m = count - begin if count - begin < BLOCK else BLOCK
        fill_block(X, start + begin, m, phi)
        _call_forward(at_forward, (theta, channels, start_of(rows), n_phi, m, 2))
        for b in range(m):
            root[b] = sqrt(weight[start + begin + b])
            residual[b] = root[b] * (f[b] - y[start + begin + b])
            residuals[begin + b] = residual[b]
            pull[b] = root[b] * residual[b]
        for i in range(k):
            for c in range(n_channels):
                at, n_own, begins = index[i, c], width[c], offset[c]
                shared = i > 0 and at == index[0, c]
                _fill_pull(i, c, layout, normalised, root, m, made, starts, h)
                _write_rows(h, phi, at, n_own, begins, shared, at_row, begin, m, jacobian)
                if normalised and c < n_gate:
                    for b in range(m):
                        h[b] = residual[b] * rows[at_w + i, b] * rows[at_da + i * n_gate + c, b]
                    _write_rows(h, phi, at, n_own, begins, shared, gate_row, begin, m, joined)
                for e in range(c + 1):
                    for b in range(m):
                        h[b] = pull[b]
                    _fill_second(i, c, e, layout, normalised, m, made, starts, h)
                    for q in range(n_own):
                        r = at_row[at + q]
                        if r < 0:
                            continue
                        _multiply(h, row(phi, begins + q - 1 if q > 0 else 0), m, scaled)
                        for p in range(q + 1 if e == c else width[e]):
                            s = at_row[index[i, e] + p]
                            if s >= 0:
                                other = row(phi, offset[e] + p - 1 if p > 0 else 0)
                                curvature[min(r, s), max(r, s)] += _inner(scaled, other, m)
    keep(rows)


@compile_loop
def unfold_loop(at, triangle, matrix):
    """Write an upper triangle in both triangles of the coordinates `at` of a matrix."""
    for i in range(at.size):
        for j in range(i, at.size):
            matrix[at[i], at[j]] = triangle[i, j]
            matrix[at[j], at[i]] = triangle[i, j]


@compile_loop
def descent_loop(code, channels, theta, X, y, weight, order, size, rate, lower, upper):
    """One epoch of stochastic gradient descent on the mean squared residual.

    Code and channels are those of `squares`.  The epoch takes the samples in the given order
    (n,), in batches of `size`; theta (P,) is overwritten, and put back into the box after each
    step.
    """
    at_forward, normalised = code
    n_phi = _n_features(X, channels)
    starts = _starts(channels, n_phi)
    _, _, _, _, _, _, at_f, at_h, n_rows = starts
    rows = empty_rows(n_rows + 1, BLOCK)
    phi, made, f, h = part(rows, 0, n_phi), part(rows, 0, at_h), row(rows, at_f), row(rows, at_h)
    pull = row(rows, n_rows)
    gradient = empty_like(theta, theta.size)
    n = order.size
    for batch in range(0, n, size):
        end = min(batch + size, n)
        gradient[:] = 0.0
        total = 0.0
        for begin in range(batch, end, BLOCK):
            m = min(BLOCK, end - begin)
            fill_quadratic_features(X, order, begin, m, phi)
            _call_forward(at_forward, (theta, channels, start_of(rows), n_phi, m, 1))
            for b in range(m):
                t = order[begin + b]
                pull[b] = weight[t] * (f[b] - y[t])
                total += weight[t]
            _add_slopes(channels, normalised, pull, m, made, starts, h, gradient)
        if total > 0.0:
            step = 2.0 * rate / total
            for j in range(theta.size):
                trial = theta[j] - step * gradient[j]
                theta[j] = min(max(trial, lower[j]), upper[j])
    keep(rows)
