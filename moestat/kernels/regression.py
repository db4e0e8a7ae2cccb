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

from moestat.compiler.jit import BLOCK, compile_loop, device
from moestat.compiler.math import exp
from moestat.kernels.rows import normalise
from moestat.kernels.views import empty_like, empty_rows

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
def _n_features(X, width, offset):
    """Rows of phi that any channel reads, at least 1 + d."""
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
                _predict(theta, index[i, c], width[c], offset[c], phi, m, eta[c])
            slopes = da[i * n_gate : (i + 1) * n_gate]
            gate(eta[:n_gate], phi, m, order, w[i], slopes, d2a[i * q_gate : (i + 1) * q_gate])
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
                slopes = dg[i * n_mean : (i + 1) * n_mean]
                second = d2g[i * q_mean : (i + 1) * q_mean]
                expert(eta[first : first + n_mean], m, order, mean[i], slopes, second)
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
def _fill_pull(i, c, n_gate, first, n_mean, normalised, scale, m, w, mean, f, da, dg, h):
    """``h = scale df/deta`` of channel c of atom i over a block, from what forward leaves."""
    if c < n_gate:
        p = i * n_gate + c
        if normalised:
            for b in range(m):
                h[b] = w[i, b] * (mean[i, b] - f[b]) * da[p, b]
        else:
            for b in range(m):
                h[b] = w[i, b] * mean[i, b] * da[p, b]
    else:
        p = i * n_mean + c - first
        for b in range(m):
            h[b] = w[i, b] * dg[p, b]
    for b in range(m):
        h[b] *= scale[b]


@device
def fill_jacobian(
    index, width, offset, layout, row, normalised, phi, scale, m, w, mean, f, da, dg, h, jacobian
):
    """``scale df/dtheta`` of a block (rows, m), from what forward leaves; h is scratch."""
    k, n_channels = index.shape
    n_gate, first, n_mean, _ = layout
    for i in range(k):
        for c in range(n_channels):
            _fill_pull(i, c, n_gate, first, n_mean, normalised, scale, m, w, mean, f, da, dg, h)
            shared = i > 0 and index[i, c] == index[0, c]
            for q in range(width[c]):
                r = row[index[i, c] + q]
                if r < 0:
                    continue
                at = offset[c] + q - 1 if q > 0 else 0
                out = jacobian[r]
                if shared:
                    for b in range(m):
                        out[b] += h[b] * phi[at, b]
                else:
                    for b in range(m):
                        out[b] = h[b] * phi[at, b]


