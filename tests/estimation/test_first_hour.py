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
    with pytest.raises(ValueError, match="unknown gate 3"):
        registry[3]
