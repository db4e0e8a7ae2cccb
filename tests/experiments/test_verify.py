"""Verification: evidence to verdicts, the command line and its JSON."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from experiments.catalogue import CLAIMS, FACTS
from experiments.claims import equations
from experiments.claims.claim import Claim
from experiments.claims.kinds import (
    Condition,
    Identity,
    Inequality,
    Missing,
    PairEvidence,
    Slope,
    SlopeEvidence,
)
from experiments.claims.rules import VERDICTS
from experiments.claims.trial import Trial
from experiments.folders import FIGURES
from experiments.verify import (
    CheckResult,
    ClaimResult,
    FactResult,
    Verification,
    verification,
    verify,
)
from experiments.verify.cli import CLAIMS_PAGE, FACTS_PAGE, app
from experiments.verify.measured import slope_evidence
from experiments.verify.page import facts_markdown, markdown
from experiments.verify.results import EVIDENCE
from experiments.verify.sweeps import records_digest
from experiments.verify.verification import analyse
from moestat.sweep.run.runner import open_cells, run_cells
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import create_store

HALF = Fraction(-1, 2)
CURVE = SimpleNamespace(require_certificate=True)
CHEAP = [
    *("mlmoe.equation-8", "mlmoe.equation-11", "mlmoe.assumption-3"),
    *("attention.definition-2.strong", "expert-count.theorem", "compete-v1.table-5.text"),
    *("mlmoe.lemma-3", "mlmoe.section-3.vital", "mlmoe.theorem-2.experts"),
]


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


def test_agreement_outside_a_claims_class_decides_nothing():
    check = slope()
    seen = SlopeEvidence(-0.5, (-0.53, -0.47), (1e10, 1e14), 100, 100, 0, 0)
    claim = Claim("mlmoe.x", "Sec. 1", "Said.", checks=(check,))
    other = replace(claim, outside="other truths are tried")
    found = [ClaimResult(each, (CheckResult(check, seen, ""),)) for each in (claim, other)]
    assert [each.verdict for each in found] == ["consistent", "open"]
    assert found[1].reason == "other truths are tried"


@pytest.mark.parametrize("quantity", ["loss", "D9", (2, "mass"), (2, "a"), (2, "expert")])
def test_slopes_are_of_the_last_four_decades(quantity):
    found = slope_evidence(quantity, CURVE, curve_of(-0.5))
    assert found.slope == pytest.approx(-0.5)
    assert found.n == (1e8, 1e12)
    assert (found.n_fits, found.n_certified, found.n_left_out, found.n_failed) == (15, 15, 0, 0)


def test_what_does_not_enter_a_slope_is_counted():
    records = curve_of(-0.5)
    records[-1] = replace(records[-1], certified=False)
    records.append(Record("f", "c", 10**12, 9, "failed"))
    found = slope_evidence("loss", CURVE, records)
    assert (found.n_fits, found.n_left_out, found.n_failed) == (14, 1, 1)
    free = SimpleNamespace(require_certificate=False)
    found = slope_evidence("loss", free, records)
    assert (found.n_fits, found.n_certified) == (15, 14)


def test_a_slope_that_is_not_there():
    assert isinstance(slope_evidence("loss", CURVE, []), Missing)
    assert isinstance(slope_evidence((3, "a"), CURVE, curve_of(-0.5)), Missing)
    assert isinstance(slope_evidence("nowhere", CURVE, curve_of(-0.5)), Missing)


def test_claims_that_need_no_samples(tmp_path):
    found = verify([*CHEAP, "expert-count.lemma-8"], folder=tmp_path)
    verdicts = {result.claim.id: result.verdict for result in found.results}
    assert verdicts["mlmoe.equation-8"] == "misprint"
    assert verdicts["mlmoe.equation-8.intended"] == "proved"
    assert verdicts["mlmoe.equation-11"] == "proved"
    assert verdicts["mlmoe.assumption-3"] == "misprint"
    assert verdicts["attention.definition-2.strong"] == "proved"
    assert verdicts["expert-count.theorem-1"] == "unsupported"
    assert verdicts["compete-v1.table-5.text"] == "contradicted by the paper's own numbers"
    assert verdicts["mlmoe.lemma-3"] == "quoted"
    assert verdicts["mlmoe.section-3.vital"] == "unsupported"
    assert verdicts["mlmoe.theorem-2.experts"] == "true, for another reason"
    assert verdicts["expert-count.lemma-8"] == "proved"
    assert sum(found.counts.values()) == len(found.results)
    assert found.broken == []


def test_a_claim_that_facts_decide_needs_no_search(monkeypatch, tmp_path):
    asked = []

    def recorded(check, quick):
        asked.append(check.name)
        return Missing("not run") if check.name in searches else analyse(check, quick)

    searches = {"orbits, truth of mlmoe-1", "orbits, truth of mlmoe-1-table-2"}
    monkeypatch.setattr(verification, "analyse", recorded)
    (result, *_) = verify(["mlmoe.proposition-1"], folder=tmp_path).results
    assert result.verdict == "fails at special truths"
    assert "pair, single-expert-sigmoid" in asked
    assert not searches & set(asked)
    assert "not run" in result.checks[0].text
    verify(["mlmoe.proposition-1"], quick=False, folder=tmp_path)
    assert searches <= set(asked)


def result_of(evidence, fact_distance=None):
    claim = Claim(
        "mlmoe.made",
        "made",
        "Made.",
        checks=(slope(),),
        fails=() if fact_distance is None else ("opposite-scores",),
    )
    facts = ()
    if fact_distance is not None:
        fact = FACTS["opposite-scores"]
        pair = PairEvidence(fact_distance, 0.0, 1.0)
        facts = (FactResult(fact, tuple(CheckResult(c, pair, "") for c in fact.checks)),)
    return ClaimResult(claim, (CheckResult(claim.checks[0], evidence, ""),), facts)


def test_verdicts_follow_the_evidence():
    good = SlopeEvidence(-0.5, (-0.55, -0.45), (1e10, 1e14), 30, 30, 0, 0)
    wide = replace(good, interval=(-0.9, -0.1))
    assert result_of(good).verdict == "consistent"
    assert result_of(good).n_truths == 1
    assert result_of(good).reason == ""
    assert "too few fits" in result_of(wide).reason
    assert result_of(Missing("no store")).reason.endswith("no store")
    assert result_of(good, fact_distance=1e-17).verdict == "fails at special truths"
    unseen = result_of(wide, fact_distance=0.1)  # a witness that fails decides nothing
    assert unseen.verdict == "open"
    assert "opposite-scores was not seen" in unseen.reason


def test_analyses_that_fail_are_broken_and_those_without_a_library_are_not(monkeypatch):
    def fail():
        raise KeyError("no-such-truth")

    found = analyse(Inequality(Trial("mlmoe lost", fail)), quick=True)
    assert found.broken
    assert "no-such-truth" in found.why

    def without(*_):
        raise ImportError("needs sympy")

    monkeypatch.setattr(Identity, "gather", without)
    assert analyse(Identity(equations.MLMOE_8), quick=True) == Missing("needs sympy")


def test_a_condition_is_checked_as_printed():
    check = Condition("algebraic", {"name": "ffn", "hidden": 1})
    found = analyse(check, quick=True)
    assert found.rank < found.n_functions
    assert check.judge(found) == "refutes"
    assert "W2" in found.text


def small_store(experiment, folder, curves):
    """A store with made results of the late cells of some curves."""
    spec = load_spec(find_spec(experiment))
    with create_store(folder / f"{experiment}.sqlite", spec) as store:
        cells = [
            cell
            for cell in open_cells(spec, store)
            if cell.curve in curves and cell.n > 0.9e10 and cell.replicate < 4
        ]
        list(
            run_cells(
                spec, store, cells, executor="serial", cell_function=lambda text, cell: made(cell)
            )
        )


def made(cell):
    loss = cell.n**-0.5 * (1.0 + 0.05 * math.sin(cell.replicate + math.log(cell.n)))
    losses = {"hellinger": loss, "also": {}, "cells": []}
    return Record(
        cell.key,
        cell.curve,
        cell.n,
        cell.replicate,
        "done",
        loss=loss,
        certified=True,
        losses=losses,
        identity=cell.identity,
    )


def test_stores_that_are_there_are_used_and_named_by_their_digest(tmp_path):
    small_store("microscope_mlmoe", tmp_path, ("sigmoid, k = 2", "sigmoid, k = 3"))
    (result,) = verify(["mlmoe.proposition-2"], folder=tmp_path).results
    for check in result.checks:
        assert check.outcome == "supports"
        assert re.fullmatch(
            r"microscope_mlmoe.sqlite, 20 of 240 cells, digest [0-9a-f]{12}", check.source
        )


def test_the_digest_of_records_knows_what_they_say_and_not_their_order():
    records = curve_of(-0.5)
    changed = [replace(records[0], loss=records[0].loss * 1.01), *records[1:]]
    assert records_digest(records) == records_digest(records[::-1])
    assert records_digest(records) != records_digest(changed)


def test_a_store_of_another_spec_is_said(tmp_path):
    spec = load_spec(find_spec("quickstart"))
    with create_store(tmp_path / "microscope_mlmoe.sqlite", spec):
        pass
    result = invoke("--claim", "mlmoe.proposition-2", "--stores", tmp_path, "--json")
    assert result.exit_code == 1
    assert "holds no cell of the experiment microscope_mlmoe" in result.stderr
    claim = json.loads(result.stdout)["claims"][0]
    assert claim["checks"][0]["outcome"] == "open"
    assert claim["checks"][0]["evidence"] is None


def test_without_store_or_kept_evidence_the_command_is_said(tmp_path):
    found = verify(["mlmoe.proposition-2"], folder=tmp_path)
    assert {check.outcome for check in found.results[0].checks} == {"open"}
    assert found.without_store == {"microscope_mlmoe": 2}
    assert "python -m moestat.sweep run microscope_mlmoe --out" in markdown(found)
    assert found.broken == []


SCHEMA = {
    "version": str,
    "mode": str,
    "seconds": float,
    "papers": dict,
    "counts": dict,
    "broken": list,
    "without_store": dict,
    "contradictions": list,
    "facts": list,
    "claims": list,
}
CLAIM = {
    **dict.fromkeys(("id", "paper", "place", "statement", "family", "loss"), str),
    **dict.fromkeys(("verdict", "reason", "note"), str),
    "repairs": str,
    "predicted": dict,
    "truths": int,
    "facts": list,
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
    assert set(found["counts"]) == set(VERDICTS)
    for claim in found["claims"]:
        scope = claim.pop("scope")
        assert scope is None or scope["truths"] in ("all", "almost all", "some")
        assert {key: type(value) for key, value in claim.items()} == CLAIM
        for check in claim["checks"]:
            evidence = check.pop("evidence")
            assert evidence is None or isinstance(evidence, dict)
            assert {key: type(value) for key, value in check.items()} == CHECK


def test_worker_processes_find_what_one_process_finds():
    claims = "mlmoe.equation-8", "mlmoe.equation-11"
    alone, shared = (verify(claims, workers=workers) for workers in (1, 2))
    assert alone.results == shared.results
    assert "misprint" in {result.verdict for result in shared.results}


def test_the_pages_list_every_claim_and_fact_once_and_come_back_from_the_evidence(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(verification, "analyse", lambda check, quick: Missing("not run"))
    result = invoke("--stores", tmp_path, "--workers", 1)
    assert result.exit_code == 0
    page = (tmp_path / CLAIMS_PAGE).read_text(encoding="utf-8")
    facts = (tmp_path / FACTS_PAGE).read_text(encoding="utf-8")
    for claim in CLAIMS.values():
        assert page.count(f"- `{claim.id}`: ") == (not claim.repairs)
        assert claim.repairs == "" or f"| `{claim.repairs}` |" in page
    for name in FACTS:
        assert facts.count(f"python -m experiments.verify fact {name}`") == 1
    kept = json.loads((tmp_path / EVIDENCE).read_text(encoding="utf-8"))
    assert markdown(Verification.restored(kept)) == page


def test_a_fact_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("fact", "router-gradients")
    assert result.exit_code == 0
    assert "**seen**" in result.stdout
    assert list(tmp_path.iterdir()) == []
    assert "unknown fact 'x'; known: opposite-scores" in invoke("fact", "x").stderr


@pytest.fixture(scope="module")
def shipped():
    return json.loads((FIGURES / EVIDENCE).read_text(encoding="utf-8"))


def test_the_shipped_pages_are_those_of_their_evidence_under_the_present_rules(shipped):
    found = Verification.restored(shipped)
    assert (FIGURES / CLAIMS_PAGE).read_text(encoding="utf-8") == markdown(found)
    assert (FIGURES / FACTS_PAGE).read_text(encoding="utf-8") == facts_markdown(found)


def test_the_shipped_evidence_is_of_every_check(shipped):
    owners = (*CLAIMS.values(), *FACTS.values())
    assert {check.name for owner in owners for check in owner.checks} == set(shipped["checks"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--claim", "nowhere"), "no claim has an id that begins with 'nowhere'"),
        (("--claim", "mlmoe.proposition-2", "--stores", "nowhere"), "there is no folder"),
        (("--out", "nowhere"), "there is no directory nowhere"),
        (("--claim", "mlmoe.equation", "--out", "."), "the pages are of all claims"),
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
        told = slope().shortfall(evidence)
        assert words in told or words == "no interval"
        assert told
    assert slope().shortfall(replace(good, slope=-0.5, interval=(-0.55, -0.45))) == ""
