"""Counts: one expert is a generalised linear model, two are those of flexmix, and what follows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import moestat


@pytest.fixture(scope="module")
def counts():
    """The data of which flexmix's numbers below are."""
    rng = np.random.default_rng(5)
    x = np.round(rng.uniform(-1, 1, 200), 3)
    first = rng.random(200) < 1 / (1 + np.exp(-3 * x))
    return x, rng.poisson(np.exp(np.where(first, 2.0 - 0.5 * x, 0.3 + 0.8 * x)))


def test_one_poisson_expert_is_a_generalised_linear_model(counts):
    x, y = counts
    mine = moestat.fit("poisson", x, y, n_experts=1, rng=0)
    other = sm.GLM(y, sm.add_constant(x), family=sm.families.Poisson()).fit(tol=1e-14)
    own = slice(2, 4)
    assert np.allclose(mine.params[own], other.params, rtol=1e-8)
    assert np.allclose(mine.bse[own], other.bse, rtol=1e-8)
    assert mine.llf == pytest.approx(other.llf, rel=1e-12)
    assert mine.certificate.certified
    for cov_type in ("HC0", "HC1"):
        robust = mine.get_robustcov_results(cov_type).bse[own]
        theirs = sm.GLM(y, sm.add_constant(x), family=sm.families.Poisson())
        factor = np.sqrt(200 / 198) if cov_type == "HC1" else 1.0
        assert np.allclose(robust, factor * theirs.fit(cov_type="HC0", tol=1e-14).bse, rtol=1e-7)
    expected = mine.get_robustcov_results("expected").bse[own]
    assert np.allclose(expected, other.bse, rtol=1e-7)  # the canonical link
    new = np.array([-0.5, 0.9])
    frame = mine.get_prediction(new).summary_frame()
    theirs = other.get_prediction(sm.add_constant(new))
    assert np.allclose(frame["mean"], theirs.predicted, rtol=1e-8)
    assert np.allclose(frame["mean_se"], theirs.se, rtol=1e-6)


def test_two_poisson_experts_are_those_of_flexmix(counts):
    """FLXMRglm(family = "poisson"), k = 2, FLXPmultinom(~ x) or constant weights, flexmix 2.3."""
    result = moestat.fit("poisson", *counts, n_experts=2, rng=0)
    assert result.llf == pytest.approx(-422.787328482, abs=1e-6)
    order = np.argsort(-result.blocks["b"])
    assert np.allclose(result.blocks["b"][order], [2.03763, 0.26579], atol=2e-4)
    assert np.allclose(result.blocks["a"][order, 0], [-0.62986, 1.04057], atol=2e-4)
    steep = np.diff(result.blocks["beta1"][order, 0])
    assert steep == pytest.approx(-2.72087, abs=2e-3)
    flat = moestat.fit("poisson", *counts, n_experts=2, gate_inputs=[], rng=0)
    assert flat.llf == pytest.approx(-435.468022831, abs=1e-6)
    assert flat.aic == pytest.approx(2 * 5 + 2 * 435.468022831, abs=1e-5)


def test_an_offset_of_a_poisson_formula_is_an_exposure(counts):
    x, y = counts
    exposure = 1.0 + np.arange(200) % 7
    data = {"y": y, "x": x, "t": exposure}
    mine = moestat.fit_formula("y ~ x", data, "poisson", n_experts=1, offset="log(t)", rng=0)
    model = sm.GLM(y, sm.add_constant(x), sm.families.Poisson(), exposure=exposure)
    other = model.fit(tol=1e-14)
    names = ["b[1]", "a[1,x]"]
    assert np.allclose(mine.params[names], other.params, rtol=1e-8)
    assert np.allclose(mine.bse[names], other.bse, rtol=1e-8)
    assert mine.llf == pytest.approx(other.llf, rel=1e-12)


def test_intervals_of_new_counts_hold_their_share(counts):
    x, y = counts
    result = moestat.fit("poisson", x, y, n_experts=2, rng=0)
    low, high = result.get_prediction(x).prediction_interval(0.1).T
    X, new = moestat.sample(result.family, result.theta, 4000, rng=3, design=moestat.Uniform(-1, 1))
    low, high = result.get_prediction(X).prediction_interval(0.1).T
    assert np.all(low == np.floor(low))
    inside = np.mean((new >= low) & (new <= high))
    assert 0.9 <= inside <= 0.97


def test_counts_that_are_none_are_one_clear_error():
    x = np.linspace(-1, 1, 20)
    for y, match in (
        (x, "y must hold counts, whole numbers from 0; got -1"),
        (x + 1.01, "whole numbers from 0; got 0.01"),
        (np.zeros(20), "y is 0 everywhere"),
    ):
        with pytest.raises(ValueError, match=match):
            moestat.fit("poisson", x, y, n_experts=1)
    F = moestat.family("poisson", gate="softmax", n_experts=1)
    with pytest.raises(ValueError, match="a lattice is for classes and normal responses"):
        moestat.sample_weighted(F, F.typical(0), 100, rng=0, design=moestat.Lattice(0, 1))


def test_an_offset_of_a_table_may_be_given_by_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "e": rng.uniform(size=200)})
    y = rng.poisson(np.exp(0.3 * X["x"] + X["e"]))
    place, name = (
        moestat.fit("poisson", X, y, n_experts=1, offset=given, rng=0) for given in (1, "e")
    )
    assert np.array_equal(place.theta, name.theta)
    with pytest.raises(ValueError, match="offset: unknown input 'z'; the inputs are x, e"):
        moestat.fit("poisson", X, y, n_experts=1, offset="z", rng=0)
