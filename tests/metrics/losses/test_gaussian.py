"""Voronoi losses of the Gaussian likelihood: competition, top-K competition, softmax."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moestat import family
from moestat.base.registry import table_of
from moestat.metrics.losses import (
    LOSSES,
    BlockTerm,
    VoronoiLoss,
    cell_errors,
    make_loss,
    voronoi_loss,
    voronoi_terms,
)
from moestat.metrics.losses._engine import _problem
from moestat.model.gates import GATES
from moestat.model.measure import MixingMeasure
from moestat.model.members import Symmetry

EXPERTS = {
    "linear": "linear",
    "ffn": {"name": "ffn", "hidden": 3},
    "square": {"name": "polynomial", "degree": 2},
    "cube": {"name": "polynomial", "degree": 3},
    "tanh": "activation",
    "silu": {"name": "activation", "activation": "silu"},
}
JOINT = ["competition-L1", "competition-top-D", {"name": "competition-top-D", "active": 2}]
ALL = [*JOINT, "competition-L2", "gaussian-softmax-D"]
FOUR = {"name": "gaussian-softmax-D", "r4": 7}


def measure(masses, expert_blocks=("a", "b"), symmetry=None, **blocks):
    atoms = {name: np.array(x, dtype=float) for name, x in blocks.items()}
    return MixingMeasure(
        np.array(masses, dtype=float), atoms, expert_blocks, symmetry or Symmetry()
    )


def random_measure(loss, rng, k, d=1, spread=1.0, expert="linear"):
    gate = make_loss(loss).gates[-1]
    F = family("gaussian", gate=gate, expert=EXPERTS[expert], n_experts=k, n_features=d)
    return F.measure(spread * rng.normal(size=F.n_params))


def near(truth, rng, k, noise):
    """k noisy copies of the truth's atoms, in turn, with its masses up to a little."""
    pick = np.arange(k) % truth.n_atoms
    atoms = {
        name: x[pick] * np.exp(noise * rng.normal(size=k))
        if name == "nu"
        else x[pick] + noise * rng.normal(size=x[pick].shape)
        for name, x in truth.atoms.items()
    }
    return replace(truth, masses=np.exp(0.3 * rng.normal(size=k)), atoms=atoms)


def relabelled(g, order):
    atoms = {name: x[order] for name, x in g.atoms.items()}
    return replace(g, masses=g.masses[order], atoms=atoms)


def changed(g, **blocks):
    return replace(g, atoms={**g.atoms, **blocks})


@pytest.fixture
def pair():
    """Three fitted atoms in cells of one and of two; masses 1; d = 2."""
    truth = measure([1, 1], a=[[0, 0], [50, 0]], b=[0, 0], nu=[1, 2])
    fit = measure(
        [1, 1, 1],
        a=[[3, 4], [50, 2], [50, -1]],
        b=[12, 0, -2],
        nu=[1.5, 2.5, 1.75],
    )
    return fit, truth


def test_hand_computed_value_of_l1(pair):
    given_ = voronoi_terms(*pair, "competition-L1", masses="given")
    assert given_.assignment.tolist() == [0, 1, 1]
    assert given_.mass_errors.tolist() == [0.0, 1.0]
    assert given_.block_errors["W"] == pytest.approx([13.0, 4.0 + 5.0])
    assert given_.block_errors["nu"] == pytest.approx([0.5, 0.25 + 0.0625])
    assert given_.value == pytest.approx(1.0 + 13.0 + 9.0 + 0.8125)
    # Scaled to the truth's total, every mass is 2 / 3.
    terms = voronoi_terms(*pair, "competition-L1")
    assert terms.mass_errors == pytest.approx([1 / 3, 1 / 3])
    assert terms.value == pytest.approx(2 / 3 + 2 / 3 * (13.0 + 9.0 + 0.8125))


def test_hand_computed_value_of_l2(pair):
    terms = voronoi_terms(*pair, "competition-L2", masses="given")
    assert terms.block_errors["a"] == pytest.approx([5.0, 4.0 + 1.0])
    assert terms.block_errors["b"] == pytest.approx([12.0, 4.0])
    assert terms.block_errors["nu"] == pytest.approx([0.5, 0.3125])
    assert terms.value == pytest.approx(1.0 + 5.0 + 5.0 + 16.0 + 0.8125)


