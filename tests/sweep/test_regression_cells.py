"""Cells of regression functions: fits by least squares, errors and targets of their own."""

from __future__ import annotations

import numpy as np
import pytest

from moestat.metrics.distances import regression_error
from moestat.metrics.information import information_spectrum
from moestat.metrics.losses import voronoi_loss
from moestat.sweep import (
    create_store,
    open_cells,
    parse_spec,
    plan_cells,
    run_cell,
    run_cells,
)
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.fit.cell import data_of
from moestat.sweep.report.writing import write_report

SPEC = """
title = "regression functions"
seed = 5
replicates = 1
n = [400]

[design]
law = "uniform"
low = -1.0
high = 1.0

[truth.sigmoid]
likelihood = "least-squares"
gate = "sigmoid-quadratic"
expert = { name = "polynomial", degree = 1 }
n_features = 2
noise = 0.01
A = [[1.0, 0.5, -1.0]]
b = [[0.3, -0.6]]
c = [0.2]
alpha = [[1.0, -1.0]]
beta = [0.5]

[truth.other]
likelihood = "least-squares"
gate = "sigmoid-quadratic"
expert = { name = "polynomial", degree = 1 }
n_features = 2
noise = 0.01
A = [[[1.0, 0.5], [0.5, 1.0]], [[0, 0], [0, 0]]]
b = [[0.3, -0.6], [0, 0]]
c = [0.2, 0.4]
alpha = [[1.0, -1.0], [0.2, 0.1]]
beta = [0.5, 0.3]

[[curve]]
name = "plain"
truth = "sigmoid"
n_experts = 2
loss = "L1"
also = ["dense-L3", "regression-error"]
starts = { truth = 1, noise = 0.05 }

[[curve]]
name = "sgd"
truth = "sigmoid"
n_experts = 2
loss = "L3"
target = "other"
solver = { name = "sgd", epochs = 2 }
starts = { truth = 1, noise = 3.0, decay = 0.5 }
require_certificate = false
"""


def run(curve):
    spec = parse_spec(SPEC)
    cell = next(cell for cell in plan_cells(spec) if cell.curve == curve)
    record = run_cell(SPEC, cell)
    assert record.message == ""
    return spec, record


def test_a_cell_records_the_regression_error():
    spec, record = run("plain")
    truth, family = spec.truths["sigmoid"], spec.fitted_family(spec.curve("plain"))
    theta = np.array(record.params)
    error = regression_error(family, theta, truth.family, truth.theta, spec.design).value
    assert record.losses["regression_error"] == error == record.losses["also"]["regression-error"]
    assert 0.0 < error < 0.1
    assert "hellinger" not in record.losses
    estimate, target = family.measure(theta), truth.family.measure(truth.theta)
    assert record.loss == voronoi_loss(estimate, target, "L1")
    assert record.losses["also"]["dense-L3"] == voronoi_loss(estimate, target, "dense-L3")


def test_the_height_above_that_of_the_truth_is_of_sums_of_squares():
    spec, record = run("plain")
    cell = next(cell for cell in plan_cells(spec) if cell.curve == "plain")
    X, y, _ = data_of(spec, cell)
    truth, family = spec.truths["sigmoid"], spec.fitted_family(spec.curve("plain"))
    pairs = (family, np.array(record.params)), (truth.family, truth.theta)
    fitted, true = (np.sum((y - model.mean(theta, X)) ** 2) for model, theta in pairs)
    above = 0.5 * len(y) * np.log(true / fitted)
    assert record.certificate["above_truth"] == pytest.approx(above, abs=1e-6)
    assert above > 0.0


def test_a_target_of_its_own():
    spec, record = run("sgd")
    other, family = spec.truths["other"], spec.fitted_family(spec.curve("sgd"))
    target = other.family.measure(other.theta)
    assert record.loss == voronoi_loss(family.measure(np.array(record.params)), target, "L3")
    assert len(record.losses["cells"]) == 2
    assert not record.certified


def test_noise_is_part_of_the_law():
    spec = parse_spec(SPEC)
    assert spec.truths["sigmoid"].law["noise"] == 0.01
    assert parse_spec(SPEC.replace("noise = 0.01", "noise = 0.02")).digest != spec.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("noise = 0.01\n", "", "noise"),
        ("noise = 0.01", "noise = -1.0", "must be >= 0"),
        ('loss = "L1"', 'loss = "dense-L3"', "list it under also"),
        ('target = "other"', 'target = "none"', "unknown truth 'none'"),
        ('{ name = "sgd", epochs = 2 }', '{ name = "em" }', "does not fit likelihood"),
        ('loss = "L1"', 'loss = "L4"', "was made for"),
    ],
)
def test_specs_are_checked(old, new, message):
    with pytest.raises(SweepError, match=message):
        parse_spec(SPEC.replace(old, new, 1))


@pytest.mark.parametrize("noise", [0.01, pytest.param(0.0, marks=pytest.mark.slow)])
def test_a_report_shows_what_a_regression_truth_allows(tmp_path, noise):
    text = SPEC.replace("noise = 0.01", f"noise = {noise}").replace("n = [400]", "n = [200, 400]")
    spec = parse_spec(text.replace("replicates = 1", "replicates = 2"))
    with create_store(tmp_path / "small.sqlite", spec) as store:
        list(run_cells(spec, store, open_cells(spec, store), executor="serial"))
        page = write_report(store, tmp_path)[0].read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| other |"))
    if noise == 0.0:
        assert row.endswith("| without noise the information is infinite |")
        return
    truth = spec.truths["other"]
    spectrum = information_spectrum(truth.family, truth.theta, spec.design, n_nodes=20, noise=noise)
    nulls = "; ".join(map(str, spectrum.null_directions)) or "none"
    assert row.endswith(f"| {spectrum.sample_size(0.1):.1e} | {nulls} |")


def test_starts_that_regression_functions_do_not_have_are_refused_when_the_spec_is_read():
    words = r"curve 'plain': starts: rule 'cluster' fits experts to shares of the samples"
    with pytest.raises(SweepError, match=words):
        parse_spec(SPEC.replace("truth = 1, noise = 0.05", "cluster = 2"))
