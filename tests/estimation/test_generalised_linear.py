"""Negative binomial, gamma and binomial experts: statsmodels' models for one, flexmix for two."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import kstest

import moestat
from moestat.base.warnings import LimitWarning
from moestat.estimation.inference.diagnostics import quantile_residuals
from moestat.model.likelihoods.binomial import LINKS
from tests import oracle
from tests.kinds import random_theta


def framed(x):
    """Inputs with a name, so that parameters have theirs."""
    return pd.DataFrame({"x": x})


@pytest.fixture(scope="module")
def times():
    """Positive responses of two lines; flexmix's numbers below are of these data."""
    rng = np.random.default_rng(7)
    x = np.round(rng.uniform(-1, 1, 300), 3)
    first = rng.random(300) < 1 / (1 + np.exp(-2 * x))
    mean = np.exp(np.where(first, 2.0 - 0.5 * x, 0.3 + 0.8 * x))
    shape = np.where(first, 8.0, 4.0)
    return x, np.round(rng.gamma(shape, mean / shape), 6)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, 400)
    return x, rng.poisson(rng.gamma(2.0, np.exp(1.5 + 0.8 * x) / 2.0))


def test_one_gamma_expert_is_a_generalised_linear_model(times):
    """statsmodels' dispersion is a moment estimate; here it has the one of maximum likelihood."""
    x, y = times
    mine = moestat.fit("gamma", framed(x), y, n_experts=1, rng=0)
    assert mine.certificate.certified
    model = sm.GLM(y, sm.add_constant(x), family=sm.families.Gamma(sm.families.links.Log()))
    phi = mine.blocks["phi"][0]
    other = model.fit(tol=1e-14, scale=phi)
    names = ["b[1]", "a[1,x]"]
    # A fit ends where no step gains 1e-9: of a standard error, that is 5e-5.
    assert np.allclose(mine.params[names], other.params, rtol=1e-7, atol=1e-9)
    assert mine.llf == pytest.approx(model.loglike(other.params, scale=phi), rel=1e-11)
    expected = mine.get_robustcov_results("expected")
    assert np.allclose(expected.bse[names], other.bse, rtol=1e-8)
    observed = np.linalg.inv(-model.hessian(other.params, scale=phi, observed=True))
    assert np.allclose(mine.bse[names], np.sqrt(np.diag(observed)), rtol=1e-8)
    frame = mine.get_prediction(framed(x[:3])).summary_frame()
    assert np.allclose(frame["mean"], other.predict(sm.add_constant(x)[:3]), rtol=1e-8)
    near = [model.loglike(other.params, scale=phi * np.exp(h)) for h in (-1e-4, 1e-4)]
    assert max(near) < mine.llf


def test_one_negative_binomial_expert_is_that_of_statsmodels(counts):
    x, y = counts
    mine = moestat.fit("negative-binomial", framed(x), y, n_experts=1, rng=0)
    model = sm.NegativeBinomial(y, sm.add_constant(x))
    other = model.fit(method="newton", tol=1e-14, maxiter=200, disp=0)
    names = ["b[1]", "a[1,x]"]
    assert mine.certificate.certified
    assert np.allclose(mine.params[names], other.params[:2], rtol=1e-8)
    phi = mine.blocks["phi"][0]
    assert phi == pytest.approx(other.params[2], rel=1e-7)  # a fit ends at a gain of 1e-11
    assert mine.llf == pytest.approx(other.llf, rel=1e-12)
    # statsmodels differentiates in the dispersion, moestat in its logarithm: the same at a maximum.
    information = -model.hessian(np.array([*mine.params[names], phi]))
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    assert np.allclose(mine.bse[names], errors[:2], rtol=1e-8)
    assert mine.bse["log phi[1]"] * phi == pytest.approx(errors[2], rel=1e-8)


