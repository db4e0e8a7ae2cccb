"""Beta-binomial experts: scipy's law, exact derivatives far out, and a maximum found by hand."""

from __future__ import annotations

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import betabinom, kstest

import moestat
from moestat.base.warnings import LimitWarning
from moestat.model.likelihoods import LIKELIHOODS
from moestat.model.likelihoods.beta_binomial import BetaBinomial, block, block_of_rows


def exactly(eta, t, y, n):
    """Log-probability in sixty digits."""
    r = mpmath.exp(-t)
    a, b = r / (1 + mpmath.exp(-eta)), r / (1 + mpmath.exp(eta))
    return (
        mpmath.log(mpmath.binomial(n, y))
        + mpmath.log(mpmath.rf(a, y))
        + mpmath.log(mpmath.rf(b, n - y))
        - mpmath.log(mpmath.rf(r, n))
    )


CASES = [
    (0.3, -1.0, 3, 9),
    (-40.0, 2.0, 0, 9),
    (-40.0, 2.0, 2, 9),
    (25.0, -5.0, 9, 9),
    (1.0, -20.0, 40, 60),
    (-2.0, 6.5, 1, 200),
    (0.0, -18.0, 4000, 9000),
]


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_exact_far_out(case, rows):
    eta, t, y, n = case
    with mpmath.workdps(60):
        exact = {
            (i, j): float(
                mpmath.diff(
                    lambda u, v: exactly(u, v, y, n), (mpmath.mpf(eta), mpmath.mpf(t)), (i, j)
                )
            )
            for i, j in ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
        }
    predictors = [[eta], [t]] if rows else [[eta], [t], [float(n)]]
    value, d1, d2 = np.empty(1), np.full((3, 1), np.nan), np.full((6, 1), np.nan)
    response = np.array([y + 1j * n if rows else float(y)])
    (block_of_rows if rows else block)(np.array(predictors), response, 1, 2, value, d1, d2)
    found = value[0], d1[0, 0], d1[1, 0], d2[0, 0], d2[1, 0], d2[2, 0]
    # What is left of sums of n terms has their rounding.
    close = {"rtol": 1e-11, "atol": 4e-16 * n}
    assert np.allclose(found, list(exact.values()), **close)
    if not rows:
        assert not d1[2].any()
        assert not d2[3:].any()


def test_the_law_is_that_of_scipy():
    rng = np.random.default_rng(0)
    p, phi, n = rng.uniform(0.02, 0.98, 40), rng.uniform(0.02, 3, 40), rng.integers(1, 30, 40)
    own, scipy = BetaBinomial(n, p, 1 - p, phi), betabinom(n, p / phi, (1 - p) / phi)
    for y in (-1, 0, 3, 2.5, rng.integers(0, n + 1), 40):
        for name in ("cdf", "sf"):
            assert np.allclose(getattr(own, name)(y), getattr(scipy, name)(y), atol=1e-12)
    y = rng.integers(0, n + 1)
    assert np.allclose(own.pmf(y), scipy.pmf(y), rtol=1e-11)
    assert not own.pmf(n + 1).any()
    for q in (1e-6, 0.2, 0.5, 0.999):
        assert np.array_equal(own.ppf(q), scipy.ppf(q))
    assert np.allclose(own.mean(), scipy.mean())
    assert np.allclose(own.std(), scipy.std())


@pytest.fixture(scope="module")
def litters():
    """Successes of litters of several sizes, in two kinds."""
    rng = np.random.default_rng(4)
    x, n = rng.uniform(-1, 1, 500), rng.integers(3, 25, 500)
    p, phi = expit(0.4 + 0.9 * x), 0.3
    s = rng.binomial(n, rng.beta(p / phi, (1 - p) / phi))
    return pd.DataFrame({"x": x, "n": n, "s": s})


