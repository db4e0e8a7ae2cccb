"""Classes and other variables: third steps, and sizes and means of classes."""

from __future__ import annotations

import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.base.warnings import AliasedWarning, SeparationWarning
from moestat.estimation.inference.classification import (
    assigned,
    classification_errors,
    first_step,
)
from moestat.estimation.inference.structures import Levels, Logit, Means, Normal
from moestat.estimation.inference.three_step import _correct
from moestat.estimation.starts import GivenStarts

N = 400


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    x, age = rng.normal(size=(2, N))
    first = rng.random(N) < 1 / (1 + np.exp(-0.4 - age))
    table = pd.DataFrame({"x": x, "age": age})
    table["y"] = np.where(first, 1.5 + x, -1.5 - x) + rng.normal(size=N)
    table["z"] = 20 + 5 * np.where(first, 1.0, 3.0) + 5 * rng.normal(size=N)
    table["vote"] = np.where(rng.random(N) < np.where(first, 0.8, 0.3), "yes", "no")
    table["first"] = first
    return table


@pytest.fixture(scope="module")
def result(data):
    return moestat.fit_formula("y ~ x | 1", data, n_experts=2, rng=0)


@pytest.mark.parametrize("how", ["modal", "proportional"])
def test_the_table_of_errors_is_that_of_a_loop(result, how):
    step = first_step(result)
    tau, table = np.asarray(result.responsibilities), np.zeros((2, 2))
    for row in tau:
        share = row if how == "proportional" else (row == row.max()).astype(float)
        table += np.outer(row, share)
    table /= tau.sum(axis=0)[:, None]
    own = assigned(step.posterior, how)
    np.testing.assert_allclose(classification_errors(step.posterior, step.weight, own), table)
    shown = result.distal(np.arange(N) % 7, assignment=how).classification
    np.testing.assert_allclose(shown, table)


def test_means_are_averages_with_weights_that_undo_the_errors(result, data):
    tau = np.asarray(result.responsibilities)
    own = np.eye(2)[tau.argmax(axis=1)]
    table = tau.T @ own / tau.sum(axis=0)[:, None]
    weight = own @ np.linalg.inv(table)
    mean = weight.T @ data.z / weight.sum(axis=0)
    found = result.distal(data.z)
    np.testing.assert_allclose(found.params, mean)
    naive = [data.z[own[:, t] == 1].mean() for t in range(2)]
    assert np.ptp(found.params) > np.ptp(naive)  # errors pull means together
    share = result.distal(data.vote)
    np.testing.assert_allclose(
        share.params.xs("P(yes)", level=1),
        weight.T @ (data.vote == "yes") / weight.sum(axis=0),
    )


def logit(columns, k):
    phi = np.column_stack([np.ones(N), columns])
    return Logit.of(phi, ("1", *columns.columns), k, np.ones(N))


