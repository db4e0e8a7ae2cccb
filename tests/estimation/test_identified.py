"""What the data do not tell: counting, errors of what they do tell, and what is said about it."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize as scipy_minimise
from scipy.stats import chi2

import moestat
from moestat.base.warnings import (
    AliasedWarning,
    BoundWarning,
    LimitWarning,
    MoEWarning,
    OverSpecifiedWarning,
    SeparationWarning,
)
from moestat.model.designs import Equispaced

pytestmark = pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")


def _kinds(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = make()
    return result, {w.category for w in caught if issubclass(w.category, MoEWarning)}


@pytest.fixture(scope="module")
def dummies():
    """A level of three, coded by three columns and by two."""
    rng = np.random.default_rng(0)
    n = 600
    level = rng.integers(0, 3, n)
    X = np.column_stack([rng.uniform(20, 60, n), np.eye(3)[level]])
    old = rng.random(n) < 1 / (1 + np.exp(-(X[:, 0] - 40) / 3))
    y = np.where(old, 30 + 5 * (level == 1), X[:, 0] - 10) + rng.normal(size=n)
    return X, y


def test_a_column_too_many_is_not_counted(dummies):
    X, y = dummies
    full, said = _kinds(lambda: moestat.fit("gaussian", X, y, rng=0))
    small = moestat.fit("gaussian", X[:, :3], y, rng=0)
    assert said == {AliasedWarning}  # no bound is met
    assert full.llf == pytest.approx(small.llf, abs=1e-6)
    assert full.bic == pytest.approx(small.bic, abs=1e-5)
    assert full.df_resid == small.df_resid == 600 - 14
    assert moestat.lr_test(moestat.fit("gaussian", X[:, :1], y, rng=0), full).df == 6
    assert "14 of 17 free parameters" in str(full.summary())
    assert np.abs(full.theta).max() < 50.0


def _coded(seed):
    """A column for every level of a factor beside an input, and the mean of counts."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 3, 300)
    X = np.column_stack([rng.normal(size=300), np.eye(3)[level]])
    return X, np.exp(0.5 + 0.6 * (level == 1) + 0.5 * X[:, 0])


def test_searches_with_a_column_too_many_are_those_without_it():
    X, mean = _coded(1)
    y = np.log(mean) + 0.4 * np.random.default_rng(1).normal(size=300)
    full, small = (moestat.fit("gaussian", Z, y, maximum="highest", rng=0) for Z in (X, X[:, :3]))
    # An expert of 21 rows has enough of them for its parameters, but not for one more.
    assert small.responsibilities.sum(axis=0).min() == pytest.approx(21.3, abs=0.1)
    assert full.llf == pytest.approx(small.llf, abs=1e-6)


@pytest.mark.parametrize("likelihood", ["poisson", "gamma", "least-squares"])
def test_maxima_with_a_column_too_many_are_certified(likelihood):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, mean = _coded(seed)
        y = rng.gamma(2, mean / 2) if likelihood != "poisson" else rng.poisson(mean)
        certificate = moestat.fit(likelihood, X, y, n_experts=1, rng=0).certificate
        assert certificate.certified
        assert certificate.inertia[2] == 0


def test_contrasts_of_aliased_columns_have_errors(dummies):
    X, y = dummies
    full = moestat.fit("gaussian", X, y, rng=0)
    small = moestat.fit("gaussian", X[:, :3], y, rng=0)
    names = full.param_names
    for name in ("a[1,1]", "b[1]", "beta1[1,2]"):
        assert np.isnan(full.bse[names.index(name)])
    for name in ("a[1,0]", "beta1[1,0]", "log nu[1]"):
        assert full.bse[names.index(name)] == pytest.approx(
            small.bse[small.param_names.index(name)], rel=1e-4
        )
    ours = full.wald_test("a[1,2] - a[1,1] = 0").statistic
    assert ours == pytest.approx(small.wald_test("a[1,2] - a[1,1] = 0").statistic, rel=1e-4)
    with pytest.raises(ValueError, match=r"a\[1,1\].*no standard error"):
        full.wald_test("a[1,1] = 0")
    for kind in ("HC0", "expected"):
        robust = full.get_robustcov_results(kind)
        same = small.get_robustcov_results(kind)
        assert robust.bse[names.index("a[1,0]")] == pytest.approx(
            same.bse[small.param_names.index("a[1,0]")], rel=1e-4
        )
        assert np.isnan(robust.bse[names.index("b[1]")])