def test_hand_computed_value_of_top_d(pair):
    # Exponent 1 throughout, no masses: cells 13.5 and 2.75 + sqrt 5.
    one = voronoi_terms(*pair, "competition-top-D")
    assert one.value == pytest.approx(13.5)
    assert one.block_errors["W"].tolist() == [13.0, 0.0]
    assert one.mass_errors.tolist() == [0.0, 0.0]
    for active in (2, 3):
        terms = voronoi_terms(*pair, "competition-top-D", active=active)
        assert terms.value == pytest.approx(13.5 + 2.0 + np.sqrt(5.0) + 0.75)
        assert terms.cell_sizes.tolist() == [1, 2]


def test_top_d_is_the_maximum_over_subsets():
    rng = np.random.default_rng(4)
    truth = random_measure("competition-top-D", rng, 4, d=2)
    fit = random_measure("competition-top-D", rng, 5, d=2)
    every = voronoi_terms(fit, truth, "competition-top-D", active=4)
    cells = sum(every.block_errors.values())
    for active in (1, 2, 3, 4):
        best = max(sum(cells[list(s)]) for s in itertools.combinations(range(4), active))
        terms = voronoi_terms(fit, truth, "competition-top-D", active=active)
        assert terms.value == pytest.approx(best, rel=1e-14)
        assert sum(part.sum() for part in terms.block_errors.values()) == pytest.approx(best)


def test_top_d_reports_an_empty_cell():
    truth = measure([1, 1], a=[[0], [10]], b=[0, 0], nu=[1, 1])
    fit = measure([1, 1], a=[[0], [1]], b=[0, 0], nu=[1, 1])
    terms = voronoi_terms(fit, truth, "competition-top-D", active=2)
    assert (terms.value, terms.empty_cells, terms.coverage) == (1.0, 1, 9.0)


def test_hand_computed_value_of_the_softmax_loss():
    # The exact cell holds t at 0; in the cell of two, powers 4 and 2 of 1/2 and 1/4 are 1/16.
    truth = measure([1, 1], beta1=[[0], [10]], a=[[0], [5]], b=[0, 0], nu=[1, 1])
    fit = measure(
        [0.5, 0.5, 1],
        beta1=[[-0.5], [0.5], [10]],
        a=[[0.25], [-0.25], [5.5]],
        b=[0.5, -0.5, 0.25],
        nu=[1.25, 0.75, 1.125],
    )
    terms = voronoi_terms(fit, truth, "gaussian-softmax-D")
    assert terms.translation["beta1"] == pytest.approx([0.0], abs=1e-12)
    for block, exact in {"beta1": 0.0, "a": 0.5, "b": 0.25, "nu": 0.125}.items():
        assert terms.block_errors[block] == pytest.approx([0.0625, exact], abs=1e-12)
    assert terms.value == pytest.approx(0.25 + 0.875)


def test_hand_computed_cells_of_three_and_four():
    truth = measure([1], beta1=[[0]], a=[[0]], b=[0], nu=[1])
    for k, r in ((1, 1), (2, 4), (3, 6), (4, 7)):
        fit = measure(
            np.ones(k), beta1=np.zeros((k, 1)), a=np.zeros((k, 1)), b=np.zeros(k), nu=[1] * k
        )
        beta = 0.5 * np.resize([1.0, -1.0], k)
        slope = changed(fit, a=np.full((k, 1), 0.25))
        share = 1 if k == 1 else r / 2
        assert voronoi_loss(slope, truth, FOUR) == pytest.approx(0.25**share)
        assert voronoi_loss(changed(fit, nu=np.full(k, 1.25)), truth, FOUR) == pytest.approx(
            0.25**share
        )
        assert voronoi_loss(changed(fit, b=beta), truth, FOUR) == pytest.approx(0.5**r)
        if k in (2, 4):  # balanced, so that the best shift is 0
            assert voronoi_loss(changed(fit, beta1=beta[:, None]), truth, FOUR) == pytest.approx(
                0.5**r
            )


