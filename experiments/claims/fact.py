"""A fact: one piece of mathematics that decides claims, with what reproduces it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.claims import rules
from experiments.claims.kinds import Check

__all__ = ["EVERY", "POSITIVE", "ZERO", "Fact"]

ZERO, POSITIVE, EVERY = "measure zero", "positive measure", "every truth"
"""How many truths have a witness."""
_SCOPES = ("", rules.SPECIAL, rules.EVERYWHERE)


@dataclass(frozen=True)
class Fact:
    """One piece of mathematics behind verdicts.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    title : str
        The fact in one line.
    paper : str
        Short name of the paper.
    places : tuple of str
        Where the sentences stand that it bears on.
    reading : str
        How these sentences are read.
    witness : str
        The witness, or the proof, in closed form.
    truths : str
        At which truths there is one, and whether these are of measure zero.
    repair : str
        What would mend the sentences; empty where nothing needs mending.
    checks : tuple of Check
        What reproduces it; each supports when the fact is seen.
    scope : str
        ``"fails at special truths"`` or ``"fails everywhere"`` where the fact refutes; else empty.
    measure : str
        How many truths have a witness: ``"measure zero"``, ``"positive measure"`` or ``"every
        truth"``; by default the first for special truths, else the last.
    near : bool
        Whether there are witnesses as near to the truth as one likes.
    """

    name: str
    title: str
    paper: str
    places: tuple[str, ...]
    reading: str
    witness: str
    truths: str
    repair: str
    checks: tuple[Check, ...]
    scope: str = ""
    measure: str = ""
    near: bool = True

    def __post_init__(self) -> None:
        if not self.measure:
            object.__setattr__(self, "measure", ZERO if self.scope == rules.SPECIAL else EVERY)
        if self.scope not in _SCOPES:
            raise ValueError(f"{self.name}: scope must be one of {_SCOPES}, got {self.scope!r}")
        if not self.checks:
            raise ValueError(f"{self.name}: a fact needs a check that reproduces it")

    def confirmed(self, outcomes: Sequence[str]) -> bool:
        """Whether every check, one outcome each, sees the fact."""
        return all(outcome == rules.SUPPORTS for outcome in outcomes)