def test_resamples_with_a_column_too_many_are_those_without_it(dummies):
    X, y = dummies
    full, small = (moestat.fit("gaussian", Z, y, rng=0) for Z in (X, X[:, :3]))
    wide, narrow = (moestat.bootstrap(fit, 10, rng=0) for fit in (full, small))
    at = [full.param_names.index(name) for name in ("a[1,0]", "a[2,0]", "beta1[1,0]")]
    other = [small.param_names.index(name) for name in ("a[1,0]", "a[2,0]", "beta1[1,0]")]
    np.testing.assert_allclose(wide.bse[at], narrow.bse[other], rtol=1e-3)
    np.testing.assert_array_equal(np.isnan(wide.bse), np.isnan(full.bse))


def test_narrow_bounds_are_not_parameters():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 4))
    y = np.where(rng.random(200) < 0.4, X[:, 0], -X[:, 0]) + 0.3 * rng.normal(size=200)
    pinned = moestat.family(
        "gaussian", gate="softmax", n_features=4, bounds={"beta1": (-1e-9, 1e-9)}
    )
    narrow = moestat.fit(pinned, X, y, rng=0)
    constant = moestat.fit("gaussian", X, y, gate_inputs=[], rng=0)
    assert narrow.llf == pytest.approx(constant.llf, abs=1e-4)
    assert narrow.bic == pytest.approx(constant.bic, abs=1e-3)
    close = {"beta1": (-0.02, 0.02)}  # no standard error of 200 rows is below .07
    close = moestat.family("gaussian", gate="softmax", n_features=4, bounds=close)
    assert moestat.fit(close, X, y, rng=0).df_resid == constant.df_resid
    wide = moestat.family("gaussian", gate="softmax", n_features=4, bounds={"beta1": (-5, 5)})
    assert moestat.fit(wide, X, y, rng=0).bic > constant.bic


@pytest.mark.parametrize("units", [1.0, 1e3])
def test_an_empty_level_of_counts_leaves_the_others_their_errors(units):
    rng = np.random.default_rng(0)
    level = np.repeat([0, 1, 2], 30)
    X = units * (np.column_stack([level == 1, level == 2]) + 7.0)
    y = np.where(level == 1, 0, rng.poisson(3, 90))
    result = moestat.fit("poisson", X, y, n_experts=1, rng=0)
    other = sm.GLM(
        y[level != 1], sm.add_constant(X[level != 1][:, 1:]), family=sm.families.Poisson()
    ).fit()
    frame = result.get_prediction(X).summary_frame()
    theirs = other.get_prediction().summary_frame()
    np.testing.assert_allclose(frame["mean_se"][level != 1], theirs["mean_se"], rtol=1e-6)
    names = result.param_names
    assert result.bse[names.index("a[1,1]")] == pytest.approx(other.bse[1], rel=1e-6)
    assert np.isnan(result.bse[names.index("a[1,0]")])
    assert "(no finite value)" in str(result.summary())
    # The likelihood of 30 counts of 0 with mean m is exp(-30 m).
    ends = frame[["mean_ci_lower", "mean_ci_upper"]].to_numpy()
    np.testing.assert_allclose(ends[level == 1], [[0.0, chi2.ppf(0.95, 1) / 60]] * 30, atol=1e-6)


def test_chances_beside_separated_classes_and_means_of_several_experts_are_not_told_exact():
    level = np.repeat([0.0, 1.0], 30)
    y = np.where(level == 1, "u", np.random.default_rng(0).choice(["u", "v"], 60))
    two = moestat.fit("multinomial", level, y, n_experts=1, rng=0).get_prediction([1.0])
    # 30 of 30: p^30 is above exp(-1.92).
    least = np.exp(-chi2.ppf(0.95, 1) / 60)
    np.testing.assert_allclose(two.conf_int()[0], [[least, 1], [0, 1 - least]], atol=1e-6)
    counts = np.where(level == 1, 0, np.random.default_rng(0).poisson(3, 60))
    several = moestat.fit("poisson", level, counts, n_experts=2, rng=0).get_prediction([0.0, 1.0])
    assert several.conf_int()[1].tolist() == [0.0, np.inf]
    assert 2.0 < several.conf_int()[0, 0] < several.conf_int()[0, 1] < 5.0


