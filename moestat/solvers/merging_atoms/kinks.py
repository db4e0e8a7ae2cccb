"""Steps in the moments of merging atoms, in turns with steps across kinks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from moestat.base.types import FloatArray
from moestat.solvers.merging_atoms.rules import RIDGE
from moestat.solvers.merging_atoms.steps import model_hessian, moment_steps
from moestat.solvers.problem import End, Evaluation, Iteration, Objective, Problem, Request
from moestat.solvers.rules import TRUST
from moestat.solvers.trust_region.decrease import finest_decrease, smallest_decrease
from moestat.solvers.trust_region.kinks import (
    KinkModel,
    OneSided,
    kink_locations,
    kinked_steps,
    one_sided,
)


def kinked_moment_steps(
    problem: Problem,
    level: int,
    theta: FloatArray,
    metric: FloatArray,
    tolerance: float,
    max_iterations: int,
) -> Iteration[tuple[End, Evaluation]]:
    """Alternate between steps across kinks and steps in the moments between kinks."""
    spent, at_edge = 0, False
    while True:
        patch = min(max_iterations - spent, TRUST.patience)
        (theta, status, n_steps, reach, *_), current = yield from kinked_steps(
            problem, level, theta, metric, tolerance, patch
        )
        spent += n_steps
        if spent >= max_iterations:
            return End(theta, "iteration limit", spent, reach), current
        cell = one_sided(problem, level, theta, current, metric, 1.0)
        lower, upper = _open_box(problem, cell)
        inside = np.minimum(np.maximum(theta, lower), upper)
        (theta, outcome, n_steps, *_), current = yield from moment_steps(
            problem, inside, metric, lower, upper, tolerance, max_iterations - spent, level
        )
        spent += n_steps
        # A maximum at the edge of the open cell is one on the kink, which may hold it.
        closed = np.where(theta <= lower, cell.lower, np.where(theta >= upper, cell.upper, theta))
        is_done = n_steps == 0 and status == outcome == "converged"
        if is_done and (at_edge or (closed == theta).all()):
            point, reach, n_trials = yield from _try_jumps(
                problem, level, theta, current, metric, tolerance, reach
            )
            spent += n_trials
            if (point == theta).all() or spent >= max_iterations:
                return End(theta, outcome, spent, reach), current
            closed, is_done = point, False
        theta, at_edge = closed, is_done


def _try_jumps(
    problem: Problem,
    level: int,
    theta: FloatArray,
    current: Evaluation,
    metric: FloatArray,
    tolerance: float,
    reach: float,
) -> Iteration[tuple[FloatArray, float, int]]:
    """Try the jumps across kinks that the model in the moments predicts, as a certificate will.

    Steps across kinks do not use moments, in which a curvature may have another sign.  Returns the
    parameters to go on from (theta (P,) itself if no jump gained), the length up to which every
    jump predicts no gain or has been tried without gain, and the number of passes.
    """
    model, n_trials = between_kinks(problem, level, theta, current, metric), 0
    while True:
        move = KinkModel(problem, level, theta, model, metric, reach).step(1.0, reach)
        if move.jump == 0.0 or move.decrease <= smallest_decrease(current.value, tolerance):
            return theta, reach, n_trials
        proposed = yield Request(Objective.OBSERVED, move.point, level)
        n_trials += 1
        if current.value - proposed.value > finest_decrease(current.value):
            return move.point, reach, n_trials
        reach = 0.25 * min(move.jump, reach)


def between_kinks(
    problem: Problem, level: int, theta: FloatArray, current: Evaluation, metric: FloatArray
) -> Evaluation:
    """The quadratic model in the moments, with the open cell around theta (P,) as its box."""
    box = _open_box(problem, one_sided(problem, level, theta, current, metric, 1.0))
    return replace(current, hessian=model_hessian(problem, theta, current, metric, *box))


def _open_box(problem: Problem, cell: OneSided) -> tuple[FloatArray, FloatArray]:
    """Bounds (P,) and (P,) of a cell between kinks without the kinks at its edges.

    On a kink the gradient belongs to neither side.  Coordinates that a kink holds stay on it.
    """
    locations = kink_locations(problem.family)
    lower, upper = cell.lower.copy(), cell.upper.copy()
    margin = RIDGE.margin * (upper[locations] - lower[locations])
    lower[locations] += margin
    upper[locations] -= margin
    return lower, upper
