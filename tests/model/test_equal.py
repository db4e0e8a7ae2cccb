"""One variance of all experts: the family with a variance each, restricted to equal ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import moestat

SIZES = {"gate": "softmax", "n_experts": 2, "n_features": 2}
EACH = moestat.family("gaussian", **SIZES)
ONE = moestat.family("gaussian", **SIZES, equal="nu")


def restriction():
    """The matrix (P, Q) that takes parameters with one variance to those with two equal ones."""
    matrix = np.zeros((EACH.n_params, ONE.n_params))
    for name, positions in EACH.blocks.items():
        columns = np.broadcast_to(ONE.blocks[name], positions.shape)
        matrix[positions.ravel(), columns.ravel()] = 1.0
    return matrix


@pytest.fixture(scope="module")
def data():
    return moestat.sample(ONE, ONE.typical(0), 600, rng=1, design=moestat.Uniform(-2, 2))


def test_derivatives_are_those_of_the_restriction(data):
    theta = ONE.typical(3)
    A, full = restriction(), restriction() @ theta
    pairs = [
        (moestat.log_likelihood(ONE, theta, *data), moestat.log_likelihood(EACH, full, *data)),
        (moestat.score(ONE, theta, *data), A.T @ moestat.score(EACH, full, *data)),
        (moestat.hessian(ONE, theta, *data), A.T @ moestat.hessian(EACH, full, *data) @ A),
    ]
    for own, restricted in pairs:
        assert np.allclose(own, restricted, rtol=1e-11, atol=1e-9)


def test_a_fit_has_one_variance_fewer_and_is_a_maximum(data):
    one = moestat.fit(ONE, *data, rng=0)
    each = moestat.fit(EACH, *data, rng=0)
    assert one.certificate.certified
    assert one.family.n_free_params == each.family.n_free_params - 1
    assert 0.0 <= 2 * (each.llf - one.llf) < 12.0
    assert one.aic == pytest.approx(2 * one.family.n_free_params - 2 * one.llf)
    slope = moestat.score(ONE, one.theta, *data)[ONE.lower < ONE.upper]
    assert np.abs(slope).max() < 1e-2
    free = np.flatnonzero(ONE.lower < ONE.upper)
    information = -moestat.hessian(ONE, one.theta, *data)[np.ix_(free, free)]
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    assert np.allclose(np.asarray(one.bse)[free], errors, rtol=1e-6)


@pytest.mark.parametrize("solver", ["em", "squarem"])
def test_em_finds_the_same_maximum(data, solver):
    start = [moestat.starts.TruthStarts(ONE, ONE.typical(0), 1, 0.0)]
    options = {"starts": start, "rng": 0}
    newton = moestat.fit(ONE, *data, **options)
    other = moestat.fit(ONE, *data, solver=moestat.solvers.make_solver(solver), **options)
    assert other.llf == pytest.approx(newton.llf, abs=1e-4)


def test_the_family_is_stored_with_what_is_equal(data, tmp_path):
    assert pickle.loads(pickle.dumps(ONE)).table == ONE.table
    fit = moestat.fit("gaussian", *data, n_experts=2, equal="nu", n_starts=4, rng=0)
    fit.save(tmp_path / "fit.npz")
    again = moestat.load(tmp_path / "fit.npz")
    assert again.family.equal == ("nu",)
    assert again.param_names[-1] == "log nu"
    assert np.array_equal(again.predict(data[0][:3]), fit.predict(data[0][:3]))


@pytest.mark.parametrize("wrong", ["q", ["nu", "q"], 3])
def test_what_cannot_be_equal_is_one_clear_error(wrong):
    with pytest.raises(ValueError, match=r"equal(: unknown block| must be names)"):
        moestat.family("gaussian", **SIZES, equal=wrong)
