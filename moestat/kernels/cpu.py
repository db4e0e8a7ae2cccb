"""Loops over the data on the CPU, around the row programmes of one kind of atom.

The numbers of atoms, inputs and classes are run-time values: the inner loops run over samples,
so one compiled loop serves them all at full speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moestat._jit import BLOCK, compile_loop
from moestat._math import log
from moestat.kernels.rows import (
    add_gate_part,
    dot,
    expect,
    fill,
    fill_products,
    join_moments,
    load,
    multiply,
    multiply_add,
    padded,
    pairs,
    predict_channel,
    scale_rows,
    scatter_hessian,
    scatter_score,
    select_top,
    spread,
    sum_differences,
    sum_products,
    take_shares,
)
from moestat.kernels.views import empty_like, empty_rows, part, row

__all__ = ["mixture_loop", "response_loop"]


def mixture_loop(atom: Callable[..., None], n_work: Callable[..., int], sparse: bool) -> Any:
    """A log-likelihood with score and Hessian, or the E-step, in one pass over the data.

    One loop does it all, because compiling is what a first fit waits for.

    Parameters
    ----------
    atom, n_work : callable
        Block function of an atom and the scratch rows it needs, from `build_atom`.
    sparse : bool
        Whether only the atoms of largest log-score take part at each x.

    Returns
    -------
    callable
        ``loop(theta, index, width, layout, X, y, weight, tau, order, score, hessian, prior,
        posterior, log_density)`` with theta (P,), the position (k, C) and number (C,) of the
        coefficients of each channel, the `Layout`, X (d, n), y (n,), weight (n,), tau (k, n), the
        highest derivative wanted (0, 1 or 2) and the outputs, which are overwritten.

        Without columns in tau the value is the observed-data log-likelihood ``sum w log p``.
        With given responsibilities tau it is the complete-data one,
        ``Q = sum w (sum_i tau_i (a_i + l_i) - LSE(a))``, whose maximiser is the M-step of EM.
        The loop returns the value and fills score (P,) and hessian (P, P) up to the order.

        With rows in log_density (n,), the loop fills it, prior (k, n) and posterior (k, n), and
        neither reads the weights nor returns a value.
    """

    @compile_loop
    def loop(
        theta, index, width, layout, X, y, weight, tau, order, score, hessian, prior, posterior,
        log_density,
    ):  # fmt: skip
        k, n_channels = index.shape
        d, n = X.shape
        n_gate, first, n_mean, n_active = layout
        n_expert = n_channels - first
        complete = tau.shape[1] > 0
        by_row = log_density.size > 0
        g2 = n_gate * (n_gate + 1) // 2
        e2 = n_expert * (n_expert + 1) // 2
        n_products = (1 + d) * (2 + d) // 2
        phi = empty_rows(1 + d, BLOCK)
        response = empty_like(y, BLOCK)
        eta = empty_rows(n_channels, BLOCK)
        pi = empty_rows(k, BLOCK)
        share = empty_rows(k, BLOCK)
        da = empty_rows(k * n_gate, BLOCK)
        d2a = empty_rows(k * g2, BLOCK)
        dl = empty_rows(k * n_expert, BLOCK)
        d2l = empty_rows(k * e2, BLOCK)
        scratch = empty_rows(9, BLOCK)
        work = empty_rows(n_work(n_channels, n_mean), BLOCK)
        psi = empty_rows(padded(n_products), BLOCK)
        gradient = empty_rows(k * n_channels, padded(1 + d))
        # The rows of second derivatives are none where they are not wanted.
        n_rows = k * n_channels if order > 1 else 0
        n_pairs = padded(pairs(n_channels)) if order > 1 else 0
        t = empty_rows(padded(n_rows), BLOCK)
        g = empty_rows(padded(n_rows), BLOCK)
        du = empty_rows(n_channels, BLOCK)
        curvature = empty_rows(n_pairs, BLOCK)
        across = empty_rows(n_rows * padded(n_rows), padded(n_products))
        within = empty_rows(k * n_pairs, padded(n_products))
        top = row(scratch, 0)
        total = row(scratch, 1)
        top_prior = row(scratch, 2)
        total_prior = row(scratch, 3)
        excess = row(scratch, 4)
        joint = row(scratch, 5)
        varied = row(scratch, 6)
        both = row(scratch, 7)
        w = row(scratch, 8)
        value = 0.0
        fill(1.0, part(phi, 0, 1))
        # Rows that fill up a group of three must not be subnormal numbers: those cost time.
        fill(0.0, psi)
        fill(0.0, t)
        fill(0.0, g)
        fill(0.0, curvature)
        fill(0.0, gradient)
        fill(0.0, across)
        fill(0.0, within)
        # Blocks of one length, of which the compiler knows that full vectors divide it; samples of
        # weight 0 fill up the last one.  No samples are no blocks, of any length.
        n_blocks = (n + BLOCK - 1) // BLOCK
        size = (n + n_blocks - 1) // n_blocks + 31 >> 5 << 5 if n > 0 else BLOCK
        for start in range(0, n, size):
            m = n - start if n - start < size else size
            for f in range(d):
                load(part(row(X, f), start, start + m), m, size, row(phi, 1 + f))
            load(part(y, start, start + m), m, size, response)
            for i in range(k):
                for c in range(n_channels):
                    predict_channel(theta, index[i, c], width[c], phi, size, row(eta, c))
                atom(
                    eta,
                    layout,
                    phi,
                    response,
                    size,
                    order,
                    work,
                    row(pi, i),
                    part(da, i * n_gate, (i + 1) * n_gate),
                    part(d2a, i * g2, (i + 1) * g2),
                    row(share, i),
                    part(dl, i * n_expert, (i + 1) * n_expert),
                    part(d2l, i * e2, (i + 1) * e2),
                )
            if sparse:
                select_top(pi, n_active, size)
            for i in range(k):
                for b in range(size):
                    share[i, b] += pi[i, b]

            # log p = top - top_prior + log(total / total_prior): one logarithm and one division
            # for the two log-sum-exps and the inverses of their sums.
            if complete:
                fill(0.0, part(scratch, 0, 1))
                fill(1.0, part(scratch, 1, 2))
                expect(share, tau, start, sparse, m, top, total)
                for i in range(k):
                    for b in range(m, size):
                        share[i, b] = 0.0
            else:
                take_shares(share, size, top, total)
            take_shares(pi, size, top_prior, total_prior)
            for b in range(size):
                inverse = 1.0 / (total[b] * total_prior[b])
                ratio = total[b] * (total[b] * inverse)
                top[b] += log(ratio) - top_prior[b]
                # Now the inverses.
                total[b], total_prior[b] = total_prior[b] * inverse, total[b] * inverse
            scale_rows(pi, size, total_prior)
            if not complete:
                scale_rows(share, size, total)
            if by_row:
                for b in range(m):
                    log_density[start + b] = top[b]
                for i in range(k):
                    for b in range(m):
                        prior[i, start + b] = pi[i, b]
                    for b in range(m):
                        posterior[i, start + b] = share[i, b]
                continue
            load(part(weight, start, start + m), m, size, w)
            for b in range(m, size):
                w[b] = 0.0
            block_value = 0.0
            for b in range(size):
                block_value += w[b] * top[b]
            value += block_value
            if order == 0:
                continue

            fill_products(phi, w, 1 + d if order > 1 else 1, size, psi)
            for i in range(k):
                tau_i = row(share, i)
                a1 = part(da, i * n_gate, (i + 1) * n_gate)
                l1 = part(dl, i * n_expert, (i + 1) * n_expert)
                for b in range(size):
                    excess[b] = share[i, b] - pi[i, b]
                # The score of a channel is tau d(a + l) - pi da.
                for c in range(n_channels):
                    out = row(gradient, i * n_channels + c)
                    if c < n_gate:
                        dot(excess, row(a1, c), psi, width[c], size, out)
                    if c >= first:
                        dot(tau_i, row(l1, c - first), psi, width[c], size, out)
                if order == 1:
                    continue

                # With du = d(a + l), the curvature in the channels of two atoms is
                # pi da pi' da' - tau du tau' du', and in those of one atom
                # tau d2(a + l) - pi d2 a + tau (1 - tau) du du' - pi (1 - pi) da da'.
                # Given responsibilities do not vary: terms in tau tau' are theirs to leave out.
                own = i * n_channels
                spread(tau_i, row(pi, i), excess, complete, size, joint, both)
                for c in range(n_channels):
                    p = own + c
                    slope = row(a1, c) if c < n_gate else row(l1, c - first)
                    if first <= c < n_gate:
                        for b in range(size):
                            du[c, b] = a1[c, b] + l1[c - first, b]
                        slope = row(du, c)
                    # A constant channel times a channel in x uses the first products only.
                    used = n_products if width[c] > 1 else 1 + d
                    sums = part(across, p * padded(n_rows), (p + 1) * padded(n_rows))
                    if not complete:
                        multiply(tau_i, slope, size, row(t, p))
                    if c < n_gate:
                        multiply(row(pi, i), row(a1, c), size, row(g, p))
                        sum_differences(row(t, p), t, row(g, p), g, own, psi, used, size, sums)
                    elif not complete:
                        sum_products(row(t, p), t, excess, t, own, psi, used, size, sums)
                    multiply(both if c < first else joint, slope, size, varied)
                    for e in range(c + 1):
                        h = row(curvature, c * (c + 1) // 2 + e)
                        other = row(a1, e) if e < first else row(l1, e - first)
                        if first <= e < n_gate:
                            other = row(du, e)
                        second = row(d2a, i * g2 + c * (c + 1) // 2 + e if c < n_gate else 0)
                        r = c - first
                        bend = row(d2l, i * e2 + r * (r + 1) // 2 + e - first if e >= first else 0)
                        if c < first:
                            multiply_add(varied, other, excess, second, size, h)
                        elif e < first:
                            multiply(varied, other, size, h)
                        else:
                            multiply_add(varied, other, tau_i, bend, size, h)
                        if first <= c < n_gate:
                            add_gate_part(
                                row(pi, i), row(a1, c), row(a1, e), excess, second, size, h
                            )
                sums = part(within, i * n_pairs, (i + 1) * n_pairs)
                sum_products(
                    row(phi, 0), curvature, excess, t, n_pairs, psi, n_products, size, sums
                )

        if order > 0:
            scatter_score(gradient, index, width, score)
        if order > 1:
            moments = empty_rows(pairs(n_rows), padded(n_products))
            join_moments(within, across, k, n_channels, moments)
            scatter_hessian(moments, index, width, 1 + d, hessian)
        return value

    return loop


def response_loop(expert: Callable[..., None]) -> Any:
    """Mean of an expert that is not linear.

    Returns
    -------
    callable
        ``loop(eta, mean)`` with the expert's channels eta (C, n) and the output mean (n,).
    """

    @compile_loop
    def loop(eta, mean):
        n_channels, n = eta.shape
        d1 = empty_rows(n_channels, BLOCK)
        d2 = empty_rows(pairs(n_channels), BLOCK)
        for start in range(0, n, BLOCK):
            m = n - start if n - start < BLOCK else BLOCK
            expert(eta[:, start : start + m], m, 0, part(mean, start, start + m), d1, d2)

    return loop
