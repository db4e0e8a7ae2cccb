"""What people pass to a fit: accepted with its names, or refused in one message."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import moestat
from moestat.base.warnings import ConstantColumnWarning
from moestat.estimation.starts import RandomStarts

ONE_START = {"starts": [RandomStarts(1)], "rng": 0}


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    return X, X @ [1.0, -2.0] + 0.5 + 0.3 * rng.normal(size=120)


@pytest.fixture(scope="module")
def labels(arrays):
    rng = np.random.default_rng(1)
    return np.where(arrays[0][:, 0] + rng.logistic(size=120) > 0.0, 1, 2)


@pytest.fixture(scope="module")
def regression(arrays):
    return moestat.fit("gaussian", *arrays, n_experts=1, **ONE_START)


def frames(X):
    yield pd.DataFrame(X, columns=["age", "height"])
    yield pl.DataFrame(X, schema=["age", "height"])
    yield pd.DataFrame(X, columns=["age", "height"], index=np.arange(7, 127)).astype("Float64")


def test_a_model_by_name_has_the_sizes_of_the_data(arrays, labels, regression):
    X, y = arrays
    family = moestat.family("gaussian", gate="softmax", n_experts=1, n_features=2)
    explicit = moestat.fit(family, X, y, **ONE_START)
    assert regression.family == family
    assert np.array_equal(regression.params, explicit.params)
    words = np.array(["a", "b", "c"])[np.arange(120) % 3]
    bounds = {"b": (-3.0, 3.0)}
    named = moestat.fit(
        "multinomial", X, words, n_experts=1, gate="sigmoid", bounds=bounds, **ONE_START
    )
    assert (named.family.n_features, named.family.n_classes) == (2, 3)
    assert named.family.gate.name == "sigmoid"
    assert named.family.box["b"] == (-3.0, 3.0)


def test_frames_name_the_coefficients(arrays, regression):
    X, y = arrays
    for frame in frames(X):
        result = moestat.fit("gaussian", frame, y, n_experts=1, **ONE_START)
        assert np.array_equal(result.theta, regression.params)
        assert result.params["a[1,height]"] == regression.blocks["a"][0, 1]
        assert result.bse["a[1,age]"] == regression.bse[result.param_names.index("a[1,age]")]
        assert list(result.conf_int().columns) == ["conf_low", "conf_high"]
        assert result.cov_params().loc["a[1,age]", "b[1]"] == result._covariance[4, 3]
        assert "  height  " in str(result.summary())
        columns = [frame.columns[1], frame.columns[0]]
        assert np.array_equal(result.predict(frame[columns]), regression.predict(X))
        assert np.array_equal(result.predict(X), regression.predict(X))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_predictions_check_the_columns(make, arrays):
    X, y = arrays
    frame = make({"age": X[:, 0], "height": X[:, 1]})
    result = moestat.fit("gaussian", frame, y, n_experts=1, **ONE_START)
    with pytest.raises(ValueError, match=r"age, height; missing: height; unknown: none"):
        result.predict(frame[["age"]])
    other = make({"age": X[:, 0], "size": X[:, 1]})
    with pytest.raises(ValueError, match="missing: height; unknown: size"):
        result.predict(other)
    with pytest.raises(ValueError, match=r"X must have shape \(any, 2\), got \(120, 3\)"):
        result.predict(np.zeros((120, 3)))


def test_one_series_is_one_named_input(arrays):
    X, y = arrays
    for series in (pd.Series(X[:, 0], name="age"), pl.Series("age", X[:, 0])):
        result = moestat.fit(
            "gaussian", series, pd.Series(y, name="cost"), n_experts=1, **ONE_START
        )
        assert result.param_names[3] == "a[1,age]"
        assert result.data.response == "cost"


def test_frames_without_names_are_arrays(arrays, regression):
    result = moestat.fit("gaussian", pd.DataFrame(arrays[0]), arrays[1], n_experts=1, **ONE_START)
    assert isinstance(result.params, np.ndarray)
    assert np.array_equal(result.params, regression.params)


LABELS = {
    "words": lambda y: np.array(["no", "yes"])[y - 1],
    "objects": lambda y: np.array(["no", "yes"], dtype=object)[y - 1],
    "list": lambda y: [["no", "yes"][label - 1] for label in y],
    "truth values": lambda y: y == 2,
    "truth values as objects": lambda y: (y == 2).astype(object),
    "0 and 1": lambda y: y - 1,
    "floats": lambda y: (y - 1).astype(float),
    "any integers": lambda y: np.array([-3, 40])[y - 1],
    "pandas words": lambda y: pd.Series(np.array(["no", "yes"])[y - 1]),
    "pandas categories": lambda y: pd.Series(np.array(["no", "yes"])[y - 1], dtype="category"),
    "polars words": lambda y: pl.Series(np.array(["no", "yes"])[y - 1].tolist()),
    "polars categories": lambda y: pl.Series(["no", "yes"], dtype=pl.Categorical)[(y - 1).tolist()],
}


@pytest.mark.parametrize("form", LABELS)
def test_labels_of_any_kind_come_back_as_they_were(form, arrays, labels):
    X, _ = arrays
    family = moestat.family("multinomial", gate="softmax", n_experts=1, n_features=2)
    expected = moestat.fit(family, X, labels, **ONE_START)
    given = LABELS[form](labels)
    for model in (family, "multinomial"):
        options = {} if model is family else {"n_experts": 1}
        result = moestat.fit(model, X, given, **options, **ONE_START)
        assert np.array_equal(result.params, expected.params)
        classes = np.unique(np.asarray(given))
        assert result.data.class_labels.tolist() == classes.tolist()
        assert np.array_equal(result.predict(X), classes[expected.predict(X) - 1])


def test_labels_of_classes_name_the_coefficients(arrays, labels):
    words = np.array(["no", "yes"])[labels - 1]
    frame = pd.DataFrame(arrays[0], columns=["age", "height"])
    result = moestat.fit("multinomial", frame, words, n_experts=1, **ONE_START)
    assert result.params.index.tolist() == ["b[1,no]", "a[1,no,age]", "a[1,no,height]"]


def masked(X):
    return np.ma.array(X, mask=np.arange(X.size).reshape(X.shape) == 7)


def with_column(X, column):
    return pd.DataFrame({"age": X[:, 0], "region": column})


REGIONS = np.array(["north", "south", "east"])[np.arange(120) % 3]
BAD_X = {
    "sparse": (sparse.csr_matrix, r"X is a sparse matrix.*X.toarray\(\)"),
    "masked": (masked, "X has 1 masked entries"),
    "complex": (lambda X: X + 0j, "X must be real"),
    "None": (lambda X: None, "X is missing: it must be an array, got None"),
    "word": (lambda X: "data.csv", "X must hold numbers"),
    "date": (lambda X: datetime(2020, 1, 1), "X must hold numbers|X must have shape"),
    "words": (lambda X: with_column(X, REGIONS), "column 'region' is categorical .*get_dummies"),
    "categories": (
        lambda X: with_column(X, pd.Categorical(REGIONS)),
        r"column 'region' is categorical \(category: east, north, south\)",
    ),
    "categories of numbers": (
        lambda X: with_column(X, pd.Categorical(np.arange(120) % 5)),
        r"column 'region' is categorical \(category: 0, 1, 2, ...\)",
    ),
    "polars words": (
        lambda X: pl.DataFrame({"region": REGIONS.tolist()}),
        r"column 'region' is categorical \(String: east",
    ),
    "polars categories": (
        lambda X: pl.DataFrame({"r": pl.Series(REGIONS.tolist(), dtype=pl.Categorical)}),
        "column 'r' is categorical",
    ),
    "missing": (
        lambda X: with_column(X, np.where(np.arange(120) == 5, np.nan, 1.0)),
        "column 'region' has 1 missing values, the first in row 5",
    ),
    "missing whole numbers": (
        lambda X: with_column(X, pd.array([None, *range(119)], dtype="Int64")),
        "column 'region' has 1 missing values, the first in row 0",
    ),
    "polars missing": (
        lambda X: pl.DataFrame({"age": [None, *X[1:, 0].tolist()], "b": X[:, 1]}),
        "column 'age' has 1 missing values, the first in row 0",
    ),
    "infinite": (
        lambda X: with_column(X, np.where(np.arange(120) == 5, np.inf, 1.0)),
        "column 'region' holds 1 infinite values",
    ),
    "dates in a column": (
        lambda X: with_column(X, pd.date_range("2020", periods=120)),
        "column 'region' holds dates or times",
    ),
    "two columns of one name": (
        lambda X: pd.DataFrame(X, columns=["age", "age"]),
        "two columns are called 'age'",
    ),
}


@pytest.mark.parametrize("case", BAD_X)
def test_inputs_that_are_not_numbers_are_refused_by_name(case, arrays):
    spoil, message = BAD_X[case]
    with pytest.raises(ValueError, match=message):
        moestat.fit("gaussian", spoil(arrays[0]), arrays[1], n_experts=1)


BAD_LABELS = {
    "missing": (lambda y: pd.Series(np.where(y == 1, None, "b")), "missing values, the first in"),
    "missing objects": (lambda y: np.where(y == 1, None, "b"), "missing values, the first in row"),
    "of two types": (
        lambda y: np.array([1, "b"], dtype=object)[y - 1],
        "labels of one type, got int, str",
    ),
    "dates": (lambda y: np.array(["2020", "2021"], dtype="M8[Y]")[y - 1], "holds dates or times"),
    "of one class": (np.ones_like, "at least two classes, got 1"),
    "in two axes": (
        lambda y: np.c_[y, y],
        r"shape \(n,\) for multinomial, got \(120, 2\)",
    ),
    "None": (lambda y: None, "y is missing"),
    "too few": (lambda y: y[:-1], "X has 120 samples but y has 119"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
def test_labels_that_are_none_are_refused(case, arrays, labels):
    spoil, message = BAD_LABELS[case]
    with pytest.raises(ValueError, match=message):
        moestat.fit("multinomial", arrays[0], spoil(labels), n_experts=1)


def test_real_responses_are_read_like_inputs(arrays):
    X, y = arrays
    with pytest.raises(ValueError, match="y must hold numbers"):
        moestat.fit("gaussian", X, y.astype(str), n_experts=1)
    with pytest.raises(ValueError, match="y has 1 missing values, the first in row 2"):
        moestat.fit("gaussian", X, pd.Series(np.where(np.arange(120) == 2, np.nan, y)), n_experts=1)


def test_rows_of_frames_belong_together_by_their_index(arrays):
    X, y = pd.DataFrame(arrays[0], columns=["a", "b"]), pd.Series(arrays[1])
    with pytest.raises(ValueError, match="different indexes"):
        moestat.fit("gaussian", X, y.iloc[::-1], n_experts=1)
    assert moestat.fit("gaussian", X.iloc[::-1], y.iloc[::-1], n_experts=1, **ONE_START).nobs == 120


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (None, {}, "family must be a family from moestat.family or the name of a likelihood"),
        (moestat.family, {}, "family must be a family"),
        ("no such", {}, "unknown likelihood 'no such'; known: 'multinomial', 'gaussian'"),
        ("gaussian", {"n_experts": 0}, "n_experts must be an integer >= 1, got 0"),
        (
            moestat.family("gaussian", gate="softmax", n_features=2),
            {"n_experts": 3},
            r"n_experts: allowed only if the family is given by name, such as"
            r" fit\('gaussian', X, y, n_experts=2\)",
        ),
    ],
)
def test_bad_models_are_refused(model, options, message, arrays):
    with pytest.raises(ValueError, match=message):
        moestat.fit(model, *arrays, **options)


def test_a_constant_column_goes_into_the_intercepts(arrays, regression):
    X, y = arrays
    wide = pd.DataFrame({"age": X[:, 0], "unit": np.full(120, 7.0), "height": X[:, 1]})
    with pytest.warns(ConstantColumnWarning, match="column 'unit' is constant"):
        result = moestat.fit("gaussian", wide, y, n_experts=1, **ONE_START)
    assert result.log_likelihood == pytest.approx(regression.log_likelihood, rel=1e-9)
    assert result.blocks["a"][0] == pytest.approx([1.0, 0.0, -2.0], abs=0.15)
    assert result.blocks["a"][0, 1] == 0.0
    assert result.df_resid == regression.df_resid
    assert np.allclose(result.predict(wide), regression.predict(X), atol=1e-5)
    assert "(fixed: constant input)" in str(result.summary())
    free = [name for name in result.param_names if "unit" not in name and "beta" not in name]
    assert np.allclose(result.bse[free], regression.bse[3:], rtol=1e-5)


def test_a_column_that_is_constant_where_weights_are_positive_counts_as_constant(arrays):
    X, y = arrays
    X = np.column_stack([X, np.arange(120) < 3])
    weight = (np.arange(120) >= 3).astype(float)
    with pytest.warns(ConstantColumnWarning, match="column 2 is constant"):
        result = moestat.fit("gaussian", X, y, n_experts=1, sample_weight=weight, **ONE_START)
    assert result.blocks["a"][0, 2] == 0.0


@pytest.mark.parametrize("gate", ["sigmoid-partial", "sigmoid-euclidean"])
def test_a_constant_column_without_an_intercept_is_refused(gate, arrays):
    X, y = np.column_stack([arrays[0], np.ones(120)]), arrays[1]
    with pytest.raises(
        ValueError, match=r"column 2 is constant.*has no intercept.*leave the column"
    ):
        moestat.fit("least-squares", X, y, gate=gate, n_experts=1)


def test_held_inputs_of_quadratic_scores():
    family = moestat.family("least-squares", gate="softmax-quadratic", n_features=3).holding([1])
    free = {family.param_names[j] for j in np.flatnonzero(family.lower < family.upper)}
    assert {name for name in free if name.startswith("A[1")} == {"A[1,0]", "A[1,2]", "A[1,5]"}
    with pytest.raises(ValueError, match=r"inputs are 0\.\.2, got \(3,\)"):
        family.holding([3])


def test_inputs_of_gate_and_experts_are_called_by_their_names():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=["z", "x b", "w"])
    y = np.where(table["x b"] + rng.normal(size=120) > 0, 2 + table["z"], -2 - table["z"])
    y = y + 0.3 * rng.normal(size=120)

    def llf(X, **read):
        return moestat.fit("gaussian", X, y, n_experts=2, rng=0, **read).log_likelihood

    known = llf(table.to_numpy(), gate_inputs=[1], expert_inputs=[0])
    turned = table[["w", "x b", "z"]]
    assert llf(turned, gate_inputs=["x b"], expert_inputs="z") == pytest.approx(known, abs=1e-6)
    with pytest.raises(ValueError, match="gate_inputs: unknown input 'q'; the inputs are z, x b"):
        llf(table, gate_inputs=["q"])
    with pytest.raises(ValueError, match=r"expert_inputs: unknown input 'z'; .* none by name"):
        llf(table.to_numpy(), expert_inputs=["z"])
