"""Branch-free exponentials and logarithms that LLVM turns into vector code.

numba's ``math.exp`` is a call per number.  These functions are polynomials in plain arithmetic,
so a loop over a block of samples becomes full-width vector instructions.  They are safe under
the reordering that ``FASTMATH`` allows: every step whose rounding matters goes through `fma` or a
bit pattern, which the optimiser may not reassociate.
"""

from __future__ import annotations

import math
import platform
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import types

from moestat.compiler.jit import device, primitive

if TYPE_CHECKING:
    from numba.core.cpu import CPUContext
    from numba.core.typing.templates import Signature


def fma(a: float, b: float, c: float) -> float:
    """``a * b + c`` in this order: rounded once where processors can, else twice, as in Python."""
    return a * b + c


def to_bits(x: float) -> int:
    """The bit pattern of a float64, as int64."""
    return int(np.float64(x).view(np.int64))


def from_bits(k: int) -> float:
    """The float64 with the bit pattern of the lowest 64 bits of `k`."""
    return float(np.uint64(k & 0xFFFFFFFFFFFFFFFF).view(np.float64))


def _three_floats(a: types.Type, b: types.Type, c: types.Type) -> Signature:
    return types.float64(types.float64, types.float64, types.float64)


# An operation that has flags of its own is given no others: these two stay as they are written.
_IN_ORDER = ("nsz",)


@primitive(fma, _three_floats, types.float64, types.float64, types.float64)
def _fma(context: CPUContext, builder: Any, signature: Signature, args: Any) -> Any:
    if _fuses(context):
        return builder.fma(*args)
    a, b, c = args
    return builder.fadd(builder.fmul(a, b, flags=_IN_ORDER), c, flags=_IN_ORDER)


def _fuses(context: CPUContext) -> bool:
    """Whether the processor multiplies and adds in one instruction; a library's is far slower."""
    features = getattr(context.codegen(), "_tm_features", None)
    is_x86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
    return features is None or not is_x86 or "+fma" in features.split(",")


@primitive(to_bits, lambda x: types.int64(types.float64), types.float64)
def _to_bits(context: CPUContext, builder: Any, signature: Signature, args: Any) -> Any:
    return builder.bitcast(args[0], ir.IntType(64))


@primitive(from_bits, lambda k: types.float64(types.int64), types.int64)
def _from_bits(context: CPUContext, builder: Any, signature: Signature, args: Any) -> Any:
    return builder.bitcast(args[0], ir.DoubleType())


# Adding 1.5 * 2^52 leaves the nearest integer in the low bits of the mantissa.
_SHIFT = 6755399441055744.0
_SHIFT_BITS = to_bits(_SHIFT)
_LOG2_E = 1.4426950408889634
_LN2_HI = 6.93147180369123816490e-01  # the last 20 bits are zero: n * _LN2_HI is exact
_LN2_LO = 1.90821492927058770002e-10
_LN2 = 0.6931471805599453
# As constants: a sign taken in the loop may be reordered, and would undo the rounding with it.
_LESS_SHIFT = -_SHIFT
_LESS_LN2_HI = -_LN2_HI
_LESS_LN2_LO = -_LN2_LO
_BIAS = 1023

_ONE_BITS = to_bits(1.0)

# exp: (e^r - 1 - r) / r^2 on |r| <= ln(2)/2 by interpolation at Chebyshev points; with it e^r is
# accurate to 2e-17, as the Taylor series is two degrees later.
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11 = (
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662413,
    0.00833333333333005,
    0.0013888888917214307,
    0.0001984126986308101,
    2.480152129524637e-05,
    2.75572684328091e-06,
    2.762008870206642e-07,
    2.5100395134700142e-08,
)


@device
def _exp_parts(x: float) -> tuple[float, int]:
    """``e^x = (1 + t) 2^n``: t, and a number whose lowest 12 bits are n."""
    shifted = fma(x, _LOG2_E, _SHIFT)
    n = fma(shifted, 1.0, _LESS_SHIFT)
    r = fma(n, _LESS_LN2_LO, fma(n, _LESS_LN2_HI, x))
    q = fma(_E11, r, _E10)
    q = fma(q, r, _E9)
    q = fma(q, r, _E8)
    q = fma(q, r, _E7)
    q = fma(q, r, _E6)
    q = fma(q, r, _E5)
    q = fma(q, r, _E4)
    q = fma(q, r, _E3)
    q = fma(q, r, _E2)
    return fma(r * r, q, r), to_bits(shifted)


