"""The bound explorer, on cases whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import moestat
from experiments.explorer import CASES, run_case
from experiments.explorer.__main__ import main
from experiments.explorer.report import as_expected
from moestat.base.registry import UnknownNameError
from moestat.metrics.distances import regression_error
from moestat.theory.explorer import deviation_loss, explore
from moestat.theory.explorer._result import Exploration, Rung
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
    rung = found.rungs[0]
    pair = family.measure(rung.params), family.measure(truth)
    assert np.isclose(moestat.voronoi_loss(*pair, found.loss), rung.loss)
    again = moestat.hellinger(family, rung.params, family, truth)
    assert np.isclose(float(again), rung.distance, rtol=1e-2)
    assert found.worst_direction


@pytest.mark.parametrize(("root", "vanishes"), [(1e-12, False), (1e-17, True)])
def test_a_tiny_distance_that_is_resolved_does_not_vanish(line, root, vanishes):
    family, truth = line
    distances = (root, root, root)
    rung = Rung(0.06, *distances, truth, 0.0, "near", "a", {"a": 0.05}, True, lambda _: (0.0, 0.0))
    found = Exploration(family, family, truth, "D", (rung,))
    assert found.vanishes is vanishes


def test_the_printed_loss_with_unit_masses_has_a_counterexample():
    found = run_case("compete-J1-unit")
    (rung,) = found.rungs
    assert found.verdict == "zero"
    assert rung.loss == 2.0
    truth = found.truth_family, found.truth
    assert float(moestat.hellinger(found.family, rung.params, *truth, MEDIUM)) < 1e-12


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["compete-v1-42", "attention-1", "attention-4", "attention-4-linear"]
)
def test_cheap_cases_come_out_as_expected(name):
    found = run_case(name, starts=1, n_radii=3)
    assert as_expected(CASES[name], found), found.table()


@pytest.mark.slow
def test_the_softmax_gate_has_the_fourth_order_in_a_cell_of_two():
    case = replace(CASES["softmax-2-order"], cells=((2, 1),), radii=(4e-3, 1e-3, 2))
    found = run_case(case, starts=1)
    assert 3.8 < found.exponent < 4.2
    # Means move in proportion to D, variances follow their squares.
    assert abs(found.powers["b, cell of 2"] - 1.0) < 0.1
    assert abs(found.powers["nu, cell of 2"] - 2.0) < 0.2
    assert found.rounding_error() < 1e-4


@pytest.mark.slow
def test_a_worst_measure_can_be_evaluated_again():
    found = run_case("attention-4-linear", starts=1, n_radii=2)
    rung = found.rungs[0]
    pair = found.family.measure(rung.params), found.truth_family.measure(found.truth)
    assert np.isclose(moestat.voronoi_loss(*pair, found.loss), rung.loss)
    again = regression_error(
        found.family, rung.params, found.truth_family, found.truth, CASES["mlmoe-1"].design
    )
    assert float(again) < 1e-12
    assert found.worst_direction


def test_the_exponents_of_a_loss_can_be_1():
    loss = deviation_loss("gaussian-softmax-D")
    assert {exponent for term in loss.terms for exponent in loss.exponents(term)} == {1.0}


def test_the_command_prints_and_writes(tmp_path):
    app = typer.Typer()
    app.command()(main)
    written = tmp_path / "found.md"
    names = ["compete-J1-unit", "compete-32-unit"]
    result = CliRunner().invoke(app, [*names, "--quick", "--show", "--out", str(written)])
    assert result.exit_code == 0, result.output
    assert all(name in result.output for name in names)
    assert "NOT AS EXPECTED" not in result.output
    assert written.read_text().count("| compete-") == 2
    assert CliRunner().invoke(app, ["none"]).exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_case_comes_out_as_expected(name):
    found = run_case(name)
    assert as_expected(CASES[name], found), found.table()
