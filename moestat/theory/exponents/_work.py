"""An analysis under way: its rows, its clock, and what all of its parts share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from moestat.base.types import FloatArray
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.theory.exponents._cells import FirstOrder, Moments
from moestat.theory.exponents._distance import hellinger_of
from moestat.theory.exponents._point import Point, draw_samples
from moestat.theory.exponents._search import Ladder, is_near

__all__ = [
    "CERTIFIED",
    "FREE",
    "LADDER",
    "NONE",
    "OPEN",
    "PROVED",
    "SEARCHED",
    "SIZES",
    "ZERO_DISTANCE",
    "Analysis",
    "Rate",
    "Work",
    "exponent_of",
    "inexactness",
    "search_point",
    "with_sizes",
    "zero_at",
]

PROVED, CERTIFIED, SEARCHED = "proved", "certified", "searched"
FREE, NONE, OPEN = "not identified", "no such measure", "undecided"

LADDER = (1e-1, 1e-2, 1e-3)
SIZES = tuple(m * 10.0**-k for k in range(1, 7) for m in (1.0, 0.3))
"""Deviations at which sample sizes are looked for, until the exponent is seen."""
ZERO_DISTANCE = 1e-40
"""A distance below this at a deviation of .1 is 0 to the digits of the arithmetic."""


@dataclass(frozen=True)
class Rate:
    """The exponent of one block in one kind of cell.

    Estimates whose density converges at ``n^(-1/2)`` have errors of this block of the order
    ``n^(-1/(2 r))`` in the worst case near the truth.
    """

    block: str
    cell: str
    """Fitted atoms in the cell, such as ``"2"``; ``"2, 2"`` for two cells at once."""
    r: float
    """The exponent; inf where the block is not identified, NaN where nothing is known."""
    status: str
    reason: str
    at_least: bool = False
    """Whether r is a lower bound: an explicit sequence of measures has it, and a worse one is not
    excluded."""
    n_for: float = math.nan
    """Sample size from which an error of .1 can be told from the truth, ``1 / (2 h^2)`` with the
    Hellinger distance h there."""
    n_seen: float = math.nan
    """Sample size from which the local exponent is within a tenth of r."""

    @property
    def pointwise(self) -> str:
        """The rate at this truth as n grows, where it is known: that of regular estimates."""
        return "n^(-1/2)" if self.cell == "1" and self.r == 1.0 else ""

    @property
    def text(self) -> str:
        """The worst case as a power of n."""
        if math.isinf(self.r):
            return "none"
        if math.isnan(self.r):
            return "?"
        power = 2.0 * self.r
        whole = round(power)
        name = f"1/{whole}" if abs(power - whole) < 1e-9 else f"{1.0 / power:.3g}"
        name = "1" if name == "1/1" else name
        return f"n^(-{name})" if not self.at_least else f"n^(-{name}) or slower"


@dataclass
class Analysis:
    """What was found at a truth."""

    family: Family
    theta: FloatArray
    n_experts: int
    design: Design
    rows: list[Rate] = field(default_factory=list)
    first: FirstOrder | None = None
    second: dict[tuple[int, ...], Moments] = field(default_factory=dict)
    ladders: list[tuple[str, str, Ladder]] = field(default_factory=list)
    """Cell, block and what the search found."""
    opposites: dict[str, list[float]] = field(default_factory=dict)
    """Block -> distances of two opposite displacements, over the square of the block's."""
    point: Point | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Atoms of the largest cell."""
        return self.n_experts - self.family.n_experts + 1


@dataclass
class Work:
    """An analysis under way: its clock and its reports."""

    found: Analysis
    until: float
    report: Callable[[str], None]
    corners: bool

    @property
    def family(self) -> Family:
        return self.found.family


def zero_at(ladder: Ladder) -> str:
    """Where the distance of a ladder is 0 in all digits, in words; empty where it is not."""
    if not min(ladder.distances) < ZERO_DISTANCE:
        return ""
    h = ladder.deviations[ladder.distances.index(min(ladder.distances))]
    return f"d = 0 in all digits at {ladder.pinned.name} + {h:g}"


def exponent_of(ladder: Ladder) -> tuple[float, bool]:
    """The exponent of a ladder, and whether its local slopes have settled at half a whole number.

    Exponents of analytic families are rational, in all known cases multiples of 1/2.  A local one
    may be off by `inexactness` of it; where that is a quarter or more, the ladder is too short to
    tell two of them apart.
    """
    if not ladder.slopes:
        return math.nan, False
    last = ladder.slopes[-1]
    whole = float(round(2.0 * last)) / 2.0
    off = whole * inexactness(ladder)
    if abs(last - whole) <= off < 0.25:
        return whole, True
    return float(math.floor(last + 0.05)), False


def inexactness(ladder: Ladder) -> float:
    """How far, relatively, the last local exponent may be from the exponent.

    Let displacements be ``h (1 + a h)`` in place of h, so that the distance is ``(h (1 + a h))^r``:
    between h and k it has the local exponent ``r (1 + log((1 + a h) / (1 + a k)) / log(h / k))``.
    The ladder is taken to begin where the second term is as large as the first.
    """
    first, (h, k) = ladder.deviations[0], ladder.deviations[-2:]
    return math.log((first + h) / (first + k)) / math.log(h / k)


def search_point(found: Analysis, cells: Sequence[int]) -> Point:
    """Samples for a search: half as many again as unknowns."""
    family = found.family
    unknowns = len(cells) * (family.n_atom_params + 1) + 4
    rows = int(1.5 * unknowns) + 6
    return Point(family, found.theta, draw_samples(family, found.theta, found.design, rows, seed=1))


def with_sizes(rate: Rate, ladder: Ladder, found: Analysis) -> Rate:
    """The rate with sample sizes from a ladder, whose first deviation is .1."""
    distances = hellinger_of(found.family, found.theta, found.design, ladder)
    sizes = [0.5 / distance**2 for distance in distances]
    seen = [n for slope, n in zip(ladder.slopes, sizes, strict=False) if is_near(slope, rate.r)]
    return replace(rate, n_for=sizes[0], n_seen=seen[0] if seen else math.nan)
