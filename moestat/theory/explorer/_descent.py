"""Least squares for nearly dependent residuals: a trust region with exact singular values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moestat._types import FloatArray

__all__ = ["Descent", "descend"]

_LEAST_SINGULAR = 1e-15
_CONVERGED = 1e-7  # relative gain of the mean square that a full step still promises
_SHRUNK = 1e-9  # of the first radius


class Descent(NamedTuple):
    """Where a descent ended.

    Parameters
    ----------
    z : ndarray of shape (p,)
        The point.
    root : float
        Norm of the residual there.
    converged : bool
        Whether an unrestricted Gauss-Newton step promises no more gain.
    """

    z: FloatArray
    root: float
    converged: bool


def descend(
    residuals: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    z: FloatArray,
    free: NDArray[np.bool_],
    scale: FloatArray,
    iterations: int,
) -> Descent:
    """Minimise the norm of a residual in the coordinates marked free.

    The Jacobian is factored as a whole (QR, then singular values), never squared: near the truth
    its columns are dependent up to a high power of the deviation, and the smallest singular value
    decides.  Steps are restricted in units of `scale`, which also makes singular values comparable.

    Parameters
    ----------
    residuals : callable
        ``residuals(z)``: residual (n,) and Jacobian (n, p).
    z : ndarray of shape (p,)
        Start.
    free : ndarray of bool, shape (p,)
        Coordinates that move.
    scale : ndarray of shape (p,)
        Unit of each coordinate.
    iterations : int
        Most evaluations.

    Returns
    -------
    Descent
        The best point.
    """
    at = np.flatnonzero(free)
    unit = scale[at]
    radius = first = 1.0
    r, J = residuals(z)
    root = _norm(r)
    converged = False
    for _ in range(iterations):
        if root == 0.0 or not np.isfinite(root):
            return Descent(z, root, root == 0.0)
        # The triangle of [J r] holds J's own and Q'r.
        triangle: Any = np.linalg.qr(np.column_stack([J[:, at] * unit, r / root]), mode="r")
        U, S, Vt = np.linalg.svd(triangle[: at.size, : at.size])
        b = U.T @ triangle[: at.size, -1] * root
        keep = _LEAST_SINGULAR * S[0] < S
        step = _restricted(S[keep], b[keep], radius)
        gain = float(np.sum(b[keep] ** 2 - (b[keep] - S[keep] * step) ** 2))
        inside = float(np.linalg.norm(step)) < 0.999 * radius
        if gain <= _CONVERGED * root**2:
            converged = inside
            if inside or radius < _SHRUNK * first:
                break
        moved = z.copy()
        moved[at] -= unit * (Vt[keep].T @ step)
        r1, J1 = residuals(moved)
        root1 = _norm(r1)
        achieved = (root - root1) * (root + root1) / gain if gain > 0.0 else -1.0
        if achieved < 0.1:
            radius = 0.3 * min(radius, float(np.linalg.norm(step)))
            if radius < _SHRUNK * first:
                break
        elif achieved > 0.6 and not inside:
            radius *= 2.5
        if root1 < root:
            z, r, J, root = moved, r1, J1, root1
    return Descent(z, root, converged)


def _norm(r: FloatArray) -> float:
    return float(np.linalg.norm(r)) if np.all(np.isfinite(r)) else np.inf


def _restricted(S: FloatArray, b: FloatArray, radius: float) -> FloatArray:
    """Minimiser of ``|b - S s|`` with norm at most `radius`, in singular directions."""
    step = b / S
    if float(np.linalg.norm(step)) <= radius:
        return step
    low, high = -80.0, 80.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        step = S * b / (S * S + S[0] ** 2 * np.exp(middle))
        low, high = (middle, high) if float(np.linalg.norm(step)) > radius else (low, middle)
    return step
