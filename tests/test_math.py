"""Accuracy and special values of the vectorised elementary functions."""

from __future__ import annotations

import numpy as np
import pytest

from moestat import _math
from moestat._jit import compile_loop


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


RNG = np.random.default_rng(0)
SPREAD = np.concatenate([RNG.uniform(-40, 40, 4000), RNG.uniform(-1e-3, 1e-3, 4000)])
CASES = {
    "exp": (np.exp, np.concatenate([RNG.uniform(-700, 700, 8000), SPREAD])),
    "log": (np.log, np.exp(np.concatenate([RNG.uniform(-700, 700, 8000), SPREAD]))),
    "log1p_unit": (np.log1p, np.concatenate([RNG.random(4000), np.exp(-RNG.uniform(0, 40, 4000))])),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), SPREAD),
    "log_sigmoid": (lambda x: -np.log1p(np.exp(-x)), SPREAD),
    "softplus": (lambda x: np.log1p(np.exp(x)), SPREAD),
}


@pytest.mark.parametrize("name", CASES)
def test_within_four_ulp_of_extended_precision(name):
    reference, x = CASES[name]
    exact = reference(x.astype(np.longdouble))
    got = vectorised(getattr(_math, name))(x)
    ulp = np.abs(got - exact) / np.spacing(np.abs(exact.astype(np.float64)))
    assert ulp.max() < 4.0


def test_exp_at_special_values():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -800.0, 800.0, -740.0])
    got = vectorised(_math.exp)(x)
    assert np.array_equal(got[:7], [1, 1, np.inf, 0, np.nan, 0, np.inf], equal_nan=True)
    assert got[7] == pytest.approx(np.exp(-740.0), rel=0.02)  # subnormal: few digits exist


def test_log_at_special_values():
    got = vectorised(_math.log)(np.array([0.0, np.inf, np.nan, -1.0, 1.0]))
    assert np.array_equal(got, [-np.inf, np.inf, np.nan, np.nan, 0.0], equal_nan=True)


def test_python_mode_agrees_with_compiled_mode():
    x = np.array([-3.5, -1e-9, 0.0, 0.7, 20.0])
    for name in ("exp", "sigmoid", "softplus", "log_sigmoid"):
        function = getattr(_math, name)
        assert [function(float(v)) for v in x] == pytest.approx(vectorised(function)(x), rel=1e-14)


@pytest.mark.parametrize("name", ["exp", "log", "log_sigmoid"])
def test_loops_are_vector_code(name):
    from numba import njit

    from moestat._jit import FASTMATH

    function = getattr(_math, name)

    # Compiled afresh: code from the disk cache cannot be inspected.
    @njit(error_model="numpy", fastmath=set(FASTMATH))
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    loop(np.ones(8), np.empty(8))
    (assembly,) = loop.inspect_asm().values()
    packed = sum(f"{mnemonic}pd" in assembly for mnemonic in ("mul", "add", "fmadd213", "fmla"))
    assert packed > 0, "no packed double-precision arithmetic in the loop"
    calls = [line.split()[-1] for line in assembly.splitlines() if "\tcall" in line]
    assert not any(name in target for target in calls for name in ("exp", "log"))
