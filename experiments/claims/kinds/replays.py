"""Slopes in figures of the papers, beside replays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from experiments.claims.kinds.base import Check, Evidence
from experiments.claims.rules import (
    NOT_REPRODUCED,
    OPEN,
    REFUTES,
    REPLAYED,
    REPRODUCED,
    SUPPORTS,
)

__all__ = ["ReplayEvidence", "Replayed", "judge_replay"]


@dataclass(frozen=True)
class ReplayEvidence(Evidence):
    """The slope of a loss in a replay of a published procedure.

    Parameters
    ----------
    slope : float
        Exponent of n, over all sample sizes of the replay.
    interval : (float, float)
        Its 95% interval.
    """

    slope: float
    interval: tuple[float, float]

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        low, high = self.interval
        return f"slope {self.slope:.2f} [{low:.2f}, {high:.2f}]"


def judge_replay(evidence: ReplayEvidence, published: Fraction) -> str:
    """A slope that a paper measured, beside that of a replay.

    ``supports`` if the replay's interval holds it and is narrow, ``refutes`` if the interval leaves
    it out; else ``open``.  What is refuted is that the replay reproduces the figure, not the
    figure: a paper leaves the noise of its starts open.

    Examples
    --------
    >>> judge_replay(ReplayEvidence(-0.5, (-0.6, -0.4)), Fraction(-49, 100))
    'supports'
    >>> judge_replay(ReplayEvidence(-1.2, (-1.4, -0.9)), Fraction(-49, 100))
    'refutes'
    >>> judge_replay(ReplayEvidence(-0.5, (-1.6, 0.4)), Fraction(-49, 100))
    'open'
    """
    low, high = evidence.interval
    if not low <= published <= high:
        return OPEN if math.isnan(low) or math.isnan(high) else REFUTES
    return SUPPORTS if high - low <= 2.0 * REPLAYED else OPEN


@dataclass(frozen=True)
class Replayed(Check):
    """A slope in a paper's figure, beside that of a replay, `judge_replay`.

    Parameters
    ----------
    experiment, curve : str
        Shipped experiment whose report has the replay, and its curve.
    published : Fraction
        The slope in the figure.
    """

    experiment: str
    curve: str
    published: Fraction

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"replay, {self.experiment}: {self.curve}"

    @property
    def strength(self) -> str:
        """A number that is found again."""
        return REPRODUCED

    @property
    def scope(self) -> str:
        """A number that is not found again."""
        return NOT_REPRODUCED

    def _rule(self, evidence: ReplayEvidence) -> str:
        return judge_replay(evidence, self.published)

    def _shortfall(self, evidence: ReplayEvidence) -> str:
        return f"too few fits: {evidence.text}"
