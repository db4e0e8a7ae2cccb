"""Row programmes: what happens to one block of samples, whatever the gate and the expert.

An atom supplies its log-score ``a`` and its log-density ``l`` with their derivatives in a few
channels.  With tau the posterior and pi the gate's probabilities of the atoms,

    log p   = LSE_i(a_i + l_i) - LSE_i(a_i)
    score   = sum_i tau_i d(a_i + l_i) - sum_i pi_i d a_i
    Hessian = sum_i tau_i d2(a_i + l_i) + Cov_tau(d(a + l)) - sum_i pi_i d2 a_i - Cov_pi(d a)

Every array has the sample as its last, innermost index, and every inner loop runs over samples,
so that LLVM vectorises it.  A block may hold a single sample.
"""

from __future__ import annotations

import math

from moestat._jit import device
from moestat._math import exp, log

__all__ = [
    "accumulate_products",
    "accumulate_syrk",
    "fill_features",
    "fill_products",
    "normalise",
    "predict_channel",
    "scatter_gram",
    "scatter_local",
    "select_top",
]

_NEGLIGIBLE = -340.0


@device
def fill_features(X, start, m, phi):
    """Features of a block: ``phi = (1, x_1, ..., x_d)``."""
    for b in range(m):
        phi[0, b] = 1.0
    for f in range(X.shape[0]):
        for b in range(m):
            phi[1 + f, b] = X[f, start + b]


@device
def fill_products(phi, m, psi):
    """Products ``phi_f phi_g`` for f <= g, row by row: (1, x, then x_1 x_1, x_1 x_2, ...)."""
    q = 0
    for f in range(phi.shape[0]):
        for g in range(f, phi.shape[0]):
            for b in range(m):
                psi[q, b] = phi[f, b] * phi[g, b]
            q += 1


@device
def predict_channel(theta, first, width, phi, m, eta):
    """``eta = sum_f theta_f phi_f`` for one channel."""
    intercept = theta[first]
    for b in range(m):
        eta[b] = intercept
    for f in range(1, width):
        slope = theta[first + f]
        for b in range(m):
            eta[b] += slope * phi[f, b]


@device
def normalise(score, m, lse, total):
    """Replace scores (k, m) by probabilities and leave ``lse = log sum_i exp(score_i)``.

    A score of -inf is an atom outside the mixture.  ``total`` is a scratch row.  Probabilities
    below 1e-147 are 0: they count for nothing, but their products would be subnormal numbers,
    which processors handle a hundred times more slowly.
    """
    k = score.shape[0]
    for b in range(m):
        lse[b] = score[0, b]
        total[b] = 0.0
    for i in range(1, k):
        for b in range(m):
            lse[b] = score[i, b] if score[i, b] > lse[b] else lse[b]
    for i in range(k):
        for b in range(m):
            below = score[i, b] - lse[b]
            share = exp(below if below > _NEGLIGIBLE else _NEGLIGIBLE)
            score[i, b] = share if below > _NEGLIGIBLE else 0.0
        for b in range(m):
            total[b] += score[i, b]
    for b in range(m):
        lse[b] += log(total[b])
        total[b] = 1.0 / total[b]
    for i in range(k):
        for b in range(m):
            score[i, b] *= total[b]


@device
def select_top(score, n_active, m):
    """Set all but the `n_active` largest scores (k, m) of each sample to -inf.

    Of equal scores the atom of lower index stays.
    """
    k = score.shape[0]
    for b in range(m):
        for _ in range(k - n_active):
            least = -1
            for i in range(k):
                candidate = score[i, b]
                if candidate > -math.inf and (least < 0 or candidate <= score[least, b]):
                    least = i
            if least >= 0:
                score[least, b] = -math.inf


@device
def accumulate_products(h, psi, n_products, m, out):
    """``out_q += sum_b h_b psi_qb`` for the first `n_products` rows of psi."""
    q = 0
    while q + 2 < n_products:
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        for b in range(m):
            s0 += h[b] * psi[q, b]
            s1 += h[b] * psi[q + 1, b]
            s2 += h[b] * psi[q + 2, b]
        out[q] += s0
        out[q + 1] += s1
        out[q + 2] += s2
        q += 3
    while q < n_products:
        s0 = 0.0
        for b in range(m):
            s0 += h[b] * psi[q, b]
        out[q] += s0
        q += 1


@device
def accumulate_syrk(rows, m, sign, out):
    """``out += sign * rows rows'`` on and below the diagonal, in tiles of two by two."""
    n_rows = rows.shape[0]
    for p in range(0, n_rows - 1, 2):
        for q in range(0, p + 1, 2):
            s00 = 0.0
            s01 = 0.0
            s10 = 0.0
            s11 = 0.0
            for b in range(m):
                s00 += rows[p, b] * rows[q, b]
                s01 += rows[p, b] * rows[q + 1, b]
                s10 += rows[p + 1, b] * rows[q, b]
                s11 += rows[p + 1, b] * rows[q + 1, b]
            out[p, q] += sign * s00
            out[p, q + 1] += sign * s01
            out[p + 1, q] += sign * s10
            out[p + 1, q + 1] += sign * s11
    if n_rows % 2 == 1:
        p = n_rows - 1
        for q in range(n_rows):
            s00 = 0.0
            for b in range(m):
                s00 += rows[p, b] * rows[q, b]
            out[p, q] += sign * s00


@device
def scatter_gram(gram, parameter, hessian):
    """Add a lower Gram matrix of rows to the Hessian of the parameters the rows belong to."""
    for p in range(gram.shape[0]):
        for q in range(p + 1):
            hessian[parameter[p], parameter[q]] += gram[p, q]
            if p != q:
                hessian[parameter[q], parameter[p]] += gram[p, q]


@device
def scatter_local(local, index, width, n_phi, hessian):
    """Add the atoms' own curvature, stored by channel pair and feature product, to the Hessian.

    Adding an off-diagonal pair on both sides is right for a parameter that several atoms share.
    """
    for i in range(index.shape[0]):
        pair = 0
        for c in range(index.shape[1]):
            for e in range(c + 1):
                for f in range(width[c]):
                    for g in range(width[e]):
                        low = min(f, g)
                        product = low * n_phi - low * (low - 1) // 2 + abs(f - g)
                        v = local[i, pair, product]
                        hessian[index[i, c] + f, index[i, e] + g] += v
                        if c != e:
                            hessian[index[i, e] + g, index[i, c] + f] += v
                pair += 1
