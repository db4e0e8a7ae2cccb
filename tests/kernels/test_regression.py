"""Regression functions and their Jacobians against a plain-NumPy oracle."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.base.symmetric import pack_symmetric, unpack_symmetric
from tests import oracle
from tests.kinds import (
    EACH_REGRESSION,
    MIXING,
    QUADRATIC,
    REGRESSION,
    each_run,
    kind_id,
    make,
    random_theta,
)

every_kind = pytest.mark.parametrize("kind", each_run(REGRESSION, EACH_REGRESSION, kind_id))


def random_case(kind, k, d, n, seed=0):
    rng = np.random.default_rng([seed, k, d])
    family = make(kind, k, d)
    theta = family.pin(random_theta(family, rng))
    return family, theta, rng.uniform(-2, 2, size=(n, d)), rng.exponential(size=n)


def jacobian_of(family, theta, X, scale, start=0, m=None):
    m = len(X) if m is None else m
    rows = np.full((int(np.sum(family.jacobian_rows >= 0)), m), np.nan)
    f, w = np.empty(m), np.empty((family.n_experts, m))
    family.residuals(theta, np.ascontiguousarray(X.T), scale, start, 1, f, w, rows)
    return f, w, rows


@every_kind
@pytest.mark.parametrize("size", [(1, 1), (3, 1), (2, 2), (4, 3), (3, 8)], ids=str)
def test_function_weights_and_jacobian_match_the_oracle(kind, size):
    family, theta, X, scale = random_case(kind, *size, n=600)
    f, w, rows = jacobian_of(family, theta, X, scale)
    exact = oracle.regression(family, theta, X)
    assert np.allclose(f, exact, rtol=0, atol=1e-12 * np.abs(exact).max())
    assert np.allclose(w, oracle.weights(family, oracle.blocks_of(family, theta), X), atol=1e-13)
    free = family.jacobian_rows >= 0
    slopes = scale[:, None] * oracle.jacobian(family, theta, X)[:, free]
    assert np.all(np.diff(family.jacobian_rows[free]) == 1)
    assert np.allclose(rows.T, slopes, rtol=0, atol=1e-12 * max(1.0, np.abs(slopes).max()))


@every_kind
@pytest.mark.parametrize("n", [1, 255, 256, 257])
def test_any_range_of_samples(kind, n):
    family, theta, X, scale = random_case(kind, 2, 2, n=n + 7)
    f, w, rows = jacobian_of(family, theta, X, scale)
    part_f, part_w, part = jacobian_of(family, theta, X, scale, start=7, m=n)
    assert np.allclose(part_f, f[7:], rtol=1e-13, atol=1e-13)
    assert np.allclose(part_w, w[:, 7:], rtol=1e-13, atol=1e-13)
    assert np.allclose(part, rows[:, 7:], rtol=1e-12, atol=1e-12)


@every_kind
def test_extreme_scores_stay_finite(kind):
    family, theta, X, scale = random_case(kind, 3, 2, n=300)
    f, w, rows = jacobian_of(family, 1e3 * theta, X, scale)
    assert np.all(np.isfinite(f))
    assert np.all((w >= 0) & (w <= 1))
    assert np.all(np.isfinite(rows))


@pytest.mark.parametrize("gate", QUADRATIC)
def test_the_public_function_takes_matrices_and_sees_their_symmetric_part(gate):
    family = moestat.family(
        "least-squares",
        gate=gate,
        expert={"name": "polynomial", "degree": 1},
        n_experts=3,
        n_features=4,
    )
    rng = np.random.default_rng(1)
    blocks = {name: rng.normal(size=at.shape) for name, at in family.blocks.items()}
    A = rng.normal(size=(3, 4, 4))
    X = rng.normal(size=(50, 4))
    theta = family.pack({**blocks, "A": A})
    s = np.einsum("nf,kfg,ng->nk", X, A, X) + blocks["c"]
    s += X @ blocks["b"].T if "b" in blocks else 0.0
    w = 1 / (1 + np.exp(-s))
    if gate.startswith("softmax"):
        w = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    g = X @ blocks["alpha"].T + blocks["beta"]
    assert np.allclose(family.gate_probabilities(theta, X), w, atol=1e-13)
    assert np.allclose(family.mean(theta, X), (w * g).sum(axis=1), atol=1e-12)
    assert np.allclose(unpack_symmetric(family.unpack(theta)["A"]), (A + A.swapaxes(1, 2)) / 2)


def test_packed_norm_is_the_frobenius_norm():
    A = np.random.default_rng(0).normal(size=(5, 6, 6))
    S = (A + A.swapaxes(1, 2)) / 2
    assert np.allclose(np.linalg.norm(pack_symmetric(A), axis=1), np.linalg.norm(S, axis=(1, 2)))
    with pytest.raises(ValueError, match=r"must have shape \(..., d, d\)"):
        pack_symmetric(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="entries for some d"):
        unpack_symmetric(np.zeros(5))


@pytest.mark.parametrize("gate", ["softmax-quadratic", "softmax-partial"])
def test_translations_leave_the_function_alone(gate):
    family, theta, X, _ = random_case(("least-squares", gate, REGRESSION[0][2]), 3, 2, n=100)
    rng = np.random.default_rng(5)
    shifted = theta.copy()
    for name in family.gate.translations:
        shifted[family.blocks[name]] += rng.normal(size=family.blocks[name].shape[1:])
    assert np.abs(shifted - theta).max() > 0.1
    assert np.allclose(family.mean(shifted, X), family.mean(theta, X), atol=1e-12)
    assert np.allclose(family.pin(shifted), theta, atol=1e-12)


@every_kind
def test_packing_and_measures_are_inverse(kind):
    family, theta, _, _ = random_case(kind, 3, 2, n=2)
    assert np.allclose(family.pack(family.unpack(theta)), theta, rtol=1e-15, atol=1e-15)
    measure = family.measure(theta)
    assert np.allclose(family.from_measure(measure), theta, rtol=1e-12, atol=1e-12)
    if not family.gate.normalised:
        assert np.allclose(measure.masses, 1 / (1 + np.exp(-measure.atoms[family.gate.mass])))
    used = np.concatenate([positions.ravel() for positions in family.blocks.values()])
    assert sorted(used) == list(range(family.n_params))


@pytest.mark.parametrize("gate", QUADRATIC)
@pytest.mark.parametrize("likelihood", ["gaussian", "multinomial"])
def test_quadratic_gates_are_refused_for_densities(gate, likelihood):
    with pytest.raises(ValueError, match="is for regression functions"):
        moestat.family(likelihood, gate=gate)


@pytest.mark.parametrize("gate", [name for name in MIXING if "top" in name or "comp" in name])
def test_gates_without_a_smooth_weight_are_refused(gate):
    with pytest.raises(ValueError, match="cannot be combined with likelihood 'least-squares'"):
        moestat.family("least-squares", gate=gate)


def test_a_regression_family_has_no_density():
    family = moestat.family("least-squares", gate="softmax")
    with pytest.raises(ValueError, match="has no density"):
        family.log_density(np.zeros(family.n_params), [0.0], [0.0])