def test_cells_without_a_known_order_are_refused():
    truth = measure([1], beta1=[[0]], a=[[0]], b=[0], nu=[1])
    for k, loss, allowed in ((4, "gaussian-softmax-D", 3), (5, FOUR, 4)):
        fit = measure(
            np.ones(k), beta1=np.zeros((k, 1)), a=np.ones((k, 1)), b=np.ones(k), nu=np.ones(k)
        )
        message = rf"exponents for cells of up to {allowed} atoms, but {k} fitted atoms share a"
        with pytest.raises(ValueError, match=message):
            voronoi_terms(fit, truth, loss)
    assert make_loss(FOUR).over_exponent == (4.0, 6.0, 7.0)
    with pytest.raises(ValueError, match=r"r4 must be a number in \[7, inf\)"):
        make_loss({"name": "gaussian-softmax-D", "r4": 6})


@pytest.mark.parametrize("loss", ["competition-L1", "competition-L2"])
def test_the_counterexample_to_the_printed_bound(loss):
    # Nguyen et al. (2025), eqs. (7) and (15): every atom of the truth twice.
    F = family("gaussian", gate="competition", n_experts=2)
    theta = F.pack({"a": [2.0, -1.5], "b": [1.0, -1.0], "nu": [0.25, 0.16]})
    D = F.with_experts(4)
    doubled = np.concatenate([theta, theta])
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, 50), 3 * rng.normal(size=50)
    assert D.log_density(doubled, x, y) == pytest.approx(F.log_density(theta, x, y), abs=1e-14)
    fit, truth = D.measure(doubled), F.measure(theta)
    printed = voronoi_terms(fit, truth, loss, masses="given")
    assert (printed.value, printed.cell_sizes.tolist()) == (2.0, [2, 2])
    assert voronoi_loss(fit, truth, loss) == 0.0
    # The same families with normalised masses say the same whatever the option.
    N = family("gaussian", gate="competition-normalised", n_experts=2)
    fit, truth = N.with_experts(4).measure(doubled), N.measure(theta)
    for masses in ("given", "normalised"):
        assert voronoi_loss(fit, truth, loss, masses=masses) == 0.0
    # Two copies of one atom and one of the other are another density and another measure.
    uneven = relabelled(fit, [0, 1, 2])
    assert voronoi_terms(uneven, truth, loss).mass_errors.sum() == pytest.approx(1 / 3)


@pytest.mark.parametrize("loss", ["competition-L1", "competition-L2"])
def test_a_common_factor_of_free_masses_is_not_seen(loss):
    rng = np.random.default_rng(3)
    F = family("gaussian", gate="competition-free", n_experts=3)
    theta = rng.normal(size=F.n_params)
    moved = theta.copy()
    moved[F.blocks["c"]] += 0.7
    x, y = rng.uniform(-2, 2, 20), rng.normal(size=20)
    assert F.log_density(moved, x, y) == pytest.approx(F.log_density(theta, x, y), abs=1e-12)
    assert voronoi_loss(F.measure(moved), F.measure(theta), loss) == pytest.approx(0, abs=1e-14)
    assert voronoi_loss(F.measure(moved), F.measure(theta), loss, masses="given") > 0.1


