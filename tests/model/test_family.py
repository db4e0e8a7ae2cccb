"""Families: every pair of a gate and an expert, and what is true of all of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import moestat
from moestat.base.registry import configured
from moestat.model.experts import EXPERTS
from moestat.model.gates import GATES
from moestat.model.likelihoods import LIKELIHOODS
from tests import oracle
from tests.kinds import goes_with, make, random_theta

CLASHING = [
    *itertools.product(
        ["gaussian"],
        ["sigmoid", "sigmoid-inner", "sigmoid-euclidean"],
        ["polynomial", "activation", {"name": "activation", "weighted": False}],
    ),
    ("least-squares", "sigmoid-quadratic", "linear"),
    ("least-squares", "softmax-quadratic", "linear"),
]


@pytest.mark.parametrize(("gate", "expert"), list(itertools.product(GATES, EXPERTS)))
def test_every_gate_goes_with_every_expert(gate, expert):
    likelihood = "gaussian" if goes_with("gaussian", gate, expert) else "least-squares"
    family = moestat.family(likelihood, gate=gate, expert=expert, n_features=2)
    used = np.concatenate([positions.ravel() for positions in family.blocks.values()])
    assert sorted(used) == list(range(family.n_params))


@pytest.mark.parametrize("kind", CLASHING, ids=str)
def test_blocks_of_one_name_are_qualified(kind):
    family = make(kind, 2, 2)
    clash = GATES[kind[1]].bounds.keys() & configured(EXPERTS, kind[2]).bounds.keys()
    assert clash
    for name in clash:
        assert name not in family.blocks
        assert {f"gate_{name}", f"expert_{name}"} <= set(family.blocks)
    rng = np.random.default_rng(0)
    theta = random_theta(family, rng)
    blocks = {name: rng.normal(size=block.shape) for name, block in family.unpack(theta).items()}
    for name in blocks.keys() & {"nu", "tau"}:
        blocks[name] = np.exp(blocks[name])
    theta = family.pack(blocks)
    assert all(np.allclose(block, blocks[name]) for name, block in family.unpack(theta).items())
    measure = family.measure(theta)
    assert np.allclose(family.from_measure(measure), theta)
    assert all(f"expert_{name}" in measure.expert_blocks for name in clash)
    bounded = moestat.family(
        kind[0], gate=kind[1], expert=kind[2], n_features=2, bounds={f"gate_{min(clash)}": (-1, 2)}
    )
    assert np.all(bounded.upper[bounded.blocks[f"gate_{min(clash)}"]] <= 2.0)
    assert np.all(bounded.upper[bounded.blocks[f"expert_{min(clash)}"]] > 2.0)


@pytest.mark.parametrize("activation", ["relu", "norm", "softplus"])
@pytest.mark.parametrize("active", [1, 2])
def test_ties_in_the_top_make_no_order_of_the_atoms(activation, active):
    """Where all ReLU experts respond 0 they are tied, and all of them take part."""
    family = moestat.family(
        "gaussian",
        gate={"name": "competition-top", "active": active, "activation": activation},
        expert={"name": "activation", "activation": "relu"},
        n_experts=3,
    )
    theta = family.pack(
        {
            "alpha": [[1.0], [2.0], [-1.0]],
            "beta": [0.0, -0.5, -1.0],
            "lambda": [1.0, -1.0, 2.0],
            "nu": [0.1, 1.0, 3.0],
        }
    )
    X, y = np.linspace(-2.0, 2.0, 101), np.linspace(-1.0, 1.0, 101)
    density = family.log_density(theta, X, y)
    atoms, shared = family.split(theta)
    for order in itertools.permutations(range(3)):
        other = family.join(atoms[list(order)], shared)
        assert np.allclose(family.log_density(other, X, y), density, rtol=1e-12)
    pi = family.gate_probabilities(theta, X)
    silent = np.all(X[:, None] * [1.0, 2.0, -1.0] + [0.0, -0.5, -1.0] <= 0.0, axis=1)
    assert silent.sum() == 26
    assert np.allclose(pi[silent], 1.0 / 3.0)
    assert np.all((pi[~silent] > 0.0).sum(axis=1) >= active)
    expected = oracle.log_density(family, oracle.blocks_of(family, theta), X[:, None], y)
    assert np.allclose(density, expected, rtol=1e-10)


def test_equal_scores_of_a_softmax_top_gate_share():
    family = moestat.family("gaussian", gate="softmax-top", n_experts=3)
    blocks = {"beta0": [1.0, 1.0, 0.0], "beta1": np.zeros((3, 1)), "a": np.zeros((3, 1))}
    theta = family.pack({**blocks, "b": [0.0, 5.0, 9.0], "nu": np.ones(3)})
    assert np.allclose(family.gate_probabilities(theta, [0.0]), [[0.5, 0.5, 0.0]])


def test_a_scale_is_held_whether_its_representative_is_known_or_free():
    known = moestat.family("gaussian", gate="dense-to-sparse", n_experts=2)
    free = moestat.family("gaussian", gate="dense-to-sparse", n_experts=2, bounds={"tau": (0.1, 9)})
    assert known.n_free_params == free.n_free_params == 8


def _boxed():
    likelihoods = [*LIKELIHOODS, {"name": "binomial", "trials": 5}, {"name": "student-t", "dof": 4}]
    found = [(each, "softmax") for each in likelihoods if each != "least-squares"]
    found += [("gaussian", name) for name in GATES if name != "hierarchical"]
    return found + [("least-squares", name) for name in GATES if name != "hierarchical"]


@pytest.mark.parametrize(("likelihood", "gate"), _boxed(), ids=str)
def test_the_box_of_a_family_is_one_that_families_take(likelihood, gate):
    """Also where an option or the gate says what a block is; bounds release that of a gate."""
    try:
        given = moestat.family(likelihood, gate=gate, n_experts=2)
    except ValueError:
        pytest.skip("the two do not go together")
    again = moestat.family(likelihood, gate=gate, n_experts=2, bounds=given.box)
    assert again.box == given.box
    for name in given.likelihood.set_by_options.intersection(given.blocks):
        with pytest.raises(ValueError, match=f"bounds: '{name}' is known, [0-9]+, got"):
            moestat.family(likelihood, gate=gate, n_experts=2, bounds={name: (1, 9)})
