"""Verification: every claim with its evidence, outcomes and verdict."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from moestat.base.validate import positive_int
from moestat.papers.catalogue import CLAIMS
from moestat.papers.claims.checks import Bound, Check, Contrast, Exponent, Slope
from moestat.papers.claims.claim import PAPERS, Claim
from moestat.papers.claims.evidence import Evidence, Missing
from moestat.papers.claims.rules import HOLDS, REFUTED, REFUTES, UNDECIDED
from moestat.papers.verify.analyses import analyse
from moestat.papers.verify.contrasts import contrast_evidence
from moestat.papers.verify.slopes import slope_evidence
from moestat.papers.verify.sweeps import CurveRecords, gather_curves
from moestat.papers.verify.words import shown, why_open
from moestat.sweep.errors import SweepError
from moestat.sweep.executors import EXECUTORS, Lost

__all__ = ["CheckResult", "ClaimResult", "Verification", "verify"]


@dataclass(frozen=True)
class CheckResult:
    """A check, its evidence and what the rule made of it.

    Parameters
    ----------
    check : Check
        The check.
    evidence : Evidence
        What was found, or `Missing`.
    outcome : str
        ``"supports"``, ``"refutes"`` or ``"open"``.
    source : str
        Where the evidence is from.
    """

    check: Check
    evidence: Evidence
    outcome: str
    source: str

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        return shown(self.evidence)

    @property
    def shortfall(self) -> str:
        """Why the outcome is open; empty otherwise."""
        return why_open(self.check, self.evidence, self.outcome)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        missing = isinstance(self.evidence, Missing)
        return {
            "check": self.check.name,
            "kind": type(self.check).__name__.lower(),
            "required": self.check.required,
            "outcome": self.outcome,
            "evidence": None if missing else asdict(self.evidence),
            "text": self.text,
            "shortfall": self.shortfall,
            "source": self.source,
            "note": self.check.note,
            "about": self.check.about,
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
    """

    claim: Claim
    checks: tuple[CheckResult, ...]

    @property
    def verdict(self) -> str:
        """``"holds"``, ``"refuted as printed"`` or ``"undecided"``, by the claim's rules."""
        return self.claim.verdict([result.outcome for result in self.checks])

    @property
    def reason(self) -> str:
        """Why the claim is undecided; empty otherwise."""
        if self.verdict != UNDECIDED:
            return ""
        if self.claim.untested:
            return self.claim.untested
        open_ = [r for r in self.checks if r.shortfall and r.check.required] or self.checks
        return "; ".join(f"{r.check.name}: {r.shortfall}" for r in open_ if r.shortfall)

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
            "reason": self.reason,
            "note": claim.note,
            "checks": [result.as_dict() for result in self.checks],
        }


@dataclass(frozen=True)
class Verification:
    """All claims that were asked for.

    Parameters
    ----------
    quick : bool
        Whether parts of the sweeps and short searches were enough.
    seconds : float
        How long it took.
    results : tuple of ClaimResult
        One per claim, in the order of the papers.
    """

    quick: bool
    seconds: float
    results: tuple[ClaimResult, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> number of claims."""
        found = Counter(result.verdict for result in self.results)
        return {verdict: found[verdict] for verdict in (HOLDS, REFUTED, UNDECIDED)}

    @property
    def broken(self) -> list[str]:
        """Checks whose evidence could not be had because something went wrong."""
        return [
            f"{result.claim.id}, {each.check.name}: {each.evidence.why}"
            for result in self.results
            for each in result.checks
            if isinstance(each.evidence, Missing) and each.evidence.broken
        ]

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
    """Gather the evidence of claims and let their rules decide.

    Parameters
    ----------
    claims : iterable of str, optional
        Ids of claims, or beginnings of ids such as ``mlmoe.theorem``; all claims by default.
    quick : bool
        Whether to run only parts of the sweeps (`moestat.papers.verify.sweeps.QUICK`) and short
        searches of the explorer, and neither for claims that are refuted without them.  Stores that
        hold more are used in full.
    folder : str or Path
        Where the stores of the experiments are, and where they are made.
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
    >>> [(result.claim.id, result.verdict) for result in found.results]
    [('mlmoe.equation-8', 'refuted as printed'), ('expert-count.theorem-1', 'undecided')]
    """
    began = time.monotonic()
    chosen = _chosen(claims)
    workers = positive_int("workers", workers)
    place = Path(folder)
    checks = [check for claim in chosen for check in claim.checks]
    if any(isinstance(check, Slope) for check in checks) and not place.is_dir():
        raise SweepError(f"there is no folder {str(place)!r} for the stores")
    cheap = [check for check in checks if not isinstance(check, (Slope, Contrast, *_SEARCHES))]
    still = _unsampled(cheap, quick, workers, tell)
    settled = {claim.id for claim in chosen if quick and _refuted(claim, still)}
    searches = [
        check
        for claim in chosen
        for check in claim.checks
        if isinstance(check, _SEARCHES) and claim.id not in settled
    ]
    still |= _unsampled(searches, quick, workers, tell)
    settled |= {claim.id for claim in chosen if quick and _refuted(claim, still)}
    open_ = [claim for claim in chosen if claim.id not in settled]
    sampled = _sampled(open_, quick, place, workers, tell)
    still |= {
        check.name: contrast_evidence(check, place)
        for check in checks
        if isinstance(check, Contrast)
    }
    results = tuple(
        ClaimResult(claim, tuple(_judged(check, still, sampled) for check in claim.checks))
        for claim in chosen
    )
    return Verification(quick, time.monotonic() - began, results)


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


_SEARCHES = (Bound, Exponent)
"""Checks that take the explorer, which is slow."""
_LEFT_OUT = Missing("left out, since the claim is refuted without it; --full runs it")


def _refuted(claim: Claim, still: Mapping[str, Evidence]) -> bool:
    """Whether evidence without samples refutes a claim."""
    return any(
        check.judge(still[check.name]) == REFUTES for check in claim.checks if check.name in still
    )


def _judged(
    check: Check,
    still: Mapping[str, Evidence],
    sampled: Mapping[tuple[str, str], CurveRecords | Missing],
) -> CheckResult:
    if not isinstance(check, Slope):
        evidence = still.get(check.name, _LEFT_OUT)
        source = f"{check.experiment}.sqlite" if isinstance(check, Contrast) else "computed"
        return CheckResult(check, evidence, check.judge(evidence), source)
    found = sampled.get((check.experiment, check.curve), _LEFT_OUT)
    if isinstance(found, Missing):
        return CheckResult(check, found, check.judge(found), "")
    evidence = slope_evidence(check, found.curve, found.records)
    return CheckResult(check, evidence, check.judge(evidence), found.source)


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


def _sampled(
    claims: Sequence[Claim], quick: bool, folder: Path, workers: int, tell: Callable[[str], None]
) -> dict[tuple[str, str], CurveRecords | Missing]:
    """Records by experiment and curve."""
    wanted: dict[str, list[str]] = defaultdict(list)
    for check in (check for claim in claims for check in claim.checks):
        if isinstance(check, Slope) and check.curve not in wanted[check.experiment]:
            wanted[check.experiment].append(check.curve)
    out: dict[tuple[str, str], CurveRecords | Missing] = {}
    for experiment, curves in wanted.items():
        try:
            found = gather_curves(
                experiment, curves, folder, quick=quick, workers=workers, tell=tell
            )
            out |= {(experiment, name): records for name, records in found.items()}
        except SweepError as error:
            missing = Missing(str(error), broken=True)
            out |= {(experiment, name): missing for name in curves}
    return out
