"""Likelihoods and derivatives in plain NumPy, by complex steps of `moestat.model.plain`."""

from __future__ import annotations

import numpy as np

from moestat.model.plain import (  # noqa: F401
    blocks_of,
    expert_log_densities,
    gate_scores,
    log_density,
    predictors,
    regression,
    weights,
)
from moestat.model.reference import log_sum_exp  # noqa: F401


def jacobian(family, theta, X):
    """``df / dtheta`` (n, P) by complex step."""
    step = 1e-30
    out = np.empty((len(X), theta.size))
    for j in range(theta.size):
        moved = theta.astype(complex)
        moved[j] += 1j * step
        out[:, j] = regression(family, moved, X).imag / step
    return out


def log_likelihood(family, theta, X, y, weight):
    """Weighted log-likelihood of a possibly complex packed vector."""
    return weight @ log_density(family, blocks_of(family, theta), X, y)


def score(family, theta, X, y, weight):
    """Score (P,) by complex step."""
    step = 1e-30
    out = np.empty(theta.size)
    for j in range(theta.size):
        moved = theta.astype(complex)
        moved[j] += 1j * step
        out[j] = log_likelihood(family, moved, X, y, weight).imag / step
    return out
