"""Searches for measures far from a truth that have its law."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.claims.kinds.base import Check, Evidence
from experiments.claims.rules import APART, LAW, OPEN, REFUTES, STARTS, SUPPORTS
from experiments.explorer import CASES
from moestat.theory.identifiability.far import find_far

__all__ = ["Far", "FarEvidence", "judge_far"]

_STARTS = 9


@dataclass(frozen=True)
class FarEvidence(Evidence):
    """What a search for measures with the law of a truth found, by the claim's loss.

    Parameters
    ----------
    n_starts, n_reached : int
        Starts, and those from which the law was reached.
    loss : float
        Largest loss between a measure that was reached and the truth; 0 where it is below 1e-3,
        so that all that were reached are the truth.
    discrepancy : float
        Largest discrepancy of that measure's law; 0 likewise.
    start : str
        Kind of start that led to it; empty likewise.
    """

    n_starts: int
    n_reached: int
    loss: float
    discrepancy: float
    start: str

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        if self.loss >= APART:
            return f"a measure with the truth's law at loss {self.loss:.3g}, from {self.start}"
        return f"no other measure found, {self.n_reached} of {self.n_starts} starts reached the law"


def judge_far(evidence: FarEvidence) -> str:
    """A bound between all measures, far from the truth as well as near it.

    ``refutes`` if a measure at a loss of at least 1e-3 has the truth's law, to a discrepancy of at
    most 1e-8; ``supports`` if at least two starts reached the law and none of them did so there;
    else ``open``.

    Examples
    --------
    >>> judge_far(FarEvidence(10, 4, 4.159, 0.0, "the zero function"))
    'refutes'
    >>> judge_far(FarEvidence(10, 4, 1e-9, 1e-15, "the truth"))
    'supports'
    """
    if evidence.loss >= APART:
        return REFUTES if evidence.discrepancy <= LAW else OPEN
    return SUPPORTS if evidence.n_reached >= STARTS else OPEN


@dataclass(frozen=True)
class Far(Check):
    """A search for measures far from a truth with its law, `judge_far`.

    Parameters
    ----------
    case : str
        A name in `experiments.explorer.CASES`: truth, fitted atoms and loss.
    """

    case: str

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"far from the truth, {self.case}"

    def _rule(self, evidence: FarEvidence) -> str:
        return judge_far(evidence)

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        case = CASES[self.case]
        fitted, true_family, truth = case.families()
        found = find_far(
            fitted,
            true_family,
            truth,
            case.loss,
            design=case.design,
            n_starts=_STARTS if quick else 4 * _STARTS,
        )
        loss = max(found.losses, default=0.0)
        apart = loss >= APART
        return FarEvidence(
            n_starts=found.n_starts,
            n_reached=found.n_reached,
            loss=loss if apart else 0.0,
            discrepancy=found.discrepancy if apart else 0.0,
            start=found.start if apart else "",
        )

    def _shortfall(self, evidence: FarEvidence) -> str:
        return f"{evidence.n_reached} of {evidence.n_starts} starts reached the law of the truth"
