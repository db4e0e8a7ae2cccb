"""Data that a fitted law does not describe are said to be so, and others are not."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.base.warnings import (
    DataWarning,
    DependentRowsWarning,
    FewRowsWarning,
    MisfitWarning,
)

N = 300
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, N)
LINE = 1 + 2 * X + 0.5 * RNG.normal(size=N)
RIGHT = RNG.random(N) < 1 / (1 + np.exp(-4 * X))
LINES = np.where(RIGHT, 2 * X, 1 - 2 * X) + 0.4 * RNG.normal(size=N)
COUNTS = RNG.poisson(np.exp(1 + X))
SUBJECT = RNG.permutation(np.repeat(np.arange(30), 10))
ALIKE = LINE + 0.5 * RNG.normal(size=30)[SUBJECT]
FEW = np.r_[np.arange(N - 6), np.zeros(6, dtype=int)]
FAR = np.where(np.arange(N) < N - 6, X, RNG.uniform(1.2, 1.6, N))


def said(*arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = moestat.fit(*arguments, rng=0, **options)
    assert {w.filename for w in caught} <= {__file__}
    return result, [(w.category, str(w.message)) for w in caught]


MISLEADING = {
    "outliers": (
        *("gaussian", X, LINE + 50 * (np.arange(N) < 3), 1, MisfitWarning),
        r"rows 0, 1, 2 of 300 lie where the fit expects one row in 3e\+05\..*student-t",
    ),
    "long tails": (
        *("gaussian", X, 2 * X + RNG.standard_t(2, N), 1, MisfitWarning, "longer tails"),
    ),
    "spike": (
        *("gaussian", X, np.where(np.arange(N) < 15, 0.0, LINE), 1, MisfitWarning),
        "y is 0 in 15 of 300 rows",
    ),
    "levels": ("gaussian", X, LINE.round(), 1, MisfitWarning, "only .* values.*ordinal"),
    "zeros": (
        *("poisson", X, np.where(np.arange(N) % 3, COUNTS, 0), 1, MisfitWarning),
        "are 0 in 1.. rows where the fit expects.*zero-inflated-poisson",
    ),
    "variance": (
        *("poisson", X, RNG.negative_binomial(2, 0.3, N), 1, MisfitWarning),
        "vary .* times as much.*negative-binomial",
    ),
    "no scale": (
        *("exponential", X, RNG.gamma(5.0, size=N), 1, MisfitWarning),
        "responses vary 0.* as much as the fitted distribution.*'weibull'",
    ),
    "copies": (
        *("gaussian", np.repeat(X, 2), np.repeat(LINE, 2), 1, DependentRowsWarning),
        "300 of 600 rows are copies",
    ),
    "copies of counts": (
        *("poisson", np.repeat(X, 2), np.repeat(COUNTS, 2), 1, DependentRowsWarning),
        "300 of 600 rows are copies",
    ),
    "subjects": (
        *("gaussian", np.column_stack([X, SUBJECT]), ALIKE, 1, DependentRowsWarning),
        "equal values of column 1 .*30 values",
    ),
    "subjects in order": (
        *("gaussian", X, LINE + 0.5 * RNG.normal(size=30).repeat(10), 1, DependentRowsWarning),
        "adjacent rows are similar",
    ),
    "an expert of six rows": (
        *("gaussian", FAR, np.where(FAR > 1.1, -9 + LINE - 4 * FAR, LINE), 2, FewRowsWarning),
        "expert 2 has 6.0 rows for 3 parameters",
    ),
    "two values": (
        *("gaussian", (X > 0) * 1.0, np.where(RIGHT, 2, -2) + 0.3 * LINE, 2, FewRowsWarning),
        "take 2 different values.*only the experts' scales tell",
    ),
}


@pytest.mark.parametrize("case", MISLEADING.values(), ids=list(MISLEADING))
def test_misleading_data_are_said_to_be(case):
    likelihood, x, y, k, kind, words = case
    result, found = said(likelihood, x, y, n_experts=k)
    assert [
        message for category, message in found if category is kind and re.search(words, message)
    ]
    noted = [message for category, message in found if issubclass(category, DataWarning)]
    assert set(noted) <= set(result.notes)


@pytest.mark.parametrize(
    ("likelihood", "x", "y", "k"),
    [
        ("gaussian", X, LINE, 1),
        ("gaussian", X.round(1), LINES.round(1), 2),
        ("poisson", X, COUNTS, 1),
        ("poisson", X.round(), COUNTS, 1),
        ("multinomial", X.round(), RIGHT, 1),
        ("least-squares", X, LINE, 1),
        ("zero-inflated-poisson", X, np.where(np.arange(N) % 3, COUNTS, 0), 1),
    ],
)
def test_regular_data_are_not(likelihood, x, y, k):
    _, found = said(likelihood, x, y, n_experts=k)
    assert not [message for category, message in found if issubclass(category, DataWarning)]


def test_rows_are_called_by_their_names():
    table = pd.DataFrame({"x": X}, index=[f"person {i}" for i in range(N)])
    y = pd.Series(LINE + 50 * (np.arange(N) == 7), index=table.index)
    _, found = said("gaussian", table, y, n_experts=1)
    assert "row person 7 of 300 lies where" in found[0][1]


def test_searches_over_numbers_of_experts_do_not_warn_of_each():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = LINE + 50 * (np.arange(N) < 3)
        found = moestat.select("gaussian", X, y, k=(1,), folds=2, rng=0)
    # Of the chosen fit, and not of those of the folds.
    assert [str(one.message) for one in caught] == list(found.best.notes)
    assert len(caught) == 1


def test_a_selection_says_of_its_choice_what_a_fit_says():
    """By arrays and by formula, once, and with the same notes as the fit itself."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    data = {"x": x, "y": 1.0 + x + rng.standard_t(2, size=200)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = moestat.fit("gaussian", x, data["y"], n_experts=1, rng=0)
    calls = (("gaussian", x, data["y"]), ("gaussian", "y ~ x"))
    for call, table in zip(calls, ({}, {"data": data}), strict=True):
        with pytest.warns(MisfitWarning) as seen:
            found = moestat.select(*call, k=(1,), rng=0, **table)
        assert [str(one.message) for one in seen] == list(fit.notes)
        assert (found.best.notes, found.best.kinds) == (fit.notes, fit.kinds)


