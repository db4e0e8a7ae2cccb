"""Facts: every one reproduces alone, and a witness that is no witness is not seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.catalogue import FACTS
from experiments.claims.fact import Fact
from experiments.claims.kinds import PairEvidence, Witness
from experiments.claims.witnesses import classes
from experiments.mlmoe.independence import least_singular_value
from experiments.verify import verify_fact
from moestat import Uniform, family, total_variation, voronoi_loss
from moestat.metrics.losses import voronoi_terms

# Seconds each; the pages of each run come from the evidence that is kept of them.
LONG = {
    *("class-holds-truth", "polynomial-split", "constant-experts", "shared-weights", "complements"),
    *("lost-masses", "second-order-classes", "orders", "junction", "per-input"),
    "router-gradients",  # tests/experiments/test_verify.py reproduces it by the command
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in sorted(FACTS)],
)
def test_every_fact_is_reproduced_alone(name):
    assert verify_fact(name).confirmed


def test_a_pair_with_two_densities_confirms_nothing():
    check = Witness(classes.OPPOSITE_SCORES)
    near = classes.OPPOSITE_SCORES
    moved = replace(near, other_blocks={**near.other_blocks, "gamma": [0.0, 0.0]}, draw=None)
    assert check.judge(near.evidence()) == "supports"
    assert check.judge(moved.evidence()) == "open"


def test_both_conventions_of_masses_are_known_for_opposite_scores():
    pair = classes.OPPOSITE_SCORES
    measures = [
        pair.other.measure(pair.other.pack(pair.other_blocks)),
        pair.truth.measure(pair.truth.pack(pair.true_blocks)),
    ]
    assert voronoi_loss(*measures, pair.loss) == pytest.approx(1.130, abs=5e-4)
    assert voronoi_loss(*measures, "D1") == pytest.approx(1.331, abs=5e-4)


def test_positions_outside_are_flat_for_one_input_only():
    fitted = family("multinomial", gate="sigmoid-euclidean", n_experts=2, n_classes=2, n_features=2)
    blocks = {
        **{"gamma": [0.3, 0.0], "beta": [-1.5, -2.0], "tau": 1.0},
        "a": [[[2.0, 0.5], [0.0, 0.0]], [[-1.0, 1.0], [0.0, 0.0]]],
        "b": [[0.5, 0.0], [0.3, 0.0]],
    }
    near = {"alpha": [[-2.0, 0.0], [3.0, 0.0]], **blocks}
    far = {"alpha": [[-2.5, 0.0], [3.5, 0.0]], **blocks, "beta": [-2.0, -2.5]}
    theta = [fitted.pack(each) for each in (near, far)]
    apart = total_variation(fitted, theta[0], fitted, theta[1], Uniform(-1.0, 1.0))
    assert apart.value > 1e-4


def test_a_fact_needs_a_scope_that_is_known_and_a_check():
    fact = FACTS["opposite-scores"]
    with pytest.raises(ValueError, match="scope must be one of"):
        replace(fact, scope="sometimes")
    with pytest.raises(ValueError, match="needs a check"):
        replace(fact, checks=())
    assert isinstance(fact, Fact)


def test_the_worst_of_several_truths_decides():
    worst = PairEvidence(1e-17, 0.0, 0.5, n_truths=5)
    assert Witness(classes.COMMON_FACTOR).judge(worst) == "supports"
    assert classes.COMMON_FACTOR.evidence().n_truths == 5


def test_experts_that_share_a_gate_differ_in_cells_of_one():
    for pair in (*classes.SHARED_GATE, *classes.SHARED_SLOPES):
        measures = [
            pair.other.measure(pair.other.pack(pair.other_blocks)),
            pair.truth.measure(pair.truth.pack(pair.true_blocks)),
        ]
        terms = voronoi_terms(*measures, pair.loss, **pair.options)
        assert terms.cell_sizes.tolist() == [1, 1, 1]


def test_distinct_class_slopes_end_the_split_of_one_expert():
    (pair,) = (each for each in classes.EQUAL_SLOPES if each.name == "equal-slopes-softmax")

    def apart(second):
        rows = lambda blocks: [  # noqa: E731
            [1.2, second, 0.0] if row == [1.2, 1.2, 0.0] else row for row in blocks["a"]
        ]
        theta, star = (
            family.pack({**blocks, "a": rows(blocks)})
            for family, blocks in ((pair.other, pair.other_blocks), (pair.truth, pair.true_blocks))
        )
        return total_variation(pair.other, theta, pair.truth, star, Uniform(-1.0, 1.0)).value

    assert apart(1.2) < 1e-15
    assert apart(1.1) > 1e-4


@pytest.mark.parametrize(
    "pair", [classes.PARALLEL_GATES, classes.OPPOSITE_SLOPES], ids=lambda pair: pair.name
)
def test_a_third_gate_needs_slopes_that_are_equal_or_opposite(pair):
    turned = {
        blocks: {
            **getattr(pair, blocks),
            "alpha": [*getattr(pair, blocks)["alpha"][:-1], 0.9 * pair.true_blocks["alpha"][1]],
        }
        for blocks in ("true_blocks", "other_blocks")
    }
    assert replace(pair, draw=None).evidence().distance < 1e-15
    assert replace(pair, **turned, draw=None).evidence().distance > 1e-6


def test_second_derivatives_of_two_classes_are_independent_unless_a_gate_is_constant():
    atoms = [(0.2, 1.3, -0.4, -0.8, 0.5), (0.0, -0.6, 0.9, 1.1, -0.7)]
    assert least_singular_value(atoms, 50) > 1e-30
    # Without a slope of the first expert its second derivatives in the class score's slope and
    # intercept are multiples of the first ones.
    flat = [(0.2, 1.3, -0.4, 0.0, 0.5), atoms[1]]
    assert least_singular_value(flat, 50) < 1e-45
