"""Further likelihoods: fits of one expert against statsmodels and scipy, and laws of mixtures."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import optimize, special, stats
from statsmodels.discrete import count_model, truncated_model
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.othermod.betareg import BetaModel

import moestat
from moestat.estimation.inference.diagnostics import quantile_residuals
from moestat.model.likelihoods import LIKELIHOODS

N = 300
X = np.random.default_rng(1).uniform(-1, 1, N)
DESIGN = sm.add_constant(X)


def fitted(name, y, **options):
    result = moestat.fit(name, pd.DataFrame({"x": X}), y, n_experts=1, rng=0, **options)
    assert result.certificate.certified
    return result


def best(negative, start):
    """Minus the least value, and where; by scipy, from differences of the formula."""
    end = optimize.minimize(negative, start, method="BFGS", options={"gtol": 1e-9})
    end = optimize.minimize(negative, end.x, method="Nelder-Mead", options={"fatol": 1e-13})
    return -end.fun, end.x


def close(result, llf, params, llf_error=1e-7, error=1e-4):
    """Coefficients (intercept, slope) and further parameters by block."""
    assert result.llf == pytest.approx(llf, abs=llf_error)
    found = [*result.params[["b[1]", "a[1,x]"]]]
    assert np.allclose(found, params[:2], atol=error)


def drawn(law, seed=2):
    return np.asarray(law.rvs(size=N, random_state=seed), dtype=float)


def test_student_t_with_known_and_unknown_degrees_of_freedom():
    y = 1.0 + 2.0 * X + 0.5 * drawn(stats.t(4))

    def negative(p, dof=None):
        f = np.exp(p[3]) if dof is None else dof
        return -stats.t(f, p[0] + p[1] * X, np.exp(p[2])).logpdf(y).sum()

    close(fitted({"name": "student-t", "dof": 4}, y), *best(lambda p: negative(p, 4.0), [1, 2, 0]))
    free = fitted("student-t", y)
    llf, params = best(negative, [1.0, 2.0, 0.0, 1.0])
    close(free, llf, params)
    assert free.blocks["dof"][0] == pytest.approx(np.exp(params[3]), rel=1e-3)
    assert free.blocks["nu"][0] == pytest.approx(np.exp(2 * params[2]), rel=1e-3)


def test_log_normal_is_normal_on_the_logarithm():
    level = 0.5 + X + 0.6 * drawn(stats.norm())
    other = sm.OLS(level, DESIGN).fit()
    result = fitted("log-normal", np.exp(level))
    close(result, other.llf - level.sum(), other.params, 1e-9, 1e-8)
    mean = np.exp(other.predict() + 0.5 * result.blocks["nu"][0])
    assert np.allclose(result.predict(pd.DataFrame({"x": X})), mean, rtol=1e-7)


@pytest.mark.parametrize("name", ["weibull", "exponential"])
def test_survival_times(name):
    y = np.exp(0.5 + X) * drawn(stats.expon()) ** (0.6 if name == "weibull" else 1.0)

    def negative(p):
        sigma = np.exp(p[2]) if name == "weibull" else 1.0
        return -stats.weibull_min(1 / sigma, scale=np.exp(p[0] + p[1] * X)).logpdf(y).sum()

    start = [0.5, 1.0, -0.5] if name == "weibull" else [0.5, 1.0]
    llf, params = best(negative, start)
    result = fitted(name, y)
    close(result, llf, params)
    if name == "weibull":
        assert result.blocks["sigma"][0] == pytest.approx(np.exp(params[2]), rel=1e-4)


def test_inverse_gaussian_is_a_generalised_linear_model():
    mean = np.exp(0.5 + 0.5 * X)
    y = drawn(stats.invgauss(mean * 0.2, scale=1 / 0.2))
    family = sm.families.InverseGaussian(sm.families.links.Log())
    other = sm.GLM(y, DESIGN, family=family).fit(tol=1e-14)
    fit = other.predict()
    phi = np.mean((y - fit) ** 2 / (fit**2 * y))
    llf = stats.invgauss(fit * phi, scale=1 / phi).logpdf(y).sum()
    result = fitted("inverse-gaussian", y)
    close(result, llf, other.params, 1e-7, 1e-6)
    assert result.blocks["phi"][0] == pytest.approx(phi, rel=1e-6)


def test_beta_is_a_beta_regression():
    mean = special.expit(0.3 + X)
    y = drawn(stats.beta(8 * mean, 8 * (1 - mean)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = BetaModel(y, DESIGN).fit(method="bfgs", gtol=1e-9, disp=0)
    result = fitted("beta", y)
    close(result, other.llf, other.params)
    assert 1 / result.blocks["phi"][0] == pytest.approx(np.exp(other.params[2]), rel=1e-4)
    assert np.allclose(result.bse[["b[1]", "a[1,x]"]], other.bse[:2], rtol=1e-3)


def test_a_known_expert_of_zeros_inflates_them():
    """The zero component of flexmix's FLXMRziglm."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = np.where(rng.random(400) < 0.3, 0, rng.poisson(np.exp(1 + 0.5 * x)))
    known = {"a": {(1, 0): 0.0}, "b": {1: -25.0}}
    mixed = moestat.fit("poisson", x, y, gate_inputs=[], fixed=known, n_starts=4, rng=0)
    inflated = moestat.fit("zero-inflated-poisson", x, y, n_experts=1, rng=0)
    assert mixed.certificate.certified
    assert mixed.llf == pytest.approx(inflated.llf, abs=1e-6)
    assert np.allclose(mixed.blocks["a"][1], inflated.blocks["a"][0], atol=1e-5)


