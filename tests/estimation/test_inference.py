"""Inference against statsmodels, closed forms and simulation."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import lsq_linear, minimize
from scipy.stats import chi2

import moestat
from moestat.base.warnings import OverSpecifiedWarning
from moestat.compiler.jit import LOWERING
from moestat.estimation.inference.alignment import align
from moestat.estimation.inference.constraints import linear_constraints
from moestat.estimation.inference.covariance import sandwich
from moestat.estimation.inference.diagnostics import quantile_residuals
from moestat.estimation.inference.restricted import minimise
from moestat.estimation.starts import GivenStarts


@pytest.fixture(scope="module")
def line():
    """Data of one regression in awkward units, its fit, and statsmodels' fit."""
    rng = np.random.default_rng(1)
    X = rng.uniform(500, 4000, size=(150, 2))
    y = 5e4 + X @ [150.0, -20.0] + 2e4 * (0.5 + X[:, 0] / 4000) * rng.standard_normal(150)
    result = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
    return X, y, result, sm.OLS(y, sm.add_constant(X)).fit()


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2)) * [10.0, 0.1] + [100.0, 0.0]
    logits = np.column_stack([0.05 * (X[:, 0] - 100), 4 * X[:, 1], np.zeros(300)])
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    result = moestat.fit("multinomial", X, y, n_experts=1, rng=0)
    # moestat's reference is the last class, statsmodels' the first.
    return X, y, result, sm.MNLogit(2 - y, sm.add_constant(X)).fit(disp=0, tol=1e-14, maxiter=100)


@pytest.fixture(scope="module")
def two():
    """Two lines and a gate, well separated."""
    model = moestat.family("gaussian", gate="softmax", n_experts=2)
    truth = model.pack(
        {"beta0": [0, 0], "beta1": [4, 0], "a": [2, -2], "b": [1, 0], "nu": [0.1, 0.2]}
    )
    X, y = moestat.sample(model, truth, n=800, rng=3, design=moestat.Uniform(-1, 1))
    return model, truth, X, y, moestat.fit(model, X, y, rng=0)


def coefficients(result):
    """Positions of intercept and slopes of the only expert."""
    blocks = result.family.blocks
    return np.concatenate([np.ravel(blocks["b"]), np.ravel(blocks["a"])])


@pytest.mark.parametrize("kind", ["HC0", "HC1", "cluster"])
def test_robust_errors_of_one_expert_are_those_of_statsmodels(line, kind):
    _, _, result, ols = line
    groups = np.arange(150) // 5
    own = result.get_robustcov_results(kind, groups=groups if kind == "cluster" else None)
    at = coefficients(result)
    if kind == "cluster":
        other = ols.get_robustcov_results(
            "cluster", groups=groups, use_correction=False, df_correction=False
        ).cov_params() * (30 / 29)
    else:
        other = ols.get_robustcov_results(kind).cov_params()
        if kind == "HC1":
            # The variance is estimated, too: four parameters, where least squares count three.
            other = other * ((150 - 3) / (150 - 4))
    np.testing.assert_allclose(own.cov_params()[np.ix_(at, at)], other, rtol=1e-8)
    assert own.cov_type == kind


