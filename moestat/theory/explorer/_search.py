"""The search for the worst directions: one deviation is pinned, all others minimise the distance.

A loss D is a sum of powers of deviations and is not smooth; the distance d is a sum of squares and
is.  So the constraint ``D(G) = eps`` is met in another way.  In any sequence of measures one
deviation is, up to a factor, the one that makes D.  Pin that deviation at h, let all others
minimise d freely (shares bounded from below, as in a compact parameter space): the minimiser has a
D of at least the pinned term and a d of at most the sequence's.  The infimum of d over
``D = eps`` is therefore, up to a factor that does not depend on eps, the least d among these
constrained minimisers, over all deviations to pin, their signs, and all ways to spread the fitted
atoms over the cells.  Where a loss weights a deviation by its atom's mass, the weighted deviation
is pinned.  h is adjusted until D is eps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from moestat.base.types import FloatArray
from moestat.metrics.losses import VoronoiLoss, voronoi_terms
from moestat.model.measure import MixingMeasure
from moestat.theory.explorer._coordinates import Coordinates
from moestat.theory.explorer._descent import descend

_FIRST_ITERATIONS = 50
_ITERATIONS = 40
_WARM = 0.1  # first radius of a step from a warm start
_ADJUSTMENTS = 2
_CLOSE = 0.1  # of log D to log eps
_KEPT = (12, 6, 4)  # curves that go on after one, two and three radii
_WITHIN = math.log(3.0)  # of log D to log eps: points further off say nothing about eps
_TRIAL = 1e-2  # a deviation to see how a loss depends on it
_LEAST_PIN, _LARGEST_PIN = 1e-14, 4.0
_POWERS = (0.5, 6.0)  # of the pinned deviation that the others may follow


@dataclass(frozen=True)
class Point:
    """One constrained minimiser z, with its D and its root mean square distance to the truth."""

    coordinates: Coordinates
    """What z stands for, and which deviation is pinned."""
    z: FloatArray
    loss: float
    root: float
    converged: bool

    @property
    def pinned(self) -> float:
        """Size of the pinned deviation."""
        return abs(float(self.z[self.coordinates.pin]))

    @property
    def ratio(self) -> float:
        """``d / D``."""
        return self.root / self.loss

    def is_near(self, radius: float) -> bool:
        """Whether D is the radius, up to a factor."""
        return abs(math.log(self.loss / radius)) < _WITHIN


@dataclass
class _Curve:
    """Constrained minimisers along decreasing radii, with one pinned deviation."""

    problem: _Problem
    points: list[Point] = field(default_factory=list)

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


@dataclass(frozen=True)
class _Problem:
    """D and d near one reference, with one deviation pinned."""

    coordinates: Coordinates
    loss: VoronoiLoss

    @cached_property
    def truth(self) -> MixingMeasure:
        """The true measure."""
        model = self.coordinates.model
        return model.truth_family.measure(model.truth)

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
            result.assignment, model.reference.cells
        )
        return result.value if stays else math.nan

    def residuals(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Residual and Jacobian in z."""
        r, slopes = self.coordinates.model.residuals(self.coordinates.unpack(z))
        return r, self.coordinates.jacobian(z, slopes)

    def values(self, z: FloatArray) -> FloatArray:
        """Residual at z."""
        return self.coordinates.model.values(self.coordinates.unpack(z))

    def minimise(self, z: FloatArray, radius: float, iterations: int) -> Point | None:
        """The minimiser from z with the pinned deviation held; None where D is not defined.

        Steps begin with at most `radius` times the pinned deviation.
        """
        pin = self.coordinates.pin
        free = np.arange(z.size) != pin
        unit = np.where(self.coordinates.is_deviation, abs(z[pin]), 1.0)
        end = descend(self.residuals, self.values, z, free, unit, radius, iterations)
        value = self.voronoi(end.z)
        if not value > 0.0 or not math.isfinite(end.root):
            return None
        return Point(self.coordinates, end.z, value, end.root, end.converged)

    def next(self, points: list[Point], radius: float) -> Point | None:
        """The minimiser near another radius, from one point or the last two of several."""
        last, before = points[-1], points[-2] if len(points) > 1 else None
        power = self._power(before, last)
        z = self._scaled(last, before, (radius / last.loss) ** power)
        point = self.minimise(z, _WARM, _ITERATIONS)
        return None if point is None else self.adjust(point, radius, power)

    def adjust(self, point: Point, radius: float, power: float | None = None) -> Point | None:
        """The point, moved until its loss is the radius; None if it stays far off."""
        power = self._power(None, point) if power is None else power
        for _ in range(_ADJUSTMENTS):
            miss = math.log(radius / point.loss)
            if abs(miss) < _CLOSE:
                break
            start = self._scaled(point, None, math.exp(power * miss))
            improved = self.minimise(start, _WARM, _ITERATIONS)
            if improved is None:
                break
            power, point = self._power(point, improved), improved
        return point if point.is_near(radius) else None

    def _power(self, one: Point | None, two: Point) -> float:
        """Power of D that the pinned deviation follows, from two points if they differ."""
        if one is None or abs(math.log(one.loss / two.loss)) < 1e-3:
            return 1.0 / self.coordinates.power
        power = math.log(one.pinned / two.pinned) / math.log(one.loss / two.loss)
        return float(np.clip(power, 0.05, 2.0))

    def _scaled(self, last: Point, before: Point | None, factor: float) -> FloatArray:
        """A warm start with the pinned deviation multiplied by a factor.

        Each deviation follows the power of the pinned one that it followed so far.
        """
        powers = np.ones(last.z.size)
        if before is not None and before.pinned != last.pinned:
            run = math.log(last.pinned / before.pinned)
            same = last.z * before.z > 0.0
            quotient = np.divide(last.z, before.z, out=np.ones(last.z.size), where=same)
            powers = np.clip(np.where(same, np.log(quotient) / run, 1.0), *_POWERS)
        powers[self.coordinates.pin] = 1.0
        return last.z * np.where(self.coordinates.is_deviation, factor**powers, 1.0)


