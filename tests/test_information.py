"""Expected information, and the null directions that the published truths have."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.gates import GATES
from moestat.information import expected_information, information_spectrum
from moestat.solvers._driver import Problem, Request, Sample
from tests.conftest import WIDE

PUBLISHED = {  # mlmoe (003), Tables 2 (softmax, sigmoid), 3 and 4; inputs uniform on [0, 1]
    "softmax": {
        "beta0": [0.2, -0.3],
        "beta1": [-1, 1],
        "a": [[0, -1], [0, 0]],
        "b": [[-1, 1], [0, 2]],
    },
    "sigmoid": {
        "gamma": [0.2, -0.3],
        "alpha": [-1, 1],
        "beta": [-0.5, 0.5],
        "a": [[0, -1], [0, 0]],
        "b": [[-1, 1], [0, 2]],
    },
    "sigmoid-inner": {
        "gamma": [0, 0],
        "alpha": [1, 1.001],
        "beta": [0, 0],
        "tau": 0.1,
        "a": [[0, 1.86], [0, 1.87]],
        "b": [[0, 0.963], [0, 0.964]],
    },
    "sigmoid-euclidean": {
        "gamma": [1, -1],
        "alpha": [-5, 5],
        "beta": [-0.5, 0.5],
        "tau": 2.0,
        "a": [[-1, 0], [1, 0]],
        "b": [[2, 0], [-1, 0]],
    },
}


def published(gate):
    family = moestat.family("multinomial", gate=gate, n_experts=2, n_classes=2)
    return family, family.pack(PUBLISHED[gate])


@pytest.mark.parametrize("gate", GATES)
def test_information_is_minus_the_expected_hessian(gate, truth):
    """Bartlett's identity: two different loops must agree, score by score and Hessian."""
    family, theta = truth(gate)
    products = expected_information(family, theta, WIDE, n_nodes=150)
    nodes, mass = WIDE.quadrature(1, 150)
    weight = (family.probabilities(theta, nodes.T) * mass[:, None]).T.ravel()
    data = Sample(np.tile(nodes, 2), np.repeat([0, 1], 150), weight)
    curvature = Problem(family, data).evaluate(Request("observed", theta)).hessian
    assert np.allclose(products, curvature, rtol=0, atol=1e-13 * np.abs(products).max() + 1e-15)


def test_published_sigmoid_truth_has_the_direction_that_its_opposite_scores_imply():
    """s2 = -s1, so sigma(-s) = exp(-s) sigma(s): (beta1 - e, beta2 + e, gamma1 + e) is free."""
    spectrum = information_spectrum(*published("sigmoid"))
    (direction,) = spectrum.null_directions
    assert direction.components == pytest.approx(
        {"gamma[0]": 1.0, "beta[0]": -1.0, "beta[1]": 1.0}, rel=1e-6
    )
    assert spectrum.gap > 1e6
    family, theta = published("sigmoid")
    moved = theta.copy()
    for name, step in direction.components.items():
        moved[family.param_names.index(name)] += 0.7 * round(step)
    X = np.linspace(0, 1, 11)
    assert np.allclose(
        family.probabilities(moved, X), family.probabilities(theta, X), rtol=0, atol=1e-14
    )


def test_inner_product_gate_has_its_ridge_and_nothing_else():
    spectrum = information_spectrum(*published("sigmoid-inner"))
    (direction,) = spectrum.null_directions
    moved = {"alpha[0,0]": 1.0, "alpha[1,0]": 1.001, "tau": 0.1}  # beta = 0 scales to itself
    scale = direction.components["tau"] / 0.1
    assert direction.components == pytest.approx(
        {name: scale * value for name, value in moved.items()}, rel=1e-6
    )


def test_published_euclidean_truth_has_two_free_directions():
    """alpha = -5 and 5 lie outside [0, 1]: |alpha - x| + beta sees alpha and beta as one."""
    spectrum = information_spectrum(*published("sigmoid-euclidean"))
    found = [direction.components for direction in spectrum.null_directions]
    assert len(found) == 2
    assert found[0] == pytest.approx({"alpha[0,0]": 1.0, "beta[0]": 1.0}, rel=1e-6)
    assert found[1] == pytest.approx({"alpha[1,0]": -1.0, "beta[1]": 1.0}, rel=1e-6)


def test_published_softmax_truth_is_identified_but_hardly():
    spectrum = information_spectrum(*published("softmax"))
    assert spectrum.null_directions == ()
    assert spectrum.condition > 1e8
    assert spectrum.sample_size(0.1) > 1e11


@pytest.mark.parametrize("gate", sorted(set(GATES) - {"sigmoid-inner"}))
def test_truths_of_these_tests_are_identified(gate, truth):
    spectrum = information_spectrum(*truth(gate), WIDE, n_nodes=300)
    assert spectrum.null_directions == ()
    assert spectrum.gap == np.inf


def test_bad_arguments_are_named(truth):
    family, theta = truth("softmax")
    with pytest.raises(ValueError, match="theta must have shape"):
        expected_information(family, theta[:-1])
    with pytest.raises(ValueError, match="tolerance must be a number"):
        information_spectrum(family, theta, tolerance=0.0)
    with pytest.raises(ValueError, match="n_nodes must be an integer"):
        information_spectrum(family, theta, n_nodes=0)
