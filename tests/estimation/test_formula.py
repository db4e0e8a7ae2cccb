"""Fits by formula: the same as fits to arrays, names everywhere, one error for what is wrong."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import moestat
from moestat.base.warnings import AliasedWarning


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 800
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, n),
            "region": rng.choice(["north", "south", "west"], n),
            "t": rng.uniform(1, 3, n),
            "year": rng.integers(2000, 2003, n),
            "w": rng.integers(0, 3, n),
        }
    )
    young = rng.random(n) > 1 / (1 + np.exp(-(frame["age"] - 40) / 4))
    line = np.where(young, frame["age"] - 10, 30 + 5 * (frame["region"] == "south"))
    return frame.assign(wage=line + rng.normal(size=n))


@pytest.fixture(scope="module")
def result(data):
    return moestat.fit_formula("wage ~ age + C(region) | age", data, n_experts=2, rng=0)


def test_the_gate_reads_only_its_own_terms(data, result):
    """The likelihood is that of the family with the other coefficients at 0, and a maximum."""
    assert result.certificate.certified
    assert result.family.n_free_params == 2 + 2 * 5
    X = pd.get_dummies(data[["age", "region"]], drop_first=True, dtype=float)
    density = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=3)
    theta = result.theta
    assert result.llf == pytest.approx(density.log_density(theta, X.to_numpy(), data["wage"]).sum())
    slope = moestat.score(density, theta, X.to_numpy(), data["wage"].to_numpy())
    free = result.family.lower < result.family.upper
    scale = np.tile([1.0, 60.0, 1.0, 1.0, 1.0, 60.0, 1.0, 1.0, 1.0], 2)
    assert np.abs(slope / scale)[free].max() < 1e-3
    assert not result.params.index.str.match(r"beta1.*region").any()
    assert np.all(result.blocks["beta1"][:, 1:] == 0.0)


def test_a_constant_column_of_zeros_costs_nothing_to_the_errors(data, result):
    """Standard errors are those of the information of the free parameters in the user's units."""
    full = moestat.family("gaussian", gate="softmax", n_experts=2, n_features=3)
    X = pd.get_dummies(data[["age", "region"]], drop_first=True, dtype=float).to_numpy()
    information = -moestat.hessian(full, result.theta, X, data["wage"].to_numpy())
    free = np.flatnonzero(result.family.lower < result.family.upper)
    errors = np.sqrt(np.diag(np.linalg.inv(information[np.ix_(free, free)])))
    assert np.allclose(result.theta_bse[free], errors, rtol=1e-6)


def test_names_of_columns_are_those_of_the_parameters(data, result):
    name = "a[1,C(region)[T.south]]"
    assert name in result.params.index
    text = " ".join(str(result.summary()).split())
    assert "region[south] a " in text
    assert "region[south] beta1" not in text
    assert "wage ~ age + C(region) | age" in str(result.summary())
    assert result.conf_int().loc[name].is_monotonic_increasing
    assert result.wald_test(f"{name} = a[2,C(region)[T.south]]").df == 1
    assert len(result.get_prediction(data[:4]).summary_frame()) == 4