def test_separated_regions_leave_experts_their_errors():
    rng = np.random.default_rng(0)
    x = np.r_[rng.uniform(0, 1, 100), rng.uniform(2, 3, 100)]
    y = np.where(x < 1.5, 1 + 2 * x, 10 - 3 * x) + 0.5 * rng.normal(size=200)
    result, said = _kinds(lambda: moestat.fit("gaussian", x, y, rng=0))
    assert SeparationWarning in said
    frame = result.get_prediction(x).summary_frame()
    for side in (x < 1.5, x > 1.5):
        line = sm.OLS(y[side], sm.add_constant(x[side])).fit()
        shrunk = np.sqrt(line.df_resid / line.nobs)
        theirs = line.get_prediction().summary_frame()["mean_se"] * shrunk
        np.testing.assert_allclose(frame["mean_se"][side], theirs, rtol=1e-3)
    for kind in ("HC0", "cluster"):
        groups = np.arange(200) if kind == "cluster" else None
        errors = result.get_robustcov_results(kind, groups).bse
        assert np.isnan(errors[result.param_names.index("beta1[1,0]")])


def test_a_separation_names_column_class_and_prior():
    x = np.r_[np.linspace(-2, -0.1, 20), np.linspace(0.1, 2, 20)]
    frame = pd.DataFrame({"width": x, "length": np.sin(9 * x)})
    labels = np.where(x > 0, "virginica", "setosa")
    with pytest.warns(SeparationWarning) as caught:
        moestat.fit("multinomial", frame, labels, n_experts=1, rng=0)
    (message,) = [str(w.message) for w in caught if w.category is SeparationWarning]
    assert "setosa" in message
    assert "width" in message
    assert "prior=" in message
    assert "fewer experts" not in message
    assert "Predicted probabilities are too near 0 and 1." in message
    assert "Predictions are valid" not in message
    assert [w.filename for w in caught if w.category is SeparationWarning] == [__file__]


def test_warnings_of_estimators_point_at_the_line_of_the_user():
    from moestat.estimation.fitting.estimators import MoEClassifier

    x = np.r_[np.linspace(-2, -0.1, 20), np.linspace(0.1, 2, 20)][:, None]
    with pytest.warns(SeparationWarning) as caught:
        MoEClassifier(n_experts=1, prior=None, random_state=0).fit(x, x[:, 0] > 0)
    assert {w.filename for w in caught} == {__file__}


def test_a_dispersion_that_is_not_needed_is_said_to_be():
    seen = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, 300)
        y = rng.poisson(np.exp(1 + x))
        result, said = _kinds(
            lambda x=x, y=y: moestat.fit("negative-binomial", x, y, n_experts=1, rng=0)
        )
        assert not said & {BoundWarning, SeparationWarning}
        if LimitWarning in said:
            poisson = moestat.fit("poisson", x, y, n_experts=1, rng=0)
            np.testing.assert_allclose(result.bse[2:4], poisson.bse[2:4], rtol=1e-3)
        seen |= said
    assert LimitWarning in seen


LIMITS = {
    "student-t": (lambda x, rng: 2 * x + rng.uniform(-1, 1, x.size), "gaussian"),
    "zero-inflated-poisson": (lambda x, rng: rng.binomial(6, 0.5 + 0.1 * x), "poisson"),
    "hurdle-poisson": (lambda x, rng: 1 + rng.poisson(np.exp(1 + x)), "truncated-poisson"),
    "truncated-negative-binomial": (
        lambda x, rng: 1 + rng.binomial(6, 0.5 + 0.1 * x),
        "truncated-poisson",
    ),
}


@pytest.mark.parametrize("likelihood", LIMITS)
def test_likelihoods_that_become_simpler_are_said_to(likelihood):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 300)
    draw, simpler = LIMITS[likelihood]
    y = draw(x, rng)
    result, said = _kinds(lambda: moestat.fit(likelihood, x, y, n_experts=1, rng=0))
    assert LimitWarning in said
    assert not said & {BoundWarning, SeparationWarning}
    assert f"the distribution becomes {simpler}, simpler than {likelihood}" in "".join(result.notes)
    other = moestat.fit(simpler, x, y, n_experts=1, rng=0)
    np.testing.assert_allclose(result.theta[2:4], other.theta[2:4], atol=1e-3)
    np.testing.assert_allclose(result.bse[2:4], other.bse[2:4], rtol=5e-3)
    assert np.isnan(np.asarray(result.bse)[-1])


