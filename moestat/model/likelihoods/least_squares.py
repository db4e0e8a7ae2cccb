"""Least squares: the regression function ``f(x) = sum_i w_i(x) g_i(x)``, errors of one variance.

``Y = f(X) + eps`` with errors of mean 0 and variance nu, which is no parameter of the family: its
estimate is the mean square of the residuals, and the truth's is given to `moestat.sample`.  The
log-likelihood of a fit is the Gaussian one at that estimate, ``-n/2 (log(2 pi nu) + 1)``.

Source: Yan et al. (2025), Sec. 3, eqs. (4) and (6).
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.members import Likelihood
from moestat.model.responses import real


def spread(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of each expert, from predictors (..., 1, n), and no standard deviation of its own."""
    return eta[..., 0, :], np.full_like(eta[..., 0, :], np.nan)


def draw(eta: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Responses with regression function ``eta[0]`` (n,) and variance ``eta[1]`` (n,)."""
    return eta[0] + np.sqrt(eta[1]) * rng.standard_normal(eta.shape[1])


LIKELIHOOD = Likelihood(
    name="least-squares",
    block=None,
    encode=real,
    draw=draw,
    spread=spread,
    source="Yan et al. (2025), eqs. (4) and (6)",
)
