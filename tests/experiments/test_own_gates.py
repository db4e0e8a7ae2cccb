"""Gates and experts of one's own: their code against their references, and their rates."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from experiments.own_gates.cases import CASES, truth_of
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES


@pytest.fixture(autouse=True)
def without_members_of_ones_own():
    """Other tests and pages list the members that the library ships."""
    before = [(registry, dict(registry._members)) for registry in (GATES, EXPERTS)]
    yield
    for registry, members in before:
        registry._members.clear()
        registry._members.update(members)


@pytest.mark.parametrize("name", ["wave-linear", "cauchy-bent", "softmax-arch", "hyperbolic-bent"])
def test_compiled_densities_are_those_of_the_references(name):
    family, theta = truth_of(name)
    X = np.linspace(-2.0, 2.0, 7)[:, None]
    y = np.linspace(-1.0, 3.0, 7)
    blocks = family.measure(theta).atoms | {
        key: value for key, value in family.unpack(theta).items() if key == family.gate.mass
    }
    means = family.expert.reference(blocks, X)
    scores = family.gate.reference(blocks, X, means)
    weights = np.exp(scores - scores.max(axis=0))
    weights /= weights.sum(axis=0)
    nu = blocks["nu"][:, None]
    densities = np.exp(-((y - means) ** 2) / (2 * nu)) / np.sqrt(2 * np.pi * nu)
    expected = np.log((weights * densities).sum(axis=0))
    assert family.log_density(theta, X, y) == pytest.approx(expected, rel=1e-10)


def test_rates_need_nothing_but_the_registered_functions():
    family, theta = truth_of("softmax-arch")
    found = moestat.theory.rates(family, theta, 3, moestat.Uniform(-2, 2), seconds=0)
    assert {row.status for row in found} == {"certified"}
    family, theta = truth_of("hyperbolic-linear")
    found = moestat.theory.rates(family, theta, 3, moestat.Uniform(-2, 2), seconds=0)
    assert (found.rate("b", 2).r, found.rate("b", 2).status) == (4.0, "proved")
    assert len(CASES) == 5
