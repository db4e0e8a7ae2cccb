import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moestat.base.registry import UnknownNameError
from moestat.metrics.losses import LOSSES, VoronoiLoss, make_loss, voronoi_loss, voronoi_terms
from moestat.metrics.losses._engine import _problem
from moestat.model.measure import MixingMeasure

SPECS = ["D1", "softmax-D1", "softmax-D2r", {"name": "softmax-D2r", "r": 1}]
TRANSLATED = SPECS[1:]


def measure(loss, masses, *blocks):
    names = [term.block for term in make_loss(loss).terms]
    return MixingMeasure(np.array(masses, dtype=float), dict(zip(names, blocks, strict=True)))


def random_measure(loss, rng, k, d=1, n_classes=2, spread=1.0):
    shapes = {
        "alpha": (k, d),
        "beta1": (k, d),
        "beta": (k,),
        "a": (k, n_classes - 1, d),
        "b": (k, n_classes - 1),
    }
    blocks = [spread * rng.normal(size=shapes[term.block]) for term in make_loss(loss).terms]
    return measure(loss, np.exp(rng.normal(size=k)), *blocks)


def relabelled(g, order):
    return MixingMeasure(g.masses[order], {name: x[order] for name, x in g.atoms.items()})


def moved(g, block, shift):
    return MixingMeasure(g.masses, {**g.atoms, block: g.atoms[block] + shift})


@pytest.fixture
def truth():
    # Two atoms, d = 2, K = 3: every kind of axis has length > 1.
    return measure(
        "D1",
        [1.0, 2.0],
        np.array([[0.0, 0.0], [10.0, 0.0]]),
        np.array([0.0, 5.0]),
        np.zeros((2, 2, 2)),
        np.zeros((2, 2)),
    )


def test_hand_computed_value_of_d1(truth):
    a = np.zeros((3, 2, 2))
    a[0] = [[0.3, 0.4], [0.6, 0.8]]  # norms 0.5 and 1 in a cell of one atom
    a[2, 1] = [0.6, 0.8]  # squared norm 1 in a cell of two
    b = np.array([[0.25, -0.5], [0.0, 0.0], [0.5, 0.0]])
    alpha = np.array([[3.0, 4.0], [10.0, 0.0], [10.0, 2.0]])
    fit = measure("D1", [0.5, 2.0, 0.5], alpha, np.array([-0.25, 5.0, 5.5]), a, b)
    terms = voronoi_terms(fit, truth)
    assert terms.assignment.tolist() == [0, 1, 1]
    assert terms.cell_sizes.tolist() == [1, 2]
    assert terms.mass_errors == pytest.approx([0.5, 0.5])
    assert terms.block_errors["alpha"] == pytest.approx([0.5 * 5.0, 0.5 * 4.0])
    assert terms.block_errors["beta"] == pytest.approx([0.5 * 0.25, 0.5 * 0.25])
    assert terms.block_errors["a"] == pytest.approx([0.5 * 1.5, 0.5 * 1.0])
    assert terms.block_errors["b"] == pytest.approx([0.5 * 0.75, 0.5 * 0.25])
    assert terms.value == pytest.approx(1.0 + 4.5 + 0.25 + 1.25 + 0.5)
    assert terms.translation == {}
    assert terms.empty_cells == 0


def test_hand_computed_coverage_and_empty_cell():
    true = measure("D1", [1, 1], np.array([[0.0], [10.0]]), *zeros(2))
    fit = measure("D1", [1, 1], np.array([[0.5], [-3.0]]), *zeros(2))
    terms = voronoi_terms(fit, true)
    assert terms.empty_cells == 1
    assert terms.cell_sizes.tolist() == [2, 0]
    assert terms.mass_errors == pytest.approx([1.0, 1.0])
    assert terms.value == pytest.approx(2.0 + 0.25 + 9.0)
    assert terms.coverage == pytest.approx(0.5 + 9.5)