def test_a_negative_binomial_of_no_dispersion_is_poisson(counts):
    x, _ = counts
    y = np.random.default_rng(1).binomial(20, 0.3 + 0.2 * x)  # less variable than Poisson
    with pytest.warns(LimitWarning, match="becomes poisson"):
        mine = moestat.fit("negative-binomial", x, y, n_experts=1, rng=0)
    other = moestat.fit("poisson", x, y, n_experts=1, rng=0)
    assert mine.llf == pytest.approx(other.llf, abs=1e-3)


def test_two_gamma_experts_are_those_of_flexmix(times):
    """flexmix 2.3, FLXPmultinom(~ x), with a log link and the shape of maximum likelihood.

    FLXMRglm(family = "Gamma") has an inverse link and takes one over the mean deviance as the
    shape; its M-step was replaced by glm.fit with a log link and the root of log v - psi(v) = s.
    """
    mine = moestat.fit("gamma", *times, n_experts=2, rng=0)
    assert mine.certificate.certified
    assert mine.llf == pytest.approx(-557.76110916095, abs=1e-6)
    order = np.argsort(mine.blocks["b"])
    assert np.allclose(mine.blocks["b"][order], [0.37589937, 1.95968232], atol=1e-4)
    assert np.allclose(mine.blocks["a"][order, 0], [0.94962124, -0.43604897], atol=1e-4)
    assert np.allclose(1 / mine.blocks["phi"][order], [3.95455426, 9.30388498], rtol=1e-3)
    assert np.diff(mine.blocks["beta1"][order, 0]) == pytest.approx(1.44785071, abs=1e-3)


EIGHT = {"name": "binomial", "trials": 8}


@pytest.fixture(scope="module")
def successes():
    rng = np.random.default_rng(9)
    x = np.round(rng.uniform(-1, 1, 300), 3)
    first = rng.random(300) < 1 / (1 + np.exp(-2 * x))
    return x, rng.binomial(8, 1 / (1 + np.exp(-np.where(first, 2.0 - 0.5 * x, -1.3 + 0.8 * x))))


def test_one_binomial_expert_is_a_generalised_linear_model(successes):
    x, y = successes
    mine = moestat.fit(EIGHT, framed(x), y, n_experts=1, rng=0)
    both = np.column_stack([y, 8 - y])
    model = sm.GLM(both, sm.add_constant(x), family=sm.families.Binomial())
    other = model.fit(tol=1e-14)
    names = ["b[1]", "a[1,x]"]
    assert np.allclose(mine.params[names], other.params, rtol=1e-8)
    assert np.allclose(mine.bse[names], other.bse, rtol=1e-8)
    assert mine.llf == pytest.approx(other.llf, rel=1e-11)
    expected = mine.get_robustcov_results("expected")
    assert np.allclose(expected.bse[names], other.bse, rtol=1e-8)
    assert np.allclose(mine.predict(framed(x)), 8 * other.predict(), rtol=1e-8)


def test_two_binomial_experts_are_those_of_flexmix(successes):
    """FLXMRglm(family = "binomial"), k = 2, FLXPmultinom(~ x), flexmix 2.3."""
    x, y = successes
    data = {"successes": y, "x": x}
    mine = moestat.fit_formula("successes ~ x", data, EIGHT, n_experts=2, rng=0)
    assert mine.llf == pytest.approx(-562.651988429093, abs=1e-6)
    order = np.argsort(-mine.blocks["b"])
    assert np.allclose(mine.blocks["b"][order], [2.15499106, -1.15492826], atol=1e-4)
    assert np.allclose(mine.blocks["a"][order, 0], [-0.45373224, 0.93860371], atol=1e-4)
    assert np.diff(mine.blocks["beta1"][order, 0]) == pytest.approx(-1.73676750, abs=1e-3)
    assert mine.family.n_free_params == 6


