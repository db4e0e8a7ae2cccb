"""Least squares for nearly dependent residuals: a trust region with exact singular values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray, IntArray

_LEAST_SINGULAR = 1e-15
_SETTLED = 1e-3  # relative gain of the norm over the last steps that still counts
_STEPS = 4
_REJECTIONS = 16  # steps in turn, ever shorter
_CORRECTIONS = 8
_TIGHTER = 0.2  # a correction must not move along the valley itself


class Descent(NamedTuple):
    """Where a descent ended: at z (p,), where the norm of the residual is `root`."""

    z: FloatArray
    root: float
    converged: bool
    """Whether the last four steps together lowered the norm by less than a thousandth, or no step
    lowers it although a full one is not predicted to, either."""


def descend(
    residuals: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    values: Callable[[FloatArray], FloatArray],
    z: FloatArray,
    free: NDArray[np.bool_],
    scale: FloatArray,
    radius: float,
    iterations: int,
) -> Descent:
    """Minimise the norm of a residual in the coordinates marked free, from z (p,).

    ``residuals(z)`` gives the residual (n,) and its Jacobian (n, p), ``values(z)`` the former
    alone.  The first step is no longer than `radius`, in units of `scale` (p,).

    The Jacobian is factored as a whole (QR, then singular values), never squared: near the truth
    its columns are dependent up to a high power of the deviation, and the smallest singular value
    decides.  Steps are restricted in units of `scale`, which also makes singular values comparable.

    The minimum lies in a narrow curved valley: a straight step of a share e of the
    deviation leaves it at once.  Each step is therefore followed by corrections, Newton steps with
    the Jacobian at hand, that bring the residual back to what the straight step predicted.
    """
    at = np.flatnonzero(free)
    unit = scale[at]
    r, J = residuals(z)
    roots = [_norm(r)]
    for _ in range(iterations):
        root = roots[-1]
        if root == 0.0 or not np.isfinite(root):
            return Descent(z, root, root == 0.0)
        if len(roots) > _STEPS and root > (1.0 - _SETTLED) * roots[-1 - _STEPS]:
            return Descent(z, root, True)
        Q, R = np.linalg.qr(J[:, at] * unit)
        U, S, Vt = np.linalg.svd(R)
        keep = _LEAST_SINGULAR * S[0] < S
        S, basis, Vt = S[keep], (Q @ U)[:, keep], Vt[keep]
        b = basis.T @ r
        for _ in range(_REJECTIONS):
            step = _restricted(S, b, radius)
            length = float(np.linalg.norm(step))
            gain = float(np.sum(b**2 - (b - S * step) ** 2))
            predicted = r - basis @ (S * step)
            candidate, r1 = _correct(values, z, step, predicted, (S, basis, Vt), (at, unit), length)
            root1 = _norm(r1)
            achieved = (root - root1) * (root + root1) / gain if gain > 0.0 else 0.0
            if achieved > 0.75 and length > 0.99 * radius:
                radius *= 2.0
            elif achieved < 0.25:
                radius = 0.4 * length
            if root1 < root:
                z = candidate
                r, J = residuals(z)
                roots.append(_norm(r))
                break
        else:
            # No step gains anything: a minimum, if an unrestricted one is not predicted to.
            predicted_gain = float(np.sum(b**2))
            return Descent(z, root, predicted_gain <= _SETTLED * root**2)
    return Descent(z, roots[-1], False)


def _correct(
    values: Callable[[FloatArray], FloatArray],
    z: FloatArray,
    step: FloatArray,
    predicted: FloatArray,
    factors: tuple[FloatArray, FloatArray, FloatArray],
    place: tuple[IntArray, FloatArray],
    length: float,
) -> tuple[FloatArray, FloatArray]:
    """The point after a step, and its residual, brought near the predicted one."""
    S, basis, Vt = factors
    at, unit = place

    def evaluate(total: FloatArray) -> tuple[FloatArray, FloatArray]:
        candidate = z.copy()
        candidate[at] -= unit * (Vt.T @ total)
        return candidate, values(candidate)

    total = step
    best = evaluate(total)
    goal, least = _norm(predicted), _norm(best[1])
    reach = length
    for _ in range(_CORRECTIONS):
        reach *= _TIGHTER
        if not least > 1.05 * goal or not np.isfinite(least):
            break
        total = total + _restricted(S, basis.T @ (best[1] - predicted), reach)
        trial = evaluate(total)
        norm = _norm(trial[1])
        if not norm < 0.7 * least:
            best, least = (trial, norm) if norm < least else (best, least)
            break
        best, least = trial, norm
    return best


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
