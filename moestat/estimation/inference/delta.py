"""The delta method: of predictions by their derivatives, row by row, and of any function."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.family import Family
from moestat.model.reference import log_sum_exp

__all__ = ["delta_method", "gradients", "jacobian", "predictions", "standard_errors"]

_ROWS = 4096
"""Rows whose derivatives are in memory at a time."""

_STEP = 1e-100
"""A complex step has no rounding error: it need only be small."""

_SHARE = 1e-2
"""Steps of differences of other functions in standard errors: their own scale in any units."""


def predictions(family: Family, theta: FloatArray, X: FloatArray) -> FloatArray:
    """Conditional means (1, n), or class probabilities (K, n), in plain NumPy.

    Parameters
    ----------
    family : Family
        The model.
    theta : ndarray of shape (P,)
        Packed parameters, which may be complex.
    X : ndarray of shape (n, d)
        Inputs.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("gaussian", gate="softmax", n_experts=1)
    >>> predictions(F, np.array([0.0, 0, 1, 2, 0]), np.array([[0.5], [1.0]])).tolist()
    [[2.0, 3.0]]
    """
    logs = {channel.intercept for channel in family.channels if channel.log}
    blocks = {
        name: np.exp(theta[at]) if name in logs else theta[at] for name, at in family.blocks.items()
    }
    gate, expert, likelihood = family.gate, family.expert, family.likelihood
    own = [{name: blocks[name] for name in member.bounds} for member in (gate, expert)]
    eta = expert.reference(own[1], X)
    score = gate.reference(own[0], X, eta if gate.reads_response else None)
    if gate.n_active is not None:
        least = np.sort(score.real, axis=0)[::-1][: gate.n_active][-1]
        score = np.where(score.real >= least, score, -np.inf)
    weight = np.exp(score - log_sum_exp(score) if gate.normalised else score)
    if likelihood.support is not None:
        logits = np.concatenate([eta, 0.0 * eta[:, :1]], axis=1)
        chance = np.exp(logits - log_sum_exp(logits, axis=1)[:, None])
        return np.einsum("in,icn->cn", weight, chance)
    assert likelihood.spread is not None
    channels = family.index[:, family.layout[1] + family.layout[2] :]
    extra = np.broadcast_to(theta[channels, None], (*channels.shape, len(X)))
    mean = likelihood.spread(np.concatenate([eta[:, None], extra], axis=1))[0]
    return np.sum(weight * mean, axis=0)[None]


def gradients(
    family: Family, theta: FloatArray, X: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Predictions and their derivatives in theta, some rows at a time.

    By a complex step in the intercept of each channel of each atom: further coefficients of a
    channel have their feature of x as a factor.  To full precision, with no step across a gate.

    Parameters
    ----------
    family, theta, X
        As in `predictions`.

    Yields
    ------
    rows : slice
        Which rows.
    value : ndarray of shape (K, m)
        Predictions there, K = 1 for a mean.
    gradient : ndarray of shape (P, K, m)
        Their derivatives.

    Notes
    -----
    Squire and Trapp (1998) for complex steps.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("gaussian", gate="softmax", n_experts=1)
    >>> ((_, value, gradient),) = gradients(F, np.array([0.0, 0, 1, 2, 0]), np.array([[0.5]]))
    >>> gradient[:, 0, 0].tolist()
    [0.0, 0.0, 1.0, 0.5, 0.0]
    """
    pairs = np.triu_indices(family.n_features)
    for start in range(0, len(X), _ROWS):
        rows = slice(start, min(start + _ROWS, len(X)))
        x = X[rows].T
        products = x[pairs[0]] * x[pairs[1]] * np.where(pairs[0] == pairs[1], 1.0, 2**0.5)[:, None]
        phi = np.vstack([np.ones_like(x[:1]), x, products])
        value = predictions(family, theta, X[rows])
        gradient = np.zeros((theta.size, *value.shape))
        for (i, c), first in np.ndenumerate(family.index):
            if family.channels[c].shared and i:
                continue
            moved = theta.astype(complex)
            moved[first] += 1j * _STEP
            slope = predictions(family, moved, X[rows]).imag / _STEP
            others = np.arange(1, int(family.width[c]))
            gradient[first] = slope
            gradient[first + others] = phi[family.offset[c] + others - 1][:, None] * slope
        yield rows, value, gradient


