"""Claims on training name runs that are there, and the arithmetic of the papers' tables."""

from __future__ import annotations

import pytest

from moestat.papers.catalogue import FACTS
from moestat.papers.claims.checks import Contrast, Identity
from moestat.papers.claims.equations import EQUATIONS
from moestat.papers.compete.training_claims import CLAIMS
from moestat.sweep.experiments import find_spec
from moestat.sweep.spec import parse_spec
from moestat.sweep.training.analysis import METRICS

CONTRASTS = [check for claim in CLAIMS for check in claim.checks if isinstance(check, Contrast)]


@pytest.mark.parametrize("experiment", sorted({check.experiment for check in CONTRASTS}))
def test_contrasts_are_of_runs_that_are_there(experiment):
    spec = parse_spec(find_spec(experiment).read_text())
    names = {curve.name for curve in spec.curves}
    for check in CONTRASTS:
        if check.experiment == experiment:
            assert check.metric in METRICS
            for curve, x in (check.larger, check.smaller):
                assert curve in names
                assert x in spec.sizes


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [
        ("compete.table-3.averages", "supports"),
        ("compete-v1.table-9", "supports"),
    ],
)
def test_arithmetic_of_the_tables(claim, outcome):
    (found,) = (each for each in CLAIMS if each.id == claim)
    outcomes = []
    for check in found.checks:
        assert isinstance(check, Identity)
        outcomes.append(check.judge(EQUATIONS[check.equation].evidence()))
    assert outcomes == [outcome]


def test_the_drops_of_table_10_are_a_misprint_that_arithmetic_confirms():
    (found,) = (each for each in CLAIMS if each.id == "compete.table-10.text")
    fact = FACTS[found.misprint[0]]
    outcomes = [check.judge(EQUATIONS[check.equation].evidence()) for check in fact.checks]
    assert outcomes
    assert fact.confirmed(outcomes)
