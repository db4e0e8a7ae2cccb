"""Plans: a spec as frozen cells, each with seeds that follow from what it is, never from order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from moestat.sweep.errors import SweepError
from moestat.sweep.identity import digest, seed_from
from moestat.sweep.spec import Curve, Spec

__all__ = ["Cell", "cell_key", "find_cell", "plan_cells"]


@dataclass(frozen=True)
class Cell:
    """One fit of a sweep: a curve, a sample size and a replicate.

    Parameters
    ----------
    curve : str
        Name of the curve.
    n : int
        Sample size.
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
    """

    curve: str
    n: int
    replicate: int
    data_seed: int
    fit_seed: int
    identity: str = ""

    @property
    def key(self) -> str:
        """Name of the cell in a store.

        Examples
        --------
        >>> Cell("sigmoid, k = 3", 1000, 7, data_seed=1, fit_seed=2).key
        'sigmoid, k = 3 | n=1000 | replicate=7'
        """
        return cell_key(self.curve, self.n, self.replicate)


def cell_key(curve: str, n: int, replicate: int) -> str:
    """Name of a cell in a store.

    Examples
    --------
    >>> cell_key("em", 1000, 7)
    'em | n=1000 | replicate=7'
    """
    return f"{curve} | n={n} | replicate={replicate}"


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
    return tuple(
        makers[name](n, replicate)
        for n in reversed(spec.sizes)
        for replicate in range(max(counts.values()))
        for name, count in counts.items()
        if replicate < count
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
        for n in spec.sizes:
            for replicate in range(spec.most_replicates):
                if cell_key(curve.name, n, replicate) == key:
                    return make(n, replicate)
    curve, n = spec.curves[-1].name, spec.sizes[-1]
    raise SweepError(f"there is no cell {key!r}; a cell is called like {cell_key(curve, n, 0)!r}")


def _maker(spec: Spec, curve: Curve) -> Callable[[int, int], Cell]:
    """The cell of a sample size and a replicate; what all cells share is digested once."""
    law = digest(spec.truths[curve.truth].law)
    return partial(_cell, spec, curve, law, digest([spec.seed, spec.curve_identity(curve)]))


def _cell(spec: Spec, curve: Curve, law: str, identity: str, n: int, replicate: int) -> Cell:
    starts = dict(curve.starts)
    return Cell(
        curve=curve.name,
        n=n,
        replicate=replicate,
        data_seed=seed_from("data", spec.seed, law, spec.design_table, n, replicate),
        fit_seed=seed_from("fit", spec.seed, law, curve.n_experts, starts, n, replicate),
        identity=digest([identity, n, replicate]),
    )
