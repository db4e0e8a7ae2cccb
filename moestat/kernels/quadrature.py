"""Densities of groups with a normal intercept, ``int prod_r f(y_r | eta_r + lambda v) phi(v) dv``.

The logarithm of the integrand is concave: a search by Newton's method, kept between points where
its slope changes sign, finds the mode.  The integral is a trapezoidal sum about the mode, with
steps in its own scale, that goes on until terms are negligible; of an analytic integrand that
decays it converges exponentially, so that the sums over every other node, which agree to the root
of the error, say how exact it is.  Where they disagree, or where the sum has many nodes, as the
integrand of answers that are all the same has with a large lambda (a cliff of width 1 / lambda in a
normal density), the sum is one of Gauss's rules over panels.  On either side of the mode the
integrand f is monotone, and a panel is halved until the rule integrates f', whose integral is
known, exactly: no cliff can be hidden within a panel.

With the share p_m of each node, l_m the log-likelihood there and its slope s_m,

    score = sum_m p_m s_m,    Hessian = sum_m p_m d2 l_m + Cov_p(s)

Source: Pinheiro and Bates (1995), Sec. 2.4, for nodes about the mode; Trefethen and Weideman
(2014), Sec. 5, for the trapezoidal sum; Davis and Rabinowitz (1984), Sec. 6.2, for halved panels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from moestat.compiler.jit import compile_loop, device
from moestat.kernels.atom import WORK_ROWS
from moestat.kernels.rows import predict_channel
from moestat.kernels.views import keep, part, row

_STEP = 0.45
"""Distance of nodes in standard deviations of the integrand: the sum over every other node of a
normal one is exact to 2 exp(-2 pi^2 / .81), 5e-11."""

_STEP_OF_PREDICTOR = 0.36
"""Distance of nodes in units of the predictor: log-likelihoods have singularities at a distance of
pi or, of counts, grow beyond one of pi / 2, so that errors are about exp(-pi^2 / .36), 1e-12."""

_AGREEMENT = 1e-6
"""Relative difference of the sums over every other node: the error is about its square."""

_REFINED = 1e-3
"""Relative difference of sums that nodes in the middle make as exact."""

_NEGLIGIBLE = 1e-18
"""Share of the largest term at which a sum ends."""

_SPAN = 9.2
"""Distance from the mode in units of the effect at which terms are negligible, because the second
derivative of the logarithm is at most -1."""

_MOST = 192
"""Nodes of the trapezoidal sum on a side at most: panels need 300 to 700 in all."""

_CLIMB = 400
"""Steps to the mode at most: steps double until the slope changes its sign, and then are halved."""

_NEAR = 0.02
"""Size of the last Newton step in standard deviations: nodes need not be exactly about the mode."""

_LEAST = -700.0
"""Logarithm of a share that is 0: less would underflow."""

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)

_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_N_PLACES = 20
"""Gauss's rule on [-1, 1] of a panel."""

_SLOPE_ERROR = 1e-12
"""Error of the integral of the slope over a panel, times the width of the panel, relative to the
integral: that of the integrand itself is smaller by the number of nodes."""

