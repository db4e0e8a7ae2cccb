"""Verification: evidence to verdicts, the command line and its JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from moestat.papers.catalogue import CLAIMS
from moestat.papers.claims.checks import Condition, Identity, Plateau, Slope, Witness
from moestat.papers.claims.claim import Claim
from moestat.papers.claims.evidence import Missing, PlateauEvidence, SlopeEvidence
from moestat.papers.verify import ClaimResult, verification, verify
from moestat.papers.verify.analyses import analyse
from moestat.papers.verify.cli import app
from moestat.papers.verify.page import markdown
from moestat.papers.verify.slopes import slope_evidence
from moestat.papers.verify.sweeps import QUICK, gather_curves
from moestat.papers.verify.verification import CheckResult
from moestat.papers.verify.words import shown, why_open
from moestat.sweep.experiments import find_spec
from moestat.sweep.record import Record
from moestat.sweep.runner import open_cells, run_cells
from moestat.sweep.spec import load_spec
from moestat.sweep.store import create_store

HALF = Fraction(-1, 2)
NONE = Missing("not run")
CURVE = SimpleNamespace(require_certificate=True)
CHEAP = ["mlmoe.equation", "mlmoe.proposition-1", "expert-count.theorem"]


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def record(n, replicate, loss, certified=True, **losses):
    cells = [{"size": 2, "mass_error": loss, "errors": {"a": 2 * loss}, "expert_error": 3 * loss}]
    losses = {"hellinger": n**-0.5, "also": {"D9": loss}, "cells": cells, **losses}
    key = f"{n}|{replicate}"
    return Record(key, "c", n, replicate, "done", loss=loss, certified=certified, losses=losses)


def curve_of(power, wobble=1.1):
    sizes = [10**k for k in range(6, 13)]
    return [record(n, j, n**power * wobble ** (j - 1)) for n in sizes for j in range(3)]


def slope(quantity="loss", kind=Slope):
    return kind("microscope_mlmoe", "sigmoid, k = 2", quantity, HALF)


@pytest.mark.parametrize("quantity", ["loss", "D9", (2, "mass"), (2, "a"), (2, "expert")])
def test_slopes_are_of_the_last_four_decades(quantity):
    found = slope_evidence(slope(quantity), CURVE, curve_of(-0.5))
    assert found.slope == pytest.approx(-0.5)
    assert found.n == (1e8, 1e12)
    assert (found.n_fits, found.n_certified, found.n_left_out, found.n_failed) == (15, 15, 0, 0)


def test_what_does_not_enter_a_slope_is_counted():
    records = curve_of(-0.5)
    records[-1] = replace(records[-1], certified=False)
    records.append(Record("f", "c", 10**12, 9, "failed"))
    found = slope_evidence(slope(), CURVE, records)
    assert (found.n_fits, found.n_left_out, found.n_failed) == (14, 1, 1)
    free = SimpleNamespace(require_certificate=False)
    found = slope_evidence(slope(), free, records)
    assert (found.n_fits, found.n_certified) == (15, 14)


def test_a_slope_that_is_not_there():
    assert isinstance(slope_evidence(slope(), CURVE, []), Missing)
    assert isinstance(slope_evidence(slope((3, "a")), CURVE, curve_of(-0.5)), Missing)
    assert isinstance(slope_evidence(slope("nowhere"), CURVE, curve_of(-0.5)), Missing)


def test_a_plateau_takes_the_density_along():
    records = [
        replace(r, losses={**r.losses, "hellinger": 0.07 * 1.01**r.replicate})
        for r in curve_of(0.0)
    ]
    check = slope(kind=Plateau)
    found = slope_evidence(check, CURVE, records)
    assert isinstance(found, PlateauEvidence)
    assert found.last_distance == pytest.approx(0.07, rel=0.02)
    assert check.judge(found) == "refutes"
    converging = slope_evidence(check, CURVE, curve_of(0.0))
    assert check.judge(converging) == "open"


def test_claims_that_need_no_samples():
    found = verify(CHEAP)
    verdicts = {result.claim.id: result.verdict for result in found.results}
    assert verdicts["mlmoe.proposition-1"] == "refuted as printed"
    assert verdicts["mlmoe.equation-11"] == "holds"
    assert verdicts["expert-count.theorem-1"] == "undecided"
    assert sum(found.counts.values()) == len(found.results)
    assert found.broken == []


def test_a_refuted_claim_needs_no_sweep_in_a_quick_verification(tmp_path):
    found = verify(["mlmoe.theorem-1.rate"], folder=tmp_path)
    (result,) = found.results
    assert result.verdict == "refuted as printed"
    assert "left out" in result.checks[0].text
    assert list(tmp_path.iterdir()) == []


def test_searches_that_cannot_change_a_verdict_are_left_out(monkeypatch):
    asked = []

    def recorded(check, quick):
        asked.append(check.name)
        return Missing("not run") if "explorer" in check.name else analyse(check, quick)

    monkeypatch.setattr(verification, "analyse", recorded)
    monkeypatch.setattr(
        verification, "gather_curves", lambda name, curves, *a, **k: dict.fromkeys(curves, NONE)
    )
    found = {
        result.claim.id: result.verdict
        for result in verify(["mlmoe.theorem-3"], folder=Path()).results
    }
    assert found["mlmoe.theorem-3"] == "refuted as printed"
    assert "pair, positions-outside" in asked
    assert "explorer, mlmoe-3" not in asked
    asked.clear()
    verify(["mlmoe.theorem-3"], quick=False, folder=Path())
    assert {"explorer, mlmoe-3", "explorer, mlmoe-3-table-4"} <= set(asked)


def test_verdicts_follow_the_evidence():
    claim = Claim(
        "mlmoe.made", "made", "Made.", checks=(slope(), Witness("opposite-scores", required=False))
    )
    good = SlopeEvidence(-0.5, (-0.55, -0.45), (1e10, 1e14), 30, 30, 0, 0)
    wide = replace(good, interval=(-0.9, -0.1))

    def result(evidence):
        checks = (
            CheckResult(claim.checks[0], evidence, claim.checks[0].judge(evidence), ""),
            CheckResult(claim.checks[1], Missing("not run"), "open", ""),
        )
        return ClaimResult(claim, checks)

    assert result(good).verdict == "holds"
    assert result(good).reason == ""
    assert result(wide).verdict == "undecided"
    assert "too few fits" in result(wide).reason
    assert result(Missing("no store")).reason.endswith("no store")


def test_analyses_that_fail_are_broken_and_those_without_a_library_are_not(monkeypatch):
    found = analyse(Witness("no-such-pair"), quick=True)
    assert found.broken
    assert "no-such-pair" in found.why

    def without(*_):
        raise ImportError("needs sympy")

    monkeypatch.setattr("moestat.papers.verify.analyses._evidence", without)
    assert analyse(Identity("mlmoe-8"), quick=True) == Missing("needs sympy")


def test_a_condition_is_checked_as_printed():
    check = Condition("algebraic", {"name": "ffn", "hidden": 1})
    found = analyse(check, quick=True)
    assert found.rank < found.n_functions
    assert check.judge(found) == "refutes"
    assert "W2" in shown(found)


def small_part(experiment, folder, cells, monkeypatch):
    """A store with the cells that a part of a sweep has, by a stand-in for the cell function."""
    spec = load_spec(find_spec(experiment))
    with create_store(folder / f"{experiment}.sqlite", spec) as store:
        chosen = [cell for cell in open_cells(spec, store) if cells(cell)]
        list(
            run_cells(
                spec, store, chosen, executor="serial", cell_function=lambda text, cell: made(cell)
            )
        )


def made(cell):
    loss = cell.n**-0.5 * (1.0 + 0.05 * math.sin(cell.replicate + math.log(cell.n)))
    losses = {"hellinger": loss, "also": {}, "cells": []}
    return Record(
        *(cell.key, cell.curve, cell.n, cell.replicate, "done"),
        loss=loss,
        certified=True,
        losses=losses,
        identity=cell.identity,
    )


def test_stores_that_are_there_are_used(tmp_path, monkeypatch):
    part = QUICK["microscope_mlmoe"]
    curves = ("sigmoid, k = 2", "sigmoid, k = 3")
    small_part(
        "microscope_mlmoe", tmp_path, lambda c: c.curve in curves and part.holds(c), monkeypatch
    )
    found = verify(["mlmoe.proposition-2"], folder=tmp_path)
    (result,) = found.results
    assert result.verdict == "holds"
    assert [r.source for r in result.checks] == ["microscope_mlmoe.sqlite, 20 of 240 cells"] * 2


def test_a_store_of_another_spec_is_left_alone_and_said(tmp_path):
    spec = load_spec(find_spec("quickstart"))
    with create_store(tmp_path / "microscope_mlmoe.sqlite", spec):
        pass
    result = invoke("--claim", "mlmoe.proposition-2", "--stores", tmp_path, "--json")
    assert result.exit_code == 1
    assert "belongs to" in result.stderr
    claim = json.loads(result.stdout)["claims"][0]
    assert claim["verdict"] == "undecided"
    assert claim["checks"][0]["evidence"] is None


def test_missing_cells_are_run_and_only_those(tmp_path, monkeypatch):
    told = []
    monkeypatch.setitem(QUICK, "quickstart", replace(QUICK["microscope_mlmoe"], smallest=0))
    spec = load_spec(find_spec("quickstart"))
    curve = spec.curves[0].name
    monkeypatch.setattr("moestat.sweep.cell.run_cell", lambda text, cell: made(cell))
    monkeypatch.setattr(
        "moestat.papers.verify.sweeps.run_cells",
        lambda *args, workers: run_cells(*args, executor="serial"),
    )
    arguments = ("quickstart", [curve], tmp_path)
    options = {"quick": True, "workers": 1, "tell": told.append}
    found = gather_curves(*arguments, **options)[curve]
    assert len(found.records) == len(spec.sizes) * QUICK["quickstart"].replicates
    assert {r.curve for r in found.records} == {curve}
    assert "of them run now" in found.source
    again = gather_curves(*arguments, **options)[curve]
    assert "run now" not in again.source
    assert len(told) == 1
    full = gather_curves(*arguments, **{**options, "quick": False})[curve]
    assert len(full.records) == full.planned == len(spec.sizes) * spec.replicates


def test_every_sweep_of_a_claim_has_a_quick_part():
    needed = {k.experiment for c in CLAIMS.values() for k in c.checks if isinstance(k, Slope)}
    assert needed == set(QUICK)
    for experiment, part in QUICK.items():
        spec = load_spec(find_spec(experiment))
        sizes = [n for n in spec.sizes if part.smallest <= n <= part.largest]
        assert len(sizes) >= 3
        assert part.replicates <= spec.replicates


SCHEMA = {
    "version": str,
    "mode": str,
    "seconds": float,
    "papers": dict,
    "counts": dict,
    "broken": list,
    "claims": list,
}
CLAIM = {
    **dict.fromkeys(("id", "paper", "place", "statement", "family", "loss"), str),
    **dict.fromkeys(("verdict", "reason", "note"), str),
    "predicted": dict,
    "checks": list,
}
CHECK = {
    **dict.fromkeys(
        ("check", "kind", "outcome", "text", "shortfall", "source", "note", "about"), str
    ),
    "required": bool,
}


def test_json(tmp_path):
    names = [option for name in CHEAP for option in ("--claim", name)]
    result = invoke(*names, "--stores", tmp_path, "--json", "--workers", 1)
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert {key: type(value) for key, value in found.items()} == SCHEMA
    assert set(found["counts"]) == {"holds", "refuted as printed", "undecided"}
    for claim in found["claims"]:
        assert {key: type(value) for key, value in claim.items()} == CLAIM
        for check in claim["checks"]:
            evidence = check.pop("evidence")
            assert evidence is None or isinstance(evidence, dict)
            assert {key: type(value) for key, value in check.items()} == CHECK


def test_table_and_page(tmp_path):
    page = tmp_path / "claims.md"
    result = invoke("--claim", "mlmoe.equation-8", "--stores", tmp_path, "--out", page)
    assert result.exit_code == 0
    assert "refuted as printed" in result.stdout
    assert "1 claims: 0 holds, 1 refuted as printed, 0 undecided (quick" in result.stdout
    text = page.read_text(encoding="utf-8")
    assert "| `equation-8` |" in text
    assert "equation, mlmoe-8: relative residual" in text


def test_the_page_lists_every_claim_once(monkeypatch):
    monkeypatch.setattr(verification, "analyse", lambda check, quick: Missing("not run"))
    monkeypatch.setattr(
        verification, "gather_curves", lambda name, curves, *a, **k: dict.fromkeys(curves, NONE)
    )
    page = markdown(verify())
    for claim in CLAIMS.values():
        assert page.count(f"- `{claim.id}`: ") == 1
        assert claim.untested in page or not claim.untested


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--claim", "nowhere"), "no claim has an id that begins with 'nowhere'"),
        (("--claim", "mlmoe.proposition-2", "--stores", "nowhere"), "there is no folder"),
        (("--claim", "mlmoe.equation", "--out", "claims.txt"), "--out must be a .md file"),
        (("--claim", "mlmoe.equation", "--out", "nowhere/x.md"), "there is no directory nowhere"),
    ],
)
def test_bad_input(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_open_outcomes_say_why():
    good = SlopeEvidence(-0.3, (-0.35, -0.25), (1e10, 1e14), 30, 30, 0, 0)
    cases = {
        "slower than predicted": good,
        "only 10 of 30": replace(good, n_certified=10),
        "too few fits": replace(good, interval=(-0.9, 0.2)),
        "may be 0": replace(good, interval=(-0.1, 0.1)),
        "no interval": replace(good, interval=(math.nan, math.nan)),
    }
    for words, evidence in cases.items():
        told = why_open(slope(), evidence, "open")
        assert words in told or words == "no interval"
        assert told
    assert why_open(slope(), good, "supports") == ""
