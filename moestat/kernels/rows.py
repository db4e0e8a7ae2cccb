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

from moestat.compiler.jit import compact, device
from moestat.compiler.math import decay, log
from moestat.kernels.tiles import GROUP, LANES, PAIR, PRODUCTS, SIGN, USED, sum_curvature
from moestat.kernels.views import part, row

_NEGLIGIBLE = -340.0


@device(forceinline=False)
def load(values, m, size, block):
    """Copy m values into a block; the last one fills what is left of it."""
    for b in range(m):
        block[b] = values[b]
    for b in range(m, size):
        block[b] = values[m - 1]


@device(forceinline=False)
def load_records(values, n_words, m, size, block):
    """Copy m records of `n_words` numbers into a block; the last one fills what is left of it."""
    for b in range(n_words * m):
        block[b] = values[b]
    for b in range(n_words * m, n_words * size):
        block[b] = block[b - n_words]


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
    """Set scores (k, m) below the largest `n_active` of their sample to -inf.

    Atoms tied with the last of these stay, too: who is active does not depend on the order of the
    atoms.
    """
    k = score.shape[0]
    for b in range(m):
        for i in range(k):
            n_above = 0
            for j in range(k):
                n_above += 1 if score[j, b] > score[i, b] else 0
            # The atoms that stay are never removed, so this count is not spoilt on the way.
            if n_above >= n_active:
                score[i, b] = -math.inf


@device
def padded(n_rows):
    """Rows that a loop which takes them in threes touches."""
    return (n_rows + 2) // 3 * 3


@device
def pairs(n):
    """Number of unordered pairs of n things, each with itself included."""
    return n * (n + 1) // 2


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
                pair_of_law = pairs(r) + e - first
                for b in range(m):
                    d2l[pair_of_law, b] = share[b] * d2l[pair_of_law, b] + d2a[pair, b]


@device(forceinline=False)
@compact
def join_slopes(share, excess, da, du, first, m, slopes):
    """Slopes of the log-density in the channels of an atom: ``tau d(a + l) - pi da``.

    On entry ``du`` is the likelihood's alone, in the channels from `first` on.
    """
    for c in range(slopes.shape[0]):
        for b in range(m):
            slopes[c, b] = 0.0
        if c < da.shape[0]:
            for b in range(m):
                slopes[c, b] = excess[b] * da[c, b]
        if c >= first:
            for b in range(m):
                slopes[c, b] += share[b] * du[c, b]


@device
def spread_shares(share, prior, complete, m, variation, gate_variation):
    """How much an atom varies: ``share (1 - share)``, and that less ``prior (1 - prior)``.

    Given shares do not vary.
    """
    varies = 0.0 if complete else 1.0
    for b in range(m):
        s = varies * share[b]
        variation[b] = s * (1.0 - s)
        gate_variation[b] = (s - prior[b]) * (1.0 - s - prior[b])


@device(forceinline=False)
def within_atoms(rows, spread, share, prior, k, complete, terms, psi, m, sums):
    """Sums of the curvature within each atom.

    Numbers of the first working row of each kind are those of spread, share and prior.
    """
    n_terms = terms.shape[0] // k
    s = 0
    for i in range(k):
        variation, gate_variation = row(rows, spread), row(rows, spread + 1)
        spread_shares(
            row(rows, share + i), row(rows, prior + i), complete, m, variation, gate_variation
        )
        those = part(terms, i * n_terms, (i + 1) * n_terms)
        s = sum_curvature(rows, those, psi, m, sums, s)


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
    r = s = 0
    while r < terms.shape[0]:
        n_terms = terms[r, GROUP]
        for step in range(0, terms[r, USED], PRODUCTS):
            for t in range(r, r + n_terms):
                for q in range(step, min(step + PRODUCTS, terms[t, USED])):
                    total = 0.0
                    for lane in range((q - step) * LANES, (q - step + 1) * LANES):
                        total += sums[s, lane]
                    moments[terms[t, PAIR], q] += terms[t, SIGN] * total
                s += 1
        r += n_terms


@device(forceinline=False)
@compact
def scatter_hessian(moments, index, width, n_phi, hessian):
    """Fill the Hessian from the curvature of pairs of channels, by products of features.

    Adding a pair of two channels on both sides is right for a parameter that atoms share.
    """
    hessian[:, :] = 0.0
    k, n_channels = index.shape
    pair = 0
    for i in range(k):
        for c in range(n_channels):
            to = index[i, c]
            for j in range(i + 1):
                for e in range(c + 1 if j == i else n_channels):
                    other = index[j, e]
                    for f in range(width[c]):
                        for g in range(width[e]):
                            low = f if f < g else g
                            product = low * n_phi - (low * (low - 1) >> 1) + abs(f - g)
                            v = moments[pair, product]
                            hessian[to + f, other + g] += v
                            if i != j or c != e:
                                hessian[other + g, to + f] += v
                    pair += 1
