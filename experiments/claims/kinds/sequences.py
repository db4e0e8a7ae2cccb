"""Measures that approach a truth: explicit ones, and the nearest that a search finds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from experiments.claims.kinds.base import Check, Evidence, Subject
from experiments.claims.rules import (
    DECADES,
    FLAT,
    NEAR,
    OPEN,
    REFUTES,
    STEEP,
    STRAIGHT,
    SUPPORTS,
    ZERO,
)
from experiments.explorer import quick_search, run_case

__all__ = [
    "Bound",
    "Exponent",
    "Fit",
    "Sequence",
    "SequenceEvidence",
    "judge_exponent",
    "judge_infimum",
    "judge_power",
    "judge_sequence",
    "sequence_exponent",
]


@dataclass(frozen=True)
class SequenceEvidence(Evidence):
    """Measures that approach the truth: their losses and their distances.

    Parameters
    ----------
    losses, distances : tuple of float
        Loss and distance of each, from far to near.
    smallest : bool
        Whether each distance is the smallest that was found at its loss, so that the sequence
        says something about all measures.
    directions : str
        The parameters that move, in words.
    rounding : float
        Distances at or below it are rounding: 1e-13 for a difference of two densities, far less
        where it is the deviations that are integrated.
    """

    losses: tuple[float, ...]
    distances: tuple[float, ...]
    smallest: bool = False
    directions: str = ""
    rounding: float = 1e-13

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        if not self.losses:
            return "no measure found"
        first, last = self.losses[0], self.losses[-1]
        span = f"loss {first:.1e} to {last:.1e}"
        if all(d <= ZERO * x for x, d in zip(self.losses, self.distances, strict=True)):
            return f"distance 0 at {span}"
        fit = sequence_exponent(self)
        return f"distance ~ loss^{fit.exponent:.2f}, residual {fit.residual:.2f}, {span}"


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


def judge_power(evidence: SequenceEvidence, expected: float) -> str:
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


def _searched(case: str, quick: bool) -> SequenceEvidence:
    found = (quick_search if quick else run_case)(case)
    return SequenceEvidence(
        tuple(rung.loss for rung in found.rungs),
        tuple(rung.distance for rung in found.rungs),
        smallest=True,
        directions=found.worst_direction,
        rounding=max((rung.distance for rung in found.rungs if not rung.resolved), default=0.0),
    )


@dataclass(frozen=True)
class Bound(Check):
    """The bound ``d >~ D`` at one truth, searched by the explorer, `judge_infimum`.

    Parameters
    ----------
    case : str
        A name in `moestat.theory.explorer.CASES`.
    shows : str
        What a ratio that goes to 0 says about the claim.
    """

    case: str
    shows: str = REFUTES

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"explorer, {self.case}"

    def _rule(self, evidence: SequenceEvidence) -> str:
        if self.shows == SUPPORTS:
            return judge_sequence(evidence, self.shows)
        return judge_infimum(evidence)

    def gather(self, quick: bool) -> SequenceEvidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        return _searched(self.case, quick)

    def _shortfall(self, evidence: SequenceEvidence) -> str:
        return f"no bounded and no vanishing ratio: {evidence.text}"


@dataclass(frozen=True)
class Exponent(Check):
    """The power of the deviations by which the least distance falls, `judge_exponent`.

    Parameters
    ----------
    case : str
        A name in `moestat.theory.explorer.CASES`.
    power : int
        The power expected: an error of order ``n^(-1 / (2 power))``.
    """

    case: str
    power: int

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"explorer, {self.case}"

    def _rule(self, evidence: SequenceEvidence) -> str:
        return judge_exponent(evidence, self.power)

    def gather(self, quick: bool) -> SequenceEvidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        return _searched(self.case, quick)

    def _shortfall(self, evidence: SequenceEvidence) -> str:
        return f"no bounded and no vanishing ratio: {evidence.text}"


@dataclass(frozen=True)
class Sequence(Check):
    """Explicit measures near a truth, `judge_sequence`, or with a power `judge_power`.

    Parameters
    ----------
    sequence : Subject
        One of `experiments.claims.witnesses`.
    power : float or None
        The power of the loss by which the distance is said to fall; any from 5/4 on without one.
    """

    sequence: Subject[SequenceEvidence]
    power: float | None = None

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"sequence, {self.sequence.name}"

    @property
    def about(self) -> str:
        """What moves, and how the assumptions are met."""
        return self.sequence.about

    def _rule(self, evidence: SequenceEvidence) -> str:
        if self.power is not None:
            return judge_power(evidence, self.power)
        return judge_sequence(evidence, SUPPORTS)

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        return self.sequence.evidence()

    def _shortfall(self, evidence: SequenceEvidence) -> str:
        return f"no bounded and no vanishing ratio: {evidence.text}"
