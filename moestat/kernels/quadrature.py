"""Densities of groups with a normal intercept, ``int prod_r f(y_r | eta_r + lambda v) phi(v) dv``.

The integral is a trapezoidal sum about the mode of the integrand, with steps in its own scale, that
goes on until terms are negligible; of an analytic integrand that decays it converges exponentially.
With the share p_m of each node, l_m the log-likelihood there and its slope s_m,

    score = sum_m p_m s_m,    Hessian = sum_m p_m d2 l_m + Cov_p(s)

Source: Pinheiro and Bates (1995), Sec. 2.4, for nodes about the mode; Trefethen and Weideman
(2014), Sec. 5, for the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from moestat.compiler.jit import compile_loop, device
from moestat.compiler.math import exp, log
from moestat.kernels.atom import WORK_ROWS
from moestat.kernels.rows import predict_channel
from moestat.kernels.views import keep, part, row

_STEP = 0.4
"""Distance of nodes in standard deviations of the integrand, and in units of the predictor."""

_NEGLIGIBLE = 1e-18
"""Share of the largest term at which a sum ends."""

_MOST = 400
"""Nodes on a side at most."""

_CLIMB = 60
"""Newton steps to the mode at most; the log-likelihoods are concave in the predictor."""

_REACH = 2.0
"""Size of a Newton step at most."""

_NEAR = 1e-6
"""Size of the last Newton step: nodes need not be exactly about the mode."""

_LEAST = -700.0
"""Logarithm of a share that is 0: less would underflow."""

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@device
def idle(eta, y, m, order, value, d1, d2):
    """The block of a likelihood whose rows another loop writes."""


@device
def clipped(move):
    """A Newton step of bounded size."""
    if move > _REACH:
        return _REACH
    return move if move > -_REACH else -_REACH


@cache
def marginal_block(base_block: Callable[..., None], n: int) -> Callable[..., None]:
    """The block of a row by itself, of a likelihood of n predictors; one more is lambda."""
    n_pairs = n * (n + 1) // 2

    @device
    def block(eta, y, m, order, value, d1, d2, work):
        at, one = part(work, 0, n), row(work, n)
        g1, g2 = part(work, n + 1, 2 * n + 1), part(work, 2 * n + 1, 2 * n + 1 + n_pairs)
        v, total = row(work, 2 * n + 1 + n_pairs), row(work, 2 * n + 2 + n_pairs)
        step = row(work, 2 * n + 3 + n_pairs)
        for c in range(1, n):
            for b in range(m):
                at[c, b] = eta[c, b]
        for b in range(m):
            v[b] = 0.0
        for _ in range(_CLIMB):
            for b in range(m):
                at[0, b] = eta[0, b] + eta[n, b] * v[b]
            base_block(at, y, m, 2, one, g1, g2)
            largest = 0.0
            for b in range(m):
                scale = eta[n, b]
                move = clipped((scale * g1[0, b] - v[b]) / (1.0 - scale * scale * g2[0, b]))
                v[b] += move
                largest = max(largest, abs(move))
            if largest < _NEAR:
                break
        for b in range(m):
            at[0, b] = eta[0, b] + eta[n, b] * v[b]
        base_block(at, y, m, 2, one, g1, g2)
        for b in range(m):
            scale = abs(eta[n, b])
            step[b] = _STEP / math.sqrt(1.0 - scale * scale * g2[0, b])
            step[b] = min(step[b], _STEP / scale) if scale > 0.0 else step[b]
            value[b] = one[b] - 0.5 * v[b] * v[b]
            total[b] = 0.0
        for c in range(n + 1):
            for b in range(m):
                d1[c, b] = 0.0
        if order > 1:
            for c in range(d2.shape[0]):
                for b in range(m):
                    d2[c, b] = 0.0
        for side in range(2):
            for j in range(side, _MOST):
                far = float(j) if side == 0 else -float(j)
                for b in range(m):
                    at[0, b] = eta[0, b] + eta[n, b] * (v[b] + far * step[b])
                base_block(at, y, m, order, one, g1, g2)
                largest = 0.0
                for b in range(m):
                    node = v[b] + far * step[b]
                    share = exp(max(one[b] - 0.5 * node * node - value[b], _LEAST))
                    largest = max(largest, share)
                    total[b] += share
                    if order > 0:
                        for c in range(n):
                            d1[c, b] += share * g1[c, b]
                        d1[n, b] += share * g1[0, b] * node
                    if order > 1:
                        for c in range(n):
                            for e in range(c + 1):
                                q = c * (c + 1) // 2 + e
                                d2[q, b] += share * (g2[q, b] + g1[c, b] * g1[e, b])
                            q = c * (c + 1) // 2
                            bend = g2[q, b] + g1[c, b] * g1[0, b]
                            d2[n_pairs + c, b] += share * node * bend
                        bend = g2[0, b] + g1[0, b] * g1[0, b]
                        d2[n_pairs + n, b] += share * node * node * bend
                if largest < _NEGLIGIBLE:
                    break
        for b in range(m):
            value[b] += log(total[b] * step[b]) - _HALF_LOG_2PI
            if order > 0:
                for c in range(n + 1):
                    d1[c, b] /= total[b]
            if order > 1:
                for c in range(n + 1):
                    for e in range(c + 1):
                        q = c * (c + 1) // 2 + e
                        d2[q, b] = d2[q, b] / total[b] - d1[c, b] * d1[e, b]

    WORK_ROWS[block] = 2 * n + 4 + n_pairs
    return block


@cache
def intercepts_loop(base_block: Callable[..., None], n: int) -> Callable[..., None]:
    """The loop over groups with a normal intercept, compiled on first use.

    It is ``loop(theta, coefficients, y, order, phi, m, begin, rows, spread)`` with the arguments of
    `moestat.kernels.groups.atoms_loop` and the first row of each group, for a likelihood of n
    predictors.  In `rows` it fills the log-density of each group, in its first row, and the mean
    derivatives in the channels under the shares of the nodes; in `spread` (k, G, q, q) from order 2
    on the covariances of the slopes in the q coefficients of the likelihood's channels.
    """
    n_pairs = n * (n + 1) // 2

    @compile_loop
    def loop(theta, coefficients, y, order, phi, m, begin, rows, spread):
        index, width, layout = coefficients
        density, dl, d2l = rows[3], rows[4], rows[5]
        k, first, size, q = index.shape[0], layout[1], phi.shape[1], spread.shape[2]
        n_like, n_second = n + 1, (n + 1) * (n + 2) // 2
        eta, at, one = np.empty((n_like, size)), np.empty((n, size)), np.empty(size)
        g1, g2 = np.empty((n, size)), np.empty((n_pairs, size))
        slopes, mean, square = np.empty(q), np.empty(q), np.empty((q, q))
        for i in range(k):
            for c in range(n_like):
                predict_channel(theta, index[i, first + c], width[first + c], phi, m, row(eta, c))
            scale = theta[index[i, first + n]]
            to, to2 = i * n_like, i * n_second
            for c in range(1, n):
                for r in range(m):
                    at[c, r] = eta[c, r]
            for r in range(m):
                density[i, r] = 0.0
                for c in range(n_like):
                    dl[to + c, r] = 0.0
                for c in range(n_second):
                    d2l[to2 + c, r] = 0.0
            for group in range(begin.size):
                s, e = begin[group], begin[group + 1] if group + 1 < begin.size else m
                own_at, own_y, own_one = at[:, s:e], y[s:e], one[s:e]
                own_1, own_2 = g1[:, s:e], g2[:, s:e]
                v = 0.0
                bend = 1.0
                for _ in range(_CLIMB):
                    for r in range(s, e):
                        at[0, r] = eta[0, r] + scale * v
                    base_block(own_at, own_y, e - s, 2, own_one, own_1, own_2)
                    slope, bend = -v, 1.0
                    for r in range(s, e):
                        slope += scale * g1[0, r]
                        bend -= scale * scale * g2[0, r]
                    move = clipped(slope / bend)
                    v += move
                    if abs(move) < _NEAR:
                        break
                step = _STEP / math.sqrt(bend)
                if scale != 0.0:
                    step = min(step, _STEP / abs(scale))
                top, total = 0.0, 0.0
                for p in range(q):
                    mean[p] = 0.0
                    for t in range(q):
                        square[p, t] = 0.0
                for side in range(2):
                    for j in range(side, _MOST):
                        node = v + (step * j if side == 0 else -step * j)
                        for r in range(s, e):
                            at[0, r] = eta[0, r] + scale * node
                        base_block(own_at, own_y, e - s, order, own_one, own_1, own_2)
                        height = -0.5 * node * node
                        for r in range(s, e):
                            height += one[r]
                        if side == 0 and j == 0:
                            top = height
                        share = math.exp(max(height - top, _LEAST))
                        total += share
                        if order > 0:
                            for r in range(s, e):
                                for c in range(n):
                                    dl[to + c, r] += share * g1[c, r]
                                dl[to + n, r] += share * g1[0, r] * node
                        if order > 1:
                            place = 0
                            for c in range(n_like):
                                factor = node if c == n else 1.0
                                for f in range(width[first + c]):
                                    sum_of = 0.0
                                    for r in range(s, e):
                                        sum_of += g1[0 if c == n else c, r] * phi[f, r]
                                    slopes[place] = factor * sum_of
                                    place += 1
                            for p in range(q):
                                mean[p] += share * slopes[p]
                                for t in range(q):
                                    square[p, t] += share * slopes[p] * slopes[t]
                            for r in range(s, e):
                                for c in range(n_pairs):
                                    d2l[to2 + c, r] += share * g2[c, r]
                                for c in range(n):
                                    bent = g2[c * (c + 1) // 2, r]
                                    d2l[to2 + n_pairs + c, r] += share * node * bent
                                d2l[to2 + n_pairs + n, r] += share * node * node * g2[0, r]
                        if share < _NEGLIGIBLE:
                            break
                density[i, s] = top + math.log(total * step) - _HALF_LOG_2PI
                if order > 0:
                    for r in range(s, e):
                        for c in range(n_like):
                            dl[to + c, r] /= total
                if order > 1:
                    for r in range(s, e):
                        for c in range(n_second):
                            d2l[to2 + c, r] /= total
                    for p in range(q):
                        for t in range(q):
                            value = square[p, t] / total - mean[p] * mean[t] / (total * total)
                            spread[i, group, p, t] = value
        keep(eta)
        keep(at)
        keep(g1)
        keep(g2)

    return loop
