"""Loops over the data on the CPU, around the row programmes of one kind of atom.

The numbers of atoms, inputs and classes are run-time values: the inner loops run over samples,
so one compiled loop serves them all at full speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moestat._jit import BLOCK, compile_loop
from moestat._math import log
from moestat.kernels.rows import (
    dot,
    expect,
    fill_features,
    fill_products,
    padded,
    predict_channel,
    scale_rows,
    scatter_hessian,
    scatter_score,
    select_top,
    take_shares,
    tilt,
)
from moestat.kernels.views import part, row

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
        phi = np.empty((1 + d, BLOCK))
        eta = np.empty((n_channels, BLOCK))
        pi = np.empty((k, BLOCK))
        share = np.empty((k, BLOCK))
        da = np.empty((k * n_gate, BLOCK))
        d2a = np.empty((k * g2, BLOCK))
        dl = np.empty((k * n_expert, BLOCK))
        d2l = np.empty((k * e2, BLOCK))
        # d(a + l) and da of every channel, split by the atom's share into its part and the rest.
        t = np.empty((k * n_channels, BLOCK))
        t_rest = np.empty((n_channels, BLOCK))
        g = np.empty((k * n_channels, BLOCK))
        g_rest = np.empty((n_gate, BLOCK))
        scratch = np.empty((6, BLOCK))
        work = np.empty((n_work(n_channels, n_mean), BLOCK))
        n_rows = k * n_channels
        psi = np.zeros((padded(n_products), BLOCK))
        gradient = np.zeros((n_rows, padded(1 + d)))
        n_pairs = n_rows * (n_rows + 1) // 2 if order > 1 else 0
        moments = np.zeros((n_pairs, padded(n_products)))
        # A constant channel times a channel in x uses the first products only.
        n_used = np.empty((n_channels, n_channels), dtype=np.int64)
        for c in range(n_channels):
            for e in range(n_channels):
                both_vary = width[c] > 1 and width[e] > 1
                n_used[c, e] = n_products if both_vary else max(width[c], width[e])
        value = 0.0

        for start in range(0, n, BLOCK):
            m = min(BLOCK, n - start)
            fill_features(X, start, m, phi)
            for i in range(k):
                for c in range(n_channels):
                    predict_channel(theta, index[i, c], width[c], phi, m, row(eta, c))
                atom(
                    eta,
                    layout,
                    phi,
                    part(y, start, start + m),
                    m,
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
                select_top(pi, n_active, m)
            for i in range(k):
                for b in range(m):
                    share[i, b] += pi[i, b]

            # log p = top - top_prior + log(total / total_prior): one logarithm and one division
            # for the two log-sum-exps and the inverses of their sums.
            top = row(scratch, 0)
            total = row(scratch, 1)
            top_prior = row(scratch, 2)
            total_prior = row(scratch, 3)
            excess = row(scratch, 4)
            h = row(scratch, 5)
            if complete:
                expect(share, tau, start, sparse, m, top, total)
            else:
                take_shares(share, m, top, total)
            take_shares(pi, m, top_prior, total_prior)
            for b in range(m):
                inverse = 1.0 / (total[b] * total_prior[b])
                ratio = total[b] * (total[b] * inverse)
                top[b] += log(ratio) - top_prior[b]
                # Now the inverses.
                total[b], total_prior[b] = total_prior[b] * inverse, total[b] * inverse
            scale_rows(pi, m, total_prior)
            if not complete:
                scale_rows(share, m, total)
            if by_row:
                for b in range(m):
                    log_density[start + b] = top[b]
                for i in range(k):
                    for b in range(m):
                        prior[i, start + b] = pi[i, b]
                    for b in range(m):
                        posterior[i, start + b] = share[i, b]
                continue
            w = part(weight, start, start + m)
            block_value = 0.0
            for b in range(m):
                block_value += w[b] * top[b]
            value += block_value
            if order == 0:
                continue

            fill_products(phi, w, 1 + d if order > 1 else 1, m, psi)
            pair = 0
            for i in range(k):
                tau_i = row(share, i)
                a1 = part(da, i * n_gate, (i + 1) * n_gate)
                l1 = part(dl, i * n_expert, (i + 1) * n_expert)
                for b in range(m):
                    excess[b] = share[i, b] - pi[i, b]
                # The score of a channel is tau d(a + l) - pi da.
                for c in range(n_channels):
                    out = row(gradient, i * n_channels + c)
                    if c < n_gate:
                        dot(1.0, excess, row(a1, c), psi, width[c], m, out)
                    if c >= first:
                        dot(1.0, tau_i, row(l1, c - first), psi, width[c], m, out)
                if order == 1:
                    continue

                # With du = d(a + l), the curvature in the channels of two atoms is
                # pi da pi' da' - tau du tau' du', and in those of one atom
                # tau d2(a + l) - pi d2 a + tau (1 - tau) du du' - pi (1 - pi) da da'.
                # Given responsibilities do not vary: terms in tau tau' are theirs to leave out.
                for c in range(n_channels):
                    p = i * n_channels + c
                    if c < n_gate:
                        tilt(row(pi, i), row(a1, c), m, row(g, p), row(g_rest, c))
                    slope = row(a1, c) if c < n_gate else row(l1, c - first)
                    if first <= c < n_gate:
                        for b in range(m):
                            h[b] = a1[c, b] + l1[c - first, b]
                        slope = h
                    if not complete:
                        tilt(tau_i, slope, m, row(t, p), row(t_rest, c))
                for c in range(n_channels):
                    p = i * n_channels + c
                    for q in range(p + 1):
                        own = q >= i * n_channels
                        sign = 1.0 if own else -1.0
                        e = q % n_channels
                        used = n_used[c, e]
                        out = row(moments, pair)
                        pair += 1
                        if not complete:
                            other = row(t_rest, e) if own else row(t, q)
                            dot(sign, row(t, p), other, psi, used, m, out)
                        if c < n_gate and e < n_gate:
                            other = row(g_rest, e) if own else row(g, q)
                            dot(-sign, row(g, p), other, psi, used, m, out)
                        if own and c < n_gate:
                            second = row(d2a, i * g2 + c * (c + 1) // 2 + e)
                            dot(1.0, excess, second, psi, used, m, out)
                        if own and e >= first:
                            r = c - first
                            second = row(d2l, i * e2 + r * (r + 1) // 2 + e - first)
                            dot(1.0, tau_i, second, psi, used, m, out)

        if order > 0:
            scatter_score(gradient, index, width, score)
        if order > 1:
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
        d1 = np.empty((n_channels, BLOCK))
        d2 = np.empty((n_channels * (n_channels + 1) // 2, BLOCK))
        for start in range(0, n, BLOCK):
            m = min(BLOCK, n - start)
            expert(eta[:, start : start + m], m, 0, part(mean, start, start + m), d1, d2)

    return loop