STRUCTURES = {
    "means": lambda d: Means(d[["z", "x"]].to_numpy(), ("z", "x"), 3),
    "normal": lambda d: Normal((d.z.to_numpy() - 30) / 5, 3),
    "levels": lambda d: Levels(pd.get_dummies(d.z // 10).to_numpy(float), tuple("abcdef"), 3),
    "logit": lambda d: logit(d[["age", "x"]], 3),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_slopes_of_structures_are_derivatives(name, data):
    structure = STRUCTURES[name](data)
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(3), N)
    beta = structure.start(shares) + 0.1 * rng.normal(size=structure.start(shares).size)
    _, slope = structure.log_density(beta)
    for j in range(beta.size):
        moved = beta.astype(complex)
        moved[j] += 1e-100j
        by_step = structure.log_density(moved)[0].imag / 1e-100
        np.testing.assert_allclose(slope[:, :, j], by_step, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", ["bch", "ml", "two-step"])
@pytest.mark.parametrize("name", ["normal", "logit"])
def test_derivatives_of_the_third_step_are_differences(method, name, result, data):
    if name == "normal":
        structure = Normal((data.z.to_numpy() - 30) / 5, 2)
    else:
        structure = logit(data[["age"]], 2)
    third, tables, beta = _correct(first_step(result), structure, method, "modal")
    assert np.abs(third.total(beta, tables)).max() < 1e-6
    exact = third.jacobian(beta, tables)
    for j, move in enumerate(1e-5 * np.eye(beta.size)):
        sides = third.total(beta + move, tables) - third.total(beta - move, tables)
        np.testing.assert_allclose(exact[:, j], sides / 2e-5, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    "methods", [["ml"], pytest.param(["bch", "two-step"], marks=pytest.mark.slow)], ids=str
)
def test_errors_are_those_of_all_steps_refitted_with_other_weights(data, methods):
    """Infinitesimal jackknife: the sum of squares of what each row's weight moves."""
    n, few = 40, data[:40]

    def steps(weight, starts):
        options = {"gate_inputs": [], "sample_weight": weight, "starts": starts, "rng": 0}
        fit = moestat.fit("gaussian", few[["x"]], few.y, n_experts=2, **options)
        third = [fit.distal(few.z, method) for method in methods]
        return fit, [*third, *(fit.covariates(few[["age"]], method) for method in methods)]

    fit, found = steps(np.ones(n), None)
    starts, moves = [GivenStarts([fit.theta])], [[] for _ in found]
    for i in range(n):
        up, down = (steps(1.0 + side * np.eye(n)[i], starts)[1] for side in (0.02, -0.02))
        for own, high, low in zip(moves, up, down, strict=True):
            own.append((high.params - low.params).to_numpy() / 0.04)
    for own, one in zip(moves, found, strict=True):
        np.testing.assert_allclose(one.covariance, np.transpose(own) @ own, rtol=2e-2)
        assert not np.allclose(one.bse, one.bse_known, rtol=5e-3)


def test_classes_that_are_told_apart_are_groups(data):
    apart = data.assign(y=data.y + 40 * data["first"])
    fit = moestat.fit_formula("y ~ x | 1", apart, n_experts=2, rng=0)
    own = np.asarray(fit.responsibilities).argmax(axis=1)
    groups = [data.z[own == t] for t in range(2)]
    for method in ("bch", "ml", "two-step"):
        found = fit.distal(data.z, method)
        mean, error = (s.xs("mean", level=1) for s in (found.params, found.bse))
        np.testing.assert_allclose(mean, [g.mean() for g in groups], rtol=1e-6)
        np.testing.assert_allclose(
            error, [g.std(ddof=0) / np.sqrt(len(g)) for g in groups], rtol=1e-6
        )
    sizes = fit.classes().xs("size", level=1)
    np.testing.assert_allclose(sizes.estimate, [len(g) / N for g in groups], rtol=1e-6)
    share = len(groups[0]) / N
    assert sizes.std_error[1] == pytest.approx(np.sqrt(share * (1 - share) / N), rel=1e-4)


def test_covariates_are_near_the_gate_that_reads_them(result, data):
    gate = moestat.fit_formula("y ~ x | age", data, n_experts=2, rng=0)
    one, error = gate.params["beta1[1,age]"], gate.bse["beta1[1,age]"]
    for method in ("bch", "ml", "two-step"):
        found = result.covariates(data[["age"]], method)
        assert abs(found.params[1, "age"] - one) < 2 * error
        assert 0.8 * error < found.bse[1, "age"] < 1.8 * error
        assert found.tests[0].name == "age"
        assert found.tests[0].statistic == pytest.approx(
            (found.params[1, "age"] / found.bse[1, "age"]) ** 2
        )
    moved = result.covariates({"age": 10 * data.age + 40})
    np.testing.assert_allclose(moved.params[1, "age"], found.params[1, "age"] / 10, rtol=0.2)
    same = result.covariates(data[["age"]])
    np.testing.assert_allclose(moved.params[1, "age"], same.params[1, "age"] / 10, rtol=1e-6)
    np.testing.assert_allclose(moved.bse[1, "age"], same.bse[1, "age"] / 10, rtol=1e-6)


def test_classes_have_sizes_and_means_with_errors(result, data):
    table = result.classes()
    tau = np.asarray(result.responsibilities)
    np.testing.assert_allclose(table.xs("size", level=1).estimate, tau.mean(axis=0), rtol=1e-6)
    whole = (table.xs("size", level=1).estimate * table.xs("mean", level=1).estimate).sum()
    assert whole == pytest.approx(result.fittedvalues.mean(), rel=1e-12)
    line = result.blocks["b"] + result.blocks["a"][:, 0] * data.x.mean()
    np.testing.assert_allclose(table.xs("mean", level=1).estimate, line)
    # With a constant gate a class's mean is linear in its own coefficients.
    at = [result.param_names.index(name) for name in ("b[1]", "a[1,x]")]
    slope = np.array([1.0, data.x.mean()])
    error = np.sqrt(slope @ result._covariance[np.ix_(at, at)] @ slope)
    assert table.std_error[1, "mean"] == pytest.approx(error, rel=1e-6)
    low, high = table.loc[(1, "size"), ["conf_low", "conf_high"]]
    assert 0 < low < table.estimate[1, "size"] < high < 1
    robust = result.get_robustcov_results("HC0").classes()
    assert not np.allclose(robust.std_error, table.std_error, rtol=1e-3)
    voters = moestat.fit_formula("vote ~ x | age", data, "multinomial", n_experts=1, rng=0)
    assert voters.classes().estimate[1, "P(yes)"] == pytest.approx((data.vote == "yes").mean())


def test_classes_of_several_responses_and_groups():
    rng = np.random.default_rng(0)
    kind = rng.random(150) < 0.6
    table = pd.DataFrame({"x": rng.normal(size=150)})
    table["height"] = np.where(kind, 2.0, -2.0) + rng.normal(size=150)
    table["visits"] = rng.poisson(np.where(kind, 1.0, 6.0)).astype(float)
    both = ["gaussian", "poisson"]
    fit = moestat.fit_formula("cbind(height, visits) ~ x | 1", table, both, n_experts=2, rng=0)
    found = fit.classes().estimate
    names = ["size", "mean(height)", "mean(visits)"]
    assert found.index.get_level_values(1).unique().tolist() == names
    for name in names[1:]:
        whole = sum(found[t, "size"] * found[t, name] for t in (1, 2))
        assert whole == pytest.approx(fit.fittedvalues[name[5:-1]].mean(), rel=1e-9)
    rows = pd.DataFrame({"id": np.repeat(np.arange(150), 3), "t": np.tile(np.arange(3.0), 150)})
    rows["y"] = np.where(kind, 1.0, -1.0)[rows.id] * rows.t + 1.5 * rng.normal(size=450)
    by_group = moestat.fit_formula("y ~ t | 1 | id", rows, n_experts=2, rng=0)
    z = np.where(kind, 2.0, 0.0) + rng.normal(size=150)
    found = by_group.distal(z[rows.id])
    assert found.facts[0][1] == "150"
    assert np.all(np.abs(np.sort(found.params) - [0.0, 2.0]) < 4 * found.bse.max())
    with pytest.raises(ValueError, match="outcome: rows of group 0 differ"):
        by_group.distal(np.arange(450.0))
    assert by_group.classes().estimate.xs("size", level=1).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["bch", "ml", "two-step"])
def test_categories_that_are_numbers_are_categories_in_their_order(method, result, data):
    codes = np.random.default_rng(4).integers(1, 4, N)
    words = result.distal(np.array(["x", "a", "b", "c"])[codes], method)
    for outcome, order in (
        (pd.Categorical(codes), [1, 2, 3]),
        (pd.Series(pd.Categorical(codes, categories=[3, 1, 9, 2], ordered=True)), [3, 1, 2]),
    ):
        found = result.distal(outcome, method)
        terms = [f"P({level})" for level in order]
        assert [term for _, term in found.params.index] == 2 * terms
        alike = words.params.loc[[(c, f"P({'xabc'[j]})") for c in (1, 2) for j in order]]
        np.testing.assert_allclose(found.params, alike, atol=1e-7)


def test_third_steps_refuse_in_one_sentence(result, data):
    with pytest.raises(ValueError, match="method must be one of bch, ml, two-step, got 'lanza'"):
        result.distal(data.z, "lanza")
    with pytest.raises(ValueError, match="assignment must be one of modal, proportional"):
        result.covariates(data[["age"]], assignment="random")
    with pytest.raises(ValueError, match="outcome is the same everywhere"):
        result.distal(np.ones(N))
    with pytest.raises(ValueError, match="X: column 'one' is constant"):
        result.covariates({"one": np.ones(N)})
    with pytest.raises(ValueError, match="X must have one row per row of the fit, 400, got 3"):
        result.covariates([[1.0], [2.0], [3.0]])
    one = moestat.fit("gaussian", data[["x"]], data.y, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="latent classes need a mixture"):
        one.distal(data.z)
    text = str(result.distal(data.z))
    assert "BCH weights" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.slow
def test_intervals_of_third_steps_cover():
    """Two classes of which a sixth of the rows is assigned wrongly; 100 data sets."""
    gaps = {method: [] for method in ("bch", "ml", "two-step")}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=500)
        first = rng.random(500) < 0.6
        y = np.where(first, 1 + x, -1 - x) + rng.normal(size=500)
        z = np.where(first, 1.0, 2.0) + rng.normal(size=500)
        fit = moestat.fit("gaussian", x, y, n_experts=2, gate_inputs=[], rng=0)
        truth = np.array([1.0, 2.0]) if fit.blocks["b"][0] > 0 else np.array([2.0, 1.0])
        for method, own in gaps.items():
            found = fit.distal(z, method)
            mean, error = (s.xs("mean", level=1).to_numpy() for s in (found.params, found.bse))
            own.append(((mean - truth) * np.sign(truth - 1.5), error))
    for own in gaps.values():
        gap, error = np.array(own).transpose(1, 0, 2)
        assert 0.90 < np.mean(np.abs(gap) < 1.96 * error) < 0.99
        assert abs(gap.mean()) < 0.02


def numbers_in_containers(values):
    """The same numbers as floats, objects, Decimal numbers and columns of other libraries."""
    import polars as pl
    import pyarrow as pa

    texts = [Decimal(repr(value)) for value in values.tolist()]
    return {
        "series": values,
        "list": values.tolist(),
        "object": values.astype(object),
        "Decimal": pd.Series(texts, values.index),
        "polars": pl.Series("z", values.to_numpy()),
        "pyarrow": pa.table({"z": pa.array(texts)}),
    }


@pytest.mark.parametrize("method", ["bch", "ml"])
def test_numbers_are_numbers_in_any_container(method, result, data):
    rounded = data.z.round(2)
    want = result.distal(rounded, method).params.to_numpy()
    for name, given in numbers_in_containers(rounded).items():
        np.testing.assert_allclose(result.distal(given, method).params, want, err_msg=name)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda z: z.map("{:,.2f}".format), "look like amounts"),
        (lambda z: pd.to_datetime("2020-01-01") + pd.to_timedelta(z, "D"), "holds dates or times"),
        (
            lambda z: pd.Series([f"2020-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]),
            "date",
        ),
        (lambda z: pd.Series([f"id {i}" for i in range(N)]), "has 400 of them in 400 rows"),
        (lambda z: pd.Series([date(2020, 1, 1 + i % 28) for i in range(N)]), "outcome must hold"),
        (lambda z: pd.Series([1.5, "a"] * (N // 2)), "got float, str"),
    ],
)
def test_amounts_dates_and_labels_of_rows_are_no_outcome(make, match, result, data):
    with pytest.raises(ValueError, match=match):
        result.distal(make(data.z))


@pytest.fixture(scope="module")
def grouped():
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"id": np.repeat([f"g{i:02d}" for i in range(60)], 4)})
    kind = np.repeat(rng.random(60) < 0.5, 4)
    rows["t"] = rng.normal(size=240)
    rows["y"] = np.where(kind, 2 + rows.t, -2 - rows.t) + rng.normal(size=240)
    rows["z"] = np.repeat(rng.normal(size=60), 4) + kind
    rows.loc[[5, 6, 80], "t"] = np.nan
    return rows, moestat.fit_formula("y ~ t | 1 | id", rows, rng=0, missing="drop")


@pytest.mark.parametrize("ask", ["distal", "covariates"])
def test_groups_may_have_one_value_each(ask, grouped):
    rows, fitted = grouped
    call = getattr(fitted, ask)
    want = call(rows.z)
    each = rows.groupby("id").z.first()
    for given in (rows.z.to_numpy(), each, each.sample(frac=1, random_state=0), each.to_numpy()):
        found = call(given)
        np.testing.assert_allclose(found.params, want.params, rtol=1e-12)
        np.testing.assert_allclose(found.bse, want.bse, rtol=1e-12)
    with pytest.raises(ValueError, match="one per group"):
        call(each.to_numpy()[1:])


@pytest.mark.parametrize("ask", ["distal", "covariates"])
def test_variables_of_rows_are_read_by_their_labels(ask, data):
    gaps = data.copy()
    gaps.loc[[3, 9, 60], "y"] = np.nan
    fitted = moestat.fit_formula("y ~ x | 1", gaps, rng=0, missing="drop")
    call, whole = getattr(fitted, ask), gaps.dropna()
    want = call(whole.age).params
    missing_there = gaps.age.where(gaps.y.notna())
    for given in (gaps.age, gaps.age.to_numpy(), missing_there):
        np.testing.assert_array_equal(call(given).params, want)
    for given in (gaps.age.sample(frac=1, random_state=0), whole.age.sample(frac=1)):
        with pytest.raises(ValueError, match="have different indexes"):
            call(given)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", ["ml", "two-step", "bch"])
def test_columns_that_depend_on_each_other_are_named(method, k):
    """Coefficients along which the data speak are those without the spare column."""
    rng = np.random.default_rng(1)
    kind, x = rng.integers(0, k, 300), rng.normal(size=300)
    y = 8.0 * kind + x + rng.normal(size=300)
    fitted = moestat.fit("gaussian", x, y, n_experts=k, gate_inputs=[], rng=0)
    table = pd.DataFrame({"age": rng.normal(size=300) + kind, "size": rng.normal(size=300)})
    plain = fitted.covariates(table, method)
    with pytest.warns(AliasedWarning, match="age, twice"):
        both = fitted.covariates(table.assign(twice=3 - 2 * table.age), method)
    wide, narrow = both.params.unstack(), plain.params.unstack()
    np.testing.assert_allclose(wide["age"] - 2 * wide["twice"], narrow["age"], rtol=1e-6)
    np.testing.assert_allclose(wide["size"], narrow["size"], rtol=1e-6)
    errors, plain_errors = both.bse.unstack(), plain.bse.unstack()
    assert errors[["age", "twice"]].isna().all(axis=None)
    np.testing.assert_allclose(errors["size"], plain_errors["size"], rtol=1e-6)


@pytest.mark.parametrize("method", ["ml", "two-step"])
@pytest.mark.parametrize("seed", range(4))
def test_columns_that_separate_classes_are_named(method, seed):
    rng = np.random.default_rng(seed)
    first, x = rng.random(120) < 0.5, rng.normal(size=120)
    y = np.where(first, 6 - x, -6 + x) + rng.normal(size=120)
    fitted = moestat.fit("gaussian", x, y, n_experts=2, gate_inputs=[], rng=0)
    table = pd.DataFrame({"age": rng.normal(size=120), "splits": first + 0.1 * rng.random(120)})
    with pytest.warns(SeparationWarning, match="column splits|columns age, splits"):
        found = fitted.covariates(table, method)
    assert np.isnan(found.bse[1, "splits"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(fitted.covariates(table[["age"]], method).bse).all()