def search(
    coordinates: Coordinates,
    loss: VoronoiLoss,
    radii: FloatArray,
    starts: int,
    rng: np.random.Generator,
    report: Callable[[str], None] | None = None,
) -> list[Point | None]:
    """The point with the least ratio near each of decreasing radii (R,) and near one reference.

    There are so many random starts per pinned deviation and sign in cells of several atoms.
    """
    first = float(radii[0])
    curves = []
    for pin in coordinates.pins():
        pinned = _pinned(coordinates, loss, pin, first)
        if pinned is None:
            continue
        problem, h = pinned
        several = coordinates.in_larger_cell(pin)
        for sign in (1.0, -1.0):
            point = _first(problem, sign * h, first, starts if several else 1, rng)
            if point is not None:
                curves.append(_Curve(problem, [point]))
    for at, radius in enumerate(radii[1:], start=1):
        curves.sort(key=lambda curve: (-len(curve.points), curve.promise(float(radii[-1]))))
        curves = curves[: _KEPT[min(at, len(_KEPT)) - 1]]
        for curve in curves:
            if len(curve.points) == at:
                point = curve.problem.next(curve.points, float(radius))
                curve.points += [] if point is None else [point]
        if report:
            report(f"{coordinates.model.reference.name}: D = {radius:.1e}, {len(curves)} curves")
    return _consolidated(curves, loss, radii)


def least(points: list[Point]) -> Point | None:
    """The point with the least ratio, None of none."""
    return min(points, key=lambda point: point.ratio, default=None)


def _consolidated(curves: list[_Curve], loss: VoronoiLoss, radii: FloatArray) -> list[Point | None]:
    """The best point near each radius, after each has served as a start for its neighbours.

    A curve may lose its way at one radius, or find a better one late.
    """
    best = [
        least([curve.points[at] for curve in curves if len(curve.points) > at])
        for at in range(radii.size)
    ]
    steps = [(at + 1, at) for at in range(radii.size - 1)]
    for source, target in steps[::-1] + [(target, source) for source, target in steps]:
        start, current = best[source], best[target]
        if start is None:
            continue
        point = _Problem(start.coordinates, loss).next([start], float(radii[target]))
        if point is not None:
            best[target] = least([point] if current is None else [current, point])
    return best


def _pinned(
    coordinates: Coordinates, loss: VoronoiLoss, pin: int, radius: float
) -> tuple[_Problem, float] | None:
    """The problem with one deviation pinned, and the h at which it has D = radius by itself.

    None for a deviation that the loss does not see.
    """
    problem = _Problem(coordinates, loss)
    z = np.zeros(coordinates.size)

    def value(h: float) -> float:
        z[pin] = h
        return problem.voronoi(z)

    if not value(_TRIAL) > 0.0:
        return None
    power = math.log2(value(_TRIAL) / value(0.5 * _TRIAL))
    low, high = math.log(_LEAST_PIN), math.log(_LARGEST_PIN)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if value(math.exp(middle)) < radius else (low, middle)
    weighted = loss.weighted and loss.masses is not None
    pinned = replace(coordinates, pin=pin, power=power, weighted=weighted)
    return _Problem(pinned, loss), math.exp(low)


def _first(
    problem: _Problem, pinned: float, radius: float, starts: int, rng: np.random.Generator
) -> Point | None:
    """The best of some starts at the first radius: the pinned deviation by itself, and random."""
    points = []
    for start in range(starts):
        z = problem.coordinates.random(rng, 0.5 * abs(pinned) if start else 0.0)
        z[problem.coordinates.pin] = pinned
        point = problem.minimise(z, 1.0, _FIRST_ITERATIONS)
        # A point of another D lies elsewhere, and its ratio cannot be compared.
        point = None if point is None else problem.adjust(point, radius)
        points += [] if point is None else [point]
    return least(points)
