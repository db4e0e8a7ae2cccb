"""Scopes of claims: none that is consistent or proved has a witness in its scope."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from experiments.catalogue import CLAIMS, FACTS
from experiments.claims import rules
from experiments.claims.fact import EVERY, POSITIVE, ZERO
from experiments.claims.kinds import Slope
from experiments.claims.margins import KNOWN, left_out, margin
from experiments.claims.scope import (
    ALL,
    ALMOST_ALL,
    CONDITIONS,
    SOME,
    Scope,
    contradicts,
    instances,
)
from experiments.scopes import compare, scope_of
from experiments.verify.results import Verification

_KEPT = Path(__file__).parents[2] / "figures" / "theory_claims.json"


@pytest.fixture(scope="module")
def verification():
    return Verification.restored(json.loads(_KEPT.read_text(encoding="utf-8")))


def test_no_supported_claim_has_a_witness_in_its_scope(verification):
    found = verification.comparison
    assert not found.contradictions
    assert len(found.claims) >= 10
    assert len(found.facts) >= 30


def _scope(name) -> Scope:
    """The scope of a claim that has one."""
    scope = scope_of(CLAIMS[name])
    assert scope is not None
    return scope


def _as_before(name, **changes):
    """A claim with the scope that its wording once had."""
    return replace(CLAIMS[name], scope=replace(_scope(name), **changes))


def test_the_law_fails_on_the_table_as_it_was():
    """Wordings of an earlier table, each with the witness that denies it."""
    slopes = "slopes neither equal nor opposite"
    repaired = ("two experts", slopes, "class slopes distinct", "masses up to a factor")
    neurons = dict.fromkeys(
        ("compete.theorem-3.2", "compete.theorem-3.2.rate", "compete.theorem-3.2.experts"),
        "flat-neuron",
    )
    softmax = "attention.table-1.softmax.networks.sparse"
    before = [
        (_as_before("mlmoe.theorem-1.repaired", truths=ALL, conditions=repaired), rules.CONSISTENT),
        (
            _as_before("mlmoe.theorem-1.two-classes", conditions=("two experts",)),
            rules.PROVED,
        ),
        *(
            (_as_before(name, conditions=("masses up to a factor",)), rules.CONSISTENT)
            for name in neurons
        ),
        (_as_before(softmax), rules.CONSISTENT),
    ]
    found = set(compare(before, FACTS.values()).contradictions)
    assert found == {
        ("mlmoe.theorem-1.repaired", "constant-gate"),
        ("mlmoe.theorem-1.repaired", "swapped-experts"),
        ("mlmoe.theorem-1.repaired", "resonance"),
        ("mlmoe.theorem-1.two-classes", "common-factor"),
        *neurons.items(),
        (softmax, "softmax-relu"),
    }


def test_each_refuting_fact_lies_in_the_scope_of_what_it_refutes():
    """Facts with explicit measures refute claims on parameters or experts inside their scopes."""
    missed = [
        (claim.id, name)
        for claim in CLAIMS.values()
        if (scope := scope_of(claim)) is not None
        and scope.asserts in ("parameters", "experts")
        and not claim.repairs
        for name in claim.fails
        if instances(FACTS[name]) and not contradicts(replace(scope, truths=ALL), FACTS[name])
    ]
    assert not missed


def test_facts_at_the_closure_lie_outside():
    """What an open condition leaves out is no witness against the claim."""
    pairs = [(claim, name) for claim in CLAIMS.values() for name in claim.at_closure]
    assert pairs
    for claim, name in pairs:
        scope = _scope(claim.id)
        assert "alpha away from 0" in scope.conditions
        conditions = tuple(c for c in scope.conditions if c != "alpha away from 0")
        assert contradicts(replace(scope, conditions=conditions), FACTS[name]), claim.id


@pytest.mark.parametrize(
    ("truths", "measure", "denied"),
    [
        (ALL, ZERO, True),
        (ALMOST_ALL, ZERO, False),
        (ALMOST_ALL, POSITIVE, True),
        (SOME, POSITIVE, False),
        (SOME, EVERY, True),
    ],
)
def test_quantifiers(truths, measure, denied):
    scope = replace(_scope("mlmoe.proposition-1"), truths=truths)
    fact = replace(FACTS["swapped-experts"], measure=measure)
    assert contradicts(scope, fact) == denied


def test_unknown_conditions_are_refused():
    scope = _scope("mlmoe.theorem-1")
    with pytest.raises(ValueError, match="unknown conditions"):
        replace(scope, conditions=("smooth",))


def test_every_condition_leaves_a_witness_out():
    """A condition that all witnesses of its models meet would leave nothing out."""
    for name, condition in CONDITIONS.items():
        scopes = [
            scope
            for claim in CLAIMS.values()
            if (scope := scope_of(claim)) is not None and name in scope.conditions
        ]
        if not scopes:
            continue
        told = {
            condition.holds(found)
            for scope in scopes
            for fact in FACTS.values()
            for found in instances(fact)
            if scope.models.hold(found.truth) and scope.models.hold(found.other)
        }
        assert False in told, name


def test_scopes_are_plain_data():
    for claim in CLAIMS.values():
        scope = scope_of(claim)
        if isinstance(scope, Scope):
            json.dumps(scope.as_dict())
            assert scope.text


def test_errors_in_cells_of_several_are_read_off_floored_masses():
    """The page's own rule: free masses may vanish, and their slopes decide nothing."""
    wrong = [
        (claim.id, check.name)
        for claim in CLAIMS.values()
        for check in claim.checks
        if isinstance(check, Slope)
        and not isinstance(check.quantity, str)
        and check.quantity[0] > 1
        and check.required
    ]
    assert not wrong


@pytest.mark.parametrize("block", KNOWN)
def test_an_interval_of_the_margin_holds_one_known_exponent(block):
    for exponent in KNOWN[block]:
        half = 0.999 * margin(exponent, block)
        for shift in np.linspace(-half, half, 5):
            interval = (float(exponent) + shift - half, float(exponent) + shift + half)
            kept = set(KNOWN[block]) - set(left_out(interval, block))
            assert kept == {exponent}


def test_the_margin_tells_a_quarter_from_an_eighth():
    assert margin(Fraction(-1, 4)) < 0.0625 + 1e-12
    assert margin(Fraction(-1, 2)) == 0.125


def test_at_most_eighteen_claims_are_open_each_with_a_reason(verification):
    left = [result for result in verification.results if result.verdict == rules.OPEN_VERDICT]
    assert len(left) <= 18
    assert all(result.reason for result in left)
