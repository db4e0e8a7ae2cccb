"""Quantiles of errors where no mass may vanish."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from experiments.claims.kinds.base import Check, Evidence
from experiments.claims.kinds.slopes import told_left_out
from experiments.claims.margins import margin
from experiments.claims.rules import ENDS, OPEN, SUPPORTS

__all__ = ["Floored", "QuantileEvidence", "judge_quantile"]


@dataclass(frozen=True)
class QuantileEvidence(Evidence):
    """The slope of a quantile of errors over the last four decades of sample sizes.

    Parameters
    ----------
    slope : float
        Exponent of n.
    interval : (float, float)
        Its 95% interval, of a bootstrap over replicates.
    """

    slope: float
    interval: tuple[float, float]

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        low, high = self.interval
        return f"slope {self.slope:.3f} [{low:.3f}, {high:.3f}]"


def judge_quantile(evidence: QuantileEvidence, exponent: Fraction, block: str = "expert") -> str:
    """An exponent that the worst estimates attain: the interval holds it and not 0, else ``open``.

    It must hold it by 0.002 at least, the Monte Carlo error of its ends, and be as narrow as
    `judge_slope` asks.  Unlike an upper bound on
    a mean error, such a statement is also off if errors fall faster.

    Examples
    --------
    >>> judge_quantile(QuantileEvidence(-0.13, (-0.15, -0.11)), Fraction(-1, 8), "b")
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
    return SUPPORTS if holds and high - low <= 2.0 * margin(exponent, block) else OPEN


@dataclass(frozen=True)
class Floored(Check):
    """A quantile of errors in a microscope with floored masses, `judge_quantile`.

    Parameters
    ----------
    curve : str
        A curve of a microscope with floored masses.
    size : int
        Fitted atoms in the cell.
    block : str
        The block whose error it is.
    exponent : Fraction
        Predicted exponent of n.
    """

    curve: str
    size: int
    block: str
    exponent: Fraction

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"floored masses, {self.curve}: 90% quantile of {self.block} in cells of {self.size}"

    def _rule(self, evidence: QuantileEvidence) -> str:
        return judge_quantile(evidence, self.exponent, self.block)

    def says(self, evidence: Evidence) -> str:
        """The exponents of the theory that the interval excludes."""
        if not isinstance(evidence, QuantileEvidence):
            return ""
        return told_left_out(evidence.interval, self.block)

    def _shortfall(self, evidence: QuantileEvidence) -> str:
        low, high = evidence.interval
        if not low + ENDS <= self.exponent <= high - ENDS < 0.0:
            return f"it does not hold {self.exponent}"
        widest = margin(self.exponent, self.block)
        return f"the slope is known to {(high - low) / 2.0:.3f}, and it takes {widest:.3f}"
