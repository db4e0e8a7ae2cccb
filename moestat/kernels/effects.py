"""Sums over groups whose rows have random effects: ``N(X b, Z D Z' + s^2 I)`` within an expert.

With ``D = L L'``, ``Lambda = Z L`` and ``V = Lambda Lambda' + s^2 I`` the inverse and determinant
of V are those of matrices as small as D: for ``Q = Lambda' Lambda`` and ``N = (s^2 I + Q)^-1``

    B = V^-1 = (I - Lambda N Lambda') / s^2,    log |V| = (m - q) log s^2 + log |s^2 I + Q|.

Source: Lindstrom and Bates (1988), Sec. 3; derivatives: Magnus and Neudecker (1988), Ch. 8 and 15.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from moestat.compiler.jit import compile_loop, device
from moestat.kernels.rows import pairs
from moestat.kernels.views import keep, row

_LOG_2PI = math.log(2.0 * math.pi)


@device(forceinline=False)
def _invert(matrix, q, inverse, factor):
    """Invert a positive definite matrix (q, q) by Cholesky's factor; its log-determinant."""
    top = 0.0
    for i in range(q):
        for j in range(i + 1):
            total = matrix[i, j]
            for g in range(j):
                total -= factor[i, g] * factor[j, g]
            if i == j:
                factor[i, i] = math.sqrt(total)
                top += 2.0 * math.log(factor[i, i])
            else:
                factor[i, j] = total / factor[j, j]
    for c in range(q):
        for i in range(q):
            total = 1.0 if i == c else 0.0
            for g in range(i):
                total -= factor[i, g] * inverse[g, c]
            inverse[i, c] = total / factor[i, i]
        for step in range(q):
            i = q - 1 - step
            total = inverse[i, c]
            for g in range(i + 1, q):
                total -= factor[g, i] * inverse[g, c]
            inverse[i, c] = total / factor[i, i]
    return top


@cache
def products_loop() -> Callable[..., None]:
    """The loop over rows of groups, compiled on first use: all that their densities depend on.

    It is ``loop(begin, m, phi, y, products)`` with the first row of each group, `begin` (G,), of m
    rows, their features phi (w, m) and responses.  It fills `products` (G, w w + w + 1): sums of
    ``phi phi'``, of ``phi y`` and of ``y^2``.
    """

    @compile_loop
    def loop(begin, m, phi, y, products):
        w, n_groups = phi.shape[0], begin.size
        for group in range(n_groups):
            s, e = begin[group], begin[group + 1] if group + 1 < n_groups else m
            for f in range(w):
                for g in range(f + 1):
                    total = 0.0
                    for r in range(s, e):
                        total += phi[f, r] * phi[g, r]
                    products[group, f * w + g] = products[group, g * w + f] = total
                total = 0.0
                for r in range(s, e):
                    total += phi[f, r] * y[r]
                products[group, w * w + f] = total
            total = 0.0
            for r in range(s, e):
                total += y[r] * y[r]
            products[group, w * w + w] = total

    return loop


