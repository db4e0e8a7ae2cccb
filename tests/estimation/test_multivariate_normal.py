"""Normal responses that are correlated within an expert."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

import moestat
from moestat.model.family import from_table
from moestat.solvers import EM
from moestat.solvers.collapse import collapsed_atoms
from moestat.solvers.problem import Problem, Rows
from tests import oracle

THREE = ["length", "width", "petal"]


def law(covariance):
    return {"name": "multivariate-gaussian", "covariance": covariance}


@pytest.fixture(scope="module")
def iris():
    return pd.DataFrame(load_iris().data[:, :3], columns=THREE)


@pytest.fixture(scope="module")
def data():
    """Rows of two experts with covariances of their own."""
    rng = np.random.default_rng(0)
    one, x = rng.random(200) < 0.4, rng.normal(size=200)
    factors = [[[1, 0, 0], [0.8, 1, 0], [0.1, 0.3, 0.6]], [[0.7, 0, 0], [-0.3, 0.5, 0], [0, 0, 1]]]
    noise = np.einsum("nij,nj->ni", np.array(factors)[1 - one], rng.normal(size=(200, 3)))
    mean = np.where(
        one[:, None], np.array([1, 2, 3]) + np.outer(x, [1, -1, 0.5]), np.outer(x, [0, 1, -1])
    )
    return pd.DataFrame(mean + noise, columns=THREE).assign(x=x)


@pytest.fixture(scope="module")
def result(data):
    return moestat.fit_formula("cbind(length, width, petal) ~ x", data, law("VVV"), rng=0)


def densities(result, data):
    """Log-scores and log-densities (k, n), by scipy."""
    own, x = result.blocks, data.x.to_numpy()
    mean = [own[f"b_{name}"][:, None] + own[f"a_{name}"] * x for name in THREE]
    errors = data[THREE].to_numpy() - np.transpose(mean, (1, 2, 0))
    S = np.asarray(result.covariances).reshape(2, 3, 3)
    density = [multivariate_normal.logpdf(e, cov=C) for e, C in zip(errors, S, strict=True)]
    return own["beta0"][:, None] + own["beta1"] * x, np.array(density)


def test_density_is_that_of_scipy(result, data):
    score, density = densities(result, data)
    row = logsumexp(score + density, axis=0) - logsumexp(score, axis=0)
    assert np.allclose(result.score_samples(), row, rtol=1e-12, atol=1e-12)
    assert result.certificate.certified
    assert result.family.n_free_params == 2 + 2 * (6 + 6)
    nu = result.blocks["nu_width"]
    assert np.allclose(np.asarray(result.covariances)[1::3, 1], nu, rtol=1e-12)


def test_derivatives_are_those_of_the_reference():
    model = moestat.family({**law("VVV"), "responses": 3}, gate="softmax", n_features=2)
    theta, rng = model.typical(0), np.random.default_rng(0)
    X, y = moestat.sample(model, theta, 60, 1)
    weight = rng.uniform(0.5, 2.0, 60)
    score = oracle.score(model, theta, X, y, weight)
    assert np.allclose(moestat.score(model, theta, X, y, weight), score, rtol=1e-10, atol=1e-10)
    step = 1e-5 * np.eye(theta.size)
    sides = [[oracle.score(model, theta + s * e, X, y, weight) for s in (1, -1)] for e in step]
    slopes = np.array([(high - low) / 2e-5 for high, low in sides])
    hessian = moestat.hessian(model, theta, X, y, weight)
    assert np.allclose(hessian, slopes, rtol=1e-6, atol=1e-8 * np.abs(hessian).max())
    again = from_table(model.table)
    assert again.loops is model.loops
    assert again.param_names == model.param_names


def test_samples_have_the_covariance():
    model = moestat.family({**law("VVV"), "responses": 3}, gate="softmax", n_experts=1)
    theta = model.typical(0)
    X, y = moestat.sample(model, theta, 20_000, 1)
    errors = y - model.mean(theta, X)
    zero = np.zeros((1, 3))
    height = model.log_density(theta, [0.0], model.mean(theta, [0.0]) + zero)[0]
    # The log-density at the mean says what the determinant is, the covariance what it ought to be.
    S = errors.T @ errors / len(y)
    assert height == pytest.approx(multivariate_normal.logpdf(zero[0], cov=S), abs=0.05)


def test_one_expert_is_least_squares(data):
    one = moestat.fit_formula(
        "cbind(length, width, petal) ~ x", data, law("VVV"), n_experts=1, rng=0
    )
    A, Y = np.column_stack([np.ones(200), data.x]), data[THREE].to_numpy()
    B = np.linalg.lstsq(A, Y, rcond=None)[0]
    S = (Y - A @ B).T @ (Y - A @ B) / 200
    assert np.allclose([one.blocks[f"b_{name}"][0] for name in THREE], B[0], atol=1e-8)
    assert np.allclose(one.covariances, S, atol=1e-8)
    assert one.llf == pytest.approx(multivariate_normal.logpdf(Y - A @ B, cov=S).sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("covariance", "height", "df"),
    [
        ("EEE", -308.0698, 17),
        pytest.param("VVI", -331.2640, 20, marks=pytest.mark.slow),
        pytest.param("VII", -366.5475, 14, marks=pytest.mark.slow),
        ("EII", -376.9008, 12),
    ],
)
def test_intercepts_alone_are_mclust(iris, covariance, height, df):
    """``Mclust(iris[, 1:3], G = 3, modelNames = ...)`` of R's mclust 6.0.0."""
    formula = "cbind(length, width, petal) ~ 1"
    found = moestat.fit_formula(formula, iris, law(covariance), n_experts=3, rng=0)
    assert found.llf == pytest.approx(height, abs=1e-3)
    assert found.certificate.certified
    assert found.family.n_free_params == df


