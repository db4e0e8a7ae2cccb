"""The search for the worst directions: one deviation is pinned, all others minimise the distance.

A loss D is a sum of powers of deviations and is not smooth; the distance d is a sum of squares and
is.  So the constraint ``D(G) = eps`` is met in another way.  In any sequence of measures one
deviation is, up to a factor, the one that makes D.  Pin that deviation at h, let all others
minimise d freely (shares bounded from below, as in a compact parameter space): the minimiser has a
D of at least the pinned term and a d of at most the sequence's.  The infimum of d over
``D = eps`` is therefore, up to a factor that does not depend on eps, the least d among these
constrained minimisers, over all deviations to pin, their signs, and all ways to spread the fitted
atoms over the cells.  h is adjusted until D is eps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from moestat._types import FloatArray
from moestat.losses import VoronoiLoss, voronoi_terms
from moestat.theory.explorer._coordinates import Coordinates
from moestat.theory.explorer._descent import Descent, descend

__all__ = ["Curve", "Point", "consolidate", "least", "trace"]

_FIRST_ITERATIONS = 50
_ITERATIONS = 40
_ADJUSTMENTS = 3
_CLOSE = 0.03  # of log D to log eps
_KEPT = (12, 6, 4)  # curves that go on after one, two and three radii
_WITHIN = math.log(3.0)  # of log D to log eps: points further off say nothing about eps
_LEAST_PIN, _LARGEST_PIN = 1e-14, 4.0


@dataclass(frozen=True)
class Point:
    """One constrained minimiser.

    Parameters
    ----------
    pin : int
        Position of the pinned deviation.
    z : ndarray
        Its coordinates.
    pinned : float
        Value h of the pinned deviation.
    loss : float
        D.
    root : float
        Root mean square distance to the truth.
    converged : bool
        Whether the descent converged.
    """

    pin: int
    z: FloatArray
    pinned: float
    loss: float
    root: float
    converged: bool

    @property
    def ratio(self) -> float:
        """``d / D``."""
        return self.root / self.loss


@dataclass
class Curve:
    """Constrained minimisers along decreasing radii, with one pinned deviation."""

    coordinates: Coordinates
    pin: int
    sign: float
    points: list[Point] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What is pinned."""
        return self.coordinates.names[self.pin]

    def promise(self, radius: float) -> float:
        """Log of the ratio that the last two points promise at a radius."""
        last = self.points[-1]
        value = math.log(max(last.ratio, 1e-300))
        if len(self.points) < 2:
            return value
        before = self.points[-2]
        run = math.log(last.loss / before.loss)
        slope = (value - math.log(max(before.ratio, 1e-300))) / run if run else 0.0
        return value + slope * math.log(radius / last.loss)


