"""Gaussian experts: ``f(y | mu, nu)`` with mean mu and variance nu.

The variance is a parameter of each expert; its logarithm is the coefficient that solvers see.

Source: Nguyen et al. (2025), Sec. 3, eq. (3).
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray
from moestat.compiler.jit import device
from moestat.compiler.math import exp
from moestat.model.censoring import censored as censored_likelihood
from moestat.model.members import Channel, Likelihood, Units
from moestat.model.random_effects import with_random_effects
from moestat.model.reference import HALF_LOG_2PI
from moestat.model.responses import real, variances


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-density at y; predictors are (mu, t) with ``t = log nu``, the same for all samples.

    With ``r = y - mu``: ``d_mu = r / nu``, ``d_t = (r^2 / nu - 1) / 2``, ``d_mu_mu = -1 / nu``,
    ``d_mu_t = -r / nu``, ``d_t_t = -r^2 / (2 nu)``.
    """
    precision = exp(-eta[1, 0])
    top = -HALF_LOG_2PI - 0.5 * eta[1, 0]
    for b in range(m):
        r = y[b] - eta[0, b]
        slope = precision * r
        square = 0.5 * slope * r
        value[b] = top - square
        d1[0, b] = slope
        d1[1, b] = square - 0.5
    if order > 1:
        for b in range(m):
            d2[0, b] = -precision
            d2[1, b] = -d1[0, b]
            d2[2, b] = -0.5 - d1[1, b]


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 2, n)."""
    return eta[..., 0, :], np.exp(0.5 * eta[..., 1, :])


def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Responses with the predictors `eta`, shape (2, n)."""
    mean, deviation = spread(eta)
    return mean + deviation * rng.standard_normal(eta.shape[1])


def reference(predictors, blocks, y):
    """Log-densities (k, n) of each expert, from means (k, n) and variances (k,)."""
    nu = blocks["nu"][:, None]
    return -0.5 * np.log(2 * np.pi * nu) - (y - predictors) ** 2 / (2 * nu)


def make(
    censored: bool = False,
    random: object = None,
    covariance: str = "free",
    within: object = None,
) -> Likelihood:
    """The likelihood, of responses of which some are `censored` or of known ones.

    `random` are effects of groups of rows, "1" and inputs, with a `covariance` of a kind, or an
    intercept also of the parts of groups that an input `within` has.
    """
    if random is not None:
        if censored:
            raise ValueError("gaussian: random effects are not available for censored responses")
        return with_random_effects(LIKELIHOOD, random, covariance, within)
    return censored_likelihood(LIKELIHOOD, "normal", 2.0) if censored else LIKELIHOOD


LIKELIHOOD = Likelihood(
    name="gaussian",
    channels=(Channel("nu", log=True, response=True),),
    block=block,
    reference=reference,
    typical=variances,
    encode=real,
    draw=draw,
    spread=spread,
    bounds={"nu": (1e-6, 1e6)},
    source="Nguyen et al. (2025), eq. (3)",
    units=Units(powers={"nu": 2.0}),
    collapse="nu",
    configure=make,
)