def test_the_highest_maximum_is_above_mclust_where_the_regular_one_is_not(iris):
    """VVV, where an expert has nine rows: -259.1821 in mclust, which is an end of the default."""
    formula = "cbind(length, width, petal) ~ 1"
    regular = moestat.fit_formula(formula, iris, law("VVV"), n_experts=3, rng=0)
    assert regular.ends.log_likelihood.max() >= -259.1821 - 1e-3
    assert regular.certificate.certified
    assert regular.family.n_free_params == 29
    highest = moestat.fit_formula(formula, iris, law("VVV"), n_experts=3, maximum="highest", rng=0)
    assert highest.llf >= -259.1821 - 1e-3


def test_the_weak_prior_keeps_correlations_from_one(iris):
    """Without a prior of its own an expert of a few rows had dependences of 12 to 24."""
    how = {"n_experts": 3, "prior": "weak"}
    formula = "cbind(length, width, petal) ~ 1"
    modes = [moestat.fit_formula(formula, iris, law("VVV"), rng=j, **how) for j in range(2)]
    assert modes[1].log_posterior == pytest.approx(modes[0].log_posterior, abs=0.01)
    names = [name for name in modes[0].blocks if name.startswith("w_")]
    assert max(abs(mode.blocks[name]).max() for mode in modes for name in names) < 5.0


def test_units_of_each_response_follow(result, data):
    other = data.assign(width=1e5 + 1e3 * data.width)
    moved = moestat.fit_formula("cbind(length, width, petal) ~ x", other, law("VVV"), rng=0)
    assert moved.llf == pytest.approx(result.llf - 200 * np.log(1e3), rel=1e-9)
    for name in ("w_width_length", "w_petal_width"):
        assert np.allclose(moved.blocks[name], result.blocks[name], rtol=1e-5, atol=1e-6)
    assert np.allclose(moved.blocks["nu_width"], 1e6 * result.blocks["nu_width"], rtol=1e-5)