@pytest.mark.parametrize("loss", JOINT)
@pytest.mark.parametrize("expert", EXPERTS)
def test_symmetries_of_the_expert(loss, expert):
    rng = np.random.default_rng(1)
    F = family("gaussian", gate="competition", expert=EXPERTS[expert], n_experts=3, n_features=2)
    theta = rng.normal(size=F.n_params)
    truth = F.measure(theta)
    atoms = dict(truth.atoms)
    symmetry = F.expert.symmetry
    if symmetry.units:
        orders = [rng.permutation(3) for _ in range(3)]
        for name in symmetry.units:
            atoms[name] = np.stack([x[o] for x, o in zip(atoms[name], orders, strict=True)])
    for name in symmetry.flips:
        atoms[name] = atoms[name] * np.array([-1.0, 1.0, -1.0]).reshape(
            -1, *[1] * (atoms[name].ndim - 1)
        )
    fit = replace(truth, atoms=atoms)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    assert F.log_density(F.from_measure(fit), X, y) == pytest.approx(
        F.log_density(theta, X, y), abs=1e-12
    )
    terms = voronoi_terms(fit, truth, loss)
    assert (terms.value, terms.coverage) == (0.0, 0.0)
    assert terms.assignment.tolist() == [0, 1, 2]
    for cell in cell_errors(fit, truth, terms):
        assert set(cell.errors.values()) == {0.0}
    if symmetry.units or symmetry.flips:
        blind = (replace(g, symmetry=Symmetry()) for g in (fit, truth))
        assert voronoi_loss(*blind, loss) > 0.1
    # Any other change of the parameters is seen.
    for name, block in truth.atoms.items():
        step = np.zeros_like(block)
        step[0] = 0.05
        assert voronoi_loss(changed(truth, **{name: block + step}), truth, loss) > 1e-4, name


@pytest.mark.parametrize(("expert", "d"), [("ffn", 1), ("ffn", 2), ("square", 2), ("tanh", 1)])
@pytest.mark.parametrize("seed", range(3))
def test_infimum_over_symmetries_by_enumeration(expert, d, seed):
    rng = np.random.default_rng(seed)
    loss = "competition-L1"
    truth = random_measure(loss, rng, 2, d, expert=expert)
    fit = random_measure(loss, rng, 3, d, expert=expert)
    units, flips = truth.symmetry.units, truth.symmetry.flips
    moves = list(itertools.permutations(range(3))) if units else [1.0, -1.0]
    blind = replace(truth, symmetry=Symmetry())
    values, coverage = [], []
    # Each fitted atom has its own move; the printed loss is least over all of them together.
    for chosen in itertools.product(moves, repeat=3):
        atoms = dict(fit.atoms)
        for name in units:
            atoms[name] = np.stack([x[list(o)] for x, o in zip(atoms[name], chosen, strict=True)])
        for name in flips:
            sign = np.array(chosen).reshape(-1, *[1] * (atoms[name].ndim - 1))
            atoms[name] = atoms[name] * sign
        other = replace(fit, atoms=atoms, symmetry=Symmetry())
        gaps = [
            (atoms[name][:, None] - x[None]).reshape(3, 2, -1) for name, x in truth.atoms.items()
        ]
        coverage.append(np.linalg.norm(np.concatenate(gaps, axis=-1), axis=-1))
        values.append(voronoi_terms(other, blind, loss))
    terms = voronoi_terms(fit, truth, loss)
    distance = np.min(coverage, axis=0)
    assert terms.assignment.tolist() == np.argmin(distance, axis=1).tolist()
    assert terms.coverage == pytest.approx(distance.min(axis=0).sum())
    same = [v.value for v in values if v.assignment.tolist() == terms.assignment.tolist()]
    assert terms.value == pytest.approx(min(same), rel=1e-12)


def test_cell_errors_of_every_block(pair):
    fit, truth = pair
    one, two = cell_errors(fit, truth, voronoi_terms(fit, truth, "competition-L1", masses="given"))
    assert (one.size, two.size, one.mass_error, two.mass_error) == (1, 2, 0.0, 1.0)
    assert one.errors == pytest.approx({"W": 13.0, "a": 5.0, "b": 12.0, "nu": 0.5})
    assert two.errors == pytest.approx({"W": np.sqrt(5), "a": 2.0, "b": 2.0, "nu": 0.5})
    one, two = cell_errors(fit, truth, voronoi_terms(fit, truth, "competition-L2"))
    assert one.errors == pytest.approx({"a": 5.0, "b": 12.0, "nu": 0.5})
    # All cells are reported, those that do not enter the maximum as well.
    top = cell_errors(fit, truth, voronoi_terms(fit, truth, "competition-top-D"))
    assert top[1].errors["W"] == pytest.approx(np.sqrt(5))