class _Problem:
    """D and d at the points of one reference."""

    def __init__(self, coordinates: Coordinates, loss: VoronoiLoss) -> None:
        self.coordinates, self.loss = coordinates, loss
        model = coordinates.model
        self.truth = model.truth_family.measure(model.truth)

    def voronoi(self, z: FloatArray) -> float:
        """D, or NaN where an atom has left its cell."""
        model = self.coordinates.model
        deviation = self.coordinates.unpack(z)
        if np.any(deviation.mass <= -1.0):
            return math.nan
        try:
            estimate = model.family.measure(model.packed(deviation))
            result = voronoi_terms(estimate, self.truth, self.loss)
        except ValueError:
            return math.nan
        stays = self.loss.represent is not None or np.array_equal(
            result.assignment, self.coordinates.cells_of()
        )
        return result.value if stays else math.nan

    def residuals(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Residual and Jacobian in z."""
        r, slopes = self.coordinates.model.residuals(self.coordinates.unpack(z))
        return r, self.coordinates.jacobian(z, slopes)

    def minimise(self, z: FloatArray, pin: int, iterations: int) -> Descent:
        free = np.ones(z.size, dtype=np.bool_)
        free[pin] = False
        unit = np.where(self.coordinates.is_deviation > 0.0, abs(z[pin]), 1.0)
        return descend(self.residuals, z, free, unit, iterations)

    def alone(self, pin: int, radius: float) -> float:
        """The h at which the pinned deviation by itself has about D = radius, 0 if it has none."""
        z = np.zeros(self.coordinates.size)
        low, high = math.log(_LEAST_PIN), math.log(_LARGEST_PIN)
        z[pin] = 1e-2
        if not self.voronoi(z) > 0.0:
            return 0.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            z[pin] = math.exp(middle)
            value = self.voronoi(z)
            low, high = (middle, high) if value < radius else (low, middle)
        return math.exp(low)


def trace(
    coordinates: Coordinates,
    loss: VoronoiLoss,
    radii: FloatArray,
    starts: int,
    rng: np.random.Generator,
    report: Callable[[str], None] | None = None,
) -> list[Curve]:
    """Curves of constrained minimisers near one reference.

    Parameters
    ----------
    coordinates : Coordinates
        Coordinates near the reference.
    loss : VoronoiLoss
        D.
    radii : ndarray of shape (R,)
        Decreasing values of D.
    starts : int
        Random starts per pinned deviation and sign.
    rng : numpy.random.Generator
        Source of the starts.
    report : callable, optional
        Told what is being done.

    Returns
    -------
    list of Curve
        Those that were followed to the last radius, or as far as they went.
    """
    problem = _Problem(coordinates, loss)
    curves = []
    for pin in coordinates.pins():
        h = problem.alone(pin, float(radii[0]))
        if h == 0.0:
            continue
        alone = not coordinates.in_larger_cell(pin)
        for sign in (1.0, -1.0):
            curve = Curve(coordinates, pin, sign)
            point = _first(problem, curve, h, float(radii[0]), 1 if alone else starts, rng)
            if point is not None:
                point = _adjusted(problem, curve, point, float(radii[0]), 1.0)
                if _is_near(point, float(radii[0])):
                    curve.points.append(point)
                    curves.append(curve)
    for at, radius in enumerate(radii[1:], start=1):
        curves.sort(key=lambda curve: (-len(curve.points), curve.promise(float(radii[-1]))))
        curves = curves[: _KEPT[min(at, len(_KEPT)) - 1]]
        for curve in curves:
            if len(curve.points) == at:
                point = _next(problem, curve, float(radius))
                if point is not None and _is_near(point, float(radius)):
                    curve.points.append(point)
        if report:
            report(f"{coordinates.model.reference.name}: D = {radius:.1e}, {len(curves)} curves")
    return curves


def least(points: list[Point]) -> Point | None:
    """The point with the least ratio, None of none."""
    return min(points, key=lambda point: point.ratio, default=None)


def consolidate(curves: list[Curve], loss: VoronoiLoss, radii: FloatArray) -> list[Point | None]:
    """The best point near each radius, after each has served as a start for its neighbours.

    A curve may lose its way at one radius, or find a better one late.

    Parameters
    ----------
    curves : list of Curve
        Curves near one reference.
    loss : VoronoiLoss
        D.
    radii : ndarray of shape (R,)
        Decreasing values of D.

    Returns
    -------
    list of Point or None
        One per radius, None where there is none.
    """
    best = [
        least([curve.points[at] for curve in curves if len(curve.points) > at])
        for at in range(radii.size)
    ]
    if not curves:
        return best
    problem = _Problem(curves[0].coordinates, loss)
    upward = list(range(radii.size - 2, -1, -1))
    for at, source in [(at, at + 1) for at in upward] + [(at + 1, at) for at in upward[::-1]]:
        start, here = best[source], best[at]
        if start is None:
            continue
        curve = Curve(problem.coordinates, start.pin, 1.0, [start])
        point = _next(problem, curve, float(radii[at]))
        if point is not None and _is_near(point, float(radii[at])):
            best[at] = least([point] if here is None else [here, point])
    return best


def _point(problem: _Problem, z: FloatArray, pin: int, iterations: int) -> Point | None:
    end = problem.minimise(z, pin, iterations)
    value = problem.voronoi(end.z)
    if not value > 0.0 or not math.isfinite(end.root):
        return None
    return Point(pin, end.z, float(end.z[pin]), value, end.root, end.converged)


def _first(
    problem: _Problem,
    curve: Curve,
    h: float,
    radius: float,
    starts: int,
    rng: np.random.Generator,
) -> Point | None:
    """The best of some random starts at the first radius."""
    best = None

    def rank(point: Point) -> tuple[bool, float]:
        # A point of another D lies elsewhere, and its ratio cannot be compared.
        return not _is_near(point, radius), point.ratio

    for start in range(starts):
        z = curve.coordinates.random(rng, 0.5 * h if start else 0.0)
        z[curve.pin] = curve.sign * h
        point = _point(problem, z, curve.pin, _FIRST_ITERATIONS)
        if point is not None and (best is None or rank(point) < rank(best)):
            best = point
    return best


def _is_near(point: Point, radius: float) -> bool:
    return abs(math.log(point.loss / radius)) < _WITHIN


def _scaled(z: FloatArray, before: FloatArray | None, curve: Curve, share: float) -> FloatArray:
    """A warm start with the pinned deviation multiplied by `share`.

    Each deviation follows the power of the pinned one that it followed so far.
    """
    powers = np.ones(z.size)
    if before is not None:
        run = math.log(abs(z[curve.pin] / before[curve.pin]))
        moved = np.where(before == 0.0, 1.0, z / np.where(before == 0.0, 1.0, before))
        powers = np.where(moved > 0.0, np.log(np.where(moved > 0.0, moved, 1.0)) / run, 1.0)
        powers = np.clip(powers, 0.5, 6.0)
    factor = np.where(curve.coordinates.is_deviation > 0.0, share**powers, 1.0)
    return z * factor


def _next(problem: _Problem, curve: Curve, radius: float) -> Point | None:
    last = curve.points[-1]
    before = curve.points[-2] if len(curve.points) > 1 else None
    power = 1.0
    if before is not None and before.loss != last.loss:
        run = math.log(before.loss / last.loss)
        power = float(np.clip(math.log(before.pinned / last.pinned) / run, 0.05, 2.0))
    share = (radius / last.loss) ** power
    z = _scaled(last.z, None if before is None else before.z, curve, share)
    point = _point(problem, z, curve.pin, _ITERATIONS)
    return None if point is None else _adjusted(problem, curve, point, radius, power)


def _adjusted(problem: _Problem, curve: Curve, point: Point, radius: float, power: float) -> Point:
    """The point, moved until its loss is the radius."""
    older = None
    for _ in range(_ADJUSTMENTS):
        miss = math.log(radius / point.loss)
        if abs(miss) < _CLOSE:
            break
        if older is not None and older.loss != point.loss:
            run = math.log(older.loss / point.loss)
            power = float(np.clip(math.log(older.pinned / point.pinned) / run, 0.05, 2.0))
        z = _scaled(point.z, None, curve, math.exp(power * miss))
        moved = _point(problem, z, curve.pin, _ITERATIONS)
        if moved is None:
            break
        older, point = point, moved
    return point
