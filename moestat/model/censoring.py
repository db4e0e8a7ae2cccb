"""Censored responses: known exactly, from below, from above, or between two numbers.

A response is stored as one complex number.  Its real part is a number that is known of it, the
response itself or a bound; its imaginary part is the same for a response that is known, the upper
bound of one in an interval, and +-1e99 for one above, or below, the real part.

Source: Kalbfleisch and Prentice (2002), Sec. 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import Encoded, FloatArray
from moestat.base.validate import as_floats, as_plain_array
from moestat.compiler.jit import device
from moestat.compiler.math import decay_less_one, exp, log
from moestat.model.members import Likelihood
from moestat.model.reference import HALF_LOG_2PI

__all__ = ["FAR", "OPEN", "bounds_of", "censored", "extreme", "normal"]

FAR = 1e99
OPEN = 1e98
_CLOSE = 5.0
"""From here on Mills' ratio is a continued fraction."""
_TERMS = 20
_STEEPEST = 300.0


@device
def normal(z):
    """Standard normal: log-density with two derivatives, and the logarithm of the survival."""
    value = -0.5 * z * z - HALF_LOG_2PI
    slope = -z
    curve = -1.0
    if z < _CLOSE:
        return value, slope, curve, math.log(0.5 * math.erfc(z * math.sqrt(0.5)))
    ratio = z
    for term in range(_TERMS, 0, -1):
        ratio = z + term / ratio
    return value, slope, curve, value - log(ratio)


@device
def extreme(z):
    """The same of the least extreme value, the logarithm of an exponential variable."""
    e = exp(z if z < _STEEPEST else _STEEPEST)
    return z - e, 1.0 - e, -e, -e


@device
def normal_below(z):
    """Logarithm of the distribution function of a standard normal variable."""
    return normal(-z)[3]


@device
def extreme_below(z):
    """The same of the least extreme value."""
    share = -decay_less_one(extreme(z)[3])
    return log(share if share > 1e-300 else 1e-300)


@device
def normal_between(low, high):
    """``log(S(low) - S(high))`` of standard normal variables, by the smaller tail."""
    turned = low + high < 0.0
    near = -high if turned else low
    far = -low if turned else high
    top, other = normal(near)[3], normal(far)[3]
    return top + log(-decay_less_one(other - top if other < top else -1e-300))


@device
def extreme_between(low, high):
    """``log(S(low) - S(high))`` of least extreme values."""
    top, other = extreme(low)[3], extreme(high)[3]
    return top + log(-decay_less_one(other - top if other < top else -1e-300))


@cache
def _block(
    law: Callable[..., Any],
    below_of: Callable[..., Any],
    between: Callable[..., Any],
    log_scale: bool,
    power: float,
) -> Callable[..., None]:
    """Log-density, or log-probability of an interval, of ``eta + sigma Z`` on a scale.

    With densities p at the ends A and B of an interval over its probability, at ends that there
    are, and their slopes in them, derivatives in the ends are -p_A and p_B, then
    ``-p_A (psi_A + p_A)``, ``p_A p_B`` and ``p_B (psi_B - p_B)``; ``dz/d eta = -1 / sigma`` and
    ``dz/d log sigma = -z``.  The last predictor is the logarithm of sigma times `power`; with
    power 0 sigma is 1.
    """
    by = 1.0 / power if power else 0.0

    @device
    def block(eta, y, m, order, value, d1, d2):
        inverse = exp(-by * eta[1, 0]) if power else 1.0
        top = by * eta[1, 0] if power else 0.0
        for b in range(m):
            first, last = y[b].real, y[b].imag
            exact = first == last
            above, below = last > OPEN, last < -OPEN
            level = log(first) if log_scale else first
            low = inverse * (level - eta[0, b])
            high = low
            if not (exact or above or below):
                high = inverse * ((log(last) if log_scale else last) - eta[0, b])
            f_low, psi_low, bend, s_low = law(low)
            f_high, psi_high, _, _ = law(high)
            a, c = 0.0, 0.0
            if exact:
                value[b] = f_low - top - (level if log_scale else 0.0)
                one, two = psi_low, 0.0
                one_one = bend
                one_two = 0.0
                two_two = 0.0
            else:
                if above:
                    value[b] = s_low
                elif below:
                    value[b] = below_of(low)
                else:
                    value[b] = between(low, high)
                a = 0.0 if below else decay_up(f_low - value[b])
                c = 0.0 if above else decay_up((f_low if below else f_high) - value[b])
                one, two = -a, c
                one_one = -a * (psi_low + a)
                one_two = a * c
                two_two = c * ((psi_low if below else psi_high) - c)
            lower, upper = low, high
            d1[0, b] = -inverse * (one + two)
            slope = lower * one + upper * two
            if power:
                d1[1, b] = by * (-slope - (1.0 if exact else 0.0))
            if order > 1:
                d2[0, b] = inverse * inverse * (one_one + 2.0 * one_two + two_two)
                if power:
                    cross = lower * one_one + (lower + upper) * one_two + upper * two_two
                    d2[1, b] = by * inverse * (cross + one + two)
                    square = lower * lower * one_one + 2.0 * lower * upper * one_two
                    d2[2, b] = by * by * (square + upper * upper * two_two + slope)

    return block