def test_cell_errors_of_hidden_units_and_after_the_translation():
    rng = np.random.default_rng(8)
    truth = random_measure("competition-L1", rng, 2, 2, spread=3, expert="ffn")
    fit = near(truth, rng, 3, 0.01)
    order = [2, 0, 1]
    fit = changed(fit, **{name: fit.atoms[name][:, order] for name in ("W1", "b1", "W2")})
    cells = cell_errors(fit, truth, voronoi_terms(fit, truth, "competition-L1"))
    for cell in cells:
        assert set(cell.errors) == {"W", "W1", "b1", "W2", "nu"}
        parts = [cell.errors[name] for name in ("W1", "b1", "W2")]
        assert max(parts) <= cell.errors["W"] < 0.1
    truth = random_measure("gaussian-softmax-D", rng, 2, 2, spread=3)
    fit = near(truth, rng, 3, 0.01)
    fit = changed(fit, beta1=fit.atoms["beta1"] + 7.0)
    for cell in cell_errors(fit, truth, voronoi_terms(fit, truth, "gaussian-softmax-D")):
        assert set(cell.errors) == {"beta1", "a", "b", "nu"}
        assert max(cell.errors[name] for name in ("beta1", "a", "b")) < 0.1


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 4),
    true_k=st.integers(1, 3),
    d=st.integers(1, 2),
    loss=st.sampled_from([*JOINT, "competition-L2", FOUR]),
    expert=st.sampled_from(list(EXPERTS)),
    shift=st.floats(-3, 3),
)
def test_invariances(seed, k, true_k, d, loss, expert, shift):
    rng = np.random.default_rng(seed)
    expert = expert if loss in JOINT else "linear"
    truth = random_measure(loss, rng, true_k, d, expert=expert)
    fit = near(truth, rng, k, 0.2) if seed % 2 else random_measure(loss, rng, k, d, expert=expert)
    terms = voronoi_terms(fit, truth, loss)
    assert terms.value == pytest.approx(
        terms.mass_errors.sum() + sum(part.sum() for part in terms.block_errors.values())
    )
    order = rng.permutation(k)
    again = voronoi_terms(relabelled(fit, order), truth, loss)
    assert again.value == terms.value
    assert again.assignment.tolist() == terms.assignment[order].tolist()
    heavier = replace(fit, masses=fit.masses * np.exp(shift))
    assert voronoi_loss(heavier, truth, loss) == pytest.approx(terms.value, rel=1e-8)
    if truth.symmetry.units:
        units = rng.permutation(3)
        other = changed(fit, **{name: fit.atoms[name][:, units] for name in fit.symmetry.units})
        assert voronoi_loss(other, truth, loss) == pytest.approx(terms.value, rel=1e-12)
        other = changed(
            truth, **{name: truth.atoms[name][:, units] for name in truth.symmetry.units}
        )
        assert voronoi_loss(fit, other, loss) == pytest.approx(terms.value, rel=1e-12)
    flipped = changed(fit, **{name: -fit.atoms[name] for name in fit.symmetry.flips})
    assert voronoi_loss(flipped, truth, loss) == pytest.approx(terms.value, rel=1e-12)
    if "beta1" in fit.atoms:
        there = changed(fit, beta1=fit.atoms["beta1"] + 10 * shift * rng.normal(size=d))
        assert voronoi_loss(there, truth, loss) == pytest.approx(terms.value, rel=1e-6)


@pytest.mark.parametrize("loss", ALL)
def test_zero_at_the_truth_only(loss):
    rng = np.random.default_rng(3)
    truth = random_measure(loss, rng, 3, 2)
    free = make_loss(loss).masses is not None
    loss = make_loss({"name": loss, "active": 3}) if loss == "competition-top-D" else loss
    assert voronoi_loss(truth, truth, loss) == pytest.approx(0.0, abs=1e-12)
    halves = relabelled(truth, [0, 0, 1, 2])
    halves = replace(halves, masses=halves.masses * [0.3, 0.7, 1, 1])
    assert voronoi_loss(halves, truth, loss) == pytest.approx(0.0, abs=1e-12)
    if free:
        heavier = replace(truth, masses=truth.masses * [1.5, 1, 1])
        assert voronoi_loss(heavier, truth, loss) > 1e-3
    for name, block in truth.atoms.items():
        step = np.zeros_like(block)
        step[0] = 0.05
        assert voronoi_loss(changed(truth, **{name: block + step}), truth, loss) > 1e-5, name


