"""Summaries, tidy tables and comparisons of fits: the user's words, significant digits."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.base.warnings import MoEWarning
from moestat.estimation.tables import significant


@pytest.fixture(scope="module")
def data():
    """Two lines in inputs whose units are 1e8 apart, with a factor."""
    rng = np.random.default_rng(0)
    n = 600
    income = rng.uniform(2e4, 2e5, n)
    debt = rng.uniform(0.0, 1e-3, n)
    sex = rng.choice(["female", "male"], n)
    first = rng.random(n) < 1.0 / (1.0 + np.exp(-(income - 1e5) / 2e4))
    share = np.where(first, 0.5 + 2e-6 * income + 0.2 * (sex == "male"), 0.1 + 300.0 * debt)
    share += 0.05 * rng.normal(size=n)
    return pd.DataFrame({"income": income, "debt": debt, "sex": sex, "share": share})


@pytest.fixture(scope="module")
def fit(data):
    return moestat.fit_formula("share ~ income + debt + sex | income", data, rng=0)


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9])
def test_estimates_have_significant_digits_in_any_unit(data, unit):
    moved = data.assign(income=data["income"] * unit)
    result = moestat.fit_formula("share ~ income | 1", moved, n_experts=1, rng=0)
    frame = result.summary().frame.set_index("name")
    shown = next(row.cells for row in result.summary().rows if row.cells[0] == "income")
    exact = frame.loc[
        "a[1,income]", ["estimate", "std_error", "statistic", "conf_low", "conf_high"]
    ]
    written = [float(shown[c]) for c in (2, 3, 4, 6, 7)]
    assert np.allclose(written, exact.astype(float), rtol=5e-3)
    assert abs(written[0]) > 0.0


def test_sections_are_gate_and_experts_in_the_words_of_the_data(fit):
    text = fit.summary().as_text()
    headings = [row.cells[0] for row in fit.summary().rows if row.heading]
    assert headings[:2] == ["Gate: expert 1 against expert 2", "Gate: expert 2 is the reference"]
    assert [h.partition(" (")[0] for h in headings[2:]] == ["Expert 1", "Expert 2"]
    assert "sex[male]" in text
    assert "Reference levels: sex = female." in text
    assert re.search(r"^  income +beta1 ", text, flags=re.MULTILINE)
    assert "a[1,income]" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "Iterations" not in text


def test_the_level_of_intervals_is_the_users(fit):
    half = fit.summary(alpha=0.5)
    assert "[0.25" in half.as_text()
    assert "0.75]" in half.as_text()
    inner, outer = half.frame, fit.summary().frame
    known = inner["std_error"].notna()
    assert (inner["conf_high"] < outer["conf_high"])[known].all()
    with pytest.raises(ValueError, match="alpha"):
        fit.summary(alpha=2.0)


def test_tidy_tables_have_the_numbers_of_the_fit(fit):
    frame = fit.tidy().set_index("name")
    known = frame.index[frame["status"] == "estimated"]
    shown = frame.index[frame["status"] != "reference"]
    assert np.array_equal(frame.loc[shown, "estimate"], fit.params[shown])
    assert shown.sort_values().equals(fit.params.index.sort_values())
    assert np.array_equal(frame.loc[known, "std_error"], fit.bse[known])
    assert np.allclose(frame.loc[known, ["conf_low", "conf_high"]], fit.conf_int().loc[known])
    slopes = [name for name in known if not name.startswith("log ")]
    assert np.allclose(frame.loc[slopes, "statistic"], fit.tvalues[slopes])
    assert np.allclose(frame.loc[slopes, "p_value"], fit.pvalues[slopes])
    assert set(frame.loc[frame["part"] == "gate", "expert"]) == {1, 2}
    again = pd.read_csv(io.StringIO(fit.summary().as_csv()))
    assert np.array_equal(again["estimate"], fit.tidy()["estimate"])


@pytest.mark.parametrize("labels", [[2, 3, 7], ["no", "so", "yes"], [False, True], ["10", "20"]])
def test_classes_have_their_labels_in_names(labels):
    rng = np.random.default_rng(3)
    y = np.array(labels)[rng.integers(len(labels), size=300)]
    X = pd.DataFrame({"age": rng.normal(size=300)})
    result = moestat.fit("multinomial", X, y, n_experts=1, rng=0)
    named = [str(label) for label in np.unique(y)]
    assert [name for name in result.param_names if name.startswith("b[")] == [
        f"b[1,{label}]" for label in named[:-1]
    ]
    headings = [row.cells[0] for row in result.summary().rows if row.heading]
    assert headings == [f"Expert 1: {label} against {named[-1]}" for label in named[:-1]]
    assert list(dict.fromkeys(result.tidy()["class"].dropna())) == named[:-1]


def test_what_is_not_estimated_is_said_in_words():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"age": rng.normal(size=200), "unit": 1.0})
    y = X["age"] + rng.normal(size=200)
    with pytest.warns(MoEWarning, match="constant"):
        held = moestat.fit("gaussian", X, y, n_experts=1, rng=0)
    status = held.tidy().set_index("name")["status"]
    assert status["a[1,unit]"] == "fixed: constant input"
    assert "beta0[1]" not in status  # a gate of one expert has nothing to say
    bounded = moestat.fit("gaussian", X[["age"]], y, n_experts=1, rng=0, bounds={"a": (-0.5, 0.5)})
    assert bounded.tidy().set_index("name")["status"]["a[1,age]"] == "on a bound"
    assert "(on a bound)" in bounded.summary().as_text()
    assert ">on a bound<" in bounded.summary().as_html()
    assert "{on a bound}" in bounded.summary().as_latex()


def test_markup_in_names_is_text():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["<b>", "50%_of\\a&b", "x^2 ~ {z}"])
    result = moestat.fit("gaussian", X, X["<b>"] + rng.normal(size=80), n_experts=1, rng=0)
    summary = result.summary()
    html, latex = summary.as_html(), summary.as_latex()
    assert html == summary._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert r"50\%\_of\textbackslash{}a\&b" in latex
    assert r"x\textasciicircum{}2 \textasciitilde{} \{z\}" in latex
    assert latex.count("{tabular}") == 4
    assert str(summary) == summary.as_text() == repr(summary)
    assert "<b>" in str(summary)


def test_tables_of_models_line_up(data, fit):
    one = moestat.fit_formula("share ~ income | 1", data, n_experts=1, rng=0)
    table = moestat.compare({"one": one, "two": fit})
    assert table.head == ("", "one", "two")
    rows = {row.cells[0]: row.cells for row in table.rows if not row.heading}
    assert rows["Log-likelihood"][1:] == (f"{one.llf:.2f}", f"{fit.llf:.2f}")
    headings = [row.cells[0] for row in table.rows if row.heading]
    assert headings == ["Gate: expert 1", "Expert 1", "Expert 2", "Fit"]
    assert set(table.frame["model"]) == {"one", "two"}
    assert len(table.frame) == len(one.tidy()) + len(fit.tidy())
    assert table.as_latex().startswith("\\begin{table}")
    assert "<table>" in table.as_html()
    assert pd.read_csv(io.StringIO(table.as_csv())).shape == table.frame.shape
    assert moestat.compare([one, fit]).head == ("", "(1)", "(2)")


@pytest.mark.parametrize("fits", [{}, [], None, "fit", {"a": 1}, [1]])
def test_only_fits_can_be_compared(fits):
    with pytest.raises(ValueError, match="fits"):
        moestat.compare(fits)


@pytest.mark.parametrize("digits", [1, 2, 4, 7])
@pytest.mark.parametrize("value", [0.0, 1.0, 9.99999, -0.00123456, 123456.7, 1.5e-9, -3.25e12])
def test_significant_digits_are_correct(value, digits):
    written = significant(value, digits)
    assert float(written) == pytest.approx(value, rel=10.0 ** (1 - digits) / 2)
    assert np.isnan(float(significant(np.nan, digits)))


def test_a_first_summary_loads_no_tables():
    code = (
        "import sys, numpy as np, moestat\n"
        "x = np.linspace(-1, 1, 60)\n"
        "result = moestat.fit('gaussian', x, x + np.sin(9 * x), n_experts=1, rng=0)\n"
        "str(result.summary())\n"
        "print([m for m in ('pandas', 'statsmodels', 'polars') if m in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_thresholds_belong_to_their_expert_and_are_called_by_their_class():
    from moestat.estimation.data.data import Data
    from moestat.estimation.data.naming import named_terms

    family = moestat.family("ordinal", gate="softmax", n_experts=1, n_classes=4)
    grades = np.array(["low", "mid", "high", "top"])
    data = Data(np.empty((0, 1)), np.empty(0), np.empty(0), ("age",), "grade", grades)
    gaps = [term for term in named_terms(family, data) if "gap" in term.symbol]
    assert [term.label.partition(": ")[2] for term in gaps] == ["mid", "high"]
    assert all(term.outcome is None for term in gaps)


@pytest.mark.parametrize("equal", ["nu", {"nu": True}])
def test_one_variance_of_all_experts(data, equal):
    result = moestat.fit_formula("share ~ income | income", data, rng=0, equal=equal)
    variances = result.tidy().query("term == 'log variance'")
    assert variances["estimate"].nunique() == 1
    assert "log variance" in str(result.summary())
