"""Measures far from a truth with the truth's distribution, searched from special starts.

The explorer searches near a truth.  A bound between all measures can also fail far from it: by an
expert that is the zero function under a raw gate, by a symmetry, by copies of atoms.  Starts are
built for each of these, beside random ones; from each the distance to the truth's law is
minimised, and where the law is reached the loss between the two measures is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import FloatArray, Seed
from moestat.base.validate import as_floats, as_generator, positive_int
from moestat.metrics.losses import VoronoiLoss, voronoi_loss
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.theory.defaults import INPUTS
from moestat.theory.identifiability.curves import descend
from moestat.theory.identifiability.laws import Target
from moestat.theory.identifiability.orbits import check_pair, draw_start, split_starts

__all__ = ["FarSearch", "find_far"]

_APART = 1e-3
"""Two measures with at least this loss between them are two."""
_ASLEEP = 1e-6
"""An atom all of whose derivatives are below this share of the law's scale is saturated: its weight
or its expert is 0 to rounding only, in a limit that no compact set holds."""


@dataclass(frozen=True)
class FarSearch:
    """Result of a search for measures far from a truth.

    Parameters
    ----------
    n_starts, n_reached : int
        Starts, and those from which the law of the truth was reached.
    losses : tuple of float
        Losses between the measures that were reached and the truth, descending.
    params : ndarray of shape (P,) or None
        The measure with the largest loss.
    discrepancy : float
        Largest discrepancy of its law from the truth's.
    start : str
        Kind of start that led to it.
    n_asleep : int
        Starts that reached the law with a saturated atom; they are not among `n_reached`.
    """

    n_starts: int
    n_reached: int
    losses: tuple[float, ...]
    params: FloatArray | None
    discrepancy: float
    start: str
    n_asleep: int

    @property
    def n_apart(self) -> int:
        """Measures that have the truth's law at a loss of at least 1e-3."""
        return sum(loss >= _APART for loss in self.losses)

    @property
    def text(self) -> str:
        """The outcome in a few words."""
        if self.n_apart:
            return (
                f"another measure has the same distribution: loss {self.losses[0]:.3g}, discrepancy"
                f" {self.discrepancy:.0e}, from {self.start}"
            )
        return f"none found, {self.n_reached} of {self.n_starts} starts came back to the truth"


def find_far(
    family: Family,
    truth_family: Family,
    truth: ArrayLike,
    loss: str | Mapping[str, object] | VoronoiLoss,
    *,
    design: Design | None = None,
    n_starts: int = 12,
    rng: Seed = 0,
) -> FarSearch:
    """Search for measures that have the law of a truth and are not the truth, by a loss.

    Parameters
    ----------
    family : Family
        Family of the measures.
    truth_family : Family
        The same with the truth's number of atoms.
    truth : array_like of shape (P*,)
        Packed parameters of the truth.
    loss : str, mapping or VoronoiLoss
        A loss, as `moestat.metrics.losses.make_loss` takes it.
    design : Design, optional
        Law of X; uniform on [-2, 2]^d by default.
    n_starts : int
        Number of random starts: at random, with signs of blocks of atoms turned, and near the
        truth, in turn.  Before them come the truth with atoms split into equal shares, and the
        truth beside further atoms whose expert is 0.
    rng : numpy.random.Generator, int or None
        Source of the starts.

    Returns
    -------
    FarSearch
        What was found; what was not found may still exist.

    Raises
    ------
    ValueError
        If the families do not go together, the gate jumps, or a size is too small.

    Examples
    --------
    A neuron that is the zero function can stand beside the true one under any raw gate.

    >>> from moestat import family
    >>> neuron = {"name": "activation", "activation": "gelu", "weighted": False}
    >>> F = family("least-squares", gate="sigmoid-partial", expert=neuron, n_experts=1)
    >>> truth = F.pack({"A": [0.0], "c": [0.3], "alpha": [2.0], "beta": [0.5]})
    >>> found = find_far(F.with_experts(2), F, truth, "L4", n_starts=1)
    >>> found.n_apart > 0, found.start
    (True, 'the zero function')
    """
    vector = as_floats("truth", truth, (truth_family.n_params,))
    check_pair(family, truth_family)
    count = positive_int("n_starts", n_starts)
    generator = as_generator(rng)
    target = Target(family, truth_family, vector, design or INPUTS)
    starts = [("copies", start) for start in split_starts(target)]
    starts += [("the zero function", start) for start in _zeros(target, generator)]
    kinds = ("a random start", "turned signs", "the truth")
    starts += [(kinds[s % 3], draw_start(target, generator, s % 3)) for s in range(count)]
    true_measure = truth_family.measure(vector)
    maxima: list[tuple[float, FloatArray, str]] = []
    asleep = 0
    for kind, start in starts:
        theta = descend(target, start)
        if theta is not None and _asleep(target, theta):
            asleep += 1
        elif theta is not None:
            value = float(voronoi_loss(family.measure(theta), true_measure, loss))
            maxima.append((value, theta, kind))
    maxima.sort(key=lambda each: -each[0])
    best = maxima[0] if maxima else None
    return FarSearch(
        len(starts),
        len(maxima),
        tuple(value for value, _, _ in maxima),
        None if best is None else best[1],
        float("nan") if best is None else target.discrepancy(best[1]),
        "" if best is None else best[2],
        asleep,
    )


def _asleep(target: Target, theta: FloatArray) -> bool:
    """Whether the distribution does not depend to first order on any parameter of some atom."""
    family = target.family
    size = np.zeros(family.n_params)
    size[target.free] = np.linalg.norm(target.jacobian(theta), axis=0)
    atoms = family.split(size)[0]
    return bool(np.any(atoms.max(axis=1) < _ASLEEP * target.scale))


def _zeros(target: Target, rng: np.random.Generator) -> list[FloatArray]:
    """The truth beside atoms under random gates whose experts' parameters are all 0."""
    family, source = target.family, target.truth_family
    extra = family.n_experts - source.n_experts
    if extra < 1 or family.gate.normalised:
        return []
    atoms, shared = source.split(target.truth)
    further = rng.normal(size=(extra, atoms.shape[1]))
    for name in family.expert_blocks:
        further[:, np.atleast_1d(family.blocks[name][0]).ravel()] = 0.0
    return [family.pin(family.join(np.vstack([atoms, further]), shared))]
