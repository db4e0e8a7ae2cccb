"""Beta experts: responses in (0, 1) with mean ``mu = 1 / (1 + e^-eta)``.

Their variance is ``mu (1 - mu) / (1 + 1 / phi)``; the dispersion phi, one over the precision, is a
parameter of each expert, its logarithm the coefficient that solvers see.

Source: Ferrari and Cribari-Neto (2004), Sec. 2; mixtures of beta regressions: Gruen, Kosmidis and
Zeileis (2012), Sec. 2.4.
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, Law
from moestat.compiler.jit import device
from moestat.compiler.math import exp, gamma_excess, log, logistic
from moestat.model.members import Channel, Likelihood, Units
from moestat.model.reference import HALF_LOG_2PI, log1p_exp, log_gamma
from moestat.model.responses import between, draws, varied

_STEEPEST = 100.0
"""Predictors beyond this size count as this: their means are out of reach, products finite."""


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-density at y; predictors are (eta, t) with ``t = log phi``, the same for all samples.

    With ``p = 1 / phi``, ``a = mu p``, ``b = (1 - mu) p``, the Kullback-Leibler divergence K of a
    Bernoulli variable of mean y from one of mean mu, and E, s and c by what log Gamma and its
    derivatives exceed their leading terms, it is ``(log(p mu (1 - mu) / (2 pi))) / 2 - p K +
    E(p) - E(a) - E(b) - log(y (1 - y))``.  With ``v = mu (1 - mu)`` and the residual
    ``r = logit y - eta - s(a) + s(b)``, ``d_eta = p v r``,
    ``d_t = p (K - s(p) + mu s(a) + (1 - mu) s(b))``,
    ``d_eta_eta = -p v - (p v)^2 (c(a) + c(b)) + (1 - 2 mu) d_eta`` and
    ``d_eta_t = -p v (r - p (mu c(a) - (1 - mu) c(b)))``.
    """
    p = exp(-eta[1, 0])
    excess, slope, curve = gamma_excess(p)
    top = -0.5 * eta[1, 0] - HALF_LOG_2PI + excess
    for i in range(m):
        at = eta[0, i] if eta[0, i] < _STEEPEST else _STEEPEST
        at = at if at > -_STEEPEST else -_STEEPEST
        level, less = logistic(at)
        below, mean = logistic(-at)
        one, other = log(y[i]), log(1.0 - y[i])
        more_a, slope_a, curve_a = gamma_excess(mean * p)
        more_b, slope_b, curve_b = gamma_excess(less * p)
        apart_by = mean * (level - one) + less * (below - other)
        r = (one - other) - at - slope_a + slope_b
        v = p * mean * less
        value[i] = top + 0.5 * (level + below) - p * apart_by - more_a - more_b - one - other
        d1[0, i] = v * r
        d1[1, i] = p * (apart_by - slope + mean * slope_a + less * slope_b)
        if order > 1:
            d2[0, i] = -v - v * v * (curve_a + curve_b) + (less - mean) * d1[0, i]
            d2[1, i] = -v * (r - p * (mean * curve_a - less * curve_b))
            bend = curve - mean * mean * curve_a - less * less * curve_b
            d2[2, i] = p * p * bend - d1[1, i]


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 2, n)."""
    mean, phi = 1.0 / (1.0 + np.exp(-eta[..., 0, :])), np.exp(eta[..., 1, :])
    return mean, np.sqrt(mean * (1.0 - mean) * phi / (1.0 + phi))


def law(eta: FloatArray) -> Law:
    """The distribution at predictors (..., 2, n)."""
    from scipy.special import expit
    from scipy.stats import beta

    p = np.exp(-eta[..., 1, :])
    return beta(expit(eta[..., 0, :]) * p, expit(-eta[..., 0, :]) * p)


def reference(predictors, blocks, y):
    """Log-densities (k, n) of each expert, from logits of means (k, n), dispersions (k,)."""
    p = 1 / blocks["phi"][:, None]
    a, b = p * np.exp(-log1p_exp(-predictors)), p * np.exp(-log1p_exp(predictors))
    constant = log_gamma(p) - log_gamma(a) - log_gamma(b)
    return constant + (a - 1) * np.log(y) + (b - 1) * np.log(1 - y)


LIKELIHOOD = Likelihood(
    name="beta",
    channels=(Channel("phi", log=True),),
    block=block,
    reference=reference,
    typical=varied(phi=(0.01, 0.1)),
    encode=between(0.0, 1.0, "numbers between 0 and 1, both left out"),
    draw=draws(law),
    spread=spread,
    link=lambda mean: np.log(mean) - np.log1p(-mean),
    law=law,
    ends=(0.0, 1.0),
    bounds={"phi": (1e-6, 1e6)},
    source="Ferrari and Cribari-Neto (2004), Sec. 2",
    units=Units(shift_response=False, scale_response=False),
    collapse="phi",
)
