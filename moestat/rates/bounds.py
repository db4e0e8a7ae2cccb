"""One rule for slopes beside a theorem: not slower than its bound, its exponent, faster.

A theorem on rates is an upper bound: a loss is of order (log n / n)^a at most.  Three sentences can
be true of a measured slope, and a measurement may support one and not another:

- *not slower than the bound*: the 95% interval reaches the bound's own slope or lies below it;
- *this exponent*: the interval holds a slope between those of n^(-a) with and without the
  logarithm;
- *faster than the bound*: the interval lies below both, which refutes no upper bound.

An interval that holds the exponent and is wider than 0.15 to either side says none of them.

Over the sizes n_1 to n_2 the loss (log n / n)^a has the slope -a (1 - 1 / log n) at
n = (n_1 n_2)^(1/2), less steep than -a by a tenth at n = 22,000.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["BoundVerdict", "judge_bound", "theory_slopes"]

SLOWER, EXACT, FASTER = "slower", "this exponent", "faster"
TOO_WIDE, UNDECIDED = "too wide", "undecided"
WIDE = 0.15
"""Half-width of an interval from which on it tells no exponents of theorems apart: -1/2 and -1/4
are 0.25 apart, and -1/4, -1/8 half of that."""
_LEAST = 3.0
"""Smallest sample size at which the logarithm of the logarithm is used."""
_SLACK = 1e-9
"""Rounding of slopes of losses without noise."""


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

    Examples
    --------
    >>> low, high = theory_slopes(-0.5, 1e4, 1e6)
    >>> low, round(high, 4)
    (-0.5, -0.4566)
    """
    if exponent >= 0.0 or first < _LEAST:
        return exponent, exponent
    middle = 0.5 * (math.log(first) + math.log(last))
    return exponent, exponent * (1.0 - 1.0 / middle)


def judge_bound(interval: tuple[float, float], slopes: tuple[float, float]) -> BoundVerdict:
    """Judge the interval of a slope beside the slopes of a theorem.

    Parameters
    ----------
    interval : (float, float)
        95% interval of the slope; NaN where there is none.
    slopes : (float, float)
        As `theory_slopes` gives them.

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
    return BoundVerdict(EXACT if high - low <= 2.0 * WIDE else TOO_WIDE)
