"""Costs: how long cells take, learnt from those that are done, and how long the rest will take."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from statistics import median

_REMEMBERED = 200
"""So many expectations are compared with what came of them."""


class CostModel:
    """Mean seconds of a cell by curve and sample size, from the cells that have been measured.

    A sample size that a curve has no measurement of is taken to cost in proportion to n what the
    nearest measured size of that curve costs, or of any curve if it has none.
    """

    def __init__(self, timings: Iterable[tuple[str, float, float]] = ()) -> None:
        self._sums: dict[str, dict[float, tuple[float, int]]] = {}
        self._all: dict[float, tuple[float, int]] = {}
        self._misses: deque[float] = deque(maxlen=_REMEMBERED)
        for curve, n, seconds in timings:
            self.add(curve, n, seconds)

    @classmethod
    def from_sums(cls, sums: Mapping[tuple[str, float], tuple[float, int]]) -> CostModel:
        """Costs from seconds in all, and number of cells, by curve and sample size.

        Examples
        --------
        >>> CostModel.from_sums({("em", 1000): (6.0, 2)}).seconds("em", 1000)
        3.0
        """
        model = cls()
        for (curve, n), (total, count) in sums.items():
            model._count(curve, n, total, count)
        return model

    def add(self, curve: str, n: float, seconds: float) -> None:
        """Take one more measurement into account."""
        expected = self.seconds(curve, n) if curve in self._sums else None
        if expected and seconds > 0:
            self._misses.append(seconds / expected)
        self._count(curve, n, seconds, 1)

    def _count(self, curve: str, n: float, seconds: float, cells: int) -> None:
        for sums in (self._sums.setdefault(curve, {}), self._all):
            total, count = sums.get(n, (0.0, 0))
            sums[n] = (total + seconds, count + cells)

    def seconds(self, curve: str, n: float) -> float | None:
        """Expected seconds of a cell; None before the first measurement."""
        sums = self._sums.get(curve, self._all)
        if not sums:
            return None
        nearest = min(sums, key=lambda size: abs(math.log(size / n)))
        total, count = sums[nearest]
        return total / count * (n / nearest)

    def knows(self, counts: Mapping[tuple[str, float], int]) -> bool:
        """Whether every curve with cells left has been measured.

        Examples
        --------
        >>> costs = CostModel([("em", 1000, 2.0)])
        >>> costs.knows({("em", 100): 3}), costs.knows({("newton", 1000): 3})
        (True, False)
        """
        return all(curve in self._sums for (curve, _), count in counts.items() if count)

    def total(self, counts: Mapping[tuple[str, float], int]) -> float | None:
        """Expected seconds of so many cells of each curve and sample size, one after the other.

        If cells have taken longer than was expected of them, the rest is taken to do so, too: by
        the median of the ratios.
        """
        total = 0.0
        for group, count in counts.items():
            cost = self.seconds(*group)
            if cost is None:
                return None
            total += cost * count
        return total * max(1.0, median(self._misses) if self._misses else 1.0)
