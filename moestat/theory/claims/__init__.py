"""Every statement of the five papers on rates as a `Claim`: prediction, evidence, rule, verdict.

A claim names the checks that test it; a check names where its evidence comes from and the rule,
fixed beforehand, that reads it.  Nothing here holds a verdict: `moestat.verify` gathers evidence
and the rules decide.
"""

from __future__ import annotations

from moestat.theory.claims import attention, compete, expert_count, mlmoe
from moestat.theory.claims.claim import PAPERS, Claim
from moestat.theory.claims.rules import HOLDS, REFUTED, UNDECIDED

__all__ = ["CLAIMS", "HOLDS", "PAPERS", "REFUTED", "UNDECIDED", "Claim"]


CLAIMS: dict[str, Claim] = {}
"""Claims by id, paper by paper."""
for _claim in (*mlmoe.CLAIMS, *attention.CLAIMS, *compete.CLAIMS, *expert_count.CLAIMS):
    if _claim.id in CLAIMS:
        raise ValueError(f"two claims are called {_claim.id!r}")
    CLAIMS[_claim.id] = _claim
