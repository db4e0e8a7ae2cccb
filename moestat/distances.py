"""Distances between two conditional densities, averaged over the inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat._types import FloatArray
from moestat._validate import as_floats, positive_int
from moestat.designs import Design, Uniform
from moestat.families import Family

__all__ = ["Distance", "hellinger", "total_variation"]

_PANEL = 8  # Gauss-Legendre nodes per panel and axis
_NODES = {1: 512, 2: 64}  # per axis, by the number of inputs
_DRAWS = 20_000
_SEED = 20_231_014  # of the Monte-Carlo inputs, the same in every call


@dataclass(frozen=True)
class Distance:
    """A distance with its numerical error.

    Parameters
    ----------
    value : float
        The distance, in [0, 1].
    error : float
        One or two inputs: change of the value when the number of nodes per axis is doubled (the
        value is the finer one's).  More inputs: standard error of the Monte-Carlo mean.
    """

    value: float
    error: float

    def __float__(self) -> float:
        return self.value


def _hellinger(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.sqrt(0.5 * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2, axis=1))


def _total_variation(p: FloatArray, q: FloatArray) -> FloatArray:
    return 0.5 * np.sum(np.abs(p - q), axis=1)


def _quadrature(design: Design, n_features: int, n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes (n, d) and weights (n,): panels of a uniform design, else the design's own rule.

    A steep gate or a change of sign of p - q spoils one rule of high order, but only one panel.
    """
    if not isinstance(design, Uniform):
        nodes, weights = design.quadrature(n_features, n_nodes)
        return nodes.T, weights
    n_panels = -(-n_nodes // _PANEL)
    edges = np.linspace(design.low, design.high, n_panels + 1)
    unit, mass = Uniform(0.0, 1.0).quadrature(1, _PANEL)
    line = (edges[:-1, None] + np.diff(edges)[:, None] * unit).ravel()
    line_mass = np.tile(mass / n_panels, n_panels)
    grid = np.meshgrid(*[line] * n_features, indexing="ij")
    weights = np.meshgrid(*[line_mass] * n_features, indexing="ij")
    points = np.stack([axis.ravel() for axis in grid], axis=1)
    return points, np.prod([axis.ravel() for axis in weights], axis=0)


def _mean_distance(
    pointwise: Callable[[FloatArray, FloatArray], FloatArray],
    family: Family,
    theta: Any,
    truth_family: Family,
    truth_theta: Any,
    design: Design | None,
    n_nodes: int | None,
) -> Distance:
    d = family.n_features
    if truth_family.n_features != d or truth_family.n_classes != family.n_classes:
        raise ValueError(
            f"truth_family must have the inputs and classes of family: d = {d} and "
            f"K = {family.n_classes}, got d = {truth_family.n_features} and "
            f"K = {truth_family.n_classes}"
        )
    theta = as_floats("theta", theta, (family.n_params,))
    truth_theta = as_floats("truth_theta", truth_theta, (truth_family.n_params,))
    design = design or Uniform()
    default = _NODES.get(d, _DRAWS)
    size = default if n_nodes is None else positive_int("n_nodes", n_nodes, 2)

    def at(X: FloatArray) -> FloatArray:
        p = family.probabilities(theta, X)
        return pointwise(p, truth_family.probabilities(truth_theta, X))

    if d not in _NODES:
        values = at(design.draw(size, d, np.random.default_rng(_SEED)).T)
        return Distance(float(values.mean()), float(values.std(ddof=1) / np.sqrt(size)))
    coarse, fine = (
        float(weights @ at(X)) for X, weights in (_quadrature(design, d, m * size) for m in (1, 2))
    )
    return Distance(fine, abs(fine - coarse))


def hellinger(
    family: Family,
    theta: Any,
    truth_family: Family,
    truth_theta: Any,
    design: Design | None = None,
    n_nodes: int | None = None,
) -> Distance:
    """Expected Hellinger distance between two conditional densities, ``E_X d_H(p(.|X), q(.|X))``.

    Parameters
    ----------
    family : Family
        Model of the estimate.
    theta : array_like of shape (P,)
        Packed parameters of the estimate.
    truth_family : Family
        Model of the truth, with the same inputs and classes; gate and number of experts may
        differ.
    truth_theta : array_like of shape (P*,)
        Packed parameters of the truth.
    design : Design, optional
        Law of X; uniform on [0, 1]^d by default.
    n_nodes : int, optional
        Nodes per axis for d <= 2 (512 for d = 1, 64 for d = 2), number of draws for d > 2
        (20000, from a generator with a fixed seed).

    Returns
    -------
    Distance
        The value in [0, 1] and its numerical error.

    Raises
    ------
    ValueError
        If the families differ in inputs or classes, parameters have another length or are not
        finite, or `n_nodes` < 2.

    Notes
    -----
    mlmoe (003), end of Sec. 1: ``d_H(p, q)^2 = (1/2) sum_s (sqrt(p_s) - sqrt(q_s))^2``.  The sum
    over classes is exact.  The mean over X is Gauss-Legendre quadrature on panels for d <= 2 and
    Monte Carlo for d > 2.  Pointwise ``d_H^2 <= d_V <= sqrt(2) d_H``.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> round(hellinger(F, [0, 0, 1, 0], F, [0, 0, -1, 0]).value, 6)
    0.336424
    """
    return _mean_distance(_hellinger, family, theta, truth_family, truth_theta, design, n_nodes)


def total_variation(
    family: Family,
    theta: Any,
    truth_family: Family,
    truth_theta: Any,
    design: Design | None = None,
    n_nodes: int | None = None,
) -> Distance:
    """Expected total variation between two conditional densities, ``E_X d_V(p(.|X), q(.|X))``.

    Parameters
    ----------
    family : Family
        Model of the estimate.
    theta : array_like of shape (P,)
        Packed parameters of the estimate.
    truth_family : Family
        Model of the truth, with the same inputs and classes; gate and number of experts may
        differ.
    truth_theta : array_like of shape (P*,)
        Packed parameters of the truth.
    design : Design, optional
        Law of X; uniform on [0, 1]^d by default.
    n_nodes : int, optional
        Nodes per axis for d <= 2 (512 for d = 1, 64 for d = 2), number of draws for d > 2
        (20000, from a generator with a fixed seed).

    Returns
    -------
    Distance
        The value in [0, 1] and its numerical error.

    Raises
    ------
    ValueError
        If the families differ in inputs or classes, parameters have another length or are not
        finite, or `n_nodes` < 2.

    Notes
    -----
    mlmoe (003), end of Sec. 1: ``d_V(p, q) = (1/2) sum_s |p_s - q_s|``.  Sum and mean are taken
    as in `hellinger`.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> round(total_variation(F, [0, 0, 1, 0], F, [0, 0, -1, 0]).value, 6)
    0.462117
    """
    return _mean_distance(
        _total_variation, family, theta, truth_family, truth_theta, design, n_nodes
    )