@cache
def effects_loop() -> Callable[..., None]:
    """The loop over groups with random effects, compiled on first use.

    It is ``loop(theta, coefficients, effects, last, sizes, reference, products, weight, complete,
    order, first_phi, rows, group_values, drawn, chosen, curvature)``.  Channels of an atom are
    those of the gate, the mean, ``log s^2`` and the columns of ``Z L``.  The effects (q,) are
    positions in phi; column j of L has entries at ``effects[j:last[j]]``.  `sizes` (G,) are the
    numbers of rows of the groups; `products_loop` made `products` of the responses less a mean with
    coefficients `reference` (w,).  `first_phi` (w, G) are the features of the first row of each
    group, at which `rows` of `moestat.kernels.groups.atoms_loop` were made; other arguments and
    outputs are those of its `join_loop`.
    """

    @compile_loop
    def loop(
        theta,
        coefficients,
        effects,
        last,
        sizes,
        reference,
        products,
        weight,
        complete,
        order,
        first_phi,
        rows,
        group_values,
        group_slopes,
        chosen,
        curvature,
    ):
        index, width, layout = coefficients
        a, da, d2a = rows[0], rows[1], rows[2]
        prior, posterior, log_density = group_values
        k, n_channels = index.shape
        n_gate = layout[1]
        w, q, size = reference.size, effects.size, curvature.shape[1]
        start = np.zeros(n_channels, np.int64)
        for c in range(1, n_channels):
            start[c] = start[c - 1] + width[c - 1]
        # Coefficients of an atom with a slope: those of the factors are few.
        active, n_active = np.empty(size, np.int64), 0
        for p in range(start[n_gate + 2] if q > 0 else size):
            active[n_active] = p
            n_active += 1
        for j in range(q):
            for f in range(j, last[j]):
                active[n_active] = start[n_gate + 2 + j] + effects[f]
                n_active += 1
        joint = np.empty(k)
        slopes, gate = np.zeros((k, size)), np.zeros((k, size))
        P, product = np.empty((w, q)), np.empty((w, q))
        Q, M, N, factor = np.empty((q, q)), np.empty((q, q)), np.empty((q, q)), np.empty((q, q))
        g_sum, h = np.empty(w), np.empty(q)
        # What the second derivatives of an atom need, with B = V^-1 and a = B r: phi'a, phi'B a,
        # Lambda'a, Lambda'B a, phi'B Lambda, I - N Q, phi'B phi, Lambda'B Lambda.
        c_all, d_all = np.empty((k, w)), np.empty((k, w))
        alpha_all, delta_all = np.empty((k, q)), np.empty((k, q))
        W_all, R_all = np.empty((k, w, q)), np.empty((k, q, q))
        G_all, T_all = np.empty((k, w, w)), np.empty((k, q, q))
        # Means less the reference, logarithms of variances, these, factors, and the second
        # derivatives in the logarithms.
        beta_all, L_all = np.empty((k, w)), np.zeros((k, q, q))
        logs, variance, bend_all = np.empty(k), np.empty(k), np.empty(k)
        for i in range(k):
            for f in range(w):
                beta_all[i, f] = theta[index[i, n_gate] + f] - reference[f]
            logs[i] = theta[index[i, n_gate + 1]]
            variance[i] = math.exp(logs[i])
            for j in range(q):
                for f in range(j, last[j]):
                    L_all[i, f, j] = theta[index[i, n_gate + 2 + j] + effects[f]]
        n_groups = sizes.size
        for group in range(n_groups):
            n, S = sizes[group], row(products, group)
            top = below = -1e300
            for i in range(k):
                t, s2, L, beta = logs[i], variance[i], L_all[i], row(beta_all, i)
                squares = S[w * w + w]
                for f in range(w):
                    total = S[w * w + f]
                    for g in range(w):
                        total -= S[f * w + g] * beta[g]
                    g_sum[f] = total
                    squares -= beta[f] * (total + S[w * w + f])
                for j in range(q):
                    total = 0.0
                    for f in range(j, last[j]):
                        total += L[f, j] * g_sum[effects[f]]
                    h[j] = total
                    for f in range(w):
                        total = 0.0
                        for g in range(j, last[j]):
                            total += S[f * w + effects[g]] * L[g, j]
                        P[f, j] = total
                for j in range(q):
                    for g in range(q):
                        total = 0.0
                        for f in range(j, last[j]):
                            total += L[f, j] * P[effects[f], g]
                        Q[j, g] = total
                for j in range(q):
                    for g in range(q):
                        M[j, g] = 0.5 * (Q[j, g] + Q[g, j]) + (s2 if j == g else 0.0)
                determinant = _invert(M, q, N, factor) + (n - q) * t
                inside = 0.0
                for j in range(q):
                    for g in range(q):
                        inside += h[j] * N[j, g] * h[g]
                ra = (squares - inside) / s2
                joint[i] = a[i, group] - 0.5 * (n * _LOG_2PI + determinant + ra)
                top = max(top, joint[i])
                below = max(below, a[i, group])
                if order == 0:
                    continue
                c_own, alpha = c_all[i], row(alpha_all, i)
                W, R, T = W_all[i], R_all[i], row(T_all, i)
                for f in range(w):
                    total = g_sum[f]
                    for j in range(q):
                        product[f, j] = 0.0
                        for g in range(q):
                            product[f, j] += P[f, g] * N[g, j]
                        total -= product[f, j] * h[j]
                    c_own[f] = total / s2
                trace = second = 0.0
                for j in range(q):
                    for g in range(q):
                        total = 0.0
                        for f in range(q):
                            total += N[j, f] * Q[f, g]
                        R[j, g] = (1.0 if j == g else 0.0) - total
                for j in range(q):
                    trace += 1.0 - R[j, j]
                    for g in range(q):
                        remainder = (1.0 if j == g else 0.0) - R[j, g]
                        second += remainder * ((1.0 if j == g else 0.0) - R[g, j])
                for f in range(w):
                    for j in range(q):
                        total = 0.0
                        for g in range(q):
                            total += P[f, g] * R[g, j]
                        W[f, j] = total / s2
                for j in range(q):
                    total = 0.0
                    for f in range(j, last[j]):
                        total += L[f, j] * c_own[effects[f]]
                    alpha[j] = total
                inside = 0.0
                for j in range(q):
                    for g in range(q):
                        inside += h[j] * N[j, g] * alpha[g]
                aa, trace_1 = (ra - inside) / s2, (n - trace) / s2
                at = start[n_gate]
                for f in range(w):
                    slopes[i, at + f] = c_own[f]
                slopes[i, start[n_gate + 1]] = -0.5 * s2 * (trace_1 - aa)
                for j in range(q):
                    at = start[n_gate + 2 + j]
                    for g in range(j, last[j]):
                        f = effects[g]
                        slopes[i, at + f] = c_own[f] * alpha[j] - W[f, j]
                if order == 1:
                    continue
                d_own, delta, G = d_all[i], delta_all[i], row(G_all, i)
                inside = 0.0
                for j in range(q):
                    for g in range(q):
                        inside += alpha[j] * N[j, g] * alpha[g]
                aBa, trace_2 = (aa - inside) / s2, (n - 2.0 * trace + second) / (s2 * s2)
                bend_all[i] = s2 * s2 * (0.5 * trace_2 - aBa) - 0.5 * s2 * (trace_1 - aa)
                for f in range(w):
                    total = c_own[f]
                    for j in range(q):
                        total -= product[f, j] * alpha[j]
                    d_own[f] = total / s2
                    for g in range(f + 1):
                        total = S[f * w + g]
                        for j in range(q):
                            total -= product[f, j] * P[g, j]
                        G[f, g] = G[g, f] = total / s2
                for j in range(q):
                    total = 0.0
                    for f in range(j, last[j]):
                        total += L[f, j] * d_own[effects[f]]
                    delta[j] = total
                    for g in range(q):
                        total = 0.0
                        for f in range(j, last[j]):
                            total += L[f, j] * W[effects[f], g]
                        T[j, g] = total
            total = share = value = 0.0
            for i in range(k):
                prior[i, group] = math.exp(a[i, group] - below)
                share += prior[i, group]
                if complete:
                    known = posterior[i, group]
                    value += known * joint[i] if known > 0.0 else 0.0
                else:
                    posterior[i, group] = math.exp(joint[i] - top)
                    total += posterior[i, group]
            for i in range(k):
                prior[i, group] /= share
                if not complete:
                    posterior[i, group] /= total
            log_density[group] = (value if complete else top + math.log(total)) - below
            log_density[group] -= math.log(share)
            if order == 0:
                continue
            for p in range(group_slopes.shape[1]):
                group_slopes[group, p] = chosen[group, p] = 0.0
            for i in range(k):
                for c in range(n_gate):
                    for f in range(width[c]):
                        chance = da[i * n_gate + c, group] * first_phi[f, group]
                        gate[i, start[c] + f] = slopes[i, start[c] + f] = chance
                        chosen[group, index[i, c] + f] += prior[i, group] * chance
                for c in range(n_channels):
                    for f in range(width[c]):
                        group_slopes[group, index[i, c] + f] += (
                            posterior[i, group] * slopes[i, start[c] + f]
                        )
            if order == 1:
                continue
            for i in range(k):
                posterior_weight, prior_weight = (
                    weight[group] * posterior[i, group],
                    weight[group] * prior[i, group],
                )
                up = 0.0 if complete else posterior_weight
                for p in range(n_active):
                    term = up * slopes[i, active[p]]
                    for r in range(p + 1):
                        curvature[i, active[p], active[r]] += term * slopes[i, active[r]]
                for c in range(n_gate):
                    for g in range(c + 1):
                        bend = weight[group] * (posterior[i, group] - prior[i, group])
                        bend *= d2a[i * pairs(n_gate) + pairs(c) + g, group]
                        for f in range(width[c]):
                            for j in range(width[g]):
                                p, r = start[c] + f, start[g] + j
                                term = bend * first_phi[f, group] * first_phi[j, group]
                                term -= prior_weight * gate[i, p] * gate[i, r]
                                if g < c or j <= f:
                                    curvature[i, p, r] += term
                s2, c_own, d_own = variance[i], c_all[i], row(d_all, i)
                alpha, delta, W, R = alpha_all[i], delta_all[i], W_all[i], row(R_all, i)
                G, T = G_all[i], row(T_all, i)
                mean, spread = start[n_gate], start[n_gate + 1]
                for f in range(w):
                    for g in range(f + 1):
                        curvature[i, mean + f, mean + g] -= posterior_weight * G[f, g]
                    curvature[i, spread, mean + f] -= posterior_weight * s2 * d_own[f]
                curvature[i, spread, spread] += posterior_weight * bend_all[i]
                for j in range(q):
                    for u in range(j, last[j]):
                        f = effects[u]
                        at = start[n_gate + 2 + j] + f
                        for g in range(w):
                            term = G[g, f] * alpha[j] + W[g, j] * c_own[f]
                            curvature[i, at, mean + g] -= posterior_weight * term
                        total = -s2 * (d_own[f] * alpha[j] + delta[j] * c_own[f])
                        for g in range(q):
                            total += W[f, g] * R[g, j]
                        curvature[i, at, spread] += posterior_weight * total
                        for j2 in range(j + 1):
                            for v in range(j2, last[j2] if j2 < j else u + 1):
                                g = effects[v]
                                term = W[f, j2] * W[g, j] + T[j2, j] * G[f, g]
                                term -= alpha[j2] * alpha[j] * G[f, g]
                                term -= alpha[j2] * c_own[f] * W[g, j]
                                term -= c_own[g] * alpha[j] * W[f, j2]
                                term -= c_own[g] * c_own[f] * T[j2, j]
                                if j == j2:
                                    term += c_own[f] * c_own[g] - G[f, g]
                                to = start[n_gate + 2 + j2] + g
                                curvature[i, at, to] += posterior_weight * term
        if order > 1:
            # All that was added lies below the diagonal in the order of the active coefficients.
            for i in range(k):
                for p in range(n_active):
                    for r in range(p):
                        total = curvature[i, active[p], active[r]]
                        curvature[i, active[r], active[p]] = total
        keep(c_all)
        keep(d_all)
        keep(alpha_all)
        keep(delta_all)
        keep(W_all)
        keep(R_all)
        keep(G_all)
        keep(T_all)
        keep(beta_all)
        keep(L_all)

    return loop
