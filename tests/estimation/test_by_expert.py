"""A likelihood for each expert: lines beside noise, and counts beside a point mass."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.special import expit, logsumexp

import moestat
from moestat.model import plain
from moestat.model.joint import as_likelihood
from moestat.solvers.problem import Objective, Problem, Request, Rows

NOISE = {"name": "uniform", "low": -6.0, "high": 7.0}
LISTS = [
    ["gaussian", "student-t", NOISE],
    [NOISE, "gaussian", {"name": "student-t", "dof": 4}, "gaussian"],
    ["poisson", "negative-binomial", "point"],
    [{"name": "point", "at": 2}, "zero-inflated-poisson", "negative-binomial"],
    [{"name": "binomial", "trials": 8}, {"name": "beta-binomial", "trials": 8}],
    ["gamma", "log-normal", {"name": "uniform", "low": 0.1, "high": 5.0}],
]


@pytest.mark.parametrize("experts", LISTS, ids=lambda each: as_likelihood({"experts": each}).name)
def test_derivatives_are_those_of_plain_numpy(experts):
    """The score by complex steps, the Hessian by differences of the score, padding without any."""
    F = moestat.family({"experts": experts}, gate="softmax", n_features=2)
    theta = F.typical(0)
    X, y = moestat.sample(F, theta, 150, rng=1)
    encoded = F.likelihood.encode(y, 1)
    problem = Problem(F, Rows(np.ascontiguousarray(X.T), encoded, np.ones(150)))
    here = problem.evaluate(Request(Objective.INFORMED, theta))
    free = np.flatnonzero(F.lower < F.upper)

    def height(at):
        return plain.log_density(F, plain.blocks_of(F, at), X, y).sum()

    score, hessian = np.zeros(F.n_params), np.zeros((F.n_params, F.n_params))
    for j in free:
        step = np.zeros(F.n_params)
        step[j] = 1.0
        score[j] = height(theta + 1e-30j * step).imag / 1e-30
        up, down = (
            problem.evaluate(Request(Objective.SCORE, theta + h * step)).gradient
            for h in (1e-5, -1e-5)
        )
        hessian[j] = (up - down) / 2e-5
    assert -here.value == pytest.approx(height(theta), rel=1e-12)
    assert np.allclose(-here.gradient[free], score[free], rtol=0, atol=1e-11)
    both = np.ix_(free, free)
    assert np.allclose(here.hessian[both], hessian[both], rtol=0, atol=1e-6)
    assert F.padding_positions.size
    assert not here.gradient[F.padding_positions].any()
    assert not here.hessian[F.padding_positions].any()


def line(F, theta, i, x):
    """The mean of expert i, from its coefficients by name."""
    value = dict(zip(F.param_names, theta, strict=True))
    return value[f"b[{i + 1}]"] + value[f"a[{i + 1},0]"] * x


def test_the_density_is_that_of_scipys_distributions():
    F = moestat.family({"experts": ["gaussian", "student-t", NOISE]}, gate="softmax")
    theta = F.typical(0)
    value = dict(zip(F.param_names, theta, strict=True))
    X, y = moestat.sample(F, theta, 300, rng=1, design=moestat.Uniform(-1, 1))
    y[:3] = -6.0, 7.0, 9.0  # both ends of the noise, and beyond
    x = X[:, 0]
    scores = np.array([value[f"beta0[{i + 1}]"] + value[f"beta1[{i + 1},0]"] * x for i in range(3)])
    parts = [
        stats.norm.logpdf(y, line(F, theta, 0, x), np.exp(0.5 * value["log nu[1]"])),
        stats.t.logpdf(
            y, np.exp(value["log dof[2]"]), line(F, theta, 1, x), np.exp(0.5 * value["log nu[2]"])
        ),
        stats.uniform.logpdf(y, -6.0, 13.0),
    ]
    expected = logsumexp(scores - logsumexp(scores, axis=0) + parts, axis=0)
    assert np.allclose(F.log_density(theta, X, y), expected, rtol=1e-12)
    # Values of parameters that no expert has, or that options give, need not be said.
    blocks = {name: F.unpack(theta)[name] for name in ("beta0", "beta1", "a", "b", "nu", "dof")}
    assert np.array_equal(F.pack(blocks)[F.lower < F.upper], theta[F.lower < F.upper])


@pytest.fixture(scope="module")
def cloud():
    """Two lines in noise."""
    return robust(0)


def robust(seed, n=400, share=0.2):
    """Two lines, and a share of rows that are uniform noise."""
    rng = np.random.default_rng(seed)
    x, c = rng.uniform(-2, 2, n), rng.choice(3, n, p=[(1 - share) / 2] * 2 + [share])
    a, b, s = rng.normal(size=2), rng.normal(size=2) * 2, rng.uniform(0.2, 0.6, 2)
    lines = [b[i] + a[i] * x + s[i] * rng.normal(size=n) for i in range(2)]
    return pd.DataFrame({"x": x, "y": np.where(c == 2, rng.uniform(-9, 9, n), lines[0])}).assign(
        y=lambda d: np.where(c == 1, lines[1], d.y)
    )


def em(table, starts, rng, steps=400):
    """The highest log-likelihood of EM by hand from elemental starts: two lines and noise."""
    x, y = table.x.to_numpy(), table.y.to_numpy()
    Z, level = np.column_stack([np.ones_like(x), x]), -np.log(np.ptp(y))
    best = -np.inf
    for _ in range(starts):
        pairs = [rng.choice(len(x), 2, replace=False) for _ in range(2)]
        B = np.array([np.linalg.lstsq(Z[p], y[p], rcond=None)[0] for p in pairs])
        s2, pi = np.full(2, 0.1 * np.var(y)), np.full(3, 1 / 3)
        before = -np.inf
        for _ in range(steps):
            r = y - B @ Z.T
            log = np.vstack(
                [-0.5 * (np.log(2 * np.pi * s2)[:, None] + r**2 / s2[:, None]), 0 * y + level]
            )
            log += np.log(pi)[:, None]
            each = logsumexp(log, axis=0)
            if each.sum() < before + 1e-9:
                break
            before = each.sum()
            tau = np.exp(log - each)
            pi = np.maximum(tau.mean(axis=1), 1e-300)
            for k in range(2):
                W = Z * tau[k][:, None]
                B[k] = np.linalg.solve(W.T @ Z + 1e-9 * np.eye(2), W.T @ y)
                s2[k] = max(tau[k] @ (y - Z @ B[k]) ** 2 / max(tau[k].sum(), 1e-9), 1e-3)
        best = max(best, before)
    return best


FORMULA = "y ~ x | 1"
WITH_NOISE = {"experts": ["gaussian", "gaussian", "uniform"]}


def test_the_search_finds_what_many_starts_of_em_find(cloud):
    fit = moestat.fit_formula(FORMULA, cloud, WITH_NOISE, rng=0)
    assert fit.certificate.certified
    assert fit.llf == pytest.approx(em(cloud, 60, np.random.default_rng(0)), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 13))
def test_the_search_is_never_below_many_starts_of_em(seed):
    table = robust(seed, share=0.1 + 0.03 * seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", moestat.base.warnings.MoEWarning)
        fit = moestat.fit_formula(FORMULA, table, WITH_NOISE, rng=seed)
    assert fit.llf >= em(table, 100, np.random.default_rng(seed)) - 1e-4


def test_the_order_of_the_list_is_that_of_the_experts(cloud):
    fit = moestat.fit_formula(FORMULA, cloud, WITH_NOISE, rng=0)
    first = {"experts": ["uniform", "gaussian", "gaussian"]}
    other = moestat.fit_formula(FORMULA, cloud, first, rng=1)
    assert other.llf == pytest.approx(fit.llf, abs=1e-5)
    assert fit.identified.rank == other.identified.rank == 8
    for result, noise in ((fit, 3), (other, 1)):
        text = str(result.summary())
        assert f"Expert {noise}: uniform" in text
        assert text.count(": gaussian") == 2
        own = [e for e in result.summary().estimates if e.term.expert == noise]
        told = {"low": cloud.y.min(), "high": cloud.y.max()}
        found = {e.term.symbol: e.estimate for e in own if e.term.part == "expert"}
        assert found == pytest.approx(told)
    with pytest.raises(ValueError, match="likelihoods, so their order is fixed"):
        fit.relabel([2, 1, 3])


def test_units_and_weights_do_not_change_the_fit(cloud):
    fit = moestat.fit_formula(FORMULA, cloud, WITH_NOISE, rng=0)
    scaled = cloud.assign(y=1e3 + 1e2 * cloud.y)
    other = moestat.fit_formula(FORMULA, scaled, WITH_NOISE, rng=0)
    assert other.llf == pytest.approx(fit.llf - len(cloud) * np.log(1e2), abs=1e-4)
    # Rows of weight 0 are none of which the noise knows.
    more = pd.concat([cloud, pd.DataFrame({"x": [0.0], "y": [1e3]})]).assign(w=1.0)
    more.iloc[-1, more.columns.get_loc("w")] = 0.0
    weighted = moestat.fit_formula(FORMULA, more, WITH_NOISE, weights="w", rng=0)
    assert weighted.llf == pytest.approx(fit.llf, abs=1e-6)


def test_predictions_are_those_of_the_mixture(cloud):
    fit = moestat.fit_formula(FORMULA, cloud, WITH_NOISE, rng=0)
    value, rows = fit.params, cloud.iloc[:40]
    scores = np.array([value["beta0[1]"], value["beta0[2]"], 0.0])
    pi = np.exp(scores - logsumexp(scores))
    means = np.array([value[f"b[{i + 1}]"] + value[f"a[{i + 1},x]"] * rows.x for i in range(2)])
    sd = np.exp(0.5 * value[["log nu[1]", "log nu[2]"]].to_numpy())
    low, high = cloud.y.min(), cloud.y.max()
    mean = pi[:2] @ means + pi[2] * (low + high) / 2
    assert np.allclose(fit.predict(rows), mean)

    def cdf(y):
        parts = [stats.norm.cdf(y, means[i], sd[i]) for i in range(2)]
        return np.tensordot(pi, [*parts, stats.uniform.cdf(y, low, high - low)], 1)

    assert np.allclose(cdf(fit.predict(rows, "quantile", q=0.3)), 0.3, atol=1e-9)
    second = pi[:2] @ (means**2 + sd[:, None] ** 2)
    second += pi[2] * ((high - low) ** 2 / 12 + ((low + high) / 2) ** 2)
    assert np.allclose(fit.predict(rows, "variance"), second - mean**2)
    drawn = np.array([fit.simulate(rng=s) for s in range(30)])
    assert stats.kstest(cdf(drawn[:, :40]).ravel(), "uniform").pvalue > 1e-3
    # Noise belongs to the noise, whatever line is near.
    far = pd.DataFrame({"x": [0.0], "y": [high - 0.01]})
    assert fit.responsibilities(far).to_numpy()[0].argmax() == 2


@pytest.fixture(scope="module")
def zeros():
    """Counts of which some are 0 for another reason, the more the larger x."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, 500)
    y = np.where(rng.random(500) < expit(-0.5 + 1.5 * x), 0, rng.poisson(np.exp(1 + 0.5 * x)))
    return pd.DataFrame({"x": x, "y": y})


