"""Densities of groups with normal effects, ``int prod_r f(y_r | eta_r + lambda_r v) phi(v) dv``.

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

A second effect w that is shared by several such integrals, or by one, is integrated out by the same
rule: the logarithm of ``int prod_c h_c(w) phi(w) dw`` is concave, too, because marginals of
log-concave functions are (Prekopa 1973), and its derivatives are means and covariances of those
above.  Normal rows make the integrand normal: three nodes are exact for all of these.

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
from moestat.kernels.atom import VARYING, WORK_ROWS
from moestat.kernels.rows import predict_channel
from moestat.kernels.views import keep, part, row

_STEP = 0.45
"""Distance of nodes in standard deviations of the integrand: the sum over every other node of a
normal one is exact to 2 exp(-2 pi^2 / .81), 5e-11."""

_STEP_OF_PREDICTOR = 0.62
"""Distance of nodes in units of the predictor.  Log-likelihoods of yes and no have singularities at
a distance of pi: the sum over every other node is exact to about exp(-2 pi^2 / 1.24), 1e-7.  Those
of counts grow beyond a distance of pi / 2, and nodes in the middle make their sums as exact."""

_HALVINGS = 2
"""Number of times, at most, that nodes in the middle of others are added."""

_AGREEMENT = 1e-6
"""Relative difference of the sums over every other node: the error is about its square."""

_NEGLIGIBLE = 1e-16
"""Share of the largest term at which a sum ends."""

_SPAN = 8.6
"""Distance from the mode in units of the effect at which terms are negligible, because the second
derivative of the logarithm is at most -1."""

_MOST = 96
"""Nodes of the first sum on a side at most: panels need 300 to 700 in all."""

_CLIMB = 400
"""Steps to the mode at most: steps double until the slope changes its sign, and then are halved."""

_NEAR = 0.02
"""Size of the last Newton step in standard deviations: nodes need not be exactly about the mode."""

_LEAST = -700.0
"""Logarithm of a share that is 0: less would underflow."""

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)

_SQRT_2PI = math.sqrt(2.0 * math.pi)

_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_N_PLACES = 20
"""Gauss's rule on [-1, 1] of a panel."""

_SLOPE_ERROR = 1e-12, 1e-10
"""Error of the integral of the slope over a panel, times the width of the panel, relative to the
integral: that of the integrand itself is smaller by the number of nodes.  The slope of an integral
of integrals is known less exactly."""

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
def _adaptive(
    look: Callable[..., Any],
    clear: Callable[..., None],
    visit: Callable[..., tuple[float, float]],
    slope_error: float,
) -> Callable[..., Any]:
    """The rule ``rule(order, widest, group, features, sums_of)``, exact for every scale.

    ``look(v, order, group)`` is the logarithm of the integrand with its slope and minus its second
    derivative, ``clear(order, group, features, sums_of)`` makes sums of no nodes, and ``visit(v,
    weight, top, order, group, features, sums_of)`` adds a node to them and returns its share and
    the slope there.  The predictors move by at most `widest` with v, and the search for the mode
    begins at `start`.  It returns the logarithm of the integral, the sum of the shares and the
    mode.
    """

    @device(forceinline=False)
    def rule(order, widest, start, group, features, sums_of):
        v, last = start, 0.0
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
        if widest != 0.0:
            step = min(step, _STEP_OF_PREDICTOR / widest)
        short = _MOST * step >= _SPAN
        if not short:
            right, _, _ = look(v + _MOST * step, 0, group)
            left, _, _ = look(v - _MOST * step, 0, group)
            short = max(left, right) - top < math.log(_NEGLIGIBLE)
        total, spacing, exact = 0.0, 1.0, False
        if short:
            clear(order, group, features, sums_of)
            # First the even and the odd nodes, then, while they disagree, those in the middle.
            spacing, begin = step, 0.0
            for half in range(_HALVINGS + 1):
                even = odd = 0.0
                for side in range(2):
                    sign = 1.0 if side == 0 else -1.0
                    for j in range(side if half == 0 else 0, (_MOST << half) + 1):
                        node = v + sign * (begin + spacing * j)
                        share, _ = visit(node, 1.0, top, order, group, features, sums_of)
                        if j % 2 == 0:
                            even += share
                        else:
                            odd += share
                        if not share > _NEGLIGIBLE:
                            break
                error = abs(even - odd) if half == 0 else abs(even + odd - total)
                total += even + odd
                exact = error <= _AGREEMENT * total
                spacing *= 1.0 if half == 0 else 0.5
                begin = 0.5 * spacing
                # Each halving squares the difference.
                if exact or (error / total) ** (1 << (_HALVINGS - half)) > _AGREEMENT:
                    break
        if not exact:
            clear(order, group, features, sums_of)
            total, spacing = 0.0, 1.0
            tolerance = slope_error + _ROUNDING * abs(top)
            for side in range(2):
                sign = 1.0 if side == 0 else -1.0
                begin, share_of_begin, length = v, 1.0, 8.0 * step
                for _ in range(_PANELS):
                    if not share_of_begin > _NEGLIGIBLE:
                        break
                    middle, rise, mass = begin + 0.5 * sign * length, 0.0, 0.0
                    for j in range(_N_PLACES):
                        node = middle + 0.5 * length * _PLACES[j]
                        weight = 0.5 * length * _WEIGHTS[j]
                        share, slope = visit(node, weight, top, order, group, features, sums_of)
                        mass += share
                        rise += share * slope
                    end = begin + sign * length
                    height, _, _ = look(end, 0, group)
                    share_of_end = math.exp(max(height - top, _LEAST))
                    error = abs(sign * rise - (share_of_end - share_of_begin))
                    too_wide = length * error > tolerance * (total + mass)
                    if too_wide and length > _NARROW * step:
                        # Few panels are too wide: their nodes are taken out again.
                        for j in range(_N_PLACES):
                            node = middle + 0.5 * length * _PLACES[j]
                            weight = -0.5 * length * _WEIGHTS[j]
                            visit(node, weight, top, order, group, features, sums_of)
                        length *= 0.5
                        continue
                    total += mass
                    begin, share_of_begin, length = end, share_of_end, 2.0 * length
                if not share_of_begin <= _NEGLIGIBLE:
                    return math.nan, total, v
        return top + math.log(total * spacing) - _HALF_LOG_2PI, total, v

    return rule


