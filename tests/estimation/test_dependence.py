"""Rows of a group that are more alike than their expert explains are said to be so."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.base.warnings import DependentRowsWarning, EdgeWarning

GROUPS, TIMES = 120, 6


def subjects(seed, intercept=0.0, slope=0.0, counts=False):
    rng = np.random.default_rng([66, seed])
    who, t = np.repeat(np.arange(GROUPS), TIMES), np.tile(np.arange(float(TIMES)), GROUPS)
    own = intercept * rng.normal(size=GROUPS)[who]
    own += slope * (t - t.mean()) * rng.normal(size=GROUPS)[who]
    y = rng.poisson(np.exp(0.5 + 0.2 * t + own)) if counts else 1 + 0.3 * t + own
    noise = 0.0 if counts else 0.5 * rng.normal(size=t.size)
    return pd.DataFrame({"id": who, "t": t, "y": y + noise})


def said(function, *arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments, rng=0, **options)
    return result, {w.category: str(w.message) for w in caught}


@pytest.mark.parametrize(
    ("likelihood", "effect", "words"),
    [
        ("gaussian", {"intercept": 0.5}, "correlation of residuals 0.[345]"),
        ("gaussian", {"slope": 0.3}, "slopes in column 't' differ"),
        ("poisson", {"intercept": 0.6, "counts": True}, "correlation of residuals"),
    ],
)
def test_effects_of_groups_within_an_expert_are_seen(likelihood, effect, words):
    for seed in range(3):
        data = subjects(seed, **effect)
        _, found = said(moestat.fit_formula, "y ~ t | 1 | id", data, likelihood, n_experts=1)
        assert re.search(words, found[DependentRowsWarning])


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
@pytest.mark.parametrize("k", [1, 2])
def test_independent_rows_are_not(likelihood, k):
    """The level is 1e-3: two false alarms in ten data sets would happen once in 20,000 times."""
    seen = 0
    for seed in range(10):
        data = subjects(seed, counts=likelihood == "poisson")
        options = {"n_experts": k, "n_starts": 2}
        _, found = said(moestat.fit_formula, "y ~ t | 1 | id", data, likelihood, **options)
        seen += DependentRowsWarning in found
    assert seen < 2


def test_a_selection_says_that_random_intercepts_are_better():
    data = subjects(0, intercept=0.3)
    chosen, found = said(moestat.select, "gaussian", "y ~ t | 1 | id", data=data, k=(1, 2, 3))
    assert chosen.chosen() > 1
    assert "random intercept" in found[DependentRowsWarning]
    chosen, found = said(
        moestat.select, "gaussian", "y ~ t | 1 | id", data=subjects(0), k=(1, 2), n_starts=2
    )
    assert (chosen.chosen(), chosen.edge, DependentRowsWarning in found) == (1, None, False)


def test_a_choice_at_the_end_of_the_range_is_said_to_be_one():
    data = subjects(0, intercept=0.7)
    chosen, found = said(moestat.select, "gaussian", "y ~ t | 1 | id", data=data, k=(1, 2))
    assert "bic chooses 2 experts, the largest number that was tried" in found[EdgeWarning]
    assert str(chosen).endswith(chosen.edge)
    chosen, found = said(
        moestat.select, "gaussian", "y ~ t | 1 | id", data=subjects(0), k=(2, 3), n_starts=2
    )
    assert "the smallest number that was tried" in found[EdgeWarning]
    _, found = said(moestat.select, "gaussian", "y ~ t | 1 | id", data=subjects(0), k=(1,))
    assert EdgeWarning not in found
