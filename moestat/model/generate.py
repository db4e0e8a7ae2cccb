"""Sampling from a family at a truth."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door
from moestat.base.types import Encoded, FloatArray, Seed
from moestat.base.validate import as_floats, as_generator, positive_int, real_in, short
from moestat.model.designs import Design, Equispaced, Given, Lattice, design_of
from moestat.model.family import Family, check_family
from moestat.model.lattice import (
    LARGEST,
    check_nodes,
    lattice_law,
    lattice_regression,
    multinomial,
)
from moestat.model.members import Likelihood

__all__ = ["check_noise", "check_size", "not_simulated", "sample", "sample_weighted"]

_MOST_ROWS = 1e9
"""Largest sample size of a design without nodes, whose samples are rows in memory."""


@door()
def sample(
    family: Family,
    theta: ArrayLike,
    n: float,
    rng: Seed = None,
    design: Design | None = None,
    noise: float | None = None,
) -> tuple[FloatArray, Encoded]:
    """Draw (X, Y): X from the design, an atom from the gate, Y from the atom's expert.

    For a family of regression functions ``Y = f(X) + eps`` with normal errors.

    Parameters
    ----------
    family : Family
        The model.
    theta : array_like of shape (P,)
        Packed parameters of the truth.
    n : int or float
        Sample size, a whole number up to 1e9.
    rng : numpy.random.Generator, int or None
        Source of randomness.
    design : Design, optional
        Distribution of X; uniform on [0, 1]^d by default.
    noise : float, optional
        Variance of the errors, for the least-squares likelihood and needed there; may be 0.

    Returns
    -------
    X : ndarray of shape (n, d)
        Inputs.
    y : ndarray of shape (n,)
        Responses; class labels 1..K for the multinomial likelihood.

    Raises
    ------
    ValueError
        If theta has another length or holds NaN, or n < 1 or n > 1e9, or `noise` is missing,
        negative, or given to a family that has its own.

    See Also
    --------
    sample_weighted : Counts on a lattice, for n up to 1e15.

    Examples
    --------
    >>> from moestat import family, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, 2], n=4, rng=0)
    >>> X.shape, y.tolist()
    ((4, 1), [1, 2, 2, 1])
    """
    check_family("family", family)
    vector = as_floats("theta", theta, (family.n_params,))
    n = _row_count(n)
    generator = as_generator(rng)
    variance = check_noise(family, noise)
    X = design_of(design).draw(n, family.n_features, generator)
    if variance is not None:
        f = family.regression(vector, X)[0]
        y = family.likelihood.draw(np.stack([f, np.full(n, variance)]), generator)
        return np.ascontiguousarray(X.T), y
    prior = family.rowwise(vector, X, family.placeholder(n))[0]
    threshold = generator.random(n)
    atom = np.sum(threshold >= np.cumsum(prior, axis=0)[:-1], axis=0)
    eta = family.predictors(vector, X)[atom, :, np.arange(n)].T
    with np.errstate(over="ignore", invalid="ignore"):
        y = family.likelihood.draw(eta, generator)
    level = family.likelihood.level(y)
    if np.isnan(prior).any() or not np.isfinite(level).all():
        raise ValueError("theta: responses there are beyond the range of float64")
    if family.likelihood.counts and level.max(initial=0.0) >= 2.0**63:
        raise ValueError("theta: counts there are beyond the range of 64-bit integers")
    return np.ascontiguousarray(X.T), family.likelihood.decode(y)


def not_simulated(likelihood: Likelihood) -> str:
    """Why a sweep cannot draw what a fit of this likelihood reads; empty if it can."""
    why = ""
    if likelihood.parts:
        why = f"has {len(likelihood.parts)} responses, and sweeps are of one"
    elif likelihood.effects is not None:
        why = "has random effects, and rows of sweeps have no groups"
    elif likelihood.is_censored:
        why = "is of censored responses, and those of sweeps are known"
    elif likelihood.with_trials is not None:
        why = "has numbers of trials by row, and sweeps take one number, such as trials = 8"
    return f"{likelihood.name!r} {why}" if why else ""


def check_noise(family: Family, noise: float | None) -> float | None:
    """The variance of a regression function's errors; None for a family with a density."""
    if family.is_regression:
        if noise is None:
            raise ValueError("noise: a least-squares family needs the variance of the errors")
        return real_in("noise", noise, 0.0)
    if noise is not None:
        raise ValueError(
            f"noise: the {family.likelihood.name} likelihood has its own, got {short(noise)}"
        )
    return None


