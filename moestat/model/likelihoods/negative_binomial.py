"""Negative binomial experts: counts with mean ``mu = exp(eta)`` and variance ``mu + phi mu^2``.

The dispersion phi is a parameter of each expert; its logarithm is the coefficient that solvers
see.  As phi falls to 0 the counts become Poisson.

Source: Cameron and Trivedi (2013), Sec. 3.3 (the model NB2).
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, Law
from moestat.compiler.jit import device
from moestat.compiler.math import exp, gamma_excess, log1p_positive, log_gamma
from moestat.model.large_counts import draw_counts, negative_binomial
from moestat.model.members import Channel
from moestat.model.reference import log_gamma as reference_log_gamma
from moestat.model.responses import LEAST_PROBABILITY, likelihood_of_counts, varied

_STEEPEST = 300.0
"""Predictors beyond this count as this: their means are out of reach, and products stay finite."""


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-probability of y; predictors are (eta, t) with ``t = log phi``, the same for all.

    With ``r = 1 / phi``, ``G = log Gamma(r + y) - log Gamma(r) - y log r``,
    ``L = log(1 + phi mu)`` and ``q = 1 / (1 + phi mu)`` it is
    ``G - log y! + y eta - (y + r) L``; ``d_eta = (y - mu) q``,
    ``d_t = r (L - psi(r + y) + psi(r)) + d_eta``, ``d_eta_eta = -mu (1 + phi y) q^2``,
    ``d_eta_t = -phi mu q d_eta`` and
    ``d_t_t = r (psi(r + y) - psi(r) - L) + r^2 (psi'(r + y) - psi'(r)) + mu q - phi mu q d_eta``.
    """
    phi = exp(eta[1, 0])
    r = exp(-eta[1, 0])
    excess, slope, curve = gamma_excess(r)
    for b in range(m):
        at = eta[0, b] if eta[0, b] < _STEEPEST else _STEEPEST
        mean = exp(at)
        scaled = phi * mean
        q = 1.0 / (1.0 + scaled)
        growth = log1p_positive(scaled)
        more, steeper, sharper = gamma_excess(r + y[b])
        # log Gamma and psi at r + y less those at r, without the terms that cancel.
        step = log1p_positive(phi * y[b])
        rise = (r + y[b] - 0.5) * step - y[b] + (more - excess)
        turn = r * (step + (steeper - slope))
        value[b] = rise - log_gamma(y[b] + 1.0) + y[b] * at - (y[b] + r) * growth
        d1[0, b] = (y[b] - mean) * q
        d1[1, b] = r * growth - turn + d1[0, b]
        if order > 1:
            share = scaled * q
            d2[0, b] = -mean * q * (1.0 + phi * y[b]) * q
            d2[1, b] = -share * d1[0, b]
            bend = r * r * (sharper - curve) - y[b] / (1.0 + phi * y[b])
            d2[2, b] = turn - r * growth + bend + mean * q - share * d1[0, b]


@device
def zero(eta, b):
    """Log-probability of 0, ``-log(1 + phi mu) / phi``, and its derivatives in (eta, t)."""
    mean = exp(eta[0, b] if eta[0, b] < _STEEPEST else _STEEPEST)
    scaled = exp(eta[1, 0]) * mean
    q = 1.0 / (1.0 + scaled)
    level, share = exp(-eta[1, 0]) * log1p_positive(scaled), mean * q
    turn, shared = level - share, scaled * q * share
    return -level, -share, turn, -share * q, shared, share - level + shared


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 2, n)."""
    mean = np.exp(eta[..., 0, :])
    return mean, np.sqrt(mean + np.exp(eta[..., 1, :]) * mean**2)


def law(eta: FloatArray) -> Law:
    """The distribution at predictors (..., 2, n)."""
    mean = np.maximum(np.exp(eta[..., 0, :]), LEAST_PROBABILITY)
    # Where float64 cannot tell 1 + phi mean from 1, another phi moves shares by 1e-10 of them.
    phi = np.maximum(np.exp(eta[..., 1, :]), 1e-10 / mean)
    return negative_binomial(1.0 / phi, np.maximum(1.0 / (1.0 + phi * mean), LEAST_PROBABILITY))


def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Counts with the predictors `eta`, shape (2, n): Poisson with gamma means."""
    phi = np.exp(eta[1])
    return draw_counts(rng.gamma(1.0 / phi, phi * np.exp(eta[0])), rng)


def reference(predictors, blocks, y):
    """Log-probabilities (k, n) of counts y, from predictors (k, n) and dispersions (k,)."""
    phi = blocks["phi"][:, None]
    r = 1.0 / phi
    grown = np.log1p(phi * np.exp(predictors))
    return _rising(y, r) - reference_log_gamma(y + 1.0) + y * predictors - (y + r) * grown


def _rising(y, r):
    """``log Gamma(y + r) - log Gamma(r) - y log r``; of a large r by Stirling's series.

    The difference of the two functions would lose the digits of a dispersion near 0.  Source of the
    series: Abramowitz and Stegun (1964), 6.1.41; the term after these is below 1e-17 of 1.
    """
    near = reference_log_gamma(y + r) - reference_log_gamma(r) - y * np.log(r)
    far = (y + r - 0.5) * np.log1p(y / r) - y + (1.0 / (y + r) - 1.0 / r) / 12.0
    far = far - ((y + r) ** -3.0 - r**-3.0) / 360.0
    return np.where(np.real(r) > 1e3, far, near)


LIKELIHOOD = likelihood_of_counts(
    name="negative-binomial",
    channels=(Channel("phi", log=True),),
    block=block,
    reference=reference,
    typical=varied(phi=(0.2, 1.0)),
    draw=draw,
    spread=spread,
    law=law,
    bounds={"phi": (1e-6, 1e6)},
    limits={"phi": ("poisson", "")},
    source="Cameron and Trivedi (2013), Sec. 3.3",
)
