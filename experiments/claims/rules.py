"""The decision rules, fixed before any evidence: numbers in, outcome out.

An outcome is what one piece of evidence says about a claim; `decide` makes a verdict of all of
them.  Slopes of sampled losses never refute: a curve may be pre-asymptotic at any n.  What refutes
is an explicit pair of measures with one density, a sequence of measures along which a bound fails,
or a computed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "AT_CLOSURE",
    "CONSISTENT",
    "CONTRADICTED",
    "EVERYWHERE",
    "FOR_EXAMPLES",
    "MISPRINT",
    "NOT_REPRODUCED",
    "OPEN",
    "OPEN_VERDICT",
    "OTHER",
    "PROVED",
    "QUOTED",
    "REFUTES",
    "REPRODUCED",
    "SPECIAL",
    "SUPPORTS",
    "SUPREMUM",
    "UNSUPPORTED",
    "VACUOUS",
    "VERDICTS",
    "Outcome",
    "decide",
]

SUPPORTS, REFUTES, OPEN = "supports", "refutes", "open"
PROVED, CONSISTENT, OPEN_VERDICT = "proved", "consistent", "open"
SPECIAL, EVERYWHERE = "fails at special truths", "fails everywhere"
VACUOUS, MISPRINT = "vacuous", "misprint"
OTHER, QUOTED = "true, for another reason", "quoted"
UNSUPPORTED, CONTRADICTED = "unsupported", "contradicted by the paper's own numbers"
SUPREMUM = "true as a supremum"
REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
FOR_EXAMPLES = "false for the experts that the paper names"
"""What a fact shows beside a claim that is vacuous; it decides nothing."""
AT_CLOSURE = "fails where the closure of the parameters holds what alpha != 0 leaves out"
"""What a fact shows whose witness an open condition of the paper leaves out of a compact set; it
decides nothing."""
VERDICTS: Mapping[str, str] = {
    PROVED: "a proof is written in its fact, or an equation is checked as printed; where a fact"
    " tries its inequalities at random points, this is a check of the writing, not the proof",
    SUPREMUM: "proved of the worst case over the named class, by truths in it of measure zero that"
    " each fact names; of other truths of the class nothing is said, and the same sentence may be"
    " false there",
    OTHER: "the sentence holds, by a proof in its fact, and the reason that the paper gives is not"
    " why",
    QUOTED: "a theorem of another work, or what follows from one by facts that are seen here; the"
    " quoted theorem is not proved again",
    CONSISTENT: "nothing refutes, and every required measurement agrees, at the truths that were"
    " tried, which are of the claim's class; not a proof",
    REPRODUCED: "a number in a figure, which a repetition of the printed procedure finds again",
    SPECIAL: "an explicit witness at some truths that the assumptions allow; each fact says which,"
    " and whether they are of measure zero",
    EVERYWHERE: "an explicit witness at every truth of the paper's class",
    VACUOUS: "a conditional whose condition nothing meets",
    CONTRADICTED: "numbers or formulas that the paper prints elsewhere say otherwise",
    MISPRINT: "the printed sentence is not the one that the paper uses; the intended one is judged"
    " apart",
    NOT_REPRODUCED: "a number or contrast in a figure or table, and runs of our own, with intervals"
    " that leave it out, say otherwise; they are smaller, or choose what the paper leaves open, so"
    " that it is not refuted",
    UNSUPPORTED: "nothing shows it false, and what the paper gives for it does not carry it",
    OPEN_VERDICT: "none of these, with the reason",
}
"""Verdict -> what it means, from the strongest support to none."""

STILL_CHANGING = 0.05
"""A test of curvature below this level: the slope still changes and is no rate."""
CERTIFIED = 0.9
"""Share of the estimates that must be certified."""
SAME = 1e-12
"""Two densities at most this far apart, numerical error included, are one."""
APART = 1e-3
"""Two measures with at least this loss between them are two."""
STEEP, FLAT = 1.25, 1.1
"""A distance that falls like loss^r refutes `distance >= C loss` from STEEP on; at most FLAT
supports it."""
STRAIGHT = 0.1
"""Largest residual, in log10, of the line through a sequence."""
DECADES = 1.0
"""Decades of loss that a sequence must span."""
ZERO = 1e-10
"""Distances at or below this share of a loss are 0."""
GAP = 1e3
"""Least ratio of the singular values on the two sides of a rank."""
CLEAR = 1e12
"""Largest such ratio that is kept: above it the smaller value is rounding."""
EQUAL, UNEQUAL = 1e-6, 1e-2
"""Relative residuals up to which an equation holds, and from which on it does not."""
LAW, STARTS = 1e-8, 2
"""Largest discrepancy of one law, and starts that must have come back to a truth alone."""
REPLAYED = 0.15
"""Largest half-width of the slope of a repeated procedure: slopes that the figures contrast, -0.49,
-0.30 and -0.11, are 0.19 apart."""
ENDS = 0.002
"""How well the ends of a bootstrap interval are known: an exponent must lie inside by so much."""
NEAR = 0.1
"""How far an order may be from the one expected, relative."""


@dataclass(frozen=True)
class Outcome:
    """What one check says about a claim.

    Parameters
    ----------
    says : str
        ``"supports"``, ``"refutes"`` or ``"open"``.
    required : bool
        Whether the claim needs its support.
    strength : str
        What its support amounts to: ``"proved"``, ``"reproduced"`` or ``"consistent"``.
    scope : str
        What its refutation amounts to, such as ``"fails everywhere"``.
    """

    says: str
    required: bool = True
    strength: str = CONSISTENT
    scope: str = SPECIAL


_DECIDING = (
    VACUOUS,
    MISPRINT,
    EVERYWHERE,
    SPECIAL,
    CONTRADICTED,
    PROVED,
    SUPREMUM,
    OTHER,
    QUOTED,
    NOT_REPRODUCED,
    UNSUPPORTED,
)
"""Verdicts of facts, of refuting checks and of claims themselves, the deciding ones first."""


def decide(outcomes: Sequence[Outcome], roles: Sequence[str] = ()) -> str:
    """The verdict on a claim.

    Parameters
    ----------
    outcomes : sequence of Outcome
        One per check.
    roles : sequence of str
        One per confirmed fact that bears on the claim: what it says about it; and one where
        the claim is quoted, or not supported.

    Returns
    -------
    str
        A key of `VERDICTS`: the first of vacuous, misprint, fails everywhere, fails at special
        truths, contradicted, proved, true as a supremum, true for another reason, quoted, not
        reproduced and unsupported that a fact, a refuting check or the claim itself says; else
        ``proved``, ``reproduced`` or ``consistent`` where all required checks support, and there
        is one; else ``open``.

    Examples
    --------
    >>> decide([Outcome(SUPPORTS), Outcome(OPEN, required=False)])
    'consistent'
    >>> decide([Outcome(SUPPORTS), Outcome(REFUTES, scope=SPECIAL)])
    'fails at special truths'
    >>> decide([], [PROVED]), decide([])
    ('proved', 'open')
    """
    said = {*roles, *(each.scope for each in outcomes if each.says == REFUTES)}
    for verdict in _DECIDING:
        if verdict in said:
            return verdict
    required = [each for each in outcomes if each.required]
    if not required or any(each.says != SUPPORTS for each in required):
        return OPEN_VERDICT
    strengths = {each.strength for each in required}
    return strengths.pop() if len(strengths) == 1 else CONSISTENT