def test_a_separation_names_column_level_and_class():
    level = np.repeat(list("abc"), 30)
    y = np.where(level == "c", 0, np.random.default_rng(0).poisson(3, 90))
    with pytest.warns(SeparationWarning, match=r"g\[T\.c\].*prior=.weak") as caught:
        moestat.fit_formula("y ~ g", {"g": level, "y": y}, "poisson", n_experts=1, rng=0)
    assert "fewer experts" not in str(caught[0].message)
    x = np.r_[np.linspace(-2, -0.1, 20), np.linspace(0.1, 2, 20)]
    with pytest.warns(SeparationWarning, match=r"classes \(no against yes\).*column x\[0\]"):
        moestat.fit("multinomial", x, np.where(x > 0, "yes", "no"), n_experts=1, rng=0)


def test_separated_classes_in_an_order_are_said_to_be_and_keep_the_other_expert_its_errors():
    x = np.linspace(-2, 2, 401)
    one, said = _kinds(lambda: moestat.fit("ordinal", x, np.digitize(x, [-0.5, 0.5]), n_experts=1))
    assert said == {SeparationWarning}
    assert np.isnan(one.bse[2:]).all()
    # The two orders of the experts: that of the weights is not that in which they were found.
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, 500)
        y = np.where(x < 0, np.digitize(x, [-1, -0.5]), rng.integers(0, 3, 500))
        with pytest.warns(SeparationWarning) as caught:
            two = moestat.fit("ordinal", x, y, rng=0)
        far = int(np.argmax(np.abs(two.blocks["b"])))
        error = np.asarray(two.bse)
        for block in ("a", "b", "gap"):
            assert np.isnan(error[two.family.blocks[block][far]]).all()
            assert np.isfinite(error[two.family.blocks[block][1 - far]]).all()
        assert f"b[{2 - far}]" not in str(caught[0].message)
        assert two.notes[0] == str(caught[0].message)


def test_a_warning_through_pandas_points_at_the_line_of_the_user():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"x": np.arange(8.0), "y": np.arange(8) > 3})
    with pytest.warns(SeparationWarning) as caught:
        table[["x"]].pipe(
            (moestat.fit, "X"), family="multinomial", y=table["y"], n_experts=1, rng=0
        )
    assert {w.filename for w in caught} == {__file__}


def test_the_neighbour_with_an_expert_less_is_said_in_the_right_direction():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 200)
    y = np.abs(x) + 0.05 * rng.normal(size=200)
    simpler = moestat.fit("gaussian", x, y, rng=0).simpler
    assert simpler.gain < 0
    assert f"higher by {-simpler.gain:.1f}" in str(simpler)


def test_profiles_end_at_infinity_after_a_bounded_search(monkeypatch):
    import moestat.estimation.inference.profile as module

    calls, inner = [], module.minimise
    monkeypatch.setattr(module, "minimise", lambda *a: calls.append(1) or inner(*a))
    x = np.r_[np.linspace(-2, -0.1, 20), np.linspace(0.1, 2, 20)]
    separated = moestat.fit("multinomial", x, (x > 0).astype(int), n_experts=1, rng=0)
    slope = separated.profile("a[1,0,0]")
    assert slope.interval[0] == -np.inf
    assert "no finite end" in str(slope)
    # By symmetry the best intercept is 0; the other end is where 1.92 are lost.
    lost = np.logaddexp(0.0, slope.interval[1] * np.abs(x)).sum()
    assert lost == pytest.approx(3.841459 / 2, rel=1e-5)
    level = np.repeat([0.0, 1.0], 30)
    y = np.where(level == 1, 0, np.random.default_rng(0).poisson(3, 60))
    empty = moestat.fit("poisson", level, y, n_experts=1, rng=0).profile("a[1,0]")
    assert empty.interval[0] == -np.inf
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    y = np.where(rng.random(400) < 0.4, 0, rng.poisson(np.exp(1 + x)))
    zeros = moestat.fit("poisson", x, y, rng=0)
    intervals = {name: zeros.profile(name).interval for name in ("b[1]", "a[1,0]", "b[2]")}
    assert all(high < 1e3 for _, high in intervals.values())
    assert len(calls) < 300


