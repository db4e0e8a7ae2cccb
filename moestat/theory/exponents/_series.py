"""Truncated power series with coefficients of many digits, for many samples at once.

Coefficients are integers in fixed point, ``value = integer / 2^BITS``: Python's integers of any
length in arrays of objects, which NumPy's loops add and multiply without a call per number.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from moestat.theory.exponents._tapes import Group

__all__ = ["BITS", "Space", "evaluate", "fixed", "to_floats"]

BITS = 320
"""Bits after the point, 96 digits: relations are exact to 1e-90, and functions that differ to
1e-35 of their size, as those of narrow inputs do, are told apart."""
ONE = 1 << BITS

Integers = np.ndarray
"""An array of Python integers in fixed point."""


@lru_cache(maxsize=100_000)
def _of_float(value: float) -> int:
    exact = Fraction(repr(value))
    return (exact.numerator << BITS) // exact.denominator


def fixed(value: Any) -> int:
    """A number (a float, a Fraction, an mpf) in fixed point; a float is taken as it prints."""
    if isinstance(value, Fraction):
        return (value.numerator << BITS) // value.denominator
    import mpmath

    if isinstance(value, mpmath.mpf):
        return int(mpmath.nint(mpmath.ldexp(value, BITS)))
    return _of_float(float(value))


def to_floats(values: Integers) -> np.ndarray:
    """The numbers as floats."""
    return np.vectorize(_to_float, otypes=[np.float64])(values)


def _to_float(value: int) -> float:
    shift = max(abs(value).bit_length() - 1000, 0)
    return float(value >> shift) * 2.0 ** (shift - BITS) if shift < BITS else float(value >> BITS)


class Space:
    """Series in so many variables up to an order: which products of monomials make which."""

    def __init__(self, n_variables: int, order: int) -> None:
        self.n_variables, self.order = n_variables, order
        self.monomials: list[tuple[int, ...]] = [
            tuple(np.bincount(each, minlength=n_variables).tolist()) if each else (0,) * n_variables
            for degree in range(order + 1)
            for each in combinations_with_replacement(range(n_variables), degree)
        ]
        self.place = {monomial: at for at, monomial in enumerate(self.monomials)}
        self.degrees = [sum(monomial) for monomial in self.monomials]

    def product_place(self, i: int, j: int) -> int | None:
        """Place of the product of two monomials; None above the order."""
        if self.degrees[i] + self.degrees[j] > self.order:
            return None
        one, two = self.monomials[i], self.monomials[j]
        return self.place[tuple(a + b for a, b in zip(one, two, strict=True))]


@lru_cache(maxsize=32)
def space(n_variables: int, order: int) -> Space:
    """The space of series, made once."""
    return Space(n_variables, order)


Series = dict[int, Integers]
"""Place of a monomial -> coefficients (n,); those that are left out are 0."""


def _times(base: Space, a: Series, b: Series) -> Series:
    out: Series = {}
    for i, one in a.items():
        for j, two in b.items():
            k = base.product_place(i, j)
            if k is not None:
                term = one * two
                out[k] = out[k] + term if k in out else term
    return {k: value >> BITS for k, value in out.items()}


def _plus(a: Series, b: Series, sign: int = 1) -> Series:
    out = dict(a)
    for k, value in b.items():
        out[k] = (out[k] + sign * value) if k in out else sign * value
    return out


def _compose(base: Space, x: Series, derivatives: Sequence[Integers]) -> Series:
    """``f(x)`` from the Taylor coefficients of f at the constant of x, by Horner's rule."""
    rest = {k: value for k, value in x.items() if k}
    out: Series = {0: derivatives[-1]}
    if not rest:
        return {0: derivatives[0]}
    for coefficient in reversed(derivatives[:-1]):
        out = _times(base, out, rest)
        out[0] = out[0] + coefficient if 0 in out else coefficient
    return out


