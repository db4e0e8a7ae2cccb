"""What a statistician types in the first hour, as typed, and what the answer must have."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.base.warnings import DataWarning, MisfitWarning
from moestat.estimation.columns import OLD_NAMES

ONE = {"n_experts": 1, "rng": 0}


@pytest.fixture(scope="module")
def d():
    rng = np.random.default_rng(0)
    n = 240
    table = pd.DataFrame({"x": rng.normal(size=n), "id": np.arange(n) // 4})
    table["site"], table["t"] = rng.choice(list("abc"), n), rng.uniform(1, 5, n)
    first = rng.random(n) < 1 / (1 + np.exp(-2 * table.x))
    table["y"] = np.where(first, 1 + table.x, -1 - table.x) + 0.3 * rng.normal(size=n)
    table["c"] = rng.poisson(np.exp(np.where(first, 1.5, 0.2) + 0.3 * table.x))
    table["b"] = rng.random(n) < 1 / (1 + np.exp(-table.x))
    table["w"] = np.where(table.b, "yes", "no")
    return table


@pytest.fixture(scope="module")
def fit(d):
    return moestat.fit_formula("y ~ x + site | x", d, rng=0)


@pytest.fixture(scope="module")
def counts(d):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MisfitWarning)
        return moestat.fit_formula("c ~ x + site | x", d, "poisson", rng=0)


def test_one_warning_says_what_y_looks_like(d):
    for formula, words in (("b ~ x", "multinomial"), ("c ~ x", "poisson")):
        with pytest.warns(MisfitWarning, match=f"family='{words}'") as caught:
            moestat.fit_formula(formula, d, **ONE)
        assert len(caught) == 1
    with pytest.raises(ValueError, match="for classes use family='multinomial'"):
        moestat.fit_formula("w ~ x", d, **ONE)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *(
            ("normal", "gaussian"),
            ("zip", "zero-inflated-poisson"),
            ("negbin", "negative-binomial"),
        ),
        *(("lognormal", "log-normal"), ("student", "student-t"), ("bernoulli", "binomial")),
    ],
)
def test_names_with_one_meaning_are_accepted(typed, meant):
    assert moestat.family(typed, n_experts=2).likelihood.name == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("linear", "gaussian"), ("tobit", "gaussian"), ("probit", "binomial"), ("binary", "binomial")],
)
def test_other_names_are_questioned(typed, meant):
    with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
        moestat.family(typed, n_experts=2)


def test_robust_errors_at_the_fit(d, fit):
    robust = moestat.fit_formula("y ~ x + site | x", d, cov_type="HC0", rng=0)
    assert robust.bse.equals(fit.get_robustcov_results("HC0").bse)
    clusters = fit.get_robustcov_results("cluster", "id")
    again = moestat.fit_formula(
        "y ~ x + site | x", d, cov_type="cluster", cov_kwds={"groups": "id"}, rng=0
    )
    assert again.bse.equals(clusters.bse)
    with pytest.raises(ValueError, match=r"give cov_kwds=\{'groups': \.\.\.\} in place of groups="):
        moestat.fit_formula("y ~ x", d, cov_type="cluster", groups="id", rng=0)
    model = moestat.MoERegressor(n_experts=1, cov_type="HC0", prior=None, random_state=0)
    errors = model.fit(d[["x"]], d.y).results_.bse
    direct = moestat.fit("gaussian", d[["x"]], d.y, cov_type="HC0", **ONE).bse
    np.testing.assert_allclose(errors, direct, rtol=1e-6)


def test_ratios_are_the_same_in_every_table(counts):
    table = counts.tidy(exponentiate=True).set_index("name")
    assert table.loc["a[1,x]", "scale"] == "rate ratio"
    assert table.loc["beta1[1,x]", "scale"] == "odds ratio"
    shown = counts.summary(exponentiate=True)
    heads = [row.cells[0] for row in shown.rows if row.heading]
    assert heads[0].endswith(": odds ratios")
    assert heads[2].endswith(": rate ratios")
    slope = f"{table.loc['a[1,x]', 'estimate']:.3f}"
    assert slope in str(shown)
    assert slope in shown.as_latex()
    assert slope[:4] in moestat.compare([counts], exponentiate=True).as_latex()
    assert shown.frame["std_error"].equals(table.reset_index()["std_error"])


def test_offsets_are_named_and_may_be_values(d):
    options = {**ONE, "offset": "log(t)"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MisfitWarning)
        one = moestat.fit_formula("c ~ x", d, "poisson", **options)
        others = [
            moestat.fit_formula("c ~ x", d, "poisson", offset=np.log(d.t), **ONE),
            moestat.fit_formula("c ~ x", d, "poisson", offset=np.log(d.t).tolist(), **ONE),
            moestat.fit("poisson", d[["x"]], d.c, offset=np.log(d.t), **ONE),
            moestat.fit(
                "poisson", d.x.to_numpy(), d.c.to_numpy(), offset=np.log(d.t.to_numpy()), **ONE
            ),
            moestat.fit_formula("c ~ x", d, "poisson", exposure="t", **ONE),
        ]
    assert "log(t)" in str(one.summary()).split("Offset")[1].splitlines()[0]
    assert "Offset" in one.summary().as_latex()
    for other in others:
        assert other.llf == pytest.approx(one.llf, rel=1e-10)
    new = d[:3].assign(offset=0.0)
    np.testing.assert_allclose(others[0].predict(new), one.predict(d[:3].assign(t=1.0)), rtol=1e-6)
    with pytest.raises(ValueError, match=r"offset must have shape \(240,\)"):
        moestat.fit_formula("c ~ x", d, "poisson", offset=[1.0, 2.0], **ONE)


def test_whole_terms_are_tested(fit):
    table = fit.wald_test_terms()
    assert fit.wald_test("site").df == table.df.sum() - table.df[["gate"]].sum() - 4
    assert fit.wald_test("site").statistic == pytest.approx(
        table.loc[("expert", "site"), "statistic"]
    )
    assert fit.wald_test("x").df == 3
    assert fit.wald_test("x, site = 0").df == 7
    with pytest.raises(ValueError, match="unknown name 'q'") as error:
        fit.wald_test("q = 0")
    assert "beta0[2]" not in str(error.value)
    with pytest.raises(ValueError, match="unknown parameter 'q'") as error:
        fit.profile("q")
    assert "beta0[2]" not in str(error.value)


def test_the_summary_is_for_a_paper(fit):
    short, long = str(fit.summary()), str(fit.summary(details=True))
    for words in ("Gain left", "Inertia", "Condition", "Solver", "Starts (agreeing)"):
        assert words not in short
        assert words in long
    assert "Reference levels: site = a." in short
    assert "site[b]" in short


def test_old_columns_are_read_for_one_release(fit):
    table = fit.tidy()
    with pytest.warns(FutureWarning, match="the column 'error' is the old name of 'std_error'"):
        assert table["error"].equals(table["std_error"])
    with pytest.warns(FutureWarning, match="old name"):
        assert table[["name", "lower"]].shape[1] == 2
    with pytest.warns(FutureWarning, match="old name"):
        assert table.pvalue.equals(table.p_value)
    with pytest.warns(FutureWarning, match="old name"):
        assert len(table.query("pvalue < 0.05 and part == 'expert'"))
    for old, new in OLD_NAMES.items():
        if new in table.columns:
            with pytest.warns(FutureWarning, match=re.escape(old)):
                assert table[old].equals(table[new])
    with pytest.raises(KeyError, match="nothing"):
        table["nothing"]
    with pytest.raises(AttributeError):
        table.nothing  # noqa: B018


@pytest.mark.parametrize(
    "ask",
    [
        lambda t, p, e: t.sort_values(p),
        lambda t, p, e: t.sort_values(by=[e, p], ascending=False),
        lambda t, p, e: t.set_index(p),
        lambda t, p, e: t.groupby(p).size(),
        lambda t, p, e: t.drop(columns=[p]),
        lambda t, p, e: t.rename(columns={p: "probability"}),
        lambda t, p, e: t.dropna(subset=p),
        lambda t, p, e: t.drop_duplicates(p),
        lambda t, p, e: t.agg({p: "min", e: "max"}),
        lambda t, p, e: t.pop(p),
        lambda t, p, e: t.nlargest(2, e),
        lambda t, p, e: pd.Series([p in t, t.at[1, p], t.iloc[1][p], t.get(e)[1]]),
        lambda t, p, e: t.apply(lambda row: row[e] - row[p], axis=1),
    ],
)
def test_methods_of_tables_take_old_columns(fit, ask):
    present = ask(fit.tidy().copy(), "p_value", "estimate")
    with pytest.warns(FutureWarning, match="old name"):
        old = ask(fit.tidy().copy(), "pvalue", "coef")
    assert old.equals(present)


def test_slips_are_told_in_words_of_the_user(d):
    with pytest.raises(ValueError, match=r"formula and data are swapped"):
        moestat.fit_formula(d, "y ~ x", **ONE)
    with pytest.raises(ValueError, match=r"X and y look swapped|are swapped: the order is fit"):
        moestat.fit("gaussian", d.y.to_numpy(), d[["x", "t"]].to_numpy(), **ONE)
    with pytest.warns(DataWarning, match=r"X is the series 'y' and y a table of one column, 'x'"):
        moestat.fit("gaussian", d.y, d[["x"]], **ONE)
    for column in ("x", "y"):
        slip = d.astype({column: object})
        slip.loc[7, column] = "12,5"
        with pytest.raises(ValueError, match=r"the text '12,5' in row 7 \(from 0\) is no number"):
            moestat.fit_formula("y ~ x", slip, **ONE)
    dead = d.assign(event=np.where(d.b, "dead", "alive"))
    with pytest.raises(ValueError, match=r"Surv\(time, event == 'dead'\)"):
        moestat.fit_formula("Surv(t, event) ~ x", dead, "weibull", **ONE)
    with pytest.raises(ValueError, match=r"multiply shares by the number of observations"):
        moestat.fit_formula("y ~ x", d.assign(share=1 / len(d)), weights="share", **ONE)


def test_select_shows_its_progress(d, capfd):
    found = moestat.select("gaussian", d[["x"]], d.y, k=(1, 2, 3), rng=0, verbose=True)
    assert found.chosen("bic") == 2
    assert "select: 3 of 3 fits" in capfd.readouterr().err
