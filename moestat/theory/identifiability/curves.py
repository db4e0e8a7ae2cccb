"""The set of parameters with a given law: projection on it, its dimension, curves in it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from moestat.base.types import FloatArray
from moestat.theory.identifiability.laws import Target
from moestat.theory.identifiability.rank import last_gap

_ROUNDING = 1e-14
_GAP = 1e2  # ratio of neighbouring singular values that counts as a gap
_ZERO = 1e-13  # residual of a member, in units of the law
_NEAR_ZERO = 1e-11  # residual of a point of a curve: weak directions bend it at first
_NEAR = 1e-6  # residual from which corrections are tried
_CORRECTIONS = 30
_ITERATIONS = 3000
_PROBE = 0.1  # share of a step at which its curvature is measured
_BOW = 1.5  # largest correction of a step, twice, over the step
_PATIENCE = 400  # iterations in which the residual must shrink by a tenth
_MOVES = 8
_NEARLY_NULL = 1e-4  # share of the largest singular value
_CLEAR = 1e4
_STEP = 0.2
_LEAST_STEP = 1e-3
_SAME_LAW = 1e-8  # discrepancy at points that the residuals do not see
_STRAIGHT = 1e-4  # of the reach


@dataclass(frozen=True)
class Tangent:
    """The null space of the residuals' Jacobian at a point, by an orthonormal basis (F, q)."""

    basis: FloatArray = field(repr=False)
    gap: float
    """Smallest positive singular value over the largest that counts as null."""

    @property
    def dimension(self) -> int:
        """Number of null directions."""
        return self.basis.shape[1]

    @property
    def clear(self) -> bool:
        """Whether the gap is wide enough to tell the dimension."""
        return self.gap >= _CLEAR


def tangent(target: Target, theta: FloatArray) -> Tangent:
    """Null directions at theta: below the last gap among the small singular values."""
    _, singular, vectors = np.linalg.svd(target.jacobian(theta))
    n = vectors.shape[0]
    last, gap = last_gap(np.pad(singular, (0, n - singular.size)), _ROUNDING, _GAP)
    return Tangent(vectors[last + 1 :].T, gap)


def descend(target: Target, start: FloatArray) -> FloatArray | None:
    """The member that Levenberg-Marquardt steps from a start converge to; None without one.

    The valleys of weakly identified families are narrow and bent, so each step is corrected to
    second order along itself (geodesic acceleration), and rejected where the correction is large.
    """
    family = target.family
    theta, residual = start, target.residual(start)
    size, damping = float(np.linalg.norm(residual)), 1e-2
    J = target.jacobian(theta)
    U, singular, V = np.linalg.svd(J, full_matrices=False)
    history = [size]
    for _ in range(_ITERATIONS):
        if not singular[0] > 0.0:
            return None
        shrink = singular / (singular**2 + damping * singular[0] ** 2)
        step = -V.T @ (shrink * (U.T @ residual))
        bent = target.residual(target.move(theta, _PROBE * step))
        curvature = (bent - residual) / _PROBE - J @ step
        second = -V.T @ (shrink * (U.T @ curvature)) / _PROBE
        length, second_length = np.linalg.norm(step), np.linalg.norm(second)
        projected = np.clip(target.move(theta, step + second), family.lower, family.upper)
        new = target.residual(projected)
        new_size = float(np.linalg.norm(new))
        if new_size < size and 2.0 * second_length <= _BOW * length:
            theta = projected
            residual = new
            size = new_size
            damping = max(0.1 * damping, 1e-26)
            J = target.jacobian(theta)
            U, singular, V = np.linalg.svd(J, full_matrices=False)
            history.append(size)
        else:
            damping *= 2.0
        if size < 0.02 * _ZERO * target.scale or damping > 1e6:
            break
        if len(history) > _PATIENCE and size > 0.9 * history[-_PATIENCE]:
            break
    if size > _NEAR * target.scale:
        return None
    return project(target, theta)


