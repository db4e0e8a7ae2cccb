import json

import numpy as np
import pytest

from moestat import MixingMeasure, sample_weighted, voronoi_loss, voronoi_terms
from moestat.metrics.expert_errors import expert_errors
from moestat.metrics.losses import cell_errors
from moestat.sweep import parse_spec, plan_cells, run_cell
from moestat.sweep.kinds.fit import cell as cells

FURTHER = 'theory = -0.5\nalso = ["softmax-D2r", { name = "softmax-D2r", r = 4 }]'


def run(text, curve):
    """The first record of a curve, with what it is an estimate of."""
    spec = parse_spec(text)
    cell = next(cell for cell in plan_cells(spec) if cell.curve == curve)
    record = run_cell(text, cell)
    assert record.message == ""
    return spec, spec.truths[spec.curve(curve).truth], record


def test_further_losses_are_recorded(text):
    spec, truth, record = run(text.replace("theory = -0.5", FURTHER), "newton")
    estimate = spec.fitted_family(spec.curve("newton")).measure(record.params)
    target = truth.family.measure(truth.theta)
    assert record.losses["also"] == {
        "softmax-D2r": voronoi_loss(estimate, target, "softmax-D2r"),
        "softmax-D2r, r = 4": voronoi_loss(estimate, target, "softmax-D2r", r=4),
    }
    assert len({record.loss, *record.losses["also"].values()}) == 3


def test_errors_of_every_cell_are_recorded(text):
    spec, truth, record = run(text, "em")
    model = spec.fitted_family(spec.curve("em"))
    estimate, target = model.measure(record.params), truth.family.measure(truth.theta)
    assert isinstance(estimate, MixingMeasure)
    terms = voronoi_terms(estimate, target, "softmax-D1")
    experts = expert_errors(
        model, record.params, truth.family, truth.theta, terms.assignment, spec.design
    )
    assert record.losses["cells"] == [
        {
            "size": cell.size,
            "mass_error": cell.mass_error,
            "errors": dict(cell.errors),
            "expert_error": expert,
        }
        for cell, expert in zip(cell_errors(estimate, target, terms), experts, strict=True)
    ]
    assert record.losses["also"] == {}


@pytest.mark.parametrize("curve", ["newton", "em"])
def test_the_height_above_that_of_the_truth_is_recorded(text, curve):
    spec, truth, record = run(text, curve)
    cell = next(cell for cell in plan_cells(spec) if cell.curve == curve)
    X, y, weight = cells.data_of(spec, cell)
    model = spec.fitted_family(spec.curve(curve))
    gains = model.log_density(record.params, X, y) - truth.family.log_density(truth.theta, X, y)
    assert record.certificate["above_truth"] == pytest.approx(float(weight @ gains), abs=1e-8)


def test_an_empty_cell_has_null_errors(text):
    # Fewer experts than the truth has: the spec must name what is scored against.
    one = text.replace("n_experts = 2", 'n_experts = 1\ntarget = "t"', 1)
    one = one.replace("starts = { truth = 1, noise = 0.1 }", "starts = { random = 1 }", 1)
    _, _, record = run(one, "newton")
    recorded = json.loads(json.dumps(record.losses, allow_nan=False))["cells"]
    (empty,) = [cell for cell in recorded if cell["size"] == 0]
    (full,) = [cell for cell in recorded if cell["size"] == 1]
    assert set(empty["errors"]) == {"beta1", "a", "b"}
    assert [*empty["errors"].values(), empty["expert_error"]] == [None] * 4
    assert empty["mass_error"] > 0
    # One atom: the translation of beta1 that a softmax gate leaves free takes its error away.
    assert full["errors"]["beta1"] == 0
    assert all(value > 0 for value in (full["errors"]["a"], full["expert_error"]))


@pytest.mark.parametrize("cached_rows", [0, 10**6])
def test_curves_on_one_truth_share_their_sample_and_leave_it_alone(text, monkeypatch, cached_rows):
    drawn = []

    def draw(*arguments):
        X, y, weight = sample_weighted(*arguments)
        drawn.append((X, y, X.copy(), y.copy()))
        return X, y, weight

    monkeypatch.setattr(cells, "_CACHED_ROWS", cached_rows)
    monkeypatch.setattr(cells, "sample_weighted", draw)
    cells._cached_sample.cache_clear()
    records = [run_cell(text, cell) for cell in plan_cells(parse_spec(text))[:6]]
    assert [record.curve for record in records] == ["newton", "em"] * 3
    assert len(drawn) == (3 if cached_rows else 6)
    for X, y, X_before, y_before in drawn:
        np.testing.assert_array_equal(X, X_before)
        np.testing.assert_array_equal(y, y_before)
    monkeypatch.undo()
    cells._cached_sample.cache_clear()
    for record, cell in zip(records, plan_cells(parse_spec(text)), strict=False):
        assert run_cell(text, cell).params == record.params
