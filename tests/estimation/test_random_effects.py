"""Fits with random effects of groups: beside statsmodels, in other units, and what they answer."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.solvers import EM, QuasiNewton

GROUPS, TIMES = 80, 5


def drawn(seed, intercept=0.6, slope=0.0, classes=1):
    rng = np.random.default_rng([9, seed])
    who, t = np.repeat(np.arange(GROUPS), TIMES), np.tile(np.arange(float(TIMES)), GROUPS)
    second = (rng.random(GROUPS) < 0.4 * (classes - 1))[who]
    u, v = intercept * rng.normal(size=GROUPS), slope * rng.normal(size=GROUPS)
    y = 1 + 0.3 * t + second * (2 - 1.2 * t) + u[who] + v[who] * t + 0.5 * rng.normal(size=t.size)
    sex = np.where(rng.random(GROUPS) < 0.3 + 0.4 * second[::TIMES], "f", "m")[who]
    order = rng.permutation(t.size)
    frame = pd.DataFrame({"y": y, "t": t, "id": [f"s{i}" for i in who], "sex": sex})
    return frame.iloc[order].reset_index(drop=True), second[order].astype(int)


@pytest.fixture(scope="module")
def two():
    """Two classes with random intercepts, and the fit."""
    frame, kind = drawn(1, classes=2)
    return frame, kind, moestat.fit_formula("y ~ t + (1 | id) | sex", frame, n_experts=2, rng=0)


@pytest.mark.parametrize(
    ("term", "formula", "slope"),
    [("(1 | id)", None, 0.0), ("(1 + t | id)", "~t", 0.3), ("(0 + t | id)", "~0 + t", 0.3)],
)
def test_one_expert_is_the_mixed_model_of_statsmodels(term, formula, slope):
    import statsmodels.formula.api as smf

    frame, _ = drawn(0, slope=slope)
    ours = moestat.fit_formula(f"y ~ t + {term}", frame, n_experts=1, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = smf.mixedlm("y ~ t", frame, groups="id", re_formula=formula).fit(reml=False)
    assert ours.certificate.certified
    assert ours.llf == pytest.approx(other.llf, abs=1e-6)
    fixed = [ours.params["b[1]"], ours.params["a[1,t]"]]
    assert np.allclose(fixed, other.fe_params, atol=1e-4)
    effects, known = ours.random_effects(), other.random_effects
    for name in effects.columns[: effects.shape[1] // 2]:
        theirs = {"Intercept": "Group"}.get(name, name)
        theirs = theirs if theirs in known["s0"].index else known["s0"].index[0]
        assert np.allclose(
            effects[name], [known[group][theirs] for group in effects.index], atol=1e-3
        )


def test_two_classes_are_found_with_their_variances(two):
    _, kind, result = two
    assert result.certificate.certified
    found = result.responsibilities.argmax(axis=1)
    assert max(np.mean(found == kind), np.mean(found != kind)) > 0.8
    parts = result.variance_components()
    for expert in (1, 2):
        sd = parts.loc[(expert, "sd(Intercept)")]
        assert sd.conf_low < 0.6 < sd.conf_high
        assert parts.loc[(expert, "ICC"), "estimate"] == pytest.approx(
            sd.estimate**2 / (sd.estimate**2 + parts.loc[(expert, "sd(residual)"), "estimate"] ** 2)
        )
    text = str(result.summary())
    assert "gaussian experts with random effects" in text
    assert "sd(Intercept)" in text
    assert "factor" not in text


@pytest.mark.parametrize("covariance", ["free", "diagonal"])
def test_units_of_the_data_do_not_matter(covariance):
    frame, _ = drawn(2, slope=0.3, classes=2)
    random = {"terms": "1 + t", "covariance": covariance}
    options = {"groups": frame["id"], "random": random, "n_experts": 2, "gate_inputs": [], "rng": 0}
    one = moestat.fit("gaussian", frame[["t"]], frame["y"], **options)
    # Effects without correlations stay so in other units, but not from another origin.
    shift = 300.0 if covariance == "free" else 0.0
    other = moestat.fit("gaussian", frame[["t"]] * 24.0 + shift, 1e3 * frame["y"] - 5.0, **options)
    assert one.llf == pytest.approx(other.llf + len(frame) * np.log(1e3), abs=1e-6)
    a, b = (each.variance_components() for each in (one, other))
    assert np.allclose(
        a.xs("sd(t)", level=1).estimate, 24.0 / 1e3 * b.xs("sd(t)", level=1).estimate, rtol=1e-4
    )


@pytest.mark.parametrize("solver", [EM(tolerance=1e-10), QuasiNewton()], ids=lambda s: s.name)
def test_other_solvers_end_at_the_same_maximum(two, solver):
    frame, _, result = two
    other = moestat.fit_formula("y ~ t + (1 | id) | sex", frame, n_experts=2, rng=0, solver=solver)
    assert other.llf == pytest.approx(result.llf, abs=1e-3)


def test_no_variance_between_groups_is_a_maximum_inside():
    """A variance of 0 is one where the fit without effects is as high, without a bound."""
    zeros = 0
    for seed in range(6):
        frame, _ = drawn(seed, intercept=0.0)
        plain = moestat.fit_formula("y ~ t | 1 | id", frame, n_experts=1, rng=0)
        result = moestat.fit_formula("y ~ t + (1 | id) | 1", frame, n_experts=1, rng=0)
        sd = result.variance_components().loc[(1, "sd(Intercept)")]
        assert result.certificate.certified
        assert not result.certificate.active
        assert result.llf >= plain.llf - 1e-8
        assert 0.0 <= sd.conf_low <= sd.estimate < sd.conf_high < 0.5
        if sd.estimate == 0.0:
            zeros += 1
            assert result.llf == pytest.approx(plain.llf, abs=1e-8)
            # Scores of groups are 0 there: products of them tell no standard error.
            robust = result.get_robustcov_results("HC0").variance_components().loc[1]
            assert np.isnan(robust.loc["sd(Intercept)", "std_error"])
            assert np.isnan(
                robust.loc["ICC", ["std_error", "conf_low", "conf_high"]].astype(float)
            ).all()
    assert zeros > 0


def test_predictions_of_a_population_and_of_subjects(two):
    frame, _, result = two
    new = pd.DataFrame({"t": [1.0, 1.0, 1.0], "sex": "f", "id": ["s3", "s7", "s3"]})
    population, subject = result.predict(new), result.predict(new, groups=new["id"])
    assert np.ptp(population) < 1e-12
    assert subject[0] == subject[2] != subject[1]
    own = frame[frame["id"] == "s3"]
    share = result.responsibilities[own.index[0]]
    blocks, total = result.blocks, 0.0
    for i in range(2):
        residual = own["y"] - blocks["b"][i] - blocks["a"][i, 0] * own["t"]
        D, nu = blocks["l"][i, 0] ** 2, blocks["nu"][i]
        u = D * residual.sum() / (nu + D * len(own))
        total += share[i] * (blocks["b"][i] + blocks["a"][i, 0] + u)
    assert subject[0] == pytest.approx(total, rel=1e-8)
    with pytest.raises(ValueError, match="means of known groups are predicted, not their quantile"):
        result.predict(new, "quantile", groups=new["id"])


def test_simulated_rows_of_a_group_are_correlated(two):
    frame, *_ = two
    by = frame.sort_values(["id", "t"]).reset_index(drop=True)
    alone = moestat.fit_formula("y ~ t + (1 | id)", by, n_experts=1, rng=0)
    residual = np.array([alone.simulate(rng=s) - alone.predict() for s in range(40)])
    both = residual.reshape(40, GROUPS, TIMES)
    within = np.mean(both.sum(axis=2) ** 2 - np.sum(both**2, axis=2)) / (TIMES * (TIMES - 1))
    D = alone.blocks["l"][0, 0] ** 2
    assert within == pytest.approx(D, rel=0.1)


def test_questions_about_a_fit(two):
    frame, _, result = two
    assert result.score_samples().sum() == pytest.approx(result.llf)
    robust, cluster = (result.get_robustcov_results(k).theta_bse for k in ("HC0", "cluster"))
    assert np.allclose(cluster, robust * np.sqrt(GROUPS / (GROUPS - 1)))
    free = result.free
    for kind in ("pairs", "parametric"):
        again = result.bootstrap(40, kind, rng=0)
        ratio = again.theta_bse[free] / result.theta_bse[free]
        assert np.all((ratio > 0.3) & (ratio < 4.0))
    equal = moestat.fit_formula(
        "y ~ t + (1 | id) | sex", frame, n_experts=2, rng=0, equal=["l", "L", "nu"]
    )
    assert np.ptp(equal.blocks["l"]) < 1e-9
    assert equal.llf <= result.llf + 1e-6


def test_select_finds_the_classes_where_it_took_the_largest_number():
    frame, _ = drawn(3, intercept=0.7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = moestat.select("gaussian", "y ~ t | 1 | id", data=frame, k=(1, 2, 3), rng=0)
    after = moestat.select("gaussian", "y ~ t + (1 | id) | 1", data=frame, k=(1, 2), rng=0)
    assert before.chosen() == 3
    assert after.chosen() == 1
    X, y, own = frame[["t"]], frame["y"], {"groups": frame["id"], "gate_inputs": []}
    arrays = moestat.select("gaussian", X, y, k=(1, 2), rng=0, random="1", **own)
    assert arrays.chosen() == 1


def test_what_cannot_be_had_is_refused():
    frame, _ = drawn(0)
    X, y, who = frame[["t"]], frame["y"], frame["id"]
    refused = [
        (("gaussian", X, y), {"random": "1"}, "random effects need groups of rows; give groups="),
        (("gamma", X, y.abs() + 1.0), {"random": "1", "groups": who}, "for the likelihood"),
        (("gaussian", X, y), {"random": "1 + age", "groups": who}, "'age' is not an input"),
        (("gaussian", X, y), {"random": [3], "groups": who}, "inputs are 0..0, got 3"),
        (("gaussian", X, y), {"random": 3, "groups": who}, "random must be text"),
        (("gaussian", X, y), {"random": {"x": 1}, "groups": who}, "random must be text"),
        (
            ("gaussian", X, np.column_stack([y, y])),
            {"random": "1", "groups": who, "gate_inputs": []},
            "censored responses",
        ),
        (
            ("gaussian", X, y),
            {"random": "1", "groups": who, "gate_inputs": [], "prior": moestat.Prior()},
            "no prior density",
        ),
    ]
    for arguments, options, match in refused:
        with pytest.raises(ValueError, match=match):
            moestat.fit(*arguments, **options)
    for formula, match in (
        ("y ~ t + (1 | id) + (1 | sex)", "one term of random effects"),
        ("y ~ t + (1 | id / sex / t)", "crossed groups are not available"),
        ("y ~ t + (1 | id / id)", "of two nested ones"),
        ("y ~ t | (1 | id)", "only experts have random effects"),
        ("y ~ t + (1 + sex | id) | 1", "'sex' is not an input"),
    ):
        with pytest.raises(ValueError, match=match):
            moestat.fit_formula(formula, frame)
    with pytest.raises(ValueError, match="the formula has random effects of groups, too"):
        moestat.fit_formula("y ~ t + (1 | id)", frame, groups="id")
    for options, match in (
        ({"expert": {"name": "ffn", "hidden": 2}}, "only with linear experts"),
        ({"gate": "competition"}, "a gate that depends on inputs alone"),
        ({"compress": "auto", "gate_inputs": []}, "compress"),
    ):
        own = {"groups": who, "random": "1", "n_experts": 2, **options}
        with pytest.raises(ValueError, match=match):
            moestat.fit("gaussian", X, y, **own)
    fitted = moestat.fit("gaussian", X, y, groups=who, random="1", n_experts=1, rng=0)
    batches = moestat.Blocks(lambda i: (X.to_numpy(), y.to_numpy()), 2)
    for call, match in (
        (lambda: moestat.dendrogram(fitted), "not available for fits with random effects"),
        (lambda: moestat.required_n(fitted, error=0.1, what="a[1,t]"), "without random effects"),
        (lambda: moestat.fit_blocks(fitted.family, batches), "random effects need groups of rows"),
        (lambda: moestat.fit_many(fitted.family, [(X, y)]), "random effects need groups of rows"),
        (lambda: moestat.stepwise("y ~ t + (1 | id)", frame, n_experts=1), "random= and groups="),
    ):
        with pytest.raises(ValueError, match=match):
            call()
    plain = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="no random effects"):
        plain.random_effects()


def test_components_at_the_end_of_their_range_have_no_interval():
    """Covariance matrices of rank one have a correlation of 1 or -1, which is no normal one."""
    ends = 0
    for seed in range(6):
        frame, _ = drawn(seed)
        result = moestat.fit_formula("y ~ t + (1 + t | id) | 1", frame, n_experts=1, rng=0)
        part = result.variance_components().loc[1]
        r = part.loc["corr(Intercept, t)"]
        if abs(r.estimate) > 1.0 - 1e-9:
            ends += 1
            assert not r.conf_low > r.estimate
            assert not r.conf_high < r.estimate
        assert np.all(part.loc[["sd(Intercept)", "sd(t)"], "conf_high"] > 0.0)
        assert "corr(Intercept, t)" in str(result.summary())
    assert ends > 0
