"""Working rows begin with a cache line, and views of them are views."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from moestat.compiler.jit import BLOCK, OPTIONS
from moestat.kernels.views import empty_rows, part, row


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