@pytest.mark.parametrize("seed", range(12))
def test_translation_beats_a_grid_in_one_dimension(seed):
    rng = np.random.default_rng(seed)
    true_k = int(rng.integers(1, 4))
    k = min(true_k + int(rng.integers(0, 3)), 4)
    truth = random_measure(FOUR, rng, true_k, spread=2)
    fit = near(truth, rng, k, [0.05, 0.5, 2.0][seed % 3])
    problem = _problem(make_loss(FOUR), fit, truth)
    low, high = problem.moving.min() - 1, problem.moving.max() + 1
    grid = np.linspace(low, high, 20001)[:, None]
    for width in (20000, 2e7, None):
        values = problem.values(grid, problem.cells(grid))
        at, brute = grid[np.argmin(values)], values.min()
        if width:
            grid = np.linspace(at - (high - low) / width, at + (high - low) / width, 2001)
    found = voronoi_terms(fit, truth, FOUR)
    assert found.value <= brute * (1 + 1e-6)
    t = np.atleast_2d(problem.search())
    assert problem.values(t, problem.cells(t))[0] == pytest.approx(found.value, rel=1e-9)


@pytest.mark.parametrize("size", [0.3, 3.0])
def test_monotone_in_the_exponents(size):
    rng = np.random.default_rng(6)
    truth = measure([1, 1], a=[[0, 0], [90, 0]], b=[0, 0], nu=[10, 10])
    noise = {name: rng.uniform(0.2, 1, size=(4, *x.shape[1:])) for name, x in truth.atoms.items()}
    pick = [0, 0, 1, 1]
    fit = measure(
        np.ones(4), **{name: x[pick] + size * noise[name] for name, x in truth.atoms.items()}
    )
    values = [
        voronoi_loss(fit, truth, replace(make_loss("competition-L2"), over_exponent=power))
        for power in (1.0, 2.0, 4.0, (6.0,), (8.0, 1.0))
    ]
    steps = np.diff(values)
    assert np.all(steps < 0 if size < 1 else steps[1:] > 0)


GAUSSIAN_GATES = {
    "competition-L1": {"competition", "competition-normalised", "competition-free"},
    "competition-L2": {"competition", "competition-normalised", "competition-free"},
    "competition-top-D": {"competition-top"},
    "gaussian-softmax-D": {"softmax"},
}


@pytest.mark.parametrize("loss", GAUSSIAN_GATES)
def test_gates_that_the_loss_was_made_for(loss):
    for name, gate in GATES.items():
        if name in GAUSSIAN_GATES[loss]:
            LOSSES[loss].check_gate(gate)
        else:
            with pytest.raises(
                ValueError, match=f"'{loss}' was made for .*, not for gate '{name}'"
            ):
                LOSSES[loss].check_gate(gate)


def test_gates_with_other_options():
    two = GATES["competition-top"].configure(active=2)
    make_loss({"name": "competition-top-D", "active": 2}).check_gate(two)
    with pytest.raises(ValueError, match=r"has active = 1, but gate 'competition-top' has 2"):
        make_loss("competition-top-D").check_gate(two)
    given_ = make_loss({"name": "competition-L1", "masses": "given"})
    given_.check_gate(GATES["competition"])
    given_.check_gate(GATES["competition-normalised"])
    with pytest.raises(ValueError, match=r"a common factor .* gate 'competition-free'"):
        given_.check_gate(GATES["competition-free"])


@pytest.mark.parametrize(
    "table",
    [
        FOUR,
        {"name": "competition-L2", "masses": "given"},
        {"name": "competition-top-D", "active": 3},
        {"name": "D2r", "r": 4},
    ],
)
def test_a_loss_says_which_table_makes_it(table):
    loss = make_loss(table)
    assert table_of(loss) == table
    assert make_loss(table_of(loss)) == loss
    assert hash(loss) == hash(make_loss(table))