@pytest.mark.parametrize("kind", ["observed", "expected", "HC0", "HC1", "cluster"])
def test_errors_of_one_multinomial_expert_are_those_of_statsmodels(classes, kind):
    X, y, result, plain = classes
    groups = np.arange(300) // 3
    other = plain
    options = {"disp": 0, "tol": 1e-14, "maxiter": 100}
    if kind not in ("observed", "expected"):
        if kind == "cluster":
            keywords = {"groups": groups, "use_correction": False, "df_correction": False}
            options |= {"cov_kwds": keywords}
        model = sm.MNLogit(2 - y, sm.add_constant(X))
        other = model.fit(cov_type="HC0" if kind == "HC1" else kind, **options)
    factor = {"HC1": 300 / (300 - 6), "cluster": 100 / 99}.get(kind, 1.0)
    own = result.get_robustcov_results(kind, groups=groups if kind == "cluster" else None)
    # statsmodels: by class, constant first; classes 0 and 1 here are its 2 and 1.
    blocks = result.family.blocks
    at = [[blocks["b"][0, c], *blocks["a"][0, c]] for c in (1, 0)]
    at = np.ravel(at)
    theirs = np.asarray(other.cov_params()) * factor
    errors = np.sqrt(np.diag(theirs))
    # In units of the standard errors: some covariances are differences of larger numbers.
    difference = (own.cov_params()[np.ix_(at, at)] - theirs) / np.outer(errors, errors)
    # A fit ends where steps no longer change the rounded log-likelihood, which is a little further
    # from the maximum when kernels are compiled in numba's standard way.
    assert np.abs(difference).max() <= (1e-8 if LOWERING == "lean" else 5e-8)


def test_errors_of_one_expert_are_those_of_least_squares(line):
    _, _, result, ols = line
    at = coefficients(result)
    scale = (150 - 3) / 150  # the variance is that of maximum likelihood
    for kind in ("observed", "expected"):
        own = result.get_robustcov_results(kind).cov_params()[np.ix_(at, at)]
        np.testing.assert_allclose(own, ols.cov_params() * scale, rtol=1e-7)


def test_class_probabilities_of_one_expert(classes):
    X, _, result, other = classes
    assert result.llf == pytest.approx(other.llf, abs=1e-8)
    prediction = result.get_prediction(X[:7])
    np.testing.assert_allclose(
        prediction.predicted, other.predict(sm.add_constant(X, has_constant="add")[:7])[:, ::-1],
        rtol=1e-6,
    )  # fmt: skip
    ends = prediction.conf_int()
    assert np.all((ends > 0) & (ends < 1))
    assert np.all((ends[..., 0] < prediction.predicted) & (prediction.predicted < ends[..., 1]))
    at = np.sort(coefficients(result))
    own = np.sort(result.theta_bse[at])
    np.testing.assert_allclose(own, np.sort(other.bse.ravel()), rtol=1e-6)


def test_predictions_of_one_expert(line):
    X, _, result, ols = line
    frame = result.get_prediction(X[:5]).summary_frame()
    other = ols.get_prediction(sm.add_constant(X, has_constant="add")[:5]).summary_frame()
    np.testing.assert_allclose(frame["mean"], other["mean"], rtol=1e-10)
    np.testing.assert_allclose(frame["mean_se"], other["mean_se"] * np.sqrt(147 / 150), rtol=1e-6)
    half = (frame["obs_ci_upper"] - frame["obs_ci_lower"]) / 2
    np.testing.assert_allclose(half, 1.959964 * np.sqrt(ols.ssr / 150), rtol=1e-6)


def test_residuals_of_other_rows_are_those_of_the_method(two):
    _, _, X, y, result = two
    rows = {"X": X[5:25], "y": y[5:25]}
    found = result.quantile_residuals(0, **rows)
    np.testing.assert_allclose(found, result.quantile_residuals(0)[5:25], rtol=1e-9)


def test_prediction_intervals_of_a_mixture_hold_their_share(two):
    _, _, X, y, result = two
    interval = result.get_prediction(X).prediction_interval(0.2)
    share = np.mean((y > interval[:, 0]) & (y < interval[:, 1]))
    assert abs(share - 0.8) < 4 * np.sqrt(0.16 / y.size)


