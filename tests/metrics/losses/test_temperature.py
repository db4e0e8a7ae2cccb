import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moestat import family
from moestat.metrics.losses import (
    LOSSES,
    BlockTerm,
    VoronoiLoss,
    make_loss,
    voronoi_loss,
    voronoi_terms,
)
from moestat.metrics.losses._engine import _parts, scaled
from moestat.metrics.losses._scaling import Orbit, Scaling, matched
from moestat.model.gates import GATES
from moestat.model.measure import MixingMeasure

SCALED = ("alpha", "beta", "tau")
ALL = ["D2r", "D2r-orbit", "D2r-identified", "D3"]


def measure(masses, alpha, beta, tau, a=None, b=None):
    k = len(masses)
    return MixingMeasure(
        np.array(masses, dtype=float),
        {
            "alpha": np.array(alpha, dtype=float).reshape(k, -1),
            "beta": np.array(beta, dtype=float),
            "tau": np.full(k, float(tau)),
            "a": np.zeros((k, 1, 1)) if a is None else np.array(a, dtype=float),
            "b": np.zeros((k, 1)) if b is None else np.array(b, dtype=float),
        },
    )


def random_measure(rng, k, d=1, spread=1.0):
    return MixingMeasure(
        np.exp(rng.normal(size=k)),
        {
            "alpha": spread * rng.normal(size=(k, d)),
            "beta": spread * rng.normal(size=k),
            "tau": np.full(k, np.exp(rng.normal())),
            "a": spread * rng.normal(size=(k, 2, d)),
            "b": spread * rng.normal(size=(k, 2)),
        },
    )


def near(rng, truth, k, noise=0.1):
    """The truth with k atoms, noise, and another representative of its scale."""
    pick = np.arange(k) % truth.n_atoms
    atoms = {
        name: x[pick] + (0 if name == "tau" else noise * rng.normal(size=x[pick].shape))
        for name, x in truth.atoms.items()
    }
    return scaled(MixingMeasure(truth.masses[pick], atoms), SCALED, np.exp(rng.normal()))


@pytest.fixture
def pair():
    """Three fitted atoms, cells of one and of two; d = 2, K = 3, tau 1.5 against 1."""
    truth = measure(
        [1.0, 2.0], [[0, 0], [10, 0]], [0, 5], 1.0, np.zeros((2, 2, 2)), np.zeros((2, 2))
    )
    a = np.zeros((3, 2, 2))
    a[0] = [[0.3, 0.4], [0.6, 0.8]]  # norms 0.5 and 1
    a[2, 1] = [0.0, 2.0]
    b = [[0.25, -0.5], [0, 0], [0.5, 0]]
    fit = measure([0.5, 2.0, 0.5], [[3, 4], [10, 0], [10, 2]], [-0.25, 5, 5.5], 1.5, a, b)
    return fit, truth


def test_hand_computed_value_of_d3(pair):
    terms = voronoi_terms(*pair, "D3")
    assert terms.assignment.tolist() == [0, 1, 1]
    assert terms.mass_errors == pytest.approx([0.5, 0.5])
    assert terms.block_errors["alpha"] == pytest.approx([0.5 * 5.0, 0.5 * 4.0])
    assert terms.block_errors["beta"] == pytest.approx([0.5 * 0.25, 0.5 * 0.25])
    assert terms.block_errors["tau"] == pytest.approx([0.5 * 0.5, 2.5 * 0.25])
    assert terms.block_errors["a"] == pytest.approx([0.5 * 1.5, 0.5 * 4.0])
    assert terms.block_errors["b"] == pytest.approx([0.5 * 0.75, 0.5 * 0.25])
    assert terms.value == pytest.approx(1.0 + 4.5 + 0.25 + 0.875 + 2.75 + 0.5)
    assert (terms.scale, terms.translation) == (1.0, {})
    assert terms.loss is LOSSES["D3"]


@pytest.mark.parametrize("r", [1, 2, 3])
def test_hand_computed_value_of_d2r(pair, r):
    terms = voronoi_terms(*pair, "D2r", r=r)
    assert terms.block_errors["alpha"] == pytest.approx([0.5 * 5.0**r, 0.5 * 2.0**r])
    assert terms.block_errors["beta"] == pytest.approx([0.5 * 0.25**r, 0.5 * 0.5**r])
    assert terms.block_errors["tau"] == pytest.approx([0.5 * 0.5**r, 2.5 * 0.5**r])
    assert terms.block_errors["a"] == pytest.approx([0.5 * (0.5**r + 1.0), 0.5 * 2.0**r])
    assert terms.block_errors["b"] == pytest.approx([0.5 * (0.25**r + 0.5**r), 0.5 * 0.5**r])
    assert terms.scale == 1.0


