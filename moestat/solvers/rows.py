"""The rows of a problem, and coarser ones that show where to look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from moestat.base.sums import sum_of
from moestat.base.types import Encoded, FloatArray, IntArray
from moestat.model.compression import gauss_compress
from moestat.model.family import Family
from moestat.model.recombination import POINTS, recombine
from moestat.model.responses import columns_of
from moestat.model.units import DataUnits
from moestat.solvers.metric import region_metric
from moestat.solvers.rules import DETAIL, WORK

Result = TypeVar("Result")


@lru_cache(maxsize=256)
def _parts(size: int, entries: int, preview: bool) -> tuple[slice, ...]:
    """Rows of the parts of a pass, by the number of entries of a Hessian."""
    if preview:
        least = max(WORK.block, entries)
        count = min(WORK.parts, 1 << (size // least).bit_length() >> 1) or 1
    else:
        max_rows = max(WORK.part, entries)
        count = WORK.parts * -(-size // (WORK.parts * max_rows)) if size >= 2 * max_rows else 1
    ends = np.linspace(0, size, count + 1).astype(int)
    return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))


@dataclass(frozen=True)
class Rows:
    """Data as the loops read them: X (d, n) contiguous, encoded y (n,), weight (n,).

    A preview is a part of the data on which a climb begins.  Data that are `whole` have one level
    only, for targets to which a pass over all rows costs less than making previews.  Mean and
    covariance matrix may be in `moments` already.  Where an expert is chosen once for a group of
    rows, the rows of a group follow each other, and `begin` (G,) has the first row of each group.
    """

    X: FloatArray
    y: Encoded
    weight: FloatArray
    preview: bool = False
    whole: bool = False
    moments: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False)
    begin: IntArray | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of rows n."""
        return self.X.shape[1]

    @property
    def arrays(self) -> tuple[FloatArray, Encoded, FloatArray]:
        """X, y and weight."""
        return self.X, self.y, self.weight

    @cached_property
    def is_readable(self) -> bool:
        """Whether compiled code at an address can read the arrays; it would misread others."""
        return all(array.flags.carray for array in self.arrays)

    @property
    def units(self) -> FloatArray:
        """Weights of the independent units: of rows, or of groups of rows."""
        return self.weight if self.begin is None else self.weight[self.begin]

    @cached_property
    def owner(self) -> IntArray:
        """Number of the unit that each row belongs to, shape (n,)."""
        if self.begin is None:
            return np.arange(self.size)
        return np.repeat(np.arange(self.begin.size), np.diff(np.append(self.begin, self.size)))

    def by_parts(self, within: int) -> Rows:
        """The rows of each group in ascending order of the input `within`."""
        if "parts" not in self.memory:
            order = np.lexsort([self.X[within], self.owner])
            X = np.ascontiguousarray(self.X[:, order])
            self.memory["parts"] = replace(
                self, X=X, y=self.y[order], weight=self.weight[order], moments=None
            )
        return self.memory["parts"]

    def remember(self, name: str, owner: object, make: Callable[[], Result]) -> Result:
        """What was made of the rows for this owner under a name; made now if it was not."""
        known = self.memory.get(name)
        if known is None or known[0] is not owner:
            known = self.memory[name] = owner, make()
        return known[1]

    def reweighted(self, units: FloatArray) -> Rows:
        """The rows with other weights of their units; units of weight 0 are left out."""
        used = np.flatnonzero(units > 0.0)
        return self.take(used, units[used])

    def take(self, used: IntArray, weight: FloatArray) -> Rows:
        """The rows, or groups of rows, at increasing positions `used`, with these weights."""
        at, begin = used, None
        if self.begin is not None:
            sizes = np.bincount(self.owner)[used]
            at = np.flatnonzero(np.isin(self.owner, used))
            begin, weight = np.cumsum(sizes) - sizes, np.repeat(weight, sizes)
        return Rows(self.X.take(at, axis=1), self.y[at], weight, begin=begin)

    @cached_property
    def gram(self) -> FloatArray:
        """Weighted mean of ``phi phi'`` with phi = (1, x), shape (1 + d, 1 + d)."""
        d = len(self.X)
        mean = np.append(1.0, self.mean[:d])
        gram = np.outer(mean, mean)
        gram[1:, 1:] += self.covariance[:d, :d]
        return gram

    def metric(self, family: Family) -> FloatArray:
        """Metric (P, P) of a family's channels; the same array as long as the family is."""
        if not self._metric or self._metric[0][0] is not family:
            shape = family.index, family.width, family.n_params
            self._metric[:] = [(family, region_metric(self.gram, *shape))]
        return self._metric[0][1]

    @cached_property
    def _metric(self) -> list[tuple[Family, FloatArray]]:
        return []

    @cached_property
    def memory(self) -> dict[str, Any]:
        """Cache of quantities that are computed once from these data."""
        return {}

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of each input and, last, of a continuous response, or of several."""
        return self._moments[0]

    @property
    def covariance(self) -> FloatArray:
        """Covariance matrix of the inputs and the continuous responses."""
        return self._moments[1]

    @cached_property
    def deviation(self) -> FloatArray:
        """Standard deviations of the inputs and the continuous responses."""
        return np.sqrt(np.diag(self.covariance))

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance matrix, computed in parts to save memory."""
        if self.moments is not None:
            return self.moments
        total = float(self.weight.sum())
        columns = [*self.X, *columns_of(self.y)] if self._continuous else [*self.X]
        mean = np.array([column @ self.weight for column in columns]) / total
        covariance = np.zeros((mean.size, mean.size))
        for rows in self.parts(0):
            centred = np.array([column[rows] for column in columns])
            centred -= mean[:, None]
            covariance += (centred * self.weight[rows]) @ centred.T
        return mean, covariance / total

    @property
    def _continuous(self) -> bool:
        return not np.issubdtype(self.y.dtype, np.integer)

    def parts(self, n_params: int) -> Sequence[slice]:
        """Rows of the parts of a pass, whose sums are added in this order by any number of threads.

        A part has more rows than a Hessian has entries, so that its sums take less memory.
        """
        if self.begin is not None:
            return [slice(0, self.size)]
        return _parts(self.size, n_params * n_params, self.preview)

    def part(self, rows: slice) -> Rows:
        """Some of the rows."""
        if rows == slice(0, self.size):
            return self
        X = np.ascontiguousarray(self.X[:, rows])
        return Rows(X, self.y[rows], self.weight[rows])

    def map_parts(self, function: Callable[[Rows], Result]) -> Iterator[Result]:
        """``function(part)`` of every part, in order."""
        return map(function, map(self.part, self.parts(0)))

    def sum_parts(self, function: Callable[[Rows], Any]) -> Any:
        """The sum of ``function(part)``, numbers, arrays or tuples of these, over every part."""
        return sum_of(self.map_parts(function))

    def convert(self, units: DataUnits) -> Rows:
        """The data in other units, as (z, w)."""
        X, y = units.apply(self.X, self.y)
        return replace(self, X=X, y=y, moments=units.moments(*self._moments))

    @cached_property
    def sorted(self) -> Rows:
        """These rows in ascending order of the first input."""
        order = np.argsort(self.X[0], kind="stable")
        X = np.ascontiguousarray(self.X[:, order])
        return Rows(X, self.y[order], self.weight[order])

    @property
    def levels(self) -> list[Rows]:
        """The data in growing detail: compressed ones where that saves much, then all of them.

        Compression needs one or two inputs and discrete responses.  With one input and 32 panels of
        4 nodes it keeps the log-likelihood of 1e5 samples to about 1e-9 for gate slopes up to 30 on
        the unit interval; steeper ones need the finer levels.  With two, fewer and larger cells
        with more moments would be as exact for smooth densities, but steep boundaries would pass
        between their points and fit those too well.  Continuous responses have previews instead:
        every 16th and every 4th sample.  With fewer, an atom too many finds a place of its own.
        Weighted rows have no previews: on a lattice every 4th row would have another distribution.
        """
        return [*self._coarser, self]

    @cached_property
    def _coarser(self) -> list[Rows]:
        # Without the sample itself: rows that hold themselves stay until garbage is collected.
        levels: list[Rows] = []
        if self.whole or self.begin is not None:
            return levels
        if np.issubdtype(self.y.dtype, np.integer):
            finer, classes = self, int(self.y.max()) + 1
            for panels in DETAIL.panels if self.X.shape[0] == 1 else ():
                # Nodes have the moments of all rows, and so have the nodes of nodes.
                if self.size >= 4 * panels * DETAIL.nodes * classes:
                    x, y, weight = gauss_compress(
                        finer.X[0], finer.y, finer.weight, panels, DETAIL.nodes
                    )
                    finer = Rows(np.ascontiguousarray(x[None, :]), y, weight)
                    levels.insert(0, finer)
            two_inputs = self.X.shape[0] == 2  # noqa: PLR2004
            if two_inputs and self.size >= 4 * DETAIL.cells[0] ** 2 * POINTS * classes:
                for panels in DETAIL.cells:
                    finer = Rows(*recombine(*finer.arrays, panels))
                    levels.insert(0, finer)
        else:
            for stride in DETAIL.strides if np.ptp(self.weight) == 0.0 else ():
                if self.size >= stride * DETAIL.previewed:
                    X = np.ascontiguousarray(self.X[:, ::stride])
                    y, weight = self.y[::stride].copy(), self.weight[::stride]
                    levels.append(
                        Rows(X, y, weight * (self.weight.sum() / weight.sum()), preview=True)
                    )
        return levels
