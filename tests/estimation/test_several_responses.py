"""Several responses of a row, independent within an expert."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, poisson

import moestat
from moestat.solvers import EM
from tests import oracle

TWO = ["gaussian", "poisson"]


@pytest.fixture(scope="module")
def data():
    """Six rows of each of 40 subjects of two kinds."""
    rng = np.random.default_rng(1)
    one, x = (np.arange(40) % 2 == 0)[np.repeat(np.arange(40), 6)], rng.uniform(-1, 1, 240)
    height = np.where(one, 2 * x, 1 - 2 * x) + rng.normal(0, 0.5, 240)
    visits = rng.poisson(np.exp(np.where(one, 1 + 0.5 * x, 0.2 - x)))
    index = [f"row {i}" for i in range(240)]
    columns = {"x": x, "height": height, "visits": visits, "id": np.repeat(np.arange(40), 6)}
    return pd.DataFrame(columns, index=index)


@pytest.fixture(scope="module")
def result(data):
    return moestat.fit_formula("cbind(height, visits) ~ x", data, TWO, rng=0)


def log_densities(result, data):
    """Log-scores and log-densities (k, n), by scipy."""
    own, x = result.blocks, data.x.to_numpy()
    score = own["beta0"][:, None] + own["beta1"] * x
    mean = [own[f"b_{name}"][:, None] + own[f"a_{name}"] * x for name in ("height", "visits")]
    density = norm.logpdf(data.height.to_numpy(), mean[0], np.sqrt(own["nu_height"])[:, None])
    return score, density + poisson.logpmf(data.visits.to_numpy(), np.exp(mean[1]))


def test_density_is_the_product_of_those_of_the_responses(result, data):
    score, density = log_densities(result, data)
    row = logsumexp(score + density, axis=0) - logsumexp(score, axis=0)
    assert np.allclose(result.score_samples(), row, rtol=1e-12)
    assert result.llf == pytest.approx(row.sum(), rel=1e-12)
    assert result.certificate.certified
    share = np.exp(score + density - logsumexp(score + density, axis=0))
    assert np.allclose(result.responsibilities, share.T, atol=1e-12)


def test_an_expert_is_chosen_once_for_a_group(data):
    grouped = moestat.fit_formula("cbind(height, visits) ~ x | 1 | id", data, TWO, rng=0)
    score, density = log_densities(grouped, data)
    of_group = density.reshape(2, 40, 6).sum(axis=2) + (score - logsumexp(score, axis=0))[:, ::6]
    assert grouped.llf == pytest.approx(logsumexp(of_group, axis=0).sum(), rel=1e-12)
    known = grouped.predict(data[:1], groups=data["id"][:1])
    share = np.exp(of_group - logsumexp(of_group, axis=0))[:, 0]
    experts = np.asarray(grouped.predict(data[:1], "experts"))[0]
    assert np.allclose(known, experts @ share, rtol=1e-10)


def test_derivatives_are_those_of_the_sum():
    """A vector of predictors before one with a scale of its own."""
    laws = [{"name": "multinomial", "n_classes": 3, "response": "kind"}, "gaussian"]
    model = moestat.family(laws, gate="softmax", n_features=2)
    theta, rng = model.typical(0), np.random.default_rng(0)
    X, y = moestat.sample(model, theta, 60, 1)
    weight = rng.uniform(0.5, 2.0, 60)
    assert moestat.log_likelihood(model, theta, X, y, weight) == pytest.approx(
        float(oracle.log_likelihood(model, theta, X, y, weight)), rel=1e-12
    )
    score = oracle.score(model, theta, X, y, weight)
    assert np.allclose(moestat.score(model, theta, X, y, weight), score, rtol=1e-10, atol=1e-10)
    hessian, step = moestat.hessian(model, theta, X, y, weight), 1e-5 * np.eye(theta.size)
    sides = [[oracle.score(model, theta + s * e, X, y, weight) for s in (1, -1)] for e in step]
    slopes = np.array([(high - low) / 2e-5 for high, low in sides])
    assert np.allclose(hessian, slopes, rtol=1e-6, atol=1e-6 * np.abs(hessian).max())
    again = moestat.model.family.from_table(model.table)
    assert again.loops is model.loops
    assert again.param_names == model.param_names
    assert model.param_names[3:5] == ["b_kind[1,0]", "a_kind[1,0,0]"]


def test_two_responses_of_flexmix(data):
    """``FLXMRglm(yn ~ . + I(x^2))`` and ``FLXMRglm(yp ~ ., family = "poisson")`` in one list."""
    known = {"fixed": {"a_visits": {"I(x ** 2)": 0.0}}, "rng": 0}
    found = moestat.fit_formula("cbind(height, visits) ~ x + I(x ** 2) | 1", data, TWO, **known)
    assert np.all(found.blocks["a_visits"][:, 1] == 0.0)
    assert found.identified.rank == 13
    em = moestat.fit(TWO, data.x, data[["height", "visits"]], solver=EM(), gate_inputs=[], rng=0)
    assert em.llf <= found.llf
    assert em.certificate.certified


def test_units_of_each_response_follow(result, data):
    """Fits are equivariant in each continuous response by itself."""
    other = data.assign(height=1e5 + 1e3 * data.height)
    moved = moestat.fit_formula("cbind(height, visits) ~ x", other, TWO, rng=0)
    assert moved.llf == pytest.approx(result.llf - 240 * np.log(1e3), rel=1e-9)
    assert np.allclose(moved.blocks["a_height"], 1e3 * result.blocks["a_height"], rtol=1e-5)
    assert np.allclose(moved.blocks["nu_height"], 1e6 * result.blocks["nu_height"], rtol=1e-5)
    assert np.allclose(moved.bse["a_visits[1,x]"], result.bse["a_visits[1,x]"], rtol=1e-4)


def test_answers_have_a_column_for_each_response(result, data):
    new = data[:5]
    mean = result.predict(new)
    assert list(mean.columns) == ["height", "visits"]
    assert mean.index.equals(new.index)
    chance, experts = np.asarray(result.predict(new, "gate")), result.predict(new, "experts")
    assert np.allclose(mean, np.einsum("nk,nrk->nr", chance, experts))
    assert result.predict(new, "quantile", q=[0.1, 0.9]).shape == (5, 2, 2)
    assert np.allclose(result.resid, data[["height", "visits"]] - result.fittedvalues)
    residuals = result.quantile_residuals(0)
    assert residuals.shape == (240, 2)
    assert np.all(np.abs(residuals.std() - 1.0) < 0.15)
    drawn = result.simulate(rng=0)
    assert np.all(np.abs(drawn.mean() - data[["height", "visits"]].mean()) < [0.3, 0.5])
    one = result.response("visits")
    assert np.allclose(one.predict(new), mean["visits"])
    frame = one.get_prediction(new).summary_frame()
    assert np.allclose(frame["mean"], mean["visits"])
    assert np.all(frame["mean_se"] > 0.0)
    assert one.get_margeff().effect.shape == (1,)
    with pytest.raises(ValueError, match=r"result.response\('height'\).get_prediction"):
        result.get_prediction(new)
    with pytest.raises(ValueError, match="one of 'height', 'visits', got 'weight'"):
        result.response("weight")


def test_errors_of_one_response_are_those_of_the_fit(result, data):
    """The delta method by differences of the mean, with the covariance of all parameters."""
    new, step = data[:3], 1e-6
    own, at = result.family.marginals[1]
    X = np.asarray(new[["x"]])
    slopes = np.zeros((3, result.theta.size))
    for j, place in enumerate(at):
        moved = result.theta[at] + step * np.eye(at.size)[j]
        slopes[:, place] += (own.mean(moved, X) - own.mean(result.theta[at], X)) / step
    expected = np.sqrt(np.diag(slopes @ result._covariance @ slopes.T))
    assert np.allclose(result.response("visits").get_prediction(new).se, expected, rtol=1e-4)


def test_rest_of_a_fit_knows_several_responses(result, data, tmp_path):
    result.save(tmp_path / "fit.npz")
    again = moestat.load(tmp_path / "fit.npz")
    assert again.llf == result.llf
    assert (
        again.response("height")
        .predict(data[:2])
        .equals(result.response("height").predict(data[:2]))
    )
    assert result.bootstrap(5, "parametric", rng=0).conf_int().shape == (result.params.size, 2)
    table = moestat.select(TWO, data.x, data[["height", "visits"]], k=(1, 2), rng=0)
    assert table.best.llf == pytest.approx(result.llf, abs=1e-6)
    text = str(result.summary())
    assert "Expert 1: height" in text
    assert "log nu_height" in text
    assert set(result.tidy()["response"].dropna()) == {"height", "visits"}
    assert len(result.plot()) == 2


@pytest.mark.parametrize(
    ("laws", "y", "message"),
    [
        (TWO, [[1.0, 2.0, 3.0]] * 9, "y must have 2 columns"),
        (TWO, [1.0] * 9, "one column per response"),
        (TWO, [[0.5, -1.0], [1.5, 2.0]] * 5, "response 'y2': y must hold counts"),
        (TWO, [[1.0, 2.0], [1.0, 3.0]] * 5, "response 'y1': y is constant"),
        (["gaussian", "least-squares"], [[1.0, 2.0]] * 9, "'y2' has no density"),
        ([], [[1.0, 2.0]] * 9, "a likelihood for each response"),
    ],
)
def test_messages_name_the_response(laws, y, message):
    with pytest.raises(ValueError, match=message):
        moestat.fit(laws, np.arange(len(y)) * 1.0, np.array(y), n_experts=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expert": "ffn"}, "only linear experts have several"),
        ({"gate": "competition"}, "reads one mean"),
        ({"compress": "auto"}, "compress: only for one response"),
        ({"classes": ["a", "b"]}, "of several responses a table"),
        ({"classes": {"weight": ["a", "b"]}}, "unknown response 'weight'"),
    ],
)
def test_what_is_for_one_response_says_so(data, options, message):
    with pytest.raises(ValueError, match=message):
        moestat.fit(TWO, data.x, data[["height", "visits"]], rng=0, **options)


def test_the_influence_on_one_response_is_that_on_the_fit_of_all():
    x = np.linspace(-1, 1, 50)
    y = np.column_stack([x + np.sin(7 * x), np.arange(50) // 9])
    result = moestat.fit(["gaussian", "poisson"], x, y, n_experts=1, rng=0)
    lines = result.response("y1").plot_influence().collections[0].get_segments()
    assert [line[1][1] for line in lines] == pytest.approx(result.influence().displacement)


def test_names_in_back_ticks(data, result):
    """Of responses, also within functions, and of inputs; new data by name."""
    named = data.rename(columns={"height": "height (cm)", "x": "my x"})
    other = moestat.fit_formula("cbind(`height (cm)`, visits) ~ `my x`", named, TWO, rng=0)
    assert other.llf == result.llf
    assert "b_height (cm)[1]" in other.param_names
    turned = named[named.columns[::-1]].iloc[:5]
    assert np.array_equal(other.predict(turned), result.predict(data.iloc[:5]))
    shifted = moestat.fit_formula("cbind(`height (cm)` + 1, visits) ~ `my x`", named, TWO, rng=0)
    assert shifted.llf == pytest.approx(result.llf, abs=1e-6)
