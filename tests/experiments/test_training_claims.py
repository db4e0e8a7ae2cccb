"""Claims on training name runs that are there, and the arithmetic of the papers' tables."""

from __future__ import annotations

import pytest

from experiments.claims.kinds import Printed, TunedContrast
from experiments.compete.training_claims import CLAIMS
from experiments.verify.measured import measured
from moestat.sweep.kinds.training.analysis import METRICS
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import create_store

CONTRASTS = [
    check for claim in CLAIMS for check in claim.checks if isinstance(check, TunedContrast)
]


@pytest.mark.parametrize("experiment", sorted({check.experiment for check in CONTRASTS}))
def test_contrasts_are_of_runs_that_are_there(experiment):
    spec = parse_spec(find_spec(experiment).read_text())
    assert spec.axis == "choice"
    names = {curve.name for curve in spec.curves}
    for check in CONTRASTS:
        if check.experiment == experiment:
            assert check.metric in METRICS
            assert {check.larger, check.smaller} <= names


def _put(store, curve, x, validation, overlap):
    """Three runs at a point of the grid."""
    for replicate, value in enumerate(overlap):
        losses = {
            "excess": 0.1,
            "test_loss": 0.2,
            "overlap": value,
            "validation_loss": validation,
            "curve": {"step": [0, 500], "loss": [1.0, validation]},
        }
        key = f"{curve} | choice={x} | replicate={replicate}"
        store.put([Record(key, curve, x, replicate, "done", losses=losses)])


def test_methods_are_compared_each_at_its_best_point(tmp_path):
    check = TunedContrast("compete_clusters", "overlap", "CompeteSMoE v2", "SMoE")
    spec = parse_spec(find_spec("compete_clusters").read_text())
    assert measured(check, tmp_path) is None
    with create_store(tmp_path / "compete_clusters.sqlite", spec) as store:
        _put(store, "SMoE", 1, 0.3, [0.9, 0.9, 0.9])
        _put(store, "SMoE", 2, 0.2, [0.2, 0.3, 0.1])
        _put(store, "CompeteSMoE v2", 1, 0.2, [0.6, 0.8, 0.4])
        _put(store, "CompeteSMoE v2", 2, 0.3, [0.0, 0.0, 0.0])
    stored, _ = measured(check, tmp_path)
    assert stored.difference == pytest.approx(0.4)
    assert check.judge(stored) == "supports"


@pytest.mark.parametrize(
    ("claim", "against"),
    [
        ("compete.table-3.averages", []),
        ("compete-v1.table-9", []),
        ("compete-v1.table-10.text", []),
        ("compete.table-10.text", ["0.31, printed 0.49", "0.5, printed 0.3"]),
        ("compete.table-1.ranks", ["PCosine: 3.50, printed 3.42"]),
        ("compete-v1.table-4.text", ["1.32 is not above 1.33"]),
        ("compete-v1.table-5.text", ["not above 1.321", "not above 1.328"]),
        ("compete-v1.table-2.fixed", ["XMoE: 1.237", "StableMoE: 1.237", "1.123 is not above"]),
        ("compete.table-4.memory", ["+5.9%", "+5.5%", "+5.7%", "+9.8%"]),
    ],
)
def test_arithmetic_of_the_tables(claim, against):
    (found,) = (each for each in CLAIMS if each.id == claim)
    (check,) = (each for each in found.checks if isinstance(each, Printed))
    evidence = check.sentence.evidence()
    assert len(evidence.against) == len(against)
    assert all(words in told for words, told in zip(against, evidence.against, strict=True))
    assert check.judge(evidence) == ("refutes" if against else "supports")
