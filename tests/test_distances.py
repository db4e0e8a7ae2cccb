import numpy as np
import pytest

from moestat import Uniform, family
from moestat.distances import Distance, expert_errors, hellinger, total_variation


def pointwise(p, q):
    hell = np.sqrt(0.5 * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2, axis=1))
    return hell, 0.5 * np.sum(np.abs(p - q), axis=1)


@pytest.fixture
def pair():
    rng = np.random.default_rng(4)
    F = family("multinomial", gate="sigmoid", n_experts=3, n_classes=3)
    G = family("multinomial", gate="softmax", n_experts=2, n_classes=3)
    return F, 3 * rng.normal(size=F.n_params), G, 3 * rng.normal(size=G.n_params)


@pytest.mark.parametrize("design", [None, Uniform(-4, 3)])
def test_one_input_matches_a_dense_mean(pair, design):
    F, theta, G, truth = pair
    low, high = (0, 1) if design is None else (design.low, design.high)
    x = low + (high - low) * (np.arange(200_000) + 0.5) / 200_000
    dense = [v.mean() for v in pointwise(F.probabilities(theta, x), G.probabilities(truth, x))]
    for function, expected in zip((hellinger, total_variation), dense, strict=True):
        distance = function(F, theta, G, truth, design)
        assert distance.value == pytest.approx(expected, rel=1e-5)
        assert distance.error < 1e-5
        assert float(distance) == distance.value > 0.01


def test_two_inputs_match_a_dense_mean():
    rng = np.random.default_rng(1)
    F = family("multinomial", gate="sigmoid", n_experts=2, n_features=2)
    theta, truth = 2 * rng.normal(size=(2, F.n_params))
    line = (np.arange(600) + 0.5) / 600
    X = np.stack([axis.ravel() for axis in np.meshgrid(line, line)], axis=1)
    dense = [v.mean() for v in pointwise(F.probabilities(theta, X), F.probabilities(truth, X))]
    for function, expected in zip((hellinger, total_variation), dense, strict=True):
        distance = function(F, theta, F, truth)
        assert distance.value == pytest.approx(expected, rel=1e-4)
        assert distance.error < 1e-4


def test_many_inputs_by_monte_carlo():
    rng = np.random.default_rng(2)
    F = family("multinomial", gate="softmax", n_experts=2, n_features=4)
    theta, truth = rng.normal(size=(2, F.n_params))
    X = rng.uniform(size=(400_000, 4))
    dense = pointwise(F.probabilities(theta, X), F.probabilities(truth, X))[0].mean()
    distance = hellinger(F, theta, F, truth)
    assert 0 < distance.error < 0.01
    assert abs(distance.value - dense) < 4 * distance.error
    assert hellinger(F, theta, F, truth) == distance
    assert hellinger(F, theta, F, truth, n_nodes=200).error > 3 * distance.error


def test_the_error_is_of_the_size_of_the_error(pair):
    F, theta, G, truth = pair
    best = total_variation(F, theta, G, truth, Uniform(-4, 3), n_nodes=4096).value
    rough = total_variation(F, theta, G, truth, Uniform(-4, 3), n_nodes=8)
    assert abs(rough.value - best) <= rough.error
    assert 1e-6 < rough.error < 0.1


def test_a_steep_gate_is_resolved():
    F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    truth = F.pack({"beta0": [-12.3, 0], "beta1": [30, 0], "a": [[0], [0]], "b": [[9], [-9]]})
    other = F.pack({"beta0": [-11.7, 0], "beta1": [30, 0], "a": [[0], [0]], "b": [[9], [-9]]})
    x = (np.arange(400_000) + 0.5) / 400_000
    dense = pointwise(F.probabilities(other, x), F.probabilities(truth, x))[1].mean()
    assert total_variation(F, other, F, truth).value == pytest.approx(dense, rel=1e-7)