def standard_errors(gradient: FloatArray, covariance: FloatArray, scale: float) -> FloatArray:
    """Standard errors (K, m) of predictions by the delta method, ``sqrt(g' V g)``.

    Parameters
    ----------
    gradient : ndarray of shape (P, K, m)
        Derivatives of the predictions.
    covariance : ndarray of shape (P, P)
        The covariance V of the estimate; rows and columns that are NaN belong to coordinates
        without one.
    scale : float
        Size of the predictions.  One that moves by more than 1e-8 of it for a unit of a coordinate
        without covariance has no standard error: NaN.
    """
    known = np.isfinite(np.diag(covariance))
    inner = np.where(known[:, None] & known, covariance, 0.0)
    # Not below 0 where V, an inverse, is not positive to the last digit.
    variance = np.maximum(np.einsum("pcn,pq,qcn->cn", gradient, inner, gradient, optimize=True), 0)
    moved = np.any(np.abs(gradient[~known]) > 1e-8 * scale, axis=0)
    return np.where(moved, np.nan, np.sqrt(variance))


def jacobian(
    function: Callable[[FloatArray], FloatArray], theta: FloatArray, bse: FloatArray
) -> FloatArray:
    """Derivatives (m, P) of a function (P,) -> (m,) by central differences of fourth order.

    Coordinates without a positive standard error are held fixed; their columns are 0.
    """
    base = np.asarray(function(theta), dtype=np.float64)
    columns = np.zeros((base.size, theta.size))
    for j in np.flatnonzero(np.isfinite(bse) & (bse > 0.0)):
        values = []
        for step in (-2.0, -1.0, 1.0, 2.0):
            moved = theta.copy()
            moved[j] += step * _SHARE * bse[j]
            values.append(np.asarray(function(moved), dtype=np.float64))
        far = values[3] - values[0]
        near = values[2] - values[1]
        columns[:, j] = (8.0 * near - far) / (12.0 * _SHARE * bse[j])
    return columns


def delta_method(
    function: Callable[[FloatArray], FloatArray], theta: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """A function of the estimate and its covariance ``J V J'``.

    Parameters
    ----------
    function : callable
        ``function(theta)`` of packed parameters (P,), shape (m,).
    theta : ndarray of shape (P,)
        The estimate.
    covariance : ndarray of shape (P, P)
        Its covariance V; rows and columns that are NaN belong to coordinates without one.

    Returns
    -------
    value : ndarray of shape (m,)
        The function at the estimate.
    covariance : ndarray of shape (m, m)
        Its covariance; NaN for components that depend on a coordinate without one.

    Examples
    --------
    >>> value, covariance = delta_method(np.exp, np.array([0.0, 1.0]), np.diag([0.04, 0.01]))
    >>> np.sqrt(np.diag(covariance)).round(4).tolist()
    [0.2, 0.2718]
    """
    value = np.atleast_1d(np.asarray(function(theta), dtype=np.float64))
    known = np.isfinite(np.diag(covariance))
    bse = np.where(known, np.sqrt(np.abs(np.diag(covariance))), 0.0)
    J = jacobian(function, theta, bse)
    inner = np.where(known[:, None] & known[None, :], covariance, 0.0)
    result = J @ inner @ J.T
    if not known.all():
        # What a unit step of a coordinate without a standard error moves has none either.
        probe = jacobian(function, theta, np.where(known, 0.0, 1e-3 * (1.0 + np.abs(theta))))
        scale = np.abs(value).max(initial=1.0)
        moved = np.any(np.abs(probe) > 1e-8 * scale, axis=1)
        result[moved] = np.nan
        result[:, moved] = np.nan
    return value, result
