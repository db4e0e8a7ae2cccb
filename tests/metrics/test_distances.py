import numpy as np
import pytest
from scipy import integrate
from scipy.special import erf, ndtr

from moestat import Uniform, expected_information, family
from moestat.metrics import at_truth
from moestat.metrics.distances import Distance, _absolute_integrals, hellinger, total_variation
from moestat.metrics.expert_errors import expert_errors
from moestat.metrics.panels import ORDER
from moestat.model.likelihoods import LIKELIHOODS
from tests import oracle
from tests.kinds import KINDS, kind_id, make, random_theta


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


def normal(mean, variance, slope=0.0):
    F = family("gaussian", gate="competition", n_experts=1)
    return F, F.pack({"a": [slope], "b": [mean], "nu": [variance]})


@pytest.mark.parametrize(
    ("first", "second"),
    [((0, 1), (1, 1)), ((0, 1), (0, 4)), ((-2, 0.3), (1.5, 2)), ((0, 1), (0.5, 1e-6))],
)
def test_two_normal_densities(first, second):
    (m1, v1), (m2, v2) = first, second
    affinity = np.sqrt(2 * np.sqrt(v1 * v2) / (v1 + v2)) * np.exp(-((m1 - m2) ** 2) / 4 / (v1 + v2))
    found = hellinger(*normal(*first), *normal(*second))
    assert found.value == pytest.approx(np.sqrt(1 - affinity), rel=1e-11)
    assert found.error < 1e-9
    # The log-ratio is quadratic; the sets where it is positive have normal masses.
    roots = np.roots(
        [1 / v2 - 1 / v1, 2 * (m1 / v1 - m2 / v2), m2**2 / v2 - m1**2 / v1 - np.log(v1 / v2)]
    )
    edges = np.concatenate([[-np.inf], np.sort(roots), [np.inf]])
    gaps = np.diff(ndtr((edges - m1) / np.sqrt(v1))) - np.diff(ndtr((edges - m2) / np.sqrt(v2)))
    found = total_variation(*normal(*first), *normal(*second))
    assert found.value == pytest.approx(0.5 * np.abs(gaps).sum(), rel=1e-10)
    assert found.error < 1e-7


@pytest.mark.parametrize("shift", [1e-1, 1e-3, 1e-5, 1e-7, 1e-9])
def test_small_distances_keep_their_digits(shift):
    pair = *normal(0.0, 1.0), *normal(shift, 1.0)
    accuracy = 1e-11 + 1e-15 / shift
    exact = np.sqrt(-np.expm1(-(shift**2) / 8))
    assert hellinger(*pair).value == pytest.approx(exact, rel=accuracy)
    assert total_variation(*pair).value == pytest.approx(erf(shift / np.sqrt(8)), rel=accuracy)


def test_the_mean_over_the_inputs():
    pair = *normal(0.0, 1.0), *normal(0.0, 1.0, slope=2.0)
    x = (np.arange(200_000) + 0.5) / 50_000 - 1
    design = Uniform(-1, 3)
    exact = np.sqrt(-np.expm1(-((2 * x) ** 2) / 8)).mean()
    found = hellinger(*pair, design)
    assert found.value == pytest.approx(exact, rel=1e-6)
    assert abs(found.value - exact) < 2 * found.error + 1e-9
    exact = erf(np.abs(2 * x) / np.sqrt(8)).mean()
    assert total_variation(*pair, design).value == pytest.approx(exact, rel=1e-6)


def brute_continuous(F, theta, G, truth, design):
    """Both distances by adaptive quadrature of the formulas, input by input."""
    nodes, weights = design.quadrature(1, 4)
    values = []
    for x in nodes[0]:
        X = np.array([[x]])

        def density(y, family, vector, X=X):
            blocks = oracle.blocks_of(family, vector)
            return np.exp(oracle.log_density(family, blocks, X, np.array([y])))[0]

        def squared(y, density=density):
            return 0.5 * (np.sqrt(density(y, F, theta)) - np.sqrt(density(y, G, truth))) ** 2

        def absolute(y, density=density):
            return 0.5 * abs(density(y, F, theta) - density(y, G, truth))

        means = np.concatenate(
            [
                oracle.predictors(f, oracle.blocks_of(f, v), X).ravel()
                for f, v in ((F, theta), (G, truth))
            ]
        )
        cuts = np.sort(means)
        ends = (cuts[0] - 30, cuts[-1] + 30)
        squares, modulus = (
            integrate.quad(f, *ends, points=cuts, epsabs=1e-12, epsrel=1e-10, limit=400)[0]
            for f in (squared, absolute)
        )
        values.append((np.sqrt(squares), modulus))
    return weights @ np.array(values)


