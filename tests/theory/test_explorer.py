"""The bound explorer, on cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

import moestat
from moestat._registry import UnknownNameError
from moestat.theory.explorer import explore, run_case
from tests.conftest import GAUSSIAN_TRUTHS, MEDIUM


@pytest.fixture
def line():
    family = moestat.family("gaussian", gate="softmax", n_experts=1)
    truth = {"beta0": [0.0], "beta1": [0.0], "a": [2.0], "b": [1.0], "nu": [0.25]}
    return family, family.pack(truth)


def test_one_expert_is_estimated_at_the_parametric_rate(line):
    family, truth = line
    found = explore(family, family, truth, "gaussian-softmax-D", [1e-2, 1e-3, 1e-4])
    assert abs(found.exponent - 1.0) < 0.02
    assert found.verdict == "bounded"


def test_the_printed_loss_with_unit_masses_has_a_counterexample():
    found = run_case("compete-J1-unit")
    (rung,) = found.rungs
    assert found.verdict == "zero"
    assert rung.loss == 2.0
    truth = found.truth_family, found.truth
    assert float(moestat.hellinger(found.family, rung.params, *truth, MEDIUM)) < 1e-12


def test_the_truth_of_table_2_lies_on_a_ridge():
    found = run_case("mlmoe-1-table-2")
    assert found.verdict == "zero"
    rung = found.rungs[0]
    assert rung.loss > 0.05
    value = moestat.hellinger(found.family, rung.params, found.truth_family, found.truth)
    assert float(value) < 1e-12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radii": [1e-3, 1e-2]}, "radii must be"),
        ({"radii": [1e-3]}, "radii must be"),
        ({"starts": 0}, "starts must be"),
        ({"truth": [0.0]}, "truth must have shape"),
        ({"loss": "competition-L2"}, "not for gate 'softmax'"),
    ],
)
def test_bad_input_is_refused(line, change, message):
    family, truth = line
    given = {"truth": truth, "loss": "gaussian-softmax-D", "radii": [1e-2, 1e-3], **change}
    with pytest.raises(ValueError, match=message):
        explore(family, family, **given)


def test_a_truth_that_the_family_cannot_represent_is_refused():
    family = moestat.family("gaussian", gate="competition", n_experts=2)
    truth = family.pack(GAUSSIAN_TRUTHS["competition"])
    with pytest.raises(ValueError, match="no measure of 3 atoms"):
        explore(family.with_experts(3), family, truth, "competition-L2", np.array([1e-2, 1e-3]))


def test_an_unknown_case_is_refused():
    with pytest.raises(UnknownNameError, match="unknown case 'none'"):
        run_case("none")
