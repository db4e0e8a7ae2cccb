"""Verification: the evidence of every fact and claim, gathered."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from experiments.catalogue import CLAIMS, FACTS
from experiments.claims.claim import PAPERS, Claim
from experiments.claims.kinds import Bound, Check, Evidence, Exponent, Far, Missing, Orbit, Slope
from experiments.claims.rules import REFUTES
from experiments.verify.measured import READ, command, experiment_of, measured
from experiments.verify.results import (
    EVIDENCE,
    NOT_RUN,
    CheckResult,
    FactResult,
    Verification,
    kept_result,
    put_together,
)
from experiments.verify.steady import steady
from moestat.base.validate import positive_int
from moestat.sweep.errors import SweepError
from moestat.sweep.run.executors import EXECUTORS, Lost

__all__ = ["analyse", "verify", "verify_fact"]


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
    All else is computed again, and where it agrees with what was kept there up to rounding the kept
    digits stay, so that pages do not change with the processor.

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
    ['misprint', 'proved', 'unsupported']
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
            fresh = CheckResult(check, still.get(check.name, _LEFT_OUT), "computed")
            return steady(fresh, kept_result(check, kept))
        found = measured(check, place)
        if found is not None:
            return CheckResult(check, *found)
        missing = Missing(f"no store, and nothing kept: {command(experiment_of(check))}")
        return kept_result(check, kept) or CheckResult(check, missing, "")

    return put_together(chosen, facts, result, quick, began)


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
    >>> verify_fact("opposite-scores").confirmed
    True
    """
    if name not in FACTS:
        raise ValueError(f"unknown fact {name!r}; known: {', '.join(FACTS)}")
    fact = FACTS[name]
    checks = (CheckResult(check, analyse(check, True), "computed") for check in fact.checks)
    return FactResult(fact, tuple(checks))


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


_SEARCHES = (Bound, Exponent, Far, Orbit)
"""Checks that search, which is slow."""
_LEFT_OUT = Missing(f"{NOT_RUN}, since facts decide the claim without it; --full runs it")


def _decided(claim: Claim, still: Mapping[str, Evidence]) -> bool:
    """Whether a confirmed fact, or a refutation without samples, settles a claim."""
    # A witness outside the claim's parameter set settles nothing.
    facts = (FACTS[name] for name in claim.facts if name not in claim.at_closure)
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
    names = list(distinct)
    out: dict[str, Evidence] = {}
    executor = EXECUTORS["process" if workers > 1 else "serial"]
    if names:
        kinds = ", ".join(_kinds([*distinct.values()]))
        tell(f"{len(names)} analyses without samples: {kinds}")
    for result in executor.run(partial(_analysed, names, quick), range(len(names)), workers):
        if isinstance(result, Lost):
            out[names[result.task]] = Missing(result.message, broken=True)
        else:
            out[names[result[0]]] = result[1]
    return out


def _kinds(checks: Sequence[Check]) -> list[str]:
    """How many checks there are of each kind, in words."""
    counts = Counter(type(check).__name__.lower() for check in checks)
    return [f"{count} {kind}" for kind, count in counts.items()]


def _analysed(names: Sequence[str], quick: bool, position: int) -> tuple[int, Evidence]:
    # By name, because checks hold functions, which cannot be sent to another process.
    return position, analyse(_catalogued()[names[position]], quick)


@cache
def _catalogued() -> dict[str, Check]:
    """All checks of the catalogue by name."""
    owners = (*FACTS.values(), *CLAIMS.values())
    return {check.name: check for owner in owners for check in owner.checks}