def test_wrong_options():
    for loss, message in [
        ({"name": "competition-L1", "masses": "unit"}, "masses must be 'normalised' or 'given'"),
        ({"name": "competition-L2", "active": 2}, "does not take these options: active"),
        ({"name": "competition-top-D", "active": 0}, "active must be an integer >= 1"),
        ({"name": "competition-L1", "r": 2}, "takes no order r"),
        ({"name": "D1", "masses": "given"}, "'D1' does not take these options: masses"),
    ]:
        with pytest.raises(ValueError, match=message):
            make_loss(loss)
    with pytest.raises(ValueError, match="an infimum takes the masses and all cells"):
        VoronoiLoss("none", (BlockTerm("b", 0),), 1, 2, ("b",), "none", masses=None)


def test_wrong_measures(pair):
    rng = np.random.default_rng(0)
    softmax = random_measure("gaussian-softmax-D", rng, 2)
    linear = random_measure("competition-L1", rng, 2)
    ffn = random_measure("competition-L1", rng, 2, expert="ffn")
    with pytest.raises(
        ValueError, match=r"needs the blocks a, b, nu \(.*truth has beta1, b, a, nu"
    ):
        voronoi_loss(linear, softmax, "competition-L1")
    with pytest.raises(ValueError, match=r"'competition-L2' needs the blocks a, b, nu"):
        voronoi_loss(ffn, ffn, "competition-L2")
    with pytest.raises(ValueError, match=r"'gaussian-softmax-D' needs the blocks beta1, a, b, nu"):
        voronoi_loss(linear, linear, "gaussian-softmax-D")
    with pytest.raises(ValueError, match=r"'softmax-D1' needs the blocks beta1, a, b "):
        voronoi_loss(softmax, softmax, "softmax-D1")
    with pytest.raises(ValueError, match="must be of the same expert"):
        voronoi_loss(linear, ffn, "competition-L1")
    wider = family("gaussian", gate="competition", expert={"name": "ffn", "hidden": 4}, n_experts=2)
    with pytest.raises(ValueError, match=r"block 'b1' has shape \(2, 4\) in the estimate and"):
        voronoi_loss(wider.measure(np.ones(wider.n_params)), ffn, "competition-L1")
    unknown = replace(linear, expert_blocks=())
    with pytest.raises(ValueError, match=r"all blocks of the expert .* but estimate does not say"):
        voronoi_loss(unknown, linear, "competition-L1")
    voronoi_loss(unknown, replace(linear, expert_blocks=()), "competition-L2")
    classes = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    logits = classes.measure(np.ones(classes.n_params))
    with pytest.raises(ValueError, match=r"needs the blocks beta1, a, b, nu .*has beta1, "):
        voronoi_loss(logits, logits, "gaussian-softmax-D")


@pytest.mark.parametrize("activation", ["relu", "norm", "exp"])
def test_experts_with_a_continuous_symmetry_are_refused(activation):
    expert = {"name": "activation", "activation": activation}
    F = family("gaussian", gate="competition", expert=expert, n_experts=1)
    theta = np.array([0.5, 1.5, 2.0, 0.0])
    other = np.array([1.0, 3.0, 1.0, 0.0])
    if activation == "exp":
        other = np.array([1.5, 1.5, 2.0 * np.exp(-1.0), 0.0])
    x = np.linspace(-1, 1, 5)
    assert F.log_density(other, x, x) == pytest.approx(F.log_density(theta, x, x), abs=1e-12)
    with pytest.raises(ValueError, match="against lambda undetermined, and no loss"):
        voronoi_loss(F.measure(other), F.measure(theta), "competition-L1")


def test_measures_travel_between_processes():
    G = random_measure("competition-L1", np.random.default_rng(0), 2, expert="ffn")
    again = pickle.loads(pickle.dumps(G))
    assert (again.symmetry, again.expert_blocks) == (G.symmetry, G.expert_blocks)
    assert G.expert_blocks == ("W1", "b1", "W2")
