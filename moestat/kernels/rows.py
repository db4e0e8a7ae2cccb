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
from collections.abc import Callable

from moestat._jit import compact, device
from moestat._math import decay, log

__all__ = [
    "dot",
    "expect",
    "fill",
    "fill_features",
    "fill_products",
    "join_moments",
    "load",
    "normalise",
    "padded",
    "predict_channel",
    "scale_rows",
    "scatter_hessian",
    "scatter_score",
    "select_top",
    "take_shares",
]

_NEGLIGIBLE = -340.0


@device(forceinline=False)
def load(values, m, size, block):
    """Copy m values into a block; the last one fills what is left of it."""
    for b in range(m):
        block[b] = values[b]
    for b in range(m, size):
        block[b] = values[m - 1]


@device(forceinline=False)
@compact
def fill(value, rows):
    """Set all of the rows to one value."""
    for i in range(rows.shape[0]):
        for b in range(rows.shape[1]):
            rows[i, b] = value


@device
def fill_features(X, start, m, phi):
    """Features of a block: ``phi = (1, x_1, ..., x_d)``."""
    for b in range(m):
        phi[0, b] = 1.0
    for f in range(X.shape[0]):
        for b in range(m):
            phi[1 + f, b] = X[f, start + b]


@device(forceinline=False)
def fill_products(phi, weight, n_factors, m, psi):
    """Weighted products ``w phi_f phi_g``, f <= g, row by row: w (1, x, then x_1 x_1, ...).

    The first `n_factors` values of f; the very first rows are ``w phi``.
    """
    q = 0
    for f in range(n_factors):
        for g in range(f, phi.shape[0]):
            for b in range(m):
                psi[q, b] = weight[b] * phi[f, b] * phi[g, b]
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


@device(forceinline=False)
def take_shares(score, m, top, total):
    """Replace scores (k, m) by ``exp(score - top)``, with their maximum `top` and sum `total`.

    A score of -inf is an atom outside the mixture.  Shares below 1e-147 are 0: they count for
    nothing, but their products would be subnormal numbers, which processors handle a hundred
    times more slowly.
    """
    k = score.shape[0]
    for b in range(m):
        top[b] = score[0, b]
        total[b] = 0.0
    for i in range(1, k):
        for b in range(m):
            top[b] = score[i, b] if score[i, b] > top[b] else top[b]
    for i in range(k):
        for b in range(m):
            below = score[i, b] - top[b]
            share = decay(below if below > _NEGLIGIBLE else _NEGLIGIBLE)
            score[i, b] = share if below > _NEGLIGIBLE else 0.0
            total[b] += score[i, b]


@device
def scale_rows(rows, m, factor):
    """Multiply every row by `factor`."""
    for i in range(rows.shape[0]):
        for b in range(m):
            rows[i, b] *= factor[b]


@device
def normalise(score, m, lse, total):
    """Replace scores (k, m) by probabilities and leave ``lse = log sum_i exp(score_i)``.

    ``total`` is a scratch row.
    """
    take_shares(score, m, lse, total)
    for b in range(m):
        lse[b] += log(total[b])
        total[b] = 1.0 / total[b]
    scale_rows(score, m, total)


@device(forceinline=False)
@compact
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
def padded(n_rows):
    """Rows that a loop which takes them in threes touches."""
    return (n_rows + 2) // 3 * 3


@device
def pairs(n):
    """Number of unordered pairs of n things, each with itself included."""
    return n * (n + 1) // 2


@device
def dot(one, other, psi, n_products, m, out):
    """``out_q += sum_b one_b other_b psi_qb`` for the first `n_products` rows of psi.

    Rows are taken in threes; what the last three hold beyond `n_products` is of no use.
    """
    for q in range(0, n_products, 3):
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        for b in range(m):
            h = one[b] * other[b]
            s0 += h * psi[q, b]
            s1 += h * psi[q + 1, b]
            s2 += h * psi[q + 2, b]
        out[q] += s0
        out[q + 1] += s1
        out[q + 2] += s2


def _sums_of(term: Callable[..., float]) -> Callable[..., None]:
    """``sums(one, rows, prior, priors, n_rows, psi, n_products, m, out)``.

    ``out_rq += sum_b term(one, rows, prior, priors, r, b) psi_qb``, nine sums at a time: rows and
    products are taken in threes, and what lies beyond their numbers is of no use.
    """

    @device(forceinline=False)
    def sums(one, rows, prior, priors, n_rows, psi, n_products, m, out):
        for r in range(0, n_rows, 3):
            for q in range(0, n_products, 3):
                s00, s01, s02 = 0.0, 0.0, 0.0
                s10, s11, s12 = 0.0, 0.0, 0.0
                s20, s21, s22 = 0.0, 0.0, 0.0
                for b in range(m):
                    h = term(one, rows, prior, priors, r, b)
                    s00 += h * psi[q, b]
                    s01 += h * psi[q + 1, b]
                    s02 += h * psi[q + 2, b]
                    h = term(one, rows, prior, priors, r + 1, b)
                    s10 += h * psi[q, b]
                    s11 += h * psi[q + 1, b]
                    s12 += h * psi[q + 2, b]
                    h = term(one, rows, prior, priors, r + 2, b)
                    s20 += h * psi[q, b]
                    s21 += h * psi[q + 1, b]
                    s22 += h * psi[q + 2, b]
                out[r, q] += s00
                out[r, q + 1] += s01
                out[r, q + 2] += s02
                out[r + 1, q] += s10
                out[r + 1, q + 1] += s11
                out[r + 1, q + 2] += s12
                out[r + 2, q] += s20
                out[r + 2, q + 1] += s21
                out[r + 2, q + 2] += s22

    return sums


