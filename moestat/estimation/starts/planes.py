"""Starts from samples near planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from moestat.base.types import FloatArray
from moestat.estimation.rules import SEARCH
from moestat.estimation.starts.clusters import ClusterStarts
from moestat.estimation.starts.scale import Scale
from moestat.model.family import Family
from moestat.solvers.problem import Problem
from moestat.solvers.rules import TINY, ZERO_CURVATURE

_WIDTHS: FloatArray = np.geomspace(1.0, 3.0**-5, 6)  # in standard deviations about the plane of all


@dataclass(frozen=True)
class LineStarts(ClusterStarts):
    """The complete-data fit to samples near random lines, or planes.

    Each of k planes is that through as many samples, drawn at random, as it has coefficients, and
    every sample belongs to the nearest one; of classes the planes are of their indicators.  So
    experts may cross.

    Parameters
    ----------
    count : int
        Number of starts.
    steps : int
        Newton steps of each at most.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.

    Notes
    -----
    Elemental sets, as of Rousseeuw and Leroy (1987).
    """

    name: str = "line"

    def places(self, scale: Scale) -> FloatArray:
        """Standardised inputs with a first row of ones, and responses, one above the other."""
        family, rows = scale.problem.family, [scale.places]
        sizes = [one.n_classes for one in family.likelihood.parts] or [family.n_classes]
        for y, size, is_number in zip(scale.levels, sizes, scale.numbers, strict=True):
            if not is_number:
                rows.append((y == np.arange(size)[:, None]).astype(np.float64))
        return np.vstack([np.ones_like(scale.levels[:1]), scale.standardised, *rows])

    def memberships(
        self, points: FloatArray, family: Family, rng: np.random.Generator
    ) -> FloatArray:
        """One row per atom, 1 for the samples nearest to its plane, else 0."""
        inputs, response = _parts(points, family)
        (n, size), k = inputs.shape, family.n_experts
        rows = np.array([rng.choice(n, size, replace=n < size) for _ in range(k)])
        slopes = planes_through(inputs[rows], response[rows])
        distance = np.sum((response - inputs @ slopes) ** 2, axis=2)
        return (np.argmin(distance, axis=0) == np.arange(k)[:, None]).astype(np.float64)


@dataclass(frozen=True)
class PlaneStarts(LineStarts):
    """The complete-data fit to samples near planes, which are found one after the other.

    Each candidate plane goes through as many random samples as it has coefficients, and has some
    widths.  The rule chooses the candidate and width that best separate samples from the common
    plane of all samples, and looks for the next plane among the remaining samples.  Therefore an
    expert may lie close to few samples, which neither clusters nor the nearest of random planes
    show.

    Parameters
    ----------
    count : int
        Number of starts.
    steps : int
        Newton steps of each at most.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.

    Notes
    -----
    A mixture that grows by an expert at a time, as of Verbeek, Vlassis and Krose (2003), from
    elemental sets, as of Rousseeuw and Leroy (1987).
    """

    name: str = "plane"

    def memberships(
        self, points: FloatArray, family: Family, rng: np.random.Generator
    ) -> FloatArray:
        """One row per atom, which sum to 1 over the atoms."""
        inputs, response = _parts(points, family)
        remaining, shares = np.ones(len(inputs)), list[FloatArray]()
        for n_experts in range(family.n_experts, 1, -1):
            near = _near_a_plane(inputs, response, remaining, 1.0 / n_experts, rng)
            shares.append(remaining * near)
            remaining = np.maximum(remaining - shares[-1], np.finfo(float).tiny)
        weights = np.array([*shares, remaining])
        return weights / weights.sum(axis=0)

    def divide_pairs(
        self,
        problem: Problem,
        theta: FloatArray,
        pairs: Sequence[Sequence[int]],
        rng: np.random.Generator,
    ) -> FloatArray:
        """Starting values (m, P) in which pairs of theta's experts part their samples anew."""
        scale, points = self.choose_rows(problem, rng)
        inputs, response = _parts(points, problem.family)
        data, memberships = scale.problem.data, list[FloatArray]()
        before = problem.family.rowwise(theta, data.X, data.y)[1]
        for g, h in pairs:
            share, both = before.copy(), np.maximum(before[g] + before[h], np.finfo(float).tiny)
            share[g] = both * _near_a_plane(inputs, response, both, 0.5, rng)
            share[h] = both - share[g]
            memberships.append(share)
        return self.fit_memberships(scale, memberships, rng, theta)


def _parts(points: FloatArray, family: Family) -> tuple[FloatArray, FloatArray]:
    """Inputs (n, 1 + d) and responses (n, q) of samples."""
    size = 1 + family.n_features
    return points[:size].T, points[size:].T


def planes_through(
    inputs: FloatArray, response: FloatArray, weight: FloatArray | float = 1.0
) -> FloatArray:
    """Least-squares coefficients (..., p, q) of standardised rows (..., n, p).

    A small ridge penalty determines them if the rows are too few, or too similar, for a plane.
    """
    weighted = np.swapaxes(inputs, -1, -2) * weight
    gram = weighted @ inputs
    ridge = ZERO_CURVATURE * np.trace(gram, axis1=-2, axis2=-1)[..., None, None]
    return np.linalg.solve(gram + ridge * np.eye(gram.shape[-1]), weighted @ response)


def _near_a_plane(
    inputs: FloatArray,
    response: FloatArray,
    weight: FloatArray,
    share: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Probabilities (n,) that rows belong to the best of some planes and not to the common one."""
    chance, q = weight / weight.sum(), response.shape[1]
    common = planes_through(inputs, response, chance)
    squares = np.sum((response - inputs @ common) ** 2, axis=1)
    level = max(float(chance @ squares) / q, np.finfo(float).tiny)
    rows = rng.choice(len(inputs), (SEARCH.planes, inputs.shape[1]), p=chance)
    planes = planes_through(inputs[rows], response[rows])
    alike = 0.5 * squares / level + np.log(share / (1.0 - share))
    apart = (response - inputs @ planes) ** 2
    distance = apart[..., 0] if q == 1 else np.sum(apart, axis=2)
    widths = _WIDTHS[:, None]
    base, steepness = alike - q * np.log(widths), 0.5 / (level * widths**2)

    def odds_of(width: int, plane: int) -> FloatArray:
        return base[width] - distance[plane] * steepness[width]

    odds = distance * steepness[..., None]
    np.subtract(base[:, None], odds, out=odds)
    gain = np.maximum(0.0, odds, out=odds) @ weight
    for best in np.argsort(-gain, axis=None, kind="stable"):
        width, plane = divmod(int(best), len(distance))
        odds_of_rows = odds_of(width, plane)
        inside = (odds_of_rows > 0.0) * weight
        spread = (inside @ distance[plane]) / max(float(inside.sum()), TINY)
        # Rows much nearer than the width are tied, or are the rows that determine the plane.
        if spread >= 0.25 * q * level * _WIDTHS[width] ** 2:
            return special.expit(odds_of_rows)
    return special.expit(odds_of(0, 0))
