"""Local slopes at large n: how the slope of a loss changes with n, and which exponents are seen.

Over eleven decades a curve is not one line: it starts pre-asymptotic and bends to the exponent of
the theory, or to a plateau.  What counts is the local slope, from a decade below n to a decade
above it, and from which n on it agrees with a prediction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.door import door, doors
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, real_in
from moestat.metrics.information import NullDirection
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.rates.bounds import EXPONENTS
from moestat.rates.rate import fit_rate, positive

__all__ = [
    "EXPONENTS",
    "LocalSlopes",
    "Sight",
    "exponent_name",
    "exponents_seen",
    "judge",
    "lightest_weight",
    "local_slopes",
    "null_part",
]

_NAMES = ("0", "-1/12", "-1/8", "-1/6", "-1/4", "-1/2")
_LATE = 1e-4
"""The last four decades decide which exponents are seen."""

_NODES = 64
"""Quadrature nodes per input."""

_WIDE = 0.1
"""An interval wider than this to either side decides nothing."""


@doors
@dataclass(frozen=True)
class LocalSlopes:
    """Slopes of the mean log loss between sample sizes two apart.

    Parameters
    ----------
    n : ndarray of shape (S,)
        The sample sizes in the middle.
    slope, error : ndarray of shape (S,)
        Slopes with their standard errors; NaN with a single replicate at an end.
    """

    n: FloatArray
    slope: FloatArray
    error: FloatArray

    def agrees_from(self, exponent: float, sigmas: float = 2.0) -> float | None:
        """The n from which on every slope is within `sigmas` standard errors of an exponent.

        None when the last slope is not.

        Examples
        --------
        >>> n = np.repeat([1e3, 1e4, 1e5, 1e6], 2)
        >>> loss = np.where(n < 1e4, 0.01, n**-0.5) * np.tile([0.9, 1.1], 4)
        >>> local_slopes(n, loss).agrees_from(-0.5)
        100000.0
        """
        close = np.abs(self.slope - exponent) <= sigmas * self.error
        if not close.size or not close[-1]:
            return None
        apart = np.flatnonzero(~close)
        return float(self.n[apart[-1] + 1 if apart.size else 0])


@door()
def local_slopes(n: ArrayLike, loss: ArrayLike) -> LocalSlopes:
    """Local slopes of a loss.

    Parameters
    ----------
    n : array_like of shape (N,)
        Sample size of each replicate.
    loss : array_like of shape (N,)
        Loss of each replicate, positive.

    Returns
    -------
    LocalSlopes
        One slope per sample size but the first and the last.

    Raises
    ------
    ValueError
        If lengths differ or a value is not finite and positive.

    Examples
    --------
    >>> local_slopes([10, 10, 100, 100, 1000, 1000], [1, 1.1, 0.5, 0.6, 0.1, 0.11]).slope.round(2)
    array([-0.5])
    """
    sizes = positive("n", n)
    values = positive("loss", loss, sizes.size)
    distinct, group = np.unique(sizes, return_inverse=True)
    count = np.bincount(group)
    log = np.log(values)
    mean = np.bincount(group, weights=log) / count
    squares = np.bincount(group, weights=(log - mean[group]) ** 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(count > 1, squares / (count - 1.0) / count, np.nan)
    width = np.log(distinct[2:]) - np.log(distinct[:-2])
    return LocalSlopes(
        n=distinct[1:-1],
        slope=(mean[2:] - mean[:-2]) / width,
        error=np.sqrt(variance[2:] + variance[:-2]) / width,
    )


@door()
def exponent_name(exponent: float) -> str:
    """An exponent as a fraction where it is one of the theorems', else in two digits.

    Examples
    --------
    >>> exponent_name(-0.125), exponent_name(-0.3)
    ('-1/8', '-0.30')
    """
    exponent = float(exponent)
    for value, name in zip(EXPONENTS, _NAMES, strict=True):
        if math.isclose(value, exponent, abs_tol=1e-12):
            return name
    return f"{exponent:.2f}"


@door()
def exponents_seen(
    n: ArrayLike, loss: ArrayLike
) -> tuple[float, tuple[float, float], tuple[float, ...]]:
    """The slope over the last four decades, its 95% interval, and the exponents inside.

    Parameters
    ----------
    n, loss : array_like of shape (N,)
        Sample size and positive loss of each replicate.

    Returns
    -------
    slope : float
        Slope of log loss on log n over the sizes from 1e-4 of the largest on; NaN for one size.
    interval : (float, float)
        Its 95% interval; NaN where the data do not determine it.
    seen : tuple of float
        Those of `EXPONENTS` in the interval.

    Raises
    ------
    ValueError
        As `moestat.fit_rate`.

    Examples
    --------
    >>> n = np.repeat([1e4, 1e5, 1e6, 1e7, 1e8], 10)
    >>> noise = np.exp(0.1 * np.random.default_rng(1).standard_normal(n.size))
    >>> slope, interval, seen = exponents_seen(n, n**-0.25 * noise)
    >>> seen
    (-0.25,)
    """
    sizes, values = as_floats("n", n, (None,)), as_floats("loss", loss, (None,))
    late = sizes >= 0.999 * _LATE * sizes.max()
    if np.unique(sizes[late]).size < 2:
        return math.nan, (math.nan, math.nan), ()
    rate = fit_rate(sizes[late], values[late], n_bootstrap=0)
    low, high = rate.interval
    return rate.slope, rate.interval, tuple(e for e in EXPONENTS if low <= e <= high)


@dataclass(frozen=True)
class Sight:
    """Verdict of the last four decades on one predicted exponent.

    Parameters
    ----------
    verdict : str
        ``"seen"``, ``"faster"``, ``"slower"``, ``"plateau"`` or ``"undecided"``.
    slope : float
        Slope of log value on log n over the last four decades.
    interval : (float, float)
        Its 95% interval.
    since : float or None
        The n from which on every local slope agrees with the prediction, where it is seen.
    """

    verdict: str
    slope: float
    interval: tuple[float, float]
    since: float | None = None

    def __str__(self) -> str:
        """In words."""
        if self.verdict == "seen" and self.since is not None:
            return f"seen, from n = {self.since:.0e}"
        return self.verdict


@door()
def judge(n: ArrayLike, loss: ArrayLike, exponent: float) -> Sight:
    """Whether an exponent is seen over the last four decades.

    It is *seen* if the 95% interval of the slope holds it and reaches at most 0.1 to either side;
    a *plateau* if the interval holds 0 and not the exponent, and is as narrow; *faster* or
    *slower* if the whole interval lies below or above it; else *undecided*.

    Parameters
    ----------
    n, loss : array_like of shape (N,)
        Sample size and positive value of each replicate.
    exponent : float
        The prediction, negative.

    Returns
    -------
    Sight
        Verdict, slope, interval, and where the agreement begins; slope and interval are NaN where
        the last four decades hold one sample size only.

    Raises
    ------
    ValueError
        As `moestat.fit_rate`, or if the exponent is no finite number.

    Examples
    --------
    >>> n = np.repeat([1e4, 1e5, 1e6, 1e7, 1e8], 10)
    >>> noise = np.exp(0.1 * np.random.default_rng(1).standard_normal(n.size))
    >>> str(judge(n, n**-0.25 * noise, -0.25)), str(judge(n, n**-0.25 * noise, -0.5))
    ('seen, from n = 1e+05', 'slower')
    >>> str(judge(n, noise, -0.5))
    'plateau'
    """
    exponent = real_in("exponent", exponent)
    slope, (low, high), _ = exponents_seen(n, loss)
    narrow = high - low <= 2.0 * _WIDE
    if narrow and low <= exponent <= high:
        since = local_slopes(n, loss).agrees_from(exponent)
        return Sight("seen", slope, (low, high), since)
    if narrow and low <= 0.0 <= high:
        return Sight("plateau", slope, (low, high))
    if high < exponent:
        return Sight("faster", slope, (low, high))
    return Sight("slower" if low > exponent else "undecided", slope, (low, high))


@door()
def null_part(
    family: Family, theta: ArrayLike, params: ArrayLike, directions: Sequence[NullDirection]
) -> tuple[float, float]:
    """Errors of an exactly specified fit along the null directions at the truth, and across them.

    A sample of any size carries no information along them: that part of the error is the error of
    the start.

    Parameters
    ----------
    family : Family
        The family of truth and fit.
    theta, params : array_like of shape (P,)
        Packed parameters of the truth and of the fit.
    directions : sequence of NullDirection
        From `moestat.information_spectrum`, at least one.

    Returns
    -------
    along, across : float
        Euclidean norms of the two parts of the difference, translations pinned away, under the
        relabelling of atoms with the smallest second part.

    Raises
    ------
    ValueError
        If a length is wrong or there is no direction.

    Examples
    --------
    >>> from moestat import family, information_spectrum
    >>> F = family("multinomial", gate="sigmoid", n_experts=1, n_classes=2)
    >>> spectrum = information_spectrum(F, [0, 1, 1, 0, 0])
    >>> along, across = null_part(F, [0, 1, 1, 0, 0], [0, 4, 5, 0.1, 0], spectrum.null_directions)
    >>> round(along, 3), round(across, 3)
    (5.0, 0.1)
    """
    truth = family.pin(as_floats("theta", theta, (family.n_params,)))
    vector = as_floats("params", params, (family.n_params,))
    if not directions:
        raise ValueError("directions must hold at least one null direction")
    names = family.param_names
    basis = np.zeros((family.n_params, len(directions)))
    for column, direction in enumerate(directions):
        for name, component in direction.components.items():
            basis[names.index(name), column] = component
    basis = np.linalg.qr(basis)[0]
    atoms, shared = family.split(vector)
    parts = []
    for order in itertools.permutations(range(family.n_experts)):
        error = family.pin(family.join(atoms[list(order)], shared)) - truth
        along = basis.T @ error
        across = error - basis @ along
        parts.append((float(np.linalg.norm(across)), float(np.linalg.norm(along))))
    norm_across, norm_along = min(parts)
    return norm_along, norm_across


@door()
def lightest_weight(family: Family, theta: ArrayLike, design: Design) -> float:
    """Mean gate weight of the atom that has the least of it.

    Parameters
    ----------
    family : Family
        The fitted family.
    theta : array_like of shape (P,)
        Packed parameters.
    design : Design
        Distribution of the inputs.

    Returns
    -------
    float
        ``min_i E pi_i(x)``.

    Notes
    -----
    An over-specified fit has two ways to use an atom that the truth does not have.  It can share
    the place of a true one: then both have weight, and merge.  Or it can fit noise anywhere else,
    with a weight of order n^-1/2: the score of that weight is a random process over the places, and
    the likelihood is largest where the process is (Dacunha-Castelle and Gassiat 1999, Ann. Statist.
    27, 1178-1209, for mixtures without inputs).

    Examples
    --------
    >>> from moestat import Uniform, family
    >>> F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    >>> theta = F.pack({"beta0": [-6, 0], "beta1": [0, 0], "a": [[1], [-1]], "b": [[0], [0]]})
    >>> round(lightest_weight(F, theta, Uniform(0, 1)), 6)
    0.002473
    """
    nodes, mass = design.quadrature(family.n_features, _NODES)
    return float((mass @ family.gate_probabilities(theta, nodes.T)).min())