def test_counts_beside_a_point_mass_are_statsmodels_zero_inflated_ones(zeros):
    fit = moestat.fit_formula("y ~ x", zeros, {"experts": ["point", "poisson"]}, rng=0)
    Z = sm.add_constant(zeros.x)
    other = sm.ZeroInflatedPoisson(zeros.y, Z, Z).fit(method="bfgs", maxiter=500, disp=0, gtol=1e-8)
    assert fit.certificate.certified
    assert fit.llf == pytest.approx(other.llf, abs=1e-6)
    names = ["beta0[1]", "beta1[1,x]", "b[2]", "a[2,x]"]
    assert np.allclose(fit.params[names], other.params, atol=1e-3)
    assert np.allclose(fit.predict(zeros), other.predict(), rtol=1e-3)
    assert fit.identified.rank == 4
    residuals = fit.quantile_residuals(rng=0)
    assert stats.kstest(residuals, "norm").pvalue > 1e-3


def test_constraints_are_of_the_experts_that_have_the_parameter(cloud):
    fit = moestat.fit_formula(FORMULA, cloud, WITH_NOISE, equal=["nu", "a"], rng=0)
    assert fit.params["log nu[1]"] == fit.params["log nu[2]"]
    assert fit.params["a[1,x]"] == fit.params["a[2,x]"]
    assert fit.identified.rank == 6
    known = moestat.fit_formula(FORMULA, cloud, WITH_NOISE, fixed={"a": {(1, "x"): 0.5}}, rng=0)
    assert known.params["a[1,x]"] == 0.5
    with pytest.raises(ValueError, match=r"expert 3, 'uniform', has no parameter 'nu'"):
        moestat.fit_formula(FORMULA, cloud, WITH_NOISE, fixed={"nu": {3: 1.0}}, rng=0)


