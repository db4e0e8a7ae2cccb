"""Two explicit measures with one density."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.claims.kinds.base import Check, Evidence, Subject
from experiments.claims.rules import APART, OPEN, PROVED, SAME, SUPPORTS

__all__ = ["PairEvidence", "Witness", "judge_pair"]


@dataclass(frozen=True)
class PairEvidence(Evidence):
    """Two measures that the claim's assumptions allow, with one density.

    Parameters
    ----------
    distance, error : float
        Total variation of their densities, or L2 distance of their regression functions relative
        to the norm of one; and how far the number may be off.
    loss : float
        The claim's loss between them.
    n_truths : int
        Truths at which the pair was built; then the numbers are the worst of all.
    """

    distance: float
    error: float
    loss: float
    n_truths: int = 1

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        text = f"distance {self.distance:.1e}, loss {self.loss:.3g}"
        worst = f", the worst of {self.n_truths} truths" if self.n_truths > 1 else ""
        return text + worst


def judge_pair(evidence: PairEvidence, shows: str) -> str:
    """Two measures with one density: `shows` if they are that, else ``open``.

    Examples
    --------
    >>> judge_pair(PairEvidence(distance=2e-17, error=1e-17, loss=2.0), "fails")
    'fails'
    """
    one = evidence.distance + evidence.error <= SAME
    return shows if one and evidence.loss >= APART else OPEN


@dataclass(frozen=True)
class Witness(Check):
    """Two explicit measures with one density, `judge_pair`.

    Parameters
    ----------
    pair : Subject
        One of `experiments.claims.witnesses`.
    """

    pair: Subject[PairEvidence]

    @property
    def strength(self) -> str:
        """Exact: no sampling enters."""
        return PROVED

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"pair, {self.pair.name}"

    @property
    def about(self) -> str:
        """How the measures meet the assumptions, and why their densities agree."""
        return self.pair.about

    def _rule(self, evidence: PairEvidence) -> str:
        return judge_pair(evidence, SUPPORTS)

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        return self.pair.evidence()
