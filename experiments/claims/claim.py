"""A claim of a paper, joined to what tests it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from experiments.claims import rules
from experiments.claims.kinds import Check
from experiments.claims.scope import Scope

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
    proved, fails, vacuous, misprint, other : tuple of str
        Facts that prove the claim, that refute it with the scope that they state, that show its
        condition to be met by nothing, that show it to be misprinted, and that prove it in another
        way than the paper does.
    supremum : tuple of str
        Facts that prove it of the worst case over a class, by truths of measure zero in it.
    examples : tuple of str
        Beside a vacuous claim, facts by which its conclusion is false for experts that the paper
        names as examples; a conditional that nothing meets cannot fail itself.
    at_closure : tuple of str
        Facts with witnesses outside the claim's parameter set that lie in a larger one: where its
        closure holds what an open condition leaves out.  They decide nothing.
    quotes : str
        The theorem of another work that the claim is, or that it follows from.
    follows : tuple of str
        Facts that are needed beside the quoted theorem, or that say why the claim is unsupported.
    unsupported : str
        Why what the paper gives does not carry the claim, where nothing shows it false.
    outside : str
        Why the truths that were tried are not in the claim's class, so that agreement there decides
        nothing.
    repairs : str
        Id of the claim of which this is a repaired version, with one more assumption; it is not a
        sentence of the paper and counts apart.
    untested : str
        Why there is neither fact nor check, where there is none.
    note : str
        What a reader should know.
    scope : Scope or None
        What the claim quantifies over, where this is not that of its family and paper, see
        `experiments.scopes.scope_of`.
    """

    id: str
    place: str
    statement: str
    family: str = ""
    loss: str = ""
    predicted: Mapping[str, Fraction] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    proved: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    vacuous: tuple[str, ...] = ()
    misprint: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    supremum: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    at_closure: tuple[str, ...] = ()
    quotes: str = ""
    follows: tuple[str, ...] = ()
    unsupported: str = ""
    outside: str = ""
    repairs: str = ""
    untested: str = ""
    note: str = ""
    scope: Scope | None = None

    def __post_init__(self) -> None:
        if self.paper not in PAPERS:
            raise ValueError(f"id must begin with a paper, {', '.join(PAPERS)}: got {self.id!r}")
        if self.vacuous and self.fails:
            raise ValueError(f"{self.id} is vacuous and cannot fail: put fails among the examples")
        tested = self.checks or self.facts or self.quotes or self.unsupported
        if bool(tested) == bool(self.untested):
            raise ValueError(f"{self.id} must have facts or checks, or a reason why it has none")

    @property
    def paper(self) -> str:
        """Short name of the paper."""
        return self.id.partition(".")[0]

    @property
    def facts(self) -> tuple[str, ...]:
        """Names of the facts that bear on the claim."""
        named = (self.vacuous, self.misprint, self.fails, self.proved, self.supremum, self.other)
        beside = (self.follows, self.examples, self.at_closure)
        return tuple(name for names in (*named, *beside) for name in names)

    @property
    def own_roles(self) -> tuple[str, ...]:
        """What the claim says of itself beside its facts and checks."""
        return (
            *((rules.QUOTED,) if self.quotes else ()),
            *((rules.UNSUPPORTED,) if self.unsupported else ()),
        )

    def role(self, fact: str, scope: str) -> str:
        """What a fact with this scope says about the claim, once it is confirmed.

        Parameters
        ----------
        fact : str
            One of `facts`.
        scope : str
            Where the fact's witness exists.

        Returns
        -------
        str
            A verdict.

        Examples
        --------
        >>> claim = Claim("mlmoe.x", "Sec. 1", "Said.", fails=("opposite-scores",))
        >>> claim.role("opposite-scores", "fails at special truths")
        'fails at special truths'
        """
        if fact in self.vacuous:
            return rules.VACUOUS
        if fact in self.misprint:
            return rules.MISPRINT
        if fact in self.fails:
            return scope
        if fact in self.supremum:
            return rules.SUPREMUM
        if fact in self.examples:
            return rules.FOR_EXAMPLES
        if fact in self.at_closure:
            return rules.AT_CLOSURE
        if fact in self.follows:
            return rules.UNSUPPORTED if self.unsupported else rules.QUOTED
        return rules.OTHER if fact in self.other else rules.PROVED
