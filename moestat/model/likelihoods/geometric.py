"""Geometric experts: counts y of failures before a success, with mean ``mu = exp(eta)``.

They are negative binomial counts of dispersion 1.

Source: Cameron and Trivedi (2013), Sec. 3.3.
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, Law
from moestat.compiler.jit import device
from moestat.compiler.math import logistic
from moestat.model.large_counts import MOST_COUNTS, draw_counts, negative_binomial
from moestat.model.reference import log1p_exp
from moestat.model.responses import LEAST_PROBABILITY, draws, likelihood_of_counts


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-probability ``y eta - (y + 1) log(1 + mu)``.

    With ``q = 1 / (1 + mu)``, ``d1 = (y + 1) q - 1`` and ``d2 = -(y + 1) q (1 - q)``.
    """
    for b in range(m):
        level, q = logistic(eta[0, b])
        value[b] = (y[b] + 1.0) * level - eta[0, b]
        d1[0, b] = (y[b] + 1.0) * q - 1.0
        if order > 1:
            d2[0, b] = -(y[b] + 1.0) * q * (1.0 - q)


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 1, n)."""
    mean = np.exp(eta[..., 0, :])
    return mean, np.sqrt(mean + mean**2)


def law(eta: FloatArray) -> Law:
    """The distribution at predictors (..., 1, n)."""
    from scipy.special import expit

    return negative_binomial(1.0, np.maximum(expit(-eta[..., 0, :]), LEAST_PROBABILITY))


def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Counts with the predictors `eta`, shape (1, n)."""
    mean = np.exp(eta[0])
    if (mean <= MOST_COUNTS).all():
        return draws(law)(eta, rng)
    return draw_counts(rng.gamma(1.0, mean), rng)


def reference(predictors, blocks, y):
    """Log-probabilities (k, n) of counts y, from predictors (k, n)."""
    return y * predictors - (y + 1) * log1p_exp(predictors)


LIKELIHOOD = likelihood_of_counts(
    name="geometric",
    block=block,
    draw=draw,
    reference=reference,
    spread=spread,
    law=law,
    source="Cameron and Trivedi (2013), Sec. 3.3",
)
