"""Slopes that papers measured, beside replays."""

from fractions import Fraction

import pytest

from experiments.catalogue import CLAIMS
from experiments.claims.kinds import Replayed, ReplayEvidence
from experiments.verify.measured import measured
from moestat.sweep.run.runner import open_cells
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec
from moestat.sweep.store.record import Record
from moestat.sweep.store.store import create_store

REPLAYS = [check for claim in CLAIMS.values() for check in claim.checks if type(check) is Replayed]
CHECK = Replayed("mlmoe_figure1", "softmax, k = 4, EM", Fraction("-0.28"))


@pytest.mark.parametrize("check", REPLAYS, ids=lambda check: check.name)
def test_replays_are_uncertified_curves_with_the_published_slope(check):
    curve = load_spec(find_spec(check.experiment)).curve(check.curve)
    assert (curve.published, curve.require_certificate) == (float(check.published), False)


def test_a_replay_is_read_from_its_store(tmp_path):
    assert measured(CHECK, tmp_path) is None
    spec = load_spec(find_spec(CHECK.experiment))
    with create_store(tmp_path / f"{CHECK.experiment}.sqlite", spec) as store:
        cells = [cell for cell in open_cells(spec, store) if cell.curve == CHECK.curve]
        store.put(
            [
                Record(
                    cell.key,
                    cell.curve,
                    cell.n,
                    cell.replicate,
                    "done",
                    loss=cell.n**-0.3 * (1.0 + 0.01 * cell.replicate),
                    identity=cell.identity,
                )
                for cell in cells
            ]
        )
    found, source = measured(CHECK, tmp_path)
    assert isinstance(found, ReplayEvidence)
    assert found.slope == pytest.approx(-0.3)
    assert source.startswith("mlmoe_figure1.sqlite, ")


@pytest.mark.parametrize(
    ("interval", "outcome", "why"),
    [
        ((-0.38, -0.2), "supports", ""),
        ((-0.56, -0.21), "open", "too few fits"),
        ((-0.2, -0.1), "refutes", ""),
    ],
)
def test_a_replay_agrees_leaves_open_or_does_not_reproduce(interval, outcome, why):
    evidence = ReplayEvidence(sum(interval) / 2, interval)
    assert CHECK.judge(evidence) == outcome
    assert CHECK.shortfall(evidence).startswith(why)
