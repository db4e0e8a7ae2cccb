"""Numbers of the steps along a ridge of merging atoms; each field says why it has its value.

"Benchmark" is ``benchmarks/results/mutations.md``: how the passes of pinned fits at n = 1e8 to 1e14
change where a number is thirty times larger or smaller.
"""

from __future__ import annotations

from typing import NamedTuple

from moestat.solvers.rules import EPSILON


class RidgeRules(NamedTuple):
    """When a step along a ridge is made, corrected, shortened or refined."""

    faintest: float = 0.5 * EPSILON
    """Part of the largest curvature down to which a step follows a direction: half a unit in the
    last place of float64 (benchmark: thirty times more costs 12 percent)."""
    whole: float = 0.9
    """Part of a predicted decrease, of a radius or of a variance that is as good as all of it
    (benchmark: larger or smaller costs twice the passes, or fails)."""
    corrections: int = 10
    """Largest number of corrections of a step (benchmark: a quarter costs 15 percent)."""
    few_rows: int = 1000
    """Number of rows up to which passes also compute the information of the scores, which adds up
    to three quarters to their cost: less than the algebra of a step for few rows only."""
    worth: float = 0.1
    """Part of a predicted decrease that is worth a correction (benchmark: 29 percent more passes
    with a larger part, 30 with a smaller one)."""
    suspect: float = 0.5
    """Part of a predicted decrease that may come from negative curvature: with more, most of it
    does (benchmark: larger costs twice the passes)."""
    growth: float = 2.0
    """Growth of the radius after a good step, as in Algorithm 4.1 of Nocedal and Wright (2006)."""
    relief: float = 1.3
    """Growth, with every good step, of the radius at which a step failed before (benchmark: 41 to
    189 percent more passes)."""
    shortest: float = 0.1
    """Smallest part to which a failed step is cut: the usual safeguard of cubic interpolation
    (Dennis and Schnabel 1983, Algorithm A6.3.1)."""
    longest: float = 0.6
    """Largest part to which a failed step is cut, above the half of the same safeguard, because
    this cubic has the slopes of both ends."""
    margin: float = 1e-9
    """Distance of an open cell from the kinks at its edges, as a part of the cell: beyond rounding,
    below any step (benchmark: either way costs 11 to 13 percent)."""
    close: float = 1.0
    """Root mean square difference of the predictors of two atoms that count as close: the scale on
    which exponentials of the predictors are not linear (benchmark: 14 to 41 percent)."""
    small: float = 0.32
    """Part of a step's length, about the root of a tenth, that in a stiff direction costs all of
    the step's predicted decrease (benchmark: smaller costs 147 percent)."""
    smaller: float = 0.12
    """Like `small`, in directions no stiffer than the noise (benchmark: 40 to 58 percent)."""
    finer: float = 1.0 / 3.0
    """Factor of these parts from one correction to the next (benchmark: 52 to 452 percent)."""
    finest: float = 1.0 / 40.0
    """Smallest of these factors (benchmark: larger saves 19 percent of least squares, smaller
    costs 24 percent at n = 1e14)."""


RIDGE = RidgeRules()