_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Relative error of the integrand for each unit of the logarithm of its largest value."""

_PANELS = 500
"""Panels on a side at most, of which ordinary integrals need 40: where the logarithm of the
integrand is so large that it is known to no digit, the integral is not a number."""

_NARROW = 2.0**-6
"""Width of the narrowest panel, in steps of the trapezoidal sum."""


@device
def idle(eta, y, m, order, value, d1, d2):
    """The block of a likelihood whose rows another loop writes."""


@device
def _one(width, c):
    """The number of coefficients of a channel that is a coefficient itself."""
    return 1


@device
def _of_channel(width, c):
    """The number of coefficients of a channel."""
    return width[c]


@cache
def _integral(
    base_block: Callable[..., None], n: int, count: Callable[..., int]
) -> Callable[..., Any]:
    """The integral of one group, for a likelihood of n predictors; one more is lambda.

    It is ``integral(eta, scale, y, s, m, order, phi, width, first, rows, dl, d2l, sums)`` with the
    predictors eta (n, .) at an effect of 0, the responses and the features phi of m rows from s on;
    channel c has ``count(width, first + c)`` coefficients, q together.  It returns the logarithm of
    the integral, and fills the mean derivatives by channel of each row, `dl` and `d2l`, and the
    first column of `sums` (`_n_sums`, .): mean and variance of the effect, its least and largest
    node, then slopes in the coefficients, their means and covariances.  The working rows `rows`
    (`_n_rows`, .) are at least m wide.
    """
    n_pairs = n * (n + 1) // 2

    @device
    def look(v, order, group):
        """The logarithm of the integrand, its slope and minus its second derivative."""
        eta, scale, y, s, m, rows = group
        at, one = part(rows, 0, n), row(rows, n)
        g1, g2 = part(rows, n + 1, 2 * n + 1), part(rows, 2 * n + 1, 2 * n + 1 + n_pairs)
        for r in range(m):
            at[0, r] = eta[0, s + r] + scale * v
        base_block(at, part(y, s, s + m), m, order, one, g1, g2)
        height, slope, bend = -0.5 * v * v, -v, 1.0
        for r in range(m):
            height += one[r]
        if order > 0:
            for r in range(m):
                slope += scale * g1[0, r]
        if order > 1:
            for r in range(m):
                bend -= scale * scale * g2[0, r]
        return height, slope, bend

    @device
    def clear(order, group, features, sums_of):
        """Sums of no nodes."""
        _, _, _, s, m, _ = group
        _, _, _, q = features
        dl, d2l, sums = sums_of
        sums[0, 0] = sums[1, 0] = 0.0
        for p in range(q if order > 1 else 0):
            sums[4 + q + p, 0] = 0.0
            for t in range(q):
                sums[4 + 2 * q + p * q + t, 0] = 0.0
        for r in range(s, s + m):
            for c in range(n + 1 if order > 0 else 0):
                dl[c, r] = 0.0
            for c in range((n + 1) * (n + 2) // 2 if order > 1 else 0):
                d2l[c, r] = 0.0

    @device
    def visit(node, weight, top, order, group, features, sums_of):
        """Add a node to the sums; its share."""
        _, _, _, s, m, rows = group
        phi, width, first, q = features
        dl, d2l, sums = sums_of
        height, _, _ = look(node, order, group)
        g1, g2 = part(rows, n + 1, 2 * n + 1), part(rows, 2 * n + 1, 2 * n + 1 + n_pairs)
        share = weight * math.exp(max(height - top, _LEAST))
        sums[0, 0] += share * node
        sums[1, 0] += share * node * node
        sums[2, 0], sums[3, 0] = min(sums[2, 0], node), max(sums[3, 0], node)
        if order > 0:
            for c in range(n):
                for r in range(m):
                    dl[c, s + r] += share * g1[c, r]
            for r in range(m):
                dl[n, s + r] += share * node * g1[0, r]
        if order > 1:
            place = 0
            for c in range(n + 1):
                factor, channel = (node, 0) if c == n else (1.0, c)
                for f in range(count(width, first + c)):
                    total = 0.0
                    for r in range(m):
                        total += g1[channel, r] * phi[f, s + r]
                    sums[4 + place, 0] = factor * total
                    place += 1
            for p in range(q):
                term = share * sums[4 + p, 0]
                sums[4 + q + p, 0] += term
                for t in range(p + 1):
                    sums[4 + 2 * q + p * q + t, 0] += term * sums[4 + t, 0]
            for c in range(n_pairs):
                for r in range(m):
                    d2l[c, s + r] += share * g2[c, r]
            for c in range(n):
                pair = c * (c + 1) // 2
                for r in range(m):
                    d2l[n_pairs + c, s + r] += share * node * g2[pair, r]
            for r in range(m):
                d2l[n_pairs + n, s + r] += share * node * node * g2[0, r]
        return share

    @device(forceinline=False)
    def integral(eta, scale, y, s, m, order, phi, width, first, rows, dl, d2l, sums):
        q = 0
        for c in range(n + 1):
            q += count(width, first + c)
        for c in range(1, n):
            for r in range(m):
                rows[c, r] = eta[c, s + r]
        group, features, sums_of = (
            (eta, scale, y, s, m, rows),
            (phi, width, first, q),
            (dl, d2l, sums),
        )
        v = last = 0.0
        low, high = -math.inf, math.inf
        height, slope, bend = look(v, 2, group)
        for _ in range(_CLIMB):
            move = slope / bend
            if not abs(move) * math.sqrt(bend) > _NEAR:
                break
            if slope > 0.0:
                low = v
            else:
                high = v
            inside = low < v + move < high
            if last != 0.0 and (abs(move) > 0.5 * last or not inside):
                bounded = low > -math.inf and high < math.inf
                move = 0.5 * (low + high) - v if bounded else math.copysign(2.0 * last, move)
            last = abs(move)
            v += move
            height, slope, bend = look(v, 2, group)
        top = height
        step = _STEP / math.sqrt(bend)
        if scale != 0.0:
            step = min(step, _STEP_OF_PREDICTOR / abs(scale))
        short = _MOST * step >= _SPAN
        if not short:
            right, _, _ = look(v + _MOST * step, 0, group)
            left, _, _ = look(v - _MOST * step, 0, group)
            short = max(left, right) - top < math.log(_NEGLIGIBLE)
        sums[2, 0] = sums[3, 0] = v
        total, spacing, exact = 0.0, 1.0, False
        if short:
            clear(order, group, features, sums_of)
            # First the even and the odd nodes, then, if they disagree, those in the middle.
            for half in range(2):
                even = odd = 0.0
                for side in range(2):
                    sign = 1.0 if side == 0 else -1.0
                    for j in range(side * (1 - half), _MOST + 1):
                        node = v + sign * step * (j + 0.5 * half)
                        share = visit(node, 1.0, top, order, group, features, sums_of)
                        if j % 2 == 0:
                            even += share
                        else:
                            odd += share
                        if not share > _NEGLIGIBLE:
                            break
                error = abs(even - odd) if half == 0 else abs(even + odd - total)
                total += even + odd
                exact = error <= _AGREEMENT * total
                spacing = step / (1.0 + half)
                if exact or error > _REFINED * total:
                    break
        if not exact:
            clear(order, group, features, sums_of)
            total, spacing = 0.0, 1.0
            tolerance = _SLOPE_ERROR + _ROUNDING * abs(top)
            for side in range(2):
                sign = 1.0 if side == 0 else -1.0
                begin, share_of_begin, length = v, 1.0, 8.0 * step
                for _ in range(_PANELS):
                    if not share_of_begin > _NEGLIGIBLE:
                        break
                    middle, rise, mass = begin + 0.5 * sign * length, 0.0, 0.0
                    for j in range(_N_PLACES):
                        node = middle + 0.5 * length * _PLACES[j]
                        height, slope, _ = look(node, 1, group)
                        share = 0.5 * length * _WEIGHTS[j] * math.exp(max(height - top, _LEAST))
                        mass += share
                        rise += share * slope
                    end = begin + sign * length
                    height, _, _ = look(end, 0, group)
                    share_of_end = math.exp(max(height - top, _LEAST))
                    error = abs(sign * rise - (share_of_end - share_of_begin))
                    too_wide = length * error > tolerance * (total + mass)
                    if too_wide and length > _NARROW * step:
                        length *= 0.5
                        continue
                    for j in range(_N_PLACES):
                        node = middle + 0.5 * length * _PLACES[j]
                        weight = 0.5 * length * _WEIGHTS[j]
                        total += visit(node, weight, top, order, group, features, sums_of)
                    begin, share_of_begin, length = end, share_of_end, 2.0 * length
                if not share_of_begin <= _NEGLIGIBLE:
                    return math.nan
        sums[0, 0] /= total
        sums[1, 0] = sums[1, 0] / total - sums[0, 0] * sums[0, 0]
        if order > 0:
            for c in range(n + 1):
                for r in range(s, s + m):
                    dl[c, r] /= total
        if order > 1:
            for c in range((n + 1) * (n + 2) // 2):
                for r in range(s, s + m):
                    d2l[c, r] /= total
            mean, square = 4 + q, 4 + 2 * q
            for p in range(q):
                sums[mean + p, 0] /= total
                for t in range(p + 1):
                    value = sums[square + p * q + t, 0] / total
                    value -= sums[mean + p, 0] * sums[mean + t, 0]
                    sums[square + p * q + t, 0] = sums[square + t * q + p, 0] = value
        return top + math.log(total * spacing) - _HALF_LOG_2PI

    return integral


@cache
def marginal_block(base_block: Callable[..., None], n: int) -> Callable[..., None]:
    """The block of a row by itself, of a likelihood of n predictors; one more is lambda."""
    integral, n_rows = _integral(base_block, n, _one), _n_rows(n)
    n_work = 1 + n_rows + _n_sums(n + 1)

    @device
    def block(eta, y, m, order, value, d1, d2, work):
        ones, rows = part(work, 0, 1), part(work, 1, 1 + n_rows)
        sums = part(work, 1 + n_rows, n_work)
        for b in range(m):
            ones[0, b] = 1.0
        for b in range(m):
            value[b] = integral(eta, eta[n, b], y, b, 1, order, ones, ones, 0, rows, d1, d2, sums)
            if order > 1:
                for c in range(n + 1):
                    for e in range(c + 1):
                        d2[c * (c + 1) // 2 + e, b] += sums[4 + (2 + c) * (n + 1) + e, 0]

    WORK_ROWS[block] = n_work
    return block


def _n_rows(n: int) -> int:
    """Working rows of an integral: n predictors, log-densities and their derivatives."""
    return 2 * n + 1 + n * (n + 1) // 2


def _n_sums(q: int) -> int:
    """Numbers that an integral of q coefficients adds up."""
    return 4 + 2 * q + q * q


@cache
def intercepts_loop(base_block: Callable[..., None], n: int) -> Callable[..., None]:
    """The loop over groups with a normal intercept, compiled on first use.

    It is ``loop(theta, coefficients, y, order, phi, m, begin, rows, moments, spread)`` with the
    arguments of `moestat.kernels.groups.atoms_loop` and the first row of each group, for a
    likelihood of n predictors.  In `rows` it fills the log-density of each group, in its first row,
    and the mean derivatives in the channels under the shares of the nodes; in `moments` (k, G, 4)
    mean and variance of the standardised effect given the rows, and its least and largest node; in
    `spread` (k, G, q, q) from order 2 on the covariances of the slopes in the q coefficients of the
    likelihood's channels.
    """
    integral, n_rows = _integral(base_block, n, _of_channel), _n_rows(n)

    @compile_loop
    def loop(theta, coefficients, y, order, phi, m, begin, rows, moments, spread):
        index, width, layout = coefficients
        density, dl, d2l = rows[3], rows[4], rows[5]
        k, first, size = index.shape[0], layout[1], phi.shape[1]
        n_like, n_second, q = n + 1, (n + 1) * (n + 2) // 2, 0
        for c in range(n_like):
            q += width[first + c]
        eta, own = np.empty((n_like, size)), np.empty((n_rows, size))
        sums = np.empty((4 + 2 * q + q * q, 1))
        for i in range(k):
            for c in range(n_like):
                predict_channel(theta, index[i, first + c], width[first + c], phi, m, row(eta, c))
            scale = theta[index[i, first + n]]
            own_1 = part(dl, i * n_like, (i + 1) * n_like)
            own_2 = part(d2l, i * n_second, (i + 1) * n_second)
            for r in range(m):
                density[i, r] = 0.0
            for group in range(begin.size):
                s, e = begin[group], begin[group + 1] if group + 1 < begin.size else m
                density[i, s] = integral(
                    eta, scale, y, s, e - s, order, phi, width, first, own, own_1, own_2, sums
                )
                for p in range(4):
                    moments[i, group, p] = sums[p, 0]
                if order > 1:
                    for p in range(q):
                        for t in range(q):
                            spread[i, group, p, t] = sums[4 + 2 * q + p * q + t, 0]
        keep(eta)
        keep(own)
        keep(sums)

    return loop