def test_order_of_d2r():
    for name in ALL[:3]:
        assert (make_loss(name).exact_exponent, make_loss(name).over_exponent) == (2, 2)
        cubic = make_loss({"name": name, "r": 3})
        assert (cubic.exact_exponent, cubic.over_exponent) == (3, 3)
        assert cubic.scaling is make_loss(name).scaling
    with pytest.raises(ValueError, match="'D3' has fixed exponents"):
        make_loss({"name": "D3", "r": 2})


def test_hand_computed_identified_value():
    # tau 4 against 2 halves the estimate's gate to alpha = 3, beta = 1: gaps 1 and 1/2.
    truth, fit = measure([1], [[2]], [0.5], 2.0), measure([3], [[6]], [2], 4.0)
    terms = voronoi_terms(fit, truth, "D2r-identified")
    assert terms.scale == 0.5
    assert terms.value == pytest.approx(1.0 + 0.25)
    assert "tau" not in terms.block_errors
    assert terms.coverage == pytest.approx(np.sqrt(1.25))


def test_hand_computed_orbit_value():
    # Projection of (2, 0.5, 2) on the ray of (6, 2, 4): c = 21/56, squared distance 8.25 - 441/56.
    truth, fit = measure([1], [[2]], [0.5], 2.0), measure([3], [[6]], [2], 4.0)
    terms = voronoi_terms(fit, truth, "D2r-orbit")
    assert terms.scale == pytest.approx(21 / 56, rel=1e-14)
    assert terms.value == pytest.approx(8.25 - 441 / 56, rel=1e-13)
    # Order 1: |6c - 2| + |2c - 1/2| + |4c - 2| is least at the weighted median of 1/3, 1/4, 1/2.
    first = voronoi_terms(fit, truth, "D2r-orbit", r=1)
    assert first.scale == pytest.approx(1 / 3, rel=1e-14)
    assert first.value == pytest.approx(1 / 6 + 2 / 3, rel=1e-13)


def test_an_infimum_that_only_the_factor_0_attains():
    # The estimate's score points the other way: (c alpha + 3)^2 + (c - 1)^2 falls down to c = 0.
    truth, fit = measure([1], [[3]], [0], 1.0), measure([1], [[-3]], [0], 1.0)
    terms = voronoi_terms(fit, truth, "D2r-orbit")
    assert terms.scale == 0.0
    assert terms.value == pytest.approx(10.0)
    assert terms.block_errors["tau"] == pytest.approx([1.0])
    closer = [voronoi_loss(scaled(fit, SCALED, c), truth, "D2r") for c in (0.1, 0.01, 1e-6)]
    assert np.all(np.diff(closer) < 0)
    assert closer[-1] == pytest.approx(10.0, abs=1e-4)
    assert closer[-1] > terms.value


@pytest.mark.parametrize(("far", "tolerance"), [(1.0, 1e-6), (100.0, 1e-3)])
@pytest.mark.parametrize("alpha", [0.05, 0.1 * (1 + 1e-14)])
def test_an_infimum_at_a_wall_between_cells(alpha, far, tolerance):
    # The heavy true atom is the second one; its cell starts right of the wall c alpha = 0.1, where
    # a tie goes to the first.  There 0.001 + 1 of mass are missing, left of it 0.001 + 9.
    truth = measure([1, 9, 0.001], [[0], [0.2], [0]], [0, 0, 0], 1.0, b=[[0], [0], [far]])
    fit = measure([1], [[alpha]], [0.2], 1.0)
    wall = 0.1 / alpha
    terms = voronoi_terms(fit, truth, "D2r-orbit")
    limit = 2 * 1.001 + 10.001 * (0.01 + (0.2 * wall) ** 2 + (wall - 1) ** 2)
    assert terms.assignment.tolist() == [1]
    assert limit <= terms.value == pytest.approx(limit, abs=tolerance)
    assert terms.scale > wall
    assert voronoi_terms(scaled(fit, SCALED, wall), truth, "D2r").assignment.tolist() == [0]


def test_cells_follow_the_factor():
    # At its own scale both fitted atoms lie next to the far true atom, halved each next to its own.
    truth = measure([1, 1], [[2], [6]], [0, 0], 1.0)
    fit = measure([1, 1], [[8.2], [24.2]], [0, 0], 4.0)
    assert voronoi_terms(fit, truth, "D2r").assignment.tolist() == [1, 1]
    for name in ("D2r-orbit", "D2r-identified"):
        terms = voronoi_terms(fit, truth, name)
        assert terms.assignment.tolist() == [0, 1]
        assert terms.value < 0.01
        assert terms.scale == pytest.approx(0.25, rel=0.01)