def zeros(k):
    return np.zeros(k), np.zeros((k, 1, 1)), np.zeros((k, 1))


def test_empty_cell_keeps_the_value_but_not_the_coverage():
    # The loss cannot see how far an empty cell is; the coverage can.
    fit = measure("D1", [1.0, 1.0], np.array([[0.0], [0.1]]), *zeros(2))
    near, far = (
        voronoi_terms(fit, measure("D1", [1, 1], np.array([[0.0], [x]]), *zeros(2)))
        for x in (5.0, 50.0)
    )
    assert near.empty_cells == far.empty_cells == 1
    assert near.value == pytest.approx(far.value)
    assert far.coverage - near.coverage == pytest.approx(45.0)


@pytest.mark.parametrize("jitter", [0.0, 1e-16])
def test_ties_go_to_the_lowest_index(jitter):
    true = measure("D1", [1, 1, 1], np.array([[2.0], [0.0], [9.0]]), *zeros(3))
    fit = measure("D1", [1, 1, 1], np.array([[1.0 - jitter], [0.0], [9.0]]), *zeros(3))
    assert voronoi_terms(fit, true).assignment.tolist() == [0, 1, 2]


def test_cells_use_every_coordinate():
    true = measure("D1", [1, 1], np.array([[0.0], [1.0]]), np.array([0.0, 3.0]), *zeros(2)[1:])
    fit = measure("D1", [1, 1], np.array([[0.9], [0.1]]), np.array([0.0, 3.0]), *zeros(2)[1:])
    assert voronoi_terms(fit, true).assignment.tolist() == [0, 1]


def test_masses_are_scaled_not_minimised_over():
    # A far estimate is charged its distance; with a free scale its masses would shrink to 0.
    true = measure("D1", [1.0], np.array([[0.0]]), *zeros(1))
    fit = measure("D1", [7.0], np.array([[100.0]]), *zeros(1))
    assert voronoi_loss(fit, true) == pytest.approx(100.0)


def test_hand_computed_translation():
    # Exact cells, exponent 1: t is the weighted median of the differences 5, 5, 6.
    g = np.array([[0.0], [100.0], [200.0]])
    zero = (np.zeros((3, 1, 1)), np.zeros((3, 1)))
    true = measure("softmax-D1", [1, 1, 1], g, *zero)
    fit = measure("softmax-D1", [1, 1, 1], g + np.array([[5.0], [5.0], [6.0]]), *zero)
    terms = voronoi_terms(fit, true, "softmax-D1")
    assert terms.value == pytest.approx(1.0, abs=1e-8)
    assert terms.translation["beta1"] == pytest.approx([5.0], abs=1e-8)
    # Exponent 2 gives the mean instead: 1/9 + 1/9 + 4/9.
    squared = voronoi_terms(fit, true, "softmax-D2r")
    assert squared.value == pytest.approx(2.0 / 3.0, abs=1e-10)
    assert squared.translation["beta1"] == pytest.approx([16.0 / 3.0], abs=1e-8)


def test_order_r_is_the_exponent_of_every_cell():
    g = np.array([[0.0], [10.0]])
    true = measure("softmax-D2r", [1, 1], g, np.zeros((2, 1, 1)), np.zeros((2, 1)))
    fit = measure("softmax-D2r", [1, 1], g, np.zeros((2, 1, 1)), np.array([[3.0], [0.0]]))
    for r in (1, 2, 3.5, 40):
        assert voronoi_loss(fit, true, "softmax-D2r", r=r) == pytest.approx(3.0**r)
        table = {"name": "softmax-D2r", "r": r}
        assert voronoi_loss(fit, true, table) == pytest.approx(3.0**r)