def test_geometric_is_negative_binomial_of_dispersion_one():
    p = special.expit(-(0.8 + 0.5 * X))
    y = drawn(stats.nbinom(1, p))
    other = sm.GLM(y, DESIGN, family=sm.families.NegativeBinomial(alpha=1.0)).fit(tol=1e-14)
    close(fitted("geometric", y), other.llf, other.params, 1e-8, 1e-7)


GAMMA = np.random.default_rng(4).gamma(2, 0.5, N)
COUNTS = np.random.default_rng(3).poisson(GAMMA * np.exp(0.6 + 0.5 * X))
ZEROS = np.where(np.random.default_rng(5).random(N) < 0.3, 0, COUNTS)


@pytest.mark.parametrize("name", ["poisson", "negative-binomial"])
def test_zero_inflated_counts(name):
    kind = {
        "poisson": count_model.ZeroInflatedPoisson,
        "negative-binomial": count_model.ZeroInflatedNegativeBinomialP,
    }[name]
    start = [-0.8, 0.6, 0.5] + ([0.5] if name == "negative-binomial" else [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(ZEROS, DESIGN, exog_infl=np.ones((N, 1)))
        other = model.fit(start, method="bfgs", gtol=1e-9, maxiter=500, disp=0)
    result = fitted(f"zero-inflated-{name}", ZEROS)
    close(result, other.llf, other.params[1:])
    assert result.blocks["zero"][0] == pytest.approx(other.params[0], abs=1e-3)


@pytest.mark.parametrize("name", ["poisson", "negative-binomial"])
def test_truncated_and_hurdle_counts(name):
    kind = {
        "poisson": truncated_model.TruncatedLFPoisson,
        "negative-binomial": truncated_model.TruncatedLFNegativeBinomialP,
    }[name]
    positive = ZEROS > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = [0.6, 0.5] + ([0.5] if name == "negative-binomial" else [])
        model = kind(ZEROS[positive], DESIGN[positive])
        other = model.fit(start, method="bfgs", gtol=1e-9, maxiter=500, disp=0)
    behind = fitted(f"hurdle-{name}", ZEROS)
    share = positive.mean()
    zeros = N * (share * np.log(share) + (1 - share) * np.log(1 - share))
    close(behind, other.llf + zeros, other.params)
    assert special.expit(-behind.blocks["zero"][0]) == pytest.approx(share, rel=1e-5)
    frame = pd.DataFrame({"x": X[positive]})
    alone = moestat.fit(f"truncated-{name}", frame, ZEROS[positive], n_experts=1, rng=0)
    close(alone, other.llf, other.params)
    with pytest.raises(ValueError, match="counts from 1"):
        fitted(f"truncated-{name}", ZEROS)


def test_ordinal_has_proportional_odds():
    latent = 1.5 * X + drawn(stats.logistic())
    cut = np.digitize(latent, [-1.0, 0.3, 1.5])
    words = np.array(["a none", "b some", "c much", "d all"])[cut]
    other = OrderedModel(cut, X[:, None], distr="logit").fit(method="bfgs", gtol=1e-9, disp=0)
    thresholds = other.model.transform_threshold_params(other.params[1:])[1:-1]
    with pytest.raises(ValueError, match="whose order is not known"):
        fitted("ordinal", words)
    result = fitted("ordinal", pd.Categorical(words, categories=sorted(set(words)), ordered=True))
    # The first threshold is 0: the intercept is minus the other's first one.
    close(result, other.llf, [-thresholds[0], other.params[0]])
    assert np.allclose(result.blocks["gap"][0], np.diff(thresholds), rtol=1e-4)
    p = result.predict_proba(pd.DataFrame({"x": X}))
    assert np.allclose(p, other.predict(), atol=1e-5)
    assert set(result.predict(pd.DataFrame({"x": X}))) <= set(words)
    assert "log gap[1,c much]" in result.params.index


@pytest.mark.parametrize(
    "name",
    [n for n, one in LIKELIHOODS.items() if one.law is not None and "trials" not in one.options],
)
def test_residuals_and_intervals_of_mixtures_follow_the_law(name):
    model = moestat.family(name, gate="softmax", n_experts=2)
    theta = model.typical(0)
    X, y = moestat.sample(model, theta, 2000, rng=3, design=moestat.Uniform(-1, 1))
    residuals = quantile_residuals(model, theta, X, y, rng=0)
    assert stats.kstest(residuals, "norm").pvalue > 1e-3
    prediction = moestat.estimation.inference.prediction.Prediction(
        model, theta, X, model.mean(theta, X), np.zeros(2000)
    )
    low, high = prediction.prediction_interval(0.1).T
    inside = np.mean((y >= low) & (y <= high))
    assert 0.88 <= inside <= (0.99 if model.likelihood.counts else 0.92)


def test_responses_of_another_kind_are_one_clear_error():
    for name, y, match in (
        ("student-t", [np.inf, 0.0, 1.0], "finite"),
        ("log-normal", [1.0, -2.0, 3.0], "positive numbers; got -2"),
        ("beta", [0.2, 1.0, 0.3], "numbers between 0 and 1, both left out; got 1"),
        ("zero-inflated-poisson", [0.5, 1, 2], "whole numbers from 0; got 0.5"),
        ({"name": "student-t", "dof": 0}, [1.0, 2.0, 3.0], "student-t: dof"),
    ):
        with pytest.raises(ValueError, match=match):
            moestat.fit(name, np.arange(3.0), y, n_experts=1)


OF_COUNTS = [name for name, one in LIKELIHOODS.items() if one.counts and one.link is np.log]


@pytest.mark.parametrize("name", OF_COUNTS)
def test_laws_of_counts_that_float64_cannot_tell_apart_have_quantiles(name):
    """The search for a quantile did not end, or gave NaN, and counts were drawn below 0."""
    model = moestat.family(name, n_experts=1)
    blocks = {key: np.zeros(value.shape) for key, value in model.blocks.items()}
    if "phi" in blocks:
        blocks["phi"] = np.full(blocks["phi"].shape, 1e-6)
    for log_mean in (24.0, 30.0, 39.0):
        theta = model.pack({**blocks, "b": [log_mean]})
        law = model.likelihood.law(model.predictors(theta, np.zeros((1, 3)))[0])
        chances = np.array([0.6, 0.9, 0.99])
        quantiles = law.ppf(chances)
        assert np.all(quantiles == np.floor(quantiles))
        np.testing.assert_allclose(law.cdf(quantiles), chances, atol=1e-3)
        _, y = moestat.sample(model, theta, n=20, rng=0)
        assert np.all(y >= 0)
    with pytest.raises(ValueError, match=r"theta: .* are beyond the range of"):
        moestat.sample(model, model.pack({**blocks, "b": [70.0]}), n=20, rng=0)


def test_quantiles_of_long_tails_are_counts_where_the_law_reaches_them():
    """scipy's search did not end for quantiles of about 1e11."""
    law_of = LIKELIHOODS["negative-binomial"].law
    rng = np.random.default_rng(0)
    eta = np.array([rng.uniform(-3.0, 25.0, 400), rng.uniform(-9.0, 9.0, 400)])
    law, chances = law_of(eta), 1.0 - 10.0 ** rng.uniform(-9.0, -0.1, 400)
    quantiles = law.ppf(chances)
    assert np.all(quantiles == np.floor(quantiles))
    assert np.all(law.sf(quantiles) <= (1.0 - chances) * (1.0 + 1e-6))
    inside = (quantiles > 1.0) & (quantiles < 1e9)
    assert np.all((law.sf(quantiles - 1.0) >= (1.0 - chances) * (1.0 - 1e-6))[inside])


@pytest.mark.parametrize("phi", [1e-6, 1e-9, 1e-13])
def test_quantiles_of_a_narrow_inverse_gaussian_are_nearly_normal(phi):
    """They were up to eight standard deviations off, and 0 ended the process."""
    law = LIKELIHOODS["inverse-gaussian"].law(np.array([[0.0], [np.log(phi)]]))
    z = (law.ppf(np.array([0.1, 0.5, 0.9])) - 1.0) / np.sqrt(phi)
    np.testing.assert_allclose(z, stats.norm.ppf([0.1, 0.5, 0.9]), atol=2.0 * np.sqrt(phi) + 1e-4)
    tiny = LIKELIHOODS["inverse-gaussian"].law(np.array([[-800.0], [0.0]]))
    assert tiny.ppf(np.array([0.5]))[0] == pytest.approx(0.0, abs=1e-200)
