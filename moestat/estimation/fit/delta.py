"""Predictions with their derivatives, row by row, for the delta method."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtri

from moestat.base.types import FloatArray
from moestat.base.validate import real_in
from moestat.model.family import Family
from moestat.model.plain import blocks_of, predictors, weights
from moestat.solvers.rules import DIFFERENCE_STEP

__all__ = [
    "COMPLEX_STEP",
    "Quantity",
    "features",
    "gate_weights",
    "gradients",
    "means_of_experts",
    "normal_reach",
    "of_experts",
    "predictions",
]

_ROWS = 4096
"""Number of rows whose derivatives are in memory at a time."""

COMPLEX_STEP = 1e-100
"""Size of a complex step.  A derivative by a complex step takes no difference, so it has no
rounding error (Squire and Trapp 1998).  The square of the step, 1e-200, is below the
rounding of other numbers and within the range of float64."""


def of_experts(family: Family, theta: FloatArray, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights (k, n) of the experts, and their means (k, 1, n) or class probabilities (k, K, n).

    They are computed in plain NumPy, by the references of gate, expert and likelihood.  Imaginary
    parts of theta are carried along, through the mean of a likelihood by a central difference.
    """
    likelihood, blocks = family.likelihood, blocks_of(family, theta)
    eta, weight = predictors(family, blocks, X), weights(family, blocks, X)
    if likelihood.support is not None:
        assert likelihood.reference is not None
        labels = range(1, family.n_classes + 1)
        logs_of = [likelihood.reference(eta, blocks, np.full(len(X), s)) for s in labels]
        return weight, np.exp(np.stack(logs_of, axis=1))
    assert likelihood.spread is not None
    channels = family.index[:, family.layout[1] + family.layout[2] :]
    extra = np.broadcast_to(theta[channels, None], (*channels.shape, len(X)))
    eta = np.concatenate([eta[:, None], extra], axis=1)
    mean = likelihood.spread(eta.real)[0]
    if np.iscomplexobj(eta):
        side = DIFFERENCE_STEP * (
            1.0 + np.abs(np.where(eta.imag != 0.0, eta.real, 0.0)).max(axis=1)
        )
        step = side[:, None] * eta.imag / COMPLEX_STEP
        sides = (likelihood.spread(eta.real + sign * step)[0] for sign in (1.0, -1.0))
        mean = mean + 1j * COMPLEX_STEP * (next(sides) - next(sides)) / (2.0 * side)
    return weight, mean[:, None]


def predictions(family: Family, theta: FloatArray, X: FloatArray) -> FloatArray:
    """Conditional means (1, n), or probabilities (K, n), by plain NumPy; theta may be complex."""
    weight, value = of_experts(family, theta, X)
    return np.einsum("in,icn->cn", weight, value)


def normal_reach(alpha: float) -> float:
    """Standard errors from an estimate to the ends of a normal interval of level ``1 - alpha``."""
    return float(-ndtri(real_in("alpha", alpha, 0.0, 1.0, open_low=True) / 2.0))


def features(X: FloatArray) -> FloatArray:
    """Factors of coefficients of channels, ``(1, x, products)``, one row each."""
    x, pairs = X.T, np.triu_indices(X.shape[1])
    products = x[pairs[0]] * x[pairs[1]] * np.where(pairs[0] == pairs[1], 1.0, 2**0.5)[:, None]
    return np.vstack([np.ones_like(x[:1]), x, products])


def gate_weights(family: Family, theta: FloatArray, X: FloatArray) -> FloatArray:
    """Probabilities (k, n) of the experts by the gate, by plain NumPy; theta may be complex."""
    return weights(family, blocks_of(family, theta), X)


def means_of_experts(family: Family, theta: FloatArray, X: FloatArray) -> FloatArray:
    """Means (k, n) of the experts, or probabilities (k K, n); theta may be complex."""
    value = of_experts(family, theta, X)[1]
    return value.reshape(-1, value.shape[-1])


Quantity = Callable[[Family, FloatArray, FloatArray], FloatArray]
"""Values (m, n) of a model at parameters and inputs (n, d), which carries imaginary parts along."""


def gradients(
    family: Family, theta: FloatArray, X: FloatArray, quantity: Quantity = predictions
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Predictions, or other values, and their derivatives in theta, some rows at a time.

    A complex step in the intercept of each channel of each atom gives the derivative in the
    intercept; the derivatives in the other coefficients of the channel have their feature of x as a
    factor.  A complex step does not cross the boundary of a gate.
    Yields the rows, their predictions (K, m), K = 1 for a mean, and derivatives (P, K, m).

    Squire and Trapp (1998) for complex steps.
    """
    for start in range(0, len(X), _ROWS):
        rows = slice(start, min(start + _ROWS, len(X)))
        phi = features(X[rows])
        value = quantity(family, theta, X[rows])
        gradient = np.zeros((theta.size, *value.shape))
        for (i, c), first in np.ndenumerate(family.index):
            if family.channels[c].shared and i:
                continue
            perturbed = theta.astype(complex)
            perturbed[first] += 1j * COMPLEX_STEP
            slope = quantity(family, perturbed, X[rows]).imag / COMPLEX_STEP
            others = np.arange(1, int(family.width[c]))
            gradient[first] = slope
            gradient[first + others] = phi[family.offset[c] + others - 1][:, None] * slope
        yield rows, value, gradient
