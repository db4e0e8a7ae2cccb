"""Plans: a spec as frozen cells, each with seeds that follow from what it is, never from order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from moestat.base.door import door
from moestat.base.types import IntArray
from moestat.base.validate import did_you_mean
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.protocol import AnySpec, SweepCurve


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: a curve, a place on the x-axis and a replicate.

    Parameters
    ----------
    curve : str
        Name of the curve.
    n : int or float
        Place on the x-axis: the sample size of a fit, or the value of the field that a sweep of
        networks varies.
    replicate : int
        Number of the data set, from 0.
    data_seed : int
        Seed of the data.  Curves on one truth share it, so that they see the same data.
    fit_seed : int
        Seed of the random starts.  Curves that fit the same family from the same start rules
        share it, so that solvers are compared from the same starts.
    identity : str
        Digest of all that the cell's numbers depend on; a change of the spec that leaves it as it
        is leaves the cell's result valid.
    axis : str
        Name of the x-axis.
    """

    curve: str
    n: float
    replicate: int
    data_seed: int
    fit_seed: int
    identity: str = ""
    axis: str = "n"

    @property
    def key(self) -> str:
        """Name of the cell in a store.

        Examples
        --------
        >>> Cell("sigmoid, k = 3", 1000, 7, data_seed=1, fit_seed=2).key
        'sigmoid, k = 3 | n=1000 | replicate=7'
        """
        return cell_key(self.curve, self.n, self.replicate, self.axis)


def cell_key(curve: str, n: float, replicate: int, axis: str = "n") -> str:
    """Name of a cell in a store.

    Examples
    --------
    >>> cell_key("em", 1000, 7)
    'em | n=1000 | replicate=7'
    """
    return f"{curve} | {axis}={n} | replicate={replicate}"


class Plan(Sequence[Cell]):
    """Cells in the order in which they run; a cell is made when it is read.

    A row of `places` (N, 3) holds the number of a cell's curve, the number of its sample size among
    those of the spec, and its replicate.
    """

    def __init__(self, spec: AnySpec, places: NDArray[np.int32]) -> None:
        self._spec, self._places = spec, places
        self._sizes = _sizes(spec)
        self._makers: dict[int, Callable[[float, int], Cell]] = {}

    def _some(self, places: NDArray[np.int32]) -> Plan:
        some = Plan(self._spec, places)
        some._makers = self._makers
        return some

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Cell: ...
    @overload
    def __getitem__(self, at: slice) -> Plan: ...
    def __getitem__(self, at: int | slice) -> Cell | Plan:
        if isinstance(at, slice):
            return self._some(self._places[at])
        return self._make(*self._places[at].tolist())

    def __iter__(self) -> Iterator[Cell]:
        for start in range(0, len(self), _BLOCK):
            for place in self._places[start : start + _BLOCK].tolist():
                yield self._make(*place)

    def _make(self, curve: int, size: int, replicate: int) -> Cell:
        if curve not in self._makers:
            self._makers[curve] = _maker(self._spec, self._spec.curves[curve])
        return self._makers[curve](self._sizes[size], replicate)

    def intersect(self, other: Plan) -> Plan:
        """The cells that are also in another plan of the same spec."""
        return self._some(self._places[np.isin(self._numbers(), other._numbers())])

    def _numbers(self) -> IntArray:
        """One integer for each cell, the same in every plan of a spec."""
        curve, size, replicate = self._places.T.astype(np.int64)
        return (curve * len(self._sizes) + size) * 2**32 + replicate

    def counts(self) -> Counter[tuple[str, float]]:
        """Number of cells of each curve and sample size."""
        curve, size = self._places.T[:2].astype(np.int64)
        counts = np.bincount(curve * len(self._sizes) + size)
        cells: Counter[tuple[str, float]] = Counter()
        for place in np.flatnonzero(counts).tolist():
            at, of_size = divmod(place, len(self._sizes))
            cells[self._spec.curves[at].name, self._sizes[of_size]] = int(counts[place])
        return cells


_BLOCK = 4096


def _sizes(spec: AnySpec) -> list[float]:
    return sorted({n for curve in spec.curves for n in spec.sizes_of(curve)})


def counts_of(cells: Sequence[Cell]) -> Counter[tuple[str, float]]:
    """Number of cells of each curve and sample size."""
    if isinstance(cells, Plan):
        return cells.counts()
    return Counter((cell.curve, cell.n) for cell in cells)


@door()
def plan_cells(
    spec: AnySpec,
    replicates: Mapping[str, int] | None = None,
    settled: Mapping[tuple[str, float], IntArray] | None = None,
) -> Plan:
    """Every cell of a spec, the largest sample sizes first.

    Large cells take longest; starting with them keeps all workers busy to the end.

    Parameters
    ----------
    spec : Spec
        The spec.
    replicates : mapping of str to int, optional
        Replicates of each curve; the spec's own number by default.
    settled : mapping of (str, number) to ndarray of int, optional
        Replicates, by curve and sample size, whose cells are left out.

    Returns
    -------
    Plan
        One cell per sample size, replicate and curve.
    """
    missing = {curve.name for curve in spec.curves}.difference(replicates or {})
    if replicates is not None and missing:
        raise ValueError(f"replicates: the curves {', '.join(sorted(missing))} are missing")
    sizes = _sizes(spec)
    parts: list[IntArray] = []
    counts = [
        spec.replicates if replicates is None else replicates[curve.name] for curve in spec.curves
    ]
    sizes_of_curves = [frozenset(spec.sizes_of(curve)) for curve in spec.curves]
    for size in range(len(sizes) - 1, -1, -1):
        n = sizes[size]
        wanted = np.zeros((max(counts), len(counts)), dtype=bool)
        for curve, count in enumerate(counts):
            wanted[:count, curve] = n in sizes_of_curves[curve]
            done = np.asarray((settled or {}).get((spec.curves[curve].name, n), ()), dtype=int)
            wanted[done[done < count], curve] = False
        replicate, curve = np.nonzero(wanted)
        parts.append(np.column_stack([curve, np.full(curve.size, size), replicate]))
    return Plan(spec, np.concatenate(parts).astype(np.int32))


def find_cell(spec: AnySpec, key: str) -> Cell:
    """The cell called `key`, also one that a sweep may still add."""
    for curve in spec.curves:
        make = _maker(spec, curve)
        for n in spec.sizes_of(curve):
            for replicate in range(spec.most_replicates):
                if cell_key(curve.name, n, replicate, spec.axis) == key:
                    return make(n, replicate)
    example = cell_key(spec.curves[-1].name, spec.sizes_of(spec.curves[-1])[-1], 0, spec.axis)
    hint = did_you_mean(key.partition(" | ")[0], [curve.name for curve in spec.curves])
    hint = "" if any(key.startswith(f"{curve.name} | ") for curve in spec.curves) else hint
    raise SweepError(f"there is no cell {key!r}; names of cells look like {example!r}{hint}")


def _maker(spec: AnySpec, curve: SweepCurve) -> Callable[[float, int], Cell]:
    """A function that makes the cell of a place and a replicate.

    What all cells of the curve share is digested once.
    """
    stamp = spec.stamp(curve)

    def make(n: float, replicate: int) -> Cell:
        data_seed, fit_seed, identity = stamp(n, replicate)
        return Cell(curve.name, n, replicate, data_seed, fit_seed, identity, spec.axis)

    return make
