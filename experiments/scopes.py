"""The scope of each claim, by its family and its paper where it has none of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from experiments.claims import rules
from experiments.claims.claim import Claim
from experiments.claims.fact import Fact
from experiments.claims.scope import (
    BOTH,
    DENSITY,
    EQUATION,
    EXACT,
    EXPERTS,
    NO_ESTIMATOR,
    OVER,
    PARAMETERS,
    Models,
    Scope,
    contradicts,
    instances,
)

__all__ = ["Comparison", "compare", "scope_of"]

_LINES = ("linear",)
_FAMILIES: Mapping[str, Models] = {
    "multinomial, modified sigmoid gate": Models("multinomial", ("sigmoid",)),
    "multinomial, sigmoid gate, temperature and inner product": Models(
        "multinomial", ("sigmoid-inner",)
    ),
    "multinomial, sigmoid gate, temperature and Euclidean score": Models(
        "multinomial", ("sigmoid-euclidean",)
    ),
    "multinomial, softmax gate": Models("multinomial", ("softmax",)),
    "regression, raw sigmoid gate, full quadratic score": Models(
        "least-squares", ("sigmoid-quadratic",)
    ),
    "regression, raw sigmoid gate, partial quadratic score": Models(
        "least-squares", ("sigmoid-partial",)
    ),
    "regression, softmax gate, full quadratic score": Models(
        "least-squares", ("softmax-quadratic",)
    ),
    "regression, softmax gate, partial quadratic score": Models(
        "least-squares", ("softmax-partial",)
    ),
    "gaussian, competition gate, any experts that are algebraically independent": Models(
        "gaussian", ("competition", "competition-free"), ("gelu",)
    ),
    "gaussian, competition gate, linear experts": Models(
        "gaussian", ("competition", "competition-free"), _LINES
    ),
    "gaussian, softmax gate, linear experts": Models("gaussian", ("softmax",), _LINES),
    "gaussian, top-K competition gate, exactly specified": Models("gaussian", ("competition-top",)),
}
"""Families of a claim by its text; neurons without output weight stand for the experts that are
algebraically independent."""
_SETS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "mlmoe": ("A.1, Sec. 3", ("masses up to a factor",)),
    "attention": ("Sec. 3; proof of Theorem 1; alpha != 0 in Secs. 4.1, 4.2, C.1.2, C.1.3", ()),
    "compete": ("Sec. 3, Problem setting", ("masses up to a factor",)),
    "compete-v1": ("Sec. 4", ()),
    "expert-count": ("", ()),
}
"""Where each paper prints its compact set, and conditions that all its claims have as read."""
_ALGEBRAIC = "gaussian, competition gate, any experts that are algebraically independent"
_ASSERTED: Mapping[str, str] = {
    "mlmoe.section-4.1.ratio": NO_ESTIMATOR,
    "mlmoe.lemma-1": NO_ESTIMATOR,
    "attention.lemma-2": NO_ESTIMATOR,
    "attention.section-3.sparse": EQUATION,
    "attention.appendix-c.1.1": DENSITY,
    "compete.section-j.without.more": NO_ESTIMATOR,
    "compete.section-j.without.lower": NO_ESTIMATOR,
}
"""Lower bounds on risks and equations, which the witnesses of facts prove rather than deny."""
_SUPPORTED = (rules.CONSISTENT, rules.PROVED)
"""Verdicts that a witness inside the scope contradicts."""


def scope_of(claim: Claim) -> Scope | None:
    """The scope of a claim; None for claims that speak of no truths.

    Parameters
    ----------
    claim : Claim
        The claim.

    Returns
    -------
    Scope or None
        Its own scope where it has one, else that of its family and paper.
    """
    if claim.scope is not None or claim.family not in _FAMILIES:
        return claim.scope
    place, conditions = _SETS[claim.paper]
    networks = claim.paper == "attention" and (
        "ReLU" in claim.statement or "GELU" in claim.statement
    )
    if claim.family == _ALGEBRAIC or networks:
        conditions = (*conditions, "alpha away from 0")
    models = _FAMILIES[claim.family]
    return Scope(
        replace(models, experts=_experts(claim)) if claim.paper == "attention" else models,
        place=place,
        conditions=conditions,
        specified=_specified(claim),
        asserts=_asserts(claim),
    )


def _experts(claim: Claim) -> tuple[str, ...] | None:
    """The experts that a claim on regression functions names; None where it names none."""
    said = claim.statement
    if "such as" in said:
        return None
    if "olynomial" in said or "inear experts" in said:
        return ("polynomial",)
    weighted = "weighted " if "lambda phi" in said else ""
    return tuple(f"{weighted}{unit.lower()}" for unit in ("ReLU", "GELU") if unit in said) or None


def _specified(claim: Claim) -> str:
    """Whether the claim is of cells of one, of several, or of both."""
    if claim.paper == "compete-v1":
        return EXACT
    sizes = {what.partition(" ")[0] for what in claim.predicted}
    return sizes.pop() if sizes in ({EXACT}, {OVER}) else BOTH


def _asserts(claim: Claim) -> str:
    """What a claim says converges or is identified, by its prediction and its loss."""
    if claim.id in _ASSERTED:
        return _ASSERTED[claim.id]
    if claim.predicted and not any(claim.predicted.values()):
        return NO_ESTIMATOR
    if "density" in claim.predicted:
        return DENSITY
    if claim.loss.startswith("expert error"):
        return EXPERTS
    return PARAMETERS if claim.loss else EQUATION


@dataclass(frozen=True)
class Comparison:
    """What a comparison of supported claims with witnesses found.

    Parameters
    ----------
    claims : tuple of str
        Claims that are consistent or proved and have a scope that a witness can contradict.
    facts : tuple of str
        Facts with explicit measures.
    contradictions : tuple of (str, str)
        Claims with the facts that have a witness in their scope.
    """

    claims: tuple[str, ...]
    facts: tuple[str, ...]
    contradictions: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The comparison in one sentence."""
        found = len(self.contradictions)
        said = "none lies inside" if not found else f"{found} lie inside"
        return (
            f"{len(self.claims)} claims that are consistent or proved, of parameters or experts,"
            f" were compared with the witnesses of {len(self.facts)} facts: {said}."
        )


def compare(verdicts: Iterable[tuple[Claim, str]], facts: Iterable[Fact]) -> Comparison:
    """Look for witnesses inside the scopes of claims that are consistent or proved.

    Parameters
    ----------
    verdicts : iterable of (Claim, str)
        Claims with their verdicts.
    facts : iterable of Fact
        Confirmed facts.

    Returns
    -------
    Comparison
        What was compared, and every contradiction.
    """
    explicit = [fact for fact in facts if instances(fact)]
    scopes = {
        claim.id: scope
        for claim, verdict in verdicts
        if verdict in _SUPPORTED
        and (scope := scope_of(claim)) is not None
        and scope.asserts in (PARAMETERS, EXPERTS)
    }
    found = tuple(
        (name, fact.name)
        for name, scope in scopes.items()
        for fact in explicit
        if contradicts(scope, fact)
    )
    return Comparison(tuple(scopes), tuple(fact.name for fact in explicit), found)
