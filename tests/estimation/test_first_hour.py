"""What people type in their first hour, with habits from other packages."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import moestat
from moestat.base.registry import Registry
from moestat.estimation.data.data import Data
from moestat.estimation.data.exposure import question_offset
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS

X = np.linspace(-1.0, 1.0, 80)
Y = np.abs(X) + 0.1 * np.sin(9.0 * X)
COUNTS = np.arange(80) % 4


@pytest.mark.parametrize("alias", LIKELIHOODS.aliases)
def test_every_alias_is_a_member_by_its_name_here(alias):
    member = LIKELIHOODS[LIKELIHOODS.aliases[alias]]
    assert alias not in list(LIKELIHOODS)
    assert LIKELIHOODS[alias] is member
    assert LIKELIHOODS[alias.upper().replace("-", "_")] is member
    assert moestat.family(alias).likelihood.name == member.name
    assert moestat.family({"name": alias}).likelihood.name == member.name


def test_names_of_members_are_read_with_underscores_spaces_and_capitals():
    for name in LIKELIHOODS:
        for written in (name.replace("-", "_"), name.replace("-", " "), name.title()):
            assert LIKELIHOODS[written] is LIKELIHOODS[name]


def test_a_fit_by_an_alias_is_the_fit_by_the_name():
    one = moestat.fit("normal", X, Y, n_experts=1, rng=0)
    other = moestat.fit("gaussian", X, Y, n_experts=1, rng=0)
    assert np.array_equal(one.theta, other.theta)
    assert one.family.likelihood.name == "gaussian"
    zeros = (COUNTS == 0).astype(float)
    bernoulli = moestat.fit("bernoulli", X, zeros, n_experts=1, rng=0)
    binomial = moestat.fit({"name": "binomial", "trials": 1}, X, zeros, n_experts=1, rng=0)
    assert np.array_equal(bernoulli.theta, binomial.theta)
    several = moestat.fit(["normal", "poisson"], X, np.c_[Y, COUNTS], n_experts=1, rng=0)
    assert [one.likelihood.name for one in several.family.likelihood.parts] == [
        "gaussian",
        "poisson",
    ]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("linear", "gaussian"), ("OLS", "gaussian"), ("norml", "gaussian"), ("probit", "binomial")],
)
def test_names_that_are_no_likelihood_are_answered_by_one(given, meant):
    with pytest.raises(ValueError, match=f"unknown likelihood .*; did you mean '{meant}'"):
        moestat.fit(given, X, Y)


def test_a_member_of_its_own_name_comes_before_an_alias():
    registry = Registry("gate", aliases={"other": "softmax"})
    for name in ("softmax", "sigmoid"):
        registry.register(GATES[name])
    assert registry["Other"] is GATES["softmax"]
    registry.register(
        moestat.family("gaussian", gate="softmax").gate.__class__(
            **{**vars(GATES["softmax"]), "name": "other"}
        )
    )
    assert registry["other"].name == "other"
    with pytest.raises(ValueError, match="unknown gate 'third'"):
        registry["third"]


def _ratios(result):
    return result.tidy(exponentiate=True).set_index("name")


# One expert is a generalised linear model: ratios of statsmodels are exponentials of its own fit.
@pytest.mark.parametrize(
    ("likelihood", "y", "ratio"),
    [
        ("poisson", COUNTS, "rate ratio"),
        ("negative-binomial", (COUNTS % 3) ** 2, "rate ratio"),
        ("gamma", COUNTS + 0.5, "ratio of means"),
        ("log-normal", COUNTS + 0.5, "ratio of means"),
        ("binomial", COUNTS // 2, "odds ratio"),
        ({"name": "binomial", "trials": 5}, COUNTS, "odds ratio"),
        ("binomial", np.c_[COUNTS, 4 - COUNTS], "odds ratio"),
        ("beta", (COUNTS + 1) / 6, "odds ratio"),
        ("beta-binomial", np.c_[COUNTS, 4 - COUNTS], "odds ratio"),
        ("multinomial", COUNTS % 3, "odds ratio"),
        ("ordinal", COUNTS % 3, "odds ratio"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_coefficients_on_log_and_logit_scales_become_ratios_with_intervals(likelihood, y, ratio):
    result = moestat.fit(likelihood, X, y, n_experts=1, rng=0)
    plain, ratios = result.tidy().set_index("name"), _ratios(result)
    slopes = ratios.index[ratios.scale == ratio]
    assert list(slopes) == [name for name in plain.index if name.startswith("a[")]
    estimated = ratios.scale != "as estimated"
    assert {name[0] for name in ratios.index[estimated]} == {"a", "b"}
    for column in ("estimate", "conf_low", "conf_high"):
        assert np.allclose(ratios.loc[estimated, column], np.exp(plain.loc[estimated, column]))
        assert ratios.loc[~estimated, column].equals(plain.loc[~estimated, column])
    assert np.allclose(
        ratios.loc[estimated, "std_error"],
        np.exp(plain.loc[estimated, "estimate"]) * plain.loc[estimated, "std_error"],
    )
    assert ratios.p_value.equals(plain.p_value)


def test_rate_ratios_are_those_of_means():
    """The ratio of two means at inputs one apart, from predictions alone."""
    for likelihood in ("poisson", "gamma", "log-normal", "weibull", "zero-inflated-poisson"):
        y = COUNTS if likelihood in ("poisson", "zero-inflated-poisson") else COUNTS + 0.5
        one = moestat.fit(likelihood, X, y, n_experts=1, rng=0)
        low, high = one.predict([0.0, 1.0])
        assert _ratios(one).loc["a[1,0]", "estimate"] == pytest.approx(high / low)


def test_odds_ratios_of_a_gate_are_those_of_its_probabilities():
    model = moestat.family("gaussian", gate="softmax", n_experts=2)
    blocks = {"beta0": [0, 0], "beta1": [2, 0], "a": [2, -2], "b": [1, 0], "nu": [0.1, 0.1]}
    x, y = moestat.sample(model, model.pack(blocks), n=400, rng=0)
    result = moestat.fit("gaussian", x, y, rng=0)
    frame = _ratios(result)
    gate = moestat.gate_probabilities(result.family, result.theta, [-0.5, 0.0, 1.0])
    gate = gate if len(gate) == 3 else gate.T
    odds = gate[1:, 0] / gate[1:, 1]
    assert frame.loc["beta1[1,0]", "scale"] == "odds ratio"
    assert frame.loc["beta1[1,0]", "estimate"] == pytest.approx(odds[1] / odds[0], rel=1e-6)
    assert frame.loc["beta1[2,0]", "estimate"] == 1.0  # the reference
    assert set(frame.loc[["a[1,0]", "b[1]", "log nu[1]"], "scale"]) == {"as estimated"}
    assert frame.loc["a[1,0]", "estimate"] == result.tidy().set_index("name").estimate["a[1,0]"]


@pytest.mark.parametrize(
    "model",
    ["gaussian", "student-t", {"name": "binomial", "link": "probit"}],
)
@pytest.mark.filterwarnings("ignore")
def test_a_model_without_such_scales_is_refused(model):
    y = Y if isinstance(model, str) else COUNTS // 2
    result = moestat.fit(model, X, y, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="exponentiate: no coefficient of this model is on a log"):
        result.tidy(exponentiate=True)


def _visits(n=300):
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=n), rng.integers(1, 13, n).astype(float)
    y = rng.poisson(t * np.exp(0.4 * x - 1.0))
    return pd.DataFrame({"x": x, "t": t, "days at risk": 30.0 * t, "y": y})


def test_an_exposure_is_that_of_statsmodels():
    d = _visits()
    theirs = sm.GLM(d.y, sm.add_constant(d[["x"]]), family=sm.families.Poisson(), exposure=d.t).fit(
        tol=1e-12
    )
    options = {"n_experts": 1, "rng": 0}
    fits = [
        moestat.fit_formula("y ~ x", d, "poisson", exposure="t", **options),
        moestat.fit_formula("y ~ x", d, "poisson", exposure="`days at risk` / 30", **options),
        moestat.fit_formula("y ~ x", d, "poisson", offset="log(t)", **options),
        moestat.fit("poisson", d[["x"]], d.y, exposure=d.t, **options),
        moestat.fit("poisson", d.x.to_numpy(), d.y.to_numpy(), exposure=list(d.t), **options),
    ]
    for one in fits:
        assert one.llf == pytest.approx(theirs.llf)
        frame = one.tidy()
        assert np.allclose(frame.estimate, theirs.params)
        assert np.allclose(frame.std_error, theirs.bse, rtol=1e-5)
        assert one.notes == ()
    new = d[:5].assign(**{"log(exposure)": np.log(d.t[:5])})
    expected = theirs.predict(sm.add_constant(d[["x"]]), exposure=d.t)[:5]
    assert np.allclose(fits[0].predict(d[:5]), expected)
    assert np.allclose(fits[3].predict(new[["x", "log(exposure)"]]), expected)
    assert np.allclose(fits[4].predict(new[["x", "log(exposure)"]].to_numpy()), expected)


def test_the_summary_names_the_offset():
    d = _visits()
    options = {"n_experts": 1, "rng": 0}
    one = moestat.fit_formula("y ~ x", d, "poisson", exposure="t", **options)
    for text in (one.summary().as_text(), one.summary().as_html()):
        assert "Offset" in text
        assert "log(t)" in text
    assert "Offset" in one.summary().as_latex()
    arrays = moestat.fit("poisson", d[["x", "t"]].to_numpy(), d.y, exposure=d.t, **options)
    assert "x[2]" in str(arrays.summary()).split("Offset")[1].splitlines()[0]
    plain = moestat.fit_formula("y ~ x", d, "poisson", **options)
    assert "Offset" not in str(plain.summary())


def test_other_calls_take_exposures_of_formulas():
    d = _visits()
    one = moestat.select("poisson", "y ~ x", k=(1,), data=d, exposure="t", rng=0).best
    other = moestat.fit_formula("y ~ x", d, "poisson", n_experts=1, offset="log(t)", rng=0)
    assert one.llf == pytest.approx(other.llf)
    gaps = d.assign(t=d.t.where(d.index > 3))
    chosen = moestat.select(
        "poisson", "y ~ x", k=(1,), data=gaps, exposure="t", missing="drop", rng=0
    )
    assert chosen.best.nobs == len(d) - 4
    arrays = moestat.fit("poisson", d.x, d.y, exposure=gaps.t, missing="drop", n_experts=1, rng=0)
    assert arrays.llf == pytest.approx(chosen.best.llf)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exposure": np.arange(80.0)}, r"exposure must be positive, got 0 in row 0 \(from 0\)"),
        ({"exposure": np.ones(5)}, r"exposure must have shape \(80,\), got \(5,\)"),
        ({"exposure": np.where(np.arange(80) == 3, np.nan, 1.0)}, "exposure has 1 missing value"),
        ({"exposure": np.ones(80), "offset": 0}, "exposure: the fit has an offset, too"),
    ],
)
def test_exposures_that_cannot_be_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        moestat.fit("poisson", X, COUNTS, **given)


def test_exposures_are_for_log_links_by_name():
    ones = np.ones(80)
    for likelihood in ("gaussian", "binomial", ["poisson", "gaussian"]):
        with pytest.raises(ValueError, match="exposure is for likelihoods with a log link"):
            moestat.fit(likelihood, X, COUNTS, exposure=ones)
    with pytest.raises(ValueError, match="exposure: allowed only if the family is given by name"):
        moestat.fit(moestat.family("poisson", gate="softmax"), X, COUNTS, exposure=ones)
    d = _visits()
    with pytest.raises(ValueError, match="exposure must be the name of a column"):
        moestat.fit_formula("y ~ x", d, "poisson", exposure=d.t)
    with pytest.raises(ValueError, match=r"row 0 .*exposure= need numbers above 0"):
        moestat.fit_formula("y ~ x", d.assign(t=0.0), "poisson", exposure="t")


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial", "gamma"])
@pytest.mark.filterwarnings("ignore")
def test_an_offset_without_its_logarithm_is_questioned(likelihood):
    d = _visits()
    d["y"] += 0.5 * (likelihood == "gamma")
    given = {"n_experts": 1, "rng": 0}
    wrong = moestat.fit_formula("y ~ x", d, likelihood, offset="t", **given)
    assert any("looks like an exposure without its logarithm" in note for note in wrong.notes)
    assert "exposure" in str(wrong.explain())


def test_offsets_that_are_logarithms_are_not_questioned():
    """Also where all of them are positive, as logarithms of populations are."""
    rng = np.random.default_rng(1)
    asked = 0
    for _ in range(20):
        people = np.exp(rng.uniform(5.0, 14.0, 200))
        x = rng.normal(size=200)
        rate = np.exp(0.5 * x - 5.0)
        y = rng.negative_binomial(2, 2 / (2 + people * rate)).astype(float)
        d = pd.DataFrame({"x": x, "logs": np.log(people), "y": y})
        family = moestat.family("poisson", gate="softmax", n_experts=1, n_features=2, offset=1)
        data = Data.of(family, d[["x", "logs"]].to_numpy(), y)
        asked += len(question_offset(family, data))
    assert asked == 0


def test_terms_of_one_expert_are_tested_as_in_statsmodels():
    d = _visits().assign(site=np.resize(list("abcd"), 300), z=np.cos(np.arange(300)))
    formula = "y ~ x + C(site) + z:x + poly(z, 2)"
    one = moestat.fit_formula(formula, d, "poisson", exposure="t", n_experts=1, rng=0)
    d["q1"], d["q2"] = np.linalg.qr(np.vander(d.z, 3, increasing=True))[0][:, 1:].T
    theirs = smf.glm(
        "y ~ x + C(site) + z:x + q1 + q2",
        d,
        family=sm.families.Poisson(),
        exposure=d.t,
    ).fit(tol=1e-12)
    table = theirs.wald_test_terms(scalar=True).table
    ours = one.wald_test_terms()
    assert [*ours.index.get_level_values("part").unique()] == ["expert"]
    ours = ours.loc["expert"]
    assert {*ours.index} == {"Intercept", "x", "C(site)", "z:x", "poly(z, 2)"}
    for name in ("Intercept", "x", "C(site)", "z:x"):
        assert ours.loc[name, "df"] == table.loc[name, "df_constraint"]
        for column, theirs_is in (("statistic", "statistic"), ("p_value", "pvalue")):
            their = float(table.loc[name, theirs_is])
            assert ours.loc[name, column] == pytest.approx(their, rel=1e-4)
    both = theirs.wald_test("q1 = 0, q2 = 0", scalar=True)
    assert ours.loc["poly(z, 2)", "df"] == 2
    assert ours.loc["poly(z, 2)", "statistic"] == pytest.approx(both.statistic, rel=1e-4)


def test_terms_of_experts_and_gate_are_tested_jointly():
    d = _two()
    result = moestat.fit_formula("y ~ x + site | z", d, rng=0)
    for fit in (result, result.get_robustcov_results("HC0")):
        table = fit.wald_test_terms()
        assert [*table.index] == [
            ("gate", "Intercept"),
            ("gate", "z"),
            ("expert", "Intercept"),
            ("expert", "x"),
            ("expert", "site"),
        ]
        assert table.df.tolist() == [1, 1, 2, 2, 4]
        names = [n for n in fit.params.index if "site" in n]
        assert len(names) == 4
        joint = fit.wald_test(", ".join(f"{name} = 0" for name in names))
        assert table.loc[("expert", "site"), "statistic"] == pytest.approx(joint.statistic)
        assert table.loc[("expert", "site"), "p_value"] == pytest.approx(joint.pvalue)


def test_equal_and_known_coefficients_count_as_they_are_free():
    d = _two()
    equal = moestat.fit_formula("y ~ x + site | z", d, equal=["a"], rng=0).wald_test_terms()
    assert equal.loc["expert"].df.tolist() == [2, 1, 2]
    known = moestat.fit_formula("y ~ x + site | z", d, fixed={"a": {"x": 1.0}}, rng=0)
    assert known.wald_test_terms().loc["expert"].index.tolist() == ["Intercept", "site"]
    arrays = moestat.fit("gaussian", d[["x", "z"]].to_numpy(), d.y, rng=0).wald_test_terms()
    assert [*arrays.loc["gate"].index] == ["Intercept", "x[0]", "x[1]"]
    curved = moestat.fit("gaussian", d.x, d.y, expert={"name": "ffn", "hidden": 1}, rng=0)
    with pytest.raises(ValueError, match="wald_test_terms: available for experts that are linear"):
        curved.wald_test_terms()


# The arguments of statsmodels come in the order y, X; those of R's functions with data first.
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: moestat.fit("gaussian", Y, np.c_[X, X**2, X**3]), "X and y look swapped"),
        (lambda: moestat.fit("poisson", COUNTS[:, None], pd.DataFrame(np.c_[X, X, X])), "swapped"),
        (lambda: moestat.fit("binomial", Y.tolist(), np.c_[X, X, X].tolist()), "swapped"),
        (lambda: moestat.fit("gaussian", Y, np.c_[X**2, X]), "X and y are swapped"),
        (lambda: moestat.fit(np.c_[X, Y], Y, "gaussian"), r"the order is fit\(family, X, y\)"),
        (lambda: moestat.fit_formula(_two(), "y ~ x"), r"swapped: .* fit_formula\('y ~ x', data\)"),
        (lambda: moestat.fit_formula({"x": X, "y": Y}, "y ~ x"), "formula and data are swapped"),
    ],
)
def test_arguments_that_are_swapped_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_several_columns_of_several_responses_are_not_swapped():
    moestat.fit(["gaussian"] * 3, X, np.c_[Y, Y**2, np.cos(9 * X)], n_experts=1, rng=0)


TEXT = r"the text 'n/a' in row 7 \(from 0\) is no number"


@pytest.mark.parametrize("cells", [list(X), [str(value) for value in X]])
def test_a_text_among_numbers_is_named_with_its_row(cells):
    cells = pd.Series(cells, dtype=object)
    cells[7] = "n/a"
    d = pd.DataFrame({"x": X, "y": Y, "text": cells})
    calls = [
        lambda: moestat.fit("gaussian", d[["x", "text"]], d.y),
        lambda: moestat.fit("gaussian", d[["x", "text"]].to_numpy(), Y),
        lambda: moestat.fit("gaussian", list(cells), Y),
        lambda: moestat.fit("gaussian", X, d["text"]),
        lambda: moestat.fit("gaussian", X, cells.tolist()),
        lambda: moestat.fit("gaussian", X, Y, sample_weight=d["text"]),
        lambda: moestat.fit("poisson", X, COUNTS, exposure=d["text"]),
        lambda: moestat.fit_formula("y ~ text", d),
        lambda: moestat.fit_formula("text ~ x", d),
        lambda: moestat.fit_formula("y ~ x", d, weights="text"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=TEXT):
            call()


def test_columns_of_words_are_categories_as_before():
    few = np.resize(["1", "2", "3", "none"], 80)
    moestat.fit_formula("y ~ few", {"y": Y, "few": few}, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="X: column 'site' is categorical"):
        moestat.fit("gaussian", pd.DataFrame({"site": np.resize(list("abc"), 80)}), Y)


def test_weights_that_are_shares_are_named():
    shares = np.full(80, 1.0 / 80)
    with pytest.raises(ValueError, match=r"sample_weight sums to 1 over 80 rows: .* \* 80"):
        moestat.fit("gaussian", X, Y, sample_weight=shares)
    with pytest.raises(ValueError, match=r"n = 2 samples cannot .* information$"):
        moestat.fit("gaussian", X, Y, sample_weight=2.0 * shares)


@pytest.mark.parametrize("function", [moestat.fit, moestat.fit_formula])
def test_signatures_show_what_people_look_for(function):
    shown = inspect.signature(function).parameters
    assert {"n_experts", "gate", "expert", "rng", "prior", "verbose"} <= {*shown}


def test_arguments_that_are_shown_do_what_they_did(tmp_path):
    d, given = _two(), {"gate": "sigmoid", "expert": "polynomial", "prior": "weak", "rng": 0}
    one = moestat.fit_formula("y ~ x", d, n_experts=2, **given)
    other = moestat.fit("gaussian", d[["x"]], d.y, n_experts=2, **given)
    assert np.array_equal(one.theta, other.theta)
    assert (one.family.gate.name, one.family.expert.name) == ("sigmoid", "polynomial")
    assert one.prior is not None
    model = moestat.family("gaussian", gate="softmax")
    for name, value in {"n_experts": 2, "gate": "softmax", "expert": "linear"}.items():
        with pytest.raises(ValueError, match=f"{name}: allowed only if the family is given by"):
            moestat.fit(model, X, Y, **{name: value})
    d[["x", "y"]].to_parquet(tmp_path / "d.parquet")
    read = moestat.fit_formula("y ~ x", str(tmp_path / "d.parquet"), gate="sigmoid", rng=0)
    assert read.family.gate.name == "sigmoid"
    with pytest.raises(ValueError, match="compress: is for data in memory"):
        moestat.fit_formula("y ~ x", str(tmp_path / "d.parquet"), compress="auto")
    with pytest.raises(ValueError, match="verbose must be True or False"):
        moestat.fit_formula("y ~ x", d, verbose=3)


def _two(n=400):
    rng = np.random.default_rng(3)
    d = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    d["site"] = np.resize(list("abc"), n)
    first = rng.random(n) < 1 / (1 + np.exp(-2 * d.z))
    d["y"] = np.where(first, 3 + d.x, -3 - d.x + (d.site == "b")) + 0.5 * rng.normal(size=n)
    return d
