"""Results under the names of statsmodels, as text, HTML and files."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import moestat
from moestat.estimation.starts import RandomStarts


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal([50.0, 1.7], [10.0, 0.1], size=(300, 2)), columns=["age", "<b>"])
    data["cost"] = 1000.0 + 20.0 * data["age"] - 300.0 * data["<b>"] + 50.0 * rng.normal(size=300)
    data["vote"] = np.where(data["age"] + 10.0 * rng.logistic(size=300) > 50.0, "no", "yes")
    return data


@pytest.fixture(scope="module")
def line(frame):
    return moestat.fit("gaussian", frame[["age", "<b>"]], frame["cost"], n_experts=1, rng=0)


@pytest.fixture(scope="module")
def votes(frame):
    return moestat.fit("multinomial", frame[["age", "<b>"]], frame["vote"], n_experts=1, rng=0)


def test_one_gaussian_expert_is_linear_regression(frame, line):
    ols = sm.OLS(frame["cost"], sm.add_constant(frame[["age", "<b>"]])).fit()
    names = ["b[1]", "a[1,age]", "a[1,<b>]"]
    # Of regression coefficients, with the variance by maximum likelihood.
    factor = np.sqrt(ols.df_resid / ols.nobs)
    assert line.llf == line.log_likelihood == pytest.approx(ols.llf, abs=1e-4)
    assert np.allclose(line.params[names], ols.params, rtol=1e-4)
    assert np.allclose(line.bse[names], factor * ols.bse, rtol=1e-4)
    assert np.allclose(line.tvalues[names], ols.tvalues / factor, rtol=1e-3)
    normal = sm.OLS(frame["cost"], sm.add_constant(frame[["age", "<b>"]])).fit(
        cov_type="nonrobust", use_t=False
    )
    assert np.allclose(line.pvalues[names], normal.pvalues, atol=1e-3)
    assert np.allclose(line.conf_int().loc[names].mean(axis=1), line.params[names])
    assert np.allclose(line.cov_params().loc[names, names], factor**2 * ols.cov_params(), rtol=1e-3)
    assert np.allclose(line.fittedvalues, ols.fittedvalues, rtol=1e-4)
    assert np.allclose(line.resid, ols.resid, atol=0.1)
    assert line.nobs == 300
    assert line.df_resid == ols.df_resid - 1  # the variance counts
    assert line.aic == pytest.approx(ols.aic + 2, abs=1e-3)
    assert line.bic == pytest.approx(ols.bic + np.log(300), abs=1e-3)


def test_one_multinomial_expert_is_logistic_regression(frame, votes):
    logit = sm.Logit(frame["vote"] == "no", sm.add_constant(frame[["age", "<b>"]])).fit(disp=0)
    names = ["b[1,no]", "a[1,no,age]", "a[1,no,<b>]"]
    assert votes.llf == pytest.approx(logit.llf, abs=1e-4)
    assert np.allclose(votes.params[names], logit.params, rtol=1e-2)
    assert np.allclose(votes.bse[names], logit.bse, rtol=1e-2)
    assert np.allclose(votes.fittedvalues.iloc[:, 0], logit.predict(), atol=1e-3)
    residual = votes.resid
    assert np.allclose(residual.sum(axis=1), 0.0)
    assert np.allclose(residual.iloc[:, 0], logit.resid_response, atol=1e-3)
    assert votes.df_resid == logit.df_resid


def test_the_gate_of_one_expert_has_no_place_in_labelled_answers(line):
    assert not any(name.startswith("beta") for name in line.params.index)
    at = line.param_names.index("beta0[1]")
    assert np.isnan(line._z[at])
    assert line.theta_bse[at] == 0.0


def test_arrays_have_arrays(frame):
    X = frame[["age", "<b>"]].to_numpy()
    result = moestat.fit("gaussian", X, frame["cost"].to_numpy(), n_experts=1, rng=0)
    for value in (result.params, result.bse, result.tvalues, result.pvalues, result.conf_int()):
        assert type(value) is np.ndarray
    covariance = result.cov_params()
    covariance[:] = 0.0  # a copy
    assert result.cov_params().any()


def test_results_without_the_data_keep_the_names(frame, votes, tmp_path):
    short = votes.without_data()
    assert len(pickle.dumps(short)) < len(pickle.dumps(votes)) - 300 * 8 * 2
    short.save(tmp_path / "short")
    again = moestat.load(tmp_path / "short")
    assert again.nobs == 300
    assert set(again.predict(frame[["age", "<b>"]])) == {"no", "yes"}
    with pytest.raises(ValueError, match="without the data"):
        _ = again.resid


def test_a_save_that_is_interrupted_leaves_the_old_file(line, votes, tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    line.save(path)
    before, write = path.read_bytes(), np.savez_compressed

    def interrupted(file, **arrays):
        write(file, **arrays)
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        votes.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["fit.npz"]


def test_files_of_anything_else_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        moestat.load(tmp_path / "none")
    (tmp_path / "text").write_text("results")
    np.savez(tmp_path / "arrays.npz", x=np.ones(3))
    np.savez(tmp_path / "objects.npz", head=np.array([{"a": 1}], dtype=object))
    np.savez(tmp_path / "later.npz", head=np.array('{"format": "moestat record 9"}'))
    for name in ("text", "arrays.npz", "objects.npz", "later.npz"):
        with pytest.raises(ValueError, match=f"{name} does not hold a record of moestat"):
            moestat.load(tmp_path / name)


def test_the_seed_of_starts_is_the_only_randomness(frame):
    X, y = frame[["age", "<b>"]], frame["vote"]
    one, other = (
        moestat.fit("multinomial", X, y, n_experts=2, starts=[RandomStarts(2)], rng=7)
        for _ in range(2)
    )
    assert one.params.equals(other.params)


def test_data_sets_of_a_batch_keep_their_own_names(frame):
    family = moestat.family("multinomial", gate="softmax", n_experts=1)
    labels = frame["vote"] == "no"
    sets = [(frame[["age"]], frame["vote"]), (frame[["<b>"]], labels)]
    one, other = moestat.fit_many(family, sets, rng=0)
    assert "a[1,no,age]" in one.params.index
    assert "a[1,False,<b>]" in other.params.index
    assert set(one.predict(frame[["age"]])) <= {"no", "yes"}
    assert other.predict(frame[["<b>"]]).dtype == bool
