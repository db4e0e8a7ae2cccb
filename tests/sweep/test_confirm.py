"""Evidence that estimates are maxima, and the second pass for those that may not be."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from moestat.sweep import (
    create_store,
    open_cells,
    open_store,
    parse_spec,
    run_cell,
    run_cells,
    summarise,
)
from moestat.sweep.cli import app
from moestat.sweep.kinds.fit.confirm import confirm_cell
from moestat.sweep.kinds.fit.doubts import cells_in_doubt
from moestat.sweep.kinds.fit.evidence import NUMBERS, gather, in_doubt
from moestat.sweep.kinds.fit.spec import as_fits
from moestat.sweep.kinds.fit.words import maximum_clauses
from moestat.sweep.run.status import status_of
from moestat.sweep.spec.plan import plan_cells
from tests.sweep.cells import exact_rate
from tests.sweep.test_estimate import SPEC

SIZES = SPEC.replace("n = [300]", "n = [300, 600]").replace("replicates = 1", "replicates = 3")


def columns(**given):
    size = len(next(iter(given.values())))
    values = {name: np.full(size, np.nan) for name in NUMBERS}
    return values | {name: np.array(value, float) for name, value in given.items()}


def test_an_estimate_is_in_doubt_where_few_of_its_starts_agree():
    some = columns(agreement=[0.1, 0.6, 0.4, 0.6, 0.0], n_starts=[17, 17, 3, 3, 1])
    assert in_doubt(some).tolist() == [True, False, True, False, False]


def test_evidence_counts_what_the_runs_say():
    evidence = gather(
        columns(
            p_higher=[0.1, 0.5, 0.3],
            agreement=[0.6, 0.1, 0.5],
            n_starts=[17, 17, 60],
            above_near_truth=[0.0, 2.0, 0.5],
            above_truth=[3.0, -0.5, -1e-9],
            **{"second_pass.gain": [np.nan, np.nan, 1.5]},
        ),
        np.ones(3, dtype=bool),
        {},
        {},
    )
    assert evidence.missed == pytest.approx(0.3)
    assert (evidence.agreeing, evidence.doubtful, evidence.higher) == (2, 1, 2)
    assert (evidence.confirmed, evidence.moved) == (1, 1)
    assert evidence.above_near_truth is not None
    assert evidence.above_near_truth.largest == 2.0
    assert evidence.below_truth == 1


def doubtful(text, cell):
    """A record with an exact rate, of which the second replicate may have missed its maximum."""
    record = exact_rate(text, cell)
    if cell.curve == "exact":
        return record
    chance = 0.9 if cell.replicate == 1 else 0.05
    loss = (record.loss or np.nan) * (3.0 if cell.replicate == 1 and cell.n == 600 else 1.0)
    certificate = {
        **record.certificate,
        "n_starts": 17,
        "agreement": 0.1 if cell.replicate == 1 else 0.6,
        "p_higher": chance,
        "above_near_truth": 0.5,
        "above_truth": -1.0 if cell.replicate == 1 and cell.n == 600 else 0.5,
    }
    return dataclasses.replace(record, certificate=certificate, loss=loss)


@pytest.fixture
def store(tmp_path):
    path, spec = tmp_path / "over.sqlite", parse_spec(SIZES)
    with create_store(path, spec) as opened:
        cells = open_cells(spec, opened)
        list(run_cells(spec, opened, cells, executor="serial", cell_function=doubtful))
    return path


def test_tables_have_the_share_that_misses_the_maximum_and_the_slope_without_doubt(store):
    with open_store(store) as opened:
        over, exact = summarise(opened)
        status = status_of(opened)
        cells = list(cells_in_doubt(as_fits(opened.spec), opened))
    assert over.evidence.missed == pytest.approx((0.9 + 2 * 0.05) / 3)
    assert over.evidence.doubtful == 2
    assert exact.evidence.missed is None
    assert over.sure is not None
    assert over.sure.rate is not None
    assert over.sure.rate.slope == pytest.approx(-0.5)  # of `exact_rate`
    assert over.rate is not None
    assert over.rate.slope > 0.0
    assert (status.curves[0].doubtful, status.curves[1].doubtful) == (2, None)
    assert [(cell.curve, cell.n, cell.replicate) for cell in cells] == [
        ("over", 600, 1),
        ("over", 300, 1),
    ]
    shown = CliRunner().invoke(app, ["rates", str(store)]).stdout
    assert "missed" in shown
    assert "without the 2 fits in doubt" in shown
    words = " ".join(shown.split())
    assert "at least that of the truth: 5 of 6 fits that seek the maximum have one" in words
    assert "17% have a lower log-likelihood than the truth" in words
    assert "in doubt" in CliRunner().invoke(app, ["status", str(store)]).stdout
    out = store.parent / "out"
    assert CliRunner().invoke(app, ["report", str(store), "--out", str(out)]).exit_code == 0
    page = (out / "over.md").read_text()
    assert "| miss the maximum | without doubt |" in page
    assert "miss the maximum & without doubt" in (out / "over.tex").read_text()


def test_shares_are_of_the_fits_that_recorded_the_height_above_the_truth(tmp_path):
    """Cells of earlier releases did not: a store that goes on has some of both."""

    def partly(text, cell):
        record = doubtful(text, cell)
        known = {key: value for key, value in record.certificate.items() if key != "above_truth"}
        return record if cell.n == 600 else dataclasses.replace(record, certificate=known)

    path, spec = tmp_path / "over.sqlite", parse_spec(SIZES)
    with create_store(path, spec) as opened:
        cells = open_cells(spec, opened)
        list(run_cells(spec, opened, cells, executor="serial", cell_function=partly))
        over = summarise(opened)[0]
    assert (over.done, over.evidence.above_truth.count, over.evidence.below_truth) == (6, 3, 1)
    said = "33% of the 3 fits that recorded it have a lower log-likelihood than the truth"
    assert said in maximum_clauses(over)
    words = " ".join(CliRunner().invoke(app, ["rates", str(path)]).stdout.split())
    assert said in words
    assert "2 of 3 fits that seek the maximum and recorded it have one" in words
    status = CliRunner().invoke(app, ["status", str(path)]).stdout
    assert f"over: {said}" in " ".join(status.split())
    facts = json.loads(CliRunner().invoke(app, ["status", str(path), "--json"]).stdout)
    curve = facts["curves"][0]
    assert (curve["compared"], curve["below_truth"]) == (3, 1)
    out = tmp_path / "out"
    assert CliRunner().invoke(app, ["report", str(path), "--out", str(out)]).exit_code == 0
    page = (out / "over.md").read_text()
    assert said in page
    assert "| log-likelihood above that of the truth | 67% of the fits that recorded it; " in page


@pytest.mark.parametrize(
    ("words", "waiting"),
    [
        ('estimate = "maximum"', 2),
        ('estimate = "near-truth"', 0),
        ("starts = { truth = 4, noise = 0.1 }", 2),
        ("require_certificate = false", 0),
    ],
)
def test_estimates_near_the_truth_and_replays_have_no_second_pass(tmp_path, words, waiting):
    spec = parse_spec(SIZES.replace("n_experts = 3", f"n_experts = 3\n{words}"))
    with create_store(tmp_path / "over.sqlite", spec) as opened:
        cells = open_cells(spec, opened)
        list(run_cells(spec, opened, cells, executor="serial", cell_function=doubtful))
        assert len(cells_in_doubt(as_fits(spec), opened)) == waiting


def test_a_second_pass_that_was_interrupted_goes_on_unasked(tmp_path):
    """It lowers the estimated share of missed maxima by which the curve had it."""

    def first(text, cell, **more):
        record = exact_rate(text, cell)
        if cell.curve == "exact":
            return record
        evidence = {"n_starts": 17, "agreement": 0.1, "p_higher": 0.9, **more}
        return dataclasses.replace(record, certificate={**record.certificate, **evidence})

    def second(text, cell):
        passed = {"gain": 0.0, "first_loss": 1.0}
        return first(text, cell, n_starts=60, p_higher=0.05, second_pass=passed)

    spec = parse_spec(SIZES)
    with create_store(tmp_path / "over.sqlite", spec) as opened:
        list(
            run_cells(
                spec, opened, open_cells(spec, opened), executor="serial", cell_function=first
            )
        )
        waiting = cells_in_doubt(as_fits(spec), opened, only_automatic=True)
        assert len(waiting) == 6
        options = {"executor": "serial", "cell_function": second, "accept": lambda record: True}
        list(run_cells(spec, opened, waiting[:4], **options))
        left = cells_in_doubt(as_fits(spec), opened, only_automatic=True)
        assert [cell.key for cell in left] == [cell.key for cell in waiting][4:]


def test_a_second_pass_takes_an_estimate_s_place_only_if_it_is_higher():
    spec = parse_spec(SIZES)
    gains = []
    for cell in plan_cells(spec):
        if cell.curve == "over" and cell.n == 300:
            first, both = run_cell(SIZES, cell), confirm_cell(SIZES, cell)
            second = both.certificate["second_pass"]
            gains.append(second["gain"])
            assert second["first_loss"] == first.loss
            assert both.certificate["n_starts"] == 17 + 43
            assert first.log_likelihood is not None
            higher = first.log_likelihood + second["gain"]
            assert both.log_likelihood == pytest.approx(higher, abs=1e-6)
            if not second["gain"]:
                assert (both.loss, both.params) == (first.loss, first.params)
            assert confirm_cell(SIZES, cell).numbers == both.numbers
    assert min(gains) >= 0.0


@pytest.mark.thorough
def test_run_confirm_runs_the_cells_in_doubt_once_and_says_what_it_did(tmp_path):
    spec, path = tmp_path / "over.toml", tmp_path / "over.sqlite"
    spec.write_text(SIZES)
    common = ["run", str(spec), "--out", str(path), "--workers", "1"]
    first = CliRunner().invoke(app, [*common, "--no-confirm"])
    assert first.exit_code == 0
    with open_store(path) as opened:
        waiting = len(cells_in_doubt(as_fits(opened.spec), opened))
        before = {r.key: r.log_likelihood or np.nan for r in opened.records()}
    assert waiting > 0
    second = CliRunner().invoke(app, [*common, "--confirm"])
    assert second.exit_code == 0
    assert f"of {waiting} cells moved to a higher maximum" in second.output
    with open_store(path) as opened:
        assert not cells_in_doubt(as_fits(opened.spec), opened)
        records = {r.key: r for r in opened.records()}
        assert all((r.log_likelihood or np.nan) >= before[key] - 1e-9 for key, r in records.items())
        confirmed = [key for key, r in records.items() if "second_pass" in r.certificate]
        assert len(confirmed) == waiting
        assert summarise(opened)[0].evidence.confirmed == waiting
    again = CliRunner().invoke(app, ["cell", str(path), confirmed[0], "--json"])
    assert json.loads(again.stdout)["same_as_stored"] is True
    assert "second pass" not in CliRunner().invoke(app, [*common, "--confirm"]).output