def test_one_expert_is_least_squares_with_offset_and_weights(data):
    formula = "log(wage + 50) ~ bs(age, df=4) * region + poly(t, 2)"
    mine = moestat.fit_formula(formula, data, n_experts=1, offset="t", weights="w", rng=0)
    used = data[data["w"] > 0]
    # statsmodels spreads splines over the rows it sees; formulas here over all rows, weights or no.
    design = mine.data.formula.designs(used)[0].to_numpy()
    import statsmodels.api as sm

    other = sm.WLS(np.log(used["wage"] + 50) - used["t"], sm.add_constant(design), used["w"]).fit()
    own = mine.params[mine.params.index.str.match(r"a\[1,(?!t\])|b\[")].to_numpy()
    assert np.allclose(own, other.params, rtol=1e-6, atol=1e-8)
    assert mine.theta[mine.param_names.index("a[1,t]")] == pytest.approx(1.0, rel=1e-14)
    assert "a[1,t]" not in mine.tidy()["name"].tolist()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("age + I(age^2)", "age + I(age**2)"),
        ("I((age + t)^2)", "I(age**2 + 2 * age * t + t**2)"),
        ("(age + t)^2", "age + t + age:t"),
        ("sqrt(age) + log1p(t)", "np.sqrt(age) + np.log1p(t)"),
        ("factor(year)", "C(year)"),
        ("pmin(age, 40) + pmax(age, 40)", "np.minimum(age, 40) + np.maximum(age, 40)"),
        ("`a^b` + I(`a^b`^2)", "t + I(t**2)"),
    ],
)
def test_formulas_mean_what_they_mean_in_r(data, tmp_path, written, meant):
    data = data.assign(**{"a^b": data["t"]})
    theirs = moestat.fit_formula(f"wage ~ {written}", data, n_experts=1)
    ours = moestat.fit_formula(f"wage ~ {meant}", data, n_experts=1)
    assert theirs.llf == pytest.approx(ours.llf, rel=1e-10)
    theirs.save(tmp_path / "fit.npz")
    again = moestat.load(tmp_path / "fit.npz")
    np.testing.assert_allclose(again.predict(data[:9]), ours.predict(data[:9]), rtol=1e-6)


def test_one_expert_is_statsmodels_formula(data):
    mine = moestat.fit_formula("wage ~ age * C(region)", data, n_experts=1, rng=0)
    other = smf.ols("wage ~ age * C(region)", data).fit()
    names = {"b[1]": "Intercept"} | {f"a[1,{n}]": n for n in other.params.index if n != "Intercept"}
    assert set(names) <= set(mine.params.index)
    for name, theirs in names.items():
        assert mine.params[name] == pytest.approx(other.params[theirs], rel=1e-7)
    assert mine.llf == pytest.approx(other.llf, rel=1e-10)


def test_predictions_survive_every_way_to_store_them(data, tmp_path):
    formula = "wage ~ bs(age, df=4) + C(year) | scale(age) + region"
    result = moestat.fit_formula(formula, data, n_experts=2, n_starts=4, rng=0)
    new = data[["age", "year", "region"]][5:9]
    expected = result.predict(new)
    assert np.allclose(expected, result.fittedvalues[5:9], rtol=1e-12)
    result.save(tmp_path / "fit.npz")
    result.without_data().save(tmp_path / "small.npz")
    for again in (
        pickle.loads(pickle.dumps(result)),
        moestat.load(tmp_path / "fit.npz"),
        moestat.load(tmp_path / "small.npz"),
    ):
        assert np.array_equal(again.predict(new), expected)
        assert np.array_equal(again.predict({n: new[n].tolist() for n in new}), expected)


def test_a_mixture_without_inputs(data):
    result = moestat.fit_formula("wage ~ 1 | 1", data, n_experts=2, n_starts=4, rng=0)
    assert result.family.n_free_params == 5
    assert np.ptp(result.predict(data[:5])) == 0.0
    assert np.isfinite(result.bse[["b[1]", "b[2]", "beta0[1]"]]).all()


def test_a_constant_gate_and_classes(data):
    labelled = data.assign(high=np.where(data["wage"] > 35, "yes", "no"))
    result = moestat.fit_formula("high ~ t | 1", labelled, "multinomial", n_experts=1, rng=0)
    logit = smf.logit("no ~ t", labelled.assign(no=(labelled["high"] == "no") * 1)).fit(disp=0)
    assert np.allclose(result.params[["b[1,no]", "a[1,no,t]"]], logit.params, rtol=1e-7)
    assert result.predict_proba(data[:3]).shape == (3, 2)
    assert result.predict(data[:3]).index.equals(data.index[:3])


