"""Accuracy and special values of the vectorised elementary functions."""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest

from moestat.compiler import math as _math
from moestat.compiler.jit import OPTIONS, compile_loop
from moestat.model.activations import ACTIVATIONS

LONG = np.longdouble
SMALLEST = np.finfo(float).tiny
INF, NAN = math.inf, math.nan
# The oracle is the extended precision of x86; elsewhere it may be no better than what it judges.
extended = pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="long double is no wider here")


def vectorised(function):
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    compiled = compile_loop(loop)

    def call(x):
        out = np.empty_like(x)
        compiled(x, out)
        return out

    return call


def compile_part(function, part):
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])[part]

    compiled = compile_loop(loop)

    def call(x):
        out = np.empty_like(x)
        compiled(x, out)
        return out

    return call


RNG = np.random.default_rng(0)
NEAR = np.concatenate([RNG.uniform(-40, 40, 4000), RNG.uniform(-1e-3, 1e-3, 4000)])
TINY = RNG.choice([-1.0, 1.0], 2000) * np.exp(-RNG.uniform(0, 700, 2000))
WIDE = RNG.uniform(-708, 708, 8000)
SPREAD = np.concatenate([WIDE, NEAR, TINY])
UNIT = np.concatenate(
    [RNG.random(4000), np.exp(-RNG.uniform(0, 700, 4000)), [0.0, 1.0, 2**0.5 - 1]]
)


