"""A fit that is under way: one iteration of the solver from each start, and the best end of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import as_generator
from moestat.base.warnings import InterruptedWarning
from moestat.estimation.data.priors import with_prior
from moestat.estimation.data.rounding import resolution_of
from moestat.estimation.fit.components import with_positive_factors
from moestat.estimation.fit.doubts import Doubt, doubts
from moestat.estimation.fit.ends import ends_of
from moestat.estimation.fit.fitted import Fitted, warn_and_note
from moestat.estimation.fit.identified import shortest, without_spare_columns
from moestat.estimation.fit.job import FitJob
from moestat.estimation.fit.relabel import by_weight
from moestat.estimation.fit.standardise import Standardised, prepare
from moestat.estimation.progress import LOG
from moestat.estimation.rules import SAME_HEIGHT
from moestat.estimation.search.agreement import Agreement
from moestat.estimation.search.higher import SearchRecord
from moestat.estimation.search.maximum import NEAR, Finalists, MaximumStarts, judge
from moestat.estimation.search.modes import ModeRecord
from moestat.estimation.search.options import SearchRule
from moestat.estimation.starts import draw_starts, into_box
from moestat.solvers import Solution, Solver
from moestat.solvers.driver import Unfinished, drive, until
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Iteration, Problem, Rows, Target

__all__ = ["RunningFit"]


@dataclass
class RunningFit:
    """A data set with one iteration, on a problem of its own, from each start.

    `counts` says how many runs of a search have come to each start, and `lower` how many ended too
    low to start one.
    """

    job: FitJob
    original: Problem  # family and data in the units of the user
    solver: Solver
    inner: Problem  # what the solver works on
    standard: Standardised | None = None  # None in the family's own coordinates and box
    problems: list[Problem] = field(default_factory=list[Problem])
    iterations: list[Iteration[Solution]] = field(default_factory=list[Iteration[Solution]])
    labels: list[str] = field(default_factory=list[str])
    counts: list[int] = field(default_factory=list[int])
    lower: int = 0
    record: SearchRecord | ModeRecord | None = None
    searches: list[Finalists] = field(default_factory=list[Finalists])  # for the maximum
    risk: float = Agreement.risk
    interrupted: bool = False
    late: bool = False

    @classmethod
    def in_own_box(cls, job: FitJob, target: Target) -> Self:
        """A fit in the coordinates of the family and over its box, without starts yet."""
        solver, problem = job.chosen_solver(), job.problem(target.whole)
        job.check_target(problem, target)
        return cls(job, problem, solver, with_prior(problem, job.prior))

    @classmethod
    def in_data_box(cls, job: FitJob, target: Target) -> Self:
        """A fit in standardised coordinates and over a box about the data, without starts yet."""
        solver, problem = job.chosen_solver(), job.problem(target.whole)
        job.check_target(problem, target)
        return cls.standardised(job, problem, solver, problem.data)

    @classmethod
    def standardised(cls, job: FitJob, problem: Problem, solver: Solver, rows: Rows) -> Self:
        """A fit in standardised coordinates and over a box about `rows` in memory, all or some."""
        steps = job.data.resolution
        steps = resolution_of(job.family, rows) if steps is None else steps
        job = replace(job, data=replace(job.data, resolution=steps))
        standard = prepare(problem, rows, steps, job.prior)
        return cls(job, problem, solver, standard.problem, standard)

    def start(self) -> None:
        """Draw the starts of all rules and begin an iteration from each."""
        rng = as_generator(self.job.rng)
        for rule in self.job.rules():
            if self.interrupted:
                break
            n_seen = 0
            if isinstance(rule, MaximumStarts):
                self.add_finalists(rule.search(self.inner, rng))
                continue
            if isinstance(rule, SearchRule):
                n_seen = rule.rows(self.inner)
                points = self.search(rule, self.inner, rng)
            else:
                drawing = self.standard
                points = drawing.draw(rule, rng) if drawing else draw_starts(rule, self.inner, rng)
                self.counts += [1] * len(points)
            self.add_starts(rule.name, points, replace(self.inner, seen=n_seen))
        LOG.info("climbing on %d rows from %d starts", self.inner.data.size, len(self.problems))

    def add_finalists(self, found: Finalists) -> None:
        """An iteration from each finalist of a search for the maximum."""
        self.counts += found.counts
        self.lower += found.lower
        self.searches.append(found)
        known = replace(self.inner, seen=self.inner.data.size)
        self.add_starts(NEAR, found.points[:1], known)
        self.add_starts(MaximumStarts.name, found.points[1:], known)

    def search(self, rule: SearchRule, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The starts (m, P) of a search; those so far if it is interrupted."""
        self.risk = rule.risk
        on_all = problem.data is self.inner.data
        record = rule.new_record(on_all, self.job.coefficients_of_higher)
        if rule.is_calibrated:
            self.record = record
        try:
            problem = without_spare_columns(problem)
            points, counts = rule.find_starts(problem, rng, record)
        except KeyboardInterrupt:
            self.interrupted, points = True, rule.so_far(record, problem)
            counts = [1] * len(points)
        self.counts += counts[: len(points)]
        self.lower += sum(counts[len(points) :])
        return points

    def add_starts(self, name: str, points: FloatArray, problem: Problem) -> None:
        """An iteration from each of the starts (m, P) of a rule."""
        points = into_box(problem.family, problem.with_known_scale(points))
        for j, point in enumerate(points):
            self.problems.append(problem.restart())
            self.iterations.append(self.solver.steps(self.problems[-1], point))
            self.labels.append(f"{name} {j}")

    def leave_out(self, failed: Sequence[bool], ends: Sequence[Any]) -> list[Any]:
        """The ends of runs that did not fail; the others count as runs that ended lower."""
        self.lower += sum(n for n, out in zip(self.counts, failed, strict=True) if out)
        kept = [j for j, out in enumerate(failed) if not out]
        self.problems = [self.problems[j] for j in kept]
        self.iterations = [self.iterations[j] for j in kept]
        self.labels = [self.labels[j] for j in kept]
        self.counts = [self.counts[j] for j in kept]
        return [ends[j] for j in kept]

    def solutions_in_time(
        self, ends: Sequence[Solution | Unfinished | None], target: Target
    ) -> list[Solution | None]:
        """The solutions, None for those that the deadline stopped.

        One step from the best of those that it stopped gives a solution, too: it may be higher than
        all that have converged.
        """
        finished = [None if isinstance(end, Unfinished) else end for end in ends]
        heights = [end.height if isinstance(end, Unfinished) else -np.inf for end in ends]
        stopped = [j for j, end in enumerate(ends) if isinstance(end, Unfinished)]
        self.late = bool(stopped)
        if self.late:
            at, solver = max(stopped, key=lambda j: heights[j]), cast(Any, self.solver)
            best, problem = ends[at], self.problems[at]
            assert isinstance(best, Unfinished)
            steps = "max_iterations" if hasattr(solver, "max_iterations") else "epochs"
            with until(np.inf):
                last = replace(solver, **{steps: 1}).steps(problem, best.theta)
                (end,) = drive([last], [problem], target=target)
            finished[at] = replace(end, certificate=replace(end.certificate, status="time limit"))
        return finished

    def with_probability(self, best: Solution) -> Solution:
        """The best solution with the probability of a higher one, where that was estimated.

        It was estimated neither for starts of the user's nor for other priors than the weak one.
        """
        family, certificate = self.job.family, best.certificate
        known = self.job.coefficients_of_higher is not None and self.standard
        if self.interrupted or self.late or not known or self.record is None:
            return best
        runs = certificate.n_starts
        chance = self.record.chance(family.n_experts, runs * certificate.agreement, runs)
        return replace(best, certificate=replace(certificate, p_higher=chance))

    def order_experts(self, result: Fitted) -> Fitted:
        """The result with its experts in their final order."""
        return by_weight(result) if self.job.by_weight else result

    def finish(self, ends: Sequence[Solution | None], seconds: float) -> Fitted:
        """The best of the solutions, one per iteration; None where one was interrupted."""
        positions = [j for j, end in enumerate(ends) if end is not None]
        solutions = [end for end in ends if end is not None]
        labels, counts = [self.labels[j] for j in positions], [self.counts[j] for j in positions]
        least = max((search.truth for search in self.searches), default=-np.inf)
        best = _best(solutions, labels, [*counts, self.lower], least, seconds)
        best = self.with_probability(best)
        if self.searches and f"{NEAR} 0" in labels:
            best = judge(self.searches, best, solutions[labels.index(f"{NEAR} 0")])
        doubts_of_fit: list[Doubt] = []
        if self.job.prior is not None:
            assert isinstance(self.problems[0], PenalisedProblem)
            best = replace(
                best,
                log_likelihood=best.log_likelihood + self.problems[0].penalty.value(best.theta),
            )
        if self.standard:
            best = shortest(self.standard.problem, best)
        family, seen = self.job.family, None
        if family.likelihood.effects is not None:
            best = with_positive_factors(family, best)
        record, standard = self.record, self.standard
        described = standard.describe(best) if standard else None
        if standard and described and record and (modes := record.modes_on_all):
            seen = ends_of(standard, described, modes)
        result = Fitted(
            family,
            standard.outward(best) if standard else best,
            self.solver.name,
            self.job.data.weight,
            _variance(self.original.data),
            standard=described,
            prior=self.job.prior,
            data=self.job.data,
            seen=seen,
        )
        result = self.order_experts(result)
        if self.standard:
            doubts_of_fit = doubts(self.standard, result, self.risk)
        if self.interrupted or self.late or len(solutions) < len(ends):
            why, which = "was interrupted", f"that were finished, {len(solutions)}"
            if self.late:
                why, which = "reached its time_limit", "so far"
            message = (
                f"the fit {why}: it is the best of the starts {which}, and there may be a higher"
                " maximum"
            )
            doubts_of_fit = [*doubts_of_fit, (InterruptedWarning, message)]
        return warn_and_note(result, doubts_of_fit)