class Nodes:
    """A few inputs with the weights of a rule."""

    name = "nodes"

    def __init__(self, nodes, weights):
        self.nodes, self.weights = nodes, weights

    def quadrature(self, n_features, n_nodes):
        return self.nodes, self.weights

    def draw(self, n, n_features, rng):
        return self.nodes


@pytest.mark.parametrize(
    ("gate", "expert"),
    [
        # Gates of both sorts; what the others change is tested without distances.
        ("softmax", "linear"),
        ({"name": "competition-top", "active": 2}, "linear"),
        pytest.param("sigmoid", "linear", marks=pytest.mark.slow),
        pytest.param("competition-free", "linear", marks=pytest.mark.slow),
        pytest.param("softmax", {"name": "polynomial", "degree": 2}, marks=pytest.mark.slow),
    ],
)
def test_mixtures_match_adaptive_quadrature(gate, expert):
    rng = np.random.default_rng(3)
    F = family("gaussian", gate=gate, expert=expert, n_experts=3)
    G = family("gaussian", gate="competition", n_experts=2)
    theta, truth = random_theta(F, rng), random_theta(G, rng)
    expected = brute_continuous(F, theta, G, truth, Uniform(-2, 2))
    few = Nodes(*Uniform(-2, 2).quadrature(1, 4))
    assert hellinger(F, theta, G, truth, few).value == pytest.approx(expected[0], rel=1e-8)
    assert total_variation(F, theta, G, truth, few).value == pytest.approx(expected[1], rel=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[0] == "gaussian"], ids=kind_id)
def test_inequalities_and_invariances_of_continuous_families(kind):
    rng = np.random.default_rng(7)
    F = make(kind, 3, 1)
    theta, truth = random_theta(F, rng), random_theta(F, rng)
    design = Uniform(-2, 2)
    hell, tv = (f(F, theta, F, truth, design, 8).value for f in (hellinger, total_variation))
    assert 0 < hell**2 <= tv <= np.sqrt(2) * hell
    assert tv <= 1
    assert hellinger(F, truth, F, theta, design, 8).value == pytest.approx(hell, rel=1e-12)
    assert hellinger(F, theta, F, theta, design, 8) == Distance(0.0, 0.0)
    assert total_variation(F, theta, F, theta, design, 8) == Distance(0.0, 0.0)
    atoms, shared = F.split(theta)
    moved = F.join(atoms[[2, 0, 1]], shared)
    for name in F.gate.translations:
        moved[F.blocks[name]] += rng.normal(size=F.blocks[name].shape[1:])
    assert hellinger(F, moved, F, truth, design, 8).value == pytest.approx(hell, rel=1e-10)
    assert total_variation(F, moved, F, truth, design, 8).value == pytest.approx(tv, rel=1e-10)
    assert total_variation(F, moved, F, theta, design, 8).value < 1e-14


