"""Pairs of a truth and the worst measure near it, and Le Cam's two-point bound at each n.

Of all measures whose density is at a given distance from the truth's, the explorer finds those with
the largest deviations.  With h the Hellinger distance of the two joint laws of one observation, the
affinity of n observations is (1 - h^2)^n, their total variation at most (1 - affinity^2)^(1/2), and
for any metric e between measures no estimator has a risk below

    e(G, G*) (1 - total variation) / 4

at both of them by Le Cam (1973), as in Tsybakov (2009), Theorem 2.2. Here e is the Hausdorff
distance of the sets of values that a block, such as the intercepts, has in the two measures. For
least squares the noise is normal with variance 1, and 1 - h^2 is at least exp(-d^2 / 8) with d the
L2 distance of the regression functions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.explorer import CASES
from experiments.explorer.cases import Case
from moestat.base.types import FloatArray
from moestat.metrics.losses import make_loss
from moestat.model.family import Family
from moestat.theory.explorer import deviation_loss, explore
from moestat.theory.explorer._result import Exploration, Rung

__all__ = ["SIZES", "bound_at", "cases", "compute", "hausdorff", "two_point"]

SIZES = tuple(10.0**power for power in range(3, 15))
"""Sample sizes of the page."""
_RADII = (0.3, 1e-3, 8)
"""Largest and smallest sum of deviations, and their number."""
_STARTS = 1
_RAISES = 3
"""How often the smallest sum of deviations may be raised, each time to half the range in logs."""


def cases() -> Iterator[Case]:
    """The explorer's cases, one for each truth, number of atoms and sizes of cells.

    Those whose loss is to a set of measures are left out: the two-point bound is of a metric.
    """
    seen = set()
    for case in CASES.values():
        key = repr((case.truth, case.n_experts, case.cells, _given(case)))
        if key not in seen and make_loss(case.loss).represent is None:
            seen.add(key)
            yield case


def _given(case: Case) -> bool:
    """Whether the case is of masses as printed, which decides what is a deviation."""
    return make_loss(case.loss).masses == "given"


def hausdorff(one: FloatArray, two: FloatArray) -> float:
    """Hausdorff distance of two sets of values of a block, in the largest norm.

    Parameters
    ----------
    one, two : ndarray of shape (k, ...) and (k*, ...)
        Values of the block, one per atom.

    Returns
    -------
    float
        Largest distance of a value of one set to the nearest one of the other.

    Examples
    --------
    >>> hausdorff(np.array([0.0, 1.0, 1.25]), np.array([0.0, 1.0]))
    0.25
    """
    first, second = (np.reshape(each, (len(each), -1)) for each in (one, two))
    gaps = np.abs(first[:, None] - second[None]).max(axis=2)
    return float(max(gaps.min(axis=1).max(), gaps.min(axis=0).max()))


def two_point(error: float, squared: float, n: float) -> float:
    """Le Cam's bound from one pair.

    Parameters
    ----------
    error : float
        Distance of the two measures in a metric.
    squared : float
        Squared Hellinger distance of the joint laws of one observation, in [0, 1].
    n : float
        Sample size.

    Returns
    -------
    float
        A number below which no estimator has its risk at both measures.

    Examples
    --------
    >>> two_point(0.4, 0.0, 1e6)
    0.1
    """
    squared_affinity = math.exp(2.0 * n * math.log1p(-min(squared, 1.0 - 1e-16)))
    return error * (1.0 - math.sqrt(-math.expm1(math.log(max(squared_affinity, 1e-300))))) / 4.0


def bound_at(pairs: Sequence[Mapping[str, Any]], block: str, n: float) -> float:
    """The best bound of several pairs on the error of a block, at one sample size."""
    return max(two_point(pair["errors"][block], pair["squared"], n) for pair in pairs)


def compute(case: Case, tell: Callable[[str], None] | None = None) -> dict[str, Any]:
    """The worst measures of a case at decreasing deviations.

    Parameters
    ----------
    case : Case
        Truth, fitted atoms and loss.
    tell : callable, optional
        Called with a line of text after every radius.

    Returns
    -------
    dict
        Plain data: the verdict of the exploration, its order, and for each pair ``loss`` (the
        case's own Voronoi loss), ``total_variation`` and ``squared`` (of one observation) and
        ``errors`` (by block).

    Raises
    ------
    ValueError
        If distances do not fall along any range of deviations that was tried.
    """
    fitted, true_family, truth = case.families()
    found = _explored(case, tell)
    own = make_loss(case.loss)
    kept = [rung for rung in found.rungs if found.vanishes or rung.resolved]
    pairs = [_pair(rung, fitted, true_family, truth, own, found.vanishes) for rung in kept]
    order = None if not math.isfinite(found.exponent) else round(found.exponent, 3)
    return {"verdict": found.verdict, "order": order, "pairs": pairs}


def _explored(case: Case, tell: Callable[[str], None] | None) -> Exploration:
    """The worst measures, over a range of deviations along which the search keeps its branch."""
    first, last, count = _RADII
    for _ in range(_RAISES + 1):
        found = explore(
            *case.families(),
            deviation_loss(case.loss),
            np.geomspace(first, last, count).tolist(),
            design=case.design,
            starts=_STARTS,
            cells=case.cells,
            expert_splits=case.expert_splits,
            progress=tell,
        )
        if found.vanishes or _falls(found.rungs):
            return found
        # Each pair is continued from the last one, in steps that are now half as long.
        last = math.sqrt(first * last)
    raise ValueError(f"{case.name}: the search lost its branch: distances do not fall")


def _falls(rungs: Sequence[Rung]) -> bool:
    """Whether distances fall from pair to pair, as those of the worst measures do.

    A distance that rises belongs to another branch: the search has lost the one that it followed,
    where distances are near the rounding of the residuals or steps are too long.
    """
    roots = [rung.root for rung in rungs]
    return all(later < earlier for earlier, later in itertools.pairwise(roots))


def _pair(
    rung: Rung, fitted: Family, true_family: Family, truth: FloatArray, loss: Any, same: bool
) -> dict[str, Any]:
    from moestat.metrics.losses import voronoi_loss

    measure, target = fitted.measure(rung.params), true_family.measure(truth)
    square = rung.root**2
    squared = -math.expm1(-square / 8.0) if fitted.is_regression else square
    errors = {
        name: float(f"{hausdorff(values, target.atoms[name]):.6g}")
        for name, values in measure.atoms.items()
        if name != fitted.gate.mass
    }
    return {
        "loss": float(f"{voronoi_loss(measure, target, loss):.6g}"),
        "total_variation": None if fitted.is_regression else float(f"{rung.total_variation:.6g}"),
        "squared": 0.0 if same else float(f"{squared:.6g}"),
        "errors": errors,
    }
