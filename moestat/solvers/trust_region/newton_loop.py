"""Newton's iteration in one compiled loop: for data of which a pass takes no longer than Python.

The iteration is that of `moestat.solvers.newton.newton_steps`, with the same steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray
from moestat.compiler.jit import compact, compile_loop
from moestat.kernels.build import call_mixture, mixture_address
from moestat.kernels.build import tables as pass_tables
from moestat.kernels.records import NO_SUMS, Sums
from moestat.kernels.views import row
from moestat.solvers.problem import Evaluation, Iteration, Problem, Ran, Request, Run
from moestat.solvers.spring import pull
from moestat.solvers.trust_region.decrease import (
    ACCEPT,
    LEAST_PROGRESS,
    PATIENCE,
    SMALLEST_RADIUS,
    finest_decrease,
    is_converged,
    next_radius,
)
from moestat.solvers.trust_region.region import (
    NULL_CURVATURE,
    call_find_step,
    call_take_apart,
    region_addresses,
    region_arrays,
)

__all__ = ["NewtonRun", "run_newton"]

_STATUS = "converged", "stalled", "iteration limit"
_CONVERGED, _STALLED, _LIMIT, _INDEFINITE, _NOT_FINITE = range(5)


@compile_loop
@compact
def _newton_loop(
    addresses, pass_inputs, spring, region_inputs, limits, theta, trial, here, there, integers, work
):
    """Minimise from theta, in place, with score and Hessian `here` at the end.

    Returns the value, the status, the iterations and the passes.
    """
    at_pass, at_region, at_step = addresses
    coefficients, data, by_sample, terms = pass_inputs
    metric, lower, upper, basis, rotations = region_inputs
    max_iterations, tolerance = limits
    step, moved = row(work, 0), row(work, 1)
    n = theta.size
    value = -call_mixture(at_pass, (theta, coefficients, data, 2, here, by_sample, terms))
    for j in range(n):
        here.score[j] = -here.score[j]
        for i in range(n):
            here.hessian[j, i] = -here.hessian[j, i]
    value += pull(spring, theta, here.score, here.hessian)
    model = theta, here.score, here.hessian, metric, lower, upper
    n_free, used = call_take_apart(at_region, (*model, integers, basis, rotations, step))
    radius = 1.0
    progress = 0.0
    passes = 1
    for iteration in range(max_iterations):
        if used < 0:
            return value, _INDEFINITE, iteration, passes
        if iteration % PATIENCE == PATIENCE - 1:
            if progress < LEAST_PROGRESS:
                return value, _STALLED, iteration, passes
            progress = 0.0
        predicted, length = call_find_step(
            at_step,
            (*model, radius, NULL_CURVATURE, n_free, used, integers, basis, rotations, step),
        )
        if not math.isfinite(predicted):
            return value, _NOT_FINITE, iteration, passes
        if is_converged(predicted, length, radius, value, tolerance):
            return value, _CONVERGED, iteration, passes
        for j in range(n):
            point = theta[j] + step[j]
            point = point if point > lower[j] else lower[j]
            trial[j] = point if point < upper[j] else upper[j]
            moved[j] = trial[j] - theta[j]
        new = -call_mixture(at_pass, (trial, coefficients, data, 2, there, by_sample, terms))
        passes += 1
        for j in range(n):
            there.score[j] = -there.score[j]
            for i in range(n):
                there.hessian[j, i] = -there.hessian[j, i]
        new += pull(spring, trial, there.score, there.hessian)
        decrease = value - new
        largest = abs(decrease) if abs(decrease) > predicted else predicted
        if largest <= finest_decrease(value):
            decrease = 0.0
            for j in range(n):
                bent = 0.0
                for i in range(n):
                    bent += (here.hessian[j, i] - there.hessian[j, i]) * moved[i]
                decrease -= moved[j] * (0.5 * (here.score[j] + there.score[j]) + bent / 12.0)
        ratio = decrease / predicted
        if not math.isfinite(ratio):
            ratio = -1.0
        radius = next_radius(ratio, length, radius)
        if ratio > ACCEPT:
            value = new
            for j in range(n):
                theta[j] = trial[j]
                here.score[j] = there.score[j]
                for i in range(n):
                    here.hessian[j, i] = there.hessian[j, i]
            n_free, used = call_take_apart(at_region, (*model, integers, basis, rotations, step))
            progress += decrease
        elif radius < SMALLEST_RADIUS:
            return value, _STALLED, iteration + 1, passes
    return value, _LIMIT, max_iterations, passes


@dataclass(frozen=True)
class NewtonRan(Ran, Evaluation):
    """Where a run has ended, with score and Hessian."""


@dataclass(frozen=True, kw_only=True)
class NewtonRun(Run):
    """Newton's iteration as one request.

    Parameters
    ----------
    metric : ndarray of shape (P, P)
        Metric of the trust region.
    lower, upper : ndarray of shape (P,)
        The box.
    tolerance : float
        Decrease, in units of the objective, that is worth no step.
    max_iterations : int
        Iterations at most.
    """

    metric: FloatArray
    lower: FloatArray
    upper: FloatArray
    tolerance: float
    max_iterations: int

    def of(self, problem: Problem) -> NewtonRan:
        """Run it.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the metric is not positive definite, or the quadratic model is not finite.
        """
        family, P = problem.family, self.theta.size
        data = problem.inputs(self, slice(0, problem.data.levels[self.level].size))
        addresses = mixture_address(family.loops, data.y.dtype.char), *region_addresses()
        tables = (family.coefficients, data, *pass_tables(family.coefficients, data, 2))
        theta, none = self.theta.copy(), NO_SUMS.information
        here, there = (Sums(np.empty(P), np.empty((P, P)), none) for _ in range(2))
        integers, *arrays = region_arrays(P)
        value, code, iterations, passes = _newton_loop(
            addresses,
            tables,
            problem.spring,
            (self.metric, self.lower, self.upper, *arrays),
            (self.max_iterations, float(self.tolerance)),
            theta,
            np.empty(P),
            here,
            there,
            integers,
            np.empty((2, P)),
        )
        if code == _INDEFINITE:
            raise np.linalg.LinAlgError("the metric of the quadratic model is not definite")
        if code == _NOT_FINITE:
            raise np.linalg.LinAlgError("the quadratic model is not finite")
        return NewtonRan(value, here.score, here.hessian, theta, _STATUS[code], iterations, passes)


def run_newton(
    begin: Request,
    metric: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    tolerance: float,
    max_iterations: int,
) -> Iteration[NewtonRan]:
    """The iteration that begins with a request, as a `NewtonRun`."""
    return (
        yield NewtonRun(
            objective=begin.objective,
            theta=begin.theta,
            level=begin.level,
            metric=metric,
            lower=lower,
            upper=upper,
            tolerance=tolerance,
            max_iterations=max_iterations,
        )
    )
