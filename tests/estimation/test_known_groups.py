"""Errors and intervals of predictions for rows of groups that a fit knows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import moestat
from moestat.base.warnings import ExtrapolationWarning

GROUPS, TIMES = 60, 4


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    who, t = np.repeat(np.arange(GROUPS), TIMES), np.tile(np.arange(float(TIMES)), GROUPS)
    kind = rng.random(GROUPS) < 0.5
    table = pd.DataFrame({"id": who, "t": t})
    table["y"] = np.where(kind[who], 1 + t, 2 - t) + 2 * rng.normal(size=who.size)
    own = rng.normal(size=GROUPS)[who]
    table["z"] = 1 + 0.5 * t + own + 0.5 * rng.normal(size=who.size)
    return table


def new_rows(data):
    return data.drop_duplicates("id").head(8).assign(t=4.5)


def test_errors_count_that_shares_of_experts_are_estimated(data):
    """The delta method by differences, through responsibilities in plain NumPy."""
    fit = moestat.fit_formula("y ~ t | 1 | id", data, n_experts=2, rng=0)
    new, names = new_rows(data), fit.param_names

    def mean(theta):
        at = dict(zip(names, theta, strict=True))
        line = [at[f"b[{i + 1}]"] + at[f"a[{i + 1},t]"] * data.t.to_numpy() for i in range(2)]
        logs = [
            -0.5 * (np.log(2 * np.pi) + at[f"log nu[{i + 1}]"])
            - 0.5 * (data.y.to_numpy() - line[i]) ** 2 * np.exp(-at[f"log nu[{i + 1}]"])
            for i in range(2)
        ]
        height = np.reshape(logs, (2, GROUPS, TIMES)).sum(axis=2)
        share = softmax(height + np.array([[at["beta0[1]"]], [0.0]]), axis=0)[:, new["id"]]
        return sum(share[i] * (at[f"b[{i + 1}]"] + at[f"a[{i + 1},t]"] * 4.5) for i in range(2))

    slope = np.column_stack(
        [(mean(fit.theta + move) - mean(fit.theta - move)) / 2e-5 for move in 1e-5 * np.eye(10)]
    )
    found = fit.get_prediction(new, groups=new["id"])
    np.testing.assert_allclose(found.predicted, mean(fit.theta), rtol=1e-10)
    expected = np.sqrt(np.diag(slope @ fit._covariance @ slope.T))
    np.testing.assert_allclose(found.se, expected, rtol=1e-5)
    np.testing.assert_allclose(
        found.prediction_interval(0.1), fit.predict(new, "quantile", q=[0.05, 0.95], groups=new.id)
    )
    robust = fit.get_robustcov_results("HC0")
    expected = np.sqrt(np.diag(slope @ robust._covariance @ slope.T))
    np.testing.assert_allclose(robust.get_prediction(new, groups=new["id"]).se, expected, rtol=1e-5)


def test_errors_of_predicted_effects_are_those_of_the_mixed_model_equations(data):
    """Henderson's equations have the variance at known variances: these add a little."""
    fit = moestat.fit_formula("z ~ t + (1 | id)", data, n_experts=1, rng=0)
    parts = fit.variance_components().loc[1, "estimate"]
    ratio = (parts["sd(residual)"] / parts["sd(Intercept)"]) ** 2
    X = np.column_stack([np.ones(len(data)), data.t])
    Z = np.eye(GROUPS)[data["id"]]
    left = np.block([[X.T @ X, X.T @ Z], [Z.T @ X, Z.T @ Z + ratio * np.eye(GROUPS)]])
    inverse = np.linalg.inv(left) * parts["sd(residual)"] ** 2
    new = new_rows(data)
    at = np.column_stack([np.ones(len(new)), new.t, np.eye(GROUPS)[new["id"]]])
    known = np.sqrt(np.einsum("np,pq,nq->n", at, inverse, at))
    found = fit.get_prediction(new, groups=new["id"])
    assert np.all(found.se >= known * (1 - 1e-9))
    np.testing.assert_allclose(found.se, known, rtol=0.03)
    np.testing.assert_allclose(found.predicted, fit.predict(new, groups=new["id"]))
    half = np.diff(found.prediction_interval(), axis=1)[:, 0] / 2 / 1.959963985
    inside = np.sqrt(parts["sd(residual)"] ** 2 + fit.random_effects().iloc[0, 1] ** 2)
    np.testing.assert_allclose(half, inside, rtol=1e-8)
    two = moestat.fit_formula("z ~ t + (1 | id) | 1", data, n_experts=2, rng=0)
    both = two.get_prediction(new, groups=new["id"])
    np.testing.assert_allclose(both.predicted, two.predict(new, groups=new["id"]))
    assert np.isfinite(both.summary_frame().to_numpy()).all()


def test_a_group_that_is_not_in_the_fit_has_the_population_s_prediction(data):
    fit = moestat.fit_formula("z ~ t + (1 | id)", data, n_experts=1, rng=0)
    new = new_rows(data).head(2).assign(id=[900, 901])
    with pytest.warns(ExtrapolationWarning, match="are not in the fit"):
        found = fit.get_prediction(new, groups=new["id"])
    plain = fit.get_prediction(new)
    np.testing.assert_allclose(found.predicted, plain.predicted)
    np.testing.assert_allclose(found.prediction_interval(), plain.prediction_interval())
    with pytest.warns(ExtrapolationWarning, match="are not in the fit"):
        mixed = fit.get_prediction(new, groups=[0, 900])
    np.testing.assert_allclose(mixed.prediction_interval()[1], plain.prediction_interval()[1])
    assert np.all(np.diff(mixed.prediction_interval())[0] < np.diff(plain.prediction_interval())[0])
    rows = moestat.fit_formula("z ~ t", data, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="groups: the fit has no groups"):
        rows.get_prediction(new, groups=new["id"])
    both = moestat.fit_formula(
        "cbind(y, z) ~ t | 1 | id", data, ["gaussian", "gaussian"], n_experts=2, rng=0
    )
    with pytest.raises(
        ValueError, match="errors for known groups are available only for fits of one"
    ):
        both.response("z").get_prediction(new, groups=[0, 1])
