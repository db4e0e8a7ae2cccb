"""Small things that a newcomer meets: names of columns, pictures, classes as numbers, refusals."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import moestat
from moestat.base.warnings import MisfitWarning
from moestat.estimation.fit import doubts
from moestat.estimation.inference import dependence, misfit
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    d = pd.DataFrame({"id": np.repeat(np.arange(40), 6), "x": rng.normal(size=240)})
    noise = 0.7 * rng.normal(size=40)[d.id] + (1 + d.x.abs()) * rng.normal(size=240)
    return d.assign(y=1 + d.x + noise, st=d.id // 10)


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.DataWarning")
def test_covariances_by_names_of_columns_and_at_the_fit(table, tmp_path):
    ols = smf.ols("y ~ x", table)
    kwds = {"groups": table.id, "use_correction": False}
    clusters = ols.fit(cov_type="cluster", cov_kwds=kwds).bse * np.sqrt(40 / 39)
    table.to_parquet(tmp_path / "rows.parquet")
    for data in (table, str(tmp_path / "rows.parquet")):
        how = {"n_experts": 1, "rng": 0}
        plain = moestat.fit_formula("y ~ x", data, **how)
        by_name = plain.get_robustcov_results("cluster", "id")
        named = {"groups": "id"}
        at_fit = moestat.fit_formula("y ~ x", data, cov_type="cluster", cov_kwds=named, **how)
        for found in (by_name, at_fit):
            np.testing.assert_allclose(found.bse[["b[1]", "a[1,x]"]], clusters, rtol=1e-5)
    gaps = table.assign(x=table.x.where(table.index % 9 > 0))
    fitted = moestat.fit_formula("y ~ x", gaps, missing="drop", n_experts=1, rng=0)
    want = fitted.get_robustcov_results("survey", gaps.id, strata=gaps.st).bse
    pd.testing.assert_series_equal(
        fitted.get_robustcov_results("survey", "id", strata="st").bse, want
    )
    with pytest.raises(ValueError, match="no column 'idd'; did you mean 'id'"):
        fitted.get_robustcov_results("cluster", "idd")
    with pytest.raises(ValueError, match="with their table in memory"):
        pickle.loads(pickle.dumps(fitted)).get_robustcov_results("cluster", "id")
    with pytest.raises(ValueError, match="cov_kwds has no argument 'group'"):
        moestat.fit_formula("y ~ x", table, cov_type="cluster", cov_kwds={"group": "id"})
    with pytest.raises(ValueError, match="cov_type: criteria do not depend on it"):
        moestat.select("gaussian", "y ~ x", data=table, k=(1,), cov_type="HC0")


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x, rng: x + rng.normal(size=x.size) > 0, "'multinomial' .'binomial'"),
        (lambda x, rng: np.where(x > rng.normal(size=x.size), 2, 7), "'multinomial'"),
        (lambda x, rng: rng.poisson(np.exp(0.5 * x)), "'poisson'"),
        (lambda x, rng: rng.poisson(np.exp(1.5 + 0.3 * x)), "'poisson'"),
        (lambda x, rng: x + rng.normal(size=x.size), None),
        (lambda x, rng: (70 + 9 * x + rng.normal(size=x.size)).round(), None),
    ],
)
def test_classes_and_counts_as_numbers_name_their_likelihood(k, make, words):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    d = pd.DataFrame({"x": x, "y": make(x, rng)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        moestat.fit_formula("y ~ x | 1", d, n_experts=k, rng=0, n_starts=2, risk=1.0)
    found = [str(w.message) for w in caught if w.category is MisfitWarning]
    named = [text for text in found if "no continuous distribution describes" in text]
    assert len(named) == (words is not None)
    if words is not None:
        assert pd.Series(named).str.contains(words).all()


def test_words_as_a_response_name_the_likelihood_of_classes(table):
    with pytest.raises(ValueError, match="for classes use family='multinomial'"):
        moestat.fit_formula("y ~ x", table.assign(y=np.where(table.y > 1, "yes", "no")))


@pytest.mark.parametrize("formula", ["y ~ x | z", "y ~ x + w | z", "y ~ z + x | z"])
def test_gates_are_drawn_along_an_input_of_the_gate(formula):
    rng = np.random.default_rng(5)
    d = pd.DataFrame(rng.normal(size=(300, 3)), columns=["x", "z", "w"])
    right = rng.random(300) < 1 / (1 + np.exp(-1.5 * d.z))
    d["y"] = np.where(right, 4 + d.x, -4 - d.x) + 0.5 * rng.normal(size=300)
    axes = moestat.fit_formula(formula, d, n_experts=2, rng=0).plot_gate()
    assert axes.get_xlabel() == "z"
    assert np.ptp(axes.lines[0].get_ydata()) > 0.5
    plt.close("all")


def test_tables_of_resamples_have_no_internal_rows():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 300)
    y = np.where(rng.random(300) < 0.2, rng.uniform(-9, 9, 300), x + 0.4 * rng.normal(size=300))
    fitted = moestat.fit({"experts": ["gaussian", "uniform"]}, x, y, rng=0)
    assert "law[" not in str(fitted.bootstrap(3, rng=0))


def test_experts_on_a_bound_have_the_same_order_in_memory_and_on_a_source(tmp_path):
    rng = np.random.default_rng(0)
    d = pd.DataFrame({"x": rng.normal(size=300)})
    d["y"] = np.where(rng.random(300) < 0.3, 2 + d.x, -2 - d.x) + 0.3 * rng.normal(size=300)
    d.to_parquet(tmp_path / "rows.parquet")
    how = {"n_experts": 2, "rng": 0, "bounds": {"nu": (0.5, 10)}}
    one, two = (
        moestat.fit_formula("y ~ x | 1", data, **how)
        for data in (d, str(tmp_path / "rows.parquet"))
    )
    assert one.certificate.active == two.certificate.active
    np.testing.assert_allclose(one.theta, two.theta, rtol=1e-5, atol=1e-6)
    assert np.all(np.diff(np.asarray(one.responsibilities).mean(axis=0)) < 0)


def test_refusals_say_the_true_reason_first(tmp_path):
    d = pd.DataFrame({"a": [0.0, 1.0], "b": [2.0, 3.0], "e": [1, 0], "x": [0.0, 1.0]})
    with pytest.raises(ValueError, match=r"^formula: Surv\(start, stop, event\): times of entry"):
        moestat.fit_formula("Surv(a, b, e) ~ x", d, "weibull", n_experts=1)
    softmax = GATES["softmax"]
    for given, words in (
        ("softmax", "a gate needs a name"),
        (LIKELIHOODS["poisson"], "a gate must be a Gate"),
        (replace(softmax, name="q", normalised="yes"), "normalised of the gate 'q' must be"),
    ):
        with pytest.raises(ValueError, match=words):
            GATES.register(given)
    GATES.register(replace(softmax, name="mine"))
    try:
        x = np.linspace(-1, 1, 60)
        fitted = moestat.fit("gaussian", x, np.sin(9 * x), gate="mine", n_experts=1, rng=0)
        fitted.save(tmp_path / "fit.npz")
    finally:
        del GATES._members["mine"]
    with pytest.raises(ValueError, match=r"^unknown gate 'mine'.* register it"):
        moestat.load(tmp_path / "fit.npz")


def strings_of(module):
    """Texts of a module, without its documentation."""
    tree = ast.parse(inspect.getsource(module))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documented:
            yield node.value


@pytest.mark.parametrize("module", [doubts, misfit, dependence], ids=lambda each: each.__name__)
def test_arguments_and_methods_that_warnings_name_exist(module):
    """Arguments of a fit, which a fit by formula takes, too, or methods of its result."""
    known = {
        name
        for call in (moestat.fit, moestat.fit_formula, moestat.family)
        for name in inspect.signature(call).parameters
    }
    texts = list(strings_of(module))
    arguments = {name for text in texts for name in re.findall(r"\b([a-z_]+)=(?!=)", text)}
    methods = {name for text in texts for name in re.findall(r"result\.([a-z_]+)\(", text)}
    assert arguments <= known, arguments - known
    assert all(hasattr(moestat.estimation.results.results.MoEResults, name) for name in methods)