def test_profiles_of_all_that_grows_together_end_at_infinity():
    x = np.r_[np.linspace(-2, -0.1, 20), np.linspace(0.1, 2, 20)]
    y = np.digitize(x, [-0.8, 0.8])
    three = moestat.fit("multinomial", x, y, n_experts=1, rng=0)
    ends = {name: three.profile(name).interval for name in three.param_names[2:]}
    assert ends["b[1,0]"] == (-np.inf, np.inf)
    assert ends["b[1,1]"][1] == np.inf
    assert ends["a[1,0,0]"][0] == ends["a[1,1,0]"][0] == -np.inf

    def lost(rest, slope):
        eta = np.c_[rest[0] + slope * x, rest[1] + rest[2] * x, 0 * x]
        return np.sum(np.logaddexp.reduce(eta, axis=1) - eta[np.arange(40), y])

    best = scipy_minimise(lost, [-20, 5, -10], args=(ends["a[1,0,0]"][1],)).fun
    assert best == pytest.approx(chi2.ppf(0.95, 1) / 2, rel=1e-6)
    order = moestat.fit("ordinal", x, y, n_experts=1, rng=0)
    for name in ("b[1]", "a[1,0]", "log gap[1,1]"):
        low, high = order.profile(name).interval
        assert 0 < low < high == np.inf


@pytest.mark.parametrize("seed", [0, 8])
def test_profiles_of_borders_do_not_exchange_experts(seed):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(low, low + 1, 80) for low in (0, 2, 4)])
    y = np.select([x < 1.5, x < 3.5], [1 + 2 * x, 10 - 3 * x], x - 3) + 0.3 * rng.normal(size=240)
    fit = moestat.fit("gaussian", x, y, n_experts=3, rng=0)
    for name in ("beta1[1,0]", "beta1[2,0]"):
        low, high = fit.profile(name).interval
        assert low * high > 0  # the same side of 0, where a border has no place
        assert np.isinf(low) != np.isinf(high)


@pytest.mark.parametrize(
    ("likelihood", "name", "end"),
    [("negative-binomial", "log phi[1]", -np.inf), ("student-t", "log dof[1]", np.inf)],
)
def test_profiles_of_limits_of_a_law_are_infinite_there(likelihood, name, end):
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 300)
    y = rng.binomial(6, 0.5 + 0.1 * x) if end < 0 else 2 * x + rng.uniform(-1, 1, 300)
    ends = moestat.fit(likelihood, x, y, n_experts=1, rng=0).profile(name).interval
    assert end in ends
    assert np.isfinite(ends).sum() == 1


def test_contrasts_with_an_empty_level_have_no_error_and_others_do():
    level = np.repeat([0, 1, 2], 40)
    y = np.where(level == 2, 0, np.random.default_rng(0).poisson(3 + level))
    fit = moestat.fit("poisson", np.eye(3)[level], y, n_experts=1, rng=0)
    tests = fit.t_test("a[1,1] - a[1,0] = 0; a[1,2] - a[1,0] = 0; b[1] + a[1,0] = 0")
    error = np.sqrt([1 / y[level == 0].sum() + 1 / y[level == 1].sum(), 1 / y[level == 0].sum()])
    np.testing.assert_allclose(tests.sd, [error[0], np.nan, error[1]], rtol=1e-6)


def test_effects_and_deletions_along_what_has_no_finite_value_are_nan():
    level = np.repeat([0, 1, 2], 40)
    y = np.where(level == 2, 0, np.random.default_rng(0).poisson(3 + level))
    X = np.column_stack([level == 1, level == 2]).astype(float)
    fit = moestat.fit("poisson", X, y, n_experts=1, rng=0)
    assert np.isnan(fit.get_margeff().sd).tolist() == [False, True]
    assert np.isnan(fit.influence().moves).any(axis=0).tolist() == np.isnan(fit.bse).tolist()
    assert np.isfinite(fit.influence().displacement).all()
    split = moestat.fit("multinomial", X[:, 0] - X[:, 1], level == 2, n_experts=1, rng=0)
    assert np.isnan(split.get_margeff().sd).all()
    by_level = {"y": y, "g": level.astype(str)}
    factor = moestat.fit_formula("y ~ g", by_level, "poisson", n_experts=1, rng=0)
    # The mean of the level of zeros is 0, and the error of the contrast that of the other mean.
    own = np.sqrt(y[level == 0].sum()) / 40
    assert factor.get_margeff().sd[-1] == pytest.approx(own, rel=1e-6)


