"""Decision rules as functions of made evidence: each must be able to say every word it has."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from experiments.claims.kinds import (
    DependenceEvidence,
    IdentityEvidence,
    Missing,
    OrbitEvidence,
    Order,
    OrderEvidence,
    PairEvidence,
    SequenceEvidence,
    Slope,
    SlopeEvidence,
    judge_dependence,
    judge_exponent,
    judge_identity,
    judge_infimum,
    judge_orbit,
    judge_order,
    judge_pair,
    judge_power,
    judge_sequence,
    judge_slope,
    sequence_exponent,
)
from experiments.claims.rules import (
    CONSISTENT,
    EVERYWHERE,
    MISPRINT,
    OPEN,
    OPEN_VERDICT,
    PROVED,
    REFUTES,
    SPECIAL,
    SUPPORTS,
    VACUOUS,
    Outcome,
    decide,
)

HALF = Fraction(-1, 2)
GOOD = SlopeEvidence(-0.5, (-0.55, -0.45), (1e10, 1e14), 100, 100, 0, 0)
LADDER = (1e-1, 1e-2, 1e-3)


def slope(low, high, **changes):
    return replace(GOOD, slope=(low + high) / 2.0, interval=(low, high), **changes)


def ladder(power, **changes):
    return SequenceEvidence(LADDER, tuple(loss**power for loss in LADDER), **changes)


@pytest.mark.parametrize(
    ("evidence", "outcome"),
    [
        (GOOD, SUPPORTS),
        (slope(-0.7, -0.6), SUPPORTS),  # faster than an upper bound
        (slope(-0.485, -0.42), SUPPORTS),  # reaches the slope of (log n / n)^(1/2) at 1e12
        (slope(-0.47, -0.42), OPEN),  # too slow, which may be pre-asymptotic
        (slope(-0.02, -0.01), OPEN),  # flat, and still no refutation
        (slope(-0.6, 0.01), OPEN),  # may be no rate at all
        (slope(-0.8, -0.4), OPEN),  # too wide
        (slope(-0.55, -0.45, n_certified=80), OPEN),  # fits that did not converge
        (slope(-0.55, -0.45, n_fits=0, n_certified=0), OPEN),
        (slope(math.nan, math.nan), OPEN),
    ],
)
def test_a_slope_supports_or_leaves_open(evidence, outcome):
    assert judge_slope(evidence, HALF) == outcome


def test_the_log_factor_matters_more_at_small_n():
    small = replace(slope(-0.46, -0.40), n=(1e3, 1e5))
    assert judge_slope(small, HALF) == SUPPORTS
    assert judge_slope(replace(small, n=(1e10, 1e14)), HALF) == OPEN


@pytest.mark.parametrize(
    ("pair", "found"),
    [
        (PairEvidence(1e-16, 1e-17, 1.0), True),
        (PairEvidence(1e-10, 1e-17, 1.0), False),
        (PairEvidence(1e-16, 1e-9, 1.0), False),
        (PairEvidence(0.0, 0.0, 0.0), False),
    ],
)
def test_a_pair_needs_one_density_and_two_measures(pair, found):
    assert judge_pair(pair, REFUTES) == (REFUTES if found else OPEN)
    assert judge_pair(pair, SUPPORTS) == (SUPPORTS if found else OPEN)


def test_exponent_of_a_sequence_leaves_rounding_out():
    far, near = (1e-1, 1e-2, 1e-3, 1e-6), (1e-4, 1e-8, 1e-12, 1e-15)
    fit = sequence_exponent(SequenceEvidence(far, near))
    assert fit.exponent == pytest.approx(4.0)
    assert fit.decades == pytest.approx(2.0)
    assert math.isnan(sequence_exponent(SequenceEvidence(far[:2], near[:2])).exponent)


def test_rounding_is_what_the_evidence_says():
    loss = (1e-1, 10**-1.5, 1e-2)
    distance = tuple(1e-4 * value**6 for value in loss)
    assert math.isnan(sequence_exponent(SequenceEvidence(loss, distance)).exponent)
    resolved = SequenceEvidence(loss, distance, smallest=True, rounding=1e-17)
    assert sequence_exponent(resolved).exponent == pytest.approx(6.0)
    assert judge_exponent(resolved, 6) == "supports"


@pytest.mark.parametrize(
    ("evidence", "sequence", "infimum"),
    [
        (ladder(2.0), REFUTES, REFUTES),
        (ladder(1.0), OPEN, OPEN),  # one sequence says nothing for the bound
        (ladder(1.0, smallest=True), OPEN, SUPPORTS),
        (ladder(0.5, smallest=True), OPEN, SUPPORTS),
        (ladder(1.15, smallest=True), OPEN, OPEN),
        (ladder(2.0, smallest=True), REFUTES, REFUTES),
        (SequenceEvidence(LADDER, (0.0, 0.0, 0.0), smallest=True), REFUTES, REFUTES),
        (SequenceEvidence((0.0, 0.0), (0.0, 0.0), smallest=True), OPEN, OPEN),
        (SequenceEvidence(LADDER, (1e-2, 1e-6, 1e-5), smallest=True), OPEN, OPEN),  # no line
        (SequenceEvidence((1e-1, 9e-2, 8e-2), (1e-2, 8.1e-3, 6.4e-3)), OPEN, OPEN),  # too short
        (SequenceEvidence((), ()), OPEN, OPEN),
    ],
)
def test_sequences_and_infima(evidence, sequence, infimum):
    assert judge_sequence(evidence) == sequence
    assert judge_infimum(evidence) == infimum


@pytest.mark.parametrize(
    ("evidence", "claimed", "outcome"),
    [
        (DependenceEvidence(5, 5, 1e6, ()), True, SUPPORTS),
        (DependenceEvidence(5, 4, 1e6, ("x = y",)), True, REFUTES),
        (DependenceEvidence(5, 4, 1e6, ("x = y",)), False, SUPPORTS),
        (DependenceEvidence(5, 5, 1e6, ()), False, REFUTES),
        (DependenceEvidence(5, 4, 10.0, ("x = y",)), True, OPEN),
    ],
)
def test_dependence(evidence, claimed, outcome):
    assert judge_dependence(evidence, claimed) == outcome


@pytest.mark.parametrize(
    ("residual", "holds", "outcome"),
    [
        (1e-12, True, SUPPORTS),
        (0.5, True, REFUTES),
        (0.5, False, SUPPORTS),
        (1e-12, False, REFUTES),
        (1e-4, True, OPEN),
        (math.nan, True, OPEN),
    ],
)
def test_identity(residual, holds, outcome):
    assert judge_identity(IdentityEvidence(residual), holds) == outcome


@pytest.mark.parametrize(
    ("evidence", "outcome"),
    [
        (ladder(4.1, smallest=True), SUPPORTS),
        (ladder(4.1), OPEN),
        (ladder(2.0, smallest=True), OPEN),
    ],
)
def test_exponent_near_the_one_expected(evidence, outcome):
    assert judge_exponent(evidence, 4) == outcome


@pytest.mark.parametrize(
    ("bounds", "claimed", "at_least", "outcome"),
    [
        ((4, 4), 4, False, SUPPORTS),
        ((4, 6), 4, False, OPEN),
        ((6, 6), 4, False, REFUTES),
        ((8, 8), 7, True, SUPPORTS),
        ((4, 8), 7, True, OPEN),
        ((4, 6), 7, True, REFUTES),
    ],
)
def test_order(bounds, claimed, at_least, outcome):
    assert judge_order(OrderEvidence(3, *bounds), claimed, at_least) == outcome


SEEN, SHOWN = Outcome(SUPPORTS), Outcome(SUPPORTS, strength=PROVED)


@pytest.mark.parametrize(
    ("outcomes", "roles", "verdict"),
    [
        ([SEEN, SEEN], [], CONSISTENT),
        ([SEEN, SHOWN], [], CONSISTENT),
        ([SHOWN, SHOWN], [], PROVED),
        ([SEEN, Outcome(OPEN)], [], OPEN_VERDICT),
        ([SEEN, Outcome(OPEN, required=False)], [], CONSISTENT),
        ([Outcome(SUPPORTS, required=False)], [], OPEN_VERDICT),
        ([SEEN, Outcome(REFUTES, required=False)], [], SPECIAL),
        ([Outcome(REFUTES, scope=EVERYWHERE), SHOWN], [], EVERYWHERE),
        ([], [PROVED], PROVED),
        ([SEEN], [SPECIAL], SPECIAL),
        ([Outcome(REFUTES)], [EVERYWHERE], EVERYWHERE),
        ([Outcome(REFUTES)], [MISPRINT], MISPRINT),
        ([SEEN], [EVERYWHERE, VACUOUS, PROVED], VACUOUS),
        ([], [], OPEN_VERDICT),
    ],
)
def test_the_verdict(outcomes, roles, verdict):
    assert decide(outcomes, roles) == verdict


@pytest.mark.parametrize(
    ("identified", "n_reached", "gap", "discrepancy", "outcome"),
    [
        (True, 4, 1e8, 1e-15, SUPPORTS),
        (True, 1, 1e8, 1e-15, OPEN),  # one start says little
        (True, 4, 10.0, 1e-15, OPEN),
        (False, 1, 1e8, 1e-15, REFUTES),
        (False, 4, 10.0, 1e-15, OPEN),
        (False, 4, 1e8, 1e-4, OPEN),  # another law
    ],
)
def test_orbits(identified, n_reached, gap, discrepancy, outcome):
    assert judge_orbit(OrbitEvidence(identified, n_reached, gap, discrepancy, ("x",))) == outcome


def test_a_check_without_evidence_is_open():
    check = Slope("microscope_mlmoe", "sigmoid, k = 2", "loss", HALF)
    assert check.judge(Missing("no store")) == OPEN
    assert check.judge(GOOD) == SUPPORTS
    assert Order(2, 4).judge(OrderEvidence(2, 4, 4)) == SUPPORTS


@pytest.mark.parametrize(("power", "outcome"), [(6.0, SUPPORTS), (6.5, SUPPORTS), (7.0, OPEN)])
def test_a_power_is_supported_to_a_tenth(power, outcome):
    near = SequenceEvidence((0.5, 0.2, 0.05), tuple(x**power for x in (0.5, 0.2, 0.05)))
    assert judge_power(near, 6) == outcome
    assert judge_exponent(near, 6) == OPEN  # not said to be smallest distances
    assert judge_power(SequenceEvidence((0.5, 0.2), (0.5**6, 0.2**6)), 6) == OPEN