@device
def decay_up(x):
    """``e^x`` of a logarithm of a hazard, which is not large."""
    return exp(x if x < _STEEPEST else _STEEPEST)


def bounds_of(y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds (n,) of responses (n,) or (n, 2); equal for those that are known."""
    values = as_plain_array("y", y)
    if values.ndim == 1:
        response = as_floats("y", values, (None,))
        return response, response
    if values.ndim != 2 or values.shape[1] != 2:
        raise ValueError(
            "y must have shape (n,), or (n, 2) for a lower and an upper bound of each response,"
            f" infinite where there is none; got {values.shape}"
        )
    bounds = np.asarray(values, dtype=np.float64)
    if np.isnan(bounds).any():
        raise ValueError("y holds NaN; if there is no bound, it must be infinite")
    low, high = bounds.T
    invalid = np.flatnonzero((low > high) | (np.isinf(low) & np.isinf(high)))
    if invalid.size:
        at = invalid[0]
        raise ValueError(
            f"y: row {at} (from 0) has the bounds {low[at]:g}, {high[at]:g}; the lower one must not"
            " be above the upper one, and one of them finite. If these columns are inputs, X and y"
            " are swapped: the order is fit(family, X, y)"
        )
    return low, high


def censored(base: Likelihood, law: str, power: float) -> Likelihood:
    """The likelihood of responses ``T(y) = eta + sigma Z`` of which some are censored.

    T is the identity or, for positive ones, the logarithm; Z has the `law`.  The last predictor is
    the logarithm of sigma times `power`, 0 where sigma is 1.
    """
    positive = base.ends[0] == 0.0
    parts = {
        "normal": (normal, normal_below, normal_between),
        "extreme": (extreme, extreme_below, extreme_between),
    }[law]

    def encode(y: ArrayLike, n_classes: int) -> Encoded:
        """Responses (n,), or bounds (n, 2), checked, as complex numbers."""
        low, high = bounds_of(y)
        least = 0.0 if positive else -np.inf
        invalid = np.flatnonzero((high <= least) | (low < least) | ((low == least) & (low == high)))
        if invalid.size:
            raise ValueError(f"y must hold positive numbers; got {low[invalid[0]]:g}")
        below, above = low <= least, np.isinf(high)
        idle = np.flatnonzero(below & above)
        if idle.size:
            raise ValueError(
                f"y: the bounds {low[idle[0]]:g} and {high[idle[0]]:g} of row {idle[0]} contain"
                " every possible response; leave such rows out"
            )
        last = np.where(above, FAR, np.where(below, -FAR, high))
        return np.where(below, high, low) + 1j * last

    def decode(y: Encoded) -> FloatArray:
        """Bounds (n, 2); responses as they are where they were not encoded."""
        if not np.iscomplexobj(y):
            return np.asarray(y)
        first, last = np.real(y), np.imag(y)
        above, below = last > OPEN, last < -OPEN
        low = np.where(below, 0.0 if positive else -np.inf, first)
        high = np.where(above, np.inf, np.where(below, first, last))
        return np.column_stack([low, high])

    return replace(
        base,
        block=_block(*parts, positive, power),
        encode=encode,
        decode=decode,
        dtype=np.complex128,
        units=replace(base.units, shift_response=False, scale_response=False),
        options={"censored": True},
    )