def generic(target: Target, theta: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A member near theta in general position: theta may lie where sets meet or touch.

    There the null space is larger than the set, or its rank is not clear.  Moves along nearly null
    directions, corrected, lead to points with a smaller null space or a clearer one.
    """
    best, null = theta, tangent(target, theta)
    for _ in range(_MOVES):
        _, singular, vectors = np.linalg.svd(target.jacobian(best))
        nearly = np.ones(vectors.shape[0], dtype=np.bool_)
        nearly[: singular.size] = singular < _NEARLY_NULL * singular[0]
        if not nearly.any():
            break
        step = vectors[nearly].T @ rng.normal(size=int(nearly.sum()))
        guess = target.move(best, 0.5 * step / np.linalg.norm(step))
        projected = project(target, guess) if target.holds(guess) else None
        if projected is None:
            continue
        other = tangent(target, projected)
        smaller = other.dimension < null.dimension and other.gap > _CLEAR
        if smaller or other.gap > 10.0 * null.gap:
            best, null = projected, other
    return best


def project(target: Target, theta: FloatArray, rank: int | None = None) -> FloatArray | None:
    """The point of the set that the smallest corrections of theta reach; None if they fail.

    With a rank, that of the set nearby, it is a point of a curve, else a member by itself.
    """
    best, size = theta, np.linalg.norm(target.residual(theta))
    for _ in range(_CORRECTIONS):
        J = target.jacobian(best)
        U, singular, V = np.linalg.svd(J, full_matrices=False)
        keep = singular > (1e-12 if rank is None else 1e-15) * singular[0]
        if rank is not None:
            keep &= np.arange(singular.size) < rank
        step = V[keep].T @ ((U[:, keep].T @ target.residual(best)) / singular[keep])
        projected = target.move(best, -step)
        if not target.holds(projected):
            return None
        new = np.linalg.norm(target.residual(projected))
        if not new < size:
            break
        best, size = projected, new
        if np.linalg.norm(step) < 1e-14:
            break
    zero = (_ZERO if rank is None else _NEAR_ZERO) * target.scale
    if not size < zero or target.discrepancy(best) >= _SAME_LAW:
        return None
    return best


@dataclass(frozen=True)
class Curve:
    """A curve of parameters with the same law, through a point along a null direction."""

    back: float
    forth: float
    """Length of the curve on either side as far as it was followed."""
    ends: tuple[str, str]
    """Why it ended there: ``"length"``, ``"bound"`` or ``"lost"``."""
    discrepancy: float
    """Largest discrepancy of the law along it."""
    straight: bool
    points: FloatArray = field(repr=False)
    """Its points (m, P) in order."""

    @property
    def integrates(self) -> bool:
        """Whether the direction could be followed at all, beyond first order."""
        return self.back + self.forth > 10 * _LEAST_STEP


def follow(
    target: Target, theta: FloatArray, direction: FloatArray, length: float, rank: int
) -> Curve:
    """Follow the set from theta along a direction (F,), to both sides.

    Each step goes along the null direction closest to the last step and is then corrected by
    Gauss-Newton steps of the given rank; it is halved until the correction succeeds.
    """
    unit = direction / np.linalg.norm(direction)
    left, left_end, back = _one_side(target, theta, -unit, length, rank)
    right, right_end, forth = _one_side(target, theta, unit, length, rank)
    points = np.array([*left[::-1], theta, *right])
    offsets = (points - theta)[:, target.free]
    across = offsets - np.outer(offsets @ unit, unit)
    reach = max(float(np.abs(offsets).max()), np.finfo(float).tiny)
    return Curve(
        back,
        forth,
        (left_end, right_end),
        max(target.discrepancy(point) for point in points),
        bool(np.abs(across).max() <= _STRAIGHT * reach),
        points,
    )


def _one_side(
    target: Target, theta: FloatArray, heading: FloatArray, length: float, rank: int
) -> tuple[list[FloatArray], str, float]:
    at = theta
    travelled = 0.0
    step = _STEP
    points: list[FloatArray] = []
    while length - travelled > _LEAST_STEP:
        h = min(step, length - travelled)
        guess = target.move(at, h * heading)
        outside = not target.holds(guess)
        projected = None if outside else project(target, guess, rank)
        advance = 0.0 if projected is None else float(np.linalg.norm(projected - at))
        if projected is None or not 0.5 * h < advance < 2.0 * h:
            if h <= _LEAST_STEP:
                return points, "bound" if outside else "lost", travelled
            step = 0.5 * h
            continue
        points.append(projected)
        travelled += advance
        at = projected
        null = np.linalg.svd(target.jacobian(at))[2][rank:].T
        along = null @ (null.T @ heading)
        if np.linalg.norm(along) < 0.5:
            return points, "lost", travelled
        heading = along / np.linalg.norm(along)
        step = min(1.5 * step, _STEP)
    return points, "length", travelled


def joined(target: Target, start: FloatArray, end: FloatArray, rank: int) -> bool:
    """Whether corrected steps towards `end` lead from `start` to it within the set."""
    at = start
    distance = float(np.linalg.norm(end - at))
    while distance > 1e-3:
        guess = at + min(1.0, _STEP / distance) * (end - at)
        projected = project(target, guess, rank)
        if projected is None:
            return False
        remaining = float(np.linalg.norm(end - projected))
        if remaining > distance - 0.01 * min(_STEP, distance):
            return False
        at, distance = projected, remaining
    return True
