"""Counts and binary responses with a normal intercept of each group, beside direct integration."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

import moestat
from moestat.estimation.data.groups import arranged, encoded_rows
from moestat.kernels.atom import WORK_ROWS
from moestat.model import random_intercept
from moestat.model.joint import as_likelihood
from moestat.model.likelihoods import LIKELIHOODS
from moestat.solvers.groups import group_sums

RANDOM = {"random": ["1"]}


def integral(density, of=lambda v: 1.0):
    """An integral over a standard normal effect, by Gauss's rule in short pieces."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    v = (np.arange(-9.0, 9.0, 0.25)[:, None] + 0.125 * (nodes + 1.0)).ravel()
    return np.tile(0.125 * weights, 72) @ (density(v) * of(v) * stats.norm.pdf(v))


def density_of(name, y, eta, scale):
    """The density of a group's responses y (m,) by its effect."""
    return lambda v: LAWS[name](y, eta + scale * v[:, None]).prod(axis=1)


LAWS = {
    "poisson": lambda y, eta: stats.poisson.pmf(y, np.exp(eta)),
    "binomial": lambda y, eta: stats.binom.pmf(y, 1, expit(eta)),
}
CASES = {
    "poisson": (
        [0.3, 2.0, -3.0, 5.0, 0.0],
        [0.7, 0.0, 2.5, 1.0, -0.4],
        [2.0, 0.0, 1.0, 300.0, 4.0],
    ),
    "binomial": ([0.3, 2.0, -3.0, 5.0, 0.0], [0.7, 0.0, 2.5, 6.0, -0.4], [1.0, 0.0, 1.0, 0.0, 1.0]),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_row_by_itself_is_integrated_with_its_derivatives(name):
    law = as_likelihood({"name": name, **RANDOM})
    mean, scale, y = map(np.array, CASES[name])
    own = [np.ones(5)] if name == "binomial" else []
    n = 2 + len(own)

    def at(eta, order=2):
        value, d1, d2 = np.empty(5), np.empty((n, 5)), np.empty((n * (n + 1) // 2, 5))
        work = np.empty((WORK_ROWS[law.block], 5))
        law.block(eta, y, 5, order, value, d1, d2, work)
        return value, d1, d2

    eta = np.array([mean, *own, scale])
    value, d1, d2 = at(eta)
    each = zip(y, mean, scale, strict=True)
    exact = [np.log(integral(density_of(name, *row))) for row in each]
    assert np.allclose(value, exact, rtol=0, atol=1e-10)
    last = n - 1
    second = {(0, 0): 0, (last, 0): last * n // 2, (last, last): last * n // 2 + last}
    for c in (0, last):
        step = np.zeros((n, 1))
        step[c] = 1e-5
        up, down = at(eta + step), at(eta - step)
        assert np.allclose((up[0] - down[0]) / 2e-5, d1[c], rtol=1e-6, atol=1e-7)
        for e in (0, last):
            own_second = d2[second[max(c, e), min(c, e)]]
            assert np.allclose((up[1][e] - down[1][e]) / 2e-5, own_second, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def table():
    """Counts and outcomes of 60 groups of several sizes, in two classes."""
    rng = np.random.default_rng(0)
    size = rng.integers(1, 8, 60)
    group = np.repeat(np.arange(60), size)
    x, w = rng.normal(size=group.size), rng.normal(size=60)[group]
    second = (rng.random(60) < expit(w[np.cumsum(size) - 1]))[group]
    u = 0.7 * rng.normal(size=60)[group]
    y = rng.poisson(np.exp(np.where(second, 0.2 + 0.5 * x, 2 - 0.5 * x) + u))
    b = (rng.random(group.size) < expit(0.5 + x + 2 * u)).astype(int)
    return pd.DataFrame({"id": group, "x": x, "w": w, "y": y, "b": b})


@pytest.mark.parametrize(
    ("response", "name"),
    [pytest.param("y", "poisson", marks=pytest.mark.slow), ("b", "binomial")],
)
def test_one_expert_is_the_integral_and_its_maximum(table, response, name):
    fit = moestat.fit_formula(f"{response} ~ x + (1 | id)", table, name, n_experts=1, rng=0)
    assert fit.certificate.certified
    b, a, scale = (fit.params[key] for key in ("b[1]", "a[1,x]", "l[1,0]"))
    total = 0.0
    for _, rows in table.groupby("id"):
        y, eta = rows[response].to_numpy(), (b + a * rows.x).to_numpy()
        total += np.log(integral(density_of(name, y, eta, scale)))
    assert fit.llf == pytest.approx(total, abs=1e-8)
    own = fit.variance_components()
    assert own.index.tolist() == [(1, "sd(Intercept)")]
    assert own.estimate.iloc[0] == pytest.approx(abs(scale))
    # Without variance it is the fit of independent rows.
    plain = moestat.fit_formula(f"{response} ~ x", table, name, n_experts=1, rng=0)
    theta = fit.theta.copy()
    theta[fit.family.index[0, -1]] = 0.0
    for key in ("b[1]", "a[1,0]"):
        at = plain.family.param_names.index(key)
        theta[fit.family.param_names.index(key)] = plain.theta[at]
    sums = group_sums(fit.family, theta, encoded_rows(fit.family, fit.rows), 0)
    assert sums.value == pytest.approx(plain.llf, abs=1e-9)


@pytest.mark.parametrize(("response", "name"), [("y", "poisson"), ("b", "binomial")])
def test_scores_and_hessian_of_groups_are_those_of_the_value(table, response, name):
    family = moestat.family({"name": name, **RANDOM}, gate="softmax", n_features=2)
    y = family.likelihood.encode(table[response], 1)
    X = np.ascontiguousarray(table[["x", "w"]].to_numpy().T)
    sample = arranged(X, y, np.ones(len(y)), table.id.to_numpy(), False)
    rng = np.random.default_rng(1)
    free = np.flatnonzero(family.lower < family.upper)
    theta = np.clip(np.zeros(family.n_params), family.lower, family.upper)
    theta[free] = 0.4 * rng.normal(size=free.size)
    here = group_sums(family, theta, sample, 2)
    for j in free:
        step = np.zeros(family.n_params)
        step[j] = 1e-5
        up, down = (group_sums(family, theta + s * step, sample, 1) for s in (1.0, -1.0))
        slope = (up.value - down.value) / 2e-5
        assert slope == pytest.approx(here.score[j], rel=1e-6, abs=1e-6)
        slopes = (up.score - down.score) / 2e-5
        assert np.allclose(slopes[free], here.hessian[j, free], rtol=1e-5, atol=1e-5)


def test_predicted_effects_and_means_are_conditional_moments(table):
    fit = moestat.fit_formula("y ~ x + (1 | id) | 1", table, "poisson", rng=0)
    value = fit.params
    pi = np.array([expit(value["beta0[1]"]), expit(-value["beta0[1]"])])
    means = fit.predict(table, groups=table["id"]).to_numpy()
    for group in (3, 11):
        rows = table[table.id == group]
        shares, effects, first = np.empty(2), np.empty(2), np.empty(2)
        for i in range(2):
            eta = (value[f"b[{i + 1}]"] + value[f"a[{i + 1},x]"] * rows.x).to_numpy()
            scale = value[f"l[{i + 1},0]"]
            density = density_of("poisson", rows.y.to_numpy(), eta, scale)
            shares[i] = integral(density)
            effects[i] = scale * integral(density, lambda v: v) / shares[i]
            first[i] = integral(density, lambda v, e=eta[0], s=scale: np.exp(e + s * v)) / shares[i]
        tau = pi * shares / (pi @ shares)
        assert fit.random_effects().loc[group, "Intercept"] == pytest.approx(
            tau @ effects, abs=1e-8
        )
        at = np.flatnonzero(table.id == group)[0]
        assert means[at] == pytest.approx(tau @ first, rel=1e-8)
    # The population's mean is that of a log-normal factor.
    eta = [value[f"b[{i + 1}]"] + value[f"a[{i + 1},x]"] * table.x for i in range(2)]
    whole = sum(pi[i] * np.exp(eta[i] + 0.5 * value[f"l[{i + 1},0]"] ** 2) for i in range(2))
    assert np.allclose(fit.predict(table), whole, rtol=1e-9)
    drawn = np.mean([fit.simulate(rng=s) for s in range(200)], axis=0)
    assert np.corrcoef(drawn, whole)[0, 1] > 0.9


@pytest.mark.parametrize("name", LAWS)
def test_a_summary_lists_the_deviation_of_each_expert_once(table, name):
    table = table.assign(y=table.y if name == "poisson" else np.minimum(table.y, 1.0))
    start = {"n_starts": 2, "risk": 1.0}
    result = moestat.fit_formula("y ~ x + (1 | id) | 1", table, name, rng=0, **start)
    assert str(result.summary()).count("  sd(Intercept)") == 2


@pytest.mark.parametrize(
    ("formula", "family", "match"),
    [
        ("y ~ x + w + (1 + x + w | id)", "poisson", "at most 2 random effects"),
        ("y ~ x + (1 | id)", "negative-binomial", "random effects are available for"),
        ("y ~ x + (1 | id)", {"name": "poisson", "censored": True}, "censored counts"),
    ],
)
def test_what_cannot_be_had_is_refused(table, formula, family, match):
    with pytest.raises(ValueError, match=match):
        moestat.fit_formula(formula, table, family)


@pytest.mark.parametrize("cells", [1, 100, 10**6])
def test_distributions_are_averages_over_the_intercept(cells, monkeypatch):
    """Poisson counts with a normal intercept have the moments of a log-normal mean."""
    monkeypatch.setattr(random_intercept, "_CELLS", cells)
    eta, spread = np.array([[0.2, -1.0, 1.5], [0.0, 2.0, -0.5]]), np.array([[0.3], [1.1]])
    own = random_intercept.Averaged(
        LIKELIHOODS["poisson"].law, np.stack([eta, spread + 0.0 * eta], axis=1)
    )
    mean = np.exp(eta + spread**2 / 2)
    assert np.allclose(own.mean(), mean, rtol=1e-12)
    # Effects end at 8.5 deviations, and squares weigh those around 2.2: 2e-10 of them are beyond.
    assert np.allclose(own.std() ** 2, mean + mean**2 * np.expm1(spread**2), rtol=1e-9)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    counts = np.arange(4.0)[:, None, None]
    at = np.exp(eta + np.multiply.outer(nodes, spread))[:, None]
    expected = np.tensordot(weights / weights.sum(), stats.poisson(at).pmf(counts), 1)
    assert np.allclose(own.pmf(counts), expected, rtol=1e-8)
    assert np.allclose(own.cdf(counts), np.cumsum(expected, axis=0), rtol=1e-8)
    assert np.allclose(own.sf(counts), 1.0 - np.cumsum(expected, axis=0), atol=1e-8)
