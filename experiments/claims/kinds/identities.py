"""Equations between derivatives, evaluated as printed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from experiments.claims.kinds.base import Check, Evidence, Subject
from experiments.claims.rules import EQUAL, EVERYWHERE, OPEN, PROVED, REFUTES, SUPPORTS, UNEQUAL

__all__ = ["Identity", "IdentityEvidence", "judge_identity"]


@dataclass(frozen=True)
class IdentityEvidence(Evidence):
    """Two sides of an equation between functions.

    Parameters
    ----------
    residual : float
        Largest difference over random inputs and parameters, relative to the larger side.
    """

    residual: float

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        return f"relative residual {self.residual:.1e}"


def judge_identity(evidence: IdentityEvidence, holds: bool = True) -> str:
    """An equation between functions that a claim says `holds`, or does not.

    Examples
    --------
    >>> judge_identity(IdentityEvidence(residual=0.4))
    'refutes'
    """
    if EQUAL < evidence.residual < UNEQUAL or math.isnan(evidence.residual):
        return OPEN
    return SUPPORTS if (evidence.residual <= EQUAL) == holds else REFUTES


@dataclass(frozen=True)
class Identity(Check):
    """An equation between derivatives, evaluated as printed, `judge_identity`.

    Parameters
    ----------
    equation : Subject
        One of `experiments.claims.equations`.
    claimed : bool
        Whether the claim is that it holds.
    """

    equation: Subject[IdentityEvidence]
    claimed: bool = True

    @property
    def strength(self) -> str:
        """Exact: no sampling enters."""
        return PROVED

    @property
    def scope(self) -> str:
        """Parameters are drawn at random, so what is found there is found everywhere."""
        return EVERYWHERE

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"equation, {self.equation.name}"

    @property
    def about(self) -> str:
        """The equation."""
        return self.equation.about

    def _rule(self, evidence: IdentityEvidence) -> str:
        return judge_identity(evidence, self.claimed)

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        return self.equation.evidence()
