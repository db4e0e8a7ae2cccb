"""Counts: exact samples of any size from a law that lives on finitely many points.

With the inputs on the nodes of a `moestat.model.designs.Lattice` the responses need finitely many
values too.  Classes have them.  A continuous response is put on a lattice ``y = l h``: with P the
law of the model, point (x_j, l h) has the probability ``w_j h p(l h | x_j)``.  The trapezoidal rule
integrates normal densities to ``2 exp(-2 pi^2 (sd / h)^2)``, 3e-34 at h = sd / 2, so these sum to
1 to rounding, and likewise for every model with standard deviations above 1.3 h: to 1e-14 its law
on the lattice is its continuous density at the lattice points times the constant h.  That is why a
model is fitted to lattice responses by its ordinary density: the likelihoods differ by the
constant ``h^n``, and the Kullback-Leibler distances of the two laws, hence information, rates and
plateaus, are those of the continuous ones.

Least squares needs no lattice of responses: of the n_j normal responses at node x_j their mean,
``N(f(x_j), nu / n_j)``, and their sum of squares about it, nu times a chi-square variable with
n_j - 1 degrees of freedom, are sufficient.  Two responses ``mean +- sqrt(squares / n_j)`` of
weight n_j / 2 have both.
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.model.designs import Lattice
from moestat.model.family import Family

__all__ = [
    "LARGEST",
    "check_nodes",
    "check_step",
    "lattice_law",
    "lattice_regression",
    "multinomial",
]

LARGEST = 1e15
"""Largest sample size: counts are exact in float64 and numpy's binomials are drawn in int64."""

_NARROWEST = 1.3  # steps per standard deviation that a normal density needs, to 1e-14
_TAIL = 8.9  # standard deviations about each mean; a normal variable leaves them once in 1e18
_MOST_POINTS = 5_000_000
_MASS_ERROR = 1e-13
# Probabilities below 2^-9 are drawn in two steps, the first of a power of two.
_SMALL, _DEEPEST = 9, 50


def check_nodes(design: Lattice, family: Family) -> None:
    """Refuse a lattice that has no law of the responses, or fewer free points than parameters."""
    if family.likelihood.law is not None or family.likelihood.parts:
        raise ValueError(
            f"design: a lattice is for classes and normal responses, got likelihood"
            f" {family.likelihood.name!r}"
        )
    n_nodes = design.quadrature(family.n_features)[1].size
    if family.is_regression and n_nodes < family.n_free_params:
        raise ValueError(
            f"design: the values of a regression function on {n_nodes} nodes cannot determine"
            f" {family.n_free_params} free parameters: use more nodes"
        )
    if family.likelihood.support is None:
        return
    points = n_nodes * (family.n_classes - 1)
    if points < family.n_free_params:
        raise ValueError(
            f"design: {n_nodes} nodes with {family.n_classes} classes hold {points} probabilities,"
            f" which cannot determine {family.n_free_params} free parameters: use more nodes"
        )


def check_step(design: Lattice, truth: Family, theta: FloatArray, fitted: Family) -> None:
    """Refuse a lattice of responses on which a fitted atom could be narrower than the step.

    The density of such an atom does not sum to 1 on the lattice: at a narrow atom with its mean on
    lattice points the likelihood would be high for no other reason.
    """
    block, spread = fitted.likelihood.collapse, fitted.likelihood.spread
    if block is None or spread is None:
        return
    nodes = design.quadrature(truth.n_features)[0]
    h = design.step * float(spread(truth.predictors(theta, nodes))[1].min())
    variance = float(fitted.box[block][0])
    if variance < (_NARROWEST * h) ** 2:
        raise ValueError(
            f"design: {block} may be as small as {variance:g}, but the step {h:.3g} of the lattice"
            f" of responses holds normal densities from {block} = {(_NARROWEST * h) ** 2:.3g} on:"
            f" raise the lower bound of {block}, or choose a finer step"
        )


def lattice_law(
    family: Family, theta: FloatArray, design: Lattice
) -> tuple[FloatArray, FloatArray | IntArray, FloatArray]:
    """The law of one sample: inputs (d, m), encoded responses and probabilities (m,) of points."""
    check_nodes(design, family)
    nodes, weight = design.quadrature(family.n_features)
    if family.likelihood.support is not None:
        classes = family.likelihood.support(family.n_classes)
        owner = np.repeat(np.arange(weight.size), classes.size)
        y, spacing = np.tile(classes, weight.size), 1.0
    else:
        owner, y, spacing = _response_lattice(family, theta, nodes, design.step)
    X = np.ascontiguousarray(nodes[:, owner])
    density = np.exp(family.rowwise(theta, X, y)[2])
    mass = weight[owner] * spacing * density
    error = abs(float(mass.sum()) - 1.0)
    if not error <= _MASS_ERROR:
        raise ValueError(
            f"design: the probabilities on the lattice sum to 1 only within {error:.1g}, not"
            f" {_MASS_ERROR:g}: choose a finer step"
        )
    return X, y, mass