def long_sigmoid(x):
    """``1 / (1 + e^-x)`` without cancellation."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def long_softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


CASES = {
    "exp": (np.exp, SPREAD),
    "decay": (np.exp, -np.abs(SPREAD)),
    "decay_less_one": (np.expm1, -np.abs(SPREAD)),
    "log": (np.log, np.concatenate([np.exp(SPREAD), 1 + NEAR * 2**-12, [SMALLEST, 1.7e308]])),
    "log1p_unit": (np.log1p, UNIT),
    "sigmoid": (long_sigmoid, SPREAD),
    "log_sigmoid": (lambda x: -long_softplus(-x), SPREAD),
    "softplus": (long_softplus, SPREAD),
}


def largest_error(got, exact):
    """In units in the last place, where the exact value is a normal number."""
    normal = np.abs(exact) >= SMALLEST
    ulp = np.spacing(np.abs(exact[normal].astype(float)))
    assert np.all(np.abs(got[~normal]) <= SMALLEST)
    return float(np.max(np.abs(got[normal] - exact[normal]) / ulp))


@extended
@pytest.mark.parametrize("name", CASES)
def test_within_four_ulp_of_extended_precision(name):
    reference, x = CASES[name]
    got = vectorised(getattr(_math, name))(x)
    assert largest_error(got, reference(x.astype(LONG))) <= 4.0


@extended
@pytest.mark.parametrize("part", [0, 1])
def test_pairs_that_share_a_division_within_four_ulp(part):
    inverse = compile_part(_math.log1p_inverse, part)(UNIT)
    exact = (np.log1p, lambda y: 1 / (1 + y))[part](UNIT.astype(LONG))
    assert largest_error(inverse, exact) <= 4.0
    logistic = compile_part(_math.logistic, part)(SPREAD)
    long = SPREAD.astype(LONG)
    exact = -long_softplus(-long) if part == 0 else long_sigmoid(-long)
    assert largest_error(logistic, exact) <= 4.0


def long_tanh(x):
    e = np.expm1(-2 * np.abs(x))
    return np.sign(x) * -e / (2 + e)


VALUES = {
    "softplus": long_softplus,
    "sigmoid": long_sigmoid,
    "silu": lambda x: x * long_sigmoid(x),
    "relu": lambda x: np.maximum(x, 0),
    "norm": np.abs,
    "exp": np.exp,
    "tanh": long_tanh,
}
SLOPES = {
    "softplus": long_sigmoid,
    "sigmoid": lambda x: long_sigmoid(x) * long_sigmoid(-x),
    "relu": lambda x: np.where(x > 0, LONG(1), LONG(0)),
    "norm": np.sign,
    "exp": np.exp,
}


@extended
@pytest.mark.parametrize("name", VALUES)
def test_activations_within_four_ulp(name):
    got = compile_part(ACTIVATIONS[name], 0)(SPREAD)
    assert largest_error(got, VALUES[name](SPREAD.astype(LONG))) <= 4.0


@extended
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_activations_within_four_ulp(name):
    """Where they do not cancel, as those of silu and tanh do."""
    x = -np.abs(SPREAD) if name == "sigmoid" else SPREAD  # p (1 - p) cancels where p is near 1
    got = compile_part(ACTIVATIONS[name], 1)(x)
    assert largest_error(got, SLOPES[name](x.astype(LONG))) <= 4.0


SPECIAL = np.array([0.0, -0.0, INF, -INF, NAN, -800.0, 800.0])
SPECIAL_VALUES = {
    "exp": [1, 1, INF, 0, NAN, 0, INF],
    "sigmoid": [0.5, 0.5, 1, 0, NAN, 0, 1],
    "log_sigmoid": [-math.log(2), -math.log(2), 0, -INF, NAN, -800, 0],
    "softplus": [math.log(2), math.log(2), INF, 0, NAN, 0, 800],
}


@pytest.mark.parametrize("name", SPECIAL_VALUES)
def test_special_values(name):
    got = vectorised(getattr(_math, name))(SPECIAL)
    assert np.allclose(got, SPECIAL_VALUES[name], rtol=4e-16, atol=0, equal_nan=True)


def test_exp_reaches_into_the_subnormal_numbers_and_decay_does_not():
    x = np.array([-740.0, -709.0, -708.0])
    assert vectorised(_math.exp)(x)[0] == pytest.approx(np.exp(-740.0), rel=0.02)
    assert vectorised(_math.decay)(x).tolist() == [0.0, 0.0, pytest.approx(np.exp(-708.0))]
    assert np.isnan(vectorised(_math.decay)(np.array([NAN]))[0])


def test_log_at_special_values():
    got = vectorised(_math.log)(np.array([0.0, INF, NAN, -1.0, 1.0]))
    assert np.array_equal(got, [-INF, INF, NAN, NAN, 0.0], equal_nan=True)


def test_python_mode_agrees_with_compiled_mode():
    x = np.array([-3.5, -1e-9, 0.0, 0.7, 20.0])
    for name in ("exp", "sigmoid", "softplus", "log_sigmoid"):
        function = getattr(_math, name)
        assert [function(float(v)) for v in x] == pytest.approx(vectorised(function)(x), rel=1e-14)


@pytest.mark.parametrize("name", ["exp", "log", "log_sigmoid"])
def test_loops_are_vector_code(name):
    from numba import njit
    from numba.core.registry import cpu_target

    features = cpu_target.target_context.codegen()._tm_features
    if platform.machine() == "x86_64" and "+avx2" not in features.split(","):
        pytest.skip("vectors of 128 bits have no shifts of 64-bit integers that keep the sign")

    function = getattr(_math, name)

    # Compiled afresh: code from the disk cache cannot be inspected.
    @njit(**OPTIONS)
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    loop(np.ones(8), np.empty(8))
    (assembly,) = loop.inspect_asm().values()
    packed = sum(f"{mnemonic}pd" in assembly for mnemonic in ("mul", "add", "fmadd213", "fmla"))
    assert packed > 0, "no packed double-precision arithmetic in the loop"
    calls = [line.split()[-1] for line in assembly.splitlines() if "\tcall" in line]
    assert not any(name in target for target in calls for name in ("exp", "log"))


def test_gamma_excess_is_what_exceeds_stirlings_leading_terms():
    import mpmath

    x = np.array([1e-6, 0.03, 0.7, 1.0, 3.3, 7.99, 8.0, 20.0, 1e3, 1e7, 1e15])
    exact = []
    with mpmath.workdps(50):
        half = mpmath.log(2 * mpmath.pi) / 2
        for z in map(mpmath.mpf, x):
            level = mpmath.loggamma(z) - (z - 0.5) * mpmath.log(z) + z - half
            slope, curve = mpmath.digamma(z) - mpmath.log(z), mpmath.polygamma(1, z) - 1 / z
            exact.append([float(level), float(slope), float(curve)])
    for part, expected in enumerate(np.transpose(exact)):
        found = compile_part(_math.gamma_excess, part)(x)
        # Of the second derivative the series leaves off 4e-16 at 8, of 8e-3.
        assert np.allclose(found[x >= 8], expected[x >= 8], rtol=1e-13, atol=0)
        assert np.allclose(found, expected, rtol=1e-14, atol=1e-14)


def test_log1p_positive():
    x = np.array([0.0, 1e-17, 1e-5, 1.0, 1.0000001, 1e9])
    assert np.allclose(vectorised(_math.log1p_positive)(x), np.log1p(x), rtol=3e-16, atol=0)
