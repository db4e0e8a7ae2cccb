"""BFGS with limited memory, from the curvature of the complete data, in the box.

Where a pass takes no longer than Python does between two of them, all steps between two matrices
run as one compiled loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from numba import types

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, compile_loop
from moestat.compiler.pointers import address_of, call_by_address
from moestat.kernels.build import call_mixture, mixture_address
from moestat.kernels.build import tables as pass_tables
from moestat.kernels.records import NO_SUMS, Sums
from moestat.kernels.views import row
from moestat.solvers.line_search import DECREASE, FLATTER, HALVINGS, weak_wolfe
from moestat.solvers.problem import Iteration, Objective, Problem, Ran, Request, Run, ValueGradient
from moestat.solvers.spring import pull
from moestat.solvers.trust_region.decrease import ROUNDING
from moestat.solvers.trust_region.eigen import back_substitute, cholesky, forward_substitute
from moestat.solvers.trust_region.region import can_descend, free_coordinates

__all__ = ["NEAR", "bfgs_steps", "complete_curvature"]

NEAR = 1e-2
"""Predicted gain, in units of log-likelihood, at which BFGS ends by default."""

_MEMORY, _ROUND = 50, 50  # steps that BFGS remembers, and between two curvatures of complete data
_RIDGE, _STEEPER = 1e-3, 10.0  # of the predictors' metric, and its growth where that is not enough

_half = call_by_address(types.none)


@compile_loop
def _before(moved, change, free, made, rest, along, share):
    """The first of Nocedal's two loops: `rest` (P,) without the last of the `made` steps."""
    oldest = made - len(moved) if made > len(moved) else 0
    for q in range(made - 1, oldest - 1, -1):
        j = q % len(moved)
        total = 0.0
        inner = 0.0
        for i in range(rest.size):
            total += moved[j, i] * change[j, i] * free[i]
            inner += moved[j, i] * rest[i]
        along[j] = total
        share[j] = inner / total if total > 0.0 else 0.0
        for i in range(rest.size):
            rest[i] -= share[j] * change[j, i] * free[i]


@compile_loop
def _after(moved, change, free, made, rest, along, share):
    """The second: `rest` (P,) with them again, in the opposite order."""
    oldest = made - len(moved) if made > len(moved) else 0
    for q in range(oldest, made):
        j = q % len(moved)
        if along[j] > 0.0:
            inner = 0.0
            for i in range(rest.size):
                inner += change[j, i] * rest[i]
            for i in range(rest.size):
                rest[i] += (share[j] - inner / along[j]) * moved[j, i] * free[i]


@compile_loop
@compact
def _bfgs_loop(
    addresses, pass_inputs, spring, matrices, memory, box, limits, theta, gradient, sums, work
):
    """Climb from theta with its gradient (P,), both in place.

    The factor is that of the matrix over the coordinates that the second row of `work` says; what
    it stands for is `scale` times as large, see `_Curvature`.
    Returns the value, the steps, the passes and the scale.
    """
    at_pass, at_before, at_after = addresses
    coefficients, data, by_sample, terms = pass_inputs
    matrix, factor = matrices
    moved, change, along, share = memory
    lower, upper = box
    value, made, most, tolerance, scale = limits
    free, factored, step = row(work, 0), row(work, 1), row(work, 2)
    trial, best, best_gradient = row(work, 3), row(work, 4), row(work, 5)
    there_gradient, no_hessian = row(work, 6), work[:0]
    n = theta.size
    passes = 0
    for taken in range(most):
        for j in range(n):
            free[j] = 1.0 if can_descend(theta[j], gradient[j], lower[j], upper[j]) else 0.0
        crosses = True
        while crosses:
            known = True
            for j in range(n):
                known = known and free[j] == factored[j]
            if not known:
                for j in range(n):
                    factored[j] = free[j]
                    for i in range(j):
                        factor[j, i] = matrix[j, i] * free[j] * free[i]
                    factor[j, j] = matrix[j, j] if free[j] > 0.0 else 1.0
                if not cholesky(n, factor):
                    return value, taken, passes, scale
            for j in range(n):
                step[j] = -gradient[j] * free[j]
            _half(at_before, (moved, change, free, made, step, along, share))
            forward_substitute(n, factor, step)
            back_substitute(n, factor, step)
            for j in range(n):
                step[j] /= scale
            _half(at_after, (moved, change, free, made, step, along, share))
            crosses = False
            for j in range(n):
                if (theta[j] <= lower[j] and step[j] < 0.0) or (
                    theta[j] >= upper[j] and step[j] > 0.0
                ):
                    free[j] = 0.0
                    crosses = True
        slope = 0.0
        room = math.inf
        for j in range(n):
            slope += step[j] * gradient[j]
            if step[j] != 0.0:
                edge = ((upper[j] if step[j] > 0.0 else lower[j]) - theta[j]) / step[j]
                room = edge if edge < room else room
        if not -slope > 2.0 * tolerance:
            return value, taken, passes, scale
        gains = False
        low, high, t, new = 0.0, math.inf, 1.0, value
        for _ in range(HALVINGS):
            t = t if t < room else room
            for j in range(n):
                point = theta[j] + t * step[j]
                point = point if point > lower[j] else lower[j]
                trial[j] = point if point < upper[j] else upper[j]
            there = -call_mixture(at_pass, (trial, coefficients, data, 1, sums, by_sample, terms))
            passes += 1
            slope_there = 0.0
            for j in range(n):
                there_gradient[j] = -sums.score[j]
            there += pull(spring, trial, there_gradient, no_hessian)
            for j in range(n):
                slope_there += there_gradient[j] * step[j]
            gained = value - there
            if abs(gained) <= ROUNDING * abs(value):
                gained = -0.5 * t * (slope + slope_there)
            if not gained >= -DECREASE * t * slope:
                high = t
            else:
                gains = True
                new = there
                for j in range(n):
                    best[j] = trial[j]
                    best_gradient[j] = there_gradient[j]
                if slope_there >= FLATTER * slope or t >= room:
                    break
                low = t
            t = 0.5 * (low + high) if high < math.inf else 2.0 * t
        if not gains:
            return value, taken, passes, scale
        last = made % len(moved)
        made += 1
        value = new
        for j in range(n):
            moved[last, j] = best[j] - theta[j]
            change[last, j] = best_gradient[j] - gradient[j]
            theta[j] = best[j]
            gradient[j] = best_gradient[j]
            step[j] = change[last, j] * free[j]
        along_step = 0.0
        for j in range(n):
            along_step += moved[last, j] * step[j]
        forward_substitute(n, factor, step)
        stiffness = 0.0
        for j in range(n):
            stiffness += step[j] * step[j]
        scale = stiffness / along_step if along_step > 0.0 else scale
    return value, most, passes, scale


