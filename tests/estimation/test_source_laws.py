"""Every question of the laws, asked of a fit to a source as of the same fit in memory.

A question of `tests.laws.questions` has the answer that it has in memory, or is refused in a
sentence that says where the rows are.  A new question is in by its registration there.
"""

from __future__ import annotations

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import moestat
from tests.kinds import each_run
from tests.laws import questions

pytest.importorskip("pyarrow")

N = 1200

CASES = {
    "weights": ("y ~ t + sex | sex", {"weights": "w"}),
    "groups": ("y ~ t | sex | id", {}),
    "weighted groups": ("y ~ t | sex | id", {"weights": "w"}),
    "several": ("cbind(y, s) ~ t | sex", {"family": ["gaussian", "poisson"], "weights": "w"}),
}

QUESTIONS = {
    **{name: lambda case, r, ask=ask: ask(r) for name, ask in questions.OWN.items()},
    **questions.OTHERS,
    "score_test": lambda case, r: moestat.score_test(r, _beside(r), df=1).statistic,
    "cluster": lambda case, r: r.get_robustcov_results("cluster", case.labels(r)).bse,
    "survey": lambda case, r: r.get_robustcov_results("survey", case.labels(r)).bse,
    "quantile_residuals": lambda case, r: _first_of(r.quantile_residuals(0)),
    "influence": lambda case, r: np.sort(r.influence().displacement)[:-20:-1],
    "at_sample": lambda case, r: np.sort(np.ravel(_sample_of(r).resid)),
}

RANDOM = {"simulate", "bootstrap", "parametric bootstrap"}
"""Answers by random numbers, which a source draws block by block."""

PLACES = re.compile(
    r"source|not in memory|in memory|at_sample|without the data|known groups|not available"
)
"""What a refusal says that is not the one in memory."""


def _beside(result):
    """The estimate with one free parameter two standard errors away."""
    theta = result.theta.copy()
    j = int(np.flatnonzero(result.theta_bse > 0.0)[-1])
    theta[j] += 2.0 * result.theta_bse[j]
    return theta


def _first_of(values):
    """The first response: residuals of counts are drawn at random within their jumps."""
    values = np.asarray(values)
    return values if values.ndim == 1 else values[:, 0]


def _sample_of(result):
    return result.at_sample() if result.reads_source else result


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    who = np.arange(N) // 4
    first, t = rng.random(N // 4)[who] < 0.5, rng.uniform(0, 4, N)
    return pd.DataFrame(
        {
            "y": np.where(first, 1 + 2 * t, 5 - t) + 0.5 * rng.normal(size=N),
            "t": t,
            "sex": rng.choice(["f", "m"], N // 4)[who],
            "id": who,
            "w": rng.integers(1, 4, N // 4)[who],
            "s": rng.poisson(np.where(first, 1.0, 5.0)),
            "clinic": [f"clinic {i % 29}" for i in who],
        }
    )


@pytest.fixture(scope="module")
def fits(rows, tmp_path_factory):
    """By case: the fit in memory and to the file from its estimate, and both saved and loaded."""
    folder, made = tmp_path_factory.mktemp("laws"), {}
    rows.to_parquet(folder / "rows.parquet", row_group_size=317)

    def fits_of(name):
        if name not in made:
            formula, options = CASES[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                whole = moestat.fit_formula(formula, rows, n_experts=2, rng=0, **options)
                options = {**options, "starts": [moestat.starts.GivenStarts([whole.theta])]}
                found = moestat.fit_formula(
                    formula, folder / "rows.parquet", n_experts=2, rng=0, **options
                )
                loaded = []
                for number, fit in enumerate((whole, found)):
                    fit.save(folder / f"{number}.npz")
                    loaded.append(moestat.load(folder / f"{number}.npz"))
            made[name] = whole, found, *loaded
        return made[name]

    return fits_of


def answered(ask, case, result):
    """The answer as numbers or words, or the sentence that refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = ask(case, result)
        except ValueError as error:
            return None, str(error)
    if hasattr(answer, "savefig") or "matplotlib" in type(answer).__module__:
        return "a picture", None
    if isinstance(answer, pd.DataFrame | pd.Series):
        answer = answer.to_numpy()
    return answer, None


@pytest.mark.parametrize("stored", [False, True], ids=["fitted", "loaded"])
@pytest.mark.parametrize("question", each_run(QUESTIONS, QUESTIONS, first=[*QUESTIONS][::4]))
def test_a_source_answers_as_memory_does_or_says_where_the_rows_are(question, stored, fits, rows):
    failed = []
    for name in CASES:
        whole, found = fits(name)[2 * stored : 2 * stored + 2]
        case = SimpleNamespace(
            rows=rows,
            member=SimpleNamespace(kind="several" if name == "several" else "rows"),
            labels=lambda r: "clinic" if r.reads_source else rows["clinic"],
        )
        there, refusal = answered(QUESTIONS[question], case, whole)
        here, sentence = answered(QUESTIONS[question], case, found)
        if sentence is not None:
            if sentence != refusal and not PLACES.search(sentence):
                failed.append(f"{name}: {sentence!r}; in memory {refusal!r}")
        elif refusal is not None:
            failed.append(f"{name}: answers {here!r}; in memory {refusal!r}")
        elif question not in RANDOM and not alike(here, there):
            failed.append(f"{name}: {here!r}; in memory {there!r}")
    assert not failed, "\n".join(failed)


def alike(here, there):
    """Whether two answers are the same; of words, whether both are words."""
    if isinstance(here, str):
        return isinstance(there, str)
    one, other = (np.asarray(each) for each in (here, there))
    if one.dtype.kind in "OUS":
        return one.shape == other.shape
    return one.shape == other.shape and np.allclose(
        one, other, rtol=1e-5, atol=1e-7, equal_nan=True
    )
