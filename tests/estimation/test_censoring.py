"""Censored responses: densities, derivatives, one expert by scipy, and mixtures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

import moestat
from moestat.solvers.problem import Objective, Problem, Request, Rows

NAMES = ("gaussian", "log-normal", "weibull", "exponential")
N = 400


def bounds(name, seed=0):
    """Bounds (n, 2): a half known, the others above, below, and between numbers."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, N)
    noise = rng.normal(size=N) if name in NAMES[:2] else np.log(rng.exponential(size=N))
    level = 0.5 + x + 0.5 * noise
    y = level if name == "gaussian" else np.exp(level)
    kind = rng.integers(0, 6, N)
    low, high = y.copy(), y.copy()
    high[kind == 1] = np.inf
    low[kind == 2] = -np.inf if name == "gaussian" else 0.0
    low[kind == 3] -= 0.3 * np.abs(y[kind == 3])
    high[kind == 3] += 0.4
    return x, np.column_stack([low, high])


def expected(family, theta, x, y):
    """Log-density, or log-probability between the bounds, of each row, by scipy's laws."""
    eta = family.predictors(theta, x[None].copy())
    if family.likelihood.law is None:
        law = stats.norm(*family.likelihood.spread(eta))
    else:
        law = family.likelihood.law(eta)
    low, high = y.T
    part = np.where(low == high, law.pdf(low), law.cdf(high) - law.cdf(low))
    return np.log(np.sum(family.gate_probabilities(theta, x).T * part, axis=0))


@pytest.mark.parametrize("name", NAMES)
def test_value_score_and_hessian_are_those_of_the_formula(name):
    x, y = bounds(name)
    family = moestat.family({"name": name, "censored": True}, gate="softmax", n_experts=2)
    theta = 0.7 * family.typical(0) + 0.1
    assert np.allclose(family.log_density(theta, x, y), expected(family, theta, x, y), atol=1e-9)
    encoded = family.likelihood.encode(y, 1)
    problem = Problem(family, Rows(x[None].copy(), encoded, np.ones(N)))
    here, h = problem.evaluate(Request(Objective.OBSERVED, theta)), 1e-5
    for j in range(theta.size):
        step = h * np.eye(theta.size)[j]
        up, down = (problem.evaluate(Request(Objective.OBSERVED, theta + s)) for s in (step, -step))
        assert (up.value - down.value) / (2 * h) == pytest.approx(here.gradient[j], abs=1e-5)
        scale = np.abs(here.hessian).max()
        assert np.allclose(
            (up.gradient - down.gradient) / (2 * h), here.hessian[j], atol=1e-7 * scale
        )


@pytest.mark.parametrize("name", NAMES)
def test_far_tails_stay_finite(name):
    family = moestat.family({"name": name, "censored": True}, gate="softmax", n_experts=1)
    theta = family.pack(
        {
            n: np.full(p.shape, 1e-2 if n in {"nu", "sigma"} else 0.0)
            for n, p in family.blocks.items()
        }
    )
    rows = [[50.0, np.inf], [0.0, 1e-9], [3.0, 3.0 + 1e-12], [20.0, 30.0], [1.0, 1.0]]
    if name == "gaussian":
        rows += [[-np.inf, -60.0], [-30.0, -20.0]]
    y = np.array(rows)
    data = Rows(np.zeros((1, len(y))), family.likelihood.encode(y, 1), np.ones(len(y)))
    here = Problem(family, data).evaluate(Request(Objective.OBSERVED, theta))
    for values in vars(here).values():
        assert np.isfinite(values).all()


@pytest.mark.parametrize("name", NAMES)
def test_one_expert_is_the_maximum_of_the_formula(name):
    """R's survreg maximises the same."""
    x, y = bounds(name)
    result = moestat.fit(name, x, y, n_experts=1, rng=0)
    assert result.certificate.certified
    assert result.llf == pytest.approx(expected(result.family, result.theta, x, y).sum(), abs=1e-8)
    free = np.flatnonzero(result.family.lower < result.family.upper)

    def negative(part):
        theta = result.theta.copy()
        theta[free] = part
        with np.errstate(divide="ignore"):
            total = expected(result.family, theta, x, y).sum()
        return -total if np.isfinite(total) else 1e10

    end = optimize.minimize(
        negative, result.theta[free] + 0.1, method="BFGS", options={"gtol": 1e-8}
    )
    assert result.llf == pytest.approx(-end.fun, abs=1e-6)
    assert np.allclose(result.theta[free], end.x, atol=1e-4)


def test_mixtures_of_censored_times():
    rng = np.random.default_rng(4)
    x = rng.normal(size=800)
    first = rng.random(800) < 0.5
    time = np.exp(np.where(first, 2.0 + x, -1.0 - x)) * rng.exponential(size=800) ** 0.4
    end = rng.exponential(6.0, size=800)
    y = np.column_stack([np.minimum(time, end), np.where(time <= end, time, np.inf)])
    result = moestat.fit("weibull", x, y, n_experts=2, gate_inputs=[], rng=0)
    assert result.certificate.certified
    known = moestat.fit("weibull", x, np.minimum(time, end), n_experts=2, gate_inputs=[], rng=0)
    order = np.argsort(result.blocks["b"])
    errors = result.family.unpack(result.theta_bse)["b"][order]
    assert np.all(np.abs(result.blocks["b"][order] - [-1.0, 2.0]) < 4 * errors)
    assert known.blocks["b"].max() < result.blocks["b"].max() - 0.1  # what censoring costs
    residuals = result.quantile_residuals(rng=0)
    assert stats.kstest(residuals, "norm").pvalue > 1e-3
    assert np.isfinite(result.predict(x)).all()
    assert result.bootstrap(20, rng=0).replicates.shape[0] > 15
    with pytest.raises(ValueError, match="censored responses have no residuals"):
        result.resid.sum()