@device
def exp(x: float) -> float:
    """Exponential; 0 below -745, inf above 709.8, NaN for NaN."""
    x = -1000.0 if x < -1000.0 else x
    x = 1000.0 if x > 1000.0 else x
    t, n = _exp_parts(x)
    p = 1.0 + t
    # 2^n in two factors: the first keeps p in range when 2^n alone would leave it.
    k = n - _SHIFT_BITS
    half = k >> 1
    p = fma(p, from_bits((half + _BIAS) << 52), 0.0)
    return fma(p, from_bits((k - half + _BIAS) << 52), 0.0)


_LEAST_NORMAL = -708.0


@device
def decay(x: float) -> float:
    """``e^x`` for x <= 0; 0 below -708, NaN for NaN.

    There the result would be subnormal, and processors take a hundred times as long for those.
    """
    t, n = _exp_parts(x)
    return 0.0 if x < _LEAST_NORMAL else from_bits(to_bits(1.0 + t) + (n << 52))


@device
def decay_less_one(x: float) -> float:
    """``e^x - 1`` for x <= 0, accurate near 0."""
    x = -60.0 if x < -60.0 else x
    t, n = _exp_parts(x)
    power = from_bits(_ONE_BITS + (n << 52))
    return fma(t, power, power - 1.0)


# log: 2 atanh(s) = 2 s + s z q(z) with z = s^2, |s| <= 0.1716 after the range reduction, and q the
# polynomial of fdlibm's e_log.c (Sun Microsystems, 1993), accurate to 2^-58.
_A3, _A5, _A7, _A9, _A11, _A13, _A15 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


@device
def _log1p_series(f: float, s: float) -> float:
    """``log(1 + f)`` for sqrt(1/2) <= 1 + f <= sqrt(2), given ``s = f / (2 + f)``."""
    z = s * s
    q = fma(_A15, z, _A13)
    q = fma(q, z, _A11)
    q = fma(q, z, _A9)
    q = fma(q, z, _A7)
    q = fma(q, z, _A5)
    q = fma(q, z, _A3)
    # 2 s = f - s f exactly, so the leading term carries no division error.
    return f - fma(s, f, -s * z * q)


_SQRT_HALF_BITS = to_bits(math.sqrt(0.5))


@device
def log(x: float) -> float:
    """Natural logarithm of a normal number; -inf for 0, inf for inf, NaN below 0."""
    bits = to_bits(x)
    e = (bits - _SQRT_HALF_BITS) >> 52
    f = from_bits(bits - (e << 52)) - 1.0
    n = float(e)
    value = fma(n, _LN2_HI, fma(n, _LN2_LO, _log1p_series(f, f / (2.0 + f))))
    value = value if x > 0.0 else math.nan
    value = -math.inf if x == 0.0 else value
    return x if x == math.inf else value


@device
def log1p_inverse(y: float) -> tuple[float, float]:
    """``log(1 + y)`` and ``1 / (1 + y)`` for 0 <= y <= 1, with one division for both."""
    large = y > 0.41421356237309503
    f = 0.5 * (y - 1.0) if large else y
    one = 1.0 + y
    two = 2.0 + f
    # fma hides the product: the optimiser would split the quotient into two divisions.
    inverse = 1.0 / fma(one, two, 0.0)
    value = (_LN2 if large else 0.0) + _log1p_series(f, f * (one * inverse))
    return value, two * inverse


@device
def log1p_unit(y: float) -> float:
    """``log(1 + y)`` for 0 <= y <= 1, accurate for small y."""
    large = y > 0.41421356237309503
    f = 0.5 * (y - 1.0) if large else y
    return (_LN2 if large else 0.0) + _log1p_series(f, f / (2.0 + f))


@device
def log1p_positive(y: float) -> float:
    """``log(1 + y)`` for y >= 0, accurate for small y."""
    return log1p_unit(y) if y <= 1.0 else log(1.0 + y)


# Stirling's series, sum B_2j / (2j (2j - 1) z^(2j - 1)), accurate to 1e-17 for z >= 8.
_S1, _S3, _S5, _S7, _S9, _S11, _S13, _S15 = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@device
def log_gamma(x: float) -> float:
    """``log Gamma(x)`` for 1 <= x <= 1e30, to 1e-15 of the larger of it and 10.

    Stirling's series at x + 7, less the logarithm of ``x (x + 1) ... (x + 6)``.
    """
    product = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0) * (x + 5.0) * (x + 6.0)
    z = x + 7.0
    inverse = 1.0 / z
    square = inverse * inverse
    q = fma(_S15, square, _S13)
    q = fma(q, square, _S11)
    q = fma(q, square, _S9)
    q = fma(q, square, _S7)
    q = fma(q, square, _S5)
    q = fma(q, square, _S3)
    q = fma(q, square, _S1)
    return fma(z - 0.5, log(z), _HALF_LOG_2PI - z) + q * inverse - log(product)