def test_spherical_ones_have_one_unit(iris):
    found = moestat.fit_formula("cbind(length, width, petal) ~ 1", iris, law("VII"), rng=0)
    other = moestat.fit_formula("cbind(length, width, petal) ~ 1", 10 * iris, law("VII"), rng=0)
    assert other.llf == pytest.approx(found.llf - 450 * np.log(10), rel=1e-9)
    assert np.array_equal(found.blocks["nu_length"], found.blocks["nu_petal"])


@pytest.mark.filterwarnings("ignore::moestat.base.warnings.UnitsWarning")
@pytest.mark.parametrize("covariance", ["VII", "EII"])
def test_the_mode_of_spherical_ones_is_spherical(iris, covariance):
    """Each response had a variance of its own, so that modes were above the maximum."""
    frame = iris.assign(petal=20.0 * iris.petal)
    formula = "cbind(length, width, petal) ~ 1"
    mode = moestat.fit_formula(formula, frame, law(covariance), prior="weak", rng=0)
    regular = moestat.fit_formula(formula, frame, law(covariance), rng=0)
    assert np.allclose(mode.blocks["nu_length"], mode.blocks["nu_petal"], rtol=1e-9)
    assert mode.llf <= regular.llf + 1e-6


def test_diagonal_ones_are_independent_responses():
    diagonal = moestat.family({**law("VVI"), "responses": 3}, gate="softmax")
    apart = moestat.family(["gaussian"] * 3, gate="softmax")
    assert diagonal.loops is apart.loops
    assert diagonal.param_names == apart.param_names


def test_rest_of_a_fit(result, data):
    formula = "cbind(length, width, petal) ~ x"
    mean = result.predict(data[:2])
    assert list(mean.columns) == THREE
    assert np.allclose(result.response("petal").predict(data[:2]), mean.petal)
    assert np.corrcoef(result.simulate(rng=0).T)[0, 1] == pytest.approx(
        np.corrcoef(data[THREE].T)[0, 1], abs=0.15
    )
    em = moestat.fit_formula(formula, data, law("VVV"), solver=EM(), rng=0)
    assert em.llf == pytest.approx(result.llf, abs=1e-6)
    assert result.bootstrap(4, rng=0).conf_int().shape == (result.params.size, 2)
    common = moestat.fit_formula(formula, data, law("EEE"), rng=0)
    assert moestat.lr_test(common, result).df == 6
    same = moestat.fit_formula(
        formula, data, law("VVV"), equal=[n for n in result.blocks if n[:2] in ("nu", "w_")], rng=0
    )
    assert same.llf == pytest.approx(common.llf, abs=1e-6)
    assert re.search(r"dependence +w_width_length", str(result.summary()))


def test_groups_choose_an_expert_once():
    """The log-likelihood is a sum of scipy's densities over groups; BIC counts groups."""
    rng = np.random.default_rng(0)
    group, x = np.repeat(np.arange(60), 5), rng.normal(size=300)
    z = rng.integers(0, 2, 60)[group]
    noise = rng.multivariate_normal([0.0, 0.0], [[0.5, 0.3], [0.3, 0.5]], 300)
    y = np.column_stack([np.where(z, x, -x), 1 + x * z]) + noise
    options = {"groups": group, "gate_inputs": [], "rng": 0}
    chosen = moestat.select("multivariate-gaussian", x, y, k=(1, 2), **options)
    result, b = chosen.best, chosen.best.blocks
    assert result.family.n_experts == 2
    assert result.bic == pytest.approx(-2 * result.llf + 15 * np.log(60))
    share = np.log(np.exp(b["beta0"]) / np.exp(b["beta0"]).sum())
    heights = []
    for k, S in enumerate(result.covariances):
        mean = [b[f"b_{name}"][k] + b[f"a_{name}"][k] * x for name in ("y1", "y2")]
        height = multivariate_normal([0.0, 0.0], S).logpdf(y - np.transpose(mean))
        heights.append(share[k] + np.bincount(group, height))
    assert result.llf == pytest.approx(logsumexp(heights, axis=0).sum(), rel=1e-12)