def test_wald_likelihood_ratio_and_score_agree_on_a_small_departure(line):
    X, y, _, ols = line
    full = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
    small = moestat.fit("gaussian", X[:, :1], y, n_experts=1, rng=0)
    ratio = moestat.lr_test(small, full)
    assert ratio.df == 1
    lower = replace(
        full, solution=replace(full.solution, log_likelihood=small.log_likelihood - 1.0)
    )
    with pytest.raises(ValueError, match="restricted has a log-likelihood higher by 1: full was"):
        moestat.lr_test(small, lower)
    expected = 150 * np.log(sm.OLS(y, sm.add_constant(X[:, :1])).fit().ssr / ols.ssr)
    assert ratio.statistic == pytest.approx(expected, rel=1e-6)
    wald = full.wald_test("a[1,1] = 0")
    assert wald.statistic == pytest.approx(float(ols.tvalues[2] ** 2) * 150 / 147, rel=1e-6)
    blocks = small.blocks
    blocks["a"] = np.column_stack([blocks["a"], [0.0]])
    blocks["beta1"] = np.zeros((1, 2))
    score = moestat.score_test(full, full.family.pack(blocks), df=1)
    rss = sm.OLS(y, sm.add_constant(X[:, :1])).fit().ssr
    assert score.statistic == pytest.approx(150 * (1 - ols.ssr / rss), rel=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c = 0", "unknown name 'c'"),
        ("a[1, x9] = 0, b[1] = 0", r"unknown name 'a\[1, x9\]'"),
        ("a[1,0] * a[1,0] = 1", "it is not linear"),
        ("a[1,0] = 0, 2 * a[1,0] = 0", "repeat or contradict"),
        ("a[1,0] = 0 = b[1]", "one '='"),
        ("", "must be text"),
    ],
)
def test_constraints_that_cannot_be_read(text, message):
    with pytest.raises(ValueError, match=message):
        linear_constraints(text, ["a[1,0]", "b[1]"])


def test_names_in_constraints_may_have_spaces():
    matrix, value = linear_constraints("a[1, 0] = 2 * b[1] ; b[1] = 1", ["a[1,0]", "b[1]"])
    assert matrix.tolist() == [[1.0, -2.0], [0.0, 1.0]]
    assert value.tolist() == [0.0, 1.0]


def test_a_constrained_fit_of_one_expert_is_least_squares(line):
    X, y, _, _ = line
    full = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
    fit = full.fit_constrained("a[1,0] = 0.5, b[1] = a[1,1]")
    # y - x0 / 2 = b (1 + x1)
    ols = sm.OLS(y - 0.5 * X[:, 0], 1.0 + X[:, 1]).fit()
    n, names = y.size, full.param_names
    assert fit.llf == pytest.approx(ols.llf, abs=1e-8)
    assert fit.lr_test.df == 2
    for name in ("b[1]", "a[1,1]"):
        assert fit.params[names.index(name)] == pytest.approx(ols.params[0], rel=1e-8)
        error = ols.bse[0] * np.sqrt((n - 1) / n)
        assert fit.bse[names.index(name)] == pytest.approx(error, rel=1e-8)
    assert fit.params[names.index("a[1,0]")] == pytest.approx(0.5, abs=1e-10)
    assert fit.bse[names.index("a[1,0]")] == 0.0
    assert fit.aic == pytest.approx(full.aic + fit.lr_test.statistic - 4.0, abs=1e-8)


def test_equal_variances_by_constraints_are_those_of_a_family_with_one_variance(two):
    _, _, X, y, full = two
    fit = full.fit_constrained("log nu[1] = log nu[2]")
    family = moestat.family("gaussian", gate="softmax", n_experts=2, equal="nu")
    one = moestat.fit(family, X, y, rng=0)
    assert fit.llf == pytest.approx(one.llf, abs=1e-8)
    assert fit.bic == pytest.approx(one.bic, abs=1e-7)
    slopes = [name for name in full.param_names if name.startswith("a[")]
    values = [fit.params[full.param_names.index(name)] for name in slopes]
    errors = [fit.bse[full.param_names.index(name)] for name in slopes]
    at = [one.param_names.index(name) for name in slopes]
    order = np.argsort(values), np.argsort(one.params[at])
    assert np.sort(values) == pytest.approx(np.sort(one.params[at]), rel=1e-6)
    assert np.array(errors)[order[0]] == pytest.approx(one.bse[at][order[1]], rel=1e-5)


