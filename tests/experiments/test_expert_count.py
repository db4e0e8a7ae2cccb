"""Trials of expert-count: routing probabilities, and what each inequality comes to."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.attention.definitions import FAMILIES
from experiments.catalogue import CLAIMS, FACTS
from experiments.claims import lipschitz
from experiments.claims.kinds import Contrast, Inequality, InequalityEvidence, judge_inequality
from experiments.claims.witnesses.quadratic_gates import ATTENTION_GATE_PAIRS
from experiments.expert_count.routing import routing_probabilities
from experiments.expert_count.trials import TRIALS
from experiments.folders import FIGURES
from experiments.mlmoe import independence
from experiments.verify.results import EVIDENCE, Verification
from experiments.verify.verification import verify
from moestat.sweep import create_store, parse_spec
from moestat.sweep.kinds.network.kind import METRICS
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.store.record import Record


@pytest.mark.parametrize("n_experts", [1, 2, 3, 6])
def test_routing_probabilities_are_shares_of_the_largest_noisy_scores(n_experts):
    rng = np.random.default_rng(n_experts)
    h = 0.4 * rng.normal(size=n_experts)
    p = routing_probabilities(h)
    assert p.sum() == pytest.approx(1.0, rel=1e-13)
    n = 200_000
    chosen = (h[:, None] + rng.random((n_experts, n))).argmax(axis=0)
    shares = np.bincount(chosen, minlength=n_experts) / n
    assert np.abs(shares - p).max() < 4 * 0.5 / np.sqrt(n)


def test_equal_scores_share_evenly_and_a_lead_of_one_takes_all():
    assert routing_probabilities(np.full(5, 3.0)) == pytest.approx(0.2, rel=1e-13)
    assert routing_probabilities(np.array([0.0, 1.0, -2.0])).tolist() == [0.0, 1.0, 0.0]


def test_an_inequality_is_refuted_by_more_than_rounding_only():
    assert judge_inequality(InequalityEvidence(1e-12, 3)) == "supports"
    assert judge_inequality(InequalityEvidence(0.01, 3)) == "refutes"
    assert judge_inequality(InequalityEvidence(float("nan"), 3)) == "open"


@pytest.mark.parametrize("kept", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_verdicts_of_the_paper_and_no_trial_without_a_claim(kept, tmp_path):
    """By the evidence that is kept in each run, computed anew by ``pytest -m slow``."""
    if kept:
        found = Verification.restored(json.loads((FIGURES / EVIDENCE).read_text(encoding="utf-8")))
    else:
        found = verify(["expert-count"], folder=tmp_path)
    verdicts = {
        result.claim.id.removeprefix("expert-count."): result.verdict
        for result in found.results
        if result.claim.paper == "expert-count" and ".figure" not in result.claim.id
    }
    assert found.broken == []
    assert verdicts["equation-76"] == "misprint"
    assert verdicts["equal-weights"] == "unsupported"
    own = {"lemma-16.activation", "second-stage"}
    assert {verdicts[name] for name in own} == {"contradicted by the paper's own numbers"}
    seen = {name for name, verdict in verdicts.items() if verdict in ("consistent", "proved")}
    growth = {"lemma-14", "lemma-14.only-when", "lemma-27", "lemma-27.printed"}
    growth |= {"lemma-14.alignment", "lemma-19"}
    repaired = {"lemma-15.repaired", "lemma-27.repaired"}
    assert seen - repaired == set(TRIALS) - {"equation-76"} - growth
    assert repaired <= seen
    assert verdicts["lemma-19"] == "quoted"
    false = {"lemma-14.alignment", "lemma-15", "lemma-18"}
    assert {verdicts[name] for name in false} == {"fails everywhere"}
    assert verdicts["lemma-14"] == "quoted"
    assert verdicts["lemma-14.only-when"] == "fails everywhere"
    assert verdicts["lemma-27"] == "fails at special truths"
    unsupported = {"theorem-1", "theorem-2", "proposition-3", "lemma-23", "lemma-24"}
    assert {verdicts[name] for name in unsupported} == {"unsupported"}
    open_ = {name for name, verdict in verdicts.items() if verdict == "open"}
    assert open_ == {"lemma-20", "lemma-22"}
    owners = (*CLAIMS.values(), *FACTS.values())
    checks = [check for owner in owners for check in owner.checks]
    tried = [check for check in checks if isinstance(check, Inequality)]
    elsewhere = [independence.SECOND_ORDER, FAMILIES, ATTENTION_GATE_PAIRS]
    elsewhere += [getattr(lipschitz, n) for n in lipschitz.__all__]
    known = {trial.name for trial in (*TRIALS.values(), *elsewhere)}
    assert {check.trial.name for check in tried} == known


def test_evidence_says_what_it_found():
    six = TRIALS["lemma-6"].evidence()
    assert "0.09 at M = 4, 0.62 at M = 8, 0.96 at M = 16" in six.detail


def _store(path, accuracies):
    spec = parse_spec(find_spec("expert_count_figure1").read_text())
    with create_store(path, spec) as store:
        for (curve, M), values in accuracies.items():
            for replicate, value in enumerate(values):
                key = f"{curve} | n_experts={M} | replicate={replicate}"
                losses = {
                    **dict.fromkeys(METRICS.words, 0.5),
                    "test_accuracy": value,
                    "entropy": 1 - value,
                }
                store.put([Record(key, curve, M, replicate, "done", losses=losses)])


def test_figures_are_judged_by_differences_of_paired_runs(tmp_path):
    mlp = {("MLP, P = 4", M): [0.9, 0.8, 0.85] for M in (4, 8, 32, 64)}
    _store(
        tmp_path / "expert_count_figure1.sqlite",
        {
            **mlp,
            ("MLP, P = 4", 16): [0.95, 0.86, 0.9],
            ("CNN, P = 4", 8): [0.9, 0.9, 0.9],
            ("CNN, P = 4", 16): [0.95, 0.95, 0.96],
            ("CNN, P = 4", 64): [0.9, 0.7, 0.95],
        },
    )
    found = verify(["expert-count.figure"], folder=tmp_path)
    results = {result.claim.id.removeprefix("expert-count."): result for result in found.results}
    assert results["figure-1.mlp"].verdict == "consistent"
    assert results["figure-1.mlp"].checks[0].evidence.difference == pytest.approx(0.16 / 3)
    cnn = {check.check.smaller[1]: check for check in results["figure-1.cnn"].checks}
    assert results["figure-1.cnn"].verdict == "not reproduced"
    assert cnn[16].outcome == "refutes"
    assert cnn[64].shortfall == "no difference"
    assert "replicates that it takes" in cnn[32].shortfall
    assert found.broken == []


def test_figures_without_a_store_are_open(tmp_path):
    found = verify(["expert-count.figure"], folder=tmp_path)
    assert {result.verdict for result in found.results} == {"open"}
    assert "python -m moestat.sweep run expert_count_figure1" in found.results[0].reason


def test_what_a_verification_kept_stands_in_for_its_stores(tmp_path, monkeypatch):
    runs = {("MLP, P = 4", M): [0.9, 0.8, 0.85 + M / 1000] for M in (4, 8, 16, 32, 64)}
    _store(tmp_path / "expert_count_figure1.sqlite", runs)
    stored = verify(["expert-count.figure-1.mlp"], folder=tmp_path)
    (tmp_path / EVIDENCE).write_text(json.dumps(stored.evidence()))
    (tmp_path / "expert_count_figure1.sqlite").unlink()
    kept = verify(["expert-count.figure-1.mlp"], folder=tmp_path)
    for ours, theirs in zip(kept.results[0].checks, stored.results[0].checks, strict=True):
        assert (ours.evidence, ours.source) == (theirs.evidence, theirs.source)
        assert ours.source.startswith("expert_count_figure1.sqlite, digest ")


def test_contrasts_are_of_curves_and_places_of_the_shipped_experiment():
    for claim in CLAIMS.values():
        for check in claim.checks:
            if isinstance(check, Contrast) and claim.paper == "expert-count":
                spec = parse_spec(find_spec(check.experiment).read_text())
                for curve, x in (check.larger, check.smaller):
                    assert x in spec.sizes
                    assert spec.curve(curve).name == curve
                assert spec.kind != "network" or check.metric in METRICS.words
