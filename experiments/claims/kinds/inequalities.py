"""Inequalities of the papers, evaluated or searched."""

from __future__ import annotations

import math
from dataclasses import dataclass

from experiments.claims.kinds.base import Check, Evidence, Subject
from experiments.claims.rules import EQUAL, EVERYWHERE, OPEN, REFUTES, SUPPORTS

__all__ = ["Inequality", "InequalityEvidence", "judge_inequality"]


@dataclass(frozen=True)
class InequalityEvidence(Evidence):
    """The two sides of an inequality.

    Parameters
    ----------
    excess : float
        Largest difference of the side that should be smaller and the other one.
    n_trials : int
        Points at which it was evaluated.
    detail : str
        Where, in words.
    """

    excess: float
    n_trials: int
    detail: str = ""

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        text = f"largest excess {self.excess:.1e} in {self.n_trials} trials"
        return f"{text}: {self.detail}" if self.detail else text


def judge_inequality(evidence: InequalityEvidence) -> str:
    """An inequality that a claim says holds everywhere it was evaluated.

    ``refutes`` if it is off by more than rounding somewhere; else ``supports``.

    Examples
    --------
    >>> judge_inequality(InequalityEvidence(excess=-0.2, n_trials=400))
    'supports'
    """
    if math.isnan(evidence.excess):
        return OPEN
    return SUPPORTS if evidence.excess <= EQUAL else REFUTES


@dataclass(frozen=True)
class Inequality(Check):
    """An inequality of a paper, `judge_inequality`.

    Parameters
    ----------
    trial : Subject
        One of `experiments.claims.lipschitz`, `experiments.expert_count.trials` or
        `experiments.mlmoe.independence`; its name begins with the paper.
    failing : str
        What it amounts to if it fails; the trials are at random instances, or at all that the
        paper names.
    """

    trial: Subject[InequalityEvidence]
    failing: str = EVERYWHERE

    @property
    def scope(self) -> str:
        """What it amounts to if it fails."""
        return self.failing

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"inequality, {self.trial.name}"

    def _rule(self, evidence: InequalityEvidence) -> str:
        return judge_inequality(evidence)

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        return self.trial.evidence()
