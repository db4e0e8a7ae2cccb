import dataclasses
import json

import numpy as np
import pytest

from moestat.rates.rate import fit_rate
from moestat.sweep import create_store, open_cells, parse_spec, run_cells, summarise
from moestat.sweep.kinds.fit.analysis import ABSORBED
from moestat.sweep.kinds.fit.evidence import NUMBERS, gather
from tests.sweep.cells import exact_rate


@pytest.fixture
def analyse(tmp_path, text):
    """Summaries of the small sweep with further losses, by curve."""
    further = 'also = ["softmax-D2r", { name = "softmax-D2r", r = 4 }]\ntheory = -0.5'
    spec = parse_spec(text.replace("theory = -0.5", further))

    def run(cell_function):
        with create_store(tmp_path / "a.sqlite", spec) as store:
            cells = open_cells(spec, store)
            list(run_cells(spec, store, cells, executor="serial", cell_function=cell_function))
            return {summary.curve.name: summary for summary in summarise(store)}

    return run


def test_rates_of_further_losses(analyse):
    curves = analyse(exact_rate)
    newton = curves["newton"]
    assert list(newton.also) == ["softmax-D2r", "softmax-D2r, r = 4"]
    for exponent in newton.also.values():
        assert exponent.rate.slope == pytest.approx(-1.0)
        assert exponent.rate.n_observations == 4
    assert curves["em"].also == {}


@pytest.mark.parametrize("rows", [1, 5])
def test_numbers_do_not_depend_on_how_many_rows_are_read_at_once(analyse, monkeypatch, rows):
    whole = {name: summary.as_dict() for name, summary in analyse(exact_rate).items()}
    for module in ("scan", "store"):
        monkeypatch.setattr(f"moestat.sweep.store.{module}.BLOCK", rows)
    parts = {name: summary.as_dict() for name, summary in analyse(exact_rate).items()}
    assert json.dumps(parts) == json.dumps(whole)


def test_rates_within_cells_split_by_their_size(analyse):
    newton = analyse(exact_rate)["newton"]
    slopes = {
        kind: {name: exponent.rate.slope for name, exponent in exponents.items()}
        for kind, exponents in newton.cell_errors.items()
    }
    assert slopes == {
        "exact": pytest.approx({"mass": -0.5, "a": -0.5, "expert": -0.5}),
        "over": pytest.approx({"mass": -0.25, "a": -0.25, "expert": -0.5}),
    }
    # Replicate 1 has no cell of several atoms, replicate 2 is not certified.
    assert newton.cell_errors["exact"]["a"].rate.n_observations == 4
    assert newton.cell_errors["over"]["a"].rate.n_observations == 2


def test_a_replicate_counts_by_the_mean_over_its_cells(analyse):
    rng = np.random.default_rng(0)
    errors = {}

    def two_cells(text, cell):
        record = exact_rate(text, cell)
        first, second = errors.setdefault(cell.key, rng.uniform(0.1, 2.0, size=2).tolist())
        cells = [
            {"size": 3, "mass_error": error, "errors": {"a": error}, "expert_error": error}
            for error in (first, second)
        ]
        return dataclasses.replace(record, losses={**record.losses, "cells": cells})

    em = analyse(two_cells)["em"]
    mine = sorted((key, np.mean(value)) for key, value in errors.items() if key.startswith("em"))
    sizes = [int(key.split("n=")[1].split(" ")[0]) for key, _ in mine]
    expected = fit_rate(sizes, [value for _, value in mine])
    rate = em.cell_errors["over"]["a"].rate
    assert rate.slope == pytest.approx(expected.slope)
    assert rate.interval == pytest.approx(expected.interval)
    assert list(em.cell_errors) == ["over"]


def test_an_error_of_zero_has_no_rate_and_says_so(analyse):
    def no_error(text, cell):
        record = exact_rate(text, cell)
        cells = [{"size": 1, "mass_error": 0.0, "errors": {"a": 1.0}, "expert_error": None}]
        return dataclasses.replace(record, losses={**record.losses, "cells": cells})

    exact = analyse(no_error)["newton"].cell_errors["exact"]
    assert exact["mass"].rate is None
    assert exact["mass"].note == ABSORBED
    assert "NaN" in exact["expert"].note
    assert exact["a"].rate.slope == pytest.approx(0.0)


def test_what_was_not_recorded_has_no_rate_and_says_so(analyse):
    def forgetful(text, cell):
        record = exact_rate(text, cell)
        return dataclasses.replace(record, losses={**record.losses, "also": {}})

    exponent = analyse(forgetful)["newton"].also["softmax-D2r"]
    assert exponent.rate is None
    assert exponent.note == "softmax-D2r was not recorded"


def test_evidence(analyse):
    evidence = analyse(exact_rate)["newton"].evidence
    assert evidence.statuses == {"converged": 6}
    assert evidence.active == {"a[1]": 2}
    assert evidence.n_starts == {3: 6}
    assert evidence.n_optima == {1: 2, 2: 2, 3: 2}
    assert (evidence.condition.count, evidence.condition.missing) == (4, 2)
    assert (evidence.condition.smallest, evidence.condition.largest) == (1.0, 100.0)
    assert evidence.agreement.median == 0.5
    assert (evidence.gains.count, evidence.gains.median) == (2, 0.01)


def test_no_evidence():
    nothing = np.empty(0)
    evidence = gather(dict.fromkeys(NUMBERS, nothing), nothing.astype(bool), {}, {})
    assert (evidence.condition, evidence.gains, evidence.active) == (None, None, {})


def test_frequent_bounds_come_first(analyse):
    def bounds(text, cell):
        record = exact_rate(text, cell)
        active = ["b", "c"] if cell.replicate else ["b", "a", "c"]
        return dataclasses.replace(record, certificate={**record.certificate, "active": active})

    assert list(analyse(bounds)["em"].evidence.active.items()) == [("b", 6), ("c", 6), ("a", 2)]


def test_as_dict_is_json(analyse):
    newton = analyse(exact_rate)["newton"].as_dict()
    assert json.loads(json.dumps(newton, allow_nan=False))["loss"] == "softmax-D1"
    over = newton["cell_errors"]["over"]["expert"]
    assert over["rate"]["slope"] == pytest.approx(-0.5)
    assert (over["rate"]["interval"], over["note"]) == ([None, None], "")
    assert newton["cells"] == 6
    assert newton["evidence"]["gains"]["count"] == 2


def test_parameters_on_a_bound_come_by_their_number_and_then_by_name():
    columns = {name: np.full(2, np.nan) for name in NUMBERS}
    found = gather(columns, np.ones(2, dtype=bool), {}, {"b[1]": 1, "a[0]": 1, "c": 2})
    assert list(found.active) == ["c", "a[0]", "b[1]"]
