"""Working rows begin with a cache line, and views of them are views."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaError
from numba.core.runtime import _nrt_python, rtsys

from moestat.compiler.jit import BLOCK, OPTIONS, compile_loop, device
from moestat.kernels.views import empty_like, empty_rows, part, row


@numba.njit(**OPTIONS)
def rows_with_marks(n_rows, width):
    rows = empty_rows(n_rows, width)
    for i in range(n_rows):
        for b in range(width):
            rows[i, b] = 10.0 * i + b
    row(part(rows, 1, n_rows), 0)[2] = -1.0
    return rows


@pytest.mark.parametrize("n_rows", [2, 3, 50])
def test_rows_begin_with_a_cache_line(n_rows):
    kept = [rows_with_marks(n_rows, BLOCK) for _ in range(20)]
    assert {rows.ctypes.data % 64 for rows in kept} == {0}
    expected = 10.0 * np.arange(n_rows)[:, None] + np.arange(BLOCK)
    expected[1, 2] = -1.0
    for rows in kept:
        assert rows.shape == (n_rows, BLOCK)
        assert np.array_equal(rows, expected)


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
