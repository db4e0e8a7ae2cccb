"""Poisson experts: counts with mean ``mu = exp(eta)``.

Source: McCullagh and Nelder (1989), Ch. 6; mixtures of Poisson regressions: Gruen and Leisch
(2008), Sec. 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.base.types import FloatArray, Likelihood
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log_gamma
from moestat.model.censored_counts import censored_poisson
from moestat.model.responses import likelihood_of_counts

_STEEPEST = 300.0
"""Predictors beyond this count as this: their means are out of reach, and products stay finite."""


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-probability ``y eta - mu - log y!`` with ``d1 = y - mu`` and ``d2 = -mu``."""
    for b in range(m):
        at = eta[0, b] if eta[0, b] < _STEEPEST else _STEEPEST
        mean = exp(at)
        value[b] = y[b] * at - mean - log_gamma(y[b] + 1.0)
        d1[0, b] = y[b] - mean
    if order > 1:
        for b in range(m):
            d2[0, b] = d1[0, b] - y[b]


@device
def zero(eta, b):
    """Log-probability of 0 of a Poisson count, -mu, and its derivatives in (eta, t)."""
    mean = exp(eta[0, b] if eta[0, b] < _STEEPEST else _STEEPEST)
    return -mean, -mean, 0.0, -mean, 0.0, 0.0


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 1, n)."""
    return np.exp(eta[..., 0, :]), np.exp(0.5 * eta[..., 0, :])


def law(eta: FloatArray) -> Any:
    """The distribution at predictors (..., 1, n)."""
    from scipy.stats import poisson

    return poisson(np.exp(eta[..., 0, :]))


def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Counts with the predictors `eta`, shape (1, n)."""
    return rng.poisson(np.exp(eta[0])).astype(np.float64)


def reference(predictors, blocks, y):
    """Log-probabilities (k, n) of counts y, from predictors (k, n)."""
    from scipy.special import gammaln

    return y * predictors - np.exp(predictors) - gammaln(y + 1.0)


def make(censored: bool = False) -> Likelihood:
    """The likelihood, of counts of which some are `censored` or of known ones."""
    return censored_poisson(LIKELIHOOD) if censored else LIKELIHOOD


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
