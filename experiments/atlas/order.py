"""One cell of the atlas: identification, the order of the worst deviation, and far measures."""

from __future__ import annotations

import math
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from experiments.atlas.cells import AtlasCell
from experiments.atlas.derivatives import AT_LEAST, BY_DERIVATIVES, order_by_derivatives
from experiments.time_limit import OutOfTimeError, at_most
from moestat.base.types import FloatArray
from moestat.metrics.information import information_spectrum
from moestat.model.designs import Uniform
from moestat.model.family import Family
from moestat.theory.explorer._explore import explore
from moestat.theory.explorer._reference import references
from moestat.theory.exponents._raw import deviations
from moestat.theory.identifiability.far import find_far

__all__ = [
    "BY_INFORMATION",
    "NOT_DONE",
    "AtlasResult",
    "by_rule",
    "drawn_truth",
    "run_cell",
]

DESIGN = Uniform(-2.0, 2.0)
_DRAWS, _NODES = 20, 40
_RADII = {2: (1e-2, 1e-3), 3: (6e-2, 1e-2), 4: (6e-2, 2.3e-2)}
"""First and last deviation: below the last one a distance of order 2 m drowns in rounding."""
_RUNGS = 3
_FAR_STARTS = 6
BY_INFORMATION = "by the information"
"""What is told of a cell whose order the information of cells of one decides."""
BY_CASE = "the explorer's case"
"""Beginning of what is told of an order that the explorer found at a truth of the papers."""
NOT_DONE = "not done in"
"""Beginning of what is told of a search that ran out of time."""


@dataclass(frozen=True)
class AtlasResult:
    """What was computed of a cell.

    Parameters
    ----------
    null : tuple of str
        Directions that the density does not see at the drawn truth, exactly specified.
    order : float or None
        r of ``distance ~ (largest deviation)^r``; inf where the distance is 0 at a deviation that
        is not small, None where there is none.
    found : str
        The explorer's verdict on order 1, or why there is no order.
    moves : str
        The worst deviations.
    far : str
        What a search for other measures with the truth's law found; empty where none was made.
    seconds : float
        Processor time that the search for the order was allowed.
    """

    null: tuple[str, ...] = ()
    order: float | None = None
    found: str = ""
    moves: str = ""
    far: str = ""
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)


def drawn_truth(cell: AtlasCell) -> tuple[FloatArray, tuple[str, ...]]:
    """The best conditioned of twenty truths drawn from the normal law, and its null directions.

    The seed is the family's name.  Parameters that bounds hold have their value.  Under a raw gate
    the first atom's gate is constant, as in the sparse regime: several atoms can share no other
    gate.
    """
    model = cell.true_family()
    best: tuple[float, FloatArray, tuple[str, ...]] | None = None
    for draw in range(_DRAWS):
        rng = np.random.default_rng([zlib.crc32("; ".join(cell.words).encode()), draw])
        theta = _flat(model, rng.normal(size=model.n_params))
        inside = np.clip(theta, model.lower + 1e-3, model.upper - 1e-3)
        theta = model.pin(np.where(model.lower < model.upper, inside, model.lower))
        noise = 1.0 if model.is_regression else None
        spectrum = information_spectrum(model, theta, DESIGN, n_nodes=_NODES, noise=noise)
        null = tuple(map(str, spectrum.null_directions))
        score = -1e3 * len(null) - math.log10(spectrum.condition)
        if best is None or score > best[0]:
            best = score, theta, null
    assert best is not None
    return best[1], best[2]


