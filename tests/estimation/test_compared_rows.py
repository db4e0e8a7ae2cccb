"""Fits that are compared are fits to the same rows, which is said once."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import moestat
from moestat.base.warnings import DroppedRowsWarning


@pytest.fixture
def table():
    rng = np.random.default_rng(4)
    d = pd.DataFrame({"z": rng.normal(size=120), "v": rng.normal(size=120)})
    d["y"] = d.z + d.v + rng.normal(size=120)
    d.loc[d.index % 5 == 0, "z"] = np.nan
    d.loc[d.index % 5 == 1, "v"] = np.nan
    return d


def bic(formula, rows):
    fitted = smf.ols(formula, rows).fit()
    return -2.0 * fitted.llf + (fitted.df_model + 2.0) * np.log(len(rows))


@pytest.mark.parametrize("criterion", ["bic", "cv"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_select_compares_on_rows_that_all_formulas_share(table, tmp_path, criterion, elsewhere):
    """Information criteria of statsmodels on the shared rows."""
    data = table
    if elsewhere:
        data = str(tmp_path / "rows.parquet")
        table.to_parquet(data)
    formulas = ["y ~ z", "y ~ v"]
    with pytest.warns(DroppedRowsWarning, match="48 of 120 rows .* v, z") as told:
        found = moestat.select(
            "gaussian",
            [f"{text} | 1" for text in formulas],
            **{"data": data, "k": (1,), "missing": "drop", "criterion": criterion, "rng": 0},
        )
    assert len(told) == 1
    want = [bic(text, table.dropna()) for text in formulas]
    assert np.allclose(found.to_frame()["bic"], want, atol=1e-4)


def test_steps_compare_on_rows_of_the_largest_formula():
    """A term with gaps that does not matter is not chosen for the rows that it leaves out."""
    chosen = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        d = pd.DataFrame({"z": rng.normal(size=100), "y": rng.normal(size=100)})
        d.loc[rng.random(100) < 0.1, "z"] = np.nan
        with pytest.warns(DroppedRowsWarning) as told:
            found = moestat.stepwise("y ~ z | 1", d, missing="drop", n_experts=1, rng=0)
        assert len(told) == 1
        best = min(("y ~ 1", "y ~ z"), key=lambda text, d=d: bic(text, d.dropna()))
        chosen.append(found.chosen()[0] == f"{best} | 1")
    assert all(chosen)


def test_nothing_is_said_where_no_formula_could_use_more_rows(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moestat.select(
            "gaussian",
            ["y ~ z | 1", "y ~ z + I(z ** 2) | 1"],
            **{"data": table.dropna(subset=["v"]), "k": (1,), "missing": "drop", "rng": 0},
        )


def test_likelihood_ratios_are_of_the_same_rows(table):
    """Responses that happen to be equal do not make rows the same."""
    d = table.assign(y=np.tile([0.0, 1.0, 0.5], 40))
    d.loc[:, "z"] = np.where(d.index < 3, np.nan, d.v.fillna(0.0))
    d.loc[:, "v"] = np.where(d.index >= 117, np.nan, d.z.fillna(0.0))
    how = {"n_experts": 1, "missing": "drop", "rng": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = moestat.fit_formula("y ~ 0 + v", d, **how)
        large = moestat.fit_formula("y ~ z", d, **how)
    with pytest.raises(ValueError, match="the same rows"):
        moestat.lr_test(small, large)
