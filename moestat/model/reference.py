"""What the references of gates, experts and likelihoods share: plain NumPy, complex arguments.

A member of an axis has two descriptions: the compiled block that fits use and a short reference
that is read beside the equation.  Tests compare them.  References take complex parameters, because
the imaginary part of f(theta + i h) / h is the derivative of f to full precision.
"""

from __future__ import annotations

import math

import numpy as np

from moestat.base.types import FloatArray

__all__ = ["HALF_LOG_2PI", "apart", "log1p_exp", "log_gamma", "log_sigmoid", "log_sum_exp"]

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def log_sum_exp(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """``log(sum(exp(values)))`` along an axis."""
    largest = np.real(values).max(axis=axis, keepdims=True)
    return np.squeeze(largest, axis) + np.log(np.exp(values - largest).sum(axis=axis))


def log1p_exp(s: np.ndarray) -> np.ndarray:
    """``log(1 + exp(s))`` where exp(s) may overflow."""
    positive = np.real(s) > 0
    raised = np.where(positive, -s, s)
    return np.where(positive, s, 0) + np.log(1 + np.exp(raised))


def log_sigmoid(s: np.ndarray) -> np.ndarray:
    """``log(1 / (1 + exp(-s)))``."""
    return -log1p_exp(-s)


def log_gamma(x: np.ndarray) -> np.ndarray:
    """``log Gamma(x)``, real part of x positive."""
    from scipy.special import loggamma

    return loggamma(x)


def apart(
    rng: np.random.Generator, n_experts: int, shape: tuple[int, ...], low: float, high: float
) -> FloatArray:
    """Values (k, *shape) in [low, high] that differ between atoms in every coordinate.

    The interval is cut into k equal parts; each atom has a value of the middle half of one of them,
    in a random order of its own for every coordinate.
    """
    parts = np.broadcast_to(np.arange(n_experts), (*shape, n_experts))
    place = rng.permuted(parts, axis=-1) + rng.uniform(0.25, 0.75, size=parts.shape)
    return np.moveaxis(low + (high - low) * place / n_experts, -1, 0)
