"""The list of claims: nothing passed over, every check and rule where it says it is."""

from __future__ import annotations

import pytest

from experiments.catalogue import CLAIMS, FACTS
from experiments.claims import equations, printed
from experiments.claims.claim import PAPERS, Claim
from experiments.claims.kinds import (
    Bound,
    Condition,
    Exponent,
    Identity,
    Orbit,
    Printed,
    Sequence,
    Slope,
    Witness,
)
from experiments.claims.rules import decide
from experiments.claims.trial import Trial
from experiments.claims.witnesses import Pair, Path, classes, gaussian, regressions
from experiments.explorer import CASES
from moestat.metrics.losses import LOSSES
from moestat.sweep.kinds.fit.spec import loss_label
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec
from moestat.theory.identifiability import CONDITIONS

AUTHORS = {
    "mlmoe": "Pham et al. (2026)",
    "attention": "Yan et al. (2025)",
    "compete": "Nguyen et al. (2025)",
    "compete-v1": "Pham et al. (2024)",
    "expert-count": "Duy et al. (n.d.)",
}

# What the papers number, table rows and unnumbered statements on rates included.
INDEX = {
    "mlmoe": [
        *(f"theorem-{i}" for i in (1, 2, 3)),
        *(f"proposition-{i}" for i in (1, 2)),
        *(f"lemma-{i}" for i in (1, 2, 3)),
        *(f"equation-{i}" for i in (5, 8, 11)),
        *(f"table-1.softmax-regime-{i}.{cell}" for i in (1, 2) for cell in ("exact", "over")),
        *(f"table-1.sigmoid.{cell}" for cell in ("exact", "over")),
        "table-1.sigmoid-inner",
        *(f"table-1.sigmoid-euclidean.{cell}" for cell in ("exact", "over")),
        *("section-4.1.identifiable", "section-4.2.identifiable", "section-4.1.ratio"),
    ],
    "attention": [
        *(f"theorem-{i}" for i in range(1, 6)),
        *(f"proposition-{i}" for i in range(1, 5)),
        *(f"corollary-{i}" for i in (1, 2)),
        *(f"lemma-{i}" for i in (1, 2)),
        *(f"definition-{i}.{expert}" for i in range(1, 5) for expert in ("networks", "polynomial")),
        "equation-8",
        *(
            f"table-1.{gate}.{expert}.{regime}"
            for gate in ("sigmoid", "softmax")
            for expert in ("networks", "polynomial")
            for regime in ("sparse", "dense")
        ),
    ],
    "compete": [
        *("theorem-3.2", "theorem-j.1", "proposition-3.1", "lemma-k.1", "lemma-k.2"),
        *("section-3.independence", "section-3.without"),
        *("section-j.without.two", "section-j.without.three"),
    ],
    "compete-v1": ["theorem-4.1", "theorem-4.2", "lemma-b.1", "lemma-b.2"],
    "expert-count": [
        *("theorem-1", "theorem-2", "proposition-3"),
        *(f"lemma-{i}" for i in range(1, 28)),
    ],
}


def checks(kind):
    owners = [*((c.id, c) for c in CLAIMS.values()), *((f.name, f) for f in FACTS.values())]
    return [(name, k) for name, owner in owners for k in owner.checks if isinstance(k, kind)]


@pytest.mark.parametrize("paper", PAPERS)
def test_no_numbered_result_is_missing(paper):
    missing = [name for name in INDEX[paper] if f"{paper}.{name}" not in CLAIMS]
    assert missing == []


def test_every_claim_is_tested_or_says_why_not():
    for claim in CLAIMS.values():
        assert claim.paper in PAPERS
        tested = claim.checks or claim.facts or claim.quotes or claim.unsupported
        assert bool(tested) != bool(claim.untested)
        assert claim.repairs in ("", *CLAIMS)
        assert set(claim.facts) <= set(FACTS)
        assert claim.statement.endswith(".")
        if claim.loss in LOSSES:
            assert claim.family


@pytest.mark.parametrize(("claim", "check"), checks(Slope))
def test_slopes_name_a_curve_and_a_quantity_of_it(claim, check):
    spec = load_spec(find_spec(check.experiment))
    curve = spec.curve(check.curve)
    if isinstance(check.quantity, str):
        also = [loss_label(loss) for loss in curve.also]
        assert check.quantity in ("loss", "hellinger", "total_variation", *also)
    else:
        size, block = check.quantity
        truth = spec.truths[curve.truth].family
        assert block in ("mass", "expert", *truth.blocks)
        assert 1 <= size <= curve.n_experts - truth.n_experts + 1
    assert check.exponent < 0


def members(kind, *modules):
    """Names of all instances of a kind in modules, in their tuples and mappings, too."""
    found = [value for module in modules for value in vars(module).values()]
    found += [each for value in found if isinstance(value, tuple) for each in value]
    found += [each for value in found if isinstance(value, dict) for each in value.values()]
    return {each.name for each in found if isinstance(each, kind)}


def test_witnesses_sequences_and_equations_are_all_used():
    witnesses = classes, gaussian, regressions
    assert {check.pair.name for _, check in checks(Witness)} == members(Pair, *witnesses)
    assert {check.sequence.name for _, check in checks(Sequence)} == members(Path, *witnesses)
    named = {check.equation.name for _, check in checks(Identity)}
    assert named == members(equations.Equation, equations)
    assert {check.sentence.name for _, check in checks(Printed)} == members(Trial, printed)


def test_every_fact_decides_a_claim_and_refutes_only_with_a_scope():
    assert {name for claim in CLAIMS.values() for name in claim.facts} == set(FACTS)
    for claim in CLAIMS.values():
        assert all(FACTS[name].scope for name in claim.fails)


@pytest.mark.parametrize(("claim", "check"), checks((Bound, Exponent, Orbit)))
def test_explorer_cases_exist_and_are_of_the_same_paper(claim, check):
    source = CASES[check.case].source
    paper = CLAIMS[claim].paper
    assert source.startswith((AUTHORS[paper], "Nguyen et al. (2023)"))


@pytest.mark.parametrize(("claim", "check"), checks(Condition))
def test_conditions_exist(claim, check):
    assert check.condition in CONDITIONS


def test_a_claim_needs_checks_or_a_reason():
    with pytest.raises(ValueError, match="must have facts or checks"):
        Claim("mlmoe.x", "x", "x.")
    with pytest.raises(ValueError, match="id must begin with a paper"):
        Claim("nowhere.x", "x", "x.", untested="x")


def test_a_claim_without_checks_is_open():
    assert decide([]) == "open"
    assert CLAIMS["expert-count.lemma-20"].untested


def test_no_sentence_holds_the_name_of_a_variable():
    for claim in CLAIMS.values():
        told = (claim.statement, claim.untested, claim.unsupported, claim.note, claim.outside)
        assert not any("{" in text for text in told), claim.id
