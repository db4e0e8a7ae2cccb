"""The compiled trust-region step against LAPACK and against its own optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from moestat.solvers.trust_region import eigen as _symmetric
from moestat.solvers.trust_region.region import Region, box_step, free_coordinates
from tests.solvers import region_oracle

KINDS = ("definite", "indefinite", "singular", "graded", "repeated", "zero", "vanishing")
WIDE = 1e3


def symmetric(kind, n, rng):
    """A symmetric matrix of one kind, in a random basis."""
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = {
        "definite": rng.uniform(0.1, 10.0, n),
        "indefinite": rng.normal(size=n),
        "singular": np.where(np.arange(n) < (n + 1) // 2, rng.uniform(0.5, 2.0, n), 0.0),
        "graded": np.logspace(2, -8, n),
        "repeated": np.where(np.arange(n) % 2, 1.0, -1.0),
        "zero": np.zeros(n),
        "vanishing": rng.normal(size=n),
    }[kind]
    matrix = (basis * values) @ basis.T
    if kind == "vanishing":  # coordinates whose curvature has all but underflowed
        scale = 10.0 ** rng.choice([0.0, 0.0, -30.0, -80.0, -155.0, -300.0], n)
        scale[0] = 1.0
        matrix *= np.outer(scale, scale)
    return 0.5 * (matrix + matrix.T)


def metric_of(n, rng):
    """Diagonal by pairs, like that of channels (1, x)."""
    metric = np.diag(rng.uniform(0.5, 2.0, n))
    for i in range(0, n - 1, 2):
        metric[i, i + 1] = metric[i + 1, i] = 0.4
    return metric


def model(kind, n, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), symmetric(kind, n, rng), metric_of(n, rng), rng


def value(gradient, hessian, step):
    return gradient @ step + 0.5 * step @ hessian @ step


@pytest.mark.parametrize("kind", KINDS)
@given(n=st.integers(1, 30), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_diagonalisation(kind, n, seed):
    matrix = symmetric(kind, n, np.random.default_rng(seed))
    gradient, wide = np.ones(n), np.full(n, WIDE)
    region = Region(np.zeros(n), gradient, matrix, np.eye(n), -wide, wide)
    norm = max(np.abs(matrix).max(), 1e-300)
    values = np.linalg.eigvalsh(matrix)
    assert np.allclose(region.curvatures, values, rtol=0, atol=1e-14 * n * norm)
    # Rows are eigenvectors; moving into the basis undoes moving back.
    basis, found, slope, scratch = matrix.copy(), np.zeros(n), np.ones(n), np.zeros(n)
    assert _symmetric.eigenvectors(n, basis, found)
    assert np.allclose(basis @ basis.T, np.eye(n), rtol=0, atol=1e-14 * n)
    assert np.allclose(matrix @ basis.T, basis.T * found, rtol=0, atol=1e-14 * n * norm)
    model = matrix.copy(), slope, found
    _symmetric.into_eigenbasis(n, np.eye(n), model, scratch)
    assert np.allclose(slope, model[0] @ gradient, rtol=0, atol=1e-14 * n)
    _symmetric.out_of_eigenbasis(n, np.eye(n), model[0], scratch, slope)
    assert np.allclose(slope, gradient, rtol=0, atol=1e-14 * n)


def test_curvatures_where_squares_underflow():
    wide = np.full(4, WIDE)
    matrix = np.diag([1e-200, 1.0, 1e-180], 1)
    matrix += matrix.T
    region = Region(np.zeros(4), np.ones(4), matrix, np.eye(4), -wide, wide)
    assert np.allclose(region.curvatures, [-1, 0, 0, 1], rtol=0, atol=1e-15)


@given(n=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_metric_algebra(n, seed):
    rng = np.random.default_rng(seed)
    metric, matrix, x = metric_of(n, rng), symmetric("indefinite", n, rng), rng.normal(size=n)
    lower = metric.copy()
    assert _symmetric.cholesky(n, lower)
    factor = np.tril(lower)
    assert np.allclose(factor @ factor.T, metric, atol=1e-14)
    inverse = linalg.inv(factor)
    reduced, forward, back = matrix.copy(), x.copy(), x.copy()
    _symmetric.reduce_to_standard(n, lower, reduced)
    _symmetric.forward_substitute(n, lower, forward)
    _symmetric.back_substitute(n, lower, back)
    assert np.allclose(reduced, inverse @ matrix @ inverse.T, atol=1e-13)
    assert np.allclose(forward, inverse @ x, atol=1e-13)
    assert np.allclose(back, inverse.T @ x, atol=1e-13)


def test_cholesky_refuses_an_indefinite_metric():
    assert not _symmetric.cholesky(2, np.array([[1.0, 2.0], [2.0, 1.0]]))
    metric = np.array([[1.0, 2.0], [2.0, 1.0]])
    one = np.ones(2)
    with pytest.raises(np.linalg.LinAlgError, match="metric"):
        box_step(np.zeros(2), one, np.eye(2), metric, -one, one, 1.0)
    with pytest.raises(np.linalg.LinAlgError, match="range of float64"):
        box_step(np.zeros(2), np.array([np.nan, 1.0]), np.eye(2), np.eye(2), -one, one, 1.0)


@pytest.mark.parametrize("kind", KINDS)
@given(
    n=st.integers(1, 30),
    seed=st.integers(0, 2**32 - 1),
    radius=st.sampled_from([1e-6, 0.1, 1.0, 30.0]),
)
@settings(max_examples=60, deadline=None)
def test_region_step_is_as_good_as_lapacks(kind, n, seed, radius):
    gradient, hessian, metric, _ = model(kind, n, seed)
    wide = np.full(n, WIDE)
    arguments = (np.zeros(n), gradient, hessian, metric, -wide, wide, radius)
    move = box_step(*arguments)
    _, decrease, _ = region_oracle.box_step(*arguments)
    assert move.decrease >= decrease * (1 - 1e-10)
    assert move.decrease == pytest.approx(-value(gradient, hessian, move.step), rel=1e-9)
    assert move.length == pytest.approx(np.sqrt(move.step @ metric @ move.step), rel=1e-12)
    assert move.length <= radius * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(
    n=st.integers(2, 20),
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([0.01, 0.1, 1.0]),
    pinned=st.integers(0, 2),
)
@settings(max_examples=60, deadline=None)
def test_box_step_is_as_good_as_lapacks(kind, n, seed, width, pinned):
    gradient, hessian, metric, rng = model(kind, n, seed)
    theta = rng.choice([-width, 0.0, width], size=n) * rng.choice([1.0, 0.5], size=n)
    lower, upper = np.full(n, -width), np.full(n, width)
    lower[:pinned] = upper[:pinned] = theta[:pinned]
    arguments = (theta, gradient, hessian, metric, lower, upper, 1.0)
    move = box_step(*arguments)
    step, decrease, _ = region_oracle.box_step(*arguments)
    slack = 1e-12
    assert np.all(theta + move.step >= lower - slack)
    assert np.all(theta + move.step <= upper + slack)
    assert np.all(move.step[:pinned] == 0.0)
    assert move.decrease >= 0.0
    # A hard case has two best legs, and the box may stop them at different places.
    if kind not in ("repeated", "zero", "singular", "vanishing") or np.allclose(
        step, move.step, atol=1e-9
    ):
        assert move.decrease >= decrease * (1 - 1e-10)


@given(n=st.integers(2, 20), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_hard_case_reaches_the_edge(n, seed):
    """The gradient has no part along the lowest curvature: the step gets one all the same."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.concatenate([[-2.0], rng.uniform(1.0, 3.0, n - 1)])
    gradient = basis[:, 1:] @ rng.normal(size=n - 1) * 0.1 / np.sqrt(n)
    hessian = (basis * values) @ basis.T
    wide = np.full(n, WIDE)
    move = box_step(np.zeros(n), gradient, hessian, np.eye(n), -wide, wide, 5.0)
    assert move.length == pytest.approx(5.0, rel=1e-6)
    inside = basis[:, 1:] @ ((basis[:, 1:].T @ -gradient) / (values[1:] + 2.0))
    along = np.sqrt(25.0 - inside @ inside)
    best = -value(gradient, hessian, inside + along * basis[:, 0])
    assert move.decrease == pytest.approx(best, rel=1e-10)


def test_null_curvature_does_not_pull_to_the_edge():
    hessian = np.diag([1.0, 1e-17, -1e-17])
    gradient = np.array([-0.5, 0.0, 0.0])
    wide = np.full(3, WIDE)
    move = box_step(np.zeros(3), gradient, hessian, np.eye(3), -wide, wide, 10.0)
    assert np.allclose(move.step, [0.5, 0.0, 0.0])


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_free_coordinates_follow_the_vectorised_rule(seed):
    rng = np.random.default_rng(seed)
    theta, lower, upper = rng.integers(-1, 2, size=(3, 12)).astype(float)
    gradient = rng.integers(-1, 2, size=12).astype(float)
    ours = free_coordinates(theta, gradient, lower, upper)
    assert np.array_equal(ours, region_oracle.free_coordinates(theta, gradient, lower, upper))
