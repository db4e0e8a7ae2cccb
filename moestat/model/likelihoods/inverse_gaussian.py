"""Inverse Gaussian experts: positive responses with mean ``mu = exp(eta)``, variance ``phi mu^3``.

The dispersion phi is a parameter of each expert; its logarithm is the coefficient that solvers
see.

Source: McCullagh and Nelder (1989), Sec. 2.2 (Table 2.1).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from moestat.base.types import FloatArray, Law
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log
from moestat.model.members import Channel, Units
from moestat.model.reference import HALF_LOG_2PI
from moestat.model.responses import LEAST_PROBABILITY, positive_likelihood, varied

_STEEPEST = 100.0
"""Predictors below -100 count as this: their means are out of reach, and products stay finite."""


_NARROW = 1e-7
"""Squared coefficient of variation below which the next term is 1e-7 of a standard deviation."""


@device
def block(eta, y, m, order, value, d1, d2):
    """Log-density at y; predictors are (eta, t) with ``t = log phi``, the same for all samples.

    With ``u = 1 / mu`` and ``D = (y u - 1)^2 / (phi y)`` it is
    ``-(log(2 pi) + t + 3 log y + D) / 2``; ``d_eta = u (y u - 1) / phi``,
    ``d_t = (D - 1) / 2``, ``d_eta_eta = -u (2 y u - 1) / phi``, ``d_eta_t = -d_eta`` and
    ``d_t_t = -D / 2``.
    """
    precision = exp(-eta[1, 0])
    top = -HALF_LOG_2PI - 0.5 * eta[1, 0]
    for b in range(m):
        u = exp(-eta[0, b] if eta[0, b] > -_STEEPEST else _STEEPEST)
        r = y[b] * u - 1.0
        half = 0.5 * precision * r * r / y[b]
        value[b] = top - 1.5 * log(y[b]) - half
        d1[0, b] = precision * u * r
        d1[1, b] = half - 0.5
        if order > 1:
            d2[0, b] = -precision * u * (2.0 * r + 1.0)
            d2[1, b] = -d1[0, b]
            d2[2, b] = -half


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the response, from predictors (..., 2, n)."""
    mean = np.exp(eta[..., 0, :])
    return mean, mean**1.5 * np.exp(0.5 * eta[..., 1, :])


def law(eta: FloatArray) -> Law:
    """The distribution at predictors (..., 2, n)."""
    mean, phi = np.exp(eta[..., 0, :]), np.exp(eta[..., 1, :])
    return _distribution()(np.maximum(mean * phi, LEAST_PROBABILITY), scale=1.0 / phi)


@cache
def _distribution() -> Any:
    """The distribution of scipy, with quantiles where it is narrow.

    There the search of scipy stops at an absolute error, which is several standard deviations
    below a squared coefficient of variation of 1e-10.
    """
    from scipy.special import ndtri
    from scipy.stats import invgauss

    class InverseGaussian(type(invgauss)):
        def _ppf(self, x: FloatArray, mu: FloatArray) -> FloatArray:
            """Quantiles, of a narrow one from its cumulants.

            Abramowitz and Stegun (1964), 26.2.49.
            """
            narrow, z, variation = mu < _NARROW, ndtri(x), np.sqrt(mu)
            far = mu * (1.0 + variation * (z + 0.5 * variation * (z * z - 1.0)))
            return np.where(narrow, far, super()._ppf(x, np.where(narrow, 1.0, mu)))

    return InverseGaussian(a=0.0, name="invgauss")


def reference(predictors, blocks, y):
    """Log-densities (k, n) of each expert, from log-means (k, n) and dispersions (k,)."""
    phi, mean = blocks["phi"][:, None], np.exp(predictors)
    return -0.5 * (np.log(2 * np.pi * phi * y**3) + (y - mean) ** 2 / (phi * mean**2 * y))


LIKELIHOOD = positive_likelihood(
    name="inverse-gaussian",
    channels=(Channel("phi", log=True),),
    block=block,
    reference=reference,
    typical=varied(phi=(0.1, 0.4)),
    spread=spread,
    law=law,
    bounds={"phi": (1e-6, 1e6)},
    source="McCullagh and Nelder (1989), Sec. 2.2",
    units=Units(shift_response=False, scale_response=False, powers={"phi": -1.0}),
    collapse="phi",
)