def _best(
    solutions: Sequence[Solution],
    labels: Sequence[str],
    counts: list[int],
    least: float,
    seconds: float,
) -> Solution:
    """The certified solution of highest likelihood, else the highest, with the batch's record.

    A solution with a collapsed atom is set aside when there is another of height `least` or more:
    its likelihood, which has no bound, is high because the atom fits a few samples, or rounded ones
    on one line.
    """
    heights = np.array([solution.log_likelihood for solution in solutions])
    certified = np.array([solution.certificate.certified for solution in solutions])
    sound = np.array([not solution.certificate.collapsed for solution in solutions])
    heights = np.where(np.isfinite(heights), heights, -np.inf)
    eligible = sound & np.isfinite(heights)
    if not np.any(heights[eligible] >= least):
        eligible = np.ones_like(sound)
    top = float(heights[eligible].max())
    near = eligible & (heights >= top - SAME_HEIGHT)
    # A certified fit is preferred among the highest ones alone: where an uncertified fit is higher
    # than every certified one, none of these is the global maximum, and the highest is returned.
    pool = np.flatnonzero(near & certified if np.any(near & certified) else eligible)
    winner = int(pool[np.argmax(heights[pool])])
    runs = sum(counts)
    optima = np.sort(heights[certified])
    n_optima = int(np.sum(np.diff(optima) > SAME_HEIGHT) + (optima.size > 0))
    certificate = replace(
        solutions[winner].certificate,
        seconds=seconds,
        start=labels[winner],
        n_starts=runs,
        n_optima=n_optima,
        n_collapsed=int(np.sum(~sound)),
        agreement=float(np.asarray(counts)[:-1][near].sum()) / runs,
    )
    return replace(solutions[winner], certificate=certificate)


def _variance(data: Rows) -> float:
    """Variance of a continuous response, nan for classes and for several responses."""
    if data.y.dtype.names or np.issubdtype(data.y.dtype, np.integer):
        return float("nan")
    return float(data.covariance[-1, -1])