@cache
def _of_normal(
    look: Callable[..., Any],
    clear: Callable[..., None],
    visit: Callable[..., tuple[float, float]],
    slope_error: float,
) -> Callable[..., Any]:
    """The rule for normal integrands, see `_adaptive`: Gauss and Hermite's with three nodes.

    Slopes of the logarithm are quadratic functions of the effect: the rule is exact for them, for
    their products, and for second derivatives.
    """

    @device(forceinline=False)
    def rule(order, widest, start, group, features, sums_of):
        _, slope, bend = look(0.0, 2, group)
        v = slope / bend
        top, _, _ = look(v, 0, group)
        side, deviation = math.sqrt(3.0 / bend), 1.0 / math.sqrt(bend)
        clear(order, group, features, sums_of)
        total, _ = visit(v, 2.0 / 3.0, top, order, group, features, sums_of)
        weight = math.exp(1.5) / 6.0
        for sign in (-1.0, 1.0):
            share, _ = visit(v + sign * side, weight, top, order, group, features, sums_of)
            total += share
        return top + math.log(total * deviation * _SQRT_2PI) - _HALF_LOG_2PI, total, v

    return rule


def _rule(normal: bool) -> Callable[..., Any]:
    """The rule of normal rows or of others."""
    return _of_normal if normal else _adaptive


_OWN = 4
"""Sums of an integral before its mode and those by coefficients: mean and variance of the effect,
and slope and second derivative of the integral along a direction of the predictors."""

_MODE = _OWN
_BEFORE = _MODE + 1
"""Places of the mode, at which a search for that of the next integrand begins, and of the sums by
coefficients."""

_RECORD = 3
"""Depth of a sum whose nodes and shares are written down."""


@cache
def _constant(base_block: Callable[..., None], n: int) -> Callable[..., float]:
    """The sum of the terms of log-densities that no predictor enters, which no node has."""
    varying, n_rows = VARYING.get(base_block, base_block), _n_rows(n)

    if varying is base_block:

        @device
        def none(eta, y, s, m, rows):
            return 0.0

        return none

    @device(forceinline=False)
    def constant(eta, y, s, m, rows):
        at, one = part(rows, 0, n), row(rows, n)
        g1, g2 = part(rows, n + 1, 2 * n + 1), part(rows, 2 * n + 1, n_rows)
        for r in range(m):
            at[0, r] = 0.0
            for c in range(1, n):
                at[c, r] = eta[c, s + r]
        own = part(y, s, s + m)
        total = 0.0
        base_block(at, own, m, 0, one, g1, g2)
        for r in range(m):
            total += one[r]
        varying(at, own, m, 0, one, g1, g2)
        for r in range(m):
            total -= one[r]
        return total

    return constant


