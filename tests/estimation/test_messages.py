"""What a user reads when a formula, data, or a constraint is wrong: the whole message of each."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import moestat

FORM = (
    'formula must be text such as "wage ~ age + C(region) | age": a response, terms of the experts'
    " and, after a bar, those of the gate if they are others; got "
)
COLUMNS = "columns are 'y', 'x', 'z', 'r', 'w', 'gap', 'minus', 'k'"
NO_COLUMN = f"formula: data has no column 'q', and there is no such function of formulas; {COLUMNS}"
UNSEEN = (
    "data: column 'r' has 'west', which is not in the data of the fit; its levels are north, south"
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 60
    x, z, y = rng.normal(size=(3, n))
    frame = pd.DataFrame(
        {"y": y, "x": x, "z": z, "r": np.where(np.arange(n) % 2, "south", "north")}
    )
    gap = frame["x"].where(frame.index != 3)
    return frame.assign(w=2 * x + 1, gap=gap, minus=-1.0, k=np.arange(n) % 3)


@pytest.fixture(scope="module")
def by_formula(data):
    return moestat.fit_formula("y ~ x + r", data, n_experts=1, rng=0)


@pytest.fixture(scope="module")
def by_frame(data):
    return moestat.fit("gaussian", data[["x", "z"]], data["y"], n_experts=1, rng=0)


def refused(message, call, *args, **options):
    """The call raises a ValueError with this one line and no other error behind it."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$") as error:
        call(*args, **options)
    assert error.value.__cause__ is None


