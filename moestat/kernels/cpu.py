"""Loops over the data on the CPU, around the row programmes of one kind of atom.

The numbers of atoms, inputs and classes are run-time values: the inner loops run over samples,
so one compiled loop serves them all at full speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moestat._jit import BLOCK, compile_loop
from moestat._math import log
from moestat.kernels.lanes import LANES
from moestat.kernels.rows import (
    expect,
    fill,
    fill_products,
    join_moments,
    join_shared,
    load,
    padded,
    pairs,
    predict_channel,
    scale_rows,
    scatter_hessian,
    scatter_score,
    select_top,
    sum_curvature,
    sum_products,
    take_shares,
    weigh_slopes,
)
from moestat.kernels.terms import ONES, SHARES, ZEROS
from moestat.kernels.views import empty_like, empty_rows, part, row

__all__ = ["mixture_loop", "response_loop"]

SAMPLES = 96
"""Samples per block at most, a multiple of 32.

With fewer than elsewhere the rows of second derivatives stay in the first cache level, too.
"""


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
        posterior, log_density, score_terms, within, between)`` with theta (P,), the position
        (k, C) and number (C,) of the coefficients of each channel, the `Layout`, X (d, n), y (n,),
        weight (n,), tau (k, n), the highest derivative wanted (0, 1 or 2), the outputs, which are
        overwritten, and the tables of `build_terms`.

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
        log_density, score_terms, within, between,
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
        phi = empty_rows(1 + d, SAMPLES)
        response = empty_like(y, SAMPLES)
        eta = empty_rows(n_channels, SAMPLES)
        pi = empty_rows(k, SAMPLES)
        # Of the channels that only the gate reads, du holds nothing before its last step; the
        # rows after it are of one atom.
        n_da, n_du = k * n_gate, k * n_channels
        slopes = empty_rows(n_da + n_du + n_channels + first, SAMPLES)
        da, du = part(slopes, 0, n_da), part(slopes, n_da, n_da + n_du)
        rest = part(slopes, n_da + n_du, n_da + n_du + n_channels)
        both = part(slopes, n_da + n_du + n_channels, n_da + n_du + n_channels + first)
        seconds = empty_rows(1 + k * (g2 + e2), SAMPLES)
        d2a = part(seconds, 1, 1 + k * g2)
        d2l = part(seconds, 1 + k * g2, 1 + k * (g2 + e2))
        weights = empty_rows(SHARES + 2 * k, SAMPLES)
        share, excess = part(weights, SHARES, SHARES + k), part(weights, SHARES + k, SHARES + 2 * k)
        scratch = empty_rows(5, SAMPLES)
        work = empty_rows(n_work(n_channels, n_mean), SAMPLES)
        psi = empty_rows(padded(n_products), SAMPLES)
        score_sums = empty_rows(score_terms.shape[0], padded(1 + d) * LANES)
        within_sums = empty_rows(within.shape[0], padded(n_products) * LANES)
        between_sums = empty_rows(between.shape[0], padded(n_products) * LANES)
        n_within = within.shape[0] // k
        top = row(scratch, 0)
        total = row(scratch, 1)
        top_prior = row(scratch, 2)
        total_prior = row(scratch, 3)
        w = row(scratch, 4)
        value = 0.0
        fill(1.0, part(phi, 0, 1))
        fill(1.0, part(weights, ONES, ONES + 1))
        fill(0.0, part(weights, ZEROS, ZEROS + 1))
        fill(0.0, part(seconds, 0, 1))
        # Rows that fill up a group of three must not be subnormal numbers: those cost time.
        fill(0.0, psi)
        fill(0.0, score_sums)
        fill(0.0, within_sums)
        fill(0.0, between_sums)
        # Blocks of one length, of which the compiler knows that full vectors divide it; samples of
        # weight 0 fill up the last one.  No samples are no blocks, of any length.
        n_blocks = (n + SAMPLES - 1) // SAMPLES
        size = (n + n_blocks - 1) // n_blocks + 31 >> 5 << 5 if n > 0 else SAMPLES
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
                    part(du, i * n_channels + first, (i + 1) * n_channels),
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
                for b in range(size):
                    excess[i, b] = share[i, b] - pi[i, b]
            sum_products(weights, slopes, weights, seconds, score_terms, psi, size, score_sums)
            if order == 1:
                continue

            # With du = d(a + l), the curvature in the channels of two atoms is
            # pi da pi' da' - tau du tau' du', and in those of one atom
            # tau d2(a + l) - pi d2 a + tau (1 - tau) du du' - pi (1 - pi) da da'.
            # Given responsibilities do not vary: terms in tau tau' are theirs to leave out.
            for i in range(k):
                tau_i, pi_i = row(share, i), row(pi, i)
                a1 = part(da, i * n_gate, (i + 1) * n_gate)
                u1 = part(du, i * n_channels, (i + 1) * n_channels)
                if first < n_gate:
                    a2 = part(d2a, i * g2, (i + 1) * g2)
                    l2 = part(d2l, i * e2, (i + 1) * e2)
                    join_shared(tau_i, pi_i, row(excess, i), a1, a2, first, size, u1, l2)
                weigh_slopes(tau_i, pi_i, complete, a1, size, u1, rest, both)
                terms = part(within, i * n_within, (i + 1) * n_within)
                sums = part(within_sums, i * n_within, (i + 1) * n_within)
                sum_curvature(slopes, slopes, weights, seconds, terms, psi, size, sums)
                scale_rows(a1, size, pi_i)
            sum_products(slopes, slopes, weights, seconds, between, psi, size, between_sums)

        if order > 0:
            gradient = empty_rows(k * n_channels, 1 + d)
            fill(0.0, gradient)
            join_moments(score_terms, score_sums, gradient)
            scatter_score(gradient, index, width, score)
        if order > 1:
            moments = empty_rows(pairs(k * n_channels), n_products)
            fill(0.0, moments)
            join_moments(within, within_sums, moments)
            join_moments(between, between_sums, moments)
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
