"""What users of statsmodels, R and Stata ask of a fit, against statsmodels and plain NumPy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import moestat


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    n = 150
    table = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    mean = np.exp(0.3 + 0.4 * table.x)
    table["gaussian"] = 1 + table.x + rng.normal(size=n)
    table["poisson"] = rng.poisson(mean).astype(float)
    table["gamma"] = rng.gamma(2.0, mean / 2)
    table["inverse-gaussian"] = rng.wald(mean, 2.0)
    table["negative-binomial"] = rng.negative_binomial(2, 2 / (2 + mean)).astype(float)
    table["geometric"] = rng.negative_binomial(1, 1 / (1 + mean)).astype(float)
    table["binomial"] = (rng.random(n) < 1 / (1 + np.exp(-table.x))).astype(float)
    first = rng.random(n) < 1 / (1 + np.exp(-2 * table.z))
    table["two"] = np.where(first, 3 + table.x, -3 - table.x) + 0.5 * rng.normal(size=n)
    table["w"] = rng.integers(1, 4, n).astype(float)
    return table


def _family(name, one):
    log = sm.families.links.Log()
    return {
        "gaussian": lambda: sm.families.Gaussian(),
        "poisson": lambda: sm.families.Poisson(),
        "gamma": lambda: sm.families.Gamma(log),
        "inverse-gaussian": lambda: sm.families.InverseGaussian(log),
        "negative-binomial": lambda: sm.families.NegativeBinomial(alpha=one.blocks["phi"][0]),
        "geometric": lambda: sm.families.NegativeBinomial(alpha=1.0),
        "binomial": lambda: sm.families.Binomial(),
    }[name]()


LAWS = ["gaussian", "poisson", "gamma", "inverse-gaussian", "negative-binomial", "geometric"]


@pytest.mark.parametrize("name", [*LAWS, "binomial"])
def test_one_expert_has_the_numbers_of_a_generalised_linear_model(name, data):
    X = data[["x", "z"]]
    one = moestat.fit(name, X, data[name], n_experts=1, sample_weight=data.w, rng=0)
    theirs = sm.GLM(
        data[name], sm.add_constant(X), family=_family(name, one), freq_weights=data.w
    ).fit(tol=1e-14)
    assert one.deviance == pytest.approx(theirs.deviance, rel=1e-8)
    assert one.pearson_chi2 == pytest.approx(theirs.pearson_chi2, rel=1e-7)
    assert one.scale == pytest.approx(theirs.scale, rel=1e-7)
    pd.testing.assert_series_equal(
        one.resid_pearson, theirs.resid_pearson, rtol=1e-6, atol=1e-7, check_names=False
    )
    np.testing.assert_allclose(one.resid_deviance, theirs.resid_deviance, rtol=1e-6, atol=1e-7)
    ours, other = one.get_influence(), theirs.get_influence(observed=False)
    np.testing.assert_allclose(ours.hat_matrix_diag, other.hat_matrix_diag, rtol=1e-6)
    np.testing.assert_allclose(ours.resid_studentized, other.resid_studentized, rtol=1e-5)
    np.testing.assert_allclose(ours.cooks_distance, other.cooks_distance[0], atol=1e-7)
    assert ours.summary_frame().index.equals(X.index)
    assert ours.hat_matrix_diag.sum() == pytest.approx(3.0)
    if name in ("poisson", "geometric", "binomial"):  # without a scale that one has to choose
        assert one.llnull == pytest.approx(theirs.llnull, abs=1e-7)


def test_pseudo_r_squared_is_that_of_statsmodels_or_r_squared(data):
    X = data[["x", "z"]]
    normal = moestat.fit("gaussian", X, data.gaussian, n_experts=1, rng=0)
    ols = sm.OLS(data.gaussian, sm.add_constant(X)).fit()
    assert normal.pseudo_rsquared() == pytest.approx(ols.rsquared, rel=1e-9)
    null = sm.OLS(data.gaussian, np.ones(len(X))).fit()
    assert normal.llnull == pytest.approx(null.llf, abs=1e-8)
    np.testing.assert_allclose(normal.resid_deviance, ols.resid, atol=1e-8)
    assert normal.scale == pytest.approx(ols.scale, rel=1e-9)
    influence = ols.get_influence()
    np.testing.assert_allclose(
        normal.get_influence().hat_matrix_diag, influence.hat_matrix_diag, rtol=1e-7
    )
    counts = moestat.fit_formula("poisson ~ x + offset(z)", data, "poisson", n_experts=1, rng=0)
    glm = sm.GLM(
        data.poisson, sm.add_constant(data[["x"]]), family=sm.families.Poisson(), offset=data.z
    ).fit(tol=1e-14)
    assert counts.llnull == pytest.approx(glm.llnull, abs=1e-6)
    for kind in ("cs", "mcf"):
        assert counts.pseudo_rsquared(kind) == pytest.approx(glm.pseudo_rsquared(kind), abs=1e-8)
    with pytest.raises(ValueError, match="kind must be one of 'cs', 'mcf', got 'r2'"):
        counts.pseudo_rsquared("r2")


def test_trials_by_row_and_classes(data):
    rng = np.random.default_rng(2)
    trials = rng.integers(1, 9, len(data))
    s = rng.binomial(trials, 1 / (1 + np.exp(-data.x)))
    y = pd.DataFrame({"successes": s, "failures": trials - s}, index=data.index)
    rows = moestat.fit("binomial", data[["x"]], y, n_experts=1, rng=0)
    glm = sm.GLM(y, sm.add_constant(data[["x"]]), family=sm.families.Binomial()).fit(tol=1e-14)
    assert rows.deviance == pytest.approx(glm.deviance, rel=1e-9)
    np.testing.assert_allclose(rows.resid_pearson, glm.resid_pearson, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(rows.resid_deviance, glm.resid_deviance, rtol=1e-6, atol=1e-7)
    assert rows.llnull == pytest.approx(glm.llnull, abs=1e-6)
    same = moestat.fit({"name": "binomial", "trials": 1}, data[["x"]], data.binomial, n_experts=1)
    label = moestat.fit("multinomial", data[["x"]], data.binomial.astype(int), n_experts=1)
    assert label.deviance == pytest.approx(same.deviance, rel=1e-9)


def test_a_mixture_has_a_null_and_refuses_what_it_has_not(data):
    two = moestat.fit("gaussian", data[["x"]], data.gaussian, n_experts=2, rng=0)
    null = sm.OLS(data.gaussian, np.ones(len(data))).fit()
    assert two.llnull == pytest.approx(null.llf, abs=1e-7)
    assert two.model is two.family
    for ask in (
        *(lambda: two.deviance, lambda: two.pearson_chi2, lambda: two.resid_pearson),
        *(lambda: two.resid_deviance, lambda: two.scale, two.get_influence),
    ):
        with pytest.raises(ValueError, match="only for one expert, a generalised linear model"):
            ask()
    heavy = data.gaussian + 0.3 * np.tan(3.0 * (np.arange(150) / 150 - 0.5))
    robust = moestat.fit("student-t", data[["x"]], heavy, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="for the student-t likelihood use quantile_residuals"):
        robust.deviance  # noqa: B018
    assert robust.llnull < robust.llf


def test_labelled_answers_leave_out_references_and_the_gate_of_one_expert(data):
    one = moestat.fit_formula("gaussian ~ x | z", data, n_experts=1, rng=0)
    own = ["b[1]", "a[1,x]", "log nu[1]"]
    assert one.params.index.tolist() == own
    for answer in (one.bse, one.tvalues, one.pvalues, one.conf_int(), one.cov_params()):
        assert answer.index.tolist() == own
    assert one.cov_params().columns.tolist() == own
    assert one.theta.size == len(one.param_names) > 3
    two = moestat.fit_formula("two ~ x | z", data, n_experts=2, rng=0)
    assert "beta0[2]" not in two.params.index
    assert "beta1[1,x]" not in two.params.index  # the gate does not read x
    again = two.bootstrap(5, rng=0)
    assert again.conf_int().index.equals(two.conf_int().index)
    assert again.conf_int().columns.equals(two.conf_int().columns)
    assert again.bse.index.equals(two.bse.index)
    packed = np.sqrt(np.diag(again.covariance))
    at = [two.param_names.index(name) for name in two.params.index]
    np.testing.assert_allclose(again.bse, packed[at])
    array = moestat.fit("gaussian", data[["x"]].to_numpy(), data.gaussian, n_experts=1, rng=0)
    assert isinstance(array.bootstrap(5, rng=0).bse, np.ndarray)


def test_hypotheses_name_terms_where_one_parameter_is_of_them(data):
    one = moestat.fit_formula("gaussian ~ x + np.exp(z)", data, n_experts=1, rng=0)
    ols = sm.OLS(
        data.gaussian, sm.add_constant(pd.DataFrame({"x": data.x, "e": np.exp(data.z)}))
    ).fit()
    test = one.t_test("x = 0, np.exp(z) - 2*x")
    assert test.names == ["x = 0", "np.exp(z) - 2*x"]
    np.testing.assert_allclose(
        test.effect, [ols.params["x"], ols.params["e"] - 2 * ols.params["x"]], rtol=1e-6
    )
    assert one.wald_test("Intercept = 1").df == 1
    assert one.fit_constrained("x = 1").lr_test.df == 1
    two = moestat.fit_formula("two ~ x | 1", data, n_experts=2, rng=0)
    with pytest.raises(ValueError, match=r"'x' is a term of 2 parameters, a\[1,x\], a\[2,x\]"):
        two.t_test("x = 0")
    gate = moestat.fit_formula("two ~ x | z", data, n_experts=2, rng=0)
    assert gate.t_test("z = 0").effect[0] == gate.params["beta1[1,z]"]


def test_old_names_warn_for_one_release(data):
    one = moestat.fit("gaussian", data[["x"]], data.gaussian, n_experts=1, rng=0)
    with pytest.warns(FutureWarning, match="r_squared is the old name of rsquared"):
        assert one.r_squared == one.rsquared
    found = moestat.select("gaussian", data[["x"]], data.gaussian, k=(1, 2), rng=0)
    with pytest.warns(FutureWarning, match="hq is the old name of hqic"):
        assert found.chosen("hq") == found.chosen("hqic")
    with pytest.warns(FutureWarning, match="hq is the old name"):
        assert np.array_equal(found.table["hq"], found.table["hqic"])


def test_public_modules_show_public_names():
    places = [moestat.solvers, moestat.losses, moestat.gates, moestat.experts, moestat.starts]
    places += [moestat.likelihoods, moestat.designs, moestat.attention, moestat.datasets, moestat]
    for place in places:
        assert dir(place) == sorted(place.__all__)
        assert all(hasattr(place, name) for name in dir(place))


def test_survival_responses_are_bounds(data):
    table = data.assign(time=data.gamma.clip(upper=1.5), event=data.gamma < 1.5)
    table["high"] = np.where(table.event, table.time, np.inf)
    one = moestat.fit_formula("Surv(time, event) ~ x", table, "weibull", n_experts=1, rng=0)
    other = moestat.fit_formula("cbind(time, high) ~ x", table, "weibull", n_experts=1, rng=0)
    np.testing.assert_allclose(one.theta, other.theta)
    assert one.log_likelihood(table) == pytest.approx(one.llf)
    coded = table.assign(code=table.event + 1)
    with pytest.raises(ValueError, match="a code of 2 is event == 2"):
        moestat.fit_formula("Surv(time, code) ~ x", coded, "weibull", n_experts=1)
    again = moestat.fit_formula("Surv(time, code == 2) ~ x", coded, "weibull", n_experts=1, rng=0)
    assert again.llf == one.llf
    with pytest.raises(ValueError, match="times of entry are not modelled"):
        moestat.fit_formula("Surv(z, time, event) ~ x", table, "weibull", n_experts=1)
    with pytest.raises(ValueError, match=r"y must have shape \(n,\) for gamma.*two columns"):
        moestat.fit_formula("Surv(time, event) ~ x", table, "gamma", n_experts=1)


def test_survey_errors_are_those_of_linearisation(data):
    n = len(data)
    x, y, w = data.x.to_numpy(), data.gaussian.to_numpy(), data.w.to_numpy()
    stratum, cluster = np.repeat(["a", "b", "c"], n // 3), np.arange(n) // 5 % 10
    one = moestat.fit("gaussian", x, y, n_experts=1, sample_weight=w, rng=0)
    found = one.get_robustcov_results("survey", cluster, strata=stratum)
    X = np.column_stack([np.ones(n), x])
    bread = np.linalg.inv(X.T @ (w[:, None] * X))
    scores = X * (w * (y - X @ (bread @ (X.T @ (w * y)))))[:, None]
    middle = np.zeros((2, 2))
    for h in "abc":
        labels = np.unique(cluster[stratum == h])
        z = np.array([scores[(stratum == h) & (cluster == c)].sum(axis=0) for c in labels])
        middle += len(z) * np.cov(z, rowvar=False)
    np.testing.assert_allclose(
        found.cov_params()[2:4, 2:4], bread @ middle @ bread, rtol=1e-6, atol=1e-12
    )
    assert "survey sandwich" in str(found.summary())
    with pytest.raises(ValueError, match="'a' has one cluster, which has no variance"):
        one.get_robustcov_results("survey", stratum, strata=stratum)
    with pytest.raises(ValueError, match="survey: give sampling weights as sample_weight="):
        moestat.fit("gaussian", x, y, survey="design")
    with pytest.raises(ValueError, match="strata are for cov_type 'survey', got cov_type 'HC0'"):
        one.get_robustcov_results("HC0", strata=stratum)


@pytest.mark.parametrize("strata", [True, False])
@pytest.mark.parametrize("clusters", [True, False])
@pytest.mark.parametrize("outside", [[1, 6, 9], [0, 1, 2], [0, 1, 2, 3]])
def test_rows_of_weight_0_are_in_the_design_of_a_survey(tmp_path, strata, clusters, outside):
    """Linearisation over all clusters by plain NumPy, in memory and on a source."""
    rng = np.random.default_rng(1)
    d = pd.DataFrame({"st": np.repeat(np.arange(3), 20), "psu": np.repeat(np.arange(12), 5)})
    d["x"], d["row"] = rng.normal(size=60), np.arange(60)
    d["y"] = 1 + d.x + rng.normal(size=12)[d.psu] + rng.normal(size=60)
    d["w"] = np.where(d.psu.isin(outside), 0.0, 1.0 + d.index % 3)
    X, w = np.column_stack([np.ones(60), d.x]), d.w.to_numpy()
    bread = np.linalg.inv(X.T @ (X * w[:, None]))
    scores = X * (w * (d.y - X @ (bread @ (X.T @ (w * d.y)))).to_numpy())[:, None]
    M = np.zeros((2, 2))
    for _, part in d.groupby("st" if strata else d.st * 0):
        T = np.array([scores[c.row].sum(0) for _, c in part.groupby("psu" if clusters else "row")])
        T = T - T.mean(0)
        M += len(T) / (len(T) - 1) * T.T @ T
    want = np.sqrt(np.diag(bread @ M @ bread))
    d.to_parquet(tmp_path / "rows.parquet")
    names = {"groups": "psu"} if clusters else {}
    names |= {"strata": "st"} if strata else {}
    for data in (d, str(tmp_path / "rows.parquet")):
        fitted = moestat.fit_formula("y ~ x | 1", data, n_experts=1, weights="w", rng=0)
        given = names if isinstance(data, str) else {key: d[c] for key, c in names.items()}
        found = fitted.get_robustcov_results("survey", **given)
        np.testing.assert_allclose(found.bse[["b[1]", "a[1,x]"]], want, rtol=1e-5)
