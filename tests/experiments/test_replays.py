"""Slopes that papers measured, beside replays; and slopes that only a sweep's report has."""

from fractions import Fraction

import pytest

from experiments.catalogue import CLAIMS
from experiments.claims.checks import Replayed, Slope
from experiments.claims.evidence import Missing, ReplayEvidence
from experiments.verify.tables import page_slope, replayed_slope
from experiments.verify.words import why_open
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec

REPLAYS = [check for claim in CLAIMS.values() for check in claim.checks if type(check) is Replayed]
CHECK = Replayed("mlmoe_figure1", "softmax, k = 4, EM", Fraction("-0.28"))
REPORT = """# T

### sigmoid, sparse, gelu

| fits | 24 of 25 cells, 3 left out of the rate |
| slope of the regression error | -0.52 [-0.56, -0.48] |

### sigmoid, sparse, linear

| fits | 25 of 25 cells, 0 left out of the rate |
"""


@pytest.mark.parametrize("check", REPLAYS, ids=lambda check: check.name)
def test_replays_are_uncertified_curves_with_the_published_slope(check):
    curve = load_spec(find_spec(check.experiment)).curve(check.curve)
    assert (curve.published, curve.require_certificate) == (float(check.published), False)


def test_a_replay_is_read_from_its_report(tmp_path):
    found, _ = replayed_slope(CHECK, tmp_path)
    assert isinstance(found, Missing)
    row = "| softmax, k = 4, EM † | -0.28 | -0.39 [-0.56, -0.21] | | 0% |\n"
    (tmp_path / "mlmoe_figure1.md").write_text(row, encoding="utf-8")
    found, source = replayed_slope(CHECK, tmp_path)
    assert found == ReplayEvidence(-0.39, (-0.56, -0.21))
    assert source.startswith("mlmoe_figure1.md, digest ")


@pytest.mark.parametrize(
    ("interval", "outcome", "why"),
    [
        ((-0.38, -0.2), "supports", ""),
        ((-0.56, -0.21), "open", "too few fits"),
        ((-0.2, -0.1), "open", "not reproduced"),
    ],
)
def test_a_replay_agrees_or_leaves_the_claim_open(interval, outcome, why):
    evidence = ReplayEvidence(sum(interval) / 2, interval)
    assert CHECK.judge(evidence) == outcome
    assert why_open(CHECK, evidence, outcome).startswith(why)


def test_a_regression_error_is_read_from_a_report(tmp_path):
    (tmp_path / "attention_table1.md").write_text(REPORT, encoding="utf-8")
    check = Slope("attention_table1", "sigmoid, sparse, gelu", "regression-error", Fraction(-1, 2))
    found, source = page_slope(check, tmp_path)
    assert not isinstance(found, Missing)
    assert (found.slope, found.interval) == (-0.52, (-0.56, -0.48))
    assert (found.n_fits, found.n_certified, found.n_left_out) == (21, 21, 3)
    assert source.startswith("attention_table1.md, digest ")
    for curve, quantity in (
        ("sigmoid, sparse, linear", "regression-error"),
        ("sigmoid, sparse, gelu", "loss"),
    ):
        other = Slope("attention_table1", curve, quantity, Fraction(-1, 2))
        assert isinstance(page_slope(other, tmp_path)[0], Missing)