class _Curvature:
    """A curvature (P, P) with a memory of steps, from which BFGS makes the next one.

    The matrix is scaled so that the last step would have changed the gradient as much as it has
    (Nocedal and Wright 2006, eq. 7.20, with the matrix in place of the identity): curvatures of
    complete data grow while variances shrink.
    """

    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix
        self.moved, self.change = np.empty((2, _MEMORY, len(matrix)))
        self.along, self.share = np.empty((2, _MEMORY))
        self.made, self.scale = 0, 1.0
        self._free = np.zeros(0, bool)
        self._factor = scipy.linalg.cho_factor(np.zeros((0, 0)))

    def renew(self, matrix: FloatArray) -> None:
        """Take another matrix; the memory stays."""
        self.matrix, self.scale, self._free = matrix, 1.0, np.zeros(0, bool)

    def remember(self, moved: FloatArray, change: FloatArray) -> None:
        """A step (P,) and what it changed the gradient by."""
        place = self.made % _MEMORY
        self.moved[place], self.change[place] = moved, change
        self.made += 1
        free = self._free
        along = float(moved[free] @ change[free])
        if along > 0.0:
            self.scale = float(change[free] @ self._solved(change[free])) / along

    def step(self, gradient: FloatArray, free: np.ndarray) -> FloatArray:
        """The step (P,) over the free coordinates: two loops over the memory, Nocedal (1980)."""
        if not np.array_equal(free, self._free):
            block = self.matrix[np.ix_(free, free)]
            self._free, self._factor = free, scipy.linalg.cho_factor(block, check_finite=False)
        step = np.where(free, -gradient, 0.0)
        memory = self.moved, self.change, free.astype(np.float64), self.made
        _before(*memory, step, self.along, self.share)
        step[free] = self._solved(step[free]) / self.scale
        _after(*memory, step, self.along, self.share)
        return step

    def _solved(self, vector: FloatArray) -> FloatArray:
        """The matrix over the free coordinates, inverted, times a vector."""
        return np.asarray(scipy.linalg.cho_solve(self._factor, vector, check_finite=False))

    def step_inside(
        self, theta: FloatArray, gradient: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> FloatArray:
        """The step (P,) without the coordinates on an edge of the box that it would cross."""
        free = free_coordinates(theta, gradient, lower, upper)
        while True:
            step = self.step(gradient, free)
            crosses = (theta <= lower) & (step < 0.0) | (theta >= upper) & (step > 0.0)
            if not crosses.any():
                return step
            free = free & ~crosses


@dataclass(frozen=True, kw_only=True)
class _BFGSRun(Run):
    """Steps from one matrix as one request.

    Parameters
    ----------
    here : ValueGradient
        At theta.
    curvature : _Curvature
        It is left with the steps that the run has made.
    tolerance : float
        Predicted gain, in units of the objective, that is worth no step.
    most : int
        Steps at most.
    """

    here: ValueGradient
    curvature: _Curvature
    tolerance: float
    most: int

    def of(self, problem: Problem) -> Ran:
        """Run it."""
        family, P, own = problem.family, self.theta.size, self.curvature
        data = problem.inputs(self, slice(0, problem.data.levels[self.level].size))
        theta, gradient = self.theta.copy(), self.here.gradient.copy()
        lower, upper = family.box_at(theta)
        work = np.empty((7, P))
        free = work[1] = free_coordinates(theta, gradient, lower, upper)
        factor = own.matrix * np.outer(free, free)
        factor[~free, ~free] = 1.0
        value, steps, passes, own.scale = _bfgs_loop(
            (mixture_address(family.loops, data.y.dtype.char), *_half_addresses()),
            (family.coefficients, data, *pass_tables(family.coefficients, data, 1)),
            problem.spring,
            (own.matrix, np.linalg.cholesky(factor)),
            (own.moved, own.change, own.along, own.share),
            (lower, upper),
            (float(self.here.value), own.made, self.most, self.tolerance, own.scale),
            theta,
            gradient,
            Sums(np.empty(P), NO_SUMS.hessian, NO_SUMS.information),
            work,
        )
        own.made += steps
        status = "converged" if steps < self.most else "iteration limit"
        return Ran(value, gradient, theta, status, steps, passes)


@cache
def _half_addresses() -> tuple[int, int]:
    """Where the two halves of Nocedal's loop are."""
    vector, matrix = np.empty(0), np.empty((0, 0))
    half = matrix, matrix, vector, 0, vector, vector, vector
    return address_of(_before, *half), address_of(_after, *half)


def complete_curvature(problem: Problem, theta: FloatArray, level: int) -> Iteration[FloatArray]:
    """Curvature (P, P) of the complete data, given the responsibilities at theta, made definite."""
    yield Request(Objective.EXPECTATION, theta, level)
    matrix = (yield Request(Objective.COMPLETE, theta, level)).hessian
    matrix = np.where(np.isfinite(matrix).all(), matrix, 0.0)
    ridge = _RIDGE * float(problem.data.levels[level].weight.sum()) * problem.metric(theta)
    while True:
        matrix = matrix + ridge
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            ridge *= _STEEPER
        else:
            return matrix


def bfgs_steps(
    problem: Problem,
    theta: FloatArray,
    level: int,
    most: int,
    tolerance: float = NEAR,
    matrix: FloatArray | None = None,
) -> Iteration[tuple[FloatArray, ValueGradient, int]]:
    """Climb by BFGS on one level of the data; returns (theta, evaluation, steps).

    It ends after `most` steps, where a step is predicted to gain less than the tolerance, or where
    none gains; with a `matrix` in place of the complete data's curvature after one round.
    """
    here = yield Request(Objective.SCORE, theta, level)
    if matrix is not None:
        most = min(most, _ROUND)
    else:
        matrix = yield from complete_curvature(problem, theta, level)
    curvature, steps = _Curvature(matrix), 0
    while True:
        asked = min(_ROUND, most - steps)
        begin = Request(Objective.SCORE, theta, level)
        theta, here, made = yield from _round(problem, begin, here, curvature, asked, tolerance)
        steps += made
        if made < asked or steps == most:
            return theta, here, steps
        curvature.renew((yield from complete_curvature(problem, theta, level)))


def _round(
    problem: Problem,
    begin: Request,
    here: ValueGradient,
    curvature: _Curvature,
    most: int,
    tolerance: float,
) -> Iteration[tuple[FloatArray, ValueGradient, int]]:
    """Steps from one matrix; returns (theta, evaluation, steps)."""
    theta, level = begin.theta, begin.level
    if Run.is_for(problem, begin):
        ran = yield _BFGSRun(
            objective=begin.objective,
            theta=theta,
            level=level,
            here=here,
            curvature=curvature,
            tolerance=tolerance,
            most=most,
        )
        return ran.theta, ran, ran.iterations
    box = problem.family.box_at(theta)
    for steps in range(most):
        step = curvature.step_inside(theta, here.gradient, *box)
        predicted = -float(step @ here.gradient)
        if not predicted > 2.0 * tolerance:
            return theta, here, steps
        begin = Request(Objective.SCORE, theta, level)
        point, there, _ = yield from weak_wolfe(begin, here, step, predicted, box)
        if point is theta:
            return theta, here, steps
        curvature.remember(point - theta, there.gradient - here.gradient)
        theta, here = point, there
    return theta, here, most
