"""The decision rules, fixed before any evidence: numbers in, outcome out.

An outcome is what one piece of evidence says about a claim; `decide` makes a verdict of all of
them.  Slopes of sampled losses never refute: a curve may be pre-asymptotic at any n.  What refutes
is an explicit pair of measures with one density, a sequence of measures along which a bound fails,
or a computed order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from experiments.claims.evidence import (
    ContrastEvidence,
    DependenceEvidence,
    IdentityEvidence,
    InequalityEvidence,
    OrbitEvidence,
    OrderEvidence,
    PairEvidence,
    PrintedEvidence,
    QuantileEvidence,
    ReplayEvidence,
    SequenceEvidence,
    SlopeEvidence,
)

__all__ = [
    "CONSISTENT",
    "CONTRADICTED",
    "EVERYWHERE",
    "MISPRINT",
    "OPEN",
    "OPEN_VERDICT",
    "OTHER",
    "PROVED",
    "QUOTED",
    "REFUTES",
    "SPECIAL",
    "SUPPORTS",
    "UNSUPPORTED",
    "VACUOUS",
    "VERDICTS",
    "Fit",
    "Outcome",
    "decide",
    "judge_contrast",
    "judge_dependence",
    "judge_exponent",
    "judge_identity",
    "judge_inequality",
    "judge_infimum",
    "judge_orbit",
    "judge_order",
    "judge_pair",
    "judge_power",
    "judge_printed",
    "judge_quantile",
    "judge_replay",
    "judge_sequence",
    "judge_slope",
    "sequence_exponent",
]

SUPPORTS, REFUTES, OPEN = "supports", "refutes", "open"
PROVED, CONSISTENT, OPEN_VERDICT = "proved", "consistent", "open"
SPECIAL, EVERYWHERE = "fails at special truths", "fails everywhere"
VACUOUS, MISPRINT = "vacuous", "misprint"
OTHER, QUOTED = "true, for another reason", "quoted"
UNSUPPORTED, CONTRADICTED = "unsupported", "contradicted by the paper's own numbers"
VERDICTS: Mapping[str, str] = {
    PROVED: "a proof is written in its fact, or an equation is checked as printed; where a fact"
    " tries its inequalities at random points, this is a check of the writing, not the proof",
    OTHER: "the sentence holds, by a proof in its fact, and the reason that the paper gives is not"
    " why",
    QUOTED: "a theorem of another work, or what follows from one by facts that are seen here; the"
    " quoted theorem is not proved again",
    CONSISTENT: "nothing refutes, and every required measurement agrees, at the truths that were"
    " tried; not a proof",
    SPECIAL: "an explicit witness at some truths that the assumptions allow; each fact says which,"
    " and whether they are of measure zero",
    EVERYWHERE: "an explicit witness at every truth of the paper's class",
    VACUOUS: "a conditional whose condition nothing meets",
    CONTRADICTED: "numbers that the paper prints say otherwise",
    MISPRINT: "the printed sentence is not the one that the paper uses; the intended one is judged"
    " apart",
    UNSUPPORTED: "nothing shows it false, and what the paper gives for it does not carry it",
    OPEN_VERDICT: "none of these, with the reason",
}
"""Verdict -> what it means, from the strongest support to none."""

WIDE = 0.15
"""A slope supports a claim only if its 95% interval is at most this wide to either side."""
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
EQUAL, UNEQUAL = 1e-6, 1e-2
"""Relative residuals up to which an equation holds, and from which on it does not."""
LAW, STARTS = 1e-8, 2
"""Largest discrepancy of one law, and starts that must have come back to a truth alone."""
ENDS = 0.002
"""How well the ends of a bootstrap interval are known: an exponent must lie inside by so much."""
NEAR = 0.1
"""How far an order may be from the one expected, relative."""


def judge_slope(evidence: SlopeEvidence, exponent: Fraction) -> str:
    """A rate n^exponent, up to its log factor, at the sizes seen.

    ``supports`` if the 95% interval reaches down to ``exponent (1 - 1 / log n)``, the local slope
    of ``(log n / n)^-exponent`` in the middle of the sizes, lies below 0, is no wider than 0.15
    to either side, and nine estimates out of ten are certified.  Else ``open``: a slope never
    refutes.

    Examples
    --------
    >>> seen = SlopeEvidence(-0.47, (-0.53, -0.41), (1e10, 1e14), 100, 100, 0, 0)
    >>> judge_slope(seen, Fraction(-1, 2))
    'supports'
    """
    low, high = evidence.interval
    if math.isnan(low) or math.isnan(high):
        return OPEN
    trusted = high - low <= 2.0 * WIDE and _certified(evidence)
    return SUPPORTS if low <= _local(evidence, exponent) and high < 0.0 and trusted else OPEN


def _certified(evidence: SlopeEvidence) -> bool:
    return evidence.n_certified >= CERTIFIED * evidence.n_fits > 0


def _local(evidence: SlopeEvidence, exponent: Fraction) -> float:
    middle = math.sqrt(evidence.n[0] * evidence.n[1])
    return float(exponent) * (1.0 - 1.0 / math.log(middle))


def judge_quantile(evidence: QuantileEvidence, exponent: Fraction) -> str:
    """An exponent that the worst estimates attain: the interval holds it and not 0, else ``open``.

    It must hold it by 0.002 at least, the Monte Carlo error of its ends, and be as narrow as
    `judge_slope` asks.  Unlike an upper bound on
    a mean error, such a statement is also off if errors fall faster.

    Examples
    --------
    >>> judge_quantile(QuantileEvidence(-0.13, (-0.15, -0.11)), Fraction(-1, 8))
    'supports'
    >>> judge_quantile(QuantileEvidence(-0.25, (-0.28, -0.22)), Fraction(-1, 8))
    'open'
    >>> judge_quantile(QuantileEvidence(-0.117, (-0.139, -0.083)), Fraction(-1, 12))
    'open'
    >>> judge_quantile(QuantileEvidence(-0.25, (-0.5, -0.1)), Fraction(-1, 4))
    'open'
    """
    low, high = evidence.interval
    holds = low + ENDS <= exponent <= high - ENDS < 0.0
    return SUPPORTS if holds and high - low <= 2.0 * WIDE else OPEN


def judge_replay(evidence: ReplayEvidence, published: Fraction) -> str:
    """A slope that a paper measured: a replay's interval holds it and is narrow, else ``open``.

    A replay never refutes, since the paper leaves the noise of its starts open.

    Examples
    --------
    >>> judge_replay(ReplayEvidence(-0.5, (-0.6, -0.4)), Fraction(-49, 100))
    'supports'
    >>> judge_replay(ReplayEvidence(-1.2, (-1.4, -0.9)), Fraction(-49, 100))
    'open'
    """
    low, high = evidence.interval
    return SUPPORTS if low <= published <= high and high - low <= 2.0 * WIDE else OPEN


def judge_pair(evidence: PairEvidence, shows: str) -> str:
    """Two measures with one density: `shows` if they are that, else ``open``.

    Examples
    --------
    >>> judge_pair(PairEvidence(distance=2e-17, error=1e-17, loss=2.0), REFUTES)
    'refutes'
    """
    one = evidence.distance + evidence.error <= SAME
    return shows if one and evidence.loss >= APART else OPEN


@dataclass(frozen=True)
class Fit:
    """The line through log distance against log loss.

    Parameters
    ----------
    exponent : float
        r of ``distance ~ loss^r``.
    residual : float
        Largest residual, in log10.
    decades : float
        Decades of loss.
    """

    exponent: float
    residual: float
    decades: float


def sequence_exponent(evidence: SequenceEvidence) -> Fit:
    """The exponent of a sequence, over the members whose distance is not rounding.

    Examples
    --------
    >>> sequence_exponent(SequenceEvidence((1e-1, 1e-2, 1e-3), (1e-2, 1e-4, 1e-6))).exponent
    2.0
    """
    loss, distance = np.array(evidence.losses), np.array(evidence.distances)
    kept = (distance > evidence.rounding) & (loss > 0.0)
    if np.sum(kept) < 3:
        return Fit(math.nan, math.nan, 0.0)
    x, y = np.log10(loss[kept]), np.log10(distance[kept])
    slope, intercept = np.polyfit(x, y, 1)
    residual = float(np.max(np.abs(y - intercept - slope * x)))
    return Fit(round(float(slope), 6), residual, float(x.max() - x.min()))


def judge_sequence(evidence: SequenceEvidence, shows: str = REFUTES) -> str:
    """Measures along which ``distance >= C loss`` fails: `shows`, else ``open``.

    Either all distances are 0, at most 1e-10 of the loss, or the distance falls like loss^r with
    r of at least 1.25 on a straight line over at least a decade of loss: no constant C is left.

    Examples
    --------
    >>> judge_sequence(SequenceEvidence((1e-1, 1e-2, 1e-3), (1e-2, 1e-4, 1e-6)))
    'refutes'
    """
    pairs = list(zip(evidence.losses, evidence.distances, strict=True))
    if pairs and all(loss > 0.0 and distance <= ZERO * loss for loss, distance in pairs):
        return shows
    fit = sequence_exponent(evidence)
    fails = fit.exponent >= STEEP and fit.residual <= STRAIGHT and fit.decades >= DECADES
    return shows if fails else OPEN


def judge_infimum(evidence: SequenceEvidence) -> str:
    """The bound ``distance >= C loss`` from the smallest distances at each loss.

    ``refutes`` as `judge_sequence`.  ``supports`` if the smallest distances fall like loss^r with
    r at most 1.1 on a straight line over at least a decade of loss.

    Examples
    --------
    >>> judge_infimum(SequenceEvidence((1e-1, 1e-2, 1e-3), (1e-2, 1e-3, 1e-4), smallest=True))
    'supports'
    """
    if judge_sequence(evidence) == REFUTES:
        return REFUTES
    fit = sequence_exponent(evidence)
    holds = fit.exponent <= FLAT and fit.residual <= STRAIGHT and fit.decades >= DECADES
    return SUPPORTS if evidence.smallest and holds else OPEN


def judge_dependence(evidence: DependenceEvidence, independent: bool) -> str:
    """A family of functions that a claim says is linearly `independent`, or is not.

    The singular values must jump by a factor of a thousand at the rank, else ``open``.

    Examples
    --------
    >>> judge_dependence(DependenceEvidence(5, 4, 1e12, ("F_bb = F_A",)), independent=True)
    'refutes'
    """
    if evidence.gap < GAP:
        return OPEN
    return SUPPORTS if (evidence.rank == evidence.n_functions) == independent else REFUTES


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


def judge_contrast(evidence: ContrastEvidence) -> str:
    """A claim that a metric is larger in the first runs than in the second.

    ``supports`` if the interval of the difference lies above 0; else ``open``: a paper's figure is
    of settings of its own, and one that does not state them all cannot be refuted by other runs.

    Examples
    --------
    >>> judge_contrast(ContrastEvidence(0.02, (0.01, 0.03), 5))
    'supports'
    """
    return SUPPORTS if evidence.interval[0] > 0.0 else OPEN


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


def judge_printed(evidence: PrintedEvidence) -> str:
    """A sentence beside the numbers that its paper prints: ``refutes`` if one is against it.

    Examples
    --------
    >>> judge_printed(PrintedEvidence(3, ("1.139 above 1.123",)))
    'refutes'
    """
    return REFUTES if evidence.against else SUPPORTS


def judge_orbit(evidence: OrbitEvidence) -> str:
    """A claim that a truth is identified.

    ``refutes`` if other parameters have its law, to a discrepancy of at most 1e-8 and with a
    clear rank; ``supports`` if at least two starts reached the law and all came back to the
    truth, with a clear rank; else ``open``.

    Examples
    --------
    >>> judge_orbit(OrbitEvidence(False, 5, 1e8, 1e-15, ("true atom split",)))
    'refutes'
    """
    if evidence.gap < GAP or evidence.discrepancy > LAW:
        return OPEN
    if not evidence.identified:
        return REFUTES
    return SUPPORTS if evidence.n_reached >= STARTS else OPEN


def judge_exponent(evidence: SequenceEvidence, expected: int) -> str:
    """A claim that the smallest distances fall like the `expected` power of the deviations.

    ``supports`` if the power is within a tenth of it, on a straight line over at least a decade;
    else ``open``.

    Examples
    --------
    >>> found = SequenceEvidence((1e-1, 1e-2), (1e-4, 1e-8), smallest=True)
    >>> judge_exponent(found, 4)
    'open'
    """
    return judge_power(evidence, expected) if evidence.smallest else OPEN


def judge_power(evidence: SequenceEvidence, expected: int) -> str:
    """Explicit measures whose distance is said to fall like the `expected` power of their loss.

    ``supports`` under the conditions of `judge_exponent`, which asks for smallest distances too.

    Examples
    --------
    >>> judge_power(SequenceEvidence((1e-1, 3e-2, 1e-2), (1e-4, 8.1e-7, 1e-8)), 4)
    'supports'
    """
    fit = sequence_exponent(evidence)
    near = abs(fit.exponent - expected) <= NEAR * expected
    straight = fit.residual <= STRAIGHT and fit.decades >= 0.99 * DECADES
    return SUPPORTS if near and straight else OPEN


def judge_order(evidence: OrderEvidence, claimed: int, at_least: bool = False) -> str:
    """A claim that rbar(m) is a number, or `at_least` that number.

    Examples
    --------
    >>> judge_order(OrderEvidence(2, 4, 4), claimed=4)
    'supports'
    >>> judge_order(OrderEvidence(4, 8, 8), claimed=7, at_least=True)
    'supports'
    """
    if at_least:
        if evidence.at_least >= claimed:
            return SUPPORTS
        return REFUTES if evidence.at_most < claimed else OPEN
    if evidence.at_least == evidence.at_most == claimed:
        return SUPPORTS
    return OPEN if evidence.at_least <= claimed <= evidence.at_most else REFUTES


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
        What its support amounts to: ``"proved"`` or ``"consistent"``.
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
    OTHER,
    QUOTED,
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
        truths, contradicted, proved, true for another reason, quoted and unsupported that a fact,
        a refuting check or the claim itself says; else ``proved`` or ``consistent`` where all
        required checks support, and there is one; else ``open``.

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
    exact = all(each.strength == PROVED for each in required)
    return PROVED if exact else CONSISTENT
