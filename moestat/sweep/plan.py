"""Plans: a spec as frozen cells, each with seeds that follow from what it is, never from order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moestat.sweep.errors import SweepError
from moestat.sweep.spec import Curve, Spec

__all__ = ["Cell", "cell_key", "find_cell", "plan_cells"]


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


def plan_cells(spec: Spec, replicates: Mapping[str, int] | None = None) -> tuple[Cell, ...]:
    """Every cell of a spec, the largest sample sizes first.

    Large cells take longest; starting with them keeps all workers busy to the end.

    Parameters
    ----------
    spec : Spec
        The spec.
    replicates : mapping of str to int, optional
        Replicates of each curve; the spec's own number by default.

    Returns
    -------
    tuple of Cell
        One cell per sample size, replicate and curve.
    """
    counts = {
        curve.name: spec.replicates if replicates is None else replicates[curve.name]
        for curve in spec.curves
    }
    makers = {curve.name: _maker(spec, curve) for curve in spec.curves}
    sizes = {curve.name: frozenset(spec.sizes_of(curve)) for curve in spec.curves}
    return tuple(
        makers[name](n, replicate)
        for n in sorted(frozenset().union(*sizes.values()), reverse=True)
        for replicate in range(max(counts.values()))
        for name, count in counts.items()
        if replicate < count and n in sizes[name]
    )


def find_cell(spec: Spec, key: str) -> Cell:
    """The cell called `key`, also one that a sweep may still add.

    Parameters
    ----------
    spec : Spec
        The spec.
    key : str
        The cell's key.

    Returns
    -------
    Cell
        The cell.

    Raises
    ------
    SweepError
        If the spec has no such cell.
    """
    for curve in spec.curves:
        make = _maker(spec, curve)
        for n in spec.sizes_of(curve):
            for replicate in range(spec.most_replicates):
                if cell_key(curve.name, n, replicate, spec.axis) == key:
                    return make(n, replicate)
    example = cell_key(spec.curves[-1].name, spec.sizes_of(spec.curves[-1])[-1], 0, spec.axis)
    raise SweepError(f"there is no cell {key!r}; a cell is called like {example!r}")


def _maker(spec: Spec, curve: Curve) -> Callable[[float, int], Cell]:
    """The cell of a place and a replicate; what all cells share is digested once."""
    stamp = spec.stamp(curve)

    def make(n: float, replicate: int) -> Cell:
        data_seed, fit_seed, identity = stamp(n, replicate)
        return Cell(curve.name, n, replicate, data_seed, fit_seed, identity, spec.axis)

    return make
