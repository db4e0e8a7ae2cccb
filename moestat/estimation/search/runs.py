"""Runs of a search from starts, on a part of the rows, and how many heights they have come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.progress import keep
from moestat.estimation.rules import RUN_TOLERANCE, SAME_HEIGHT, SEARCH
from moestat.estimation.starts import into_box
from moestat.model.family import Family
from moestat.solvers import (
    GaussNewtonBFGS,
    Newton,
    NewtonSquares,
    PieceSearch,
    QuasiNewton,
    Solver,
)
from moestat.solvers.bfgs import bfgs_steps
from moestat.solvers.collapse import collapsed_atoms
from moestat.solvers.driver import Cores, attempt, succeeded
from moestat.solvers.least_squares.base import LeastSquaresSolver
from moestat.solvers.problem import Iteration, Objective, Problem, Request
from moestat.solvers.quasi_newton import MANY
from moestat.solvers.squares import profile_log_likelihood
from moestat.solvers.trust_region.newton_loop import newton_steps

Point = tuple[FloatArray, float]
"""Parameters (P,) of a run, and its log-likelihood."""

_THREADS: ContextVar[int | None] = ContextVar("threads", default=1)


@contextmanager
def searching_on(threads: int | None) -> Iterator[None]:
    """Advance runs inside the block on this number of threads, on all cores for None.

    Outside of a block they advance on one.  Their ends do not depend on it.
    """
    token = _THREADS.set(threads)
    try:
        yield
    finally:
        _THREADS.reset(token)


class RunEnd(NamedTuple):
    """The end of a run."""

    theta: FloatArray
    """Parameters (P,)."""
    height: float
    """Log-likelihood; -inf with a collapsed atom."""


def least_squares(family: Family) -> LeastSquaresSolver:
    """The solver for least squares: by Hessians if they are small and exist, else by gradients."""
    by_hessians = family.n_params <= MANY and not family.has_kinked_mean
    return NewtonSquares() if by_hessians else GaussNewtonBFGS()


def default_solver(family: Family) -> Solver:
    """The solver of a fit, unless the user gives one; that of the short runs is in `_iteration`.

    It is Newton's method, a quasi-Newton method if there are many parameters, a search over
    discontinuities, or least squares.
    """
    if family.is_regression:
        return least_squares(family)
    if family.has_jumps:
        return PieceSearch()
    return QuasiNewton() if family.n_params > MANY else Newton()


def group_by_height(ends: Sequence[RunEnd]) -> tuple[list[FloatArray], list[int]]:
    """Parameters of one end at each height, the highest first, and the number of ends there."""
    found = places_by_height(ends)
    return [ends[places[0]].theta for places in found], [len(places) for places in found]


def places_by_height(ends: Sequence[RunEnd]) -> list[list[int]]:
    """Places of the ends at each height, the highest first."""
    found: list[list[int]] = []
    top = np.inf
    for place in sorted(range(len(ends)), key=lambda place: -ends[place].height):
        if found and top - ends[place].height <= SAME_HEIGHT:
            found[-1].append(place)
        else:
            found, top = [*found, [place]], ends[place].height
    return found


def heights_at(problem: Problem, points: FloatArray) -> FloatArray:
    """Log-likelihoods (m,) at points (m, P), as those of the ends of runs; -inf out of range."""
    size = float(problem.data.weight.sum())
    heights = np.full(len(points), -np.inf)
    for place, theta in enumerate(points):
        try:
            if problem.family.is_regression:
                squares = problem.evaluate(Request(Objective.RESIDUALS, theta)).value
                heights[place] = profile_log_likelihood(squares, size)
            else:
                heights[place] = -problem.evaluate(Request(Objective.VALUE, theta)).value
        except np.linalg.LinAlgError:
            continue
    return np.where(np.isfinite(heights), heights, -np.inf)


def climb_all(
    problems: Sequence[Problem],
    points: FloatArray,
    steps: int,
    tolerance: float = RUN_TOLERANCE,
) -> list[Point]:
    """The ends of climbs from points (m, P) of the problems, after at most `steps` steps.

    A climb out of the range of float64 has failed: it ends where it began, at height -inf.
    """
    newton = Newton(tolerance, steps)
    runs = [_iteration(*each, newton) for each in zip(problems, points, strict=True)]
    ends = attempt(runs, problems, Cores(_THREADS.get()))
    known: list[Point | Exception] = [
        (point, -np.inf) if isinstance(end, np.linalg.LinAlgError) else end
        for end, point in zip(ends, points, strict=True)
    ]
    return succeeded(known)


def run_starts(
    problem: Problem,
    points: FloatArray,
    steps: int,
    tolerance: float = RUN_TOLERANCE,
) -> list[RunEnd]:
    """The ends of climbs from points (m, P), after at most `steps` steps, best first.

    Ends at one height are in the order of their starts: which of them is the highest, and with it
    the numbers of the experts, would depend on the processor's rounding.
    """
    ends = run_each(problem, points, steps, tolerance)
    return [ends[place] for places in places_by_height(ends) for place in sorted(places)]


def run_each(
    problem: Problem,
    points: FloatArray,
    steps: int,
    tolerance: float = RUN_TOLERANCE,
) -> list[RunEnd]:
    """The ends of climbs from points (m, P), after at most `steps` steps, in their order."""
    ends = climb_each(problem, points, steps, tolerance)
    # If all atoms have collapsed, the data lie exactly on k lines, and the fit is no artefact.
    k = problem.family.n_experts
    sound = [np.isfinite(h) and len(collapsed_atoms(problem, theta)) in (0, k) for theta, h in ends]
    judged = [
        end if ok else RunEnd(end.theta, -np.inf) for end, ok in zip(ends, sound, strict=True)
    ]
    keep(judged, steps, problem.data.size)
    return judged


def climb_each(
    problem: Problem,
    points: FloatArray,
    steps: int,
    tolerance: float = RUN_TOLERANCE,
) -> list[RunEnd]:
    """As `run_each`, with the heights that ends with collapsed atoms have in the box."""
    starts = into_box(problem.family, problem.with_known_scale(points))
    # The starts were found on other rows, so a climb on previews would not improve them.
    known = replace(problem, seen=problem.data.size)
    ends = climb_all([known.restart() for _ in starts], starts, steps, tolerance)
    return [RunEnd(theta, height) for theta, height in ends]


def some_rows(problem: Problem, rng: np.random.Generator, n_rows: int) -> Problem:
    """The problem on `n_rows` rows, drawn by their weights, or on compressed data."""
    data = problem.data
    if data.size <= n_rows:
        return problem
    compressed = [level for level in data.levels[:-1] if not level.preview]
    if compressed:
        return problem.replace_data(compressed[-1])
    units = data.units
    count = max(1, n_rows * units.size // data.size)
    if np.ptp(units) == 0.0:
        indices = np.sort(rng.choice(units.size, count, replace=False))
        return problem.replace_data(data.take(indices, np.ones(count)))
    chosen = rng.choice(units.size, count, p=units / units.sum())
    indices, times = np.unique(chosen, return_counts=True)
    return problem.replace_data(data.take(indices, times.astype(np.float64)))


def _iteration(problem: Problem, start: FloatArray, newton: Newton) -> Iteration[Point]:
    """A run of a limited number of steps, with the steps of the solver that a fit would use.

    It does without what certifies an end: Hessians of many parameters, and a search across jumps.
    """
    family, steps = problem.family, newton.max_iterations
    if family.has_jumps:
        ran = yield from newton_steps(problem, Objective.OBSERVED, start, newton.tolerance, steps)
        return ran.theta, -ran.value
    if family.is_regression:
        # Along a flat ridge steps that gain little each gain much together: the tolerance is not
        # that of other runs.
        solver = replace(least_squares(family), max_iterations=SEARCH.bfgs * steps)
        end, evaluation = yield from solver.climb(problem, start)
        size = float(problem.data.weight.sum())
        return end.theta, profile_log_likelihood(evaluation.value, size)
    if family.n_params > SEARCH.hessians:
        limit = SEARCH.bfgs * steps
        end, evaluation, _ = yield from bfgs_steps(problem, start, -1, limit, newton.tolerance)
        return end, -evaluation.value
    end, evaluation = yield from newton.climb(problem, start)
    return end.theta, -evaluation.value
