"""Predictions with errors: derivatives of every kind of family, and memory that grows like n."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.estimation.fit.delta import gradients, predictions
from moestat.estimation.search.agreement import search_of
from tests.kinds import KINDS, REGRESSION, kind_id, known, make, random_theta


@pytest.mark.parametrize("kind", [*KINDS, *REGRESSION], ids=kind_id)
def test_gradients_of_predictions_are_those_of_the_compiled_mean(kind):
    rng = np.random.default_rng(3)
    family = make(kind, 3, 2, 3)
    theta = random_theta(family, rng, 0.5)
    X = rng.normal(size=(4, 2))
    value = family.mean if family.likelihood.support is None else family.probabilities
    np.testing.assert_allclose(
        predictions(family, theta, X).T.reshape(value(theta, X).shape), value(theta, X), rtol=1e-9
    )
    ((rows, _, gradient),) = gradients(family, theta, X)
    assert rows == slice(0, 4)
    free = [j for j in range(theta.size) if j not in known(family)]
    for j in rng.choice(free, size=min(12, len(free)), replace=False):
        step = np.zeros(theta.size)
        step[j] = 1e-5
        by_steps = (value(theta + step, X) - value(theta - step, X)) / 2e-5
        np.testing.assert_allclose(
            gradient[j].T.reshape(by_steps.shape), by_steps, rtol=1e-5, atol=1e-7
        )


def test_predictions_of_many_rows_take_memory_like_n():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    y = np.where(x > 0, 1 + 2 * x, -2 * x) + 0.3 * rng.normal(size=400)
    result = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
    few = result.get_prediction(x[:5])
    many = np.resize(x, 200_000)
    tracemalloc.start()
    prediction = result.get_prediction(many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Before: a matrix (n, n), 320 GB.
    assert peak < 60 * 8 * many.size
    np.testing.assert_allclose(prediction.se[:5], few.se, rtol=1e-12)


def test_what_lies_outside_of_the_data_is_said():
    rng = np.random.default_rng(0)
    x = np.r_[rng.uniform(0, 1, 100), rng.uniform(9, 10, 100)]
    y = np.where(x < 5, x, 20 - x) + 0.1 * rng.normal(size=200)
    result = moestat.fit("gaussian", x, y, n_experts=2, rng=0)
    inside, gap, beyond = [0.1, 0.5, 9.5], [4.0, 5.0, 6.0], [-3.0, 30.0]
    frame = result.get_prediction([*inside, *gap, *beyond]).summary_frame()
    assert (frame.extrapolation[:3] <= 1.0).all()
    assert (frame.extrapolation[3:] > 1.0).all()
    assert (result.get_prediction().extrapolation <= 1.0 + 1e-9).all()
    with pytest.warns(moestat.base.warnings.ExtrapolationWarning, match=r"2 rows .* row 1 is -"):
        result.predict([0.5, 1e4, 1e3])
    # The standard error is that of the regression on the group of its own.
    own = x < 5
    centred = x[own] - x[own].mean()
    error = np.sqrt(1 / own.sum() + (0.5 - x[own].mean()) ** 2 / (centred @ centred))
    spread = np.sqrt(np.mean((y[own] - np.polyval(np.polyfit(x[own], y[own], 1), x[own])) ** 2))
    assert frame.mean_se[1] == pytest.approx(error * spread, rel=1e-3)


def test_a_direction_that_the_data_do_not_tell_is_outside():
    x = np.linspace(0, 1, 40)
    X = np.column_stack([x, 2 * x])
    with pytest.warns(moestat.base.warnings.AliasedWarning):
        result = moestat.fit("gaussian", X, np.sin(7 * x), n_experts=1, rng=0)
    found = result.get_prediction([[0.5, 1.0], [0.5, 0.0]]).extrapolation
    assert found[0] < 1.0
    assert found[1] == np.inf


@pytest.mark.parametrize("end", [30.0, 60.0, 300.0])
def test_steep_counts_far_outside_have_no_nan(end):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, 600)
    steep = rng.random(600) < 1 / (1 + np.exp(1.5 * x - 1.5))
    mean = np.minimum(np.where(steep, np.exp(6 * x - 6), np.exp(0.3 + 0.1 * x)), 1e3)
    result = moestat.fit("poisson", x, rng.poisson(mean), n_experts=2, rng=0)
    try:
        with pytest.warns(moestat.base.warnings.ExtrapolationWarning):
            frame = result.get_prediction([end]).summary_frame()
    except ValueError as error:
        assert "too far outside of the data" in str(error)  # noqa: PT017
    else:
        assert not frame.isna().any(axis=None)
        assert (frame >= 0.0).all(axis=None)


def test_far_from_the_data_intervals_are_numbers_and_quantiles_reach_the_ends_of_the_support():
    x = np.linspace(-2, 2, 60)
    counts = np.round(np.exp(0.5 + 0.8 * x))
    positive = np.exp(x) + 0.3 * np.sin(20 * x) ** 2
    for name, y, least in (("poisson", counts, 0.0), ("gamma", positive, 0.0)):
        result = moestat.fit(name, x, y, n_experts=1, rng=0, starts=[search_of(2, searches=1)])
        frame = result.get_prediction([-1e8, -50.0]).summary_frame()
        assert not frame.isna().to_numpy().any()
        assert (frame[["mean_ci_lower", "obs_ci_lower"]].to_numpy() >= least).all()
        ends = result.predict([0.0], "quantile", q=[0.0, 1.0])[0]
        assert ends.tolist() == [least, np.inf]
        with pytest.raises(ValueError, match="X holds values above"):
            result.predict([1e160])


@pytest.mark.parametrize("log_mean", [-12.0, -40.0, -1e3, -1e8])
@pytest.mark.parametrize(("name", "others"), [("poisson", []), ("negative-binomial", [-20.0])])
def test_positive_counts_of_tiny_means_are_ones(name, others, log_mean):
    eta = np.array([log_mean, *others])[:, None]
    law = moestat.family(f"truncated-{name}", n_experts=1).likelihood.law(eta)
    more = np.exp(log_mean) / 2  # the chance of 2, given a positive count
    np.testing.assert_allclose(law.mean(), 1 + more, rtol=1e-9)
    np.testing.assert_allclose(law.cdf(np.arange(3)), [0, 1 - more, 1], atol=1e-10)
    assert law.ppf(np.array([0.01, 1 - 1e-4])).tolist() == [1, 1]
    behind = moestat.family(f"hurdle-{name}", n_experts=1).likelihood
    mean, deviation = behind.spread(np.vstack([eta, [[0.0]]]))
    np.testing.assert_allclose([mean[0], deviation[0]], 0.5, rtol=1e-5)


def test_wrong_successes_of_new_rows_are_refused_and_missing_ones_leave_intervals_out():
    rng = np.random.default_rng(5)
    trials = rng.integers(1, 9, 80)
    table = pd.DataFrame({"x": rng.normal(size=80), "s": rng.binomial(trials, 0.4)})
    table["f"] = trials - table["s"]
    formula = "cbind(s, f) ~ x"
    result = moestat.fit_formula(formula, table, family="binomial", n_experts=1, rng=0)
    new = table.head(3)
    assert "obs_ci_lower" in result.get_prediction(new).summary_frame()
    assert "obs_ci_lower" not in result.get_prediction(new[["x"]]).summary_frame()
    with pytest.raises(ValueError, match="y must hold counts, whole numbers from 0; got -1"):
        result.get_prediction(new.assign(s=-1))
    for call in (result.get_prediction, lambda X: moestat.fit_formula(formula, X, "binomial")):
        with pytest.raises(ValueError, match="must be numbers; words or categories are in column"):
            call(new.assign(s="one"))
    mixed = pd.Series([1, 5, 8], new.index[::-1])
    for read in (
        result.get_prediction,
        result.simulate,
        lambda X, **k: result.predict(X, "quantile", **k),
    ):
        with pytest.raises(ValueError, match="X and trials have different indexes"):
            read(new[["x"]], trials=mixed)
    ordered = result.predict(new[["x"]], "variance", trials=mixed.sort_index())
    np.testing.assert_array_equal(ordered, result.predict(new[["x"]], "variance", trials=[8, 5, 1]))
