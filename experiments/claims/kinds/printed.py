"""Sentences beside the numbers that their papers print."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.claims.kinds.base import Check, Evidence, Subject
from experiments.claims.rules import CONTRADICTED, PROVED, REFUTES, SUPPORTS

__all__ = ["Printed", "PrintedEvidence", "judge_printed"]


@dataclass(frozen=True)
class PrintedEvidence(Evidence):
    """Numbers that a paper prints, beside a sentence of it.

    Parameters
    ----------
    n_numbers : int
        Comparisons that the sentence makes.
    against : tuple of str
        Those that the printed numbers do not bear out, in words.
    """

    n_numbers: int
    against: tuple[str, ...]

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        if not self.against:
            return f"borne out by {self.n_numbers} of {self.n_numbers} comparisons"
        held = self.n_numbers - len(self.against)
        return f"{held} of {self.n_numbers} comparisons; against it: {'; '.join(self.against)}"


def judge_printed(evidence: PrintedEvidence) -> str:
    """A sentence beside the numbers that its paper prints: ``refutes`` if one is against it.

    Examples
    --------
    >>> judge_printed(PrintedEvidence(3, ("1.139 above 1.123",)))
    'refutes'
    """
    return REFUTES if evidence.against else SUPPORTS


@dataclass(frozen=True)
class Printed(Check):
    """A sentence beside the numbers that its paper prints, `judge_printed`.

    Parameters
    ----------
    sentence : Subject
        One of `experiments.claims.printed`.
    failing : str
        What it amounts to if the numbers are against it.
    """

    sentence: Subject[PrintedEvidence]
    failing: str = CONTRADICTED

    @property
    def strength(self) -> str:
        """Arithmetic."""
        return PROVED

    @property
    def scope(self) -> str:
        """What it amounts to if the numbers are against it."""
        return self.failing

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"printed numbers, {self.sentence.name}"

    def _rule(self, evidence: PrintedEvidence) -> str:
        return judge_printed(evidence)

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        return self.sentence.evidence()