def test_an_expert_on_a_plane_has_collapsed():
    model = moestat.family({**law("VVV"), "responses": 3}, gate="softmax")
    blocks = model.unpack(model.typical(0))
    blocks |= {f"nu_y{r}": [1.0, 1.0] for r in (1, 2, 3)} | {"w_y3_y2": [0.0, 30.0]}
    blocks |= {"beta0": [5.0, 0.0], "beta1": [[0.0], [0.0]]}
    theta = model.pack(blocks)
    X, y = moestat.sample(model, theta, 200, 1)
    problem = Problem(
        model, Rows(np.ascontiguousarray(X.T), model.likelihood.encode(y, 1), np.ones(200))
    )
    assert collapsed_atoms(problem, theta) == (1,)


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (law("XYZ"), np.eye(9, 2), "covariance must be one of VVV, EEE, VVI, EEI, VII, EII"),
        (law("VVV"), np.arange(9.0), r"y must have shape \(n, q\), one column per response"),
        (law("VVV"), np.arange(9.0)[:, None], "two columns or more"),
        ({**law("VVV"), "responses": 3}, np.eye(9, 2), "y must have 3 columns"),
        ({**law("VVV"), "responses": ["a", "a"]}, np.eye(9, 2), "different names"),
        ({**law("VVV"), "responses": ["a", "b_c", "a_b", "c"]}, np.eye(9, 4), "joined by '_'"),
    ],
)
def test_messages(model, y, message):
    with pytest.raises(ValueError, match=message):
        moestat.fit(model, np.arange(9.0), y, n_experts=1)


def test_an_expert_on_one_row_is_no_maximum(iris):
    """Its responsibility is a little below one, and it is higher than all sound ends."""
    model = "cbind(length, width) ~ petal | 1"
    fitted = moestat.fit_formula(model, iris, law("VVV"), n_experts=2, rng=0)
    assert not fitted.certificate.collapsed
    assert fitted.predict(which="gate").min().min() > 0.1


@pytest.mark.parametrize("covariance", ["VVV", "EEE"])
@pytest.mark.parametrize(("k", "size"), [(1, 1e-2), (1, 1e-3), (1, 1e-4), (2, 1e-2), (2, 1e-3)])
def test_nearly_equal_responses_have_the_maximum_of_their_difference(covariance, k, size):
    """An affine map of the responses: the same model, with a density less by log of its size."""
    rng = np.random.default_rng(13)
    base, e = rng.normal(size=300) + 4 * (np.arange(300) < 120), rng.normal(size=300)
    law = {"name": "multivariate-gaussian", "covariance": covariance, "responses": ["a", "b"]}
    llf = []
    for second in (base + size * e, e):
        d = pd.DataFrame({"a": base, "b": second})
        found = moestat.fit_formula("cbind(a, b) ~ 1", d, law, n_experts=k, rng=0)
        assert found.certificate.certified
        assert not {"SeparationWarning", "IdentificationWarning", "BoundWarning"} & {*found.kinds}
        llf.append(found.llf)
    assert llf[0] == pytest.approx(llf[1] - 300 * np.log(size), abs=5e-3)


@pytest.mark.parametrize("size", [1e-6, 0.0])
def test_collinear_responses_are_refused_by_name(size):
    rng = np.random.default_rng(1)
    d = pd.DataFrame({"a": rng.normal(size=100), "c": rng.normal(size=100)})
    d["b"] = 2 * d.a - d.c + size * rng.normal(size=100)
    with pytest.raises(ValueError, match="response 'b' is a linear function of a, c"):
        moestat.fit_formula("cbind(a, c, b) ~ 1", d, "multivariate-gaussian", n_experts=1)
