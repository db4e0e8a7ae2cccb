"""Log-normal experts: positive responses whose logarithm is normal with mean eta, variance nu.

Source: Johnson, Kotz and Balakrishnan (1994), Ch. 14; as an accelerated failure time model:
Kalbfleisch and Prentice (2002), Sec. 2.2.
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, Law
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log
from moestat.model.censoring import censored as censored_likelihood
from moestat.model.members import Channel, Likelihood
from moestat.model.reference import HALF_LOG_2PI
from moestat.model.responses import positive_likelihood, variances


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-density at y; predictors are (eta, t) with ``t = log nu``: normal at log y."""
    precision = exp(-eta[1, 0])
    top = -HALF_LOG_2PI - 0.5 * eta[1, 0]
    for b in range(m):
        level = log(y[b])
        r = level - eta[0, b]
        slope = precision * r
        square = 0.5 * slope * r
        value[b] = top - square - level
        d1[0, b] = slope
        d1[1, b] = square - 0.5
    if order > 1:
        for b in range(m):
            d2[0, b] = -precision
            d2[1, b] = -d1[0, b]
            d2[2, b] = -0.5 - d1[1, b]


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 2, n)."""
    nu = np.exp(eta[..., 1, :])
    mean = np.exp(eta[..., 0, :] + 0.5 * nu)
    return mean, mean * np.sqrt(np.expm1(nu))


def law(eta: FloatArray) -> Law:
    """The distribution at predictors (..., 2, n)."""
    from scipy.stats import lognorm

    return lognorm(np.exp(0.5 * eta[..., 1, :]), scale=np.exp(eta[..., 0, :]))


def reference(predictors, blocks, y):
    """Log-densities (k, n) of each expert, from means of log y (k, n) and variances (k,)."""
    nu, level = blocks["nu"][:, None], np.log(y)
    return -0.5 * np.log(2 * np.pi * nu) - (level - predictors) ** 2 / (2 * nu) - level


def make(censored: bool = False) -> Likelihood:
    """The likelihood, of responses of which some are `censored` or of known ones."""
    return censored_likelihood(LIKELIHOOD, "normal", 2.0) if censored else LIKELIHOOD


LIKELIHOOD = positive_likelihood(
    name="log-normal",
    channels=(Channel("nu", log=True),),
    block=block,
    reference=reference,
    typical=variances,
    spread=spread,
    law=law,
    bounds={"nu": (1e-6, 1e6)},
    source="Johnson, Kotz and Balakrishnan (1994), Ch. 14",
    collapse="nu",
    configure=make,
)