def test_intervals_stay_inside_the_support_and_are_never_nan():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, 600)
    z = rng.random(600) < 1 / (1 + np.exp(-(1.5 - 1.5 * x)))
    y = rng.poisson(np.minimum(np.where(z, np.exp(-6 + 6 * x), np.exp(0.3 + 0.1 * x)), 1e3))
    result = moestat.fit("poisson", x, y, rng=0)
    frame = result.get_prediction(np.array([0.0, 6, 20, 60, 300])).summary_frame()
    assert not frame.isna().any(axis=None)
    assert (frame.to_numpy() >= 0).all()
    assert (frame["obs_ci_lower"] <= frame["obs_ci_upper"]).all()
    separated = moestat.fit("multinomial", x, np.where(x > 2, "up", "down"), n_experts=1, rng=0)
    chances = separated.get_prediction([0.0, 2.0, 1e6]).summary_frame()
    assert chances.filter(like="se").max(axis=None) <= 0.5
    assert not chances.isna().any(axis=None)


def test_a_declared_law_of_real_responses_is_used_everywhere():
    from dataclasses import replace

    from scipy.stats import norm

    from moestat.model.likelihoods import LIKELIHOODS

    declared = replace(
        LIKELIHOODS["gaussian"],
        law=lambda eta: norm(eta[..., 0, :], np.exp(0.5 * eta[..., 1, :])),
    )
    own = replace(moestat.family("gaussian", gate="softmax"), likelihood=declared)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 200)
    y = -5 + np.abs(x) + 0.1 * rng.standard_normal(200)
    plain = moestat.family("gaussian", gate="softmax")
    one, other = (moestat.fit(F, x, y, rng=0) for F in (own, plain))
    np.testing.assert_allclose(
        one.get_prediction(x).summary_frame(), other.get_prediction(x).summary_frame(), rtol=1e-9
    )
    np.testing.assert_allclose(one.quantile_residuals(), other.quantile_residuals(), rtol=1e-7)
    errors = [r.get_robustcov_results("expected").bse for r in (one, other)]
    np.testing.assert_allclose(*errors, rtol=1e-6)
    far = one.theta + 0.1
    distances = [moestat.hellinger(r.family, r.theta, r.family, far).value for r in (one, other)]
    assert distances[0] == pytest.approx(distances[1], rel=1e-6)


def test_ratios_are_of_fits_to_the_same_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + rng.normal(size=120)
    weight = rng.integers(1, 4, 120)
    full = moestat.fit("gaussian", X[:, :2], y, n_experts=1, rng=0)
    small = moestat.fit("gaussian", X[:, :1] * 3.0 + 1.0, y, n_experts=1, rng=0)
    assert moestat.lr_test(small, full).df == 1
    others = {
        "sample weights": moestat.fit(
            "gaussian", X[:, :1], y, sample_weight=weight, n_experts=1, rng=0
        ),
        "inputs": moestat.fit("gaussian", X[:, 2:], y, n_experts=1, rng=0),
        "likelihood": moestat.fit("student-t", X[:, :1], y, n_experts=1, rng=0),
        "offset": moestat.fit(
            "gaussian", X[:, :1], y, n_experts=1, gate_inputs=[], offset=0, rng=0
        ),
    }
    for what, other in others.items():
        with pytest.raises(ValueError, match=what):
            moestat.lr_test(other, full)