def test_closed_form_of_a_constant_density():
    F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    p, q = 1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(2.0))
    first, second = [0, 0, 1, 0], [0, 0, -2, 0]
    assert total_variation(F, first, F, second).value == pytest.approx(abs(p - q))
    squared = 1 - np.sqrt(p * q) - np.sqrt((1 - p) * (1 - q))
    assert hellinger(F, first, F, second).value == pytest.approx(np.sqrt(squared))


@pytest.mark.parametrize("seed", range(8))
def test_inequalities_and_symmetry(seed):
    rng = np.random.default_rng(seed)
    F = family("multinomial", gate="sigmoid", n_experts=2, n_classes=4)
    theta, truth = rng.normal(scale=2, size=(2, F.n_params))
    hell, tv = hellinger(F, theta, F, truth).value, total_variation(F, theta, F, truth).value
    assert 0 < hell**2 <= tv <= np.sqrt(2) * hell
    assert tv <= 1
    assert hellinger(F, truth, F, theta).value == pytest.approx(hell, rel=1e-12)


def test_zero_between_equal_densities():
    F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    theta = np.array([1.0, 2, 0.5, -1, 0, 0, 0.25, 3])
    assert hellinger(F, theta, F, theta) == Distance(0.0, 0.0)
    shifted = theta + np.array([7.0, 3, 0, 0, 7, 3, 0, 0])
    assert hellinger(F, shifted, F, theta).value < 1e-7
    assert total_variation(F, shifted, F, theta).value < 1e-14


class TwoPoint:
    name = "two-point"

    def quadrature(self, n_features, n_nodes):
        return np.array([[0.0, 2.0]]), np.array([0.25, 0.75])

    def draw(self, n, n_features, rng):
        return 2.0 * (rng.random((n_features, n)) < 0.75)


def test_a_design_of_ones_own():
    F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    theta, truth = np.array([0.0, 0, 0, 1]), np.zeros(4)
    distance = total_variation(F, theta, F, truth, TwoPoint())
    assert distance.value == pytest.approx(0.75 * (1 / (1 + np.exp(-2.0)) - 0.5))
    assert distance.error == 0


def test_wrong_inputs(pair):
    F, theta, _, _ = pair
    other = family("multinomial", n_experts=3, n_classes=4)
    with pytest.raises(ValueError, match="truth_family must have the inputs and classes"):
        hellinger(F, theta, other, np.zeros(other.n_params))
    with pytest.raises(ValueError, match=r"truth_theta must have shape"):
        hellinger(F, theta, F, theta[:-1])
    with pytest.raises(ValueError, match="theta holds 1 NaN"):
        total_variation(F, np.where(np.arange(theta.size) == 0, np.nan, theta), F, theta)
    with pytest.raises(ValueError, match="n_nodes must be an integer >= 2"):
        hellinger(F, theta, F, theta, n_nodes=1)


def brute_expert_errors(F, theta, G, truth, assignment, X):
    """The definition, atom by atom and input by input."""

    def density(family, vector, i, x):
        blocks = family.unpack(vector)
        scores = np.append(blocks["a"][i] @ x + blocks["b"][i], 0.0)
        return np.exp(scores - scores.max()) / np.sum(np.exp(scores - scores.max()))

    errors = np.full(G.n_experts, np.nan)
    for i, j in enumerate(assignment):
        for x in X:
            gap = np.max(np.abs(density(F, theta, i, x) - density(G, truth, j, x)))
            errors[j] = np.fmax(errors[j], gap)
    return errors


@pytest.mark.parametrize("design", [None, Uniform(-4, 3)])
def test_expert_errors_with_one_input(pair, design):
    F, theta, G, truth = pair
    low, high = (0, 1) if design is None else (design.low, design.high)
    for assignment in ([0, 1, 1], [1, 0, 0], [1, 1, 1]):
        found = expert_errors(F, theta, G, truth, assignment, design)
        grid = np.linspace(low, high, 201)[:, None]
        expected = brute_expert_errors(F, theta, G, truth, assignment, grid)
        assert found == pytest.approx(expected, abs=1e-13, nan_ok=True)
        assert np.isnan(found).tolist() == [j not in assignment for j in range(2)]
        assert np.all(found[np.isfinite(found)] > 1e-3)