@door()
def sample_weighted(
    family: Family,
    theta: ArrayLike,
    n: float,
    rng: Seed = None,
    design: Design | None = None,
    noise: float | None = None,
) -> tuple[FloatArray, Encoded, FloatArray]:
    """Draw n samples as distinct rows (X, Y) and how often each of them occurs.

    On a `moestat.model.designs.Lattice` the counts of all points are one exact multinomial draw, at
    a cost that does not depend on n, as local slopes at large n need.  With another design the rows
    are those of `sample`, each with the weight 1.

    Parameters
    ----------
    n : int or float
        Sample size, a whole number up to 1e15 on a lattice and 1e9 otherwise.
    family, theta, rng, design, noise
        As of `sample`.

    Returns
    -------
    X : ndarray of shape (m, d)
        Inputs of the points that occur, node by node.
    y : ndarray of shape (m,)
        Their responses: class labels 1..K, or multiples of the lattice's step.  For a regression
        function two per node, with the mean and the variance of all responses there.
    weight : ndarray of shape (m,)
        Counts, positive and of sum n: whole numbers, or halves of them for the two of a node.

    Raises
    ------
    ValueError
        If theta has another length or holds NaN, n is out of range, or the lattice has too few
        nodes for the model or too many points.

    Notes
    -----
    See `moestat.model.lattice` for the lattice of a continuous response, and why the ordinary
    density is fitted to it; and for the statistics of a node that are sufficient for least squares.

    Examples
    --------
    >>> from moestat import Lattice, family, fit, sample_weighted
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y, weight = sample_weighted(F, [0, 0, 1, -2], n=1e14, rng=0, design=Lattice(0, 1))
    >>> X.shape, float(weight.sum())
    ((128, 1), 100000000000000.0)
    >>> fit(F, X, y, sample_weight=weight, rng=0).params.round(5).tolist()
    [0.0, 0.0, 1.0, -2.0]
    """
    if not isinstance(design, Lattice):
        X, y = sample(family, theta, n, rng, design, noise)
        return X, y, np.ones(len(y))
    check_family("family", family)
    vector = as_floats("theta", theta, (family.n_params,))
    size, variance = _count(n), check_noise(family, noise)
    if variance is not None:
        points, y, weight = lattice_regression(
            family, vector, design, size, variance, as_generator(rng)
        )
        return np.ascontiguousarray(points.T), y, weight
    points, y, mass = lattice_law(family, vector, design)
    counts = multinomial(size, mass, as_generator(rng))
    positive = np.flatnonzero(counts)
    return (
        np.ascontiguousarray(points[:, positive].T),
        family.likelihood.decode(y[positive]),
        counts[positive].astype(np.float64),
    )


def check_size(design: Design, n: float, family: Family) -> None:
    """Refuse a sample size that the design cannot give, or too few nodes for the family."""
    if isinstance(design, Lattice):
        _count(n)
        check_nodes(design, family)
    else:
        _row_count(n)
    if isinstance(design, (Equispaced, Given)):
        design.check_features(family.n_features)


def _row_count(n: Any) -> int:
    return _size(n, _MOST_ROWS, "rows; for counts use a lattice design and sample_weighted")


def _count(n: Any) -> int:
    return _size(n, LARGEST, "counts, which are exact in float64 and int64")


def _size(n: Any, largest: float, what: str) -> int:
    """A sample size as an int: a whole number from 1 to `largest`."""
    try:
        size = float(n) if not isinstance(n, bool) and isinstance(n, Real) else np.nan
    except OverflowError:
        size = np.inf
    if size > largest:
        raise ValueError(f"n must be at most {largest:g} {what}; got {short(n)}")
    is_whole = isinstance(n, float) and size.is_integer()
    return positive_int("n", int(size) if is_whole else n, maximum=None)
