"""Expected information, and the null directions that the published truths have."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.metrics.information import expected_information, information_spectrum
from moestat.solvers.problem import Objective, Problem, Request, Rows
from tests import oracle
from tests.conftest import WELL_CONDITIONED, WIDE
from tests.kinds import KINDS, kind_id, make, random_theta

PUBLISHED = {  # Pham et al. (2026), Tables 2 (softmax, sigmoid), 3 and 4; inputs uniform on [0, 1]
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


@pytest.mark.parametrize("gate", WELL_CONDITIONED)
def test_information_is_minus_the_expected_hessian(gate, truth):
    """Bartlett's identity: two different loops must agree, score by score and Hessian."""
    family, theta = truth(gate)
    products = expected_information(family, theta, WIDE, n_nodes=150)
    nodes, mass = WIDE.quadrature(1, 150)
    weight = (family.probabilities(theta, nodes.T) * mass[:, None]).T.ravel()
    data = Rows(np.tile(nodes, 2), np.repeat([0, 1], 150), weight)
    curvature = Problem(family, data).evaluate(Request(Objective.OBSERVED, theta)).hessian
    assert np.allclose(products, curvature, rtol=0, atol=1e-13 * np.abs(products).max() + 1e-15)


def test_published_sigmoid_truth_has_the_direction_that_its_opposite_scores_imply():
    """s2 = -s1, so sigma(-s) = exp(-s) sigma(s): (beta1 - e, beta2 + e, gamma1 + e) is free."""
    spectrum = information_spectrum(*published("sigmoid"))
    (direction,) = spectrum.null_directions
    assert direction.components == pytest.approx(
        {"gamma[1]": 1.0, "beta[1]": -1.0, "beta[2]": 1.0}, rel=1e-6
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
    moved = {"alpha[1,0]": 1.0, "alpha[2,0]": 1.001, "tau": 0.1}  # beta = 0 scales to itself
    scale = direction.components["tau"] / 0.1
    assert direction.components == pytest.approx(
        {name: scale * value for name, value in moved.items()}, rel=1e-6
    )


def test_published_euclidean_truth_has_two_free_directions():
    """alpha = -5 and 5 lie outside [0, 1]: |alpha - x| + beta sees alpha and beta as one."""
    spectrum = information_spectrum(*published("sigmoid-euclidean"))
    found = [direction.components for direction in spectrum.null_directions]
    assert len(found) == 2
    assert found[0] == pytest.approx({"alpha[1,0]": 1.0, "beta[1]": 1.0}, rel=1e-6)
    assert found[1] == pytest.approx({"alpha[2,0]": -1.0, "beta[2]": 1.0}, rel=1e-6)


def test_published_softmax_truth_is_identified_but_hardly():
    spectrum = information_spectrum(*published("softmax"))
    assert spectrum.null_directions == ()
    assert spectrum.condition > 1e8
    assert spectrum.sample_size(0.1) > 1e11


@pytest.mark.parametrize("gate", sorted(set(WELL_CONDITIONED) - {"sigmoid-inner"}))
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


def test_the_largest_singular_value_is_never_null():
    family = moestat.family("multinomial", gate="sigmoid", n_experts=1, n_classes=2)
    spectrum = information_spectrum(family, [0, 1, 1, 0, 0], tolerance=1.0)
    assert len(spectrum.null_directions) == len(spectrum.eigenvalues) - 1
    assert spectrum.gap >= 1.0


CONTINUOUS = [kind for kind in KINDS if kind[0] == "gaussian"]


def test_one_normal_expert():
    """``X'X / nu`` for the mean, 1/2 for the logarithm of the variance, nothing for the gate."""
    family = moestat.family("gaussian", gate="softmax", n_experts=1, n_features=2)
    theta = family.pack({"beta0": [1], "beta1": [[2, -1]], "b": [3], "a": [[1, -2]], "nu": [0.3]})
    found = expected_information(family, theta, moestat.Uniform(-1, 2), n_nodes=5)
    expected = np.zeros((7, 7))
    expected[3:6, 3:6] = np.array([[1, 0.5, 0.5], [0.5, 1, 0.25], [0.5, 0.25, 1]]) / 0.3
    expected[6, 6] = 0.5
    assert family.param_names[3:] == ["b[1]", "a[1,0]", "a[1,1]", "log nu[1]"]
    assert np.allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("kind", CONTINUOUS, ids=kind_id)
def test_information_is_the_mean_product_of_scores(kind):
    """Scores by complex step of the formula, at samples of the model."""
    family = make(kind, 2, 1)
    theta = random_theta(family, np.random.default_rng(3), 0.7)
    n = 20_000
    X, y = moestat.sample(family, theta, n, rng=5, design=WIDE)
    step, rows = 1e-30, np.empty((n, theta.size))
    for j in range(theta.size):
        moved = theta.astype(complex)
        moved[j] += 1j * step
        blocks = oracle.blocks_of(family, moved)
        rows[:, j] = oracle.log_density(family, blocks, X, y).imag / step
    products = rows[:, :, None] * rows[:, None, :]
    deviation = products.std(axis=0) / np.sqrt(n)
    gap = np.abs(products.mean(axis=0) - expected_information(family, theta, WIDE))
    assert np.all(gap <= 5 * deviation + 1e-10)


@pytest.mark.parametrize("kind", CONTINUOUS, ids=kind_id)
def test_continuous_information_is_minus_the_expected_hessian(kind):
    """Bartlett's identity again, with a rule of its own over y: equal steps of sd / 8."""
    family = make(kind, 2, 1)
    theta = random_theta(family, np.random.default_rng(6), 0.7)
    nodes, mass = WIDE.quadrature(1, 40)
    eta = family.predictors(theta, nodes)
    mean, deviation = family.likelihood.spread(eta)
    step = deviation.min() / 8
    inputs, responses, weights = [], [], []
    for t in range(40):
        low = (mean[:, t] - 10 * deviation[:, t]).min()
        y = np.arange(low, (mean[:, t] + 10 * deviation[:, t]).max(), step)
        x = np.full(y.size, nodes[0, t])
        inputs.append(x)
        responses.append(y)
        weights.append(mass[t] * step * np.exp(family.log_density(theta, x, y)))
    X, y, weight = (np.concatenate(parts) for parts in (inputs, responses, weights))
    assert weight.sum() == pytest.approx(1.0, rel=1e-12)
    data = Rows(X[None], y, weight)
    curvature = Problem(family, data).evaluate(Request(Objective.OBSERVED, theta)).hessian
    products = expected_information(family, theta, WIDE, n_nodes=40)
    assert np.allclose(products, curvature, rtol=0, atol=1e-9 * np.abs(products).max())


def test_one_expert_hides_its_gate_from_a_continuous_response_too():
    family = moestat.family("gaussian", gate="sigmoid", n_experts=1)
    spectrum = information_spectrum(family, np.array([0, 1, 1, 0.5, 2, -1.0]))
    found = [direction.components for direction in spectrum.null_directions]
    assert found == [{"beta[1]": 1.0}, {"alpha[1,0]": 1.0}]
    assert spectrum.identified.size == 3


@pytest.mark.parametrize("gate", ["competition", "competition-normalised"])
def test_copies_of_an_expert_move_against_each_other(gate):
    family = moestat.family("gaussian", gate=gate, n_experts=4)
    parts = {"b": [1, 1, -1, -1], "a": [2, 2, -1.5, -1.5], "nu": [0.25, 0.25, 0.16, 0.16]}
    spectrum = information_spectrum(family, family.pack(parts), moestat.Uniform(-2, 2))
    assert spectrum.gap > 1e6
    found = [direction.components for direction in spectrum.null_directions]
    expected = [
        {f"{name}[{first}{rest}": -1.0, f"{name}[{first + 1}{rest}": 1.0}
        for first in (1, 3)
        for name, rest in (("b", "]"), ("a", ",0]"), ("log nu", "]"))
    ]
    assert found == [pytest.approx(direction, rel=1e-6) for direction in expected]


def test_a_softmax_gate_on_copies_also_frees_the_split_of_mass():
    family = moestat.family("gaussian", gate="softmax", n_experts=3)
    parts = {
        "beta0": [0.3, 0.1, 0],
        "beta1": [1, 1, 0],
        "b": [1, 1, -1],
        "a": [2, 2, -1.5],
        "nu": [0.25, 0.25, 0.16],
    }
    spectrum = information_spectrum(family, family.pack(parts), moestat.Uniform(-2, 2))
    assert len(spectrum.null_directions) == 5
    named = {name for direction in spectrum.null_directions for name in direction.components}
    assert not any(name.endswith(("[3]", "[3,0]")) for name in named)


def test_chunks_of_rows_do_not_change_the_spectrum(monkeypatch):
    family = moestat.family("gaussian", gate="competition", n_experts=3)
    theta = random_theta(family, np.random.default_rng(2))
    whole = information_spectrum(family, theta, n_nodes=30)
    product = expected_information(family, theta, n_nodes=30)
    monkeypatch.setattr(moestat.metrics.panels, "_ROWS", 500)
    parts = information_spectrum(family, theta, n_nodes=30)
    assert parts.eigenvalues == pytest.approx(whole.eigenvalues, rel=1e-9)
    assert np.allclose(expected_information(family, theta, n_nodes=30), product, rtol=1e-12)


def test_information_of_a_regression_function_is_that_of_its_gradients():
    gelu = {"name": "activation", "activation": "gelu", "weighted": False}
    family = moestat.family(
        "least-squares", gate="softmax-quadratic", expert=gelu, n_experts=2, n_features=2
    )
    theta, square = random_theta(family, np.random.default_rng(5)), moestat.Uniform(-1, 1)
    nodes, mass = square.quadrature(2, 12)
    step = 1e-6 * np.eye(family.n_params)
    gradients = [family.mean(theta + h, nodes.T) - family.mean(theta - h, nodes.T) for h in step]
    rows = np.stack(gradients) / 2e-6
    found = expected_information(family, theta, square, 12, noise=0.25)
    np.testing.assert_allclose(found, (rows * mass / 0.25) @ rows.T, atol=1e-8)
    spectrum = information_spectrum(family, theta, square, n_nodes=12, noise=0.25)
    assert not spectrum.null_directions
    free = family.lower < family.upper
    expected = np.linalg.eigvalsh(found[np.ix_(free, free)])
    np.testing.assert_allclose(spectrum.eigenvalues, expected, rtol=1e-6, atol=1e-12)


def test_a_regression_function_that_ignores_its_gate_has_null_directions():
    family = moestat.family("least-squares", gate="softmax", n_experts=2)
    same = family.pack({"beta0": [0.3, 0], "beta1": [1, 0], "a": [2, 2], "b": [1, 1]})
    spectrum = information_spectrum(family, same, noise=1.0)
    named = {str(direction) for direction in spectrum.null_directions}
    assert named == {"+1 beta0[1]", "+1 beta1[1,0]"}


@pytest.mark.parametrize(
    ("noise", "message"),
    [(None, "noise: a least-squares family needs"), (0.0, r"noise must be a number in \(0")],
)
def test_information_of_a_regression_function_needs_its_noise(noise, message):
    family = moestat.family("least-squares", gate="softmax", n_experts=1)
    with pytest.raises(ValueError, match=message):
        expected_information(family, [0, 0, 1, 2], noise=noise)


def test_noise_belongs_to_regression_functions():
    family = moestat.family("gaussian", gate="softmax", n_experts=1)
    with pytest.raises(ValueError, match="the gaussian likelihood has its own, got 1"):
        information_spectrum(family, np.zeros(family.n_params), noise=1.0)
