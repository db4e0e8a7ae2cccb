"""One rule for slopes beside a theorem: not slower than its bound, its exponent, faster.

A theorem on rates is an upper bound: a loss is of order (log n / n)^a at most.  Three sentences can
be true of a measured slope, and a measurement may support one and not another:

- *not slower than the bound*: the 95% interval reaches the bound's own slope or lies below it;
- *this exponent*: the interval holds a slope between those of n^(-a) with and without the
  logarithm;
- *faster than the bound*: the interval lies below both, which refutes no upper bound.

An interval that holds the exponent says none of them where it is too wide to tell the exponent from
the next one: wider than half the gap between them to either side, or than 0.15.

The slope with the logarithm is that of the function (log n / n)^a itself: of the line that the same
regression, with the same sizes and weights, fits to its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from moestat.base.types import FloatArray

__all__ = [
    "EXPONENTS",
    "BoundVerdict",
    "judge_bound",
    "logarithmic_slope",
    "margin_of",
    "theory_slopes",
]

EXPONENTS = (0.0, -1 / 12, -1 / 8, -1 / 6, -1 / 4, -1 / 2)
"""The exponents of the theorems, and that of a plateau."""
SLOWER, EXACT, FASTER = "slower", "this exponent", "faster"
TOO_WIDE, UNDECIDED = "too wide", "undecided"
WIDE = 0.15
"""Half-width of an interval from which on it tells no exponents apart, however far the next one is:
the theorems' first two, -1/2 and -1/4, are 0.25 apart."""
_LEAST = 3.0
"""Smallest sample size at which the logarithm of the logarithm is used."""
_SLACK = 1e-9
"""Rounding of slopes of losses without noise."""
_POINTS = 200
"""Sizes between two ends, evenly spaced in log n: twice as many change no slope by 1e-4."""


@dataclass(frozen=True)
class BoundVerdict:
    """What a slope says of a theorem's rate, over the sizes that it was measured at.

    Parameters
    ----------
    word : str
        ``"slower"``, ``"this exponent"``, ``"faster"``, ``"too wide"``, or ``"undecided"`` without
        an interval.
    """

    word: str

    @property
    def not_slower(self) -> bool:
        """Whether the slope is not slower than the bound."""
        return self.word in (EXACT, FASTER)

    @property
    def this_exponent(self) -> bool:
        """Whether the slope is that of the theorem, with or without its logarithm."""
        return self.word == EXACT

    @property
    def faster(self) -> bool:
        """Whether the slope is faster than the bound."""
        return self.word == FASTER

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return {
            SLOWER: "slower than the bound over these sizes",
            EXACT: "not slower than the bound, and of this exponent",
            FASTER: "faster than the bound, which it does not refute",
            TOO_WIDE: "the interval is too wide to say more than that it holds the exponent",
            UNDECIDED: "no interval",
        }[self.word]


def theory_slopes(exponent: float, first: float, last: float) -> tuple[float, float]:
    """The slopes that a theorem's rate may have over a range of sizes: without and with its log.

    Parameters
    ----------
    exponent : float
        Predicted exponent of n, such as -0.5.
    first, last : float
        Smallest and largest sample size.

    Returns
    -------
    (float, float)
        The steepest and the flattest slope; the same number twice where the exponent is not
        negative, or a size is below 3.

    Notes
    -----
    The sizes are taken to be spread evenly in log n, and to count alike.  `moestat.fit_rate`, which
    knows sizes and weights, uses those in `logarithmic_slope`.

    Examples
    --------
    >>> low, high = theory_slopes(-0.5, 1e4, 1e6)
    >>> low, round(high, 4)
    (-0.5, -0.4562)
    """
    log_n = np.linspace(math.log(first), math.log(last), _POINTS)
    return exponent, logarithmic_slope(exponent, log_n, np.ones(_POINTS))


def logarithmic_slope(exponent: float, log_n: FloatArray, weights: FloatArray) -> float:
    """The slope of the line that weighted least squares fit to ``log((log n / n)^-exponent)``.

    Parameters
    ----------
    exponent : float
        Predicted exponent of n, such as -0.5.
    log_n, weights : ndarray of shape (G,)
        Logarithm of each sample size, and the sum of the weights of its losses.

    Returns
    -------
    float
        The slope; the exponent itself where it is not negative, a size is below 3, or all sizes
        are one.

    Examples
    --------
    >>> log_n = np.log([1e3, 1e4, 1e5])
    >>> round(logarithmic_slope(-0.5, log_n, np.ones(3)), 4)
    -0.4445
    """
    if exponent >= 0.0 or log_n.min() < math.log(_LEAST):
        return exponent
    x = log_n - np.average(log_n, weights=weights)
    spread = float((weights * x) @ x)
    return exponent * (1.0 - float((weights * x) @ np.log(log_n)) / spread) if spread else exponent


def margin_of(exponent: float | Fraction, others: Sequence[float | Fraction] = EXPONENTS) -> float:
    """The half-width that an interval may have and tell an exponent from the next one.

    Parameters
    ----------
    exponent : float or Fraction
        Predicted exponent of n.
    others : sequence of float or Fraction
        Exponents that it is told from; those of the theorems by default.

    Returns
    -------
    float
        Half the gap to the nearest other exponent, at most 0.15.

    Examples
    --------
    >>> margin_of(-0.5), round(margin_of(-0.25), 3), margin_of(-0.5, [-0.25, -1.0])
    (0.125, 0.042, 0.125)
    """
    gaps = [abs(other - exponent) for other in others if not math.isclose(other, exponent)]
    return min([WIDE, *(0.5 * gap for gap in gaps)])


def judge_bound(
    interval: tuple[float, float], slopes: tuple[float, float], margin: float = WIDE
) -> BoundVerdict:
    """Judge the interval of a slope beside the slopes of a theorem.

    Parameters
    ----------
    interval : (float, float)
        95% interval of the slope; NaN where there is none.
    slopes : (float, float)
        As `theory_slopes` gives them.
    margin : float
        Half-width up to which an interval tells the exponent from others; see `margin_of`.

    Returns
    -------
    BoundVerdict
        The verdict.

    Examples
    --------
    >>> slopes = theory_slopes(-0.25, 1e4, 1e6)
    >>> judge_bound((-0.53, -0.47), slopes).sentence
    'faster than the bound, which it does not refute'
    >>> judge_bound((-0.26, -0.22), slopes).this_exponent
    True
    >>> judge_bound((-0.20, -0.12), slopes).not_slower
    False
    """
    low, high = interval
    if math.isnan(low) or math.isnan(high):
        return BoundVerdict(UNDECIDED)
    if high < slopes[0] - _SLACK:
        return BoundVerdict(FASTER)
    if low > slopes[1] + _SLACK:
        return BoundVerdict(SLOWER)
    return BoundVerdict(EXACT if high - low <= 2.0 * margin else TOO_WIDE)
