"""Data sets are those of their sources, described column by column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat import datasets


@pytest.mark.parametrize("name", datasets.names())
def test_every_data_set_has_columns_source_and_licence(name):
    frame = datasets.load(name)
    assert list(frame.columns) == list(frame.attrs["columns"])
    assert {"title", "use", "source", "licence"} <= set(frame.attrs)
    assert str(len(frame)) in frame.attrs["title"].replace(",", "") or name == "nile"
    assert all(column in datasets.describe(name) for column in frame.columns)
    words = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    assert all(isinstance(frame[c].dtype, pd.CategoricalDtype) for c in words)


def test_between_five_and_ten_and_small():
    assert 5 <= len(datasets.names()) <= 10
    assert all(len(datasets.load(name)) <= 2500 for name in datasets.names())
    assert moestat.datasets is datasets


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="engel, nile, penguins"):
        datasets.load("iris")


def test_numbers_are_those_of_statsmodels():
    source = pytest.importorskip("statsmodels.datasets")
    for name, original in (("engel", "engel"), ("nile", "nile"), ("strikes", "strikes")):
        other = __import__(f"{source.__name__}.{original}", fromlist=["load_pandas"])
        assert np.allclose(datasets.load(name), other.load_pandas().data, rtol=1e-6)
    from statsmodels.datasets import anes96, modechoice, randhie

    visits = randhie.load_pandas().data.iloc[::10]
    mine = datasets.load("visits")
    assert np.array_equal(mine["visits"], visits["mdvis"])
    for level, column in (("good", "hlthg"), ("fair", "hlthf"), ("poor", "hlthp")):
        assert np.array_equal(mine["health"] == level, visits[column] == 1)
    votes = anes96.load_pandas().data
    assert np.array_equal(datasets.load("election")["vote"] == "Dole", votes["vote"] == 1)
    travel = modechoice.load_pandas().data
    chosen = travel[travel["choice"] == 1]
    assert np.array_equal(datasets.load("travel")["mode"] == "car", chosen["mode"] == 4)
