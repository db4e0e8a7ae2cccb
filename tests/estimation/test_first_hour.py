"""What people type in their first hour, with habits from other packages."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.base.registry import Registry
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS

X = np.linspace(-1.0, 1.0, 80)
Y = np.abs(X) + 0.1 * np.sin(9.0 * X)
COUNTS = np.arange(80) % 4


@pytest.mark.parametrize("alias", LIKELIHOODS.aliases)
def test_every_alias_is_a_member_by_its_name_here(alias):
    member = LIKELIHOODS[LIKELIHOODS.aliases[alias]]
    assert alias not in list(LIKELIHOODS)
    assert LIKELIHOODS[alias] is member
    assert LIKELIHOODS[alias.upper().replace("-", "_")] is member
    assert moestat.family(alias).likelihood.name == member.name
    assert moestat.family({"name": alias}).likelihood.name == member.name


def test_names_of_members_are_read_with_underscores_spaces_and_capitals():
    for name in LIKELIHOODS:
        for written in (name.replace("-", "_"), name.replace("-", " "), name.title()):
            assert LIKELIHOODS[written] is LIKELIHOODS[name]


def test_a_fit_by_an_alias_is_the_fit_by_the_name():
    one = moestat.fit("normal", X, Y, n_experts=1, rng=0)
    other = moestat.fit("gaussian", X, Y, n_experts=1, rng=0)
    assert np.array_equal(one.theta, other.theta)
    assert one.family.likelihood.name == "gaussian"
    zeros = (COUNTS == 0).astype(float)
    bernoulli = moestat.fit("bernoulli", X, zeros, n_experts=1, rng=0)
    binomial = moestat.fit({"name": "binomial", "trials": 1}, X, zeros, n_experts=1, rng=0)
    assert np.array_equal(bernoulli.theta, binomial.theta)
    several = moestat.fit(["normal", "poisson"], X, np.c_[Y, COUNTS], n_experts=1, rng=0)
    assert [one.likelihood.name for one in several.family.likelihood.parts] == [
        "gaussian",
        "poisson",
    ]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("linear", "gaussian"), ("OLS", "gaussian"), ("norml", "gaussian"), ("probit", "binomial")],
)
def test_names_that_are_no_likelihood_are_answered_by_one(given, meant):
    with pytest.raises(ValueError, match=f"unknown likelihood .*; did you mean '{meant}'"):
        moestat.fit(given, X, Y)


def test_a_member_of_its_own_name_comes_before_an_alias():
    registry = Registry("gate", aliases={"other": "softmax"})
    for name in ("softmax", "sigmoid"):
        registry.register(GATES[name])
    assert registry["Other"] is GATES["softmax"]
    registry.register(
        moestat.family("gaussian", gate="softmax").gate.__class__(
            **{**vars(GATES["softmax"]), "name": "other"}
        )
    )
    assert registry["other"].name == "other"
    with pytest.raises(ValueError, match="unknown gate 'third'"):
        registry["third"]


def _ratios(result):
    return result.tidy(exponentiate=True).set_index("name")


# One expert is a generalised linear model: ratios of statsmodels are exponentials of its own fit.
@pytest.mark.parametrize(
    ("likelihood", "y", "ratio"),
    [
        ("poisson", COUNTS, "rate ratio"),
        ("negative-binomial", (COUNTS % 3) ** 2, "rate ratio"),
        ("gamma", COUNTS + 0.5, "ratio of means"),
        ("log-normal", COUNTS + 0.5, "ratio of means"),
        ("binomial", COUNTS // 2, "odds ratio"),
        ({"name": "binomial", "trials": 5}, COUNTS, "odds ratio"),
        ("binomial", np.c_[COUNTS, 4 - COUNTS], "odds ratio"),
        ("beta", (COUNTS + 1) / 6, "odds ratio"),
        ("beta-binomial", np.c_[COUNTS, 4 - COUNTS], "odds ratio"),
        ("multinomial", COUNTS % 3, "odds ratio"),
        ("ordinal", COUNTS % 3, "odds ratio"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_coefficients_on_log_and_logit_scales_become_ratios_with_intervals(likelihood, y, ratio):
    result = moestat.fit(likelihood, X, y, n_experts=1, rng=0)
    plain, ratios = result.tidy().set_index("name"), _ratios(result)
    slopes = ratios.index[ratios.scale == ratio]
    assert list(slopes) == [name for name in plain.index if name.startswith("a[")]
    estimated = ratios.scale != "as estimated"
    assert {name[0] for name in ratios.index[estimated]} == {"a", "b"}
    for column in ("estimate", "lower", "upper"):
        assert np.allclose(ratios.loc[estimated, column], np.exp(plain.loc[estimated, column]))
        assert ratios.loc[~estimated, column].equals(plain.loc[~estimated, column])
    assert np.allclose(
        ratios.loc[estimated, "error"],
        np.exp(plain.loc[estimated, "estimate"]) * plain.loc[estimated, "error"],
    )
    assert ratios.pvalue.equals(plain.pvalue)


def test_rate_ratios_are_those_of_means():
    """The ratio of two means at inputs one apart, from predictions alone."""
    for likelihood in ("poisson", "gamma", "log-normal", "weibull", "zero-inflated-poisson"):
        y = COUNTS if likelihood in ("poisson", "zero-inflated-poisson") else COUNTS + 0.5
        one = moestat.fit(likelihood, X, y, n_experts=1, rng=0)
        low, high = one.predict([0.0, 1.0])
        assert _ratios(one).loc["a[0,0]", "estimate"] == pytest.approx(high / low)


def test_odds_ratios_of_a_gate_are_those_of_its_probabilities():
    model = moestat.family("gaussian", gate="softmax", n_experts=2)
    blocks = {"beta0": [0, 0], "beta1": [2, 0], "a": [2, -2], "b": [1, 0], "nu": [0.1, 0.1]}
    x, y = moestat.sample(model, model.pack(blocks), n=400, rng=0)
    result = moestat.fit("gaussian", x, y, rng=0)
    frame = _ratios(result)
    gate = moestat.gate_probabilities(result.family, result.theta, [-0.5, 0.0, 1.0])
    gate = gate if len(gate) == 3 else gate.T
    odds = gate[1:, 0] / gate[1:, 1]
    assert frame.loc["beta1[0,0]", "scale"] == "odds ratio"
    assert frame.loc["beta1[0,0]", "estimate"] == pytest.approx(odds[1] / odds[0], rel=1e-6)
    assert frame.loc["beta1[1,0]", "estimate"] == 1.0  # the reference
    assert set(frame.loc[["a[0,0]", "b[0]", "log nu[0]"], "scale"]) == {"as estimated"}
    assert frame.loc["a[0,0]", "estimate"] == result.tidy().set_index("name").estimate["a[0,0]"]


@pytest.mark.parametrize(
    "model",
    ["gaussian", "student-t", {"name": "binomial", "link": "probit"}],
)
@pytest.mark.filterwarnings("ignore")
def test_a_model_without_such_scales_is_refused(model):
    y = Y if isinstance(model, str) else COUNTS // 2
    result = moestat.fit(model, X, y, n_experts=1, rng=0)
    with pytest.raises(ValueError, match="exponentiate: no coefficient of this model is on a log"):
        result.tidy(exponentiate=True)