def test_trials_by_row_are_a_generalised_linear_model_and_its_mixture():
    rng = np.random.default_rng(3)
    x, n = rng.normal(size=400), rng.integers(1, 30, 400)
    p = 1 / (1 + np.exp(-np.where(rng.random(400) < 0.4, 1.5 + x, -1 - 0.5 * x)))
    table = pd.DataFrame({"x": x, "s": rng.binomial(n, p), "n": n})
    both = np.column_stack([table.s, n - table.s])
    one = moestat.fit("binomial", table[["x"]], both, n_experts=1, rng=0)
    glm = sm.GLM(both, sm.add_constant(x), family=sm.families.Binomial()).fit(tol=1e-14)
    names = ["b[1]", "a[1,x]"]
    assert np.allclose(one.params[names], glm.params, rtol=1e-6)
    assert np.allclose(one.bse[names], glm.bse, rtol=1e-6)
    assert one.llf == pytest.approx(glm.llf, rel=1e-11)
    assert np.allclose(one.predict(table[["x"]]), glm.predict(), rtol=1e-6)
    assert np.allclose(one.resid, glm.resid_response / n, rtol=0, atol=1e-6)
    two = moestat.fit_formula("cbind(s, n - s) ~ x", table, "binomial", rng=0)
    assert two.certificate.certified
    assert two.llf == pytest.approx(two.log_likelihood(table), rel=1e-12)
    # In rows of one number of trials it is the likelihood of that number.
    same = both * 0 + np.column_stack([table.s % 9, 8 - table.s % 9])
    rows, eight = ({"name": "binomial", "trials": t} for t in ("rows", 8))
    assert moestat.fit(rows, x, same, rng=0).llf == pytest.approx(
        moestat.fit(eight, x, same[:, 0], rng=0).llf, rel=1e-9
    )
    assert kstest(two.quantile_residuals(rng=0), "norm").pvalue > 1e-3
    assert np.array_equal(two.simulate(rng=0).sum(axis=1), n)
    assert two.bootstrap(5, kind="parametric", rng=0).replicates.shape[0] > 2


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("link", LINKS)
def test_links_of_a_probability_have_their_derivatives(link, rows):
    """Blocks as plain Python beside complex steps of the reference, far out in both tails, too."""
    own, step = LINKS[link], 1e-30
    eta = np.array([[-6.0, -1.5, 0.0, 0.7, 3.0]])
    successes, trials = np.array([0.0, 2.0, 5.0, 3.0, 6.0]), 6.0
    blocks = {"trials": trials}
    moved = own.reference(eta + 1j * step, blocks, successes)[0]
    sides = [
        own.reference(eta + s + 1j * step, blocks, successes).imag / step for s in (1e-5, -1e-5)
    ]
    y = successes + 1j * trials if rows else successes
    predictors = eta if rows else np.vstack([eta, np.full((1, 5), trials)])
    value, d1, d2 = np.empty(5), np.empty((2, 5)), np.empty((3, 5))
    own.blocks[rows](predictors, y, 5, 2, value, d1, d2)
    assert np.allclose(value, moved.real, rtol=1e-12)
    assert np.allclose(d1[0], moved.imag / step, rtol=1e-10, atol=1e-12)
    assert np.allclose(d2[0], (sides[0] - sides[1])[0] / 2e-5, rtol=1e-5, atol=1e-9)
    assert np.allclose(own.inverse(own.chance(eta)), eta, rtol=1e-8, atol=1e-12)


def test_a_probit_expert_is_that_of_statsmodels():
    rng = np.random.default_rng(0)
    x, trials = rng.normal(size=400), rng.integers(1, 20, 400)
    probit = sm.families.links.Probit()
    successes = rng.binomial(trials, probit.inverse(0.3 + 0.5 * x))
    y = np.column_stack([successes, trials - successes])
    mine = moestat.fit({"name": "binomial", "link": "probit"}, x, y, n_experts=1, rng=0)
    design, kind = sm.add_constant(x), sm.families.Binomial(link=probit)
    other = sm.GLM(y, design, family=kind).fit(tol=1e-14)
    assert mine.llf == pytest.approx(other.llf, abs=1e-8)
    assert np.allclose(mine.params[2:4], other.params, atol=1e-6)
    assert np.allclose(mine.bse[2:4], other.bse, rtol=2e-3)  # observed, and expected, information
    assert np.allclose(mine.predict([0.2]), other.predict([[1.0, 0.2]]), atol=1e-6)
    assert mine.family.table["likelihood"]["link"] == "probit"
    with pytest.raises(ValueError, match="link must be one of logit, probit, cloglog, got 'log'"):
        moestat.family({"name": "binomial", "link": "log"})