@pytest.mark.parametrize("terms", ["0 + age", "age - 1", "0 + region + age", "0 + region:age"])
def test_experts_without_an_intercept_are_least_squares_without_one(data, terms):
    result = moestat.fit_formula(f"wage ~ {terms} | 1", data, n_experts=1, rng=0)
    least = smf.ols(f"wage ~ {terms}", data).fit()
    assert result.llf == pytest.approx(least.llf, abs=1e-8)
    slopes = result.params[[f"a[1,{name}]" for name in least.params.index]]
    assert np.allclose(slopes, least.params, rtol=1e-6)
    assert result.aic == pytest.approx(2 * (len(least.params) + 1) - 2 * least.llf)
    assert np.allclose(result.predict(data[::-1])[::-1], result.fittedvalues)


def test_gates_keep_their_intercept(data):
    result = moestat.fit_formula("wage ~ 0 + region + age", data, n_experts=2, rng=0)
    with pytest.raises(ValueError, match="fixed: 'wage ~ 0 \\+ age' leaves out"):
        moestat.fit_formula("wage ~ 0 + age", data, n_experts=2, rng=0, fixed={"b": 1.0})
    assert {"beta0[1]", "a[1,region[west]]"} <= set(result.params.index)


WRONG = {
    "wage ~ age +": "cannot|got 'wage ~ age \\+'",
    "wage ~ nope": "no column 'nope'",
    "wage ~ foo(age)": "no column 'foo'",
    "nope ~ age": "no column 'nope'",
    "wage ~ age | 0 + age": "always has an intercept",
    "~ age": "without one response",
    "wage + age ~ age": "without one response",
    "wage ~ age | age | age | age": "with 3 bars",
    "wage ~ log(age - 50)": "infinite or undefined",
    "wage ~ log(region)": "cannot evaluate '1 \\+ log\\(region\\)'",
    "wage ~ gap": "'gap' has 1 missing values, the first in row 3",
}


@pytest.mark.parametrize("formula", WRONG)
def test_a_wrong_formula_is_one_clear_error(data, formula):
    gap = data["t"].where(data.index != 3)
    with pytest.raises(ValueError, match=WRONG[formula]) as error:
        moestat.fit_formula(formula, data.assign(gap=gap), n_experts=1)
    assert "\n" not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize(
    ("more", "fewer"),
    [
        ("wage ~ age + I(2 * age)", "wage ~ age"),
        ("wage ~ region + C(region)", "wage ~ region"),
        ("wage ~ cr(age, df=4)", "wage ~ cr(age, df=4) - 1"),
    ],
)
def test_dependent_columns_are_fitted_as_those_of_arrays_are(data, more, fewer):
    """Splines whose columns add to 1, too: predictions are those without a column."""
    with pytest.warns(AliasedWarning, match="are linear functions of each other"):
        result = moestat.fit_formula(more, data, n_experts=1, rng=0)
    without = moestat.fit_formula(fewer, data, n_experts=1, rng=0)
    assert result.llf == pytest.approx(without.llf, abs=1e-6)
    assert result.aic == pytest.approx(without.aic, abs=1e-6)
    np.testing.assert_allclose(result.predict(data), without.predict(data), rtol=1e-6)


