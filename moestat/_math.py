"""Branch-free exponentials and logarithms that LLVM turns into vector code.

numba's ``math.exp`` is a call per number.  These functions are polynomials in plain arithmetic,
so a loop over a block of samples becomes full-width vector instructions.  They are safe under
the reordering that ``FASTMATH`` allows: every step whose rounding matters goes through a fused
multiply-add or a bit pattern, which the optimiser may not reassociate.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from moestat._jit import device

__all__ = ["exp", "log", "log1p_unit", "log_sigmoid", "sigmoid", "softplus", "tempered_log_sigmoid"]


def fma(a: float, b: float, c: float) -> float:
    """``a * b + c`` (rounded once in compiled code, twice in plain Python)."""
    return a * b + c


def to_bits(x: float) -> int:
    """The bit pattern of a float64, as int64."""
    return int(np.float64(x).view(np.int64))


def from_bits(k: int) -> float:
    """The float64 with the bit pattern `k`."""
    return float(np.int64(k).view(np.float64))


@intrinsic
def _fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@intrinsic
def _to_bits(typingctx: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _from_bits(typingctx: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@overload(fma, inline="always")
def _overload_fma(a, b, c):
    return lambda a, b, c: _fma(a, b, c)  # pyright: ignore[reportCallIssue]


@overload(to_bits, inline="always")
def _overload_to_bits(x):
    return lambda x: _to_bits(x)  # pyright: ignore[reportCallIssue]


@overload(from_bits, inline="always")
def _overload_from_bits(k):
    return lambda k: _from_bits(k)  # pyright: ignore[reportCallIssue]


# Adding 1.5 * 2^52 leaves the nearest integer in the low bits of the mantissa.
_SHIFT = 6755399441055744.0
_SHIFT_BITS = to_bits(_SHIFT)
_LOG2_E = 1.4426950408889634
_LN2_HI = 6.93147180369123816490e-01  # the last 20 bits are zero: n * _LN2_HI is exact
_LN2_LO = 1.90821492927058770002e-10
_LN2 = 0.6931471805599453
_BIAS = 1023

# exp: the Taylor series on |r| <= ln(2)/2 is accurate to 4e-18 at degree 13.
_E2, _E3, _E4, _E5, _E6, _E7 = (1.0 / math.factorial(i) for i in range(2, 8))
_E8, _E9, _E10, _E11, _E12, _E13 = (1.0 / math.factorial(i) for i in range(8, 14))


@device(forceinline=True)
def exp(x: float) -> float:
    """Exponential; 0 below -745, inf above 709.8, NaN for NaN."""
    x = -1000.0 if x < -1000.0 else x
    x = 1000.0 if x > 1000.0 else x
    shifted = fma(x, _LOG2_E, _SHIFT)
    n = shifted - _SHIFT
    r = fma(-n, _LN2_LO, fma(-n, _LN2_HI, x))
    q = fma(_E13, r, _E12)
    q = fma(q, r, _E11)
    q = fma(q, r, _E10)
    q = fma(q, r, _E9)
    q = fma(q, r, _E8)
    q = fma(q, r, _E7)
    q = fma(q, r, _E6)
    q = fma(q, r, _E5)
    q = fma(q, r, _E4)
    q = fma(q, r, _E3)
    q = fma(q, r, _E2)
    p = 1.0 + fma(r * r, q, r)
    # 2^n in two factors: the first keeps p in range when 2^n alone would leave it.
    k = to_bits(shifted) - _SHIFT_BITS
    half = k >> 1
    p = fma(p, from_bits((half + _BIAS) << 52), 0.0)
    return fma(p, from_bits((k - half + _BIAS) << 52), 0.0)


# log: 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...).  |s| <= 0.1716 after the range reduction, where
# the truncated series is below 2e-17 relative at the term s^19 / 19.
_A3, _A5, _A7, _A9, _A11, _A13, _A15, _A17, _A19, _A21 = (2.0 / i for i in range(3, 22, 2))


@device(forceinline=True)
def _log1p_small(f: float) -> float:
    """``log(1 + f)`` for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    s = f / (2.0 + f)
    z = s * s
    q = fma(_A21, z, _A19)
    q = fma(q, z, _A17)
    q = fma(q, z, _A15)
    q = fma(q, z, _A13)
    q = fma(q, z, _A11)
    q = fma(q, z, _A9)
    q = fma(q, z, _A7)
    q = fma(q, z, _A5)
    q = fma(q, z, _A3)
    # 2 s = f - s f exactly, so the leading term carries no division error.
    return f - fma(s, f, -s * z * q)


_SQRT_HALF_BITS = to_bits(math.sqrt(0.5))


@device(forceinline=True)
def log(x: float) -> float:
    """Natural logarithm of a positive normal number; -inf for 0, inf for inf, NaN below 0."""
    bits = to_bits(x)
    e = (bits - _SQRT_HALF_BITS) >> 52
    m = from_bits(bits - (e << 52))
    ef = float(e)
    value = fma(ef, _LN2_HI, fma(ef, _LN2_LO, _log1p_small(m - 1.0)))
    value = value if x > 0.0 else math.nan
    value = -math.inf if x == 0.0 else value
    return x if x == math.inf else value


@device(forceinline=True)
def log1p_unit(y: float) -> float:
    """``log(1 + y)`` for 0 <= y <= 1, accurate for small y."""
    large = y > 0.41421356237309503
    f = 0.5 * (y - 1.0) if large else y
    return (_LN2 if large else 0.0) + _log1p_small(f)


@device(forceinline=True)
def sigmoid(s: float) -> float:
    """``1 / (1 + exp(-s))`` without overflow."""
    e = exp(-abs(s))
    return (1.0 if s >= 0.0 else e) / (1.0 + e)


@device(forceinline=True)
def log_sigmoid(s: float) -> float:
    """``log(1 / (1 + exp(-s)))`` without overflow or cancellation."""
    return (s if s < 0.0 else 0.0) - log1p_unit(exp(-abs(s)))


@device(forceinline=True)
def softplus(s: float) -> float:
    """``log(1 + exp(s))`` without overflow or cancellation."""
    return (s if s > 0.0 else 0.0) + log1p_unit(exp(-abs(s)))


@device(forceinline=True)
def tempered_log_sigmoid(s, tau):
    """Value and derivatives (s, tau, ss, s tau, tau tau) of ``log sigma(s / tau)``.

    With u = s / tau, p = sigma(-u) and v = p (1 - p):
    ``d_s = p / tau``, ``d_tau = -p u / tau``, ``d_ss = -v / tau^2``,
    ``d_s_tau = (v u - p) / tau^2``, ``d_tau_tau = (2 p u - v u^2) / tau^2``.
    """
    inverse = 1.0 / tau
    u = s * inverse
    e = exp(-abs(u))
    p = (1.0 if u <= 0.0 else e) / (1.0 + e)
    v = p * (1.0 - p)
    square = inverse * inverse
    return (
        (u if u < 0.0 else 0.0) - log1p_unit(e),
        p * inverse,
        -p * u * inverse,
        -v * square,
        (v * u - p) * square,
        (2.0 * p - v * u) * u * square,
    )
