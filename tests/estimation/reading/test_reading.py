"""Nothing about a user's table is lost, and nothing in it is touched."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import moestat
from moestat.base.warnings import MoEWarning
from moestat.estimation.search.agreement import search_of

QUICK = {"starts": [search_of(4, searches=1)], "rng": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    n = 160
    x, z = rng.uniform(0, 10, n), rng.normal(0, 100, n)
    first = rng.random(n) < 1 / (1 + np.exp(5 - x))
    y = np.where(first, 3 + 2 * x + 0.01 * z, 20 - x - 0.02 * z) + rng.normal(0, 0.5, n)
    index = [f"p{i}" for i in range(n)]
    group = rng.choice(list("stuvwz"), n)
    return pd.DataFrame({"a": x, "b": z, "y": y, "g": group}, index=index)


@pytest.fixture(scope="module")
def result(data):
    return moestat.fit("gaussian", data[["a", "b"]], data.y, **QUICK)


LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame(frame.to_dict("list")),
    "polars, lazy": lambda frame: pl.LazyFrame(frame.to_dict("list")),
    "pyarrow": lambda frame: pa.table(frame.to_dict("list")),
    "mapping": lambda frame: {name: frame[name].to_numpy() for name in frame},
    "mapping of lists": lambda frame: frame.to_dict("list"),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_of_any_library_give_the_same_fit_and_predictions_of_their_kind(
    library, data, result
):
    make = LIBRARIES[library]
    X = make(data[["a", "b"]])
    other = moestat.fit("gaussian", X, data.y.to_numpy(), **QUICK)
    assert np.array_equal(other.theta, result.theta)
    assert other.param_names == result.param_names
    turned = make(data[["b", "a"]])
    mean = other.predict(turned)
    np.testing.assert_allclose(np.asarray(mean, dtype=float), result.predict(data[["a", "b"]]))
    gate = other.predict(turned, "gate")
    if library == "pandas":
        assert mean.index.equals(data.index)
        assert gate.index.equals(data.index)
    elif library.startswith("polars"):
        assert isinstance(mean, pl.Series)
        assert isinstance(gate, pl.DataFrame)
    elif library == "pyarrow":
        assert isinstance(gate, pa.Table)
        assert gate.num_columns == 2
    by_formula = moestat.fit_formula("y ~ a + b | a", make(data), **QUICK)
    assert by_formula.data.features == ("a", "b")
    assert by_formula.responsibilities(make(data)).shape == (len(data), 2)


METHODS = {
    "predict": lambda r, X, y: r.predict(X),
    "gate": lambda r, X, y: r.predict(X, "gate"),
    "experts": lambda r, X, y: r.predict(X, "experts"),
    "quantile": lambda r, X, y: r.predict(X, "quantile", q=[0.1, 0.5]),
    "cdf": lambda r, X, y: r.predict(X, "cdf", y=y),
    "density": lambda r, X, y: r.predict(X, "density", y=y),
    "variance": lambda r, X, y: r.predict(X, "variance"),
    "responsibilities": lambda r, X, y: r.responsibilities(X, y),
    "score_samples": lambda r, X, y: r.score_samples(X, y),
    "quantile_residuals": lambda r, X, y: r.quantile_residuals(0, X=X, y=y),
    "simulate": lambda r, X, y: r.simulate(X, rng=0),
    "get_prediction": lambda r, X, y: r.get_prediction(X).summary_frame(),
}


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_the_result_read_columns_by_name_and_keep_the_index(method, data, result):
    ask = METHODS[method]
    some = data.sample(frac=0.5, random_state=1)
    straight = ask(result, some[["a", "b"]], some.y)
    turned = ask(result, some[["b", "a"]], some.y)
    assert turned.index.equals(some.index)
    np.testing.assert_array_equal(straight, turned)
    plain = ask(result, some[["a", "b"]].to_numpy(), some.y.to_numpy())
    np.testing.assert_array_equal(plain, straight)


def test_log_likelihoods_of_rows_add_up(data, result):
    halves = data[:70], data[70:]
    total = sum(result.log_likelihood(half[["b", "a"]], half.y) for half in halves)
    assert total == pytest.approx(result.llf, abs=1e-8)
    assert result.log_likelihood == result.llf
    assert result.score_samples().sum() == pytest.approx(result.llf, abs=1e-8)
    with pytest.raises(ValueError, match="X and y have different indexes"):
        result.log_likelihood(data[["a", "b"]], data.y.sample(frac=1, random_state=0))


def test_quantiles_distribution_and_density_agree(data, result):
    X = data[["a", "b"]]
    for q in (0.05, 0.5, 0.9):
        at = result.predict(X, "quantile", q=q)
        np.testing.assert_allclose(result.predict(X, "cdf", y=at), q, atol=1e-9)
    step = 1e-5
    slope = result.predict(X, "cdf", y=data.y + step) - result.predict(X, "cdf", y=data.y - step)
    np.testing.assert_allclose(
        slope / (2 * step), result.predict(X, "density", y=data.y), rtol=1e-4, atol=1e-7
    )
    draws = np.array([result.simulate(X, rng=seed) for seed in range(400)])
    error = draws.std(axis=0) / 20
    assert np.all(np.abs(draws.mean(axis=0) - result.predict(X)) < 5 * error)
    assert draws.var(axis=0).mean() == pytest.approx(result.predict(X, "variance").mean(), rel=0.05)


@pytest.mark.parametrize(
    "function",
    [
        lambda r, X, y: moestat.log_likelihood(r.family, r.theta, X, y),
        lambda r, X, y: moestat.score(r.family, r.theta, X, y),
        lambda r, X, y: moestat.hessian(r.family, r.theta, X, y),
        lambda r, X, y: moestat.responsibilities(r.family, r.theta, X, y),
        lambda r, X, y: moestat.gate_probabilities(r.family, r.theta, X),
        lambda r, X, y: moestat.dendrogram(r.family, r.theta, X, y),
        lambda r, X, y: r.family.mean(r.theta, X),
        lambda r, X, y: r.family.log_density(r.theta, X, y),
    ],
)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_functions_of_arrays_refuse_names_that_they_would_ignore(function, library, data, result):
    with pytest.raises(ValueError, match="X has named columns, b, a, and is read by position"):
        function(result, LIBRARIES[library](data[["b", "a"]]), data.y.to_numpy())


def test_functions_take_the_result(data, result):
    tree = moestat.dendrogram(result)
    assert tree.log_likelihood.size == 2
    assert tree.nobs == len(data)
    assert result.quantile_residuals().index.equals(data.index)


@pytest.mark.parametrize("what", ["y", "sample_weight", "groups"])
def test_series_with_another_index_are_refused(what, data):
    given = {"y": data.y, "sample_weight": data.a, "groups": data.g}
    given[what] = given[what].sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match=f"X and {what} have different indexes"):
        moestat.fit("gaussian", data[["a"]], n_experts=1, **given, **QUICK)


def test_labels_and_weights_of_the_rows_of_a_fit_are_read_by_the_index(data):
    """Also where the fit has left rows out: labels of all rows given to it then count."""
    gaps = data.assign(y=data.y.where(data.y < data.y.quantile(0.97)))
    result = moestat.fit("gaussian", gaps[["a"]], gaps.y, missing="drop", n_experts=2, **QUICK)
    assert result.data.dropped > 0
    few = gaps.dropna()
    same = moestat.fit("gaussian", few[["a"]], few.y, n_experts=2, **QUICK)
    for labels, one in ((data.g, few.g), (data.g.to_numpy(), few.g.to_numpy())):
        for call in (
            lambda fit, given: fit.classification_table(given).to_numpy(),
            lambda fit, given: fit.get_robustcov_results("cluster", groups=given).theta,
            lambda fit, given: moestat.bootstrap(fit, 3, "cluster", groups=given, rng=0).replicates,
        ):
            assert np.array_equal(call(result, labels), call(result, one))
            assert np.array_equal(call(result, labels), call(same, one))
    mixed = data.g.sample(frac=1, random_state=0)
    for refused in (
        lambda: result.classification_table(mixed),
        lambda: result.get_robustcov_results("cluster", groups=mixed),
        lambda: moestat.bootstrap(result, 3, "cluster", groups=mixed, rng=0),
        lambda: result.log_likelihood(data[["a"]], data.y, data.a.sample(frac=1, random_state=0)),
    ):
        with pytest.raises(ValueError, match="have different indexes"):
            refused()
    with pytest.raises(ValueError, match=r"labels must hold one label per row, shape \(\d+,\)"):
        result.classification_table([1, 2])


def test_no_rows_are_one_clear_error(data, result):
    none = data.iloc[:0][["a", "b", "y"]]
    X = none[["a", "b"]]
    for refused in (
        lambda: moestat.fit("gaussian", X, none.y),
        lambda: moestat.select("gaussian", X, none.y),
        lambda: moestat.Blocks.from_arrays(np.empty((0, 2)), np.empty(0)),
        lambda: result.get_prediction(X),
        lambda: result.simulate(X),
        lambda: result.log_likelihood(X, none.y),
    ):
        with pytest.raises(ValueError, match="X has no rows"):
            refused()
    assert len(result.predict(X)) == 0


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ([("u", "a"), ("u", "b")], ["('u', 'a')", "('u', 'b')"]),
        (["a", 1], ["a", "1"]),
        (pd.to_datetime(["2020", "2021"]), ["2020-01-01 00:00:00", "2021-01-01 00:00:00"]),
        ([0, 1], ["0", "1"]),
    ],
)
def test_names_that_are_no_words_are_names_but_for_positions(columns, names, data):
    frame = data[["a", "b"]].set_axis(columns, axis=1)
    result = moestat.fit("gaussian", frame, data.y, n_experts=1, **QUICK)
    assert [f"a[1,{name}]" for name in names] == result.param_names[4:6]
    if list(columns) != [0, 1]:
        other = frame[frame.columns[::-1]]
        pd.testing.assert_series_equal(result.predict(other), result.predict(frame))


def test_objects_that_are_numbers_are_numbers_in_formulas_too(data):
    given = data.assign(a=[Decimal(a) for a in data.a], y=data.y.astype(object))
    one, other = (
        moestat.fit_formula("y ~ a + c", frame, n_experts=1, rng=0)
        for frame in (given.assign(c=(data.b > 0).astype(object)), data.assign(c=data.b > 0))
    )
    assert one.llf == pytest.approx(other.llf, rel=1e-12)
    assert one.get_margeff().names == other.get_margeff().names == ["a", "c: True - False"]


def test_batches_of_pyarrow_and_repeated_columns(data):
    import pyarrow as pa

    batch = pa.RecordBatch.from_pandas(data[["a", "b", "y"]], preserve_index=False)
    result = moestat.fit_formula("y ~ a | 1", batch, n_experts=1, rng=0)
    assert result.predict(batch).type == pa.float64()
    twice = pd.concat([data, data[["a"]]], axis=1)
    with pytest.raises(ValueError, match="data: two columns are called 'a'"):
        moestat.fit_formula("y ~ a", twice)


def test_an_offset_may_be_a_column_with_any_name(data):
    odd = data.assign(**{"o o": data.b, "p^2": 0.5 * data.a})
    both = moestat.fit_formula("y ~ a + offset(`p^2`)", odd, offset="o o", n_experts=1, rng=0)
    plain = data.assign(q=data.b + 0.5 * data.a)
    one = moestat.fit_formula("y ~ a", plain, offset="q", n_experts=1, rng=0)
    assert both.llf == pytest.approx(one.llf, rel=1e-12)
    assert both.predict(odd).tolist() == pytest.approx(one.predict(plain).tolist())


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_with_missing_values_are_refused_or_left_out_and_counted(library, data):
    spoilt = data.astype({"g": object}).copy()
    spoilt.iloc[[3, 8], 0] = np.nan
    spoilt.iloc[5, 2] = np.nan
    spoilt.iloc[[9], 3] = None
    whole = data.drop(index=data.index[[3, 5, 8, 9]])
    given = LIBRARIES[library](spoilt)
    with pytest.raises(ValueError, match=r"missing values, the first in row . \(from 0\)"):
        moestat.fit_formula("y ~ a + g | a", given, n_experts=1, **QUICK)
    kept = moestat.fit_formula("y ~ a + g | a", given, n_experts=1, missing="drop", **QUICK)
    expected = moestat.fit_formula("y ~ a + g | a", whole, n_experts=1, **QUICK)
    assert np.array_equal(kept.theta, expected.theta)
    assert kept.data.dropped == 4
    assert set(range(160)) - set(kept.data.kept) == {3, 5, 8, 9}
    if library == "pandas":
        assert kept.predict().index.equals(whole.index)
    X, y = spoilt[["a", "b"]], spoilt.y
    arrays = moestat.fit("gaussian", X.to_numpy(), y.to_numpy(), n_experts=1, missing="drop", rng=0)
    assert arrays.data.dropped == 3
    frames = moestat.fit("gaussian", X, y, n_experts=1, missing="drop", rng=0)
    assert np.array_equal(frames.theta, arrays.theta)
    assert frames.resid.index.equals(data.index.drop(data.index[[3, 5, 8]]))


ORDER = ["low", "middle", "high"]


@pytest.mark.parametrize(
    "declared",
    [
        lambda y: pd.Series(pd.Categorical(y, categories=ORDER, ordered=True)),
        lambda y: pd.Categorical(y, categories=ORDER),
        lambda y: pl.Series(y.tolist(), dtype=pl.Enum(ORDER)),
        lambda y: pd.Series(pd.Categorical(y, categories=["never", *ORDER])),
    ],
)
def test_classes_have_the_declared_order(declared, data):
    cut = np.array(ORDER)[np.digitize(data.a + data.b / 100, [3, 6])]
    X = data[["a"]].reset_index(drop=True)
    one = moestat.fit("multinomial", X, declared(cut), n_experts=1, **QUICK)
    other = moestat.fit("multinomial", X, cut, n_experts=1, classes=ORDER, **QUICK)
    for result in (one, other):
        assert result.data.class_labels.tolist() == ORDER
        assert result.predict_proba(X).columns.tolist() == ORDER
        assert set(result.predict(X)) <= set(ORDER)
    assert np.array_equal(one.theta, other.theta)
    assert one.log_likelihood(X, cut) == pytest.approx(one.llf, abs=1e-9)
    with pytest.raises(
        ValueError, match="'huge', which is not in the data of the fit; its classes are low"
    ):
        one.responsibilities(X[:1], ["huge"])
    with pytest.raises(ValueError, match="classes must hold every label of y once"):
        moestat.fit("multinomial", X, cut, n_experts=1, classes=ORDER[:2], **QUICK)


def _of_parquet(frame, folder):
    frame.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


@pytest.mark.parametrize(
    "table",
    [lambda frame, folder: frame, lambda frame, folder: pa.Table.from_pandas(frame), _of_parquet],
    ids=["pandas", "pyarrow", "Parquet"],
)
def test_an_order_of_words_is_one_that_somebody_gave(table, data, tmp_path):
    words = np.array(ORDER)[np.digitize(data.a + data.b / 100, [3, 6])]
    frame = pd.DataFrame({"a": data.a.to_numpy(), "y": pd.Categorical(words)})
    with pytest.raises(ValueError, match="whose order is not known"):
        moestat.fit_formula("y ~ a", table(frame, tmp_path), "ordinal", n_experts=1, **QUICK)
    frame["y"] = pd.Categorical(words, categories=ORDER, ordered=True)
    own = moestat.fit_formula("y ~ a", table(frame, tmp_path), "ordinal", n_experts=1, **QUICK)
    assert own.data.class_labels.tolist() == ORDER


def test_labels_of_integers_are_labels_for_new_data(data):
    label = np.where(data.a > 5, 3, 2)
    label[::7] = 5 - label[::7]
    result = moestat.fit("multinomial", data[["a"]], label, n_experts=1, **QUICK)
    assert result.log_likelihood(data[["a"]], label) == pytest.approx(result.llf, abs=1e-9)


@pytest.mark.parametrize("column", [lambda y: y.to_frame(), lambda y: y.to_numpy()[:, None]])
def test_responses_may_be_a_column(column, data, result):
    other = moestat.fit("gaussian", data[["a", "b"]], column(data.y), **QUICK)
    assert np.array_equal(other.theta, result.theta)


def test_groups_are_kept_and_used(data):
    fit = moestat.fit("gaussian", data[["a"]], data.y, n_experts=1, groups=data.g, **QUICK)
    given = fit.get_robustcov_results("cluster", groups=data.g)
    assert np.array_equal(fit.get_robustcov_results("cluster").bse, given.bse)
    with pytest.raises(ValueError, match="different indexes"):
        fit.get_robustcov_results("cluster", groups=data.g.sample(frac=1, random_state=0))


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def mapped(array, folder):
    path = folder / "X.npy"
    np.save(path, np.asfortranarray(array))
    return np.load(path, mmap_mode="r")


def strided(array):
    wide = np.zeros((2 * len(array), 2 * array.shape[1]))
    wide[::2, ::2] = array
    return wide[::2, ::2]


FORMS = {
    "read-only": lambda X, folder: read_only(X),
    "Fortran order": lambda X, folder: np.asfortranarray(X),
    "memory-mapped": mapped,
    "strided": lambda X, folder: strided(X),
    "frame": lambda X, folder: pd.DataFrame(X, columns=["a", "b", "c"]),
    "masked": lambda X, folder: np.ma.array(X),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore::moestat.base.warnings.MoEWarning")
def test_no_function_writes_to_its_input(form, data, tmp_path):
    """With a constant column, whose coefficients are held; results are those of plain arrays."""
    plain = np.c_[data[["a", "b"]].to_numpy(), np.full(len(data), 7.0)]
    X, y = FORMS[form](plain, tmp_path), read_only(data.y.to_numpy())
    weight, before = read_only(1.0 + (plain[:, 0] > 5)), np.array(X)
    labels = read_only(np.where(y > 12, 2, 1))
    expected = moestat.fit("gaussian", plain, y, sample_weight=weight, **QUICK)
    blocks = moestat.Blocks.from_arrays(X, y, weight, rows=50)
    fits = [
        moestat.fit("gaussian", X, y, sample_weight=weight, **QUICK),
        moestat.fit_blocks("gaussian", blocks, **QUICK),
        *moestat.fit_many(
            moestat.family("gaussian", gate="softmax", n_features=3),
            [(X, y)],
            sample_weights=[weight],
            **QUICK,
        ),
    ]
    for fit in fits:
        assert fit.llf == pytest.approx(expected.llf, rel=1e-9)
    fit, array = fits[0], np.asarray(X)
    for method in METHODS.values():
        method(fit, X, y)
    fit.log_likelihood(X, y)
    moestat.fit("multinomial", X, labels, n_experts=1, **QUICK)
    moestat.select("gaussian", X, y, k=(1,), folds=2, **QUICK)
    for function in (moestat.log_likelihood, moestat.score, moestat.hessian):
        function(fit.family, fit.theta, array, y)
    moestat.responsibilities(fit.family, fit.theta, array, y)
    moestat.gate_probabilities(fit.family, fit.theta, array)
    moestat.dendrogram(fit.family, fit.theta, array, y)
    moestat.compress(array, y, weight)
    groups = read_only(np.arange(len(y)) // 2)
    moestat.bootstrap(fit, 2, "cluster", groups=groups, rng=0)
    fit.get_robustcov_results("cluster", groups=groups)
    fit.classification_table(labels)
    fit.get_margeff(), fit.tidy(), fit.relabel([2, 1]), fit.influence(), fit.summary()
    moestat.em_test(np.abs(np.round(y)))
    frame = pd.DataFrame(before, columns=["a", "b", "c"]).assign(y=y)
    copy = frame.copy(deep=True)
    moestat.fit_formula("y ~ a + b | a", frame, missing="drop", **QUICK)
    pd.testing.assert_frame_equal(frame, copy)
    assert np.array(X).tobytes() == before.tobytes()


def test_warnings_name_columns_of_any_table(data):
    given = pl.DataFrame({"a": data.a.to_numpy(), "steady": np.ones(len(data))})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MoEWarning)
        moestat.fit("gaussian", given, data.y.to_numpy(), n_experts=1, **QUICK)
    assert "column 'steady' is constant" in str(caught[0].message)
