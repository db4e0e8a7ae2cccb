"""Verification: every fact and claim with its evidence, outcomes and verdict."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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
    Floored,
    Missing,
    Orbit,
    Slope,
)
from experiments.claims.rules import OPEN_VERDICT, REFUTES, VERDICTS, Outcome, decide
from experiments.verify.measured import READ, command, experiment_of, measured
from moestat.base.validate import positive_int
from moestat.sweep.errors import SweepError
from moestat.sweep.run.executors import EXECUTORS, Lost
from moestat.sweep.spec.experiments import find_spec
from moestat.sweep.spec.read import load_spec

__all__ = [
    "EVIDENCE",
    "CheckResult",
    "ClaimResult",
    "FactResult",
    "Verification",
    "verify",
    "verify_fact",
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
        return self.check.case if isinstance(self.check, (Bound, Exponent, Orbit)) else ""

    def as_dict(self) -> dict[str, Any]:
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

    def as_dict(self) -> dict[str, Any]:
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
        return decide(outcomes, self.roles)

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
        if self.claim.untested:
            return self.claim.untested
        lost = [f"the fact {each.fact.name} was not seen" for each in self.facts]
        open_ = [r for r in self.checks if r.shortfall and r.check.required] or self.checks
        return "; ".join([*lost, *(f"{r.check.name}: {r.shortfall}" for r in open_ if r.shortfall)])

    def as_dict(self) -> dict[str, Any]:
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
    def without_store(self) -> dict[str, int]:
        """Experiment -> number of its slopes and contrasts that could not be had."""
        lost = {
            each.check.name: experiment_of(each.check)
            for result in self.results
            for each in result.checks
            if isinstance(each.check, READ) and isinstance(each.evidence, Missing)
        }
        return dict(Counter(lost.values()))

    def evidence(self) -> dict[str, Any]:
        """What was found, by check; `restored` makes a verification of it."""
        found = [*self.facts, *self.results]
        results = {each.check.name: each for one in found for each in one.checks}
        return {
            "quick": self.quick,
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
            return _kept(check, kept) or CheckResult(check, Missing("not in the kept evidence"), "")

        return _put_together(CLAIMS.values(), FACTS.values(), result, kept["quick"], 0.0)

    def as_dict(self) -> dict[str, Any]:
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
            "facts": [result.as_dict() for result in self.facts],
            "claims": [result.as_dict() for result in self.results],
        }


def verify(
    claims: Iterable[str] | None = None,
    *,
    quick: bool = True,
    folder: str | Path = "figures",
    workers: int = 1,
    tell: Callable[[str], None] = lambda line: None,
) -> Verification:
    """Gather the evidence of claims and of the facts behind them, and let the rules decide.

    No sweep is run.  Slopes come from the stores in `folder`, and where there is none from what
    the last verification kept there; what neither has is missing, with the command that makes it.

    Parameters
    ----------
    claims : iterable of str, optional
        Ids of claims, or beginnings of ids such as ``mlmoe.theorem``; all claims by default.
    quick : bool
        Whether to search with fewer starts, and not at all for claims that facts decide.
    folder : str or Path
        Where the stores of the experiments and the kept evidence are.
    workers : int
        Worker processes.
    tell : callable
        Told a line about what is done.

    Returns
    -------
    Verification
        One result per claim.

    Raises
    ------
    ValueError
        If no claim has such an id, or `workers` is not a positive integer.
    SweepError
        If there is no such folder.

    Examples
    --------
    >>> found = verify(["mlmoe.equation-8", "expert-count.theorem-1"])
    >>> [result.verdict for result in found.results]
    ['misprint', 'proved', 'open']
    """
    began = time.monotonic()
    chosen = _chosen(claims)
    workers = positive_int("workers", workers)
    place = Path(folder)
    slopes = [check for claim in chosen for check in claim.checks if isinstance(check, Slope)]
    if slopes and not place.is_dir():
        raise SweepError(f"there is no folder {str(place)!r} for the stores")
    named = {name for claim in chosen for name in claim.facts}
    facts = [fact for fact in FACTS.values() if claims is None or fact.name in named]
    cheap = [check for fact in facts for check in fact.checks]
    cheap += [c for claim in chosen for c in claim.checks if not isinstance(c, (*READ, *_SEARCHES))]
    still = _unsampled(cheap, quick, workers, tell)
    searches = [
        check
        for claim in chosen
        for check in claim.checks
        if isinstance(check, _SEARCHES) and not (quick and _decided(claim, still))
    ]
    still |= _unsampled(searches, quick, workers, tell)
    evidence = place / EVIDENCE
    kept = json.loads(evidence.read_text(encoding="utf-8")) if evidence.is_file() else {}

    def result(check: Check) -> CheckResult:
        if not isinstance(check, READ):
            return CheckResult(check, still.get(check.name, _LEFT_OUT), "computed")
        found = measured(check, place)
        if found is not None:
            return CheckResult(check, *found)
        return _kept(check, kept) or CheckResult(check, Missing(f"{_NO_STORE}{_made(check)}"), "")

    return _put_together(chosen, facts, result, quick, began)


def verify_fact(name: str) -> FactResult:
    """Reproduce one fact alone; no store is read.

    Parameters
    ----------
    name : str
        Name of the fact.

    Returns
    -------
    FactResult
        The fact with its evidence.

    Raises
    ------
    ValueError
        If there is no such fact.

    Examples
    --------
    >>> verify_fact("router-gradients").confirmed
    True
    """
    if name not in FACTS:
        raise ValueError(f"unknown fact {name!r}; known: {', '.join(FACTS)}")
    fact = FACTS[name]
    checks = (CheckResult(check, analyse(check, True), "computed") for check in fact.checks)
    return FactResult(fact, tuple(checks))


def _put_together(
    claims: Iterable[Claim],
    facts: Iterable[Fact],
    result: Callable[[Check], CheckResult],
    quick: bool,
    began: float,
) -> Verification:
    seen = {fact.name: FactResult(fact, tuple(map(result, fact.checks))) for fact in facts}
    results = tuple(
        ClaimResult(claim, tuple(map(result, claim.checks)), tuple(seen[n] for n in claim.facts))
        for claim in claims
    )
    seconds = time.monotonic() - began if began else 0.0
    return Verification(quick, seconds, results, tuple(seen.values()))


def _kept(check: Check, kept: Mapping[str, Any]) -> CheckResult | None:
    """A check with the evidence that a verification kept; None where it has none."""
    entry = kept.get("checks", {}).get(check.name)
    if entry is None:
        return None
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry["evidence"].items()
    }
    return CheckResult(check, getattr(kinds, entry["kind"])(**values), entry["source"])


def _made(check: Check) -> str:
    return command(experiment_of(check))


_NO_STORE = "no store, and nothing kept: "


def _chosen(names: Iterable[str] | None) -> list[Claim]:
    if names is None:
        return list(CLAIMS.values())
    beginnings = list(names)
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in CLAIMS):
            raise ValueError(
                f"no claim has an id that begins with {beginning!r}; papers: {', '.join(PAPERS)}"
            )
    return [claim for name, claim in CLAIMS.items() if name.startswith(tuple(beginnings))]


_SEARCHES = (Bound, Exponent, Orbit)
"""Checks that search, which is slow."""
_LEFT_OUT = Missing(f"{NOT_RUN}, since facts decide the claim without it; --full runs it")


def _decided(claim: Claim, still: Mapping[str, Evidence]) -> bool:
    """Whether a confirmed fact, or a refutation without samples, settles a claim."""
    facts = (FACTS[name] for name in claim.facts)
    if any(fact.confirmed([c.judge(still[c.name]) for c in fact.checks]) for fact in facts):
        return True
    return any(c.judge(still[c.name]) == REFUTES for c in claim.checks if c.name in still)


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
        return check.gather(quick)
    except ImportError as error:
        return Missing(str(error))
    except Exception as error:  # one broken analysis must not hide all other claims
        return Missing(f"{type(error).__name__}: {error}", broken=True)


def _unsampled(
    checks: Sequence[Check], quick: bool, workers: int, tell: Callable[[str], None]
) -> dict[str, Evidence]:
    """Evidence by the check's name, each analysis once."""
    distinct = {check.name: check for check in checks}
    names, todo = list(distinct), list(distinct.values())
    out: dict[str, Evidence] = {}
    executor = EXECUTORS["process" if workers > 1 else "serial"]
    if todo:
        tell(f"{len(todo)} analyses without samples: {', '.join(_kinds(todo))}")
    for result in executor.run(partial(_analysed, todo, quick), range(len(todo)), workers):
        if isinstance(result, Lost):
            out[names[result.task]] = Missing(result.message, broken=True)
        else:
            out[names[result[0]]] = result[1]
    return out


def _kinds(checks: Sequence[Check]) -> list[str]:
    """How many checks there are of each kind, in words."""
    counts = Counter(type(check).__name__.lower() for check in checks)
    return [f"{count} {kind}" for kind, count in counts.items()]


def _analysed(checks: Sequence[Check], quick: bool, position: int) -> tuple[int, Evidence]:
    return position, analyse(checks[position], quick)
