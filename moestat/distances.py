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

__all__ = ["Distance", "expert_errors", "hellinger", "total_variation"]

_PANEL = 8  # Gauss-Legendre nodes per panel and axis
_NODES = {1: 512, 2: 64}  # per axis, by the number of inputs
_DRAWS = 20_000
_SEED = 20_231_014  # of the Monte-Carlo inputs, the same in every call
_DRAWS_PER_NODE = 100  # of a supremum over several inputs


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


def _pair(
    family: Family, theta: Any, truth_family: Family, truth_theta: Any
) -> tuple[FloatArray, FloatArray]:
    """Both parameter vectors, checked; the families must agree in inputs and classes."""
    d = family.n_features
    if truth_family.n_features != d or truth_family.n_classes != family.n_classes:
        raise ValueError(
            f"truth_family must have the inputs and classes of family: d = {d} and "
            f"K = {family.n_classes}, got d = {truth_family.n_features} and "
            f"K = {truth_family.n_classes}"
        )
    return (
        as_floats("theta", theta, (family.n_params,)),
        as_floats("truth_theta", truth_theta, (truth_family.n_params,)),
    )


def _mean_distance(
    pointwise: Callable[[FloatArray, FloatArray], FloatArray],
    family: Family,
    theta: Any,
    truth_family: Family,
    truth_theta: Any,
    design: Design | None,
    n_nodes: int | None,
) -> Distance:
    theta, truth_theta = _pair(family, theta, truth_family, truth_theta)
    d = family.n_features
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


def _support(design: Design, n_features: int, n_nodes: int) -> FloatArray:
    """Fixed inputs (n, d) over which a supremum is taken."""
    if n_features > 1:
        n = _DRAWS_PER_NODE * n_nodes
        return design.draw(n, n_features, np.random.default_rng(_SEED)).T
    if isinstance(design, Uniform):
        return np.linspace(design.low, design.high, n_nodes)[:, None]
    return design.quadrature(1, n_nodes)[0].T


def _expert_densities(family: Family, theta: FloatArray, X: FloatArray) -> FloatArray:
    """Density of every expert by itself, ``f(s | x; a_i, b_i)``, shape (k, n, K)."""
    alone = family.with_experts(1)
    atoms, shared = family.split(theta)
    return np.stack([alone.probabilities(alone.join(atom, shared), X) for atom in atoms])


def expert_errors(
    family: Family,
    theta: Any,
    truth_family: Family,
    truth_theta: Any,
    assignment: Any,
    design: Design | None = None,
    n_nodes: int = 201,
) -> FloatArray:
    """How far the fitted experts in the Voronoi cell of each true expert are from it.

    Parameters
    ----------
    family : Family
        Model of the estimate.
    theta : array_like of shape (P,)
        Packed parameters of the estimate.
    truth_family : Family
        Model of the truth, with the same inputs and classes.
    truth_theta : array_like of shape (P*,)
        Packed parameters of the truth.
    assignment : array_like of int, shape (k,)
        True atom whose cell holds each fitted atom, as in ``VoronoiResult.assignment``.
    design : Design, optional
        Law of X; uniform on [0, 1]^d by default.
    n_nodes : int, optional
        Size of the grid over which the supremum is taken, see Notes.

    Returns
    -------
    ndarray of shape (k*,)
        For each true atom j the largest of ``sup_x max_s |f(s | x; a_i, b_i) - f(s | x; a*_j,
        b*_j)|`` over the fitted atoms i in its cell, in [0, 1]; NaN where the cell is empty.

    Raises
    ------
    ValueError
        If the families differ in inputs or classes, parameters have another length or are not
        finite, the assignment is not one true atom for each fitted atom, or `n_nodes` < 2.

    Notes
    -----
    mlmoe (003), eq. (5).  The gates play no part.  With one input, x runs over `n_nodes` equally
    spaced points of a uniform design's interval, its ends included, or over the quadrature nodes
    of another design.  With several, x runs over ``100 * n_nodes`` draws of the design from a
    generator with a fixed seed, so that the value is the same in every call but somewhat below
    the supremum.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    >>> truth, fit = [0, 0, 1, 0, 0, 0, -1, 0], [2, 5, 1, 0, 0, 0, 0, 0]
    >>> expert_errors(F, fit, F, truth, [0, 1]).round(6).tolist()
    [0.0, 0.231059]
    """
    theta, truth_theta = _pair(family, theta, truth_family, truth_theta)
    k, true_k = family.n_experts, truth_family.n_experts
    cells = np.asarray(assignment)
    whole = cells.shape == (k,) and np.issubdtype(cells.dtype, np.integer)
    if not whole or cells.min() < 0 or cells.max() >= true_k:
        raise ValueError(
            f"assignment must give a true atom in 0..{true_k - 1} for each of the {k} fitted "
            f"atoms, got {assignment!r}"
        )
    X = _support(design or Uniform(), family.n_features, positive_int("n_nodes", n_nodes, 2))
    gaps = _expert_densities(family, theta, X)
    gaps -= _expert_densities(truth_family, truth_theta, X)[cells]
    errors = np.full(true_k, -np.inf)
    np.maximum.at(errors, cells, np.max(np.abs(gaps), axis=(1, 2)))
    return np.where(np.isneginf(errors), np.nan, errors)