@device
def gamma_excess(x: float) -> tuple[float, float, float]:
    """By how much log Gamma and its derivatives exceed their leading terms, for 0 < x <= 1e30.

    The leading terms are ``(x - 1/2) log x - x + log(2 pi) / 2``, ``log x`` and ``1 / x``; what
    exceeds them falls like 1 / (12 x), -1 / (2 x) and 1 / (2 x^2), so that differences at large x
    keep their digits.  Stirling's series at x, or at x + 8 below 8.
    """
    value = 0.0
    slope = 0.0
    curve = 0.0
    z = x
    if x < 8.0:
        z = x + 8.0
        product = 1.0
        for i in range(8):
            inverse = 1.0 / (x + i)
            product *= x + i
            slope -= inverse
            curve += inverse * inverse
        value = (z - 0.5) * log(z) - (x - 0.5) * log(x) - 8.0 - log(product)
        slope += log(z / x)
        curve += 1.0 / z - 1.0 / x
    w = 1.0 / z
    s = w * w
    q = fma(_S15, s, _S13)
    q = fma(q, s, _S11)
    q = fma(q, s, _S9)
    q = fma(q, s, _S7)
    q = fma(q, s, _S5)
    q = fma(q, s, _S3)
    value += fma(q, s, _S1) * w
    # Derivatives of S / z^j are -j S / z^(j + 1) and j (j + 1) S / z^(j + 2).
    p = fma(-15.0 * _S15, s, -13.0 * _S13)
    p = fma(p, s, -11.0 * _S11)
    p = fma(p, s, -9.0 * _S9)
    p = fma(p, s, -7.0 * _S7)
    p = fma(p, s, -5.0 * _S5)
    p = fma(p, s, -3.0 * _S3)
    slope += fma(p, s, -_S1) * s - 0.5 * w
    r = fma(240.0 * _S15, s, 182.0 * _S13)
    r = fma(r, s, 132.0 * _S11)
    r = fma(r, s, 90.0 * _S9)
    r = fma(r, s, 56.0 * _S7)
    r = fma(r, s, 30.0 * _S5)
    r = fma(r, s, 12.0 * _S3)
    curve += fma(r, s, 2.0 * _S1) * (s * w) + 0.5 * s
    return value, slope, curve


@device
def logistic(s: float) -> tuple[float, float]:
    """``log sigma(s)`` and its derivative ``sigma(-s)``."""
    e = decay(-abs(s))
    value, inverse = log1p_inverse(e)
    return (s if s < 0.0 else 0.0) - value, (inverse if s <= 0.0 else e * inverse)


@device
def sigmoid(s: float) -> float:
    """``1 / (1 + exp(-s))`` without overflow."""
    e = decay(-abs(s))
    return (1.0 if s >= 0.0 else e) / (1.0 + e)


@device
def log_sigmoid(s: float) -> float:
    """``log(1 / (1 + exp(-s)))`` without overflow or cancellation."""
    return (s if s < 0.0 else 0.0) - log1p_unit(decay(-abs(s)))


@device
def softplus(s: float) -> float:
    """``log(1 + exp(s))`` without overflow or cancellation."""
    return (s if s > 0.0 else 0.0) + log1p_unit(decay(-abs(s)))


@device
def tempered_log_sigmoid(s, tau):
    """Value and derivatives (s, tau, ss, s tau, tau tau) of ``log sigma(s / tau)``.

    With u = s / tau, p = sigma(-u) and v = p (1 - p):
    ``d_s = p / tau``, ``d_tau = -p u / tau``, ``d_ss = -v / tau^2``,
    ``d_s_tau = (v u - p) / tau^2``, ``d_tau_tau = (2 p u - v u^2) / tau^2``.
    """
    inverse = 1.0 / tau
    u = s * inverse
    value, p = logistic(u)
    v = p * (1.0 - p)
    square = inverse * inverse
    return (
        value,
        p * inverse,
        -p * u * inverse,
        -v * square,
        (v * u - p) * square,
        (2.0 * p - v * u) * u * square,
    )