def _response_lattice(
    family: Family, theta: FloatArray, nodes: FloatArray, step: float
) -> tuple[IntArray, FloatArray, float]:
    """Node (m,) and response (m,) of each point within the tails of an atom, and the step."""
    spread = family.likelihood.spread
    assert spread is not None  # a response without classes has one
    mean, deviation = spread(family.predictors(theta, nodes))
    h = step * float(deviation.min())
    low = np.floor((mean - _TAIL * deviation) / h).astype(np.int64)
    high = np.ceil((mean + _TAIL * deviation) / h).astype(np.int64)
    size = high - low + 1
    if int(size.sum()) > _MOST_POINTS:
        raise ValueError(
            f"design: the lattice has up to {int(size.sum()):,} points, more than {_MOST_POINTS:,}:"
            " the atoms' standard deviations are too different, or there are too many nodes"
        )
    owner: list[IntArray] = []
    y: list[FloatArray] = []
    for j in range(nodes.shape[1]):
        ends = zip(low[:, j].tolist(), high[:, j].tolist(), strict=True)
        parts: list[IntArray] = [np.arange(a, b + 1) for a, b in ends]
        values = np.unique(np.concatenate(parts))
        owner.append(np.full(values.size, j))
        y.append(h * values.astype(np.float64))
    return np.concatenate(owner), np.concatenate(y), h


def lattice_regression(
    family: Family,
    theta: FloatArray,
    design: Lattice,
    n: int,
    noise: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inputs (d, m), responses and weights with the moments of n draws ``f(x) + N(0, noise)``.

    Two rows for each node that occurs more than once, of half its count each.
    """
    check_nodes(design, family)
    nodes, mass = design.quadrature(family.n_features)
    counts = multinomial(n, mass, rng)
    nodes, count = nodes[:, counts > 0], counts[counts > 0].astype(np.float64)
    mean = family.regression(theta, nodes)[0]
    mean = mean + np.sqrt(noise / count) * rng.standard_normal(count.size)
    squares = np.zeros(count.size)
    repeated = count > 1.0
    squares[repeated] = noise * rng.chisquare(count[repeated] - 1.0)
    spread = np.sqrt(squares / count)
    apart = spread > 0.0
    owner = np.concatenate([np.arange(count.size), np.flatnonzero(apart)])
    order = np.argsort(owner, kind="stable")
    y = np.concatenate([mean - spread, (mean + spread)[apart]])[order]
    owner = owner[order]
    weight = count[owner] / np.bincount(owner)[owner]
    return np.ascontiguousarray(nodes[:, owner]), y, weight


def multinomial(n: int, mass: FloatArray, rng: np.random.Generator) -> IntArray:
    """Multinomial counts (m,) of n draws from points of the given probabilities.

    The points are the leaves of a binary tree, and the count of a node is split between its
    children by a binomial draw.  This is exact, and unlike one pass from point to point it never
    takes a small probability as a difference of large ones: the child of smaller mass is drawn, and
    one below 1/512 in two steps, ``Bin(Bin(n, r), p / r)`` with r a power of two, so that ``1 - p``
    is never rounded by more than 1e-13 of p.  numpy draws binomials by rejection in int64, so no
    normal approximation is needed up to 1e15.
    """
    depth = max(0, int(mass.size - 1).bit_length())
    level = np.zeros(2**depth)
    level[: mass.size] = mass
    sums = [level]
    while sums[-1].size > 1:
        sums.append(sums[-1][::2] + sums[-1][1::2])
    counts = np.array([n], dtype=np.int64)
    for level in sums[-2::-1]:
        left, right = level[::2], level[1::2]
        total = left + right
        share = np.minimum(left, right) / np.where(total > 0.0, total, 1.0)
        smaller = _binomial(counts, share, rng)
        split = np.empty(level.size, dtype=np.int64)
        split[::2] = np.where(left <= right, smaller, counts - smaller)
        split[1::2] = counts - split[::2]
        counts = split
    return counts[: mass.size]


def _binomial(n: IntArray, p: FloatArray, rng: np.random.Generator) -> IntArray:
    """Binomial draws for probabilities of at most 1/2, however small."""
    exponent = -np.frexp(p)[1]  # p lies in [2^-(exponent + 1), 2^-exponent)
    shift = np.where(exponent >= _SMALL, np.minimum(exponent, _DEEPEST), 0)
    thinned = rng.binomial(n, np.ldexp(1.0, -shift))
    return np.asarray(rng.binomial(thinned, np.ldexp(p, shift)), dtype=np.int64)
