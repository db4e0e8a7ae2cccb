"""Loops over the data on the CPU, around the row programmes of one kind of atom.

The numbers of atoms, inputs and classes are run-time values: the inner loops run over samples,
so one compiled loop serves them all at full speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moestat._jit import BLOCK, compile_loop
from moestat.kernels.rows import (
    accumulate_products,
    accumulate_syrk,
    fill_features,
    fill_products,
    normalise,
    predict_channel,
    scatter_gram,
    scatter_local,
    select_top,
)

__all__ = ["derivative_loop", "response_loop", "rowwise_loop"]


def derivative_loop(
    atom: Callable[..., None], n_work: Callable[..., int], sparse: bool, complete: bool
) -> Any:
    """Value, score and Hessian of a log-likelihood in one pass over the data.

    Parameters
    ----------
    atom, n_work : callable
        Block function of an atom and the scratch rows it needs, from `build_atom`.
    sparse : bool
        Whether only the atoms of largest log-score take part at each x.
    complete : bool
        False: the observed-data log-likelihood ``sum w log p``.  True: the complete-data one,
        ``Q = sum w (sum_i tau_i (a_i + l_i) - LSE(a))`` for given responsibilities tau, whose
        maximiser is the M-step of EM.

    Returns
    -------
    callable
        ``loop(theta, index, width, layout, X, y, weight, tau, order, score, hessian)`` with
        theta (P,), the position (k, C) and number (C,) of the coefficients of each channel, the
        `Layout`, X (d, n), y (n,), weight (n,), tau (k, n) (read only when `complete`), the
        highest derivative wanted (0, 1 or 2) and the outputs score (P,) and hessian (P, P),
        which are overwritten.  It returns the value.
    """

    @compile_loop
    def loop(theta, index, width, layout, X, y, weight, tau, order, score, hessian):
        k, n_channels = index.shape
        d, n = X.shape
        n_gate, first, n_mean, n_active = layout
        n_expert = n_channels - first
        g2 = n_gate * (n_gate + 1) // 2
        e2 = n_expert * (n_expert + 1) // 2
        n_products = (1 + d) * (2 + d) // 2
        phi = np.empty((1 + d, BLOCK))
        psi = np.empty((n_products, BLOCK))
        eta = np.empty((n_channels, BLOCK))
        prior = np.empty((k, BLOCK))
        posterior = np.empty((k, BLOCK))
        da = np.empty((k * n_gate, BLOCK))
        d2a = np.empty((k * g2, BLOCK))
        dl = np.empty((k * n_expert, BLOCK))
        d2l = np.empty((k * e2, BLOCK))
        lse_prior = np.empty(BLOCK)
        lse_posterior = np.empty(BLOCK)
        h = np.empty(BLOCK)
        root = np.empty(BLOCK)
        work = np.empty((n_work(n_channels, n_mean), BLOCK))

        # A row of the Gram matrices is one coefficient of one channel of one atom.
        n_rows = 0
        n_gate_rows = 0
        for c in range(n_channels):
            n_rows += k * width[c]
            if c < n_gate:
                n_gate_rows += k * width[c]
        owner = np.empty(n_rows, dtype=np.int64)
        gate_owner = np.empty(n_gate_rows, dtype=np.int64)
        tilted = np.empty((n_rows, BLOCK))
        gated = np.empty((n_gate_rows, BLOCK))
        gram_tilted = np.zeros((n_rows, n_rows))
        gram_gated = np.zeros((n_gate_rows, n_gate_rows))
        local = np.zeros((k, n_channels * (n_channels + 1) // 2, n_products))
        score[:] = 0.0
        value = 0.0

        for start in range(0, n, BLOCK):
            m = min(BLOCK, n - start)
            w = weight[start : start + m]
            fill_features(X, start, m, phi)
            for i in range(k):
                for c in range(n_channels):
                    predict_channel(theta, index[i, c], width[c], phi, m, eta[c])
                atom(
                    eta,
                    layout,
                    phi,
                    y[start : start + m],
                    m,
                    order,
                    work,
                    prior[i],
                    da[i * n_gate : (i + 1) * n_gate],
                    d2a[i * g2 : (i + 1) * g2],
                    posterior[i],
                    dl[i * n_expert : (i + 1) * n_expert],
                    d2l[i * e2 : (i + 1) * e2],
                )
            if sparse:
                select_top(prior, n_active, m)
            for i in range(k):
                for b in range(m):
                    posterior[i, b] += prior[i, b]
            if complete:
                for b in range(m):
                    lse_posterior[b] = 0.0
                for i in range(k):
                    for b in range(m):
                        share = tau[i, start + b]
                        # An atom that takes no part has the score -inf and the share 0.
                        if not sparse or share > 0.0:
                            lse_posterior[b] += share * posterior[i, b]
                    for b in range(m):
                        posterior[i, b] = tau[i, start + b]
            else:
                normalise(posterior, m, lse_posterior, h)
            normalise(prior, m, lse_prior, h)
            block_value = 0.0
            for b in range(m):
                block_value += w[b] * (lse_posterior[b] - lse_prior[b])
            value += block_value
            if order == 0:
                continue

            for i in range(k):
                for c in range(n_channels):
                    p = i * n_gate + c
                    r = i * n_expert + c - first
                    if c < n_gate and c >= first:
                        for b in range(m):
                            h[b] = posterior[i, b] * (da[p, b] + dl[r, b]) - prior[i, b] * da[p, b]
                        for b in range(m):
                            h[b] *= w[b]
                    elif c < n_gate:
                        for b in range(m):
                            h[b] = w[b] * (posterior[i, b] - prior[i, b]) * da[p, b]
                    else:
                        for b in range(m):
                            h[b] = w[b] * posterior[i, b] * dl[r, b]
                    at = index[i, c]
                    accumulate_products(h, phi, width[c], m, score[at : at + width[c]])
            if order == 1:
                continue

            # sqrt(w) tau_i d(a_i + l_i) and sqrt(w) pi_i d a_i, whose Gram matrices are the
            # products of means in Cov_tau and Cov_pi.
            fill_products(phi, m, psi)
            for b in range(m):
                root[b] = np.sqrt(w[b])
            r = 0
            s = 0
            for i in range(k):
                for c in range(n_channels):
                    p = i * n_gate + c
                    q = i * n_expert + c - first
                    for f in range(width[c]):
                        if c < n_gate:
                            for b in range(m):
                                gated[s, b] = root[b] * phi[f, b] * da[p, b] * prior[i, b]
                            gate_owner[s] = index[i, c] + f
                            s += 1
                        if complete:
                            continue
                        for b in range(m):
                            h[b] = root[b] * phi[f, b] * posterior[i, b]
                        if c < n_gate and c >= first:
                            for b in range(m):
                                tilted[r, b] = h[b] * (da[p, b] + dl[q, b])
                        elif c < n_gate:
                            for b in range(m):
                                tilted[r, b] = h[b] * da[p, b]
                        else:
                            for b in range(m):
                                tilted[r, b] = h[b] * dl[q, b]
                        owner[r] = index[i, c] + f
                        r += 1
            accumulate_syrk(gated, m, 1.0, gram_gated)
            if not complete:
                accumulate_syrk(tilted, m, -1.0, gram_tilted)

            # Each atom's own curvature: tau (d2(a + l) + d(a + l) d(a + l)') - pi (d2 a + da da'),
            # without the tau-square when tau is given.
            for i in range(k):
                pair = 0
                for c in range(n_channels):
                    for e in range(c + 1):
                        both_gate = c < n_gate
                        both_expert = e >= first
                        crossed = c >= first and e < n_gate and not complete
                        p = i * n_gate + c
                        q = i * n_gate + e
                        r = i * n_expert + c - first
                        s = i * n_expert + e - first
                        if both_gate:
                            second = i * g2 + c * (c + 1) // 2 + e
                            if complete:
                                for b in range(m):
                                    h[b] = -prior[i, b] * da[p, b] * da[q, b]
                                for b in range(m):
                                    h[b] += (posterior[i, b] - prior[i, b]) * d2a[second, b]
                            else:
                                for b in range(m):
                                    h[b] = d2a[second, b] + da[p, b] * da[q, b]
                                for b in range(m):
                                    h[b] *= posterior[i, b] - prior[i, b]
                        elif both_expert or crossed:
                            for b in range(m):
                                h[b] = 0.0
                        else:
                            pair += 1
                            continue
                        if both_expert:
                            second = i * e2 + (c - first) * (c - first + 1) // 2 + e - first
                            if complete:
                                for b in range(m):
                                    h[b] += posterior[i, b] * d2l[second, b]
                            else:
                                for b in range(m):
                                    h[b] += posterior[i, b] * (d2l[second, b] + dl[r, b] * dl[s, b])
                        if crossed:
                            for b in range(m):
                                h[b] += posterior[i, b] * dl[r, b] * da[q, b]
                        if crossed and both_gate and both_expert:
                            for b in range(m):
                                h[b] += posterior[i, b] * da[p, b] * dl[s, b]
                        for b in range(m):
                            h[b] *= w[b]
                        # A constant channel times a channel in x uses the first products only.
                        used = n_products
                        if min(width[c], width[e]) == 1:
                            used = max(width[c], width[e])
                        accumulate_products(h, psi, used, m, local[i, pair])
                        pair += 1

        if order > 1:
            hessian[:, :] = 0.0
            scatter_local(local, index, width, 1 + d, hessian)
            if n > 0:
                scatter_gram(gram_gated, gate_owner, hessian)
                if not complete:
                    scatter_gram(gram_tilted, owner, hessian)
        return value

    return loop


def rowwise_loop(atom: Callable[..., None], n_work: Callable[..., int], sparse: bool) -> Any:
    """Gate probabilities, responsibilities and log-density of each sample: the E-step.

    Returns
    -------
    callable
        ``loop(theta, index, width, layout, X, y, prior, posterior, log_density)`` with outputs
        prior (k, n), posterior (k, n) and log_density (n,); other arguments as in
        `derivative_loop`.
    """

    @compile_loop
    def loop(theta, index, width, layout, X, y, prior, posterior, log_density):
        k, n_channels = index.shape
        d, n = X.shape
        n_gate, first, n_mean, n_active = layout
        n_expert = n_channels - first
        phi = np.empty((1 + d, BLOCK))
        eta = np.empty((n_channels, BLOCK))
        da = np.empty((n_gate, BLOCK))
        d2a = np.empty((n_gate * (n_gate + 1) // 2, BLOCK))
        dl = np.empty((n_expert, BLOCK))
        d2l = np.empty((n_expert * (n_expert + 1) // 2, BLOCK))
        work = np.empty((n_work(n_channels, n_mean), BLOCK))
        lse_prior = np.empty(BLOCK)
        scratch = np.empty(BLOCK)
        for start in range(0, n, BLOCK):
            m = min(BLOCK, n - start)
            stop = start + m
            fill_features(X, start, m, phi)
            for i in range(k):
                for c in range(n_channels):
                    predict_channel(theta, index[i, c], width[c], phi, m, eta[c])
                atom(
                    eta,
                    layout,
                    phi,
                    y[start:stop],
                    m,
                    0,
                    work,
                    prior[i, start:stop],
                    da,
                    d2a,
                    posterior[i, start:stop],
                    dl,
                    d2l,
                )
            if sparse:
                select_top(prior[:, start:stop], n_active, m)
            for i in range(k):
                for b in range(start, stop):
                    posterior[i, b] += prior[i, b]
            normalise(prior[:, start:stop], m, lse_prior, scratch)
            normalise(posterior[:, start:stop], m, log_density[start:stop], scratch)
            for b in range(m):
                log_density[start + b] -= lse_prior[b]

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
            expert(eta[:, start : start + m], m, 0, mean[start : start + m], d1, d2)

    return loop
