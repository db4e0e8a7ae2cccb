"""Kept evidence stays where a new run agrees with it, and goes where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.claims import equations
from experiments.claims.kinds import Far, FarEvidence, Identity, IdentityEvidence, Missing
from experiments.verify.results import CheckResult
from experiments.verify.steady import agree, steady


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1.6e-16, 0.0, True),
        (1.7e-13, 2.7e-13, False),
        (1.0883315978e-9, 1.0883315110e-9, True),
        (float("nan"), float("nan"), True),
        ((1.0, 2.0), (1.0, 2.0, 3.0), False),
        ("b 0.00071 ~ D^0.50", "b 0.00072 ~ D^0.50", True),
        ("b 0.00071 ~ D^0.50", "b 0.00071 ~ D^0.60", False),
        ("b 0.00071", "a 0.00071", False),
        (3, 4, False),
    ],
)
def test_values_agree_up_to_rounding(one, two, same):
    assert agree(one, two) is same


def test_what_is_seen_again_keeps_its_digits():
    check = Identity(equations.ATTENTION_ROW)
    kept = CheckResult(check, IdentityEvidence(0.0), "computed")
    assert steady(CheckResult(check, IdentityEvidence(1e-16), "computed"), kept) is kept
    other = CheckResult(check, IdentityEvidence(0.5), "computed")
    assert steady(other, kept) is other
    lost = CheckResult(check, Missing("no library"), "computed")
    assert steady(lost, kept) is lost
    assert steady(other, None) is other


def test_another_outcome_is_never_hidden():
    check = Far("mlmoe-1")
    found = FarEvidence(9, 2, 0.0, 0.0, "")
    kept = CheckResult(check, found, "computed")
    fewer = CheckResult(check, replace(found, n_reached=1), "computed")
    assert steady(fewer, kept) is fewer
