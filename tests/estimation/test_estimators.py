"""The estimators inside scikit-learn's own tools."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest

pytest.importorskip("sklearn")

from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import moestat
from moestat.base.warnings import ConstantColumnWarning
from moestat.estimation.fitting.estimators import MoEClassifier, MoERegressor
from moestat.estimation.starts import RandomStarts
from moestat.solvers import Newton


@pytest.fixture
def wave():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(1500, 1))
    high = rng.random(1500) < 1 / (
        1 + np.exp(-np.where(X[:, 0] < 0, 3 * X[:, 0] + 3, 3 - 6 * X[:, 0]))
    )
    return X, np.where(high, "high", "low")


def test_clone_search_and_cross_validation(wave):
    model = MoEClassifier(n_experts=2, n_starts=4, random_state=0)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    flat = cross_val_score(MoEClassifier(n_experts=1, random_state=0), *wave, cv=3)
    bent = cross_val_score(model, *wave, cv=3)
    assert bent.mean() > flat.mean() + 0.05


def test_probabilities_follow_the_labels(wave):
    X, y = wave
    model = MoEClassifier(n_experts=2, n_starts=4, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["high", "low"]
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert model.results_.certificate.certified


def test_errors_name_the_argument(wave):
    X, y = wave
    with pytest.raises(NotFittedError, match="not fitted"):
        MoEClassifier().predict(X)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        MoEClassifier().set_params(depth=3)
    with pytest.raises(ValueError, match="at least two classes, got 1"):
        MoEClassifier().fit(X, np.full(len(y), "high"))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        MoEClassifier().fit(X[:, 0], y)
    with pytest.raises(ValueError, match="time_limit, risk and maximum apply to"):
        MoEClassifier(starts=[RandomStarts(1)], n_starts=2).fit(X, y)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        MoEClassifier().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="unknown gate"):
        MoEClassifier(gate="none").fit(X, y)
    assert MoEClassifier().set_params(n_experts=3).n_experts == 3


@pytest.mark.parametrize(
    ("estimator", "n_experts"),
    [
        (MoERegressor, 1),
        (MoEClassifier, 2),
        pytest.param(MoERegressor, 2, marks=pytest.mark.slow),
        pytest.param(MoEClassifier, 1, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn(estimator, n_experts):
    """Every check passes, also those with fewer samples than parameters.

    Beyond 70 parameters the default solver is a quasi-Newton method, by which fits to weights and
    to copies have the same maximum, but predictions that differ by 1e-5; the check asks for 1e-7.
    """
    weights = "check_sample_weight_equivalence_on_dense_data"
    listed = {weights: "quasi-Newton"} if n_experts == 2 else {}
    found = check_estimator(
        estimator(n_experts=n_experts), expected_failed_checks=listed, on_skip=None, on_fail=None
    )
    assert not [check for check in found if check["status"] == "failed"]
    assert len(found) > 55


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_columns_are_named_and_checked(make, wave):
    X, y = wave
    frame = make({"time": X[:, 0], "other": np.sin(5.0 * X[:, 0])})
    model = MoEClassifier(n_experts=1, random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["time", "other"]
    assert "a[1,high,time]" in model.results_.param_names
    assert "high against low" in str(model.results_.summary())
    assert set(model.predict(frame)) == {"high", "low"}
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["other", "time"]])
    with pytest.raises(ValueError, match="column 'region' is categorical"):
        model.fit(make({"region": y.tolist()}), y)
    gaps = make({"time": X[:, 0], "other": np.where(X[:, 0] > 1.9, np.nan, 1.0)})
    with pytest.raises(ValueError, match=r"column 'other' has .* missing values"):
        model.predict(gaps)


def test_fitted_estimators_are_stored(wave, tmp_path):
    X, y = wave
    for model in (
        make_pipeline(StandardScaler(), MoEClassifier(n_experts=1, random_state=0)).fit(X, y),
        MoERegressor(n_experts=1, random_state=0).fit(X, X[:, 0] ** 2),
    ):
        joblib.dump(model, tmp_path / "model")
        for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
            assert np.array_equal(again.predict(X), model.predict(X))
        assert len(pickle.dumps(model)) < X.nbytes + 20_000  # the data are not in it


def test_solvers_starts_and_bounds_are_those_of_a_fit(wave):
    X, _ = wave
    y = X[:, 0] ** 2
    options = {"n_experts": 2, "bounds": {"a": (-1.0, 1.0)}, "random_state": 0}
    for solver in (None, "newton", {"name": "newton", "max_iterations": 100}, Newton()):
        model = MoERegressor(solver=solver, n_starts=3, **options).fit(X, y)
        assert model.results_.certificate.n_starts >= 3
        assert np.abs(model.results_.blocks["a"]).max() <= 1.0
    one = MoERegressor(starts=[RandomStarts(1)], **options).fit(X, y)
    assert one.results_.certificate.n_starts == 1


COUNTS = np.random.default_rng(2).poisson(3.0, 1500)


@pytest.mark.parametrize(("likelihood", "y"), [("poisson", COUNTS), ("gamma", COUNTS + 0.5)])
def test_likelihoods_are_those_of_fits(likelihood, y, wave):
    """Scores are log-densities of the rows, deviations those of new responses."""
    X, _ = wave
    model = MoERegressor(1, likelihood=likelihood, random_state=0).fit(X, y)
    result = moestat.fit(likelihood, X, y, n_experts=1, rng=0)
    assert model.results_.llf == pytest.approx(result.llf)
    assert model.score_samples(X, y).sum() == pytest.approx(result.llf)
    mean, deviation = model.predict(X, return_std=True)
    assert np.allclose(mean, result.predict(X))
    assert np.allclose(deviation**2, result.predict(X, "variance"))
    assert np.mean(((y - mean) / deviation) ** 2) == pytest.approx(1.0, abs=0.3)
    assert clone(model).get_params()["likelihood"] == likelihood
    with pytest.raises(ValueError, match=r"unknown likelihood|likelihood"):
        MoERegressor(likelihood="linear").fit(X, y)


@pytest.mark.parametrize("likelihood", ["gaussian", "multivariate-gaussian"])
def test_several_responses_are_columns_of_y(likelihood, wave):
    X, high = wave[0], wave[1] == "high"
    y = np.column_stack([high + X[:, 0], np.random.default_rng(0).normal(high)])
    model = MoERegressor(1, likelihood=likelihood, prior=None, random_state=0).fit(X, y)
    plain = "multivariate-gaussian" if "-" in likelihood else ["gaussian", "gaussian"]
    fit = moestat.fit(plain, X, y, n_experts=1, rng=0)
    mean, deviation = model.predict(X, return_std=True)
    assert mean.shape == deviation.shape == y.shape
    assert np.allclose(mean, fit.predict(X), rtol=1e-9)
    assert model.score_samples(X, y).sum() == pytest.approx(fit.llf)


def test_iterations_and_logarithms_of_probabilities(wave):
    X, y = wave
    model = MoEClassifier(1, random_state=0).fit(X, y)
    assert isinstance(model.n_iter_, int)
    assert model.n_iter_ == max(1, model.results_.certificate.iterations)
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    likely = model.predict_log_proba(X)[np.arange(len(y)), (y == "low").astype(int)]
    assert np.allclose(model.score_samples(X, y), likely)
    assert np.allclose(model.score_samples(X), model.predict_log_proba(X).max(axis=1))
    with pytest.raises(NotFittedError):
        _ = MoEClassifier().n_iter_


def test_weights_are_routed_through_pipelines_and_searches(wave):
    """What is asked for arrives at the fit, and what is not does not."""
    X, y = wave
    weight = np.where(X[:, 0] > 0, 3.0, 1.0)
    with config_context(enable_metadata_routing=True):
        asked = MoEClassifier(1, random_state=0).set_fit_request(sample_weight=True)
        asked.set_score_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asked)
        fitted = pipe.fit(X, y, sample_weight=weight)[-1]
        assert fitted.results_.nobs == weight.sum()
        search = GridSearchCV(asked, {"gate": ["softmax"]}, cv=2)
        assert search.fit(X, y, sample_weight=weight).best_estimator_.results_.nobs == weight.sum()
        unasked = MoEClassifier(1, random_state=0).set_fit_request(sample_weight=False)
        with pytest.raises(TypeError, match="sample_weight"):
            make_pipeline(unasked).fit(X, y, sample_weight=weight)


def test_constant_columns_are_held(wave):
    X, y = wave
    X = np.column_stack([X, np.ones(len(X))])
    with pytest.warns(ConstantColumnWarning):
        model = MoEClassifier(n_experts=1, random_state=0).fit(X, y)
    assert model.results_.blocks["a"][0, 0, 1] == 0.0
    assert model.predict_proba(X).shape == (len(X), 2)
