"""Measures far from a truth: zero functions, saturated atoms, truths that are alone."""

import pytest

from moestat import family
from moestat.model.designs import Uniform
from moestat.theory.identifiability.far import find_far

NEURON = {"name": "activation", "activation": "gelu", "weighted": False}
SPARSE = {"A": [0.0, 0.8], "c": [0.3, -0.2], "alpha": [2.0, -1.5], "beta": [0.5, 1.0]}


@pytest.fixture(scope="module")
def neurons():
    truth_family = family("least-squares", gate="sigmoid-partial", expert=NEURON, n_experts=2)
    return truth_family, truth_family.pack(SPARSE)


def test_a_zero_function_beside_the_truth_is_found(neurons):
    truth_family, truth = neurons
    found = find_far(
        truth_family.with_experts(3), truth_family, truth, "L4", design=Uniform(-3, 3), n_starts=3
    )
    assert found.n_apart > 0
    assert found.discrepancy < 1e-8
    assert "another measure" in found.text
    blocks = truth_family.with_experts(3).unpack(found.params)
    assert min(abs(blocks["alpha"]).ravel() + abs(blocks["beta"])) < 1e-6


def test_a_truth_that_is_exactly_specified_comes_back_alone(neurons):
    truth_family, truth = neurons
    found = find_far(truth_family, truth_family, truth, "L4", design=Uniform(-3, 3), n_starts=6)
    assert found.n_reached > 0
    assert found.n_apart == 0
    assert "none found" in found.text


def test_saturated_atoms_are_no_representations():
    """A start whose further gate is closed reaches the law to rounding, and does not count."""
    classes = family("multinomial", gate="sigmoid", n_experts=1, n_classes=2)
    truth = classes.pack(
        {"gamma": [0.0], "alpha": [1.0], "beta": [0.5], "a": [[1.0, 0.0]], "b": [[0.5, 0.0]]}
    )
    found = find_far(classes.with_experts(2), classes, truth, "D1", n_starts=9)
    assert found.n_reached + found.n_asleep <= found.n_starts
    for loss in found.losses:
        assert loss >= 0.0


def test_families_must_go_together(neurons):
    truth_family, truth = neurons
    other = family("gaussian", gate="softmax", n_experts=3)
    with pytest.raises(ValueError, match="truth_family"):
        find_far(other, truth_family, truth, "L4")
    with pytest.raises(ValueError, match="n_starts"):
        find_far(truth_family.with_experts(3), truth_family, truth, "L4", n_starts=0)
