"""Weibull and exponential experts: ``log y = eta + sigma log E`` with E standard exponential.

Sigma, one over the shape, is a parameter of each expert, its logarithm the coefficient that
solvers see; exponential responses have ``sigma = 1``.

Source: Kalbfleisch and Prentice (2002), Sec. 2.2 (the parameters of R's survreg).
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, Law
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log
from moestat.model.censoring import censored as censored_likelihood
from moestat.model.members import Channel, Likelihood
from moestat.model.responses import positive_likelihood, varied

_STEEPEST = 300.0
"""Exponents beyond this count as this: such responses are out of reach, products stay finite."""


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-density at y; predictors are (eta, t) with ``t = log sigma``, the same for all samples.

    With ``z = (log y - eta) / sigma`` and ``e = exp(z)`` it is ``z - e - t - log y``;
    ``d_eta = (e - 1) / sigma``, ``d_t = z e - z - 1``, ``d_eta_eta = -e / sigma^2``,
    ``d_eta_t = -(z e + e - 1) / sigma`` and ``d_t_t = z - z e - z^2 e``.
    """
    inverse = exp(-eta[1, 0])
    for b in range(m):
        level = log(y[b])
        z = inverse * (level - eta[0, b])
        z = z if z < _STEEPEST else _STEEPEST
        e = exp(z)
        value[b] = z - e - eta[1, 0] - level
        d1[0, b] = inverse * (e - 1.0)
        d1[1, b] = z * (e - 1.0) - 1.0
        if order > 1:
            d2[0, b] = -inverse * inverse * e
            d2[1, b] = -inverse * (z * e + e - 1.0)
            d2[2, b] = z - z * e - z * z * e


@device
def exponential_block(eta, y, m, order, value, d1, d2):
    """Log-density ``-eta - u`` with ``u = y exp(-eta)``; ``d1 = u - 1`` and ``d2 = -u``."""
    for b in range(m):
        z = -eta[0, b] if eta[0, b] > -_STEEPEST else _STEEPEST
        u = y[b] * exp(z)
        value[b] = z - u
        d1[0, b] = u - 1.0
        if order > 1:
            d2[0, b] = -u


def law(eta: FloatArray) -> Law:
    """The distribution at predictors (..., 2, n)."""
    from scipy.stats import weibull_min

    return weibull_min(np.exp(-eta[..., 1, :]), scale=np.exp(eta[..., 0, :]))


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 2, n)."""
    from scipy.special import loggamma

    sigma = np.exp(eta[..., 1, :])
    mean = np.exp(eta[..., 0, :] + loggamma(1.0 + sigma))
    share = loggamma(1.0 + 2.0 * sigma) - 2.0 * loggamma(1.0 + sigma)
    return mean, mean * np.sqrt(np.expm1(share))


def exponential_law(eta: FloatArray) -> Law:
    """The exponential distribution at predictors (..., 1, n)."""
    from scipy.stats import expon

    return expon(scale=np.exp(eta[..., 0, :]))


def exponential_spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation, which are equal, from predictors (..., 1, n)."""
    mean = np.exp(eta[..., 0, :])
    return mean, mean


def reference(predictors, blocks, y):
    """Log-densities (k, n) of each expert, from log-scales (k, n) and sigma (k,)."""
    sigma = blocks["sigma"][:, None]
    z = (np.log(y) - predictors) / sigma
    return z - np.exp(z) - np.log(sigma) - np.log(y)


def exponential_reference(predictors, blocks, y):
    """Log-densities (k, n) of each expert, from log-means (k, n)."""
    return -predictors - y * np.exp(-predictors)


def make(censored: bool = False) -> Likelihood:
    """The likelihood, of responses of which some are `censored` or of known ones."""
    return censored_likelihood(LIKELIHOOD, "extreme", 1.0) if censored else LIKELIHOOD


LIKELIHOOD = positive_likelihood(
    name="weibull",
    channels=(Channel("sigma", log=True),),
    block=block,
    reference=reference,
    typical=varied(sigma=(0.3, 0.8)),
    spread=spread,
    law=law,
    bounds={"sigma": (1e-3, 1e3)},
    source="Kalbfleisch and Prentice (2002), Sec. 2.2",
    collapse="sigma",
    configure=make,
)


def make_exponential(censored: bool = False) -> Likelihood:
    """The likelihood, of responses of which some are `censored` or of known ones."""
    return censored_likelihood(EXPONENTIAL, "extreme", 0.0) if censored else EXPONENTIAL


EXPONENTIAL = positive_likelihood(
    name="exponential",
    block=exponential_block,
    reference=exponential_reference,
    spread=exponential_spread,
    law=exponential_law,
    source="Kalbfleisch and Prentice (2002), Sec. 2.2",
    configure=make_exponential,
)
