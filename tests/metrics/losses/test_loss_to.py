"""A loss to one truth, for many estimates."""

from __future__ import annotations

import numpy as np
import pytest

from moestat import family
from moestat.metrics.losses import LossTo, make_loss, voronoi_terms


def measures(gate, likelihood, k, true_k):
    options = {"gate": gate, "n_features": 2}
    options |= {"n_classes": 3} if likelihood == "multinomial" else {}
    truth = family(likelihood, n_experts=true_k, **options)
    fitted = family(likelihood, n_experts=k, **options)
    yield truth.measure(truth.typical(0))
    for seed in (1, 2, 3):
        yield fitted.measure(fitted.typical(seed))


@pytest.mark.parametrize(
    ("name", "gate", "likelihood"),
    [
        ("D1", "sigmoid", "multinomial"),
        ("softmax-D1", "softmax", "multinomial"),
        ("gaussian-softmax-D", "softmax", "gaussian"),
    ],
)
def test_one_truth_for_many_estimates_is_each_loss_by_itself(name, gate, likelihood):
    truth, *estimates = measures(gate, likelihood, 3, 2)
    loss = make_loss(name)
    to_truth = LossTo(loss, truth)
    for estimate in estimates:
        together, alone = to_truth.terms(estimate), voronoi_terms(estimate, truth, loss)
        assert together.value == alone.value
        assert np.array_equal(together.assignment, alone.assignment)
        assert together.coverage == alone.coverage
        for block, errors in alone.block_errors.items():
            assert np.array_equal(together.block_errors[block], errors)


def test_equal_atoms_of_the_truth_are_refused_at_every_estimate():
    truth, estimate, *_ = measures("sigmoid", "multinomial", 2, 2)
    twice = truth.in_order(np.array([0, 0]))
    to_truth = LossTo(make_loss("D1"), twice)
    for _ in range(2):
        with pytest.raises(ValueError, match="atoms 0 and 1 are equal"):
            to_truth.terms(estimate)