def test_derivatives_of_several_trials_are_those_of_the_formula():
    family = moestat.family({"name": "binomial", "trials": 6}, gate="softmax", n_experts=3)
    rng = np.random.default_rng(0)
    theta, X, y = random_theta(family, rng), rng.normal(size=(200, 1)), rng.integers(0, 7, 200)
    weight = np.ones(200)
    exact = oracle.score(family, theta, X, y, weight)
    assert np.allclose(moestat.score(family, theta, X, y), exact, rtol=1e-11, atol=1e-11)
    hessian, step = moestat.hessian(family, theta, X, y), 1e-6
    for j in range(theta.size - 1):
        up, down = theta.copy(), theta.copy()
        up[j] += step
        down[j] -= step
        slope = oracle.score(family, up, X, y, weight) - oracle.score(family, down, X, y, weight)
        assert np.allclose(hessian[j], slope / (2 * step), rtol=1e-6, atol=1e-6)


def test_residuals_and_intervals_of_a_mixture_of_trials_follow_its_law():
    model = moestat.family(EIGHT, gate="softmax", n_experts=2)
    theta = model.typical(0)
    X, y = moestat.sample(model, theta, 4000, rng=3, design=moestat.Uniform(-1, 1))
    residuals = quantile_residuals(model, theta, X, y, rng=0)
    assert abs(residuals.mean()) < 4 / np.sqrt(4000)
    assert abs(residuals.std() - 1.0) < 4 / np.sqrt(8000)
    fit = moestat.fit(model, X, y, rng=0)
    low, high = fit.get_prediction(X).prediction_interval(0.1).T
    inside = np.mean((y >= low) & (y <= high))
    assert 0.89 <= inside <= 0.97


def test_responses_of_another_kind_are_one_clear_error():
    x = np.linspace(-1, 1, 20)
    for name, y, match in (
        ("gamma", x, "y must hold positive numbers; got -1"),
        ("gamma", np.zeros(20), "y must hold positive numbers; got 0"),
        ("gamma", np.ones(20), "y is constant"),
        ("negative-binomial", x + 1.01, "whole numbers from 0; got 0.01"),
        ("negative-binomial", np.zeros(20), "y is 0 everywhere"),
        (EIGHT, np.arange(20), "y must be at most the number of trials, 8; got 19"),
        (EIGHT, np.full(20, 8), "y is the number of trials everywhere"),
        ("binomial", np.zeros((20, 2)), "row 0 .from 0. has no trials"),
        ("binomial", np.ones((20, 2)) - [1, 0], "y is 0 everywhere"),
        ({"name": "binomial", "trials": 0}, np.zeros(20), "trials must be an integer >= 1"),
        ({"name": "binomial", "n": 8}, np.zeros(20), "does not take these options: n"),
    ):
        with pytest.raises(ValueError, match=match):
            moestat.fit(name, x, y, n_experts=1)


COUNTS = ("binomial", "geometric", "negative-binomial", "poisson", "hurdle-poisson")


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("predictor", [-745.0, -709.0, -708.3, 708.3, 709.0])
def test_distributions_of_counts_answer_at_the_ends_of_float64(name, predictor):
    """A separated fit has such predictors, and its check for misfit asks for probabilities."""
    given = {"name": name, "trials": 5} if name == "binomial" else name
    model = moestat.family(given, n_experts=1)
    eta = np.zeros((len(model.channels) - model.first_expert_channel, 1))
    eta[0] = predictor  # of the mean, or the probability
    with np.errstate(all="ignore"):
        distribution = model.likelihood.law(eta)
        for y in range(6):
            assert 0.0 <= distribution.pmf(y)[0] <= 1.0
            assert 0.0 <= distribution.cdf(y)[0] <= 1.0
