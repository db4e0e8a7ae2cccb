"""The delta method: functions of the estimate with their covariance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moestat.base.types import FloatArray

__all__ = ["delta_method", "jacobian"]

_STEP = 1e-2
"""Steps of differences in standard errors: the function's own scale, whatever the units are."""


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
            moved[j] += step * _STEP * bse[j]
            values.append(np.asarray(function(moved), dtype=np.float64))
        far = values[3] - values[0]
        near = values[2] - values[1]
        columns[:, j] = (8.0 * near - far) / (12.0 * _STEP * bse[j])
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
