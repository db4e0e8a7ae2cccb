"""The default search: the highest mode of the posterior density under the weak prior.

The maximum of the likelihood to which this mode leads is the default estimate.  The likelihood
itself has its highest values where a gate diverges or an expert describes a few rows; in
simulations such ends predict new rows worse than the maximum beside them (`benchmarks/regular.py`).

Starts of four kinds (`Pool`) are run to convergence in batches.  After each batch neighbours of the
best mode are run, too: points that it reaches on resamples of the rows, or with one expert
replaced.  The search stops where the estimated probability of a higher mode is at most `risk`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.estimation.data.priors import penalised, weak_penalty
from moestat.estimation.progress import LOG, so_far
from moestat.estimation.rules import MODES, SAME_HEIGHT, SEARCH
from moestat.estimation.search.agreement import Pool
from moestat.estimation.search.higher import Mode
from moestat.estimation.search.neighbours import climb_on_resamples, draw_moves
from moestat.estimation.search.runs import RunEnd, run_starts, some_rows
from moestat.solvers.driver import is_late
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Problem
from moestat.solvers.rules import NEWTON_STEPS, NEWTON_TOLERANCE

__all__ = ["ModeRecord", "ModeSearch"]


@dataclass
class ModeRecord:
    """The record of a search for modes, from which the probability of a higher one is estimated."""

    modes: list[Mode] = field(default_factory=list[Mode])
    """Distinct modes, the highest first."""
    starts: int = 0
    """Number of starts that were run."""
    neighbours: int = 0
    """Number of neighbours of the best mode that were run since it was found."""
    on_all: bool = True
    """Whether the search ran on all rows of the fit."""

    @property
    def best(self) -> Mode:
        """The highest mode."""
        return self.modes[0]

    @property
    def probability(self) -> float:
        """Estimated probability that a mode exists which is higher than the best one.

        A logistic model of the number of runs that reached the best mode and of the number of its
        neighbours of which none was higher, fitted by `benchmarks/modes.py`.  Where few neighbours
        come back to the mode there are many others.
        """
        if not self.modes:
            return 1.0
        covariates = 1.0, np.log(self.best.runs + 0.5), np.log1p(self.neighbours)
        return float(1.0 / (1.0 + np.exp(-np.dot(MODES.coefficients, covariates))))

    @property
    def modes_on_all(self) -> Sequence[Mode]:
        """Its modes, the highest first, if they are of all rows of the fit; else none."""
        return self.modes if self.on_all else ()

    def chance(self, n_experts: int, reached: float, runs: int) -> float:
        """The `probability`, which does not depend on runs after the search."""
        return self.probability

    def add(self, ends: Sequence[RunEnd], are_starts: bool = True) -> None:
        """Enter the ends of a batch of starts, or of neighbours of the best mode."""
        before = self.best.end.height if self.modes else -np.inf
        for end in ends:
            if np.isfinite(end.height):
                mode = self._enter(end)
                mode.runs += 1
                mode.starts += are_starts
        self.modes.sort(key=lambda mode: -mode.end.height)
        if are_starts:
            self.starts += len(ends)
        else:
            self.neighbours += len(ends)
        if self.modes and self.best.end.height > before + SAME_HEIGHT:
            self.neighbours = 0

    def _enter(self, end: RunEnd) -> Mode:
        """The mode of this height, which is added if no run has reached it before."""
        for mode in self.modes:
            if abs(mode.end.height - end.height) <= SAME_HEIGHT:
                return mode
        self.modes.append(Mode(end))
        return self.modes[-1]


@dataclass(frozen=True)
class ModeSearch:
    """Batches of starts and rounds of neighbours, until a higher mode is improbable.

    Parameters
    ----------
    pool : Pool
        The starts of a batch; one of each kind by default.  The first three batches, which are
        always needed, run together.
    risk : float
        Largest accepted probability of a higher mode.
    batches : int, optional
        Largest number of batches; four for each expert by default.
    time_limit : float
        Number of seconds after which no further batch begins.

    Notes
    -----
    Of data with many rows a batch runs on a part of the rows first, and its best modes then on
    more rows: modes of parts are near those of all rows.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("gaussian", gate="softmax", n_experts=2)
    >>> theta = F.pack({"beta0": [0, 0], "beta1": [5, 0], "a": [2, -2], "b": [0, 0], "nu": [1, 1]})
    >>> X, y = sample(F, theta, n=300, rng=0)
    >>> fit(F, X, y, starts=[ModeSearch(risk=0.01)], rng=0).certificate.certified
    True
    """

    pool: Pool = field(default_factory=lambda: Pool(MODES.starts))
    risk: float = MODES.risk
    batches: int | None = None
    time_limit: float = np.inf
    name: str = MODES.name
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        real_in("risk", self.risk, 0.0, 1.0)
        if self.batches is not None:
            positive_int("batches", self.batches)
        if not (isinstance(self.time_limit, float) and self.time_limit == np.inf):
            real_in("time_limit", self.time_limit, 0.0)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The highest mode, shape (1, P)."""
        return self.find_starts(problem, rng)[0][:1]

    def rows(self, problem: Problem) -> int:
        """Number of rows that a search runs on; its starts have seen these."""
        return SEARCH.in_all * _part(problem)

    @property
    def is_calibrated(self) -> bool:
        """Its record says how probable a higher mode is."""
        return True

    def new_record(self, on_all: bool, coefficients: tuple[float, ...] | None) -> ModeRecord:
        """A record without modes."""
        return ModeRecord(on_all=on_all)

    def so_far(self, record: Any, problem: Problem) -> FloatArray:
        """The starts (m, P) of a search that was interrupted."""
        points, start = so_far(), self.release(record, problem)
        return points if start is None else start[None]

    def find_starts(
        self, problem: Problem, rng: np.random.Generator, record: ModeRecord | None = None
    ) -> tuple[FloatArray, list[int]]:
        """The highest mode (1, P), and how many starts reached each mode, the highest first.

        The modes that the search has seen are entered in `record`.
        """
        record = ModeRecord() if record is None else record
        family, deadline = problem.family, time.monotonic() + self.time_limit
        posterior = problem
        if not isinstance(problem, PenalisedProblem):
            posterior = penalised(problem, weak_penalty(problem))
        size = _part(problem)
        sample = some_rows(posterior, rng, SEARCH.in_all * size)
        part = some_rows(posterior, rng, size)
        record.on_all = record.on_all and sample is posterior
        is_large = sample.data.size > MODES.wide * part.data.size
        wide = some_rows(posterior, rng, MODES.wide * size) if is_large else sample
        first = part if wide.data.size > MODES.most * part.data.size else wide
        plain = Problem(family, part.data, resolved=problem.resolved)
        is_long = wide.data.size * family.n_params**2 > SEARCH.work

        def climb(points: FloatArray) -> list[RunEnd]:
            left = list[RunEnd]()
            if first is not wide or is_long:
                ends = run_starts(first, points, MODES.steps)
                kept = -(-len(ends) // MODES.kept) if is_long else len(ends)
                points = np.array([end.theta for end in ends[:kept]])
                left = [RunEnd(end.theta, -np.inf) for end in ends[kept:]]
            return [*run_starts(wide, points, MODES.longest), *left]

        n_experts = family.n_experts
        made, most = 0, self.batches or _batches(wide)
        while made < most:
            together = 1 if made else max(1, min(most, MODES.first // (self.pool.count or 1)))
            pool = replace(self.pool, count=together * (self.pool.count or 1))
            record.add(climb(pool.draw(plain, rng)))
            if record.modes and n_experts > 1:
                kinds = (0, 1) if together > 1 else (made % 2,)
                best = record.best.end.theta
                neighbours = [self._draw_neighbours(plain, part, best, j, rng) for j in kinds]
                record.add(climb(np.vstack(neighbours)), are_starts=False)
            made += together
            LOG.info("batch %d: probability of a higher mode %.2f", made, record.probability)
            if record.probability <= self.risk or time.monotonic() > deadline or is_late():
                break
        if wide is not sample:
            self._refine(record, sample)
        start = self.release(record, problem.replace_data(sample.data))
        counts = [mode.starts for mode in record.modes]
        counts[:1] = [max(starts, 1) for starts in counts[:1]]  # neighbours alone may reach it
        counts.append(max(0, record.starts - sum(counts)))
        return (self.pool.draw(plain, rng)[:1] if start is None else start[None]), counts

    def _draw_neighbours(
        self,
        plain: Problem,
        part: Problem,
        theta: FloatArray,
        kind: int,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Points near a mode theta (P,): on resamples (kind 0), or with one expert replaced (1)."""
        count = plain.family.n_experts
        if kind:
            return draw_moves(plain, theta, count, rng)
        return climb_on_resamples(part, theta, count, rng, MODES.steps)

    def release(self, record: ModeRecord, problem: Problem) -> FloatArray | None:
        """The end (P,) of a climb of the problem's objective from the highest mode.

        Where this leads to an expert that has collapsed, at which the likelihood has no bound, it
        is the end of a climb from the next mode that leads elsewhere; the modes before it go.
        """
        for place, mode in enumerate(record.modes):
            (end,) = run_starts(problem, mode.end.theta[None], NEWTON_STEPS, NEWTON_TOLERANCE)
            if np.isfinite(end.height):
                record.modes, mode.collapsed = record.modes[place:], mode.collapsed + place
                return end.theta
        return record.best.end.theta if record.modes else None

    def _refine(self, record: ModeRecord, sample: Problem) -> None:
        """Climb from the best modes on more rows, and put them into the order of these heights."""
        refined = ModeRecord()
        for mode in record.modes[: SEARCH.returned]:
            (end,) = run_starts(sample, mode.end.theta[None], NEWTON_STEPS)
            if np.isfinite(end.height):
                same = refined._enter(end)
                same.starts, same.runs = same.starts + mode.starts, same.runs + mode.runs
        refined.modes.sort(key=lambda mode: -mode.end.height)
        record.modes = refined.modes or record.modes


def _batches(problem: Problem) -> int:
    """Largest number of batches: four for each expert, fewer where a run takes seconds."""
    work = problem.data.size * problem.family.n_params**2
    return int(np.clip(MODES.work / work, 1, MODES.batches * problem.family.n_experts))


def _part(problem: Problem) -> int:
    """Number of rows of a part."""
    return max(SEARCH.least, MODES.rows * problem.family.n_params)