@cache
def _integral(
    base_block: Callable[..., None], n: int, count: Callable[..., int], normal: bool
) -> Callable[..., Any]:
    """The integral of rows that share an effect, for a likelihood of n predictors.

    It is ``integral(eta, load, along, y, s, m, order, depth, phi, width, first, rows, dl, d2l,
    sums, at)`` with the predictors eta (n, .) at an effect of 0, the responses, the loadings of the
    effect, a direction `along` and the features phi of m rows from s on; channel c has
    ``count(width, first + c)`` coefficients, q together, the last one of them that of the loadings.
    It returns the logarithm of the integral, without what `_constant` adds, and fills the mean
    derivatives by channel of each row, `dl` and `d2l`, as far as `order`, and the column `at` of
    `sums` (`_n_sums`, .): those of `_OWN`, the latter as far as `depth`, the mode, which is read as
    a start first, then slopes in the coefficients, their means and covariances.  The working rows
    `rows` (`_n_rows`, .) are at least m wide.  At depth `_RECORD` nodes and shares are in the last
    two columns of `record`, as far as it reaches, and their number in place of the slope.
    """
    n_pairs, varying = n * (n + 1) // 2, VARYING.get(base_block, base_block)

    @device
    def look(v, order, group):
        """The logarithm of the integrand, its slope and minus its second derivative."""
        eta, load, _, y, s, m, rows = group
        at, one = part(rows, 0, n), row(rows, n)
        g1, g2 = part(rows, n + 1, 2 * n + 1), part(rows, 2 * n + 1, 2 * n + 1 + n_pairs)
        for r in range(m):
            at[0, r] = eta[0, s + r] + load[s + r] * v
        varying(at, part(y, s, s + m), m, order, one, g1, g2)
        height, slope, bend = -0.5 * v * v, -v, 1.0
        for r in range(m):
            height += one[r]
        if order > 0:
            for r in range(m):
                slope += load[s + r] * g1[0, r]
        if order > 1:
            for r in range(m):
                bend -= load[s + r] * load[s + r] * g2[0, r]
        return height, slope, bend

    @device
    def clear(orders, group, features, sums_of):
        """Sums of no nodes."""
        order, _ = orders
        _, _, _, _, s, m, _ = group
        _, _, _, q = features
        dl, d2l, sums, at, _ = sums_of
        for p in range(_OWN):
            sums[p, at] = 0.0
        for p in range(q if order > 1 else 0):
            sums[_BEFORE + q + p, at] = 0.0
            for t in range(q):
                sums[_BEFORE + 2 * q + p * q + t, at] = 0.0
        for r in range(s, s + m):
            for c in range(n + 1 if order > 0 else 0):
                dl[c, r] = 0.0
            for c in range((n + 1) * (n + 2) // 2 if order > 1 else 0):
                d2l[c, r] = 0.0

    @device
    def visit(node, weight, top, orders, group, features, sums_of):
        """Add a node to the sums; its share and the slope of the logarithm."""
        order, depth = orders
        _, _, along, _, s, m, rows = group
        phi, width, first, q = features
        dl, d2l, sums, at, record = sums_of
        recorded = depth == _RECORD
        height, slope, _ = look(node, max(order, 1 if recorded else depth, 1), group)
        g1, g2 = part(rows, n + 1, 2 * n + 1), part(rows, 2 * n + 1, 2 * n + 1 + n_pairs)
        share = weight * math.exp(max(height - top, _LEAST))
        sums[0, at] += share * node
        sums[1, at] += share * node * node
        if recorded:
            place = int(sums[2, at])
            if place < record.shape[0]:
                record[place, 1], record[place, 2] = node, share
            sums[2, at] += 1.0
        elif depth > 0:
            rise = bend = 0.0
            for r in range(m):
                rise += along[s + r] * g1[0, r]
            sums[2, at] += share * rise
            if depth > 1:
                for r in range(m):
                    bend += along[s + r] * along[s + r] * g2[0, r]
                sums[3, at] += share * (rise * rise + bend)
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
                    sums[_BEFORE + place, at] = factor * total
                    place += 1
            for p in range(q):
                term = share * sums[_BEFORE + p, at]
                sums[_BEFORE + q + p, at] += term
                for t in range(p + 1):
                    sums[_BEFORE + 2 * q + p * q + t, at] += term * sums[_BEFORE + t, at]
            for c in range(n_pairs):
                for r in range(m):
                    d2l[c, s + r] += share * g2[c, r]
            for c in range(n):
                pair = c * (c + 1) // 2
                for r in range(m):
                    d2l[n_pairs + c, s + r] += share * node * g2[pair, r]
            for r in range(m):
                d2l[n_pairs + n, s + r] += share * node * node * g2[0, r]
        return share, slope

    rule = _rule(normal)(look, clear, visit, _SLOPE_ERROR[0])

    @device(forceinline=False)
    def integral(
        eta, load, along, y, s, m, order, depth, phi, width, first, rows, dl, d2l, sums, at, record
    ):
        q = 0
        for c in range(n + 1):
            q += count(width, first + c)
        for c in range(1, n):
            for r in range(m):
                rows[c, r] = eta[c, s + r]
        widest = 0.0
        for r in range(s, s + m):
            widest = max(widest, abs(load[r]))
        value, total, sums[_MODE, at] = rule(
            (order, depth),
            widest,
            sums[_MODE, at],
            (eta, load, along, y, s, m, rows),
            (phi, width, first, q),
            (dl, d2l, sums, at, record),
        )
        if depth == _RECORD:
            for p in range(min(int(sums[2, at]), record.shape[0])):
                record[p, 2] /= total
            return value
        for p in range(_OWN):
            sums[p, at] /= total
        sums[1, at] -= sums[0, at] * sums[0, at]
        sums[3, at] -= sums[2, at] * sums[2, at]
        if order > 0:
            for c in range(n + 1):
                for r in range(s, s + m):
                    dl[c, r] /= total
        if order > 1:
            for c in range((n + 1) * (n + 2) // 2):
                for r in range(s, s + m):
                    d2l[c, r] /= total
            mean, square = _BEFORE + q, _BEFORE + 2 * q
            for p in range(q):
                sums[mean + p, at] /= total
                for t in range(p + 1):
                    value_of_pair = sums[square + p * q + t, at] / total
                    value_of_pair -= sums[mean + p, at] * sums[mean + t, at]
                    sums[square + p * q + t, at] = value_of_pair
                    sums[square + t * q + p, at] = value_of_pair
        return value

    return integral


@cache
def _integral_of_integrals(
    base_block: Callable[..., None], n: int, count: Callable[..., int], normal: bool
) -> Callable[..., Any]:
    """The integral of rows that share a second effect, by parts whose rows share the first one.

    It is ``integral(eta, y, parts, begin, end, last, order, phi, width, first, rows, moved, inner,
    outer, sums, chosen, place, record)`` with the predictors eta (n + 2, .), the last ones of which
    are the loadings of the first and of the second effect; the parts `begin` to `end` begin at the
    rows `parts`, and the last one ends before the row `last`.  `inner` are ``dl, d2l, sums`` of the
    integrals of the parts, `outer` ``dl, d2l`` of the whole; `moved` (n, .) has predictors of its
    own.  `sums` (.,) are mean and variance of the second effect, q2 means and q2 x q2 covariances
    of the slopes in the coefficients, then for each part mean and variance of its effect and
    covariance with the second one.

    Where there is a part `chosen`, not below 0, rows of `record` get the second effect, the first
    one of this part, and the share of this node; `place` (1,) is their number, of which `record`
    may hold fewer.  Panels that were too wide have shares of either sign.
    """
    integral, n_pairs = _integral(base_block, n, count, normal), (n + 1) * (n + 2) // 2

    @device(forceinline=False)
    def of_part(p, order, depth, group, features, inner, record):
        """The integral of a part at the predictors `moved`."""
        eta, y, parts, begin, end, last, rows, moved = group
        phi, width, first, _ = features
        dl, d2l, sums = inner
        s, e = parts[p], parts[p + 1] if p + 1 < end else last
        return integral(
            moved,
            row(eta, n),
            row(eta, n + 1),
            y,
            s,
            e - s,
            order,
            depth,
            phi,
            width,
            first,
            rows,
            dl,
            d2l,
            sums,
            p - begin,
            record,
        )

    @device(forceinline=False)
    def heights(v, order, depth, group, features, inner):
        """The logarithm of the integrand, with slope and minus second derivative."""
        eta, _, parts, begin, end, last, _, moved = group
        _, _, sums = inner
        for r in range(parts[begin], last):
            moved[0, r] = eta[0, r] + eta[n + 1, r] * v
        height, slope, bend = -0.5 * v * v, -v, 1.0
        for p in range(begin, end):
            height += of_part(p, order, depth, group, features, inner, part(moved, 0, 0))
            slope += sums[2, p - begin]
            bend -= sums[3, p - begin]
        return height, slope, bend

    @device
    def look(v, order, group):
        own, features, inner = group
        return heights(v, 0, order, own, features, inner)

    @device
    def clear(order, group, features, sums_of):
        _, _, parts, begin, end, last, _, _ = group[0]
        _, _, _, q = group[1]
        (dl, d2l), sums, _, place, _ = sums_of
        place[0] = 0.0
        q2 = q + features
        size = 2 + q2 + q2 * q2 + 3 * (end - begin)
        for p in range(size):
            sums[p] = 0.0
        for r in range(parts[begin], last):
            for c in range(n + 2 if order > 0 else 0):
                dl[c, r] = 0.0
            for c in range((n + 2) * (n + 3) // 2 if order > 1 else 0):
                d2l[c, r] = 0.0

    @device(forceinline=False)
    def visit(node, weight, top, order, group, features, sums_of):
        own, inner_features, inner = group
        _, _, parts, begin, end, last, _, _ = own
        _, _, _, q = inner_features
        dl1, d2l1, sums1 = inner
        (dl, d2l), sums, chosen, place, record = sums_of
        w = features
        q2 = q + w
        height, slope, _ = heights(node, order, 1, own, inner_features, inner)
        share = weight * math.exp(max(height - top, _LEAST))
        sums[0] += share * node
        sums[1] += share * node * node
        at = 2 + q2 + q2 * q2
        for p in range(end - begin):
            effect = sums1[0, p]
            sums[at + 3 * p] += share * effect
            sums[at + 3 * p + 1] += share * (sums1[1, p] + effect * effect)
            sums[at + 3 * p + 2] += share * node * effect
        if order > 0:
            for r in range(parts[begin], last):
                for c in range(n + 1):
                    dl[c, r] += share * dl1[c, r]
                dl[n + 1, r] += share * node * dl1[0, r]
        if order > 1:
            for r in range(parts[begin], last):
                for c in range(n_pairs):
                    d2l[c, r] += share * d2l1[c, r]
                for c in range(n + 1):
                    d2l[n_pairs + c, r] += share * node * d2l1[c * (c + 1) // 2, r]
                d2l[n_pairs + n + 1, r] += share * node * node * d2l1[0, r]
            # Coefficients of the second loading have the slopes of the first channel times v.
            mean, square = _BEFORE + q, _BEFORE + 2 * q
            for i in range(q2):
                from_i = i - q if i >= q else i
                factor_i = node if i >= q else 1.0
                slope_i = 0.0
                for p in range(end - begin):
                    slope_i += sums1[mean + from_i, p]
                slope_i *= factor_i
                sums[2 + i] += share * slope_i
                for j in range(i + 1):
                    from_j = j - q if j >= q else j
                    factor_j = node if j >= q else 1.0
                    slope_j = within = 0.0
                    for p in range(end - begin):
                        slope_j += sums1[mean + from_j, p]
                        within += sums1[square + from_i * q + from_j, p]
                    term = factor_i * factor_j * within + slope_i * factor_j * slope_j
                    sums[2 + q2 + i * q2 + j] += share * term
        if chosen >= 0:
            count_before = min(int(place[0]), record.shape[0])
            rest = part(record, count_before, record.shape[0])
            of_part(begin + chosen, 0, _RECORD, own, inner_features, inner, rest)
            for p in range(min(int(sums1[2, chosen]), rest.shape[0])):
                rest[p, 0] = node
                rest[p, 2] *= share
            place[0] += sums1[2, chosen]
        return share, slope

    rule = _rule(normal)(look, clear, visit, _SLOPE_ERROR[1])

    @device(forceinline=False)
    def whole(
        eta,
        y,
        parts,
        begin,
        end,
        last,
        order,
        phi,
        width,
        first,
        rows,
        moved,
        inner,
        outer,
        sums,
        chosen,
        place,
        record,
    ):
        q = 0
        for c in range(n + 1):
            q += count(width, first + c)
        w = count(width, first + n + 1)
        q2, widest = q + w, 0.0
        for r in range(parts[begin], last):
            widest = max(widest, abs(eta[n + 1, r]))
            for c in range(1, n):
                moved[c, r] = eta[c, r]
        group = (
            (eta, y, parts, begin, end, last, rows, moved),
            (phi, width, first, q),
            inner,
        )
        for p in range(end - begin):
            inner[2][_MODE, p] = 0.0
        into = outer, sums, chosen, place, record
        value, total, _ = rule(order, widest, 0.0, group, w, into)
        for p in range(min(int(place[0]), record.shape[0])):
            record[p, 2] /= total
        dl, d2l = outer
        for p in range(2 + q2 + q2 * q2 + 3 * (end - begin)):
            sums[p] /= total
        sums[1] -= sums[0] * sums[0]
        at = 2 + q2 + q2 * q2
        for p in range(end - begin):
            sums[at + 3 * p + 1] -= sums[at + 3 * p] * sums[at + 3 * p]
            sums[at + 3 * p + 2] -= sums[at + 3 * p] * sums[0]
        for r in range(parts[begin], last):
            for c in range(n + 2 if order > 0 else 0):
                dl[c, r] /= total
            for c in range((n + 2) * (n + 3) // 2 if order > 1 else 0):
                d2l[c, r] /= total
        for i in range(q2 if order > 1 else 0):
            for j in range(i + 1):
                covariance = sums[2 + q2 + i * q2 + j] - sums[2 + i] * sums[2 + j]
                sums[2 + q2 + i * q2 + j] = sums[2 + q2 + j * q2 + i] = covariance
        return value

    return whole


@cache
def marginal_block(base_block: Callable[..., None], n: int, q: int = 1) -> Callable[..., None]:
    """The block of a row by itself, of a likelihood of n predictors; q more are loadings.

    Only the sum of squares ``s^2`` of the loadings matters: with the slope D and the second
    derivative D2 in s, those in loadings a, b are ``a D / s`` and ``(a = b) D / s + a b (D2 - D /
    s) / s^2``.
    """
    integral, n_rows = _integral(base_block, n, _one, False), _n_rows(n)
    constant = _constant(base_block, n)
    n_sums, n_pairs = _n_sums(n + 1), (n + 1) * (n + 2) // 2
    n_own = (1 + n_pairs + n if q > 1 else 0) + 1
    n_work = 1 + n_rows + n_sums + n_own

    @device
    def block(eta, y, m, order, value, d1, d2, work):
        ones, rows = part(work, 0, 1), part(work, 1, 1 + n_rows)
        sums = part(work, 1 + n_rows, 1 + n_rows + n_sums)
        load = row(work, 1 + n_rows + n_sums)
        for b in range(m):
            ones[0, b] = 1.0
            square = 0.0
            for c in range(n, n + q):
                square += eta[c, b] * eta[c, b]
            load[b] = eta[n, b] if q == 1 else math.sqrt(square)
        dl, d2l = d1, d2
        if q > 1:
            dl = part(work, 2 + n_rows + n_sums, 3 + n_rows + n_sums + n)
            d2l = part(work, 3 + n_rows + n_sums + n, n_work)
        for b in range(m):
            sums[_MODE, 0] = 0.0
            value[b] = integral(
                eta, load, load, y, b, 1, order, 0, ones, ones, 0, rows, dl, d2l, sums, 0, ones
            )
            value[b] += constant(eta, y, b, 1, rows)
            if order > 1:
                for c in range(n + 1):
                    for e in range(c + 1):
                        d2l[c * (c + 1) // 2 + e, b] += sums[
                            _BEFORE + 2 * (n + 1) + c * (n + 1) + e, 0
                        ]
            if q > 1 and order > 0:
                s, ratio = load[b], 0.0
                if order > 1:
                    last = n * (n + 1) // 2
                    second = d2l[last + n, b]
                    ratio = dl[n, b] / s if s > _NO_LOAD else second
                    for c in range(n):
                        for e in range(c + 1):
                            d2[c * (c + 1) // 2 + e, b] = d2l[c * (c + 1) // 2 + e, b]
                    for c in range(n, n + q):
                        to = c * (c + 1) // 2
                        share = eta[c, b] / s if s > 0.0 else 0.0
                        for e in range(n):
                            d2[to + e, b] = share * d2l[last + e, b]
                        for e in range(n, c + 1):
                            other = eta[e, b] / s if s > 0.0 else 0.0
                            d2[to + e, b] = share * other * (second - ratio)
                            if e == c:
                                d2[to + e, b] += ratio
                for c in range(n):
                    d1[c, b] = dl[c, b]
                for c in range(n, n + q):
                    d1[c, b] = (eta[c, b] / s if s > 0.0 else 0.0) * dl[n, b]

    WORK_ROWS[block] = n_work
    return block


_NO_LOAD = 1e-6
"""Loading below which slope and loading have the ratio of the second derivative."""


def _n_rows(n: int) -> int:
    """Working rows of an integral: n predictors, log-densities and their derivatives."""
    return 2 * n + 1 + n * (n + 1) // 2


def _n_sums(q: int) -> int:
    """Numbers that an integral of q coefficients adds up."""
    return _BEFORE + 2 * q + q * q


@cache
def intercepts_loop(base_block: Callable[..., None], n: int) -> Callable[..., None]:
    """The loop over groups with one normal effect, compiled on first use.

    It is ``loop(theta, coefficients, y, order, phi, m, begin, parts, rows, moments, of_parts,
    spread)`` with the arguments of `moestat.kernels.groups.atoms_loop` and the first row of each
    group, for a likelihood of n predictors; `parts` and `of_parts` are those of `pairs_loop` and
    not used.  In `rows` it fills the log-density of each group, in its first row, and the mean
    derivatives in the channels under the shares of the nodes; in `moments` (k, G, 3) mean and
    variance of the standardised effect given the rows, and the log-density; in `spread` (k, G, q,
    q) from order 2 on the covariances of the slopes in the q coefficients of the likelihood's
    channels.
    """
    integral, n_rows = _integral(base_block, n, _of_channel, False), _n_rows(n)
    constant = _constant(base_block, n)

    @compile_loop
    def loop(theta, coefficients, y, order, phi, m, begin, parts, rows, moments, of_parts, spread):
        index, width, layout = coefficients
        density, dl, d2l = rows[3], rows[4], rows[5]
        k, first, size = index.shape[0], layout[1], phi.shape[1]
        n_like, n_second, q = n + 1, (n + 1) * (n + 2) // 2, 0
        for c in range(n_like):
            q += width[first + c]
        eta, own = np.empty((n_like, size)), np.empty((n_rows, size))
        sums, none = np.empty((_BEFORE + 2 * q + q * q, 1)), np.empty((0, 3))
        for i in range(k):
            for c in range(n_like):
                predict_channel(theta, index[i, first + c], width[first + c], phi, m, row(eta, c))
            own_1 = part(dl, i * n_like, (i + 1) * n_like)
            own_2 = part(d2l, i * n_second, (i + 1) * n_second)
            load = row(eta, n)
            for r in range(m):
                density[i, r] = 0.0
            for group in range(begin.size):
                s, e = begin[group], begin[group + 1] if group + 1 < begin.size else m
                sums[_MODE, 0] = 0.0
                value = integral(
                    eta,
                    load,
                    load,
                    y,
                    s,
                    e - s,
                    order,
                    0,
                    phi,
                    width,
                    first,
                    own,
                    own_1,
                    own_2,
                    sums,
                    0,
                    none,
                )
                value += constant(eta, y, s, e - s, own)
                density[i, s] = moments[i, group, 2] = value
                moments[i, group, 0], moments[i, group, 1] = sums[0, 0], sums[1, 0]
                if order > 1:
                    for p in range(q):
                        for t in range(q):
                            spread[i, group, p, t] = sums[_BEFORE + 2 * q + p * q + t, 0]
        keep(eta)
        keep(own)
        keep(sums)

    return loop


@cache
def pairs_loop(base_block: Callable[..., None], n: int, normal: bool) -> Callable[..., None]:
    """The loop over groups with two normal effects, compiled on first use.

    It is that of `intercepts_loop` with a second effect, which all rows of a group share; rows that
    share the first one, too, begin at `parts` (C,).  `of_parts` (k, C, 3) gets mean and variance of
    the first effect of these, and its covariance with the second one, of which `moments` has mean
    and variance.
    """
    integral = _integral_of_integrals(base_block, n, _of_channel, normal)
    constant, n_rows = _constant(base_block, n), _n_rows(n)

    @compile_loop
    def loop(theta, coefficients, y, order, phi, m, begin, parts, rows, moments, of_parts, spread):
        index, width, layout = coefficients
        density, dl, d2l = rows[3], rows[4], rows[5]
        k, first, size = index.shape[0], layout[1], phi.shape[1]
        n_like, n_second, q = n + 2, (n + 2) * (n + 3) // 2, 0
        for c in range(n + 1):
            q += width[first + c]
        q2, most, at = q + width[first + n + 1], 0, 0
        ends = np.empty(begin.size + 1, np.int64)
        for group in range(begin.size):
            while parts[at] < begin[group]:
                at += 1
            ends[group] = at
        ends[begin.size] = parts.size
        for group in range(begin.size):
            most = max(most, ends[group + 1] - ends[group])
        eta, own, moved = np.empty((n_like, size)), np.empty((n_rows, size)), np.empty((n, size))
        dl1, d2l1 = np.empty((n + 1, size)), np.empty(((n + 1) * (n + 2) // 2, size))
        none, place = np.empty((0, 3)), np.zeros(1)
        sums1 = np.zeros((_BEFORE + 2 * q + q * q, most))
        sums = np.empty(2 + q2 + q2 * q2 + 3 * most)
        for i in range(k):
            for c in range(n_like):
                predict_channel(theta, index[i, first + c], width[first + c], phi, m, row(eta, c))
            own_1 = part(dl, i * n_like, (i + 1) * n_like)
            own_2 = part(d2l, i * n_second, (i + 1) * n_second)
            for r in range(m):
                density[i, r] = 0.0
            for group in range(begin.size):
                s, e = begin[group], begin[group + 1] if group + 1 < begin.size else m
                a, b = ends[group], ends[group + 1]
                value = integral(
                    eta,
                    y,
                    parts,
                    a,
                    b,
                    e,
                    order,
                    phi,
                    width,
                    first,
                    own,
                    moved,
                    (dl1, d2l1, sums1),
                    (own_1, own_2),
                    sums,
                    -1,
                    place,
                    none,
                )
                value += constant(eta, y, s, e - s, own)
                density[i, s] = moments[i, group, 2] = value
                moments[i, group, 0], moments[i, group, 1] = sums[0], sums[1]
                for p in range(3 * (b - a)):
                    of_parts[i, a + p // 3, p % 3] = sums[2 + q2 + q2 * q2 + p]
                if order > 1:
                    for p in range(q2):
                        for t in range(q2):
                            spread[i, group, p, t] = sums[2 + q2 + p * q2 + t]
        keep(eta)
        keep(own)
        keep(moved)
        keep(dl1)
        keep(d2l1)
        keep(sums1)
        keep(sums)
        keep(none)
        keep(place)

    return loop


@cache
def nodes_loop(base_block: Callable[..., None], n: int, normal: bool) -> Callable[..., Any]:
    """A loop that writes down nodes of the effects of one group, compiled on first use.

    It is ``loop(eta, y, parts, chosen, record)`` with the predictors eta (n + 2, m), the last ones
    of which are the loadings, and the first rows of the parts of the group; see
    `_integral_of_integrals` for the part `chosen` and `record`.  It returns the number of nodes and
    the logarithm of the integral.
    """
    integral = _integral_of_integrals(base_block, n, _one, normal)
    constant, n_rows, n_sums, q2 = _constant(base_block, n), _n_rows(n), _n_sums(n + 1), n + 2

    @compile_loop
    def loop(eta, y, parts, chosen, record):
        m, count = eta.shape[1], parts.size
        own, moved, none = np.empty((n_rows, m)), np.empty((n, m)), np.empty((1, m))
        sums1, sums = np.zeros((n_sums, count)), np.empty(2 + q2 + q2 * q2 + 3 * count)
        place = np.zeros(1)
        value = integral(
            eta,
            y,
            parts,
            0,
            count,
            m,
            0,
            none,
            none,
            0,
            own,
            moved,
            (none, none, sums1),
            (none, none),
            sums,
            chosen,
            place,
            record,
        )
        value += constant(eta, y, 0, m, own)
        keep(own)
        keep(moved)
        keep(none)
        keep(sums1)
        keep(sums)
        keep(place)
        return int(place[0]), value

    return loop
