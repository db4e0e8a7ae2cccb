"""Evidence that needs no sampling: witnesses, the explorer, conditions, polynomial systems."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from experiments.claims.checks import (
    AsPrinted,
    Bound,
    Check,
    Condition,
    Exponent,
    Identity,
    Inequality,
    Orbit,
    Order,
    Printed,
    Sequence,
    Witness,
)
from experiments.claims.equations import EQUATIONS
from experiments.claims.evidence import (
    DependenceEvidence,
    Evidence,
    Missing,
    OrbitEvidence,
    OrderEvidence,
    SequenceEvidence,
)
from experiments.claims.printed import PRINTED
from experiments.claims.witnesses import PAIRS, SEQUENCES

__all__ = ["analyse"]

_STARTS, _LENGTH = 12, 0.5  # of a search for orbits


def analyse(check: Check, quick: bool) -> Evidence:
    """The evidence of a check that rests on no sweep.

    Parameters
    ----------
    check : Check
        The check.
    quick : bool
        Whether to search with fewer starts and radii.

    Returns
    -------
    Evidence
        What was found; `Missing` where the analysis failed or an optional library is not there.
    """
    try:
        return _evidence(check, quick)
    except ImportError as error:
        return Missing(str(error))
    except Exception as error:  # one broken analysis must not hide all other claims
        return Missing(f"{type(error).__name__}: {error}", broken=True)


@singledispatch
def _evidence(check: Any, quick: bool) -> Evidence:
    raise TypeError(f"no analysis for a check of kind {type(check).__name__}")


@_evidence.register
def _(check: Witness, quick: bool) -> Evidence:
    return PAIRS[check.pair].evidence()


@_evidence.register
def _(check: Sequence, quick: bool) -> Evidence:
    return SEQUENCES[check.sequence].evidence()


@_evidence.register
def _(check: Identity, quick: bool) -> Evidence:
    return EQUATIONS[check.equation].evidence()


@_evidence.register
def _(check: Inequality, quick: bool) -> Evidence:
    from experiments.claims import lipschitz
    from experiments.expert_count.trials import TRIALS

    if check.paper != "expert-count":
        return lipschitz.TRIALS[f"{check.paper} {check.trial}"]()
    return TRIALS[check.trial].evidence()


@_evidence.register
def _(check: Printed, quick: bool) -> Evidence:
    return PRINTED[check.sentence]()


@_evidence.register
def _(check: AsPrinted, quick: bool) -> Evidence:
    from experiments.compete.class_as_printed import best_of_class

    return best_of_class()


@_evidence.register
def _(check: Order, quick: bool) -> Evidence:
    from moestat.theory.polynomial_systems import order

    found = order(check.m)
    return OrderEvidence(check.m, found.at_least, found.at_most)


@_evidence.register(Bound)
@_evidence.register(Exponent)
def _(check: Bound | Exponent, quick: bool) -> Evidence:
    from experiments.explorer import quick_search, run_case

    found = (quick_search if quick else run_case)(check.case)
    return SequenceEvidence(
        tuple(rung.loss for rung in found.rungs),
        tuple(rung.distance for rung in found.rungs),
        smallest=True,
        directions=found.worst_direction,
        rounding=max((rung.distance for rung in found.rungs if not rung.resolved), default=0.0),
    )


@_evidence.register
def _(check: Condition, quick: bool) -> Evidence:
    from moestat.theory.identifiability import check_condition

    found = check_condition(check.condition, check.expert, exact=False)
    relations = [str(relation) for part in found.parts for relation in part.primitive]
    worst = min(found.parts, key=lambda part: part.rank.rank - part.rank.n_functions)
    rank, functions, gap = worst.rank.rank, worst.rank.n_functions, worst.rank.gap
    if rank == functions and found.coincidences:
        # One atom satisfies the condition, two that coincide in some blocks do not.
        pair = found.coincidences[0]
        rank, functions, gap = pair.rank.rank, pair.rank.n_functions, pair.rank.gap
    return DependenceEvidence(
        functions, rank, gap, (*relations, *(str(pair) for pair in found.coincidences))
    )


@_evidence.register
def _(check: Orbit, quick: bool) -> Evidence:
    from experiments.explorer import CASES
    from moestat.theory.identifiability import find_orbits

    case = CASES[check.case]
    fitted, true_family, truth = case.families()
    found = find_orbits(
        fitted if check.over else true_family,
        truth,
        case.design,
        truth_family=true_family,
        n_starts=_STARTS,
        length=_LENGTH,
        rng=0,
    )
    # The truth's own orbit decides where it is alone, else the clearest one.
    best = max(found.orbits, key=lambda orbit: orbit.gap, default=None)
    if best is None:
        return Missing("no start reached the law of the truth")
    return OrbitEvidence(
        identified=found.identified,
        n_reached=found.n_reached,
        gap=best.gap,
        discrepancy=best.discrepancy,
        orbits=tuple(" ".join(str(orbit).split()) for orbit in found.orbits),
    )