def _function(base: Space, name: str, x: Series) -> Series:
    import mpmath as mp

    order = base.order if len(x) > 1 or 0 not in x else 0
    at = x[0]
    if name == "exp":
        value = exp_fixed(at)
        found, factor = [value], 1
        for n in range(1, order + 1):
            factor *= n
            found.append(value // factor)
    elif name == "log":
        inverse = (ONE * ONE) // at
        found, power = [log_fixed(at)], np.full(at.shape, ONE, dtype=object)
        for n in range(1, order + 1):
            power = (power * inverse) >> BITS
            found.append((power if n % 2 else -power) // n)
    elif name == "reciprocal":
        inverse = (ONE * ONE) // at
        found = [inverse]
        for _ in range(order):
            found.append((-found[-1] * inverse) >> BITS)
    elif name == "erfc":
        # The first derivative is the normal density; the others follow by Hermite's recurrence.
        root = _constant("sqrt(pi)")
        slope = (-2 * exp_fixed(-(at * at >> BITS)) << BITS) // root
        derivatives = [_each(mp.erfc, at), slope]
        for n in range(2, order + 1):
            before = derivatives[n - 2] * (n - 2) if n > 2 else 0
            derivatives.append(-2 * ((at * derivatives[n - 1] >> BITS) + before))
        found, factor = [derivatives[0]], 1
        for n in range(1, order + 1):
            factor *= n
            found.append(derivatives[n] // factor)
    else:
        function = {"lgamma": mp.loggamma}.get(name) or getattr(mp, name)
        columns = [mp.taylor(function, _real(v), order) for v in at]
        found = [
            np.array([fixed(mp.mpf(mp.re(column[n]))) for column in columns], dtype=object)
            for n in range(order + 1)
        ]
    return _compose(base, x, found)


@lru_cache(maxsize=8)
def _constant(text: str) -> int:
    import mpmath as mp

    with mp.workprec(BITS + 64):
        return int(mp.nint(mp.ldexp(mp.mpf({"sqrt(pi)": mp.sqrt(mp.pi)}[text]), BITS)))


def _each(function: Any, values: Integers) -> Integers:
    return np.array([fixed(function(_real(v))) for v in values], dtype=object)


def _real(value: int) -> Any:
    import mpmath as mp

    return mp.ldexp(mp.mpf(value), -BITS)


_HALVINGS = 10
"""Halvings of the argument of an exponential before its series: fewest multiplications."""


@lru_cache(maxsize=1)
def _log_2() -> int:
    import mpmath as mp

    with mp.workprec(BITS + 64):
        return int(mp.nint(mp.ldexp(mp.log(2), BITS)))


def exp_fixed(x: Integers) -> Integers:
    """``e^x`` of numbers in fixed point, by halving, Taylor's series and squaring."""
    guard = 24
    two = _log_2()
    k = np.array([int(v) // two for v in x], dtype=object)
    r = (x - k * two) << guard
    r = r >> _HALVINGS
    bits = BITS + guard
    # e^r - 1 is squared without the 1, so that no bits are lost.
    total, term, n = r, r, 1
    while max(map(abs, term.tolist()), default=0):
        n += 1
        term = ((term * r) >> bits) // n
        total = total + term
    for _ in range(_HALVINGS):
        total = 2 * total + ((total * total) >> bits)
    value = total + (1 << bits)
    return np.array(
        [
            int(v) << int(e) >> guard if e >= 0 else int(v) >> (guard - int(e))
            for v, e in zip(value, k, strict=True)
        ],
        dtype=object,
    )


def log_fixed(x: Integers) -> Integers:
    """``log x`` of positive numbers, by Halley's steps from the float."""
    import math

    y = np.array([_start(int(v), math) for v in x], dtype=object)
    for _ in range(2):  # from 53 digits of 2 to 159, to 477
        e = exp_fixed(y)
        y = y + (2 * (x - e) << BITS) // (x + e)
    return y


def _start(value: int, math: Any) -> int:
    bits = value.bit_length()
    shift = max(bits - 60, 0)
    return fixed(math.log(value >> shift) + (shift - BITS) * math.log(2.0))


def evaluate(
    group: Group, base: Space, channels: Integers, features: Integers, response: Integers
) -> tuple[Series, Series]:
    """Log-weight and value of an atom as series in its channels.

    Parameters
    ----------
    group : Group
        Samples with one tape.
    base : Space
        One variable for each channel.
    channels, features, response : ndarray of int
        Channels (C, n), features (1 + d, n) and responses (n,) of the group's samples.
    """
    import mpmath as mp

    n = group.rows.size
    done: list[Series] = []
    with mp.workprec(BITS + 32):
        for operation in group.operations:
            name, *at = operation
            if name == "channel":
                unit = tuple(int(c == at[0]) for c in range(base.n_variables))
                series = {0: channels[at[0]]}
                if base.order:
                    series[base.place[unit]] = np.full(n, ONE, dtype=object)
            elif name == "feature":
                series = {0: features[at[0]]}
            elif name == "response":
                series = {0: response}
            elif name == "constant":
                series = {0: np.array([fixed(v) for v in group.constants[at[0]]], dtype=object)}
            elif name in ("add", "sub"):
                series = _plus(done[at[0]], done[at[1]], 1 if name == "add" else -1)
            elif name == "mul":
                series = _times(base, done[at[0]], done[at[1]])
            elif name == "div":
                inverse = _function(base, "reciprocal", done[at[1]])
                series = _times(base, done[at[0]], inverse)
            else:
                series = _function(base, name, done[at[0]])
            done.append(series)
    return done[group.weight], done[group.value]


def exponential(base: Space, series: Series) -> Series:
    """``e^series``."""
    import mpmath as mp

    with mp.workprec(BITS + 32):
        return _function(base, "exp", series)


def product(base: Space, a: Series, b: Series) -> Series:
    """The product of two series."""
    return _times(base, a, b)
