"""Distances of regression functions and best approximations."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from experiments.attention.approximation import best_approximations
from moestat.estimation.starts import TruthStarts
from moestat.metrics.distances import regression_error

CUBE = moestat.Uniform(-1, 1)
LINEAR = {"name": "polynomial", "degree": 1}


def family_of(k, d, gate="sigmoid-quadratic"):
    return moestat.family("least-squares", gate=gate, expert=LINEAR, n_experts=k, n_features=d)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_regression_error_is_the_l2_distance(d):
    one, two = family_of(2, d), family_of(3, d, "softmax-quadratic")
    rng = np.random.default_rng(d)
    theta, truth = rng.normal(size=one.n_params), rng.normal(size=two.n_params)
    found = regression_error(one, theta, two, truth, CUBE)
    X = rng.uniform(-1, 1, size=(400_000, d))
    squares = (one.mean(theta, X) - two.mean(truth, X)) ** 2
    spread = squares.std() / np.sqrt(len(squares)) / (2 * found.value)
    assert abs(np.sqrt(squares.mean()) - found.value) < 4 * (spread + found.error)
    assert found.error < (1e-10 if d < 3 else 0.05 * found.value)
    assert regression_error(one, theta, one, theta, CUBE).value == 0.0


def test_known_distance():
    line = moestat.family("least-squares", gate="softmax", n_experts=1)
    assert regression_error(line, [0, 0, 0, 2], line, [0, 0, 0, 0], CUBE).value == pytest.approx(
        np.sqrt(4 / 3), rel=1e-12
    )


def test_distances_of_densities_refuse_regression_functions():
    line = moestat.family("least-squares", gate="softmax", n_experts=1)
    with pytest.raises(ValueError, match="density"):
        moestat.hellinger(line, np.zeros(4), line, np.zeros(4))


def test_more_atoms_than_the_truth_approximate_it_exactly():
    """Contrary to the paper's Sec. 3 there is no misfit in the dense regime, and no one point."""
    true_family = family_of(2, 1)
    truth = np.random.default_rng(3).normal(size=true_family.n_params)
    starts = [TruthStarts(true_family, truth, 1, 0.2) for _ in range(3)]
    found = best_approximations(
        true_family.with_experts(3), true_family, truth, CUBE, n=800, starts=starts, rng=1
    )
    assert [one.error for one in found] == sorted(one.error for one in found)
    assert found[0].error < 1e-5
    assert found[0].gap == 0.0
    near = [one for one in found if one.error < 1e-4]
    assert len(near) > 1
    assert max(one.gap for one in near) > 0.1