def test_marginal_effects_are_of_columns_of_the_data_not_of_terms(data):
    formula = "wage ~ age + I(age ** 2) + region + C(kind) + flag"
    kind = np.arange(len(data)) % 3
    given = data.assign(kind=kind, flag=kind == 1)
    result = moestat.fit_formula(formula, given.assign(flag=data["t"] > 2), n_experts=1, rng=0)
    effects, coefficients = result.get_margeff(), result.tidy().set_index("term")["estimate"]
    found = dict(zip(effects.names, effects.effect, strict=True))
    slope = coefficients["age"] + 2.0 * coefficients["I(age ** 2)"] * data["age"].mean()
    assert found.pop("age") == pytest.approx(slope, rel=1e-6)
    assert found.pop("kind: 2 - 0") == pytest.approx(coefficients["C(kind)[T.2]"])
    levels = [name for name in found if name.startswith("region")]
    first = min(data["region"].astype(str))
    for name in levels:
        level = name.removeprefix("region: ").removesuffix(f" - {first}")
        assert found.pop(name) == pytest.approx(coefficients[f"region[T.{level}]"])
    assert list(found) == ["kind: 1 - 0", "flag: True - False"]
    again = result.without_data()
    with pytest.raises(ValueError, match="not in memory; give newdata="):
        again.get_margeff()


@pytest.mark.parametrize("term", ["bs(age, df=4)", "log(age)", "poly(age, 2)", "cr(age, df=4) - 1"])
def test_marginal_effects_stay_within_the_data(data, term):
    """At its ends a spline knows one side only."""
    result = moestat.fit_formula(f"wage ~ {term}", data, n_experts=1, rng=0)
    at = np.linspace(data["age"].min(), data["age"].max(), 5)[1:-1]
    effects = result.get_margeff()
    assert effects.names == ["age"]
    assert np.isfinite(effects.sd).all()
    slopes = [np.diff(result.predict({"age": [a - 1e-3, a + 1e-3]}))[0] / 2e-3 for a in at]
    assert min(slopes) - 3.0 < effects.effect[0] < max(slopes) + 3.0


def test_wrong_arguments_are_one_clear_error(data):
    def refused(match, *args, **options):
        with pytest.raises(ValueError, match=match):
            moestat.fit_formula(*args, **options)

    refused("formula must be text", 3, data)
    refused("data must be a data frame", "wage ~ age", np.zeros(3))
    refused("no column 'nope'", "wage ~ age", data, weights="nope")
    refused("offset must be one column", "wage ~ age", data, offset="age + t")
    refused("offset: 'age' is a term", "wage ~ age", data, offset="age")
    refused("a single linear predictor", "region ~ age", data, "multinomial", offset="t")
    refused("family must be the name", "wage ~ age", data, moestat.family("gaussian"))
    refused("gate_inputs is an argument of moestat.fit", "wage ~ age", data, gate_inputs=[0])


def test_new_data_must_fit_the_formula(result, data):
    new = data[:3]
    for wrong, match in (
        (new.assign(region="east"), "'region' has 'east', which is not in the data of the fit"),
        (new.drop(columns="age"), "no column 'age'"),
        (new.assign(age=np.nan), "'age' has 3 missing"),
        (np.zeros((3, 3)), "data must be a data frame"),
    ):
        with pytest.raises(ValueError, match=match):
            result.predict(wrong)


def test_a_new_level_of_a_coded_number_is_refused(data):
    result = moestat.fit_formula("wage ~ C(year)", data, n_experts=1, rng=0)
    with pytest.raises(ValueError, match=r"not in the data of the fit: .*1999"):
        result.predict({"year": [1999, 2000]})


def test_inputs_of_gate_and_experts_without_formula():
    F = moestat.family("gaussian", gate="softmax", n_features=2, gate_inputs=[1], expert_inputs=[])
    assert F.n_free_params == 2 + 2 + 2
    assert pickle.loads(pickle.dumps(F)).table == F.table
    assert np.all(F.typical(0)[F.unread_positions] == 0.0)
    for options in ({"gate_inputs": [2]}, {"expert_inputs": ["a"]}, {"offset": -1}):
        with pytest.raises(
            ValueError, match=f"{next(iter(options))} must hold positions of inputs"
        ):
            moestat.family("gaussian", gate="softmax", n_features=2, **options)
    with pytest.raises(ValueError, match="uses all inputs"):
        moestat.family("gaussian", gate="sigmoid-euclidean", n_features=2, gate_inputs=[0])


