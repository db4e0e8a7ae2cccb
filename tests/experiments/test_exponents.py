"""The rate calculator against the papers' Tables 1 and remarks."""

from __future__ import annotations

from fractions import Fraction

import pytest

from experiments.claims import exponents
from experiments.claims.exponents import predicted_exponents
from moestat import family
from moestat.metrics.losses import LOSSES

HALF, QUARTER, SLOW = Fraction(-1, 2), Fraction(-1, 4), Fraction(0)


def classes(gate):
    return family("multinomial", gate=gate, n_experts=3, n_classes=3)


@pytest.mark.parametrize(
    ("gate", "regime", "exact", "over"),
    [
        ("softmax", "1", HALF, QUARTER),
        ("softmax", "2", SLOW, SLOW),
        ("sigmoid", None, HALF, QUARTER),
        ("sigmoid-inner", None, SLOW, SLOW),
        ("sigmoid-euclidean", None, HALF, QUARTER),
    ],
)
def test_table_1_of_mlmoe(gate, regime, exact, over):
    one, two = predicted_exponents(classes(gate), (1, 2), regime).cells
    assert set(one.blocks.values()) == {exact}
    assert set(two.blocks.values()) == {over}
    assert (one.expert, two.expert) == (exact, over)


RELU = {"name": "activation", "activation": "relu", "weighted": True}
LINEAR = {"name": "polynomial", "degree": 1}


@pytest.mark.parametrize(
    ("gate", "expert", "regime", "complexity"),
    [
        # Exponent of 1 / epsilon in the number of samples; None for an exponential number.
        ("sigmoid-quadratic", RELU, "sparse", 4),
        ("sigmoid-quadratic", RELU, "dense", 2),
        ("sigmoid-quadratic", LINEAR, "sparse", None),
        ("sigmoid-quadratic", LINEAR, "dense", 2),
        ("softmax-quadratic", RELU, "sparse", 4),
        ("softmax-quadratic", LINEAR, "sparse", None),
        ("softmax-quadratic", LINEAR, "dense", None),
        ("sigmoid-partial", LINEAR, "sparse", 4),
        ("sigmoid-partial", RELU, "dense", 2),
    ],
)
def test_table_1_of_attention_and_its_appendix_c(gate, expert, regime, complexity):
    F = family("least-squares", gate=gate, expert=expert, n_experts=2)
    (cell,) = predicted_exponents(F, (2,), regime).cells
    assert cell.expert == (SLOW if complexity is None else Fraction(-1, complexity))


def test_the_softmax_row_of_attention_in_the_dense_regime_is_the_worst_of_its_experts():
    """Table 1 prints 1/epsilon^2 there, Sec. 4.2 and Appendix C.1.3 print 1/epsilon^4."""
    F = family("least-squares", gate="softmax-quadratic", expert=RELU, n_experts=2)
    assert predicted_exponents(F, (2,), "dense").cells[0].expert == QUARTER


def test_competition_and_the_softmax_gate_it_is_compared_with():
    cells = (1, 2, 3)
    linear = family("gaussian", gate="competition", n_experts=3)
    softmax = family("gaussian", gate="softmax", n_experts=3)
    assert [c.expert for c in predicted_exponents(linear, cells).cells] == [HALF, QUARTER, QUARTER]
    found = predicted_exponents(softmax, cells).cells
    assert [c.expert for c in found] == [HALF, Fraction(-1, 8), Fraction(-1, 12)]
    assert found[2].blocks["a"] == found[2].blocks["nu"] == Fraction(-1, 6)
    network = family("gaussian", gate="competition", expert="ffn", n_experts=2)
    assert predicted_exponents(network, (2,)).source == "Nguyen et al. (2025), Theorem 3.2"


def test_masses_are_predicted_of_cells_not_of_atoms_that_share_one():
    one, two = predicted_exponents(classes("sigmoid"), (1, 2)).cells
    assert one.blocks["gamma"] == HALF
    assert "gamma" not in two.blocks
    assert two.mass == HALF
    assert predicted_exponents(classes("sigmoid-inner"), (1,)).cells[0].mass is None


def test_every_loss_of_a_theorem_exists():
    assert {theorem.loss for theorem in exponents._THEOREMS} <= set(LOSSES)


@pytest.mark.parametrize(
    ("F", "cells", "regime", "message"),
    [
        (classes("sigmoid"), (), None, "one size per true atom"),
        (classes("sigmoid"), (1, 0), None, r"cells\[1\] must be an integer >= 1, got 0"),
        (classes("sigmoid"), (1,), "dense", "regime must be None"),
        (classes("softmax"), (1,), None, "regime must be '1' or '2'"),
        (family("gaussian", gate="competition-top", n_experts=2), (2,), None, "cells of 1 only"),
        (family("gaussian", gate="sigmoid", n_experts=2), (1,), None, "no theorem of the papers"),
    ],
)
def test_bad_input(F, cells, regime, message):
    with pytest.raises(ValueError, match=message):
        predicted_exponents(F, cells, regime)