@pytest.mark.parametrize("gap", [1.0, 1e-2, 1e-5])
def test_the_default_rules_suffice_where_gates_are_smooth(gap):
    F, G = (family("gaussian", gate="softmax", n_experts=k) for k in (3, 2))
    parts = {"beta0": [0.3, 0], "beta1": [1, 0], "a": [2, -1.5], "b": [1, -1], "nu": [0.25, 0.16]}
    double = {name: [values[0], *values] for name, values in parts.items()}
    truth = G.pack(parts)
    theta = F.pack(double) + gap * np.random.default_rng(0).normal(size=F.n_params)
    # Two copies of the first atom share its mass.
    theta[F.blocks["beta0"][:2]] -= np.log(2.0)
    for function, accuracy in ((hellinger, 1e-6), (total_variation, 3e-5)):
        found = function(F, theta, G, truth, Uniform(-2, 2))
        best = function(F, theta, G, truth, Uniform(-2, 2), 1024)
        assert found.value == pytest.approx(best.value, rel=accuracy)
        assert abs(found.value - best.value) <= 5 * found.error
        assert found.error < 5 * accuracy * found.value


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_slivers_between_the_switches_of_sparse_gates_count(gap):
    """|2 x - 1| and |x + 1| meet at 0 and 2; means 1 + gap switch a little beside it."""
    F = family("gaussian", gate={"name": "competition-top", "active": 1}, n_experts=2)
    parts = {"a": [2.0, 1.0], "b": [-1.0, 1.0], "nu": [0.01, 0.01]}
    truth = F.pack(parts)
    other = F.pack({**parts, "b": [-1.0, 1.0 + gap]})
    found = hellinger(F, other, F, truth, Uniform(-3, 1))
    # Left of 0 the first atom leads under both, right of 0 the second; between their switches
    # at 0 and -gap / 3 the densities have the means -1 and 1, twenty deviations apart.
    near = np.sqrt(-np.expm1(-(gap**2) / 0.08))
    assert found.value == pytest.approx((near + gap / 3) / 4, rel=1e-3 * gap / 1e-2 + 1e-7)
    assert found.error < 1e-6 * found.value


@pytest.mark.parametrize("d", [2, 3])
def test_several_inputs_of_continuous_families(d):
    rng = np.random.default_rng(d)
    F = family("gaussian", gate="competition", n_experts=2, n_features=d)
    theta, truth = random_theta(F, rng), random_theta(F, rng)
    found = hellinger(F, theta, F, truth)
    X = rng.uniform(size=(d, 20_000))
    drawn = Nodes(X, np.full(20_000, 1 / 20_000))
    dense = hellinger(F, theta, F, truth, drawn, 20_000).value
    deviation = 0.5 / np.sqrt(5_000)  # of a variable in [0, 1] at most
    assert abs(dense - found.value) < 4 * deviation
    if d == 2:
        assert found.error < 1e-9
    else:
        assert 1e-5 < found.error < deviation
        assert hellinger(F, theta, F, truth) == found


def test_families_must_agree_in_having_classes():
    F, theta = normal(0, 1)
    G = family("multinomial", n_experts=1)
    for function in (hellinger, total_variation):
        with pytest.raises(ValueError, match="truth_family must have the inputs and classes"):
            function(F, theta, G, np.zeros(G.n_params))


def test_modulus_is_integrated_past_changes_of_sign():
    unit, mass = np.polynomial.legendre.leggauss(ORDER)
    roots = np.array([[-0.999, 0.3], [-0.2, 0.25], [0.4, 0.9995], [-3.0, 5.0], [-2.0, 0.0]])
    values = (unit - roots[:, :1]) * (unit - roots[:, 1:])
    exact = [
        integrate.quad(lambda t, a=a, b=b: abs((t - a) * (t - b)), -1, 1, points=[a, b])[0]
        if max(abs(a), abs(b)) < 1
        else integrate.quad(lambda t, a=a, b=b: abs((t - a) * (t - b)), -1, 1, points=[0])[0]
        for a, b in roots
    ]
    weight = np.tile(3.0 * mass, (len(roots), 1))
    assert _absolute_integrals(values, weight) == pytest.approx(3 * np.array(exact), rel=1e-12)
    assert _absolute_integrals(-values, weight) == pytest.approx(3 * np.array(exact), rel=1e-12)
    assert _absolute_integrals(0.0 * values, weight).tolist() == [0.0] * 5


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[0] == "gaussian"], ids=kind_id)
def test_expert_errors_of_means(kind):
    rng = np.random.default_rng(8)
    F, G = make(kind, 3, 1), make(kind, 2, 1)
    theta, truth = random_theta(F, rng), random_theta(G, rng)
    grid = np.linspace(-1, 2, 201)[:, None]
    fitted, true = (
        oracle.predictors(f, oracle.blocks_of(f, v), grid) for f, v in ((F, theta), (G, truth))
    )
    errors = [np.abs(fitted[i] - true[j]).max() for i, j in enumerate((1, 1, 0))]
    found = expert_errors(F, theta, G, truth, [1, 1, 0], Uniform(-1, 2))
    assert found == pytest.approx([errors[2], max(errors[:2])], rel=1e-12)
    assert np.isnan(expert_errors(F, theta, G, truth, [1, 1, 1])[0])