@pytest.mark.parametrize("r", [1, 1.5, 2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_orbit_against_a_dense_grid(seed, r):
    rng = np.random.default_rng(seed)
    d, true_k, k = rng.integers(1, 3), rng.integers(1, 4), rng.integers(1, 6)
    truth = random_measure(rng, true_k, d, spread=2.0)
    fit = random_measure(rng, k, d, spread=2.0) if seed % 2 else near(rng, truth, k)
    found = voronoi_terms(fit, truth, "D2r-orbit", r=r)
    grid = np.concatenate([np.geomspace(1e-6, 1e3, 4000), np.linspace(0, 5, 8001)])
    rows = [fit.atoms[name].reshape(k, -1) for name in SCALED]
    loss = make_loss({"name": "D2r-orbit", "r": r})
    parts = _parts(loss, fit, truth, SCALED)
    orbit = Orbit(**parts, path=np.concatenate(rows, axis=1))
    brute = orbit.values(grid[:, None], orbit.cells(grid[:, None]))
    assert found.value <= brute.min() * (1 + 1e-12)
    assert found.value >= 0.98 * brute.min()
    # The grid's values are those of the published loss at these factors.
    for at in (1200, 3000, 9000):
        there = voronoi_loss(scaled(fit, SCALED, grid[at]), truth, "D2r", r=r)
        assert brute[at] == pytest.approx(there, rel=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 5),
    true_k=st.integers(1, 3),
    r=st.sampled_from([1, 2, 3.5]),
    log_factor=st.floats(-12, 12),
    close=st.booleans(),
)
def test_invariance_under_the_scale_of_the_estimate(seed, k, true_k, r, log_factor, close):
    rng = np.random.default_rng(seed)
    truth = random_measure(rng, true_k, 2)
    fit = near(rng, truth, k) if close else random_measure(rng, k, 2)
    other = scaled(fit, SCALED, np.exp(log_factor))
    published = voronoi_terms(fit, truth, "D2r", r=r)
    for name in ("D2r-orbit", "D2r-identified"):
        here, there = (voronoi_terms(g, truth, name, r=r) for g in (fit, other))
        assert there.value == pytest.approx(here.value, rel=1e-10)
        assert there.scale * np.exp(log_factor) == pytest.approx(here.scale, rel=1e-8, abs=1e-12)
        assert there.assignment.tolist() == here.assignment.tolist()
        for block, errors in here.block_errors.items():
            assert there.block_errors[block] == pytest.approx(errors, rel=1e-8, abs=1e-10)
    orbit = voronoi_loss(fit, truth, "D2r-orbit", r=r)
    assert orbit <= published.value * (1 + 1e-12)
    assert orbit <= voronoi_loss(other, truth, "D2r", r=r) * (1 + 1e-12)
    assert orbit <= voronoi_loss(fit, truth, "D2r-identified", r=r) * (1 + 1e-12)


def test_the_published_loss_is_not_invariant():
    truth = random_measure(np.random.default_rng(0), 2)
    doubled = scaled(truth, SCALED, 2.0)
    assert voronoi_loss(doubled, truth, "D2r") > 1.0
    assert voronoi_loss(doubled, truth, "D3") > 1.0
    assert voronoi_loss(doubled, truth, "D2r-orbit") == pytest.approx(0.0, abs=1e-15)
    assert voronoi_loss(doubled, truth, "D2r-identified") == pytest.approx(0.0, abs=1e-15)


def test_neither_is_invariant_under_a_scale_of_single_blocks():
    truth = random_measure(np.random.default_rng(1), 2)
    for block in SCALED:
        other = scaled(truth, (block,), 1.5)
        for name in ALL:
            assert voronoi_loss(other, truth, name) > 1e-3, (block, name)


@pytest.mark.parametrize(
    ("name", "options"),
    [("D3", {}), *((name, options) for name in ALL[:3] for options in ({}, {"r": 1}, {"r": 3}))],
)
def test_zero_at_the_truth_only(name, options):
    truth = random_measure(np.random.default_rng(3), 3, 2)
    terms = voronoi_terms(truth, truth, name, **options)
    assert (terms.value, terms.scale, terms.coverage) == (0.0, 1.0, 0.0)
    split = MixingMeasure(
        truth.masses[[0, 0, 1, 2]] * [0.3, 0.7, 1, 1],
        {block: x[[0, 0, 1, 2]] for block, x in truth.atoms.items()},
    )
    assert voronoi_loss(split, truth, name, **options) == pytest.approx(0.0, abs=1e-14)
    heavier = MixingMeasure(truth.masses * [1.5, 1, 1], truth.atoms)
    assert voronoi_loss(heavier, truth, name, **options) > 1e-3
    for block in ("alpha", "beta", "a", "b"):
        moved = truth.atoms[block].copy()
        moved[0] += 0.1
        other = MixingMeasure(truth.masses, {**truth.atoms, block: moved})
        assert voronoi_loss(other, truth, name, **options) > 1e-5, block


def test_densities_agree_where_the_scaled_losses_vanish():
    F = family("multinomial", gate="sigmoid-inner", n_experts=2, n_classes=2)
    theta = np.random.default_rng(5).normal(size=F.n_params)
    theta[-1] = 0.7
    other = F.from_measure(scaled(F.measure(theta), SCALED, 3.0))
    x = np.linspace(-2, 2, 9)
    assert F.probabilities(other, x) == pytest.approx(F.probabilities(theta, x), abs=1e-14)
    assert voronoi_loss(F.measure(other), F.measure(theta), "D2r-orbit") < 1e-14
    E = family("multinomial", gate="sigmoid-euclidean", n_experts=2, n_classes=2)
    assert np.max(np.abs(E.probabilities(other, x) - E.probabilities(theta, x))) > 1e-3


def test_wrong_gates_by_their_blocks():
    F = family("multinomial", gate="sigmoid", n_experts=2, n_classes=2)
    plain = F.measure(np.ones(F.n_params))
    warm = measure([1, 1], [[0], [1]], [0, 1], 1.0)
    for name in ALL:
        with pytest.raises(ValueError, match=rf"loss '{name}' needs the blocks .*estimate has be"):
            voronoi_loss(plain, warm, name)
        with pytest.raises(ValueError, match=r"needs the blocks .*tau.*truth has beta, al"):
            voronoi_loss(warm, plain, name)
    with pytest.raises(ValueError, match="'D1' needs the blocks alpha, beta, a, b"):
        voronoi_loss(warm, warm, "D1")


def test_wrong_gates_by_their_invariances():
    allowed = {
        (loss, gate)
        for loss in LOSSES
        for gate in ("sigmoid", "softmax", "sigmoid-inner", "sigmoid-euclidean")
        if not rejects(LOSSES[loss], GATES[gate])
    }
    free = {loss for loss in LOSSES if loss.startswith("D") and "-" not in loss}
    gates = ("sigmoid", "softmax", "sigmoid-inner", "sigmoid-euclidean")
    assert allowed == {
        *((loss, gate) for loss in free for gate in gates),
        *(("block-exponents", gate) for gate in gates),
        ("softmax-D1", "softmax"),
        ("softmax-D2r", "softmax"),
        ("gaussian-softmax-D", "softmax"),
        ("D2r-orbit", "sigmoid-inner"),
        ("D2r-identified", "sigmoid-inner"),
    }
    with pytest.raises(ValueError, match="'D2r-orbit' does not see a common factor of alpha, beta"):
        LOSSES["D2r-orbit"].check_gate(GATES["sigmoid-euclidean"])
    with pytest.raises(ValueError, match="'softmax-D1' does not see a common shift of beta1"):
        LOSSES["softmax-D1"].check_gate(GATES["sigmoid"])


def rejects(loss, gate):
    try:
        loss.check_gate(gate)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("name", ["D2r-orbit", "D2r-identified"])
@pytest.mark.parametrize("tau", [[1.0, 2.0], [0.0, 0.0], [-1.0, -1.0]])
def test_a_scale_must_be_positive_and_shared(name, tau):
    good = measure([1, 1], [[0], [1]], [0, 1], 1.0)
    bad = MixingMeasure(good.masses, {**good.atoms, "tau": np.array(tau)})
    with pytest.raises(ValueError, match=r"'tau' must hold one positive value .*in estimate"):
        voronoi_loss(bad, good, name)
    with pytest.raises(ValueError, match=r"'tau' must hold one positive value .*in truth"):
        voronoi_loss(good, bad, name)


def test_a_loss_is_translated_or_scaled():
    with pytest.raises(ValueError, match="translated or scaled, not both"):
        VoronoiLoss(
            "both", (BlockTerm("b", 0),), 1, 2, ("b",), "none", scaling=Scaling(("b",), matched)
        )


@pytest.mark.parametrize("name", ["D2r-orbit", "D2r-identified"])
def test_a_gate_without_slopes_and_shifts(name):
    # Nothing but tau depends on the factor, or nothing at all.
    truth = measure([1, 1], [[2], [6]], [1, 1], 1.0, b=[[0], [9]])
    fit = measure([1, 1], [[0], [0]], [0, 0], 5.0, b=[[0], [9]])
    terms = voronoi_terms(fit, truth, name)
    assert terms.scale == pytest.approx(0.2)
    assert terms.value == pytest.approx(4.0 + 36.0 + 1.0 + 1.0)
    hollow = Orbit(**_parts(LOSSES["D2r-identified"], fit, truth, SCALED), path=np.zeros((2, 2)))
    assert hollow.search().tolist() == [1.0]


def test_losses_travel_between_processes():
    for loss in LOSSES.values():
        assert pickle.loads(pickle.dumps(loss)) == loss
