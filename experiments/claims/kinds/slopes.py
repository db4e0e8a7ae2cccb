"""Slopes of errors that sweeps measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from experiments.claims.kinds.base import Check, Evidence, Subject
from experiments.claims.margins import left_out, margin
from experiments.claims.rules import CERTIFIED, OPEN, STILL_CHANGING, SUPPORTS
from moestat.rates.bounds import BoundVerdict, judge_bound, theory_slopes

__all__ = [
    "FREE_MASSES",
    "AsPrinted",
    "Quantity",
    "Slope",
    "SlopeEvidence",
    "bound_of",
    "judge_slope",
    "told_left_out",
]

FREE_MASSES = "free masses: the extra expert is often light, and its place says nothing"
"""Why the errors in cells of several are not read off fits whose masses may vanish."""
Quantity = str | tuple[int, str]
"""As `experiments.quantities.quantity` takes it."""


@dataclass(frozen=True)
class SlopeEvidence(Evidence):
    """A fitted slope of log error on log n, over the last four decades of sample sizes.

    Parameters
    ----------
    slope : float
        Exponent of n.
    interval : (float, float)
        Its 95% interval; NaN where the data do not determine it.
    n : (float, float)
        Smallest and largest sample size that entered.
    n_fits : int
        Estimates that entered.
    n_certified : int
        Certified ones among them.
    n_left_out, n_failed : int
        Estimates at these sizes that did not enter, and cells without one.
    curvature_p_value : float or None
        p-value of a straight curve; None where it was not kept.
    """

    slope: float
    interval: tuple[float, float]
    n: tuple[float, float]
    n_fits: int
    n_certified: int
    n_left_out: int
    n_failed: int
    curvature_p_value: float | None = None

    @property
    def text(self) -> str:
        """The evidence in a few words."""
        low, high = self.interval
        text = (
            f"slope {self.slope:.2f} [{low:.2f}, {high:.2f}], n {self.n[0]:.0e} to"
            f" {self.n[1]:.0e}, {self.n_fits} fits"
        )
        if self.n_certified < self.n_fits:
            text += f", {self.n_certified} certified"
        if self.n_left_out:
            text += f", {self.n_left_out} left out"
        if self.n_failed:
            text += f", {self.n_failed} failed"
        return text


def judge_slope(evidence: SlopeEvidence, exponent: Fraction, block: str = "loss") -> str:
    """A rate that a theorem bounds by n^exponent, up to its log factor, at the sizes seen.

    ``supports`` if the slope is not slower than the bound by `moestat.rates.bounds.judge_bound`,
    lies below 0, is no wider to either side than half the gap to the nearest exponent that the
    theory knows for the block (`experiments.claims.margins`), does not still change, and nine
    estimates out of ten are certified.  Else ``open``: a slope never refutes.

    Examples
    --------
    >>> seen = SlopeEvidence(-0.47, (-0.53, -0.41), (1e10, 1e14), 100, 100, 0, 0)
    >>> judge_slope(seen, Fraction(-1, 2))
    'supports'
    """
    low, high = evidence.interval
    if math.isnan(low) or math.isnan(high):
        return OPEN
    narrow = high - low <= 2.0 * margin(exponent, block)
    trusted = narrow and _certified(evidence) and not _changes(evidence)
    good = bound_of(evidence, exponent).not_slower and high < 0.0
    return SUPPORTS if good and trusted else OPEN


def bound_of(evidence: SlopeEvidence, exponent: Fraction) -> BoundVerdict:
    """Which of the three sentences the slope supports, as in the reports of sweeps."""
    return judge_bound(evidence.interval, theory_slopes(float(exponent), *evidence.n))


def told_left_out(interval: tuple[float, float], block: str) -> str:
    """The exponents of the theory that an interval excludes, in words."""
    found = left_out(interval, block)
    return f"leaves out {', '.join(map(str, found))}" if found else "leaves out no known exponent"


def _certified(evidence: SlopeEvidence) -> bool:
    return evidence.n_certified >= CERTIFIED * evidence.n_fits > 0


def _changes(evidence: SlopeEvidence) -> bool:
    p_value = evidence.curvature_p_value
    return p_value is not None and p_value < STILL_CHANGING


@dataclass(frozen=True)
class Slope(Check):
    """The slope of an error against n in a sweep, `judge_slope`.

    Parameters
    ----------
    experiment, curve : str
        Shipped experiment and one of its curves.
    quantity : str or (int, str)
        The error.
    exponent : Fraction
        Predicted exponent of n.
    """

    experiment: str
    curve: str
    quantity: Quantity
    exponent: Fraction

    @property
    def name(self) -> str:
        """The check in a few words."""
        return f"{self.experiment}, {self.curve}: {_named(self.quantity)}"

    def _rule(self, evidence: SlopeEvidence) -> str:
        return judge_slope(evidence, self.exponent, self._block)

    @property
    def _block(self) -> str:
        return self.quantity if isinstance(self.quantity, str) else self.quantity[1]

    def says(self, evidence: Evidence) -> str:
        """Which sentence on the bound a slope stands for, and the exponents that it excludes."""
        if not isinstance(evidence, SlopeEvidence) or math.isnan(evidence.interval[0]):
            return ""
        excluded = told_left_out(evidence.interval, self._block)
        if self.judge(evidence) != SUPPORTS:
            return excluded
        return f"{bound_of(evidence, self.exponent).sentence}; {excluded}"

    def _shortfall(self, evidence: SlopeEvidence) -> str:
        low, high = evidence.interval
        if math.isnan(low):
            return "too few fits for an interval"
        if evidence.n_certified < CERTIFIED * evidence.n_fits:
            return f"only {evidence.n_certified} of {evidence.n_fits} fits are certified"
        widest = margin(self.exponent, self._block)
        if high - low > 2.0 * widest:
            known = (high - low) / 2.0
            return f"too few fits: the slope is known to {known:.2f}, and it takes {widest:.3f}"
        if high >= 0.0:
            return "the slope may be 0"
        if _changes(evidence):
            return "the slope still changes, and is no rate yet"
        return "slower than predicted at these sizes, which may be pre-asymptotic"


def _named(quantity: Quantity) -> str:
    return quantity if isinstance(quantity, str) else f"{quantity[1]} in cells of {quantity[0]}"


@dataclass(frozen=True)
class AsPrinted(Check):
    """The density estimate over the class as printed, `judge_slope`.

    Parameters
    ----------
    trial : Subject
        `experiments.compete.class_as_printed.BEST_OF_CLASS`.
    """

    trial: Subject[SlopeEvidence]

    @property
    def name(self) -> str:
        """The check in a few words."""
        return self.trial.name

    def _rule(self, evidence: SlopeEvidence) -> str:
        return judge_slope(evidence, Fraction(-1, 2), "density")

    def gather(self, quick: bool) -> Evidence:
        """The evidence; `quick` searches with fewer starts and radii."""
        return self.trial.evidence()
