"""Poisson experts: counts with mean ``mu = exp(eta)``.

Counts may be censored: known exactly, or between two counts, which are stored as one complex number
of a least and a largest value, 1e99 where there is none. With the mean mu, ``d P(a <= Y <= b) / d
mu = p(a - 1) - p(b)``, so that in ``eta = log mu`` the first derivative is ``A - B`` with ``A = mu
p(a - 1)`` and ``B = mu p(b)``, and the second one ``(a - mu) A - (b + 1 - mu) B``.

Source: McCullagh and Nelder (1989), Ch. 6; mixtures of Poisson regressions: Gruen and Leisch
(2008), Sec. 2; censored counts: Terza (1985), eq. (2) and (3).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from moestat.base.types import Encoded, FloatArray, Law
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log_gamma
from moestat.kernels.atom import VARYING
from moestat.model.censoring import FAR, OPEN, bounds_of
from moestat.model.large_counts import draw_counts, poisson
from moestat.model.members import Likelihood
from moestat.model.random_intercept import with_integrated_effects
from moestat.model.responses import likelihood_of_counts

_STEEPEST = 300.0
"""Predictors beyond this count as this: their means are out of reach, and products stay finite."""

_NEGLIGIBLE = 1e-17
_MOST = 100_000
"""Terms of a sum at most: the sums of means up to 1e8 end before."""


@device
def varying(eta, y, m, order, value, d1, d2):
    """What depends on the predictor, ``y eta - mu``, with ``d1 = y - mu`` and ``d2 = -mu``."""
    for b in range(m):
        at = eta[0, b] if eta[0, b] < _STEEPEST else _STEEPEST
        mean = exp(at)
        value[b] = y[b] * at - mean
        d1[0, b] = y[b] - mean
    if order > 1:
        for b in range(m):
            d2[0, b] = d1[0, b] - y[b]


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-probability ``y eta - mu - log y!``."""
    varying(eta, y, m, order, value, d1, d2)
    for b in range(m):
        value[b] -= log_gamma(y[b] + 1.0)


VARYING[block] = varying


@device
def zero(eta, b):
    """Log-probability of 0 of a Poisson count, -mu, and its derivatives in (eta, t)."""
    mean = exp(eta[0, b] if eta[0, b] < _STEEPEST else _STEEPEST)
    return -mean, -mean, 0.0, -mean, 0.0, 0.0


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 1, n)."""
    return np.exp(eta[..., 0, :]), np.exp(0.5 * eta[..., 0, :])


def _mixed_moments(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation with a normal intercept, from predictors (..., 2, n)."""
    with np.errstate(over="ignore"):
        mean = np.exp(eta[..., 0, :] + 0.5 * eta[..., 1, :] ** 2)
        return mean, np.sqrt(mean + mean**2 * np.expm1(eta[..., 1, :] ** 2))


def law(eta: FloatArray) -> Law:
    """The distribution at predictors (..., 1, n)."""
    return poisson(np.exp(eta[..., 0, :]))