FORMULAS = {
    "y": f"{FORM}'y', without one response before '~'",
    "": f"{FORM}''",
    "y + x ~ z": f"{FORM}'y + x ~ z', without one response before '~'",
    "y ~ x | z | x | z": f"{FORM}'y ~ x | z | x | z', with 3 bars",
    "y ~ (x": f"{FORM}'y ~ (x': Could not find matching context marker.",
    "y ~ x | 0 + z": (
        "formula: the part of the gate always has an intercept; leave out '0 +' or '- 1' in"
        " 'y ~ x | 0 + z'"
    ),
    "q ~ x": NO_COLUMN,
    "y ~ q": NO_COLUMN,
    "y ~ x | q": NO_COLUMN,
    "y ~ q(x)": NO_COLUMN,
    "y ~ log(x)": "formula: 'log(x)' of the experts is infinite or undefined in some rows, the"
    " first is row 1 (from 0): a logarithm needs numbers above 0",
    "log(minus) ~ x": "formula: the response 'log(minus)' is infinite or undefined in some rows",
    "y ~ gap": (
        "data: column 'gap' has 1 missing values, the first in row 3 (from 0); leave these rows"
        ' out (in a fit: missing="drop"), or impute the values'
    ),
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula(data, formula):
    refused(FORMULAS[formula], moestat.fit_formula, formula, data, n_experts=1)


def test_data_of_a_formula(data):
    refused("data has no rows", moestat.fit_formula, "y ~ x", data[:0])
    table = {"y": [1.0, 2.0, 3.0], "x": [1.0, 2.0]}
    refused("data: columns have different lengths, [2, 3]", moestat.fit_formula, "y ~ x", table)
    refused(NO_COLUMN, moestat.fit_formula, "y ~ x", data, weights="q")
    refused(NO_COLUMN, moestat.fit_formula, "y ~ x", data, offset="q")
    refused(
        "offset must be one column of numbers, not r[north], r[south]",
        moestat.fit_formula,
        "y ~ x",
        data,
        offset="r",
    )


NEW = {
    "a new level": ({"x": [1.0], "r": ["west"]}, UNSEEN),
    "no column": (
        {"x": [1.0]},
        "formula: data has no column 'r', which the fit reads; columns are 'x'",
    ),
    "words for numbers": (
        {"x": ["many"], "r": ["north"]},
        "data: column 'x' must hold numbers as in the fit, got 'many'",
    ),
    "missing": (
        {"x": [np.nan], "r": ["north"]},
        "data: column 'x' has 1 missing values, the first in row 0 (from 0); leave these rows out"
        ' (in a fit: missing="drop"), or impute the values',
    ),
}


@pytest.mark.parametrize("method", ["predict", "get_prediction"])
@pytest.mark.parametrize("case", NEW)
def test_new_data_of_a_formula(by_formula, method, case):
    new, message = NEW[case]
    refused(message, getattr(by_formula, method), pd.DataFrame(new))


def test_a_new_level_of_numbers(data):
    result = moestat.fit_formula("y ~ C(k)", data, n_experts=1, rng=0)
    refused(
        "data: in '1 + C(k)' levels that are not in the data of the fit: 5",
        result.predict,
        {"k": [5]},
    )


def test_frames(data, by_frame):
    refused("X: two columns are called 'x'", moestat.fit, "gaussian", data[["x", "x"]], data["y"])
    refused(
        "X: column 'r' is categorical (str: north, south); use moestat.fit_formula, or code it by"
        " columns of 0 and 1, one for each level but one, such as pandas.get_dummies(X,"
        " drop_first=True, dtype=float)",
        moestat.fit,
        "gaussian",
        data[["x", "r"]].astype({"r": "str"}),
        data["y"],
    )
    for method in (by_frame.predict, by_frame.get_prediction):
        refused(
            "X must have the columns of the fit, x, z; missing: z; unknown: w",
            method,
            data[["x", "w"]],
        )


KNOWN = "b[1], a[1,x], a[1,r[T.south]], log nu[1]"
CONSTRAINTS = {
    "a[1, x9] = 0": "unknown name 'a[1, x9]'",
    "a[1,x] = 0, a[1,x9": "unknown name 'a[1,x9'",
    "a[1,r[T.west]] = 0": "unknown name 'a[1,r[T.west]]'",
    "b[1] + slope = 1": "unknown name 'slope'",
    "b[1] * a[1,x] = 1": "it is not linear",
    "b[1] = ": "it is not linear",
}


@pytest.mark.parametrize("text", CONSTRAINTS)
def test_constraints(by_formula, text):
    message = f"constraints: cannot read {text!r}: {CONSTRAINTS[text]}; parameters are {KNOWN}"
    refused(message, by_formula.wald_test, text)


def test_a_level_with_a_comma_or_brackets_has_a_name(by_formula):
    test = by_formula.wald_test("a[1, r[T.south]] = 0, a[1,x] = 0")
    assert test.df == 2


def test_sizes_without_end_are_refused(by_frame):
    refused("alpha must be a number in (0, 0.999], got 1", by_frame.profile, "b[1]", alpha=1)
    message = "n_resamples must be at most 100,000, got 2147483648"
    refused(message, by_frame.bootstrap, 2**31)
    refused(message, moestat.bootstrap_lrt, by_frame, by_frame, 2**31)


def test_long_constraints_are_cut(by_frame):
    with pytest.raises(
        ValueError, match=r"^constraints: cannot read 'x+\.\.\.: unknown name"
    ) as error:
        by_frame.wald_test("x" * 500)
    assert len(str(error.value)) < 400


MESSY = {
    "usd": [f"${1000 + j}.50" for j in range(40)],
    "when": [f"{1 + j % 28:02d}/03/2024" for j in range(40)],
    "code": [f"{1000 + j // 2}" for j in range(40)],
    "total cost": np.arange(1.0, 41.0),
    "zero": np.r_[0.0, np.arange(39.0) + 1],
    "class": np.arange(40) % 3,
    "y": np.sin(np.arange(40.0)),
}


@pytest.mark.parametrize(
    ("formula", "hint"),
    [
        ("y ~ C(class)", "rename the column by data.rename(columns={'class': 'class_'})"),
        ('y ~ C(Q("class"))', "'class' is a keyword of Python"),
        ("y ~ zero + I(`class`^2) | 1", "and write class_"),
        ("usd ~ y", "look like amounts"),
        ("y ~ usd", "look like amounts"),
        ("log(usd) ~ y", "look like amounts"),
        ("y ~ when", "look like dates"),
        ("total cost ~ y", "between back-ticks: `total cost`"),
        ("log(total cost) ~ y", "between back-ticks: `total cost`"),
        ("y ~ log(zero)", "the first is row 0 (from 0): a logarithm needs numbers above 0"),
        ("y ~ offset(log(zero))", "of the offset is infinite"),
        ("Surv(y, zero + 2) ~ y", "the event of Surv must be 1, or True, where it was seen"),
    ],
)
def test_messy_columns_are_named_with_what_to_do(formula, hint):
    with pytest.raises(ValueError, match=re.escape(hint)):
        moestat.fit_formula(formula, pd.DataFrame(MESSY), n_experts=1, rng=0)


def test_amounts_in_words_are_named_in_frames_and_codes_stay_categories():
    data = pd.DataFrame(MESSY)
    with pytest.raises(ValueError, match=r"'usd'.*look like amounts"):
        moestat.fit("gaussian", data[["usd"]], data["y"], n_experts=1, rng=0)
    result = moestat.fit_formula("y ~ code", data, n_experts=1, rng=0)
    assert result.family.n_features == 19
    assert moestat.fit_formula("`total cost` ~ y", data, n_experts=1, rng=0).nobs == 40
    result = moestat.fit_formula("y ~ zero * class", data, n_experts=1, rng=0)
    assert "a[1,zero:class]" in result.params.index


def test_a_table_of_pyarrow_with_two_columns_of_one_name():
    pa = pytest.importorskip("pyarrow")
    table = pa.table([pa.array(MESSY["y"]), pa.array(MESSY["zero"])], names=["c", "c"])
    with pytest.raises(ValueError, match="two columns are called 'c'"):
        moestat.fit("gaussian", table, MESSY["y"], n_experts=1, rng=0)
