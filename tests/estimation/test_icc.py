"""The intraclass correlation, beside formulas written again and another package's components."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import moestat
from moestat.estimation.fit.components import factor_index
from moestat.estimation.inference.questions import QUESTIONS, Question

N, SIZE = 40, 8


@pytest.fixture(scope="module")
def frame():
    """Groups with an intercept and a slope: normal responses, counts, and successes."""
    rng = np.random.default_rng(3)
    who, x = np.repeat(np.arange(N), SIZE), rng.normal(size=N * SIZE)
    u, v = 0.7 * rng.normal(size=N)[who], 0.4 * rng.normal(size=N)[who]
    return pd.DataFrame(
        {
            "id": who,
            "x": x,
            "y": 1.0 + x + u + v * x + 0.5 * rng.normal(size=who.size),
            "c": rng.poisson(np.exp(0.3 + 0.5 * x + u)),
            "b": (0.5 * x + 2.0 * u + rng.logistic(size=who.size) > 0).astype(int),
            "w": np.repeat(rng.integers(1, 3, N), SIZE),
        }
    )


def share(result, theta, frame, weight):
    """The formulas of Nakagawa, Johnson and Schielzeth (2017), of the only expert."""
    family, Z = result.family, np.column_stack([frame["x"], np.ones(len(frame))])
    effects, at = family.likelihood.effects, factor_index(family)[0]
    mean = family.index[0, family.first_expert_channel]
    if effects.features == (0,):
        Z = Z[:, 1:]
        L = np.array([[theta[at[0]]]])
    else:
        L = np.array([[theta[at[0] + 1], 0.0], [theta[at[0]], theta[at[1]]]])
    D = L @ L.T
    random = np.average(np.einsum("na,ab,nb->n", Z, D, Z), weights=weight)
    if effects.base is None:
        return random / (random + np.exp(theta[family.index[0, family.first_expert_channel + 1]]))
    if effects.base.name == "binomial":
        return random / (random + np.pi**2 / 3)
    a, b = theta[mean : mean + 2]
    spread = np.einsum("na,ab,nb->n", Z, D, Z)
    count = np.average(np.exp(a + b * frame["x"] + spread / 2), weights=weight)
    return random / (random + np.log(1 + 1 / count))


CASES = {
    "intercept": ("y ~ x + (1 | id)", {}),
    "slope": ("y ~ x + (1 + x | id)", {}),
    "weights": ("y ~ x + (1 + x | id)", {"weights": "w"}),
    "counts": ("c ~ x + (1 | id)", {"family": "poisson"}),
    "slopes of counts": ("c ~ x + (1 + x | id)", {"family": "poisson"}),
    "successes": ("cbind(b, 1 - b) ~ x + (1 | id)", {"family": "binomial"}),
}


LONG = ("slopes of counts", "successes")  # integrals of two effects, and of yes and no


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * (name in LONG)) for name in CASES],
)
def test_formulas_and_errors_by_differences(name, frame, tmp_path):
    formula, options = CASES[name]
    result = moestat.fit_formula(formula, frame, n_experts=1, rng=0, **options)
    weight = frame["w"] if "weights" in options else np.ones(len(frame))
    (found,) = result.icc().to_numpy()
    theta = np.asarray(result.theta)
    expected = share(result, theta, frame, weight)
    assert found[0] == pytest.approx(expected, rel=1e-10)
    steps = 1e-6 * np.eye(theta.size)
    slopes = [
        (share(result, theta + h, frame, weight) - share(result, theta - h, frame, weight)) / 2e-6
        for h in steps
    ]
    error = np.sqrt(slopes @ result._covariance @ slopes)
    assert found[1] == pytest.approx(error, rel=1e-6)
    logit, reach = np.log(expected / (1 - expected)), 1.959964 * error / expected / (1 - expected)
    ends = 1 / (1 + np.exp(-logit - np.array([-reach, reach])))
    np.testing.assert_allclose(found[2:], ends, rtol=1e-6)


@pytest.mark.parametrize("name", ["slope", "weights", "counts"])
def test_a_source_gives_what_memory_gives(name, frame, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    formula, options = CASES[name]
    here = moestat.fit_formula(formula, frame, n_experts=1, rng=0, **options)
    there = moestat.fit_formula(formula, path, n_experts=1, rng=0, **options)
    assert there.reads_source
    np.testing.assert_allclose(there.icc(), here.icc(), rtol=1e-6)


def test_components_of_another_package(frame):
    mixed = pytest.importorskip("statsmodels.formula.api")
    theirs = mixed.mixedlm("y ~ x", frame, groups="id").fit(reml=False)
    variance = float(theirs.cov_re.iloc[0, 0])
    ours = moestat.fit_formula("y ~ x + (1 | id)", frame, n_experts=1, rng=0).icc()
    assert ours.loc[1, "estimate"] == pytest.approx(variance / (variance + theirs.scale), rel=1e-4)


def test_every_expert_has_a_row():
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), 6)
    high = who < 30
    y = np.where(high, 5.0, 0.0) + np.where(high, 1.0, 0.3) * rng.normal(size=60)[who]
    y = y + 0.5 * rng.normal(size=who.size)
    rows = pd.DataFrame({"y": y, "id": who, "x": rng.normal(size=who.size)})
    result = moestat.fit_formula("y ~ x + (1 | id) | 1", rows, rng=0)
    found = result.icc()
    assert found.index.tolist() == [1, 2]
    components = result.variance_components()["estimate"]
    for expert in (1, 2):
        row = components.loc[expert]
        assert found.loc[expert, "estimate"] == pytest.approx(row["ICC"], rel=1e-10)


def test_nested_groups_count_together(frame):
    rows = frame.assign(part=np.tile(np.repeat([0, 1], SIZE // 2), N))
    rows["y"] += 0.6 * np.random.default_rng(1).normal(size=(N, 2))[rows["id"], rows["part"]]
    result = moestat.fit_formula("y ~ x + (1 | id/part)", rows, n_experts=1, rng=0)
    whole = result.variance_components().loc[1].loc["ICC(id/part)"]
    np.testing.assert_allclose(result.icc().loc[1], whole, rtol=1e-8)


def test_a_variance_of_zero_has_no_interval():
    who = np.repeat(np.arange(15), 4)
    y = np.tile([-1.0, 0.0, 0.3, 1.0], 15) + 0.01 * np.arange(60)
    result = moestat.fit("gaussian", np.arange(60.0), y, groups=who, random="1", n_experts=1)
    assert result.icc().loc[1, "estimate"] == 0.0
    assert result.icc().loc[1, ["std_error", "conf_low", "conf_high"]].isna().all()


def test_what_cannot_be_answered_is_said(frame):
    plain = moestat.fit_formula("y ~ x", frame, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="icc: the fit has no random effects; fit with random="):
        plain.icc()
    fitted = moestat.fit_formula("y ~ x + (1 + x | id)", frame, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="alpha must be"):
        fitted.icc(alpha=1.5)
    with pytest.raises(ValueError, match="not in memory"):
        fitted.without_data().icc()
    with pytest.raises(ValueError, match=r"unknown question 'icd'; known: .* did you mean 'icc'"):
        fitted.ask("icd")


def test_a_question_is_a_function_and_a_line(frame, monkeypatch):
    fitted = moestat.fit_formula("y ~ x + (1 | id)", frame, n_experts=1, rng=0)
    assert fitted.ask("icc").equals(fitted.icc())
    monkeypatch.setattr(QUESTIONS, "_members", dict(QUESTIONS._members))
    QUESTIONS.register(Question("n_groups_of", lambda result, least: result.n_groups >= least))
    assert fitted.ask("n_groups_of", 2)
    shown = replace(fitted, notes=())
    assert shown.ask("icc").equals(fitted.icc())
