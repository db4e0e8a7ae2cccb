"""A claim of a paper, joined to what tests it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from moestat.papers.claims.checks import Check
from moestat.papers.claims.rules import UNDECIDED, decide

__all__ = ["PAPERS", "Claim"]

PAPERS: Mapping[str, str] = {
    "mlmoe": "Rethinking Multinomial Logistic Mixture of Experts with Sigmoid Gating Function",
    "attention": "Sigmoid Self-Attention is Better than Softmax Self-Attention: A"
    " Mixture-of-Experts Perspective",
    "compete": "CompeteSMoE: Statistically Guaranteed Mixture of Experts Training via Competition",
    "compete-v1": "CompeteSMoE: Effective Training of Sparse Mixture of Experts via Competition",
    "expert-count": "On the Impact of Expert Count in Mixture of Experts",
}
"""Short name -> title."""


@dataclass(frozen=True)
class Claim:
    """A theorem, proposition, lemma, remark or table entry, and how it is tested.

    Parameters
    ----------
    id : str
        ``paper.place``, such as ``mlmoe.theorem-1``.
    place : str
        Where it is printed.
    statement : str
        What it says, in one sentence.
    family : str
        Likelihood, gate and experts; empty where moestat has none.
    loss : str
        The Voronoi loss, or the distance, that it is on.
    predicted : mapping of str to Fraction
        Exponent of n by what is estimated: ``loss``, ``density``, ``exact`` and ``over`` for the
        atoms in cells of one and of several, ``over 2`` in cells of two.  0 is slower than any
        power.
    checks : tuple of Check
        Where the evidence comes from, with the rules that read it.
    untested : str
        Why there is no check, where there is none.
    note : str
        What a reader should know.
    """

    id: str
    place: str
    statement: str
    family: str = ""
    loss: str = ""
    predicted: Mapping[str, Fraction] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    untested: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if self.paper not in PAPERS:
            raise ValueError(f"id must begin with a paper, {', '.join(PAPERS)}: got {self.id!r}")
        if bool(self.checks) == bool(self.untested):
            raise ValueError(f"{self.id} must have checks or a reason why it has none")

    @property
    def paper(self) -> str:
        """Short name of the paper."""
        return self.id.partition(".")[0]

    def verdict(self, outcomes: Sequence[str]) -> str:
        """The verdict, from one outcome per check.

        Parameters
        ----------
        outcomes : sequence of str
            As the checks judge their evidence.

        Returns
        -------
        str
            ``"holds"``, ``"refuted as printed"`` or ``"undecided"``.

        Examples
        --------
        >>> Claim("mlmoe.lemma-2", "Lemma 2", "Entropy bounds.", untested="no rate").verdict([])
        'undecided'
        """
        if not self.checks:
            return UNDECIDED
        required = (check.required for check in self.checks)
        return decide(list(zip(outcomes, required, strict=True)))