def test_experts_keep_their_likelihoods_in_a_bootstrap(cloud):
    fit = moestat.fit_formula(
        FORMULA, cloud, {"experts": [{"name": "student-t", "dof": 4}, "gaussian", "uniform"]}, rng=0
    )
    drawn = fit.bootstrap(8, rng=0).replicates
    names = fit.param_names
    assert np.ptp(drawn[:, names.index("low[3]")]) == 0.0
    near = np.abs(drawn - fit.theta)[:, [names.index("b[1]"), names.index("b[2]")]]
    assert near.max() < 1.0


@pytest.mark.parametrize(
    ("experts", "match"),
    [
        ("gaussian", "experts must be a list"),
        ([], "experts must be a list"),
        (["uniform", "uniform"], "one of the likelihoods must have a mean"),
        (["gaussian", "poisson"], "'gaussian' is for real numbers and 'poisson' for counts"),
        (["gaussian", "point"], "'point' cannot be combined with 'gaussian'"),
        (["poisson", "uniform"], "'uniform' cannot be combined with 'poisson'"),
        (["gaussian", "multinomial"], "'multinomial' has no single mean"),
        (["gaussian", "least-squares"], "'least-squares' has no density"),
        (["gaussian", {"name": "gaussian", "censored": True}], "uses more than one number"),
        (["gaussian", "cauchy"], "unknown likelihood 'cauchy'"),
        (["gaussian", {"name": "uniform", "low": 1}], "both ends"),
        (["gaussian", {"name": "uniform", "low": 1, "high": 0}], "low must be below high"),
        (["poisson", {"name": "point", "at": -1}], "point: at"),
        (
            [{"name": "binomial", "trials": 3}, {"name": "beta-binomial", "trials": 4}],
            "successes of 3 trials and 'beta-binomial' for successes of 4",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(experts, match):
    with pytest.raises(ValueError, match=match):
        moestat.family({"experts": experts})


def test_sizes_gates_and_ends_are_checked():
    two = {"experts": ["gaussian", "student-t"]}
    with pytest.raises(ValueError, match="n_experts = 3, but there are likelihoods for 2 experts"):
        moestat.family(two, n_experts=3)
    with pytest.raises(ValueError, match="likelihoods for 2 experts"):
        moestat.family(two, gate="softmax").with_experts(3)
    with pytest.raises(ValueError, match="cannot be combined with a likelihood for each expert"):
        moestat.family(two, gate="competition-free")
    with pytest.raises(ValueError, match="needs its ends"):
        moestat.family({"experts": ["gaussian", "uniform"]})
    with pytest.raises(ValueError, match="a table of experts has no name"):
        moestat.family({"experts": ["gaussian"], "name": "gaussian"})
    with pytest.raises(ValueError, match="likelihoods for 2 experts"):
        moestat.select(two, np.arange(9.0), np.arange(9.0) ** 2, k=[1, 2])
