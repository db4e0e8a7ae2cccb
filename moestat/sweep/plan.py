"""Plans: a spec as frozen cells, each with seeds that follow from what it is, never from order."""

from __future__ import annotations

from dataclasses import dataclass

from moestat.sweep.identity import digest, seed_from
from moestat.sweep.spec import Curve, Spec

__all__ = ["Cell", "plan_cells"]


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
    """

    curve: str
    n: int
    replicate: int
    data_seed: int
    fit_seed: int

    @property
    def key(self) -> str:
        """Name of the cell in a store.

        Examples
        --------
        >>> Cell("sigmoid, k = 3", 1000, 7, data_seed=1, fit_seed=2).key
        'sigmoid, k = 3 | n=1000 | replicate=7'
        """
        return f"{self.curve} | n={self.n} | replicate={self.replicate}"


def plan_cells(spec: Spec) -> tuple[Cell, ...]:
    """Every cell of a spec, the largest sample sizes first.

    Large cells take longest; starting with them keeps all workers busy to the end.

    Parameters
    ----------
    spec : Spec
        The spec.

    Returns
    -------
    tuple of Cell
        One cell per sample size, replicate and curve.
    """
    return tuple(
        _cell(spec, curve, n, replicate)
        for n in reversed(spec.sizes)
        for replicate in range(spec.replicates)
        for curve in spec.curves
    )


def _cell(spec: Spec, curve: Curve, n: int, replicate: int) -> Cell:
    law = digest(spec.truths[curve.truth].law)
    starts = dict(curve.starts)
    return Cell(
        curve=curve.name,
        n=n,
        replicate=replicate,
        data_seed=seed_from("data", spec.seed, law, spec.design_table, n, replicate),
        fit_seed=seed_from("fit", spec.seed, law, curve.n_experts, starts, n, replicate),
    )