@pytest.mark.parametrize("unit", [1.0, 1e3])
def test_opposite_slopes_are_those_of_a_direct_maximisation(two, unit):
    _, _, X, y, _ = two
    y = unit * y + 5 * unit
    full = moestat.fit("gaussian", X, y, n_experts=2, rng=0)
    fit = full.fit_constrained("a[1,0] + a[2,0] = 0")
    i, j = (full.param_names.index(name) for name in ("a[1,0]", "a[2,0]"))
    free = [m for m in np.flatnonzero(full.bse > 0.0) if m != j]

    def loss(z):
        theta = full.params.copy()
        theta[free] += full.bse[free] * z
        theta[j] = -theta[i]
        return -moestat.log_likelihood(full.family, theta, X, y)

    best = minimize(loss, np.zeros(len(free)), method="Powell", tol=1e-12)
    assert -best.fun == pytest.approx(fit.llf, abs=1e-6)
    assert fit.params[i] == pytest.approx(-fit.params[j], rel=1e-10)
    assert fit.bse[i] == pytest.approx(fit.bse[j], rel=1e-6)
    assert fit.bse[i] < min(full.bse[i], full.bse[j])


def test_constrained_fits_refuse_what_has_no_likelihood_or_no_error(two):
    with pytest.raises(ValueError, match="has no standard error"):
        two[-1].fit_constrained("beta0[2] = 0")
    curve = moestat.fit("least-squares", np.linspace(-1, 1, 40), np.arange(40.0), n_experts=1)
    with pytest.raises(ValueError, match="least squares"):
        curve.fit_constrained("b[1] = 0")


def test_constraints_on_a_reference_are_refused(two):
    with pytest.raises(ValueError, match="has no standard error"):
        two[-1].wald_test("beta0[2] = 0")


def test_profile_of_a_variance_is_the_closed_form(line):
    from scipy.optimize import brentq

    _, _, result, _ = line
    found = moestat.profile(result, "log nu[1]")
    top = float(result.theta[-1])

    def loss(t):
        return 150 * (t - top + np.exp(top - t) - 1) - 3.841458820694124

    assert found.interval[0] == pytest.approx(brentq(loss, top - 3, top), abs=1e-6)
    assert found.interval[1] == pytest.approx(brentq(loss, top, top + 3), abs=1e-6)


def test_profiles_hold_the_estimate_and_are_near_wald_when_information_is_rich(two):
    result = two[-1]
    low, high = moestat.profile(result, "b[1]").interval
    wald = np.asarray(result.conf_int())[result.param_names.index("b[1]")]
    assert low < result.blocks["b"][0] < high
    np.testing.assert_allclose([low, high], wald, atol=0.1 * (wald[1] - wald[0]))


def test_profile_refuses_names_and_references(two):
    with pytest.raises(ValueError, match="unknown parameter 'q'"):
        moestat.profile(two[-1], "q")
    with pytest.raises(ValueError, match="no standard error"):
        moestat.profile(two[-1], "beta0[2]")


@pytest.mark.parametrize("kind", ["pairs", "parametric", "bayesian"])
def test_bootstrap_errors_are_near_those_of_the_information(two, kind):
    result = two[-1]
    again = moestat.bootstrap(result, 60, kind, rng=0)
    assert again.n_failed == 0
    assert len(again.replicates) + again.n_uncertified == 60
    free = result.theta_bse > 0
    ratio = again.bse[free] / result.theta_bse[free]
    assert np.all((ratio > 0.6) & (ratio < 1.6))
    assert again.unclear == 0.0
    for method in ("percentile", "basic", "bca"):
        ends = again.conf_int(method=method)[free]
        assert np.all(ends[:, 0] < ends[:, 1])


