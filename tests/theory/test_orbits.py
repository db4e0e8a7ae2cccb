"""Other parameters with the law of a truth, found without being told, and truths without any."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat.theory.identifiability import find_orbits
from moestat.theory.identifiability.curves import tangent
from moestat.theory.identifiability.laws import Target
from tests.metrics.test_information import published

WIDE = moestat.Uniform(-3.0, 3.0)
WELL_CONDITIONED = {  # of experiments/microscope_mlmoe.toml
    "softmax": {
        "beta0": [0.5, 0.0],
        "beta1": [5.0, 0.0],
        "a": [[-1.0, 0.0, 0.0], [-2.0, 2.0, 0.0]],
        "b": [[2.0, -1.5, 0.0], [-2.0, 2.0, 0.0]],
    },
    "sigmoid": {
        "gamma": [0.0, 0.0],
        "alpha": [-3.0, -1.0],
        "beta": [1.0, -2.0],
        "a": [[2.0, -3.0, 0.0], [-1.0, 2.0, 0.0]],
        "b": [[-0.5, -2.0, 0.0], [0.5, -2.0, 0.0]],
    },
    "sigmoid-euclidean": {
        "gamma": [0.0, 0.0],
        "alpha": [2.0, -2.5],
        "beta": [-1.0, -0.5],
        "tau": 0.5,
        "a": [[-1.5, 3.0, 0.0], [2.5, 0.5, 0.0]],
        "b": [[-2.0, 0.5, 0.0], [-0.5, 0.5, 0.0]],
    },
}


def moves(family, theta, steps):
    """Theta with some parameters moved, by name."""
    moved = np.array(theta)
    for name, step in steps.items():
        moved[family.param_names.index(name)] += step
    return moved


def lines(search):
    return [str(direction) for orbit in search.orbits for direction in orbit.directions]


def test_the_line_through_table_2_is_found_and_followed():
    """sigma(-s) = exp(-s) sigma(s): the scores of the sigmoid truth are opposite."""
    family, truth = published("sigmoid")
    search = find_orbits(family, truth, n_starts=6, rng=0)
    (orbit,) = search.orbits
    assert orbit.dimension == 1
    assert orbit.clear
    (direction,) = orbit.directions
    assert direction.text == "+1 gamma[1], -1 beta[1], +1 beta[2]"
    assert direction.curve.straight
    assert direction.curve.ends == ("length", "length")
    assert direction.curve.back == pytest.approx(5.0)
    assert direction.curve.discrepancy < 1e-12
    assert orbit.hits >= 2
    assert not search.identified


def test_the_plane_through_table_4_is_found_and_ends_where_a_kink_enters():
    family, truth = published("sigmoid-euclidean")
    search = find_orbits(family, truth, moestat.Uniform(), n_starts=3, length=8.0, rng=0)
    (orbit,) = search.orbits
    assert orbit.dimension == 2
    first, second = orbit.directions
    assert first.text == "+1 alpha[1,0], +1 beta[1]"
    assert second.text == "+1 alpha[2,0], -1 beta[2]"
    # alpha = -5 may move up to 0 and alpha = 5 down to 1, the ends of the inputs.
    assert first.curve.forth == pytest.approx(5 * np.sqrt(2), abs=0.02)
    assert second.curve.back == pytest.approx(4 * np.sqrt(2), abs=0.02)
    assert max(first.curve.discrepancy, second.curve.discrepancy) < 1e-8


def test_the_ridge_of_the_inner_product_gate_is_found():
    family, truth = published("sigmoid-inner")
    search = find_orbits(family, truth, n_starts=1, rng=0)
    direction = search.orbits[0].directions[0]
    assert direction.text == "a common factor of alpha[1,0], alpha[2,0], tau"
    assert direction.curve.discrepancy < 1e-12
    assert direction.curve.forth == pytest.approx(5.0, rel=1e-3)


def test_the_flip_of_all_scores_under_equal_slopes_is_found():
    family = moestat.family("multinomial", gate="sigmoid", n_experts=2, n_classes=2)
    blocks = {
        "gamma": [0.4, 0.0],
        "alpha": [2.0, 2.0],
        "beta": [1.5, -0.5],
        "a": [[-2.0, 0.0], [1.5, 0.0]],
        "b": [[1.0, 0.0], [-1.0, 0.0]],
    }
    truth = family.pack(blocks)
    search = find_orbits(family, truth, WIDE, n_starts=30, rng=0)
    own, flipped = search.orbits
    assert own.isolated
    assert flipped.isolated
    # sigma(-s) = exp(-s) sigma(s), so gamma moves by the constant difference of the scores.
    assert flipped.changes == (
        "gamma[1] 0.4 -> 2.4, beta[1] 1.5 -> -1.5, alpha[1,0] 2 -> -2,"
        " beta[2] -0.5 -> 0.5, alpha[2,0] 2 -> -2"
    )


@pytest.mark.slow
def test_dense_representations_are_found():
    """A dead expert, a split and the flip sigma(w) eta = eta - sigma(-w) eta."""
    box = dict.fromkeys(("A", "b", "c", "alpha", "beta"), (-6.0, 6.0))
    one = moestat.family(
        "least-squares",
        gate="sigmoid-quadratic",
        expert={"name": "polynomial", "degree": 1},
        n_experts=1,
        bounds=box,
    )
    truth = one.pack({"c": [0.3], "b": [[1.2]], "A": [[-0.8]], "alpha": [[1.0]], "beta": [0.5]})
    search = find_orbits(
        one.with_experts(2),
        truth,
        moestat.Uniform(-1.0, 1.0),
        truth_family=one,
        n_starts=90,
        length=1.0,
        rng=0,
    )
    found = {orbit.name: orbit.dimension for orbit in search.orbits}
    assert found == {
        "true atom 0; 1 dead atom": 3,
        "true atom 0 split: one gate, experts that add up": 2,
        "true atom 0 flipped: opposite score, opposite expert; an atom with a constant gate": 1,
    }
    assert max(d.curve.discrepancy for o in search.orbits for d in o.directions) < 1e-9
    assert all(orbit.discrepancy < 1e-10 for orbit in search.orbits)


def test_an_expert_that_does_not_see_x_mixes():
    """Where a = 0 two atoms of one gate mix to the same class probabilities, elsewhere not."""
    family = moestat.family("multinomial", gate="softmax", n_experts=2, n_classes=3)
    blocks = {**WELL_CONDITIONED["softmax"], "a": [[0.0, 0.0, 0.0], [-2.0, 2.0, 0.0]]}
    search = find_orbits(
        family.with_experts(3),
        family.pack(blocks),
        WIDE,
        truth_family=family,
        n_starts=1,
        length=1.0,
        rng=0,
    )
    curves = {
        direction.text: direction.curve
        for orbit in search.orbits
        if "split: one expert" in orbit.name
        for direction in orbit.directions
    }
    constant, sloped = curves["+1 b[1,0], -1 b[3,0]"], curves["+1 b[2,0], -1 b[3,0]"]
    assert constant.integrates
    assert constant.discrepancy < 1e-12
    assert not constant.straight
    assert not sloped.integrates


@pytest.mark.parametrize(
    "gate",
    [
        pytest.param("softmax", marks=pytest.mark.slow),  # the published truth is in each run
        "sigmoid",
        pytest.param("sigmoid-euclidean", marks=pytest.mark.slow),
    ],
)
def test_well_conditioned_truths_are_identified(gate):
    family = moestat.family("multinomial", gate=gate, n_experts=2, n_classes=3)
    truth = family.pack(WELL_CONDITIONED[gate])
    search = find_orbits(family, truth, WIDE, n_starts=12, rng=0)
    assert search.identified
    assert search.n_reached >= 3
    assert search.orbits[0].clear


def test_the_published_softmax_truth_is_identified():
    search = find_orbits(*published("softmax"), n_starts=9, rng=0)
    assert search.identified
    assert search.n_reached >= 4


@pytest.mark.parametrize("likelihood", ["multinomial", "gaussian", "least-squares"])
def test_jacobian_of_the_residuals(likelihood):
    family = moestat.family(likelihood, gate="softmax", n_experts=2)
    rng = np.random.default_rng(3)
    theta, other = (family.pin(0.5 * rng.normal(size=family.n_params)) for _ in range(2))
    target = Target(family, family, other, moestat.Uniform())
    J = target.jacobian(theta)
    for column, j in enumerate(target.free):
        e = 1e-5 * np.eye(theta.size)[j]
        difference = (target.residual(theta + e) - target.residual(theta - e)) / 2e-5
        assert np.allclose(J[:, column], difference, rtol=1e-6, atol=1e-8)


def test_null_space_at_the_truth_is_that_of_the_information():
    family, truth = published("sigmoid-euclidean")
    null = tangent(Target(family, family, family.pin(truth), moestat.Uniform()), family.pin(truth))
    spectrum = moestat.information_spectrum(family, truth)
    assert null.dimension == len(spectrum.null_directions)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_starts": 0}, "n_starts"),
        ({"length": 0.0}, "length"),
        ({"truth": [1.0]}, "truth"),
        ({"truth_family": moestat.family("gaussian", gate="softmax")}, "truth"),
    ],
)
def test_refusals_name_the_argument(change, message):
    family, truth = published("softmax")
    given = {"truth": truth, **change}
    with pytest.raises(ValueError, match=message):
        find_orbits(family, **given)


def test_a_gate_that_jumps_is_refused():
    family = moestat.family("gaussian", gate="softmax-top", n_experts=2)
    with pytest.raises(ValueError, match="jumps"):
        find_orbits(family, np.zeros(family.n_params))


@pytest.mark.parametrize("gate", ["sigmoid", "softmax"])
def test_the_constant_expert_of_table_2_splits_exactly(gate):
    """One atom too many: a total variation of 0 at a positive loss, with K = 2 and a = 0."""
    family, truth = published(gate)
    blocks = family.unpack(truth)
    more = {name: np.concatenate([block, block[[1]]]) for name, block in blocks.items()}
    more[family.gate.mass][1:] -= np.log(2.0)
    share = 1.0 / (1.0 + np.exp(-blocks["b"][1, 0]))
    odds = np.array([0.5 * share, 1.5 * share])
    more["b"][1:, 0] = np.log(odds / (1.0 - odds))
    larger = family.with_experts(3)
    theta = larger.pack(more)
    assert moestat.total_variation(larger, theta, family, truth).value < 1e-15
    loss = {"sigmoid": "D1", "softmax": "softmax-D1"}[gate]
    assert moestat.voronoi_loss(larger.measure(theta), family.measure(truth), loss) > 0.1
