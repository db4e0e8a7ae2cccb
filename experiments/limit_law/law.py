"""The limit: which score decides, and how far the atoms then are from the truth.

Coordinates of two atoms with masses w and 1 - w on N(0, 1): their means are (1 - w) d and -w d
about a common one, their half variances differ by beta, and

    c_3 = q d beta',  c_4 = -q (1 - q) d^4 / 36 + q (1 - 2 w) d^2 beta' / 3 + q beta'^2 / 2,

with q = w (1 - w) and beta' = beta + (1 - 2 w) d^2 / 6, once c_1 = c_2 = 0.  The log-likelihood
ratio is the sum of sqrt(n) c_l s_l Z_l - n c_l^2 s_l^2 / 2, with s_l^2 = l! the variance of the
Hermite polynomial of degree l, so that its maximum has sqrt(n) c_l = Z_l / s_l.
"""

from __future__ import annotations

import math

import numpy as np

from moestat.base.types import FloatArray

__all__ = ["FLOOR", "SCALES", "errors_in_the_limit", "quantiles_in_the_limit"]

FLOOR = 0.1
"""Least mass of an atom."""
SCALES = tuple(math.sqrt(math.factorial(order)) for order in range(7))
"""Standard deviations of the Hermite polynomials of degree 0 to 6."""


def errors_in_the_limit(n: float, scores: FloatArray, floor: float = FLOOR) -> FloatArray:
    """The larger error of a mean, for sample size `n` and given scores.

    Masses are at the floor, as the next order of the likelihood has it.

    Parameters
    ----------
    n : float
        Sample size.
    scores : ndarray of shape (N, 2)
        The third and fourth score, standard normal.
    floor : float
        Least mass.

    Returns
    -------
    ndarray of shape (N,)
        Errors: of order n^(-1/8) where the fourth score is negative, else n^(-1/4).
    """
    third, fourth = scores.T
    q = floor * (1.0 - floor)
    size = np.abs(fourth) / SCALES[4]
    apart = (36.0 * size / (q * (1.0 - q))) ** 0.25 * n**-0.125
    spread = np.sqrt(2.0 * size / q)
    near = np.abs(third) / (SCALES[3] * q * spread) * n**-0.25
    return (1.0 - floor) * np.where(fourth < 0.0, apart, np.minimum(near, apart))


def quantiles_in_the_limit(
    n: FloatArray, levels: FloatArray, draws: int = 200_000, seed: int = 0
) -> FloatArray:
    """Quantiles of `errors_in_the_limit` at sizes `n`, of shape (sizes, levels)."""
    scores = np.random.default_rng(seed).standard_normal((draws, 2))
    return np.array([np.quantile(errors_in_the_limit(size, scores), levels) for size in n])
