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
from typing import Any

from moestat._jit import compact, device
from moestat._math import decay, log
from moestat.kernels.lanes import LANES, add_product, get_lanes, product, put_lanes
from moestat.kernels.terms import PAIR, ROWS, SIGN, USED

__all__ = [
    "expect",
    "fill",
    "fill_features",
    "fill_products",
    "join_moments",
    "join_shared",
    "load",
    "normalise",
    "padded",
    "pairs",
    "predict_channel",
    "scale_rows",
    "scatter_hessian",
    "scatter_score",
    "select_top",
    "sum_curvature",
    "sum_products",
    "take_shares",
    "weigh_slopes",
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
def add_three(h, psi, q, b, s0, s1, s2):
    """``s_j + h psi_(q + j)`` of one vector of samples."""
    return (
        add_product(h, get_lanes(psi, q, b), s0),
        add_product(h, get_lanes(psi, q + 1, b), s1),
        add_product(h, get_lanes(psi, q + 2, b), s2),
    )


@device
def get_three(sums, r, q):
    """Sums q, q + 1 and q + 2 of row r, as vectors."""
    return (
        get_lanes(sums, r, q * LANES),
        get_lanes(sums, r, (q + 1) * LANES),
        get_lanes(sums, r, (q + 2) * LANES),
    )


@device
def put_three(sums, r, q, s0, s1, s2):
    """Leave what `get_three` took."""
    put_lanes(sums, r, q * LANES, s0)
    put_lanes(sums, r, (q + 1) * LANES, s1)
    put_lanes(sums, r, (q + 2) * LANES, s2)


def _sums_of(term: Callable[..., Any]) -> Callable[..., None]:
    """``sums(ones, others, weights, seconds, terms, psi, m, out)``.

    ``out_rq += sum_b h_rb psi_qb`` with the numbers h_r that `term` makes of the rows of
    ``terms[r]``.  Terms and products are taken in threes, which makes nine sums at a time; what
    lies beyond the number of products is of no use.
    """

    @device(forceinline=False)
    def sums(ones, others, weights, seconds, terms, psi, m, out):
        # A range would divide to find how often it goes round.
        r = 0
        while r < terms.shape[0]:
            q = 0
            while q < terms[r, USED]:
                s00, s01, s02 = get_three(out, r, q)
                s10, s11, s12 = get_three(out, r + 1, q)
                s20, s21, s22 = get_three(out, r + 2, q)
                b = 0
                while b < m:
                    h = term(ones, others, weights, seconds, terms, r, b)
                    s00, s01, s02 = add_three(h, psi, q, b, s00, s01, s02)
                    h = term(ones, others, weights, seconds, terms, r + 1, b)
                    s10, s11, s12 = add_three(h, psi, q, b, s10, s11, s12)
                    h = term(ones, others, weights, seconds, terms, r + 2, b)
                    s20, s21, s22 = add_three(h, psi, q, b, s20, s21, s22)
                    b += LANES
                put_three(out, r, q, s00, s01, s02)
                put_three(out, r + 1, q, s10, s11, s12)
                put_three(out, r + 2, q, s20, s21, s22)
                q += 3
            r += 3

    return sums


@device
def _product(ones, others, weights, seconds, terms, r, b):
    return product(get_lanes(ones, terms[r, ROWS], b), get_lanes(others, terms[r, ROWS + 1], b))


@device
def _curvature(ones, others, weights, seconds, terms, r, b):
    weight = get_lanes(weights, terms[r, ROWS + 2], b)
    second = get_lanes(seconds, terms[r, ROWS + 3], b)
    return add_product(weight, second, _product(ones, others, weights, seconds, terms, r, b))


sum_products = _sums_of(_product)
"""Sums of ``ones others``, of the rows of which the first two columns have the numbers."""
sum_curvature = _sums_of(_curvature)
"""Sums of ``ones others + weights seconds``, each row from a column of its own."""


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


@device(forceinline=False)
def weigh_slopes(share, prior, complete, da, m, du, rest, both):
    """Leave ``share du`` in du, ``(1 - share) du`` in rest, and of the channels in both

        (share (1 - share) - prior (1 - prior)) da

    du is da in those channels.  Given shares do not vary: then the terms in share are 0.
    """
    first = both.shape[0]
    varies = 0.0 if complete else 1.0
    for c in range(first):
        for b in range(m):
            slope = da[c, b]
            spread = (share[b] - prior[b]) * (1.0 - share[b] - prior[b])
            given = prior[b] * (prior[b] - 1.0)
            both[c, b] = (given if complete else spread) * slope
            du[c, b] = share[b] * slope
            rest[c, b] = varies * (1.0 - share[b]) * slope
    for c in range(first, du.shape[0]):
        for b in range(m):
            slope = du[c, b]
            du[c, b] = share[b] * slope
            rest[c, b] = varies * (1.0 - share[b]) * slope


@device(forceinline=False)
def join_shared(share, prior, excess, da, d2a, first, m, du, d2l):
    """Where gate and likelihood read the same channels, leave their joint derivatives.

    ``du`` and ``d2l`` hold the likelihood's in the channels from `first` on.  Then du is
    ``d(a + l)`` there, and of pairs with one such channel the weighted second derivatives are

        excess d2 a - prior (1 - prior) da da'  (+ share d2 l where both channels are shared)

    in d2a where only one channel is shared, and in d2l where both are.
    """
    for c in range(first, da.shape[0]):
        for b in range(m):
            du[c, b] += da[c, b]
        r = c - first
        for e in range(c + 1):
            pair = pairs(c) + e
            for b in range(m):
                d2a[pair, b] *= excess[b]
                d2a[pair, b] -= prior[b] * (1.0 - prior[b]) * da[c, b] * da[e, b]
            if e >= first:
                own = pairs(r) + e - first
                for b in range(m):
                    d2l[own, b] = share[b] * d2l[own, b] + d2a[pair, b]


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
def join_moments(terms, sums, moments):
    """Add the sums of each term, lane by lane, to those of its pair of channels."""
    for r in range(terms.shape[0]):
        for q in range(terms[r, USED]):
            total = 0.0
            for lane in range(q * LANES, (q + 1) * LANES):
                total += sums[r, lane]
            moments[terms[r, PAIR], q] += terms[r, SIGN] * total


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