def test_expert_errors_of_means_are_in_units_of_y():
    F = family("gaussian", gate="softmax", n_experts=2, n_features=2)
    theta, truth = np.random.default_rng(9).normal(size=(2, F.n_params))
    scaled = []
    for vector in (theta, truth):
        moved = vector.copy()
        for name in ("a", "b"):
            moved[F.blocks[name]] *= 10
        scaled.append(moved)
    found = expert_errors(F, theta, F, truth, [0, 1])
    assert expert_errors(F, scaled[0], F, scaled[1], [0, 1]) == pytest.approx(10 * found)
    # Means are linear, so that the corners come close to the supremum.
    other = theta.copy()
    other[F.blocks["a"][0]] += [1.0, -2.0]
    assert expert_errors(F, other, F, theta, [0, 1]) == pytest.approx([2, 0], rel=0.02, abs=1e-14)


COUNTS = [name for name, law in LIKELIHOODS.items() if law.counts]


@pytest.mark.parametrize("name", COUNTS)
def test_distances_of_counts_are_sums_over_counts(name):
    F, x = family(name, gate="softmax", n_experts=2), np.array([[0.0], [2.0]])
    counts = range(int(F.likelihood.ends[0] == 0.0), 400)

    def masses(theta):
        assert F.likelihood.law is not None
        law = F.likelihood.law(F.predictors(theta, x.T))
        below = [law.cdf(np.full((2, 2), y - 1.0)) for y in (*counts, counts[-1] + 1)]
        of_experts = np.diff(below, axis=0)
        return np.einsum("ykn,kn->ny", of_experts, F.gate_probabilities(theta, x).T)

    theta, truth = F.typical(0), F.typical(1)
    table = np.array([0.25, 0.75]) @ np.transpose(pointwise(masses(theta), masses(truth)))
    for function, value in zip((hellinger, total_variation), table, strict=True):
        found = function(F, theta, F, truth, TwoPoint())
        assert found.value == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("name", ["gaussian", "log-normal", "weibull", "exponential", "poisson"])
def test_a_family_of_censored_responses_has_the_distances_and_information_of_known_ones(name):
    plain = family(name, gate="softmax", n_experts=2)
    bounds = family({"name": name, "censored": True}, gate="softmax", n_experts=2)
    theta, truth = plain.typical(0), plain.typical(1)
    for function in (hellinger, total_variation):
        known = function(plain, theta, plain, truth).value
        for first, second in ((bounds, bounds), (bounds, plain), (plain, bounds)):
            found = function(first, theta, second, truth).value
            assert found == pytest.approx(known, rel=1e-9)
    np.testing.assert_allclose(
        expected_information(bounds, theta), expected_information(plain, theta), rtol=1e-8
    )


def test_what_was_compared_before_changes_nothing(pair):
    """Values of a truth are kept: other truths, inputs and families have their own."""
    F, theta, G, truth = pair
    calls = [
        (F, theta, G, truth, Uniform(0, 1)),
        (F, theta, G, 0.5 * truth, Uniform(0, 1)),
        (F, theta, F, 0.5 * theta, Uniform(0, 1)),
        (F, theta, F, 0.5 * theta, Uniform(0, 2)),
    ]
    nearest = np.zeros(F.n_experts, dtype=np.int64)

    def values():
        return [
            (total_variation(*call), expert_errors(*call[:4], nearest, call[4])[0])
            for call in calls
        ]

    at_truth._kept.cache_clear()
    first = values()
    again = [(one[0], one[1]) for _ in range(2) for one in values()]
    assert again == [*first, *first]
    assert len({value for value, _ in first}) == len({error for _, error in first}) == 4
