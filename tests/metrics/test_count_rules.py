"""Sums over counts where one mean is enormous, as in a diverged estimate."""

import tracemalloc

import numpy as np
import pytest

import moestat
from moestat.metrics.quadrature import log_densities, response_rules
from moestat.model.likelihoods import LIKELIHOODS

COUNTS = [
    name
    for name, each in LIKELIHOODS.items()
    if each.counts and "trials" not in each.options  # beyond which there is no mean
]


def diverged(name, shift):
    """A model, an estimate of which one mean is exp(shift) times as much, and a typical truth."""
    family = moestat.family(name, gate="softmax", n_experts=2)
    truth = family.typical(0)
    blocks = family.unpack(truth)
    blocks["b"] = blocks["b"] + np.array([shift, 0.0])
    return family, family.pack(blocks), truth


@pytest.mark.parametrize("name", COUNTS)
def test_distances_are_those_of_listed_counts(name, monkeypatch):
    family, theta, truth = diverged(name, 7.0)
    pair = (family, theta, family, truth, moestat.Uniform(0, 0.2), 2)
    found = [float(d(*pair)) for d in (moestat.hellinger, moestat.total_variation)]
    monkeypatch.setattr("moestat.metrics.count_rules._LISTED", 10**7)
    listed = [float(d(*pair)) for d in (moestat.hellinger, moestat.total_variation)]
    assert found[0] == pytest.approx(listed[0], abs=1e-7)
    assert found[1] == pytest.approx(listed[1], abs=1e-4)  # whose integrand has kinks
    assert 0.01 < found[0] < 1.0


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("shift", [12.0, 20.0])
def test_probabilities_sum_to_1(name, shift):
    """They were listed one by one, and a cell of a sweep ended in a MemoryError."""
    family, theta, _ = diverged(name, shift)
    X = np.linspace(0.0, 1.0, 5)[None]
    family.log_density(theta, X.T, np.ones(5))  # compiles, which takes memory, too
    tracemalloc.start()
    total = np.zeros(5)
    for chunk, rule in response_rules([(family, theta)], X, 2):
        part = np.ascontiguousarray(X[:, chunk])
        density = np.exp(log_densities(family, theta, part, rule))
        total[chunk] = rule.per_input(density, part.shape[1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == pytest.approx(np.ones(5), abs=1e-5)
    assert peak < 5e7


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("shift", [60.0, 690.0])
def test_what_float64_cannot_say_is_refused_in_a_sentence(name, shift):
    family, theta, truth = diverged(name, shift)
    with pytest.raises(ValueError, match=r"theta.*beyond the (precision|range) of float64"):
        moestat.hellinger(family, theta, family, truth)
