"""What every registered loss must satisfy, so that a new one is tested by being registered."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest

from moestat.metrics.losses import LOSSES, make_loss, voronoi_loss, voronoi_terms
from moestat.metrics.losses._engine import check_measures
from moestat.metrics.losses._scaling import infimum
from tests.kinds import KINDS, REGRESSION, kind_id, make

CASES = [
    *LOSSES,
    *({"name": name, "r": 3.0} for name, loss in LOSSES.items() if loss.free_order),
    {"name": "competition-L1", "masses": "given"},
    {"name": "competition-top-D", "active": 2},
]


def case_id(case):
    return case if isinstance(case, str) else "-".join(map(str, case.values()))


every_case = pytest.mark.parametrize("loss", CASES, ids=case_id)
INFIMA = [
    case
    for case in CASES
    if (loss := make_loss(case)).translated or (loss.scaling and loss.scaling.choose is infimum)
]


@cache
def measured():
    """A family of every kind (k* = 2, d = 2, K = 3) with a measure."""
    made = [make(kind, 2, 2, 3) for kind in (*KINDS, *REGRESSION)]
    return [(family, family.measure(family.typical(rng=0))) for family in made]


def accepts(loss, family, measure):
    """Whether the loss is for this family: its blocks, and nothing but what it leaves open."""
    try:
        loss.check_gate(family.gate)
        check_measures(loss, measure, measure)
    except ValueError:
        return False
    # The reference takes hidden units in the order in which they are.
    return not family.expert.symmetry.units


def families(loss):
    """The first families that the loss is for."""
    chosen = make_loss(loss)
    if chosen.active is not None:
        chosen = replace(chosen, active=1)  # as the gates of the kinds have it
    found = (family for family, measure in measured() if accepts(chosen, family, measure))
    first = list(islice(found, 2))
    assert first, f"no kind of family in tests/kinds.py goes with loss {loss!r}"
    return first


def pair(family, rng, extra):
    """An estimate near a typical truth, its second atom split when there is an extra one."""
    theta = family.typical(rng)
    atoms, shared = family.split(theta)
    larger = family.with_experts(2 + extra)
    rows = atoms[[0, 1, 1][: 2 + extra]]
    near = larger.join(rows + 0.1 * rng.normal(size=rows.shape), shared * rng.uniform(0.9, 1.1))
    return larger, larger.pin(near), family.measure(theta)


def compared(result, estimate, truth):
    """The estimate with the masses, translation and factor with which the loss compares it."""
    loss, atoms = result.loss, dict(estimate.atoms)
    for name, shift in result.translation.items():
        atoms[name] = atoms[name] - shift
    for name in loss.scaling.blocks if loss.scaling else ():
        atoms[name] = result.scale * atoms[name]
    factor = truth.total_mass / estimate.total_mass if loss.masses == "normalised" else 1.0
    return replace(estimate, masses=factor * estimate.masses, atoms=atoms)


def nearest(loss, estimate, truth):
    """True atom nearest to each fitted one in the blocks that make the cells."""
    names = [term.block for term in loss.terms if term.in_cells and not term.joint]
    names += truth.expert_blocks if loss.joint else ()
    gaps = [estimate.atoms[name][:, None] - truth.atoms[name] for name in dict.fromkeys(names)]
    squares = sum(np.sum(gap.reshape(*gap.shape[:2], -1) ** 2, axis=-1) for gap in gaps)
    return np.argmin(squares, axis=1)


@every_case
@pytest.mark.parametrize("extra", [0, 1])
def test_value_follows_the_printed_formula(loss, extra):
    reference = make_loss(loss).reference
    assert reference, f"loss {loss!r} declares no reference"
    for family in families(loss):
        for seed in range(5):
            larger, near, truth = pair(family, np.random.default_rng(seed), extra)
            estimate = larger.measure(near)
            result = voronoi_terms(estimate, truth, loss)
            moved, cells = compared(result, estimate, truth), result.assignment
            if result.loss.represent is None:
                assert cells.tolist() == nearest(result.loss, moved, truth).tolist()
            else:
                truth, cells = result.loss.represent(estimate, truth), np.arange(2 + extra)
            printed = reference(moved, truth, cells, **result.loss.options)
            assert result.value == pytest.approx(printed, rel=1e-9)
            parts = result.mass_errors.sum() + sum(x.sum() for x in result.block_errors.values())
            assert result.value == pytest.approx(parts, rel=1e-12)
            assert result.value > 1e-8


@pytest.mark.parametrize("loss", INFIMA, ids=case_id)
def test_infimum_is_below_the_value_at_other_translations_and_factors(loss):
    chosen = make_loss(loss)
    for family in families(loss):
        rng = np.random.default_rng(3)
        larger, near, truth = pair(family, rng, 1)
        estimate = larger.measure(near)
        result = voronoi_terms(estimate, truth, loss)
        for _ in range(20):
            shift = {
                name: t + 0.1 * rng.normal(size=t.shape) for name, t in result.translation.items()
            }
            scale = result.scale * (rng.uniform(0.8, 1.2) if chosen.scaling else 1.0)
            moved = compared(replace(result, translation=shift, scale=scale), estimate, truth)
            cells = nearest(chosen, moved, truth)
            assert result.value <= chosen.reference(moved, truth, cells, **chosen.options) + 1e-9


@every_case
def test_value_is_zero_at_the_truth_and_does_not_see_labels(loss):
    for family in families(loss):
        rng = np.random.default_rng(7)
        larger, near, truth = pair(family, rng, 1)
        assert voronoi_loss(truth, truth, loss) == pytest.approx(0.0, abs=1e-9)
        atoms, shared = larger.split(near)
        turned = larger.join(atoms[::-1], shared)
        value = voronoi_loss(larger.measure(near), truth, loss)
        assert voronoi_loss(larger.measure(turned), truth, loss) == pytest.approx(value, rel=1e-9)


@every_case
def test_a_truth_with_two_equal_atoms_is_at_0_of_itself_or_refused(loss):
    for family in families(loss):
        atoms, shared = family.split(family.typical(0))
        three = family.with_experts(3)
        truth = three.measure(three.join(atoms[[0, 0, 1]], shared))
        chosen = make_loss(loss)
        if chosen.masses is None or chosen.mass_cells == "none" or chosen.represent is not None:
            assert voronoi_loss(truth, truth, loss) == pytest.approx(0.0, abs=1e-9)
        else:
            with pytest.raises(ValueError, match="truth: atoms 0 and 1 are equal"):
                voronoi_loss(truth, truth, loss)


@every_case
def test_moves_that_the_loss_leaves_open_do_not_change_it(loss):
    chosen = make_loss(loss)
    for family in families(loss):
        rng = np.random.default_rng(11)
        larger, near, truth = pair(family, rng, 1)
        moved = near.copy()
        free = [*chosen.translated]
        if chosen.masses == "normalised" and family.gate.mass in family.gate.translations:
            free.append(family.gate.mass)
        for name in free:
            at = larger.blocks[name]
            moved[at] += rng.normal(size=at.shape[1:])
        for name in chosen.scaling.blocks if chosen.scaling else ():
            moved[larger.blocks[name]] *= 1.7
        value = voronoi_loss(larger.measure(near), truth, loss)
        assert voronoi_loss(larger.measure(moved), truth, loss) == pytest.approx(value, rel=1e-6)


@every_case
def test_measures_without_a_block_of_the_loss_are_refused(loss):
    family = families(loss)[0]
    truth = family.measure(family.typical(rng=0))
    for name in truth.atoms:
        atoms = {other: block for other, block in truth.atoms.items() if other != name}
        less = replace(truth, atoms=atoms)
        with pytest.raises(ValueError, match="needs the blocks"):
            voronoi_loss(less, less, loss)


@every_case
def test_losses_travel_between_processes(loss):
    chosen = make_loss(loss)
    assert pickle.loads(pickle.dumps(chosen)) == chosen


def test_losses_meet_families_of_every_kind_of_gate():
    met = {family.gate.name for loss in LOSSES for family in families(loss)}
    assert {"softmax", "sigmoid", "sigmoid-inner", "sigmoid-quadratic", "competition"} <= met, (
        f"kinds: {[kind_id(kind) for kind in KINDS]}"
    )