def test_expert_errors_with_several_inputs():
    rng = np.random.default_rng(6)
    F = family("multinomial", gate="sigmoid-inner", n_experts=3, n_features=3, n_classes=3)
    G = family("multinomial", gate="sigmoid-euclidean", n_experts=2, n_features=3, n_classes=3)
    theta, truth = rng.normal(size=F.n_params), rng.normal(size=G.n_params)
    theta[-1] = truth[-1] = 0.5
    found = expert_errors(F, theta, G, truth, [1, 0, 1])
    # Predictors are linear, so that the corners of the cube come close to the supremum.
    corners = np.stack([axis.ravel() for axis in np.meshgrid(*[[0.0, 1.0]] * 3)], axis=1)
    inner = rng.uniform(size=(300, 3))
    at_corners, inside = (
        brute_expert_errors(F, theta, G, truth, [1, 0, 1], X)
        for X in (np.vstack([corners, inner]), inner)
    )
    assert np.all(found > 0.95 * inside)
    assert np.all(found < 1.02 * at_corners)
    assert expert_errors(F, theta, G, truth, [1, 0, 1]).tolist() == found.tolist()
    assert np.all(expert_errors(F, theta, G, truth, [1, 0, 1], n_nodes=2) <= found)


def test_expert_errors_do_not_see_the_gate():
    F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    truth = np.array([0.3, 5.0, 1, 2, 0, 0, -1, 0.5])
    other = truth + np.array([2.0, -9, 0, 0, 0, 0, 0, 0])
    assert expert_errors(F, other, F, truth, [0, 1]) == pytest.approx([0, 0], abs=1e-15)
    assert expert_errors(F, truth, F, truth, [1, 0]).min() > 0.1


def test_expert_errors_reach_the_ends_of_the_interval():
    # sigma(1 + x) - sigma(1) is largest at x = 2, an end that no inner rule would hit.
    F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    found = expert_errors(F, [0, 0, 1, 1], F, [0, 0, 1, 0], [0], Uniform(-0.5, 2), n_nodes=2)
    assert found == pytest.approx([1 / (1 + np.exp(-3.0)) - 1 / (1 + np.exp(-1.0))], rel=1e-12)


def test_expert_errors_of_a_design_of_ones_own():
    F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    found = expert_errors(F, [0, 0, 0, 1], F, np.zeros(4), [0], TwoPoint())
    assert found == pytest.approx([1 / (1 + np.exp(-2.0)) - 0.5])


@pytest.mark.parametrize(
    "assignment", [[0, 1], [0, 1, 2], [0, 1, -1], [0.0, 1.0, 1.0], [[0, 1, 1]], "011", None]
)
def test_wrong_assignments(pair, assignment):
    with pytest.raises(ValueError, match=r"a true atom in 0..1 for each of the 3 fitted atoms"):
        expert_errors(*pair, assignment)


def test_wrong_inputs_of_expert_errors(pair):
    F, theta, _, _ = pair
    other = family("multinomial", n_experts=3, n_features=2, n_classes=3)
    with pytest.raises(ValueError, match="truth_family must have the inputs and classes"):
        expert_errors(F, theta, other, np.zeros(other.n_params), [0, 0, 0])
    with pytest.raises(ValueError, match="theta holds 1 NaN"):
        expert_errors(F, np.where(theta == theta[0], np.nan, theta), F, theta, [0, 1, 2])
    with pytest.raises(ValueError, match="n_nodes must be an integer >= 2"):
        expert_errors(F, theta, F, theta, [0, 1, 2], n_nodes=1)