@pytest.mark.parametrize("loss", SPECS)
@pytest.mark.parametrize("d", [1, 2])
def test_zero_at_the_truth_only(loss, d):
    rng = np.random.default_rng(3)
    true = random_measure(loss, rng, 3, d, n_classes=3)
    assert voronoi_loss(true, true, loss) == pytest.approx(0.0, abs=1e-8)
    # A split atom is the same measure.
    halves = relabelled(true, [0, 0, 1, 2])
    halves = MixingMeasure(halves.masses * [0.3, 0.7, 1, 1], halves.atoms)
    assert voronoi_loss(halves, true, loss) == pytest.approx(0.0, abs=1e-8)
    heavier = MixingMeasure(true.masses * [1.5, 1, 1], true.atoms)
    assert voronoi_loss(heavier, true, loss) > 1e-3
    for name, block in true.atoms.items():
        step = np.zeros_like(block)
        step[0] = 0.05
        changed = voronoi_loss(moved(true, name, step), true, loss)
        assert changed > 1e-5, name


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("loss", SPECS)
def test_one_true_atom(loss, k):
    rng = np.random.default_rng(k)
    fit, true = random_measure(loss, rng, k), random_measure(loss, rng, 1)
    terms = voronoi_terms(fit, true, loss)
    assert terms.assignment.tolist() == [0] * k
    assert terms.value > 0


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 5),
    true_k=st.integers(1, 3),
    d=st.integers(1, 3),
    loss=st.sampled_from(SPECS),
    shift=st.floats(-5, 5),
)
def test_invariances(seed, k, true_k, d, loss, shift):
    rng = np.random.default_rng(seed)
    fit, true = (random_measure(loss, rng, size, d, n_classes=3) for size in (k, true_k))
    terms = voronoi_terms(fit, true, loss)
    assert terms.value == pytest.approx(
        terms.mass_errors.sum() + sum(part.sum() for part in terms.block_errors.values())
    )
    assert terms.cell_sizes.sum() == k
    order = rng.permutation(k)
    again = voronoi_terms(relabelled(fit, order), true, loss)
    assert again.value == terms.value
    assert again.assignment.tolist() == terms.assignment[order].tolist()
    heavier = MixingMeasure(fit.masses * np.exp(shift), fit.atoms)
    assert voronoi_loss(heavier, true, loss) == pytest.approx(terms.value, rel=1e-8)
    for name in make_loss(loss).translated:
        step = 10 * shift * rng.normal(size=d)
        there = voronoi_terms(moved(fit, name, step), true, loss)
        assert there.value == pytest.approx(terms.value, rel=1e-8)


def test_sigmoid_loss_is_not_translated():
    rng = np.random.default_rng(0)
    true = random_measure("D1", rng, 2)
    assert voronoi_loss(moved(true, "alpha", 0.1), true) > 1e-2


@pytest.mark.parametrize("loss", TRANSLATED)
@pytest.mark.parametrize("seed", range(6))
def test_translation_beats_a_grid_in_one_dimension(loss, seed):
    rng = np.random.default_rng(seed)
    fit, true = random_measure(loss, rng, 4, spread=2), random_measure(loss, rng, 3, spread=2)
    problem = _problem(make_loss(loss), fit, true)
    low, high = problem.moving.min() - 1, problem.moving.max() + 1
    grid = np.linspace(low, high, 20001)[:, None]
    brute = problem.values(grid, problem.cells(grid)).min()
    found = voronoi_loss(fit, true, loss)
    assert found <= brute * (1 + 1e-9)
    assert found >= 0.99 * brute


