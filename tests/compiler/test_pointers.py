"""Loops that call each other by address."""

from __future__ import annotations

import numpy as np
import pytest
from numba import types

from moestat.compiler.jit import compile_loop
from moestat.compiler.pointers import address_of, call_by_address

_total = call_by_address(types.float64)
_pair = call_by_address(types.UniTuple(types.int64, 2))


@compile_loop
def inner(x, both, order):
    first, second = both
    total = 0.0
    for i in range(x.size):
        total += x[i] * order + first[i] * second[i]
    return total


@compile_loop
def sizes(x):
    return x.size, 2 * x.size


@compile_loop
def outer(at_total, at_pair, x, both, times):
    total = 0.0
    for _ in range(times):
        total += _total(at_total, (x, both, 2))
    one, two = _pair(at_pair, (x,))
    return total, one + two


def test_a_call_by_address_is_the_call():
    x, both = np.arange(5.0), (np.full(5, 2.0), np.arange(5.0))
    addresses = address_of(inner, x, both, 2), address_of(sizes, x)
    total, count = outer(*addresses, x, both, 3)
    assert total == 3 * inner(x, both, 2) == 3 * (2 * x.sum() + 2 * x.sum())
    assert count == 15


def test_plain_python_cannot():
    with pytest.raises(TypeError, match="compiled"):
        _total(0, ())