def test_bootstrap_does_not_depend_on_threads_and_counts_groups(two):
    result = two[-1]
    one = moestat.bootstrap(result, 8, rng=1, threads=1)
    np.testing.assert_allclose(one.theta_bse, one.replicates.std(axis=0, ddof=1))
    many = moestat.bootstrap(result, 8, rng=1, threads=2)
    np.testing.assert_array_equal(one.replicates, many.replicates)
    # More than one batch: no resample is lost between batches.
    assert len(moestat.bootstrap(result, 70, rng=1).replicates) >= 69
    grouped = moestat.bootstrap(result, 8, "cluster", groups=np.arange(800) // 4, rng=1)
    assert np.all(grouped.bse[result.theta_bse > 0] > 0)
    with pytest.raises(ValueError, match="one label per row"):
        moestat.bootstrap(result, 8, "cluster")
    with pytest.raises(ValueError, match="kind must be one of"):
        moestat.bootstrap(result, 8, "jackknife")


def test_labels_are_found_again_whatever_the_order():
    model = moestat.family("gaussian", gate="softmax", n_experts=3)
    rng = np.random.default_rng(0)
    theta = model.pin(rng.normal(size=model.n_params))
    atoms, shared = model.split(theta)
    for order in ([1, 2, 0], [2, 1, 0], [0, 2, 1]):
        shuffled = model.pin(model.join(atoms[order], shared))
        aligned, margin = align(model, shuffled, theta, np.ones(model.n_params))
        np.testing.assert_allclose(aligned, theta, atol=1e-12)
        assert margin > 0.9


def test_selection_finds_two_lines(two):
    model, _, X, y, _ = two
    chosen = moestat.select(model, X, y, k=(1, 2, 3), rng=0, folds=3)
    assert chosen.chosen("bic") == chosen.chosen("icl") == chosen.best.family.n_experts == 2
    assert chosen.chosen("cv") in (2, 3)
    assert "chosen: " in str(chosen)
    assert len(chosen.plot().lines) == 4
    with pytest.raises(ValueError, match="criterion must be one of"):
        moestat.select(model, X, y, criterion="dic")


@pytest.mark.parametrize(
    ("k", "said"),
    [
        ((1, 2), "bic chooses 2 experts, the largest number that was tried: more may be better"),
        ((2, 3), "bic chooses 2 experts, the smallest number that was tried: fewer may be better"),
        ((1, 2, 3), None),
    ],
)
def test_a_choice_at_the_end_of_the_numbers_that_were_tried_is_said(two, k, said):
    model, _, X, y, _ = two
    assert moestat.select(model, X, y, k=k, rng=0).edge == said


def test_selection_takes_what_fit_takes():
    """A likelihood by name, a frame, labels: folds see the classes of all of the data."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.normal(50.0, 10.0, 300)})
    vote = np.where(rng.random(300) < 1.0 / (1.0 + np.exp(-(frame["age"] - 50.0) / 5.0)), "a", "b")
    chosen = moestat.select("multinomial", frame, vote, k=(1, 2), folds=3, rng=0)
    assert list(chosen.best.data.class_labels) == ["a", "b"]
    assert chosen.best.data.features == ("age",)
    coded = np.where(vote == "a", 1, 2)
    model = moestat.family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    again = moestat.select(model, frame, coded, k=(1, 2), folds=3, rng=0)
    for name, column in chosen.table.items():
        np.testing.assert_allclose(column, again.table[name], rtol=1e-12)
    with pytest.raises(ValueError, match="n_experts: select has k"):
        moestat.select("multinomial", frame, vote, n_experts=2)


def test_number_of_experts_by_the_bootstrap_likelihood_ratio(two):
    model, _, X, y, result = two
    one = moestat.fit(model.with_experts(1), X, y, rng=0)
    test = moestat.bootstrap_lrt(one, result, 19, rng=0)
    assert test.pvalue == pytest.approx(1 / 20)
    with pytest.raises(ValueError, match="more experts"):
        moestat.bootstrap_lrt(result, one)
    with pytest.raises(ValueError, match="no chi-square distribution"):
        moestat.lr_test(one, result)


def test_quantile_residuals_of_the_truth_are_normal(two):
    from scipy.stats import kstest

    model, truth, X, y, _ = two
    residuals = quantile_residuals(model, truth, X, y)
    assert kstest(residuals, "norm").pvalue > 1e-3


def test_quantile_residuals_of_classes_are_normal(classes):
    from scipy.stats import kstest

    X, y, result, _ = classes
    labels = np.searchsorted(result.data.class_labels, y) + 1
    residuals = quantile_residuals(result.family, result.theta, X, labels, rng=0)
    assert kstest(residuals, "norm").pvalue > 1e-3


def test_methods_are_the_functions(two):
    _, _, _, _, result = two
    assert result.profile("b[1]").interval == moestat.profile(result, "b[1]").interval
    again = result.bootstrap(20, rng=0)
    np.testing.assert_array_equal(again.replicates, moestat.bootstrap(result, 20, rng=0).replicates)
    robust = result.get_robustcov_results("bootstrap", n_resamples=20, rng=0)
    free = result.theta_bse > 0
    np.testing.assert_allclose(robust.bse[free], again.bse[free])
    with pytest.raises(ValueError, match=r"cov_type must be one of observed.*bootstrap, got 'HC9'"):
        result.get_robustcov_results("HC9")


def test_an_expert_too_many_makes_wald_inference_warn(two):
    model, _, X, y, right = two
    assert right.simpler.gain < 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        right.conf_int()
        right.wald_test("b[1] = 1")
    assert "BIC is lower" not in str(right.summary())
    one_more = moestat.fit(model.with_experts(3), X, y, rng=0)
    # Merged and fitted again it is the fit with two experts.
    assert one_more.simpler.log_likelihood == pytest.approx(right.llf, abs=1e-6)
    assert one_more.simpler.gain == pytest.approx(one_more.bic - right.bic, abs=1e-5)
    for ask in (one_more.conf_int, lambda: one_more.wald_test("b[1] = 1")):
        with pytest.warns(OverSpecifiedWarning, match="BIC is lower by .* expert"):
            ask()
    assert "matrix is singular at the truth" in " ".join(str(one_more.summary()).split())
    with pytest.warns(OverSpecifiedWarning):
        one_more.get_robustcov_results("HC0").conf_int()
    # Without the data nobody can tell.
    one_more.without_data().conf_int()


def test_a_profile_follows_the_maximum_along_a_bound_of_another_coefficient():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 2)) @ [[1.0, 0.8], [0.0, 0.6]]
    y = X @ [1.0, 1.0] + rng.normal(size=80)
    slopes = np.linalg.lstsq(np.column_stack([X, np.ones(80)]), y)[0]
    fit = moestat.fit("gaussian", X, y, n_experts=1, bounds={"a": (-9.0, slopes[1] + 0.05)}, rng=0)
    low = fit.profile("a[1,0]").interval[0]

    def loss(value):
        design, less = np.column_stack([X[:, 1], np.ones(80)]), y - value * X[:, 0]
        rest = lsq_linear(design, less, (-np.inf, [slopes[1] + 0.05, np.inf])).x
        return 80.0 * np.log(np.mean((less - design @ rest) ** 2))

    assert loss(low) - loss(slopes[0]) == pytest.approx(chi2.isf(0.05, 1), abs=1e-5)


def test_equal_coefficients_stay_together_on_a_bound():
    hessian = np.array(
        [[2.0, 0.5, 0.0, 0.1], [0.5, 3.0, 0.4, 0.0], [0, 0.4, 1, 0.2], [0.1, 0, 0.2, 2]]
    )
    best = np.array([3.0, 2.0, 1.0, 0.5])

    def curve(phi):
        away = phi - best
        return 0.5 * away @ hessian @ away, hessian @ away, hessian

    end, value, inside = minimise(
        curve,
        np.zeros(4),
        np.arange(4),
        np.array([[0.0, 0.0, 1.0, 0.0]]),
        -np.ones(4),
        np.array([1.0, 1.0, 9.0, 9.0]),
        np.array([[1.0, -1.0, 0.0, 0.0]]),
    )
    # The last coordinate solves its own equation, given the others.
    last = 0.5 - (0.1 * (1.0 - 3.0) + 0.2 * (0.0 - 1.0)) / 2.0
    np.testing.assert_allclose(end, [1.0, 1.0, 0.0, last], atol=1e-9)
    assert value == pytest.approx(curve(end)[0])
    assert not inside


def test_a_likelihood_that_is_flat_to_the_last_digit_is_at_its_minimum():
    """Far out on the way of separated classes; 3000 steps of length 0 were taken there."""
    visited = []

    def flat(phi):
        visited.append(phi)
        return 0.0, np.zeros(2), np.zeros((2, 2))

    end, value, inside = minimise(
        flat, np.ones(2), np.arange(2), np.array([[1.0, 0.0]]), -9 * np.ones(2), 9 * np.ones(2)
    )
    assert len(visited) <= 2
    assert (end.tolist(), value, inside) == ([1.0, 1.0], 0.0, False)


def test_a_sandwich_has_no_negative_variance():
    """Two scores that cancel, as those of a gate with a tiny temperature; the sum was negative."""
    determined = np.array([[1.0, 0.0], [1.0, 1.0]]) / np.sqrt(2.0)
    inner = SimpleNamespace(
        identified=SimpleNamespace(determined=determined), outward_matrix=lambda matrix: matrix
    )
    product, negative = determined @ determined.T, 0
    for seed in range(20):
        large = 1e6 * np.random.default_rng(seed).normal(size=50)
        scores = np.column_stack([large, -large])
        M = scores.T @ scores + np.array([[0.0, seed * 1e-4], [seed * 1e-4, 0.0]])
        negative += bool(np.any(np.diag(product @ M @ product) < 0.0))
        assert np.all(np.diag(sandwich(inner, M)) >= 0.0)
    assert negative > 0  # so that the products of three matrices would not do


def _two_counts(seed):
    """Two overlapping Poisson regressions of 150 rows."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, 150)
    first = rng.random(150) < 1 / (1 + np.exp(-2 * x))
    y = rng.poisson(np.exp(np.where(first, 0.6 + 0.7 * x, -0.2 - 0.4 * x)))
    return x, y, moestat.fit("poisson", x, y, n_experts=2, rng=0)


@pytest.mark.parametrize("seed", [6, 24])
def test_of_several_maxima_under_a_constraint_the_higher_is_taken(seed):
    """They were .12 and .61 lower, and the likelihood ratios larger by twice that."""
    x, y, result = _two_counts(seed)
    at = result.param_names.index("a[1,0]")
    value = float(result.params[at] + 2.0 * result.bse[at])
    constrained = result.fit_constrained(f"a[1,0] = {value!r}")
    starts = [GivenStarts([result.theta, constrained.theta])]
    held = moestat.fit("poisson", x, y, n_experts=2, fixed={"a": {(1, 0): value}}, starts=starts)
    assert constrained.llf >= held.llf - 1e-6


def test_a_profile_goes_on_from_a_higher_maximum_at_its_end():
    """The interval ended at -.078, where another maximum is within the cut."""
    x, y, result = _two_counts(24)
    _, end = result.profile("a[1,0]").interval
    starts = [GivenStarts([result.theta])]
    held = moestat.fit("poisson", x, y, n_experts=2, fixed={"a": {(1, 0): end}}, starts=starts)
    assert result.llf - held.llf > 0.5 * chi2.isf(0.05, 1) - 1e-3
    assert end > 0.0
