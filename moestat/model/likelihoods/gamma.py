"""Gamma experts: positive responses with mean ``mu = exp(eta)`` and variance ``phi mu^2``.

The dispersion phi, one over the shape, is a parameter of each expert; its logarithm is the
coefficient that solvers see.

Source: McCullagh and Nelder (1989), Ch. 8; mixtures of gamma regressions: Gruen and Leisch (2008),
Sec. 2.
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, Law
from moestat.compiler.jit import device
from moestat.compiler.math import exp, gamma_excess, log
from moestat.model.members import Channel
from moestat.model.reference import HALF_LOG_2PI, log_gamma
from moestat.model.responses import positive_likelihood, varied

_STEEPEST = 300.0
"""Predictors beyond this size count as this: their means are out of reach, products finite."""


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-density at y; predictors are (eta, t) with ``t = log phi``, the same for all samples.

    With ``nu = 1 / phi``, ``u = y / mu`` and the deviance part ``v = u - 1 - log u`` it is
    ``c(nu) - nu v - log y``; ``d_eta = nu (u - 1)``, ``d_t = nu v - nu c'(nu)``,
    ``d_eta_eta = -nu u``, ``d_eta_t = -d_eta``, ``d_t_t = -nu v + nu c' + nu^2 c''``.
    """
    nu = exp(-eta[1, 0])
    excess, slope, curve = gamma_excess(nu)
    # c = nu log nu - nu - log Gamma(nu), of which nu log nu - nu cancels.
    top = -0.5 * eta[1, 0] - HALF_LOG_2PI - excess
    first = -nu * slope
    second = -nu * nu * curve
    for b in range(m):
        at = eta[0, b] if eta[0, b] < _STEEPEST else _STEEPEST
        at = at if at > -_STEEPEST else -_STEEPEST
        ratio = y[b] * exp(-at)
        level = log(y[b])
        part = nu * (ratio - 1.0 - (level - at))
        value[b] = top - part - level
        d1[0, b] = nu * (ratio - 1.0)
        d1[1, b] = part - first
    if order > 1:
        for b in range(m):
            d2[0, b] = -nu - d1[0, b]
            d2[1, b] = -d1[0, b]
            d2[2, b] = second - d1[1, b]


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 2, n)."""
    mean = np.exp(eta[..., 0, :])
    return mean, mean * np.exp(0.5 * eta[..., 1, :])


def law(eta: FloatArray) -> Law:
    """The distribution at predictors (..., 2, n)."""
    from scipy.stats import gamma

    phi = np.exp(eta[..., 1, :])
    return gamma(1.0 / phi, scale=phi * np.exp(eta[..., 0, :]))


def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Responses with the predictors `eta`, shape (2, n)."""
    phi = np.exp(eta[1])
    return np.maximum(rng.gamma(1.0 / phi, phi * np.exp(eta[0])), np.finfo(float).tiny)


def reference(predictors, blocks, y):
    """Log-densities (k, n) of each expert, from predictors (k, n) and dispersions (k,)."""
    nu = 1.0 / blocks["phi"][:, None]
    scaled = np.log(nu * y) - predictors
    return nu * scaled - nu * y * np.exp(-predictors) - log_gamma(nu) - np.log(y)


LIKELIHOOD = positive_likelihood(
    name="gamma",
    channels=(Channel("phi", log=True),),
    block=block,
    reference=reference,
    typical=varied(phi=(0.1, 0.4)),
    draw=draw,
    spread=spread,
    law=law,
    bounds={"phi": (1e-6, 1e6)},
    source="McCullagh and Nelder (1989), Ch. 8",
    collapse="phi",
)