def _notes_of_table(likelihood, x, y, seed=0):
    """Notes of a fit to rows, and of the fit to the table of their counts in random order."""
    cells, counts = np.unique(np.column_stack([x, y]), axis=0, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(counts))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = moestat.fit(likelihood, x, y, n_experts=1, rng=0)
        tables = [
            moestat.fit(likelihood, *cells[at].T, n_experts=1, rng=0, sample_weight=counts[at])
            for at in (order, slice(None))
        ]
    return rows.notes, *(table.notes for table in tables)


@pytest.mark.parametrize("kind", ["zeros", "variance", "outlier", "sound", "sound line"])
def test_a_table_of_counts_is_warned_of_as_its_rows_are(kind):
    """More zeros, more variance and outliers are seen; the order of a table says nothing."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, 2000).astype(float)
    mean = np.exp(0.8 + 0.2 * x)
    y = {
        "zeros": np.where(rng.random(2000) < 0.15, 0.0, rng.poisson(mean)),
        "variance": 1.0 * rng.negative_binomial(2.0, 2.0 / (2.0 + mean)),
        "outlier": np.round(x + rng.normal(size=2000), 1) + np.r_[9.0, np.zeros(1999)],
        "sound": 1.0 * rng.poisson(mean),
        "sound line": np.round(x + rng.normal(size=2000), 1),
    }[kind]
    line = kind in ("outlier", "sound line")
    rows, shuffled, in_order = _notes_of_table("gaussian" if line else "poisson", x, y)
    first = [tuple(note.split(":")[0] for note in notes) for notes in (rows, shuffled, in_order)]
    assert first[0] == first[1] == first[2]
    assert bool(rows) == (not kind.startswith("sound"))


def table_of_shapes(rng):
    """Rows with responses of every shape, which vary as their models say."""
    x, trials = rng.normal(size=N), rng.integers(5, 20, N)
    d = pd.DataFrame({"x": x, "y": x + rng.normal(size=N), "t": trials})
    d["c"], d["s"] = rng.poisson(np.exp(0.5 * x)), rng.binomial(trials, 1 / (1 + np.exp(-x)))
    d["low"], d["high"] = d.y.clip(upper=1), d.y.where(d.y < 1, np.inf)
    return d


SHAPES = {
    "trials": ("cbind(s, t - s) ~ x", "binomial"),
    "censored": ("cbind(low, high) ~ x", "gaussian"),
    "several": ("cbind(y, c) ~ x", ["gaussian", "poisson"]),
    "normal": ("cbind(y, low) ~ x", "multivariate-gaussian"),
}


def kinds_of(shape, table, **more):
    formula, family = SHAPES[shape]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        moestat.fit_formula(formula, table, family, n_experts=1, rng=0, **more)
    return [(w.category, str(w.message)) for w in caught]


@pytest.mark.parametrize("shape", ["trials", "censored", "several"])
def test_regular_responses_of_two_columns_are_not_warned_of(shape):
    found = [kinds_of(shape, table_of_shapes(np.random.default_rng(s))) for s in range(12)]
    assert sum(map(bool, found)) <= 1


@pytest.mark.parametrize(
    ("shape", "change", "words"),
    [
        ("trials", lambda d, g: {"s": g.binomial(d.t, g.beta(2, 2, N))}, "'beta-binomial'"),
        (
            "trials",
            lambda d, g: {"s": (d.t / 2).round() + d.index % 2},
            r"0\.\d* times .*too large",
        ),
        ("several", lambda d, g: {"c": g.negative_binomial(1, 0.2, N)}, "c: .*negative-binomial"),
        ("several", lambda d, g: {"y": d.y + 60 * (d.index < 3)}, "y has outliers"),
        ("normal", lambda d, g: {"y": d.y + 60 * (d.index < 3)}, "y has outliers"),
        (
            "censored",
            lambda d, g: {c: d[c] + 60 * (d.index < 2) for c in ("low", "high")},
            "y has outliers",
        ),
    ],
)
def test_every_shape_of_response_is_checked(shape, change, words):
    rng = np.random.default_rng(5)
    table = table_of_shapes(rng)
    found = kinds_of(shape, table.assign(**change(table, rng)))
    assert [m for kind, m in found if kind is MisfitWarning and re.search(words, m)], found


@pytest.mark.parametrize("name", ["poisson", "zero-inflated-poisson", "binomial"])
def test_advice_for_less_variance_does_not_name_what_only_adds_it(name):
    d = table_of_shapes(np.random.default_rng(5))
    formula = "cbind(s, t - s) ~ x" if name == "binomial" else "c ~ x"
    d = d.assign(s=(d.t / 2).round() + d.index % 2, c=np.exp(1 + 0.2 * d.x).round())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        moestat.fit_formula(formula, d, name, n_experts=1, rng=0)
    words = [str(w.message) for w in caught if w.category is MisfitWarning]
    assert words
    assert not re.search("negative-binomial|beta-binomial", " ".join(words))