def test_censored_counts_are_those_of_the_law():
    """Values beside scipy's, far tails among them; derivatives beside their differences."""
    family = moestat.family({"name": "poisson", "censored": True}, gate="softmax", n_experts=1)
    rows = [[3, 3], [0, 2], [4, np.inf], [2, 7], [60, np.inf], [50, 55], [0, 0], [1, np.inf]]
    y = np.array([row for row in rows for _ in range(3)], dtype=float)
    x = np.tile([-2.0, 0.5, 3.0], len(rows))
    theta = family.pack({"beta0": [0], "beta1": [0], "b": [1.0], "a": [1.0]})
    law = stats.poisson(np.exp(1.0 + x))
    low, high = y.T
    short = np.where(np.isinf(high), 0.0, high)
    several = [law.pmf(low + j) * (low + j <= short) for j in range(8)]
    part = np.where(np.isinf(high), law.sf(low - 1), np.sum(several, axis=0))
    assert np.allclose(family.log_density(theta, x, y), np.log(part), rtol=1e-10)
    slope, bend = (f(family, theta, x, y) for f in (moestat.score, moestat.hessian))
    for j in (2, 3):
        step = 1e-5 * np.eye(4)[j]
        up, down = (family.log_density(theta + s, x, y).sum() for s in (step, -step))
        assert (up - down) / 2e-5 == pytest.approx(slope[j], rel=1e-7)
        up, down = (moestat.score(family, theta + s, x, y) for s in (step, -step))
        assert np.allclose((up - down) / 2e-5, bend[j], rtol=1e-7)


def test_mixtures_of_counts_up_to_a_limit():
    rng = np.random.default_rng(1)
    x = rng.normal(size=600)
    y = rng.poisson(np.exp(np.where(rng.random(600) < 0.4, 2.0 + 0.5 * x, -x)))
    table = {"x": x, "low": np.minimum(y, 8), "high": np.where(y >= 8, np.inf, y)}
    result = moestat.fit_formula("cbind(low, high) ~ x | 1", table, "poisson", rng=0)
    assert result.certificate.certified
    errors = result.family.unpack(result.theta_bse)["b"]
    order = np.argsort(result.blocks["b"])
    assert np.all(np.abs(result.blocks["b"] - [0.0, 2.0])[order] < 4 * errors[order])
    assert stats.kstest(result.quantile_residuals(rng=0), "norm").pvalue > 1e-3


def test_wrong_bounds_are_one_clear_error():
    x = np.linspace(-1, 1, 4)
    good = np.array([[1.0, 1.0], [2.0, np.inf], [0.5, 0.7], [3.0, 3.0]])
    for name, row, match in (
        ("weibull", [2.0, 1.0], "row 1 .from 0. has the bounds 2, 1"),
        ("weibull", [-1.0, 1.0], "positive numbers; got -1"),
        ("weibull", [np.nan, 1.0], "missing values"),
        ("gaussian", [-np.inf, np.inf], "one of them finite"),
        ("gamma", [1.0, 2.0], "y must have shape"),
        ("poisson", [1.0, 2.5], "whole numbers from 0; got 0.5"),
    ):
        y = good.copy()
        y[1] = row
        with pytest.raises(ValueError, match=match):
            moestat.fit(name, x, y, n_experts=1)


@pytest.mark.parametrize("name", [*NAMES, "poisson"])
def test_score_tests_of_censored_responses_are_near_likelihood_ratios(name):
    """An information of responses that are all known is not that of the scores."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (N, 2))
    level = 0.5 + X[:, 0] + 0.3 * X[:, 1]
    noise = rng.normal(size=N) if name in NAMES[:2] else np.log(rng.exponential(size=N))
    y = level + noise if name == "gaussian" else np.exp(level + noise)
    y = rng.poisson(np.exp(level)).astype(float) if name == "poisson" else y
    limit = np.median(y)
    Y = np.column_stack([np.minimum(y, limit), np.where(y < limit, y, np.inf)])
    full = moestat.fit(name, X, Y, n_experts=1, rng=0)
    small = full.fit_constrained("a[1,1] = 0")
    score = moestat.score_test(full, small.theta, 1)
    assert small.lr_test.statistic > 1.0
    assert score.statistic == pytest.approx(small.lr_test.statistic, rel=0.2)
    with pytest.raises(ValueError, match="'expected': not available for censored responses"):
        full.get_robustcov_results("expected")
    with pytest.raises(ValueError, match="only for fits without censored responses"):
        moestat.required_n(full, error=0.1, what="a[1,0]")