def test_one_expert_is_the_maximum_of_scipys_likelihood(litters):
    def minus(theta):
        p, phi = expit(theta[0] + theta[1] * litters.x), np.exp(theta[2])
        return -betabinom.logpmf(litters.s, litters.n, p / phi, (1 - p) / phi).sum()

    best = minimize(minus, np.zeros(3), method="BFGS", options={"gtol": 1e-4})
    fit = moestat.fit_formula("cbind(s, n - s) ~ x", litters, "beta-binomial", n_experts=1, rng=0)
    assert fit.certificate.certified
    assert fit.llf == pytest.approx(-best.fun, abs=1e-6)
    assert np.allclose(fit.params[["b[1]", "a[1,x]", "log phi[1]"]], best.x, atol=1e-4)
    # Overdispersed counts are not binomial, and the probability integral transform says so.
    simple = moestat.fit_formula("cbind(s, n - s) ~ x", litters, "binomial", n_experts=1, rng=0)
    assert fit.llf > simple.llf + 50
    assert kstest(fit.quantile_residuals(rng=0), "norm").pvalue > 1e-3


def test_two_experts_predict_and_simulate(litters):
    rng = np.random.default_rng(5)
    p = expit(np.where(rng.random(500) < 0.5, 2 + litters.x, -2 + litters.x))
    table = litters.assign(s=rng.binomial(litters.n, rng.beta(p / 0.1, (1 - p) / 0.1)))
    fit = moestat.fit_formula("cbind(s, n - s) ~ x | 1", table, "beta-binomial", rng=0)
    assert fit.certificate.certified
    theta = fit.params.to_numpy()
    alone = np.array([fit.blocks["phi"][i] for i in range(2)])
    mean = np.array([expit(fit.blocks["b"][i] + fit.blocks["a"][i, 0] * table.x) for i in range(2)])
    weight = np.exp(np.append(theta[list(fit.params.index).index("beta0[1]")], 0.0))
    weight /= weight.sum()
    density = sum(
        w * betabinom.pmf(table.s, table.n, m / f, (1 - m) / f)
        for w, m, f in zip(weight, mean, alone, strict=True)
    )
    assert fit.llf == pytest.approx(np.log(density).sum(), rel=1e-10)
    assert np.allclose(fit.predict(table), weight @ mean)
    assert np.array_equal(fit.simulate(rng=0).sum(axis=1), table.n)
    # Rows of one number of trials have the likelihood of that number.
    same, own = np.minimum(table.s, 24), {"n_experts": 1, "rng": 0}
    both = np.column_stack([same, 24 - same])
    rows = moestat.fit("beta-binomial", table[["x"]], both, **own)
    eight = {"name": "beta-binomial", "trials": 24}
    assert moestat.fit(eight, table[["x"]], same, **own).llf == pytest.approx(rows.llf, rel=1e-9)


def test_less_variable_counts_are_the_limit_of_no_overdispersion(litters):
    table = litters.assign(s=(litters.n * expit(litters.x)).round())
    with pytest.warns(LimitWarning, match="binomial"):
        fit = moestat.fit_formula("cbind(s, n - s) ~ x", table, "beta-binomial", n_experts=1, rng=0)
    simple = moestat.fit_formula("cbind(s, n - s) ~ x", table, "binomial", n_experts=1, rng=0)
    assert fit.llf == pytest.approx(simple.llf, abs=1e-4)


def test_trials_are_checked():
    assert LIKELIHOODS["beta-binomial"].options == {"trials": 2}
    for options, match in (
        ({"trials": 1}, "an integer >= 2"),
        ({"link": "probit"}, "does not take"),
    ):
        with pytest.raises(ValueError, match=match):
            moestat.family({"name": "beta-binomial", **options})
    with pytest.raises(ValueError, match="at most the number of trials, 2; got 5"):
        moestat.fit("beta-binomial", np.arange(6.0), [0, 1, 2, 5, 1, 0], n_experts=1)
