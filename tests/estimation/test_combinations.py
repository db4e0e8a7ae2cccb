"""Where two features meet: each is right, or refused in a sentence that names the argument."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.base.warnings import FewRowsWarning, LimitWarning
from moestat.compiler.cache import _check_owner

QUICK = {"rng": 0, "threads": 1, "n_starts": 2}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    first = rng.random(n) < 1 / (1 + np.exp(-2 * frame["x"]))
    frame["y"] = np.where(first, 1 + frame["x"], -1 - frame["z"]) + 0.5 * rng.normal(size=n)
    frame["level"] = rng.choice(list("abc"), n)
    frame["id"] = np.arange(n) // 4
    frame["w"] = rng.integers(1, 4, n)
    return frame


@pytest.fixture(scope="module")
def result(data):
    return moestat.fit_formula("y ~ x + z", data, **QUICK)


HOSTILE = [
    "np.ma.core.exec('1')",
    "open('x')",
    "np.load('x')",
    "x.abs()",
    "x.to_csv('x')",
    "[a for a in x]",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_formulas_only_computes(text, data):
    with pytest.raises(ValueError, match="formula"):
        moestat.fit_formula(f"y ~ {text}", data, n_experts=1, **QUICK)


def test_formulas_take_functions_of_numpy_and_of_the_caller(data):
    def twice(values):
        return 2.0 * values

    fits = []
    for term in ("x", "twice(x)", "np.add(x, x)", "np.where(x > 0, x, x)"):
        fits.append(moestat.fit_formula(f"y ~ {term}", data, n_experts=1, **QUICK))
    assert [fit.llf for fit in fits] == pytest.approx([fits[0].llf] * 4, abs=1e-6)


def test_a_file_is_not_unpacked_beyond_the_limit(result, tmp_path):
    result.save(tmp_path / "fit.npz")
    assert moestat.load(tmp_path / "fit.npz").llf == result.llf
    with pytest.raises(ValueError, match="max_bytes allows"):
        moestat.load(tmp_path / "fit.npz", max_bytes=1000)


def test_a_cache_that_others_can_write_is_refused(tmp_path):
    _check_owner(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match=r"MOESTAT_CACHE_DIR"):
        _check_owner(tmp_path)


def test_ratios_are_of_models_inside_each_other(data):
    X, y = data[["x", "z"]].to_numpy(), data["y"].to_numpy()

    def fit(inputs, **options):
        return moestat.fit("gaussian", inputs, y, n_experts=2, **QUICK, **options)

    full, gate = fit(X), fit(X, gate_inputs=[0])
    assert moestat.lr_test(gate, full).df == 1
    swapped = fit(X[:, ::-1], gate_inputs=[1])
    assert moestat.lr_test(swapped, full).statistic == pytest.approx(
        moestat.lr_test(gate, full).statistic, abs=1e-3
    )
    narrow = fit(X, bounds={"a": (-0.5, 0.5)})
    outside = fit(X[:, ::-1], gate_inputs=[0], expert_inputs=[0])
    for small, large, words in (
        (outside, gate, "not a special case of full"),
        (fit(X[:, :1], gate="sigmoid"), full, "sigmoid gate against softmax"),
        (gate, narrow, "not a special case of full"),
        (narrow, full, "on bounds that you set"),
    ):
        with pytest.raises(ValueError, match=words):
            moestat.lr_test(small, large)


def test_a_factor_is_fixed_or_equal_by_its_name(data):
    fixed = moestat.fit_formula("y ~ x + level | x", data, fixed={"a": {"level": 0.0}}, **QUICK)
    slopes = fixed.blocks["a"][:, [fixed.data.features.index(f"level[T.{s}]") for s in "bc"]]
    assert np.array_equal(slopes, np.zeros((2, 2)))
    equal = moestat.fit_formula("y ~ x + level | x", data, equal={"a": [["level"]]}, **QUICK)
    rows = equal.blocks["a"][:, [equal.data.features.index(f"level[T.{s}]") for s in "bc"]]
    assert np.ptp(rows, axis=0).max() <= 1e-9


def test_what_cannot_be_read_is_named(data):
    with pytest.raises(ValueError, match="values of 'b' must be numbers up to"):
        moestat.fit_formula("y ~ x", data, fixed={"b": {1: 1e200}}, **QUICK)
    with pytest.raises(ValueError, match="give a list of as many likelihoods"):
        moestat.fit_formula("cbind(y, x, z) ~ x", data, **QUICK)
    bounds = np.column_stack([np.zeros(200), np.full(200, np.inf)])
    bounds[:150] = np.exp(data[["y", "y"]].to_numpy()[:150])
    with pytest.raises(ValueError, match="of row 150 contain every possible response"):
        moestat.fit("weibull", data["x"], bounds, **QUICK)
    large = np.arange(200, dtype=np.int64) + 2**60
    with pytest.warns(LimitWarning, match=r"above 2\*\*53"):
        moestat.fit("gaussian", data["x"], large, n_experts=1, **QUICK)
    with pytest.raises(ValueError, match="both name a column of weights"):
        moestat.select(
            "gaussian", "y ~ x", data=data, k=[1], weights="w", sample_weight="w", **QUICK
        )
    with pytest.raises(ValueError, match="weights: allowed only with a formula"):
        moestat.select("gaussian", data[["x"]], data["y"], k=[1], weights="w", **QUICK)


def test_criteria_compare_fits_of_one_response(data):
    positive = data.assign(y=np.exp(data["y"]))
    with pytest.raises(ValueError, match=r"'y' and 'log\(y\)' are different responses"):
        moestat.select("gaussian", ["y ~ x", "log( y ) ~ x"], data=positive, k=[1], **QUICK)
    with pytest.raises(ValueError, match="X: a formula for each expert determines the number"):
        moestat.select("gaussian", {"1": "y ~ x", "2": "y ~ 1"}, data=positive)


def test_constraints_that_repeat_each_other_by_another_constraint(data):
    fit = moestat.fit_formula("y ~ x + z", data, equal="a", **QUICK)
    for ask in (fit.wald_test, fit.fit_constrained):
        with pytest.raises(ValueError, match="equal= of the model makes some of them the same"):
            ask("a[1,x] = 0, a[2,x] = 0")


def test_few_groups_say_little(data, result):
    with pytest.raises(ValueError, match="at least 5 groups"):
        result.get_robustcov_results("cluster", groups=np.arange(200) % 3)
    robust = result.get_robustcov_results("cluster", groups=np.arange(200) % 5)
    names = [n for n in result.param_names if n[0] in "ab" and n[1] == "["]
    with pytest.raises(ValueError, match="singular"):
        robust.wald_test(", ".join(f"{n} = 0" for n in names))
    grouped = moestat.fit_formula("y ~ x | 1 | level", data, n_experts=1, **QUICK)
    with pytest.raises(ValueError, match="df must be at most the number of groups, 3"):
        moestat.score_test(grouped, grouped.theta, 5)


def test_new_rows_have_the_groups_and_weights_of_the_formula(data):
    fit = moestat.fit_formula("y ~ x | 1 | id", data, **QUICK)
    assert fit.score_samples(data, data["y"]).index.tolist() == list(range(50))
    with pytest.raises(ValueError, match=r"groups: the fit used .* from column 'id'"):
        fit.score_samples(data[["x", "y"]], data["y"])
    share = fit.predict(data[:8], "gate", groups=data["id"][:8])
    np.testing.assert_allclose(share, np.asarray(fit.responsibilities)[:8], rtol=1e-10)
    heavy = moestat.fit_formula("y ~ x", data, weights="w", **QUICK)
    with pytest.raises(ValueError, match="from column 'w', which the data lack"):
        heavy.log_likelihood(data.drop(columns="w"))


def test_a_level_of_one_group_has_no_bootstrap_interval():
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(40), 4)
    level = np.where(who == 0, "rare", np.where(who % 2 == 0, "a", "b"))
    frame = pd.DataFrame({"id": who, "level": level})
    frame["y"] = np.where(who % 3 == 0, 4.0, 1.0) + 0.4 * rng.normal(size=160)
    fit = moestat.fit_formula("y ~ level | 1 | id", frame, **QUICK)
    with pytest.warns(FewRowsWarning, match="do not tell it"):
        again = fit.bootstrap(30, rng=0)
    rare = [name.startswith("a[") and "rare" in name for name in again.names]
    assert np.isnan(again.theta_bse[rare]).all()
    told = [j for j, n in enumerate(again.names) if n.startswith("a[") and "T.b" in n]
    assert np.isfinite(again.theta_bse[told]).all()
    assert np.ptp(again._intervals(0.05, "percentile")[told], axis=1).max() < 2.0