def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Counts with the predictors `eta`, shape (1, n)."""
    return draw_counts(np.exp(eta[0]), rng)


def reference(predictors, blocks, y):
    """Log-probabilities (k, n) of counts y, from predictors (k, n)."""
    from scipy.special import gammaln

    return y * predictors - np.exp(predictors) - gammaln(y + 1.0)


@device
def _log_probability(count, eta, mean):
    """Log-probability of a count."""
    return count * eta - mean - log_gamma(count + 1.0)


@device
def _sum(count, mean, upward):
    """Probability from a count above the mean on, or up to one below it, over that of the count."""
    total, term = 1.0, 1.0
    at = count
    for _ in range(_MOST):
        if upward:
            at += 1.0
            term *= mean / at
        else:
            term *= at / mean
            at -= 1.0
        total += term
        if term <= _NEGLIGIBLE * total:
            break
    return total


@device
def _tail(count, eta, mean, upward):
    """Probability from a count above the mean on, or up to one below it; 0 below 0."""
    if count < 0.0 or count > OPEN:
        return 0.0
    return exp(_log_probability(count, eta, mean)) * _sum(count, mean, upward)


@device
def _between(first, last, eta, mean):
    """Logarithm of the probability between two counts, by sums that do not cancel."""
    if first > mean:
        top = _log_probability(first, eta, mean)
        total = _sum(first, mean, True)
        if last < OPEN:
            further = _log_probability(last + 1.0, eta, mean) - top
            total -= exp(further) * _sum(last + 1.0, mean, True)
    elif last < mean:
        top = _log_probability(last, eta, mean)
        total = _sum(last, mean, False)
        if first > 0.0:
            further = _log_probability(first - 1.0, eta, mean) - top
            total -= exp(further) * _sum(first - 1.0, mean, False)
    else:
        top = 0.0
        total = 1.0 - _tail(first - 1.0, eta, mean, False) - _tail(last + 1.0, eta, mean, True)
    return top + np.log(total if total > 1e-300 else 1e-300)


@device
def block_of_bounds(eta, y, m, order, value, d1, d2):
    """Log-probability of a count or of an interval of counts, and its derivatives in eta."""
    for b in range(m):
        first, last = y[b].real, y[b].imag
        at = eta[0, b] if eta[0, b] < _STEEPEST else _STEEPEST
        mean = exp(at)
        if first == last:
            value[b] = _log_probability(first, at, mean)
            d1[0, b] = first - mean
            if order > 1:
                d2[0, b] = -mean
        else:
            value[b] = _between(first, last, at, mean)
            low, high = 0.0, 0.0
            if first > 0.0:
                low = exp(at + _log_probability(first - 1.0, at, mean) - value[b])
            if last < OPEN:
                high = exp(at + _log_probability(last, at, mean) - value[b])
            d1[0, b] = low - high
            if order > 1:
                rest = (first - mean) * low - ((last + 1.0 - mean) * high if high > 0.0 else 0.0)
                d2[0, b] = rest - d1[0, b] * d1[0, b]


def _encode(y: ArrayLike, n_classes: int) -> Encoded:
    """Counts (n,), or bounds (n, 2), checked, as complex numbers."""
    low, high = bounds_of(y)
    for side in (low, high):
        invalid = side[np.isfinite(side) & ((side < 0.0) | (side != np.floor(side)))]
        if invalid.size:
            raise ValueError(f"y must hold counts, whole numbers from 0; got {invalid[0]:g}")
    return np.maximum(low, 0.0) + 1j * np.minimum(high, FAR)


def _decode(y: Encoded) -> FloatArray:
    """Bounds (n, 2); counts as they are where they were not encoded."""
    if not np.iscomplexobj(y):
        return np.asarray(y)
    return np.column_stack([np.real(y), np.where(np.imag(y) > OPEN, np.inf, np.imag(y))])


def make(
    censored: bool = False,
    random: object = None,
    covariance: str = "free",
    within: object = None,
) -> Likelihood:
    """The likelihood, of counts of which some are known by bounds, both included, or all.

    `random` are one or two normal effects of groups of rows, "1" and inputs, or an intercept also
    of the parts of groups that an input `within` has.
    """
    if random is not None:
        if censored:
            raise ValueError("poisson: random effects are not available for censored counts")
        return with_integrated_effects(LIKELIHOOD, random, covariance, within, _mixed_moments)
    if not censored:
        return LIKELIHOOD
    return replace(
        LIKELIHOOD,
        block=block_of_bounds,
        encode=_encode,
        decode=_decode,
        dtype=np.complex128,
        options={"censored": True},
    )


LIKELIHOOD = likelihood_of_counts(
    name="poisson",
    block=block,
    reference=reference,
    draw=draw,
    spread=spread,
    law=law,
    source="McCullagh and Nelder (1989), Ch. 6",
    configure=make,
)
