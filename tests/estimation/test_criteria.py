"""Criteria, tests one by one, marginal effects and the order of experts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import moestat
from moestat.base.warnings import SeparationWarning


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    n = 300
    x, d = rng.uniform(-2, 2, n), rng.integers(0, 2, n).astype(float)
    first = rng.random(n) < 1 / (1 + np.exp(-1.0 - x))
    y = np.where(first, 1 + 2 * x + d, -2 - x) + rng.normal(0, 0.5, n)
    return pd.DataFrame({"x": x, "d": d, "y": y, "count": rng.poisson(np.exp(0.3 * x + 0.4 * d))})


@pytest.fixture(scope="module")
def two(data):
    return moestat.fit("gaussian", data[["x", "d"]], data.y, n_experts=2, rng=0)


def test_names_of_statsmodels_have_its_values_for_one_expert(data):
    ols = sm.OLS(data.y, sm.add_constant(data[["x", "d"]])).fit()
    one = moestat.fit("gaussian", data[["x", "d"]], data.y, n_experts=1, rng=0)
    assert one.rsquared == pytest.approx(ols.rsquared, rel=1e-9)
    assert one.df_model == ols.df_model + 1  # the variance counts
    assert one.df_model + one.df_resid + 1 == one.nobs
    assert one.converged
    penalty = 2 * np.log(np.log(300)) * 4
    assert one.hqic == pytest.approx(penalty - 2 * ols.llf, abs=1e-6)
    assert one.icl == one.icl_map == one.bic
    test = one.t_test("a[1,x] = 2, a[1,d] = a[1,x]")
    theirs = ols.t_test("x = 2, d = x")
    np.testing.assert_allclose(test.effect, [ols.params["x"], ols.params["d"] - ols.params["x"]])
    np.testing.assert_allclose(test.sd, theirs.sd * np.sqrt(297 / 300), rtol=1e-6)
    assert list(test.summary_frame().columns)[:2] == ["estimate", "std_error"]


def test_criteria_of_a_mixture(two):
    tau = two.responsibilities
    soft = -np.sum(tau * np.log(np.maximum(tau, 1e-300)))
    assert two.icl == pytest.approx(two.bic + 2 * soft)
    assert two.icl_map == pytest.approx(two.bic - 2 * np.log(tau.max(axis=1)).sum())
    assert two.icl_map < two.icl


def test_average_marginal_effects_are_those_of_statsmodels_for_one_expert(data):
    X = data[["x", "d"]]
    poisson = sm.Poisson(data["count"], sm.add_constant(X)).fit(disp=0)
    one = moestat.fit("poisson", X, data["count"], n_experts=1, rng=0)
    for dummy in (False, True):
        ours, theirs = one.get_margeff(dummy=dummy), poisson.get_margeff(dummy=dummy)
        np.testing.assert_allclose(ours.effect, theirs.margeff, rtol=1e-4)
        np.testing.assert_allclose(ours.sd, theirs.margeff_se, rtol=1e-3)
    assert ours.names == ["x", "d"]
    label = (data.y > 0).astype(int)
    logit = sm.Logit(1 - label, sm.add_constant(X)).fit(disp=0)
    votes = moestat.fit("multinomial", X, label, n_experts=1, rng=0).get_margeff()
    np.testing.assert_allclose(votes.effect[::2], logit.get_margeff().margeff, rtol=1e-4)
    np.testing.assert_allclose(votes.sd[::2], logit.get_margeff().margeff_se, rtol=1e-3)


def test_marginal_effects_of_a_mixture_are_differences_of_its_mean(data, two):
    X, step = data[["x", "d"]], np.array([1e-5, 0.0])
    by_steps = (two.predict(X.to_numpy() + step) - two.predict(X.to_numpy() - step)).mean() / 2e-5
    assert two.get_margeff().effect[0] == pytest.approx(by_steps, rel=1e-6)


@pytest.mark.parametrize("gate", ["softmax", "competition-free"])
def test_experts_have_one_order_whatever_the_seed_and_may_be_relabelled(gate, data):
    fits = [
        moestat.fit("gaussian", data[["x", "d"]], data.y, n_experts=2, gate=gate, rng=seed)
        for seed in range(3)
    ]
    for fit in fits:
        weight = fit.predict(None, "gate").to_numpy().mean(axis=0)
        assert weight[0] > weight[1]
        np.testing.assert_allclose(fit.theta, fits[0].theta, atol=1e-3)
    other = fits[0].relabel([2, 1])
    assert other.llf == fits[0].llf
    np.testing.assert_allclose(other.predict(), fits[0].predict(), rtol=1e-9)
    np.testing.assert_allclose(other.responsibilities, fits[0].responsibilities[:, ::-1], atol=1e-9)
    for name in ("a[{},x]", "b[{}]", "log nu[{}]"):
        for get in (lambda r: r.params, lambda r: r.bse):
            assert get(other)[name.format(2)] == pytest.approx(get(fits[0])[name.format(1)])
    again = other.relabel([2, 1])
    np.testing.assert_allclose(again.theta, fits[0].theta, atol=1e-12)
    robust = fits[0].get_robustcov_results("HC0")
    turned, straight = robust.relabel([2, 1]), other.get_robustcov_results("HC0")
    np.testing.assert_allclose(turned.bse, straight.bse, rtol=1e-6)
    with pytest.raises(ValueError, match=r"order must hold each of the experts 1, 2 once"):
        fits[0].relabel([1, 1])


def test_a_family_keeps_the_order_of_its_starts(data):
    from moestat.estimation.starts import GivenStarts

    fit = moestat.fit("gaussian", data[["x"]], data.y, n_experts=2, rng=0)
    theta = fit.relabel([2, 1]).theta
    again = moestat.fit(fit.family, data[["x"]], data.y, starts=[GivenStarts([theta])], rng=0)
    np.testing.assert_allclose(again.theta, theta, atol=1e-4)


def test_selection_compares_formulas(data):
    formulas = ["y ~ x + d | 1", "y ~ x + d | x"]
    chosen = moestat.select("gaussian", formulas, data=data, k=(1, 2), folds=3, rng=0)
    assert chosen.chosen() == ("y ~ x + d | x", 2)
    assert chosen.chosen("cv") == ("y ~ x + d | x", 2)
    assert chosen.best.data.formula.formula == "y ~ x + d | x"
    assert "y ~ x + d | 1" in str(chosen)
    one = moestat.select("gaussian", formulas[1], data=data, k=(1, 2), rng=0)
    assert one.chosen() == 2
    assert one.best.llf == pytest.approx(chosen.best.llf, abs=1e-6)
    assert moestat.dendrogram(one.best).nobs == 300
    with pytest.raises(ValueError, match="needs a table"):
        moestat.select("gaussian", formulas)


def test_terms_are_searched_one_at_a_time():
    rng = np.random.default_rng(0)
    table = {name: rng.normal(size=250) for name in ("a", "b c", "z")}
    table["y"] = np.where(table["z"] > 0, 3 + table["a"], -3) + 0.5 * rng.normal(size=250)
    found = moestat.stepwise("y ~ a * `b c` | z + `b c`", table, rng=0, n_starts=4)
    assert found.chosen() == ("y ~ a | z", 2)
    assert len(found.results) == len(found.table["bic"])
    assert not any("a:" in text and "+ `b c`" not in text for text, _ in found.results)
    again = moestat.stepwise("y ~ a | z", table, start="y ~ a | 1", rng=0, n_starts=4)
    assert again.chosen() == ("y ~ a | z", 2)
    with pytest.raises(ValueError, match="has the terms z, which the formula does not have"):
        moestat.stepwise("y ~ a | 1", table, start="y ~ z | 1")


def test_a_path_of_priors_is_compared_by_its_degrees_of_freedom():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 30))
    y = X[:, 0] + 0.5 * rng.normal(size=60)
    path = [moestat.Prior(experts=s) for s in (0.02, 0.2)]
    found = moestat.select("gaussian", X, y, k=(1,), prior=path, folds=3, rng=0)
    assert list(found.results) == [(prior, 1) for prior in path]
    assert found.table["df"][0] < found.table["df"][1] < 32
    assert "Prior(" in str(found)


def _separated(rng, n=120):
    frame = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    return frame, np.where(frame["x"] + 0.3 * frame["z"] > 0, "yes", "no")


def test_warnings_of_folds_are_issued_once_with_the_names_of_the_columns():
    X, y = _separated(np.random.default_rng(0))
    with pytest.warns(SeparationWarning) as caught:
        found = moestat.select("multinomial", X, y, k=(1,), folds=4, rng=0)
    _, of_folds = (str(one.message) for one in caught)
    assert of_folds.startswith("cross-validation of k = 1: 4 of 4 fits: the likelihood has no")
    assert "columns x, z" in of_folds
    assert "the likelihood has no finite maximum (prior='weak' gives one): 1" in str(found)


def test_modes_and_maxima_are_chosen_from_by_cross_validation_alone():
    X, y = _separated(np.random.default_rng(0))
    with pytest.warns(SeparationWarning):
        found = moestat.select(
            "multinomial", X, y, k=(1,), criterion="cv", prior=[None, "weak"], rng=0
        )
    assert str(found).splitlines()[-1] == f"chosen: cv {found.chosen()}"


def test_rows_without_weight_do_not_move_others_between_folds(data):
    X, y = data[["x", "d"]].to_numpy()[:90], data["y"].to_numpy()[:90]
    weight = np.ones(120)
    weight[::4] = 0.0
    rows = np.flatnonzero(weight)
    longer, responses = np.zeros((120, 2)), np.zeros(120)
    longer[rows], responses[rows] = X, y
    asked = {"k": (1,), "folds": 3, "rng": 0}
    short = moestat.select("gaussian", X, y, **asked)
    long = moestat.select("gaussian", longer, responses, sample_weight=weight, **asked)
    assert long.table["cv"] == pytest.approx(short.table["cv"], rel=1e-9)
