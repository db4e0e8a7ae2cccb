"""Vectors as values: compiled and in plain Python they are the same slices of rows."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from moestat._jit import OPTIONS
from moestat.kernels.lanes import LANES, add_product, get_lanes, product, put_lanes


def combine(rows, out):
    for b in range(0, rows.shape[1], LANES):
        one, other = get_lanes(rows, 0, b), get_lanes(rows, 1, b)
        put_lanes(out, 0, b, product(one, other))
        put_lanes(out, 1, b, add_product(one, other, get_lanes(rows, 2, b)))


@pytest.mark.parametrize("function", [combine, numba.njit(**OPTIONS)(combine)])
def test_products_of_vectors(function):
    rows = np.random.default_rng(0).normal(size=(3, 3 * LANES))
    out = np.full((3, 3 * LANES), 7.0)
    function(rows, out)
    assert np.array_equal(out[0], rows[0] * rows[1])
    assert np.allclose(out[1], rows[0] * rows[1] + rows[2], rtol=0, atol=1e-15)
    assert np.all(out[2] == 7.0)