def by_rule(cell: AtlasCell, null: tuple[str, ...], decided: str = "") -> AtlasResult | None:
    """What is known of a cell of several atoms without a search.

    Parameters
    ----------
    cell : AtlasCell
        The cell.
    null : tuple of str
        Directions that the density does not see at the family's truth, exactly specified: atoms
        that share one of these atoms can all move along.
    decided : str
        What decided the order in a cell of another size of the family, if derivatives did.

    Returns
    -------
    AtlasResult or None
        None where only a search can tell.
    """
    model = cell.true_family()
    try:
        fitted = cell.fitted_family()
    except ValueError as error:
        return AtlasResult(null, found=str(error))
    if model.is_regression and model.gate.normalised:
        return AtlasResult(null, found="regression functions under a normalised gate")
    if fitted != model.with_experts(fitted.n_experts):
        return AtlasResult(null, found="the gate's options depend on the number of atoms")
    theta = model.pin(_flat(model, np.zeros(model.n_params)))
    shared = references(fitted, theta, model, False)
    if (cell.size, 1) not in [tuple(each.sizes) for each in shared]:
        return AtlasResult(null, found="no measure with the truth's density has such a cell")
    if null:
        return AtlasResult(null, math.inf, BY_INFORMATION)
    orders = {BY_DERIVATIVES: 2.0, AT_LEAST: 2.0 * cell.size}
    return AtlasResult(null, orders[decided], decided) if decided in orders else None


def _flat(model: Family, theta: FloatArray) -> FloatArray:
    """The parameters with a constant gate of the first atom where gates are raw."""
    if not model.gate.normalised:
        for name in model.gate.bounds:
            if name != model.gate.mass and name in model.blocks:
                theta[np.atleast_1d(model.blocks[name][0]).ravel()] = 0.0
    return theta


def run_cell(cell: AtlasCell, seconds: float) -> AtlasResult:
    """Compute a cell, in so many seconds at most.

    Parameters
    ----------
    cell : AtlasCell
        The cell.
    seconds : float
        Processor time for the order, and a third of it for far measures; a cell that is not done
        says so.

    Returns
    -------
    AtlasResult
        What was found.
    """
    try:
        with at_most(seconds):
            theta, null = drawn_truth(cell)
    except OutOfTimeError:
        return AtlasResult(found=f"{NOT_DONE} {seconds:g} s", seconds=seconds)
    except ValueError as error:
        return AtlasResult(found=f"no truth: {error}", seconds=seconds)
    far = _far(cell, theta, cell.size - 1, seconds) if cell.size <= 2 else ""
    if cell.size == 1 or null:
        order = math.inf if null else 1.0
        return AtlasResult(null, order, BY_INFORMATION, far=far, seconds=seconds)
    try:
        decided = order_by_derivatives(cell.true_family(), theta, cell.size)
    except ValueError:  # no density at inputs that far apart
        decided = None
    if decided is None:
        return AtlasResult(null, *_order(cell, theta, seconds), far, seconds)
    return AtlasResult(null, *decided, far=far, seconds=seconds)


def _order(cell: AtlasCell, theta: FloatArray, seconds: float) -> tuple[float | None, str, str]:
    model = cell.true_family()
    try:
        with at_most(seconds):
            found = explore(
                cell.fitted_family(),
                model,
                theta,
                deviations(model, theta),
                np.geomspace(*_RADII[cell.size], _RUNGS).tolist(),
                design=DESIGN,
                starts=1,
                cells=[(cell.size, 1)],
            )
    except OutOfTimeError:
        return None, f"{NOT_DONE} {seconds:g} s", ""
    except ValueError as error:
        return None, str(error), ""
    if not found.rungs or math.isnan(found.exponent):
        return None, "no measure found", ""
    return round(found.exponent, 3), found.verdict, found.worst_direction


def _far(cell: AtlasCell, theta: FloatArray, extra: int, seconds: float) -> str:
    model = cell.true_family()
    fitted = model.with_experts(model.n_experts + extra)
    try:
        with at_most(seconds / 3.0):
            found = find_far(
                fitted,
                model,
                theta,
                deviations(model, theta),
                design=DESIGN,
                n_starts=_FAR_STARTS,
            )
    except OutOfTimeError:
        return f"{NOT_DONE} {seconds / 3.0:g} s"
    except ValueError as error:
        return str(error)
    return found.text