@pytest.mark.parametrize("term", ["C(b)", "factor(b)", "C(b):age", "I(~b)"])
def test_truth_values_are_whole_numbers_in_new_data(data, term):
    """A level of truth values or numbers is the same level in new data of the other type."""
    frame = data.assign(b=data["year"] > 2000)
    for own, other in ((bool, int), (int, bool), (int, "boolean"), (bool, "Int8")):
        result = moestat.fit_formula(
            f"wage ~ age + {term}", frame.astype({"b": own}), n_experts=1, rng=0
        )
        new = frame.astype({"b": other})
        np.testing.assert_array_equal(result.predict(new), result.predict())


def test_a_column_with_the_name_of_another_term_is_refused(data):
    """One of two terms with one name, the intercept among them, would be left out in silence."""
    for name, formula in (
        ("1", "wage ~ `1` + age"),
        ("1", "wage ~ age | `1`"),
        ("1", "wage ~ ."),
        ("Intercept", "wage ~ `Intercept`"),
        ("Intercept", "wage ~ 0 + `Intercept`"),
        ("age:t", "wage ~ age:t + `age:t`"),
        ("age:t", "wage ~ age:t | `age:t`"),
        ("region[T.south]", "wage ~ region | `region[T.south]`"),
    ):
        frame = data.assign(**{name: np.sin(np.arange(len(data)))})
        with pytest.raises(ValueError, match=r"formula: .*rename"):
            moestat.fit_formula(formula, frame, rng=0)
        alone = moestat.fit_formula(f"wage ~ I(`{name}`) + age", frame, n_experts=1, rng=0)
        assert alone.family.n_free_params == 4


def test_columns_may_have_names_with_dots_and_numbers_as_labels(data, tmp_path):
    frame = data[["wage", "age", "year", "t"]]
    plain = moestat.fit_formula("wage ~ age + C(year) + log(t)", frame, n_experts=1, rng=0)
    names = {"wage": "my.wage", "age": "age.now", "year": "t.year", "t": "t.t"}
    dotted = moestat.fit_formula(
        "`my.wage` ~ `age.now` + C(`t.year`) + log(`t.t`)",
        frame.rename(columns=names).assign(t="word"),
        n_experts=1,
        rng=0,
    )
    numbers = {"wage": 0, "age": 2, "year": 3, "t": 4}
    numbered = moestat.fit_formula(
        "`0` ~ `2` + C(`3`) + log(`4`)", frame.rename(columns=numbers), n_experts=1, rng=0
    )
    effects = np.sort(plain.get_margeff().effect)
    for result, new in ((dotted, names), (numbered, numbers)):
        rows = frame.rename(columns=new)
        result.save(tmp_path / "kept.json")
        for each in (result, moestat.load(tmp_path / "kept.json")):
            np.testing.assert_allclose(each.predict(rows), plain.predict(frame), rtol=1e-12)
            np.testing.assert_allclose(np.sort(each.get_margeff().effect), effects, rtol=1e-9)
            assert each.log_likelihood(rows, rows[new["wage"]]) == pytest.approx(
                plain.llf, rel=1e-12
            )


def test_names_are_quoted_as_in_statsmodels(data):
    spaced = data.rename(columns={"age": "age (years)", "wage": "a wage"})
    quoted = moestat.fit_formula(
        "Q('a wage') ~ bs(Q('age (years)'), df=4) + Q(\"age (years)\"):t | Q('age (years)')",
        spaced,
        n_experts=1,
        rng=0,
    )
    ticked = moestat.fit_formula(
        "`a wage` ~ bs(`age (years)`, df=4) + `age (years)`:t | `age (years)`",
        spaced,
        n_experts=1,
        rng=0,
    )
    assert quoted.llf == ticked.llf
    assert quoted.params.equals(ticked.params)
    assert quoted.predict(spaced[:3]).equals(ticked.predict(spaced[:3]))
