"""Experts are numbered from 1, or have names; old numbers are read for one release."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.estimation.storage import _OLD_FORMAT
from moestat.model.numbering import ExpertNames, from_1, in_current_names, stored_name


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    first = rng.random(300) < 1 / (1 + np.exp(-2 * x))
    y = np.where(first, 1 + x, -1 - x) + 0.3 * rng.normal(size=300)
    return moestat.fit_formula("y ~ x", pd.DataFrame({"x": x, "y": y}), rng=0)


def test_old_names_in_equations_are_read_with_the_new_ones_in_a_warning(fit):
    new = fit.wald_test("a[1,x] = a[2,x]")
    with pytest.warns(FutureWarning, match=r"write 'a\[1,x\]' for 'a\[0,x\]', 'a\[2,x\]' for"):
        assert fit.wald_test("a[0,x] = a[1,x]").statistic == new.statistic
    with pytest.warns(FutureWarning, match="from 1"):
        assert fit.profile("b[0]").interval == fit.profile("b[1]").interval
    with pytest.warns(FutureWarning, match="from 1"):
        assert fit.t_test("a[0, x] = 0").effect[0] == fit.params["a[1,x]"]
    with pytest.warns(FutureWarning, match="from 1"):
        need = moestat.required_n(fit, error=0.1, what="a[0,x] - a[1,x]")
    assert need.n == moestat.required_n(fit, error=0.1, what="a[1,x] - a[2,x]").n


def test_series_and_tables_answer_to_old_names(fit):
    params, intervals, covariance = fit.params, fit.conf_int(), fit.cov_params()
    with pytest.warns(FutureWarning, match=r"write 'a\[1,x\]' for 'a\[0,x\]'"):
        assert params["a[0,x]"] == params.loc["a[0,x]"] == params["a[1,x]"]
    with pytest.warns(FutureWarning, match="from 1"):
        both = fit.bse[["a[0,x]", "a[1,x]"]]
    assert both.equals(fit.bse[["a[1,x]", "a[2,x]"]])
    with pytest.warns(FutureWarning, match="from 1"):
        assert intervals.loc["b[0]"].equals(intervals.loc["b[1]"])
    with pytest.warns(FutureWarning, match="from 1"):
        assert covariance.loc["b[0]", "b[0]"] == covariance.loc["b[1]", "b[1]"]
    with pytest.raises(KeyError, match="a"):
        params["a[7,x]"]
    assert isinstance(2.0 * params, type(params))
    assert intervals.xs("b[1]").equals(intervals.loc["b[1]"])
    with pytest.raises(KeyError, match="nobody"):
        _ = intervals.loc["nobody"]


def test_old_numbers_in_arguments_are_read_with_a_warning(fit):
    table = fit.table
    with pytest.warns(FutureWarning, match="equal: experts are numbered from 1"):
        old = moestat.fit_formula("y ~ x", table, rng=0, equal={"a": [[0, 1]]})
    new = moestat.fit_formula("y ~ x", table, rng=0, equal={"a": [[1, 2]]})
    assert old.llf == new.llf
    with pytest.warns(FutureWarning, match="fixed: experts are numbered from 1"):
        old = moestat.fit_formula("y ~ x", table, rng=0, fixed={"b": {0: 1.0}})
    new = moestat.fit_formula("y ~ x", table, rng=0, fixed={"b": {1: 1.0}})
    assert old.params.equals(new.params)
    with pytest.warns(FutureWarning, match="order: experts are numbered from 1"):
        turned = fit.relabel([1, 0])
    assert turned.params.equals(fit.relabel([2, 1]).params)
    tree = {"name": "hierarchical", "tree": [1, 2]}
    old = moestat.family("gaussian", gate={"name": "hierarchical", "tree": [0, 1]}, n_experts=2)
    assert moestat.family("gaussian", gate=tree, n_experts=2).table == old.table


def test_what_all_experts_share_is_not_numbered():
    numbered = ["phi[0]", "phi[1]", "a[1,0]", "a[2,0]", "tau"]
    assert in_current_names("phi[0] = phi[1]", numbered, numbered) == "phi[0] = phi[1]"
    with pytest.warns(FutureWarning, match="from 1"):
        text = in_current_names("a[0,0] = phi[1]", numbered, numbered)
    assert text == "a[1,0] = phi[1]"


def test_names_are_kept_and_may_be_taken_away(fit, tmp_path):
    named = fit.named({1: "chronic", 2: "acute illness"})
    named.save(tmp_path / "fit.npz")
    again = moestat.load(tmp_path / "fit.npz")
    assert again.params.index.tolist() == named.params.index.tolist()
    assert "a[acute illness,x]" in named.params.index
    assert named.wald_test("a[chronic,x] = a[acute illness, x]").df == 1
    assert named.wald_test("a[1,x] = a[2,x]") == fit.wald_test("a[1,x] = a[2,x]")
    assert again.named({"chronic": "old"}).experts.keys == ["old", "acute illness"]
    assert again.named({}).param_names == fit.param_names
    assert named.at_end(0) is named
    assert named.without_data().experts == named.experts
    assert named.response is not None
    heads = [row.cells[0] for row in named.summary().rows if row.heading]
    assert heads[0] == "Gate: chronic against acute illness"
    assert "acute illness" in moestat.compare([named]).as_text()


def test_notes_and_warnings_have_the_names():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    with pytest.warns(moestat.base.warnings.MoEWarning):
        fit = moestat.fit("gaussian", x, x + np.round(x) / 9, n_experts=3, rng=0)
    named = fit.named(["one", "two", "three"])
    assert "expert 1" not in str(named.summary())
    if named._order_doubt:
        assert "expert 2" not in named._order_doubt


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({0: "a"}, "numbered from 1 to 2"),
        ({3: "a"}, "numbered from 1 to 2"),
        ({True: "a"}, "numbered from 1 to 2"),
        ({1: "a]"}, "without brackets"),
        ({1: " "}, "without brackets"),
        ({1: 3}, "without brackets"),
        ({1: "2"}, "is the number of an expert"),
        ({1: "a", 2: "a"}, "two experts would be called 'a'"),
        (["a"], "a name for each of 2 experts"),
        ("a", "must be a table of experts"),
    ],
)
def test_names_that_cannot_be_are_refused(fit, names, words):
    with pytest.raises(ValueError, match=words):
        fit.named(names)


def test_older_files_have_numbers_from_1(fit, tmp_path, monkeypatch):
    bounded = moestat.fit_formula("y ~ x", fit.table, rng=0, bounds={"a": (-0.5, 0.5)})
    assert bounded.certificate.active[0] == "a[1,0]"
    old = tuple(map(stored_name, bounded.certificate.active))
    assert tuple(map(from_1, old)) == bounded.certificate.active
    assert from_1("tau") == stored_name("tau") == "tau"
    bounded.save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        parts = dict(file)
    head = str(parts["head"]).replace("moestat record 2", _OLD_FORMAT).replace("a[1,0]", "a[0,0]")
    np.savez(tmp_path / "old.npz", **{**parts, "head": np.array(head.replace("a[2,0]", "a[1,0]"))})
    assert moestat.load(tmp_path / "old.npz").certificate.active == bounded.certificate.active


def test_older_files_have_labels_of_classes_by_another_name(tmp_path):
    x = np.linspace(-1.0, 1.0, 60)
    words = np.where(x + np.sin(40.0 * x) > 0.0, "up", "down")
    found = moestat.fit("multinomial", x, words, n_experts=1, rng=0)
    found.save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        parts = dict(file)
    head = str(parts["head"]).replace('"class_labels"', '"classes"')
    assert head != str(parts["head"])
    old_head = head.replace("moestat record 2", _OLD_FORMAT)
    np.savez(tmp_path / "old.npz", **{**parts, "head": np.array(old_head)})
    old = moestat.load(tmp_path / "old.npz")
    assert old.data.class_labels.tolist() == ["down", "up"]
    assert old.score_samples(x, words).tolist() == found.score_samples(x, words).tolist()


def test_words_for_several_experts():
    assert ExpertNames(3).called(0, 2) == "experts 1 and 3"
    assert ExpertNames(3).called(0, 1, 2) == "experts 1, 2 and 3"
    assert ExpertNames(2, ("a", "b")).in_words("experts 1 and 2, expert 7") == "a and b, expert 7"


@pytest.mark.parametrize("column", ["b[1]", "b[0]", "a[1]", "beta0[0]", "x, 1"])
def test_an_input_may_be_called_as_a_parameter_is(fit, column):
    quoted = f"y ~ `{column}` | x"
    table = fit.table.assign(**{column: fit.table["x"] ** 2})
    numbered = moestat.fit_formula(quoted, table, rng=0, n_starts=2, risk=1.0)
    want = numbered.params[f"a[1,{column}]"]
    for one in (numbered, numbered.named({1: "old"})):
        name = one.params.index[list(numbered.params.index).index(f"a[1,{column}]")]
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            assert one.t_test(f"{name} = 0").effect[0] == want
            assert one.t_test(f"a[1,{column}] = 0").effect[0] == want
