"""What a verification found: checks, facts and claims with their outcomes and verdicts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.catalogue import CLAIMS, FACTS
from experiments.claims import kinds
from experiments.claims.claim import PAPERS, Claim
from experiments.claims.fact import Fact
from experiments.claims.kinds import (
    Bound,
    Check,
    Evidence,
    Exponent,
    Far,
    Floored,
    Missing,
    Orbit,
    Slope,
)
from experiments.claims.rules import CONSISTENT, OPEN_VERDICT, VERDICTS, Outcome, decide
from experiments.scopes import Comparison, compare, scope_of
from experiments.verify.measured import READ, experiment_of
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec

__all__ = [
    "EVIDENCE",
    "NOT_RUN",
    "CheckResult",
    "ClaimResult",
    "FactResult",
    "Verification",
    "kept_result",
    "put_together",
]

EVIDENCE = "theory_claims.json"
"""Where a verification keeps its evidence, beside its pages."""
NOT_RUN = "not run"
"""Beginning of the reason why a search is missing that no verdict needs."""


@dataclass(frozen=True)
class CheckResult:
    """A check, its evidence and what the rule made of it.

    Parameters
    ----------
    check : Check
        The check.
    evidence : Evidence
        What was found, or `Missing`.
    source : str
        Where the evidence is from.
    """

    check: Check
    evidence: Evidence
    source: str

    @property
    def outcome(self) -> str:
        """``"supports"``, ``"refutes"`` or ``"open"``."""
        return self.check.judge(self.evidence)

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        return self.evidence.text

    @property
    def shortfall(self) -> str:
        """Why the outcome is open; empty otherwise."""
        return self.check.shortfall(self.evidence)

    @property
    def truth(self) -> str:
        """The truth that a measurement is at; empty for what is not at one."""
        if isinstance(self.check, Slope):
            spec = load_spec(find_spec(self.check.experiment))
            return f"{self.check.experiment}, {spec.curve(self.check.curve).truth}"
        if isinstance(self.check, Floored):
            return f"floored masses, {self.check.curve.partition(',')[0]}"
        return self.check.case if isinstance(self.check, (Bound, Exponent, Far, Orbit)) else ""

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        missing = isinstance(self.evidence, Missing)
        return {
            "check": self.check.name,
            "kind": type(self.check).__name__.lower(),
            "required": self.check.required,
            "outcome": self.outcome,
            "evidence": None if missing else vars(self.evidence).copy(),
            "text": self.text,
            "shortfall": self.shortfall,
            "source": self.source,
            "note": self.check.note,
            "about": self.check.about,
        }


@dataclass(frozen=True)
class FactResult:
    """A fact with the evidence that reproduces it.

    Parameters
    ----------
    fact : Fact
        The fact.
    checks : tuple of CheckResult
        One per check of the fact.
    """

    fact: Fact
    checks: tuple[CheckResult, ...]

    @property
    def confirmed(self) -> bool:
        """Whether every check sees it."""
        return self.fact.confirmed([result.outcome for result in self.checks])

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        fact = self.fact
        return {
            "fact": fact.name,
            "title": fact.title,
            "paper": fact.paper,
            "scope": fact.scope,
            "confirmed": self.confirmed,
            "checks": [result.as_dict() for result in self.checks],
        }


@dataclass(frozen=True)
class ClaimResult:
    """A claim with its verdict.

    Parameters
    ----------
    claim : Claim
        The claim.
    checks : tuple of CheckResult
        One per check of the claim.
    facts : tuple of FactResult
        One per fact that bears on it.
    """

    claim: Claim
    checks: tuple[CheckResult, ...]
    facts: tuple[FactResult, ...] = ()

    @property
    def verdict(self) -> str:
        """A key of `experiments.claims.rules.VERDICTS`."""
        outcomes = [
            Outcome(each.outcome, each.check.required, each.check.strength, each.check.scope)
            for each in self.checks
        ]
        found = decide(outcomes, self.roles)
        return OPEN_VERDICT if found == CONSISTENT and self.claim.outside else found

    @property
    def roles(self) -> list[str]:
        """What the confirmed facts and the claim itself say about it."""
        unseen = {each.fact.name for each in self.facts if not each.confirmed}
        own = () if unseen & set(self.claim.follows) else self.claim.own_roles
        return [
            *(
                self.claim.role(each.fact.name, each.fact.scope)
                for each in self.facts
                if each.confirmed and each.fact.name not in self.claim.follows
            ),
            *own,
        ]

    @property
    def n_truths(self) -> int:
        """Distinct truths at which a measurement supports the claim."""
        supporting = (each for each in self.checks if each.outcome == "supports")
        return len({each.truth for each in supporting} - {""})

    @property
    def reason(self) -> str:
        """Why the claim is open; empty otherwise."""
        if self.verdict != OPEN_VERDICT:
            return ""
        if self.claim.untested or self.claim.outside:
            return self.claim.untested or self.claim.outside
        lost = [f"the fact {each.fact.name} was not seen" for each in self.facts]
        open_ = [r for r in self.checks if r.shortfall and r.check.required] or self.checks
        return "; ".join([*lost, *(f"{r.check.name}: {r.shortfall}" for r in open_ if r.shortfall)])

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        claim = self.claim
        return {
            "id": claim.id,
            "paper": claim.paper,
            "place": claim.place,
            "statement": claim.statement,
            "family": claim.family,
            "loss": claim.loss,
            "predicted": {what: str(power) for what, power in claim.predicted.items()},
            "verdict": self.verdict,
            "truths": self.n_truths,
            "reason": self.reason,
            "note": claim.note,
            "scope": None if (scope := scope_of(claim)) is None else scope.as_dict(),
            "repairs": claim.repairs,
            "facts": list(claim.facts),
            "checks": [result.as_dict() for result in self.checks],
        }


@dataclass(frozen=True)
class Verification:
    """All claims that were asked for, and the facts behind them.

    Parameters
    ----------
    quick : bool
        Whether short searches were enough.
    seconds : float
        How long it took.
    results : tuple of ClaimResult
        One per claim, in the order of the papers.
    facts : tuple of FactResult
        One per fact, likewise.
    """

    quick: bool
    seconds: float
    results: tuple[ClaimResult, ...]
    facts: tuple[FactResult, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> number of the papers' claims; repaired ones are not theirs."""
        found = Counter(result.verdict for result in self.results if not result.claim.repairs)
        return {verdict: found[verdict] for verdict in VERDICTS}

    @property
    def broken(self) -> list[str]:
        """Checks whose evidence could not be had because something went wrong."""
        return [
            f"{result.claim.id}, {each.check.name}: {each.evidence.why}"
            for result in self.results
            for each in result.checks
            if isinstance(each.evidence, Missing) and each.evidence.broken
        ]

    @property
    def comparison(self) -> Comparison:
        """Supported claims against the witnesses of confirmed facts: none may lie in a scope."""
        verdicts = [(result.claim, result.verdict) for result in self.results]
        return compare(verdicts, [each.fact for each in self.facts if each.confirmed])

    @property
    def without_store(self) -> dict[str, int]:
        """Experiment -> number of its slopes and contrasts that could not be had."""
        lost = {
            each.check.name: experiment_of(each.check)
            for result in self.results
            for each in result.checks
            if isinstance(each.check, READ) and isinstance(each.evidence, Missing)
        }
        return dict(Counter(lost.values()))

    def evidence(self) -> dict[str, object]:
        """What was found, by check, and the verdicts; `restored` makes a verification of it."""
        found = [*self.facts, *self.results]
        results = {each.check.name: each for one in found for each in one.checks}
        return {
            "quick": self.quick,
            "claims": {
                result.claim.id: {
                    "verdict": result.verdict,
                    "scope": None if (scope := scope_of(result.claim)) is None else scope.as_dict(),
                }
                for result in self.results
            },
            "checks": {
                name: {
                    "kind": type(each.evidence).__name__,
                    "evidence": vars(each.evidence).copy(),
                    "source": each.source,
                }
                for name, each in sorted(results.items())
            },
        }

    @classmethod
    def restored(cls, kept: Mapping[str, Any]) -> Verification:
        """All claims judged from kept evidence, as `evidence` gives it; nothing is computed."""

        def result(check: Check) -> CheckResult:
            return kept_result(check, kept) or CheckResult(
                check, Missing("not in the kept evidence"), ""
            )

        return put_together(CLAIMS.values(), FACTS.values(), result, kept["quick"], 0.0)

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        from moestat import __version__

        return {
            "version": __version__,
            "mode": "quick" if self.quick else "full",
            "seconds": round(self.seconds, 1),
            "papers": dict(PAPERS),
            "counts": self.counts,
            "broken": self.broken,
            "without_store": self.without_store,
            "contradictions": [list(pair) for pair in self.comparison.contradictions],
            "facts": [result.as_dict() for result in self.facts],
            "claims": [result.as_dict() for result in self.results],
        }


def put_together(
    claims: Iterable[Claim],
    facts: Iterable[Fact],
    result: Callable[[Check], CheckResult],
    quick: bool,
    began: float,
) -> Verification:
    """A verification of the results of all checks; `began` is 0 where nothing is computed."""
    seen = {fact.name: FactResult(fact, tuple(map(result, fact.checks))) for fact in facts}
    results = tuple(
        ClaimResult(claim, tuple(map(result, claim.checks)), tuple(seen[n] for n in claim.facts))
        for claim in claims
    )
    seconds = time.monotonic() - began if began else 0.0
    return Verification(quick, seconds, results, tuple(seen.values()))


def kept_result(check: Check, kept: Mapping[str, Any]) -> CheckResult | None:
    """A check with the evidence that a verification kept; None where it has none."""
    entry = kept.get("checks", {}).get(check.name)
    if entry is None:
        return None
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry["evidence"].items()
    }
    return CheckResult(check, getattr(kinds, entry["kind"])(**values), entry["source"])
