"""The short forms of compiled code do what Python does."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import NumbaError
from numba.core.runtime import _nrt_python, rtsys

from moestat.compiler.jit import compile_loop, device
from moestat.kernels.views import empty_like, empty_rows, part, row


@compile_loop
def walk(start, stop, step, visited):
    """Numbers visited by ranges of each form, and by one inside another."""
    n = 0
    for i in range(stop):
        visited[n] = i
        n += 1
    for i in range(start, stop):
        visited[n] = i
        n += 1
    for i in range(start, stop, 3):
        visited[n] = i
        n += 1
    for i in range(stop, start, -2):
        for j in range(i, stop):
            visited[n] = 100 * i + j
            n += 1
    for i in range(start, stop, step):
        if i == 7:
            continue
        if i == 11:
            break
        visited[n] = i
        n += 1
    return n


@pytest.mark.parametrize("start", [-5, 0, 2])
@pytest.mark.parametrize("stop", [-7, -5, 0, 2, 3, 4, 5, 12, 13])
@pytest.mark.parametrize("step", [1, 2, 5, -1, -4])
def test_ranges(start, stop, step):
    there, here = np.full((2, 1000), -1)
    n = walk(start, stop, step, here)
    assert n == walk.py_func(start, stop, step, there)
    assert np.array_equal(there, here)


@compile_loop
def access(x, matrix, cube, flags, whole, out):
    d, n = matrix.shape
    for i in range(d):
        for j in range(n):
            matrix[i, j] = matrix[i, j] * x[j] - i
            cube[j, i, 1] += matrix[i, j]
            flags[j] = matrix[i, j] > 0.0 or flags[j]
            whole[j] = whole[j] * 3 + i - (1 if flags[j] else 0)
    out[0] = x.size + cube.shape[2] + cube[0, 0, 1]
    out[1] = whole[n - 1]


def test_elements_of_arrays_in_any_order():
    rng = np.random.default_rng(0)
    fortran = np.asfortranarray(rng.normal(size=(3, 4)))
    strided = rng.normal(size=(8, 6, 4))[::2, ::-2, 1:]
    arrays = [rng.normal(size=8)[::2], fortran, strided, np.zeros(4, bool)]
    arrays += [np.arange(4), np.zeros(2)]
    expected = [np.copy(a, order="K") for a in arrays]
    access(*arrays)
    access.py_func(*expected)
    for a, b in zip(arrays, expected, strict=True):
        assert a.dtype == b.dtype
        assert np.allclose(a, b, rtol=1e-15, atol=0.0)


@compile_loop
def compare(a, b, out):
    for i in range(a.size):
        out[i, 0] = a[i] < b[i]
        out[i, 1] = a[i] <= b[i]
        out[i, 2] = a[i] > b[i]
        out[i, 3] = a[i] >= b[i]
        out[i, 4] = a[i] == b[i]
        out[i, 5] = a[i] != b[i]
        out[i, 6] = not a[i] < b[i]


@pytest.mark.parametrize("dtype", [float, int])
def test_comparisons(dtype):
    values = [np.nan, -np.inf, -1.0, -0.0, 0.0, 2.0, np.inf] if dtype is float else [-1, 0]
    a, b = (v.ravel().astype(dtype) for v in np.meshgrid(values, values))
    here, there = np.zeros((2, a.size, 7), bool)
    compare(a, b, here)
    compare.py_func(a, b, there)
    assert np.array_equal(here, there)


@compile_loop
def working_rows(y, n, order):
    """Rows made, replaced, viewed, taken from either of two, and dropped on three ways out."""
    rows = empty_rows(n, 8)
    total = 0.0
    for i in range(n):
        scratch = empty_like(y, 8)
        other = row(rows, i) if i % 2 else scratch
        for b in range(8):
            scratch[b] = y[b] + i
            other[b] = scratch[b]
            rows[i, b] = other[b]
        if order == i:
            continue
        rest = part(rows, 0, i + 1)
        for r in range(rest.shape[0]):
            total += rest[r, 3]
        if total > 1e3:
            return total
    if order > 1:
        return -total
    return total


@pytest.fixture
def counted():
    _nrt_python.memsys_enable_stats()
    yield rtsys.get_allocation_stats
    _nrt_python.memsys_disable_stats()


def test_working_rows_are_freed_once(counted):
    y = np.arange(8.0)
    before = counted()
    for n, order in [(0, 0), (5, 0), (5, 2), (40, 3)]:
        assert working_rows(y, n, order) == working_rows.py_func(y, n, order)
    after = counted()
    assert after.alloc - before.alloc == after.free - before.free > 0


@device
def owner(n):
    return empty_rows(n, 1)[0, 0]


def test_a_part_must_not_own_memory():
    @compile_loop
    def loop(n):
        return owner(n)

    with pytest.raises((NumbaError, RuntimeError), match="NRT required"):
        loop(3)