@device
def _product(one, rows, prior, priors, r, b):
    return one[b] * rows[r, b]


@device
def _difference(one, rows, prior, priors, r, b):
    return one[b] * rows[r, b] - prior[b] * priors[r, b]


sum_products = _sums_of(_product)
"""Sums of ``one rows``."""
sum_differences = _sums_of(_difference)
"""Sums of ``one rows - prior priors``."""


@device(forceinline=False)
def expect(score, tau, start, sparse, m, expected, total):
    """Replace scores (k, m) by given shares, and leave their mean under them; ``total`` is 1."""
    for b in range(m):
        expected[b] = 0.0
        total[b] = 1.0
    for i in range(score.shape[0]):
        for b in range(m):
            share = tau[i, start + b]
            # An atom that takes no part has the score -inf and the share 0.
            if not sparse or share > 0.0:
                expected[b] += share * score[i, b]
            score[i, b] = share


@device
def multiply(one, other, m, product):
    """``product = one other``."""
    for b in range(m):
        product[b] = one[b] * other[b]


@device
def spread(share, prior, excess, complete, m, joint, both):
    """Variance of an atom's indicator given the response, and how much more it is than without.

    ``joint = share (1 - share)`` and ``both = joint - prior (1 - prior)``; given shares do not
    vary.
    """
    if complete:
        for b in range(m):
            joint[b] = 0.0
            both[b] = prior[b] * (prior[b] - 1.0)
    else:
        for b in range(m):
            joint[b] = share[b] * (1.0 - share[b])
            both[b] = excess[b] * (1.0 - share[b] - prior[b])


@device
def multiply_add(one, other, weight, second, m, h):
    """``h = one other + weight second``."""
    for b in range(m):
        h[b] = one[b] * other[b] + weight[b] * second[b]


@device
def add_gate_part(prior, one, other, weight, second, m, h):
    """``h += weight second - prior (1 - prior) one other``."""
    for b in range(m):
        h[b] += weight[b] * second[b] - prior[b] * (1.0 - prior[b]) * one[b] * other[b]


@device(forceinline=False)
@compact
def scatter_score(sums, index, width, score):
    """Fill the score from the sums of each channel of each atom."""
    score[:] = 0.0
    k, n_channels = index.shape
    for i in range(k):
        for c in range(n_channels):
            for f in range(width[c]):
                score[index[i, c] + f] += sums[i * n_channels + c, f]


@device(forceinline=False)
@compact
def join_moments(within, across, k, n_channels, moments):
    """Sums of pairs of channels in the order of `scatter_hessian`.

    Those of pairs within an atom are in `within`, those of pairs of two atoms, with the sign
    turned, in `across`; both leave out a row now and then to begin a group of three.
    """
    n_rows = k * n_channels
    pair = 0
    for p in range(n_rows):
        i, c = p // n_channels, p % n_channels
        for q in range(p + 1):
            e = q - i * n_channels
            own = i * padded(pairs(n_channels)) + c * (c + 1) // 2 + e
            for product in range(moments.shape[1]):
                if e >= 0:
                    moments[pair, product] = within[own, product]
                else:
                    moments[pair, product] = -across[p * padded(n_rows) + q, product]
            pair += 1


@device(forceinline=False)
@compact
def scatter_hessian(moments, index, width, n_phi, hessian):
    """Fill the Hessian from the curvature of pairs of channels, by products of features.

    Adding a pair of two channels on both sides is right for a parameter that atoms share.
    """
    hessian[:, :] = 0.0
    n_channels = index.shape[1]
    pair = 0
    for p in range(index.size):
        i, c = p // n_channels, p % n_channels
        for q in range(p + 1):
            j, e = q // n_channels, q % n_channels
            for f in range(width[c]):
                for g in range(width[e]):
                    low = f if f < g else g
                    product = low * n_phi - low * (low - 1) // 2 + abs(f - g)
                    v = moments[pair, product]
                    hessian[index[i, c] + f, index[j, e] + g] += v
                    if p != q:
                        hessian[index[j, e] + g, index[i, c] + f] += v
            pair += 1