@pytest.mark.parametrize("loss", TRANSLATED)
@pytest.mark.parametrize("noise", [0.05, 2.0])
def test_translation_matches_a_random_search_in_two_dimensions(loss, noise):
    # Near the truth the search is exact; far from it, jumps at cell walls cost up to 1%.
    for seed in range(4):
        rng = np.random.default_rng(seed)
        true = random_measure(loss, rng, 2, d=2, spread=2)
        fit = relabelled(true, [0, 0, 1])
        for name in fit.atoms:
            fit = moved(fit, name, noise * rng.normal(size=fit.atoms[name].shape))
        problem = _problem(make_loss(loss), fit, true)
        points = problem.moving.reshape(-1, 2)
        t = rng.uniform(points.min(0) - 0.5, points.max(0) + 0.5, size=(20000, 2))
        for width in (0.0, 0.3, 0.05, 0.005):
            t = np.vstack([t[:1], t[0] + width * rng.normal(size=(4000, 2))]) if width else t
            values = problem.values(t, problem.cells(t))
            t, brute = t[np.argmin(values)][None], values.min()
        found = voronoi_loss(fit, true, loss)
        assert found <= brute * (1.0 + (1e-9 if noise < 1 else 0.01))
        assert found >= 0.9 * brute


def test_value_is_attained_at_the_reported_translation():
    rng = np.random.default_rng(11)
    fit, true = (random_measure("softmax-D1", rng, k, d=2) for k in (4, 2))
    terms = voronoi_terms(fit, true, "softmax-D1")
    problem = _problem(make_loss("softmax-D1"), fit, true)
    t = terms.translation["beta1"][None]
    cells = problem.cells(t)
    assert cells[0].tolist() == terms.assignment.tolist()
    assert problem.values(t, cells)[0] == pytest.approx(terms.value, rel=1e-9)


def test_make_loss():
    assert make_loss("D1") is LOSSES["D1"]
    assert make_loss(LOSSES["D1"]) is LOSSES["D1"]
    assert (make_loss("D1").exact_exponent, make_loss("D1").over_exponent) == (1, 2)
    assert make_loss({"name": "softmax-D2r", "r": 3}).exact_exponent == 3
    assert make_loss("softmax-D2r").over_exponent == 2
    assert all(isinstance(loss, VoronoiLoss) and loss.source for loss in LOSSES.values())


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ({"name": "D1", "r": 2}, "takes no order r"),
        ({"name": "softmax-D2r", "r": 0.5}, r"r must be a number in \[1, inf\)"),
        ({"name": "softmax-D2r", "r": float("nan")}, "r must be"),
        ({"name": "softmax-D2r", "order": 2}, "does not take these options: order"),
        (
            {"name": "softmax-D2r", "f" * 3000: 2},
            r"does not take these options: f{77}\.\.\.; it takes none$",
        ),
        ({"r": 2}, "needs a name"),
    ],
)
def test_wrong_options(loss, message):
    with pytest.raises(ValueError, match=message):
        make_loss(loss)


def test_unknown_loss():
    with pytest.raises(UnknownNameError, match="unknown loss 'D9'; known: 'D1', 'softmax-D1'"):
        make_loss("D9")
    with pytest.raises(UnknownNameError):
        voronoi_loss(*[measure("D1", [1], np.zeros((1, 1)), *zeros(1))] * 2, "D9", r=2)


def test_wrong_measures(truth):
    rng = np.random.default_rng(0)
    softmax = random_measure("softmax-D1", rng, 2, d=2, n_classes=3)
    with pytest.raises(ValueError, match=r"needs the blocks beta1, a, b .*truth has alpha, beta"):
        voronoi_loss(softmax, truth, "softmax-D1")
    with pytest.raises(ValueError, match=r"'D1' needs the blocks alpha, beta, a, b .*estimate has"):
        voronoi_loss(softmax, truth)
    with pytest.raises(ValueError, match="estimate must be a MixingMeasure, got ndarray"):
        voronoi_loss(np.zeros(3), truth)
    other = random_measure("D1", rng, 2, d=1, n_classes=3)
    with pytest.raises(ValueError, match=r"block 'alpha' has shape \(2, 1\) in the estimate"):
        voronoi_loss(other, truth)
    flat = MixingMeasure(truth.masses, {**truth.atoms, "a": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="block 'a' must have 3 axes"):
        voronoi_loss(flat, flat)
    with pytest.raises(ValueError, match="takes no order r"):
        voronoi_loss(truth, truth, "D1", r=2)