def test_required_rows_are_those_of_a_regression(monkeypatch):
    import moestat.estimation.studies.required as module

    monkeypatch.setattr(module, "REQUIRED", module.REQUIRED._replace(batches=1))
    F = moestat.family("gaussian", gate="softmax", n_experts=1)
    truth = F.pack({"beta0": [0], "beta1": [0], "a": [3], "b": [1], "nu": [2]})
    # The variance of a slope is that of the errors over n times that of the inputs, 1 / 12.
    need = moestat.required_n(F, truth, error=0.1, what="a[1,0]")
    assert need.n == 2400
    assert need.error_at(need.n) == pytest.approx(0.1)
    x = np.linspace(-1, 1, 80)
    fitted = moestat.fit("gaussian", x, x + np.sin(9 * x), n_experts=1, rng=0)
    same = moestat.required_n(fitted, error=0.1, what="a[1,0]")
    assert same.error_at(80) == pytest.approx(fitted.bse[3], rel=1e-6)
    grouped = moestat.fit("gaussian", x, x, n_experts=1, groups=np.arange(80) // 2, gate_inputs=[])
    trials = np.column_stack([np.arange(80) % 3, 1 + np.arange(80) % 4])
    for other, without in (
        (grouped, "fits without groups"),
        (moestat.fit("binomial", x, trials, n_experts=1, rng=0), "the same number of trials"),
    ):
        with pytest.raises(ValueError, match=without):
            moestat.required_n(other, error=0.1, what="a[1,0]")
    merged = F.with_experts(2).pack(
        {"beta0": [0, 0], "beta1": [0, 0], "a": [3, 3], "b": [1, 1], "nu": [2, 2]}
    )
    need = moestat.required_n(
        F.with_experts(2), merged, moestat.Uniform(-1, 1), error=0.5, what="a[1,0]", replicates=10
    )
    assert need.interval[0] < need.n < need.interval[1]
    assert -1 < need.exponent < 0
    lines = need.plot().get_lines()
    assert need.n in lines[-1].get_xdata()
    one = moestat.required_n(F, truth, moestat.Uniform(-1, 1), error=0.5, what="a[1,0]")
    assert need.n > 2 * one.n
    counts = moestat.family("poisson", gate="softmax", n_experts=2)
    same = counts.pack({"beta0": [0, 0], "beta1": [0, 0], "a": [1, 1], "b": [1, 1]})
    monkeypatch.setattr(module, "REQUIRED", module.REQUIRED._replace(drawn=300.0))
    with pytest.raises(ValueError, match="a lattice is for classes and normal responses"):
        moestat.required_n(counts, same, error=0.5, what="a[1,0]", replicates=10)
    monkeypatch.setattr(module, "REQUIRED", module.REQUIRED._replace(first=200.0))
    spaced = Equispaced(0, 1)
    few = moestat.required_n(counts, same, spaced, error=1.5, what="a[1,0]", replicates=10)
    assert few.n < 300
    with pytest.raises(ValueError, match=r"design: more than 300 rows.*got Equispaced"):
        moestat.required_n(counts, same, spaced, error=0.2, what="a[1,0]", replicates=10)


def test_a_separation_speaks_of_columns_that_there_are():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    first = rng.random(200) < 1 / (1 + np.exp(-9 * x[:, 0]))  # steeper than distances can be
    y = np.where(first, 3.0, -3.0) + 0.3 * rng.normal(size=200)
    with pytest.warns(SeparationWarning) as caught:
        moestat.fit("gaussian", pd.DataFrame({"x": x[:, 0]}), y, gate="laplace", rng=0)
    (said,) = [str(w.message) for w in caught if w.category is SeparationWarning]
    assert "gamma[1]" in said
    assert "places of the gate diverge from the data, and" in said  # rows are not separated
    # Prior() refuses such a gate.
    assert "Fewer experts or bounds= of your own make the maximum finite" in said


@pytest.mark.parametrize("gate", ["laplace", {"name": "dense-to-sparse", "activation": "sigmoid"}])
def test_the_gate_of_one_expert_is_no_relation_among_inputs(gate):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    result = moestat.fit("gaussian", X, rng.normal(size=200), gate=gate, n_experts=1, rng=0)
    count = 2 if gate == "laplace" else 3
    said = f"4 of {4 + count} free parameters are degrees of freedom: the gate of a single expert"
    assert result.identified.why == f"{said} takes {count}"


def test_rows_of_a_fit_with_an_expert_too_many_come_with_a_warning():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    over = moestat.fit("gaussian", x, 1 + x + rng.normal(size=200), n_experts=2, rng=0)
    with pytest.warns(OverSpecifiedWarning):
        moestat.required_n(over, error=0.1, what="a[1,0]")
    with pytest.raises(ValueError, match="what: cannot read 'q': unknown name 'q'"):
        moestat.required_n(over, error=0.1, what="q")
    two = moestat.family(["gaussian", "poisson"], gate="softmax", n_experts=1)
    with pytest.raises(ValueError, match="model: available only for models of one response, got 2"):
        moestat.required_n(two, two.typical(rng=0), error=0.1, what="a_y1[1,0]")
