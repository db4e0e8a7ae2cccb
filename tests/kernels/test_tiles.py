"""Sums in registers: compiled and in plain Python, in large groups of terms and in threes."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from moestat.compiler.jit import OPTIONS
from moestat.kernels import build, terms
from moestat.kernels.tiles import (
    GROUP,
    LANES,
    PRODUCTS,
    ROWS,
    SQUARE,
    THREE,
    TRIANGLE,
    USED,
    multiply,
    sum_curvature,
    sum_products,
)
from moestat.solvers.problem import Objective, Request
from tests.kernels.test_derivatives import random_problem
from tests.kinds import kind_id

N_ROWS = 20
TRIANGLES = [
    ("gaussian", "softmax", "linear"),
    ("gaussian", "sigmoid", "linear"),
    ("gaussian", "competition", {"name": "ffn", "hidden": 2}),
    ("multinomial", "sigmoid", "linear"),
]


@numba.njit(**OPTIONS)
def products(rows, table, psi, m, out):
    sum_products(rows, table, psi, m, out, 0)


@numba.njit(**OPTIONS)
def curvature(rows, table, psi, m, out):
    sum_curvature(rows, table, psi, m, out, 0)


def multiply_rows(rows, product, one, other, m):
    multiply(rows, product, one, other, m)


def table_of(tile, n_rows, used, rng):
    """One group of terms, of random rows where the tile does not say that they are the same."""
    n_terms = len(tile.products)
    table = np.zeros((n_terms, ROWS + n_rows), dtype=np.int32)
    table[:, GROUP], table[:, USED] = n_terms, used
    drawn = rng.integers(N_ROWS, size=(n_terms, n_rows))
    table[:, ROWS:] = drawn
    for t, (one, other) in enumerate(tile.factors):
        table[t, ROWS : ROWS + 2] = drawn[one], drawn[other]
        table[t, ROWS + 2 : ROWS + 4] = drawn[0 if tile.weighted else one[0], 2:4]
    return table


@pytest.mark.parametrize(
    ("tile", "n_rows", "steps"), [(THREE, 2, 2), (SQUARE, 4, 1), (THREE, 5, 2), (TRIANGLE, 5, 2)]
)
def test_sums_of_a_group(tile, n_rows, steps):
    rng = np.random.default_rng(0)
    m = 3 * LANES
    rows, psi = rng.normal(size=(N_ROWS, m)), rng.normal(size=(steps * PRODUCTS, m))
    table = table_of(tile, n_rows, steps * PRODUCTS, rng)
    compiled, plain = (curvature, sum_curvature) if n_rows == 5 else (products, sum_products)
    out, by_hand = np.ones((2, steps * len(table), PRODUCTS * LANES))
    compiled(rows, table, psi, m, out)
    plain(rows, table, psi, m, by_hand, 0)
    assert np.allclose(out, by_hand, rtol=0, atol=1e-13)
    steps_of_terms = out.reshape(steps, len(table), PRODUCTS, LANES).sum(axis=3)
    sums = steps_of_terms.swapaxes(0, 1).reshape(len(table), len(psi))
    for numbers, n_products, total in zip(table[:, ROWS:], tile.products, sums, strict=True):
        one, other, *more = rows[numbers]
        h = one * other
        if n_rows == 4:
            h *= more[0] * more[1]
        if n_rows == 5:
            h = more[0] * h + more[1] * more[2]
        n = n_products if n_products < PRODUCTS else len(psi)
        assert np.allclose(total[:n], LANES + psi[:n] @ h, rtol=0, atol=1e-13)
        assert np.all(total[n:] == LANES)


@pytest.mark.parametrize("compiled", [multiply, numba.njit(**OPTIONS)(multiply_rows)])
def test_product_of_rows(compiled):
    rows = np.random.default_rng(0).normal(size=(4, 2 * LANES))
    before = rows.copy()
    compiled(rows, 2, 0, 2, 2 * LANES)
    assert np.array_equal(rows[2], before[0] * before[2])
    assert np.array_equal(rows[[0, 1, 3]], before[[0, 1, 3]])


@pytest.mark.parametrize("kind", TRIANGLES, ids=kind_id)
@pytest.mark.parametrize(("k", "d", "K"), [(3, 1, 2), (2, 1, 4), (2, 2, 3)])
def test_large_groups_and_threes_have_the_same_sums(kind, k, d, K, monkeypatch):
    _family, theta, *_, problem = random_problem(kind, k, d, K, n=200)
    hessians = []
    for large in (True, False):
        monkeypatch.setattr(terms, "LARGE", large)
        monkeypatch.setattr(build, "build_terms", terms.build_terms.__wrapped__)
        hessians.append(problem.evaluate(Request(Objective.OBSERVED, theta)).hessian)
    assert np.abs(hessians[0] - hessians[1]).max() < 1e-13 * np.abs(hessians[0]).max()