def residual_loop(
    gate: Callable[..., None], expert: Callable[..., None] | None, normalised: bool
) -> Callable[..., None]:
    """Regression function, weights of the atoms and Jacobian of a range of samples.

    It is ``loop(theta, index, width, offset, layout, row, X, scale, start, order, f, w, jacobian)``
    with theta (P,), the position (k, C), number (C,) and first feature (C,) of the coefficients of
    each channel, the `Layout`, the row (P,) of the Jacobian of each coefficient or -1 for one that
    is left out, X (d, n), and the factor (n,) of each sample.  Outputs for the m samples from
    `start` on: f (m,), w (k, m), which may have no columns, and ``scale df/dtheta`` (rows, at least
    m) when order is 1.
    """
    forward = forward_function(gate, expert, normalised)

    @compile_loop
    def loop(theta, index, width, offset, layout, row, X, scale, start, order, f, w, jacobian):
        k, n_channels = index.shape
        n_gate, _, n_mean, _ = layout
        n_phi = _n_features(X, width, offset)
        phi = empty_rows(n_phi, BLOCK)
        eta = empty_rows(n_channels, BLOCK)
        weights = empty_rows(k, BLOCK)
        mean = empty_rows(k, BLOCK)
        da = empty_rows(k * n_gate, BLOCK)
        d2a = empty_rows(k * n_gate * (n_gate + 1) // 2, BLOCK)
        dg = empty_rows(k * n_mean, BLOCK)
        d2g = empty_rows(k * n_mean * (n_mean + 1) // 2, BLOCK)
        fitted = empty_like(theta, BLOCK)
        h = empty_like(theta, BLOCK)
        for begin in range(0, f.size, BLOCK):
            m = f.size - begin if f.size - begin < BLOCK else BLOCK
            fill_block(X, start + begin, m, phi)
            forward(
                theta,
                index,
                width,
                offset,
                layout,
                phi,
                m,
                order,
                eta,
                weights,
                mean,
                da,
                d2a,
                dg,
                d2g,
                fitted,
                h,
            )
            for b in range(m):
                f[begin + b] = fitted[b]
            if w.shape[1] > 0:
                for i in range(k):
                    for b in range(m):
                        w[i, begin + b] = weights[i, b]
            if order == 0:
                continue
            fill_jacobian(
                index,
                width,
                offset,
                layout,
                row,
                normalised,
                phi,
                scale[start + begin : start + begin + m],
                m,
                weights,
                mean,
                fitted,
                da,
                dg,
                h,
                jacobian[:, begin : begin + m],
            )

    return loop


def channel_loop(
    gate: Callable[..., None], expert: Callable[..., None] | None, normalised: bool
) -> Callable[..., None]:
    """Derivatives of a regression function in the channels of its atoms.

    The first ones are those of the module's text without the feature of x.  The second ones are,
    with ``w_i = exp(a_i)``, zero between atoms, and within one

        gate, gate        w_i g_i (da_i da_i' + d2a_i)
        gate, expert      w_i da_i dg_i'
        expert, expert    w_i d2g_i

    A normalised gate has ``g_i - f`` in place of ``g_i``, and a part that joins the atoms: with
    the vector v of all ``w_i da_i``, zero in the channels of experts, it is
    ``-(v df' + df v')``.

    Returns
    -------
    callable
        ``loop(theta, index, width, offset, layout, X, start, order, f, phi, slope, second, v)``,
        with the outputs for the m samples from `start` on: f (m,), features (at least 1 + d, m),
        slope (k C, m) with the first derivatives in the C channels of each atom, and when order
        is 2 the second derivatives (k C (C + 1) / 2, m) within each atom, the lower triangle row by
        row, and v (k gate's channels, m), which may have no columns.
    """
    forward = forward_function(gate, expert, normalised)

    @compile_loop
    def loop(theta, index, width, offset, layout, X, start, order, f, phi, slope, second, v):
        k, n_channels = index.shape
        n_gate, first, n_mean, _ = layout
        pairs = n_channels * (n_channels + 1) // 2
        q_gate, q_mean = n_gate * (n_gate + 1) // 2, n_mean * (n_mean + 1) // 2
        n_phi = phi.shape[0]
        features = empty_rows(n_phi, BLOCK)
        eta = empty_rows(n_channels, BLOCK)
        weights = empty_rows(k, BLOCK)
        mean = empty_rows(k, BLOCK)
        da = empty_rows(k * n_gate, BLOCK)
        d2a = empty_rows(k * q_gate, BLOCK)
        dg = empty_rows(k * n_mean, BLOCK)
        d2g = empty_rows(k * q_mean, BLOCK)
        fitted = empty_like(theta, BLOCK)
        work = empty_like(theta, BLOCK)
        for begin in range(0, f.size, BLOCK):
            m = f.size - begin if f.size - begin < BLOCK else BLOCK
            fill_block(X, start + begin, m, features)
            for p in range(n_phi):
                for b in range(m):
                    phi[p, begin + b] = features[p, b]
            forward(
                theta,
                index,
                width,
                offset,
                layout,
                features,
                m,
                order,
                eta,
                weights,
                mean,
                da,
                d2a,
                dg,
                d2g,
                fitted,
                work,
            )
            for b in range(m):
                f[begin + b] = fitted[b]
            for i in range(k):
                for b in range(m):
                    work[b] = weights[i, b] * mean[i, b]
                if normalised:
                    for b in range(m):
                        work[b] -= weights[i, b] * fitted[b]
                for c in range(n_channels):
                    out = slope[i * n_channels + c, begin : begin + m]
                    if c < n_gate:
                        p = i * n_gate + c
                        for b in range(m):
                            out[b] = work[b] * da[p, b]
                    else:
                        p = i * n_mean + c - first
                        for b in range(m):
                            out[b] = weights[i, b] * dg[p, b]
                if order < 2:
                    continue
                if v.shape[1] > 0:
                    for p in range(i * n_gate, (i + 1) * n_gate):
                        for b in range(m):
                            v[p, begin + b] = weights[i, b] * da[p, b]
                for c in range(n_channels):
                    for e in range(c + 1):
                        q = c * (c + 1) // 2 + e
                        out = second[i * pairs + q, begin : begin + m]
                        if c < n_gate:
                            p, pair = i * n_gate, i * q_gate + q
                            for b in range(m):
                                out[b] = work[b] * (da[p + c, b] * da[p + e, b] + d2a[pair, b])
                            continue
                        p = i * n_mean + c - first
                        if e < n_gate:
                            for b in range(m):
                                out[b] = weights[i, b] * da[i * n_gate + e, b] * dg[p, b]
                            continue
                        pair = i * q_mean + (c - first) * (c - first + 1) // 2 + e - first
                        for b in range(m):
                            out[b] = weights[i, b] * d2g[pair, b]

    return loop


def descent_loop(
    gate: Callable[..., None], expert: Callable[..., None] | None, normalised: bool
) -> Callable[..., None]:
    """One epoch of stochastic gradient descent on the mean squared residual.

    It is
    ``loop(theta, index, width, offset, layout, X, y, weight, order, size, rate, lower, upper)``:
    the samples in the given order (n,), in batches of `size`; theta (P,) is overwritten, and put
    back into the box after each step.
    """
    forward = forward_function(gate, expert, normalised)

    @compile_loop
    def loop(theta, index, width, offset, layout, X, y, weight, order, size, rate, lower, upper):
        k, n_channels = index.shape
        n_gate, first, n_mean, _ = layout
        n_phi = _n_features(X, width, offset)
        rows = min(size, BLOCK)
        phi = empty_rows(n_phi, rows)
        eta = empty_rows(n_channels, rows)
        weights = empty_rows(k, rows)
        mean = empty_rows(k, rows)
        da = empty_rows(k * n_gate, rows)
        d2a = empty_rows(k * n_gate * (n_gate + 1) // 2, rows)
        dg = empty_rows(k * n_mean, rows)
        d2g = empty_rows(k * n_mean * (n_mean + 1) // 2, rows)
        fitted = empty_like(theta, rows)
        h = empty_like(theta, rows)
        weighted = empty_like(theta, rows)
        gradient = empty_like(theta, theta.size)
        n = order.size
        for batch in range(0, n, size):
            end = min(batch + size, n)
            gradient[:] = 0.0
            total = 0.0
            for begin in range(batch, end, rows):
                m = min(rows, end - begin)
                fill_quadratic_features(X, order, begin, m, phi)
                forward(
                    theta,
                    index,
                    width,
                    offset,
                    layout,
                    phi,
                    m,
                    1,
                    eta,
                    weights,
                    mean,
                    da,
                    d2a,
                    dg,
                    d2g,
                    fitted,
                    h,
                )
                for b in range(m):
                    t = order[begin + b]
                    weighted[b] = weight[t] * (fitted[b] - y[t])
                    total += weight[t]
                for i in range(k):
                    for c in range(n_channels):
                        _fill_pull(
                            i,
                            c,
                            n_gate,
                            first,
                            n_mean,
                            normalised,
                            weighted,
                            m,
                            weights,
                            mean,
                            fitted,
                            da,
                            dg,
                            h,
                        )
                        for q in range(width[c]):
                            at = offset[c] + q - 1 if q > 0 else 0
                            s = 0.0
                            for b in range(m):
                                s += h[b] * phi[at, b]
                            gradient[index[i, c] + q] += s
            if total > 0.0:
                step = 2.0 * rate / total
                for j in range(theta.size):
                    trial = theta[j] - step * gradient[j]
                    theta[j] = min(max(trial, lower[j]), upper[j])

    return loop
