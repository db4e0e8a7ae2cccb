"""Fits in one batch: every data set is checked, each start climbs, the best end is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, cast

import numpy as np

from moestat.base.memory import check_room
from moestat.base.types import FloatArray
from moestat.base.validate import (
    as_design,
    as_generator,
    as_weights,
    is_sequence,
    short,
)
from moestat.base.warnings import InterruptedWarning, SeparationWarning, warn_caller
from moestat.estimation.data import Data, check_size, spans
from moestat.estimation.doubts import Doubt, doubts
from moestat.estimation.groups import arranged
from moestat.estimation.higher import probability_of_higher
from moestat.estimation.inference.identified import shortest, without_spare_columns
from moestat.estimation.priors import Prior, data_units
from moestat.estimation.progress import LOG, answering, so_far
from moestat.estimation.random_effects import with_positive_factors
from moestat.estimation.random_terms import check_random_effects
from moestat.estimation.relabel import by_weight
from moestat.estimation.results import MoEResults
from moestat.estimation.rounding import least_variances, resolution_of
from moestat.estimation.rules import SAME_HEIGHT
from moestat.estimation.runs import Seen
from moestat.estimation.searching import Agreement, least_squares, on_threads, search_of
from moestat.estimation.standardise import Standardised, standardise
from moestat.estimation.starts import StartRule, drawn, into_box
from moestat.model.family import Family
from moestat.model.responses import columns_of
from moestat.solvers import Newton, QuasiNewton, Search, Solution, Solver
from moestat.solvers.driver import Cores, Unfinished, attempt, drive, until
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Iteration, Problem, Sample, Target
from moestat.solvers.quasi_newton import MANY
from moestat.solvers.trust_region.kinks import has_kinks

__all__ = [
    "BegunFit",
    "FitJob",
    "begin",
    "check_response",
    "checked_problem",
    "checked_starts",
    "default_solver",
    "end_fits",
    "fit_jobs",
]

_SQUARES, _ROWS = 48, 6
"""Matrices of all parameters, and copies of the data, at the peak of a fit, as measured."""


def checked_problem(job: FitJob, whole: bool = False) -> Problem:
    """Data as the loops read it, after every check that does not depend on the solver."""
    family, read = job.family, job.data is not None
    design = job.X.T if read else as_design(job.X, family.n_features)
    response = family.likelihood.encode(job.y, family.n_classes)
    n = design.shape[1]
    if response.shape[0] != n:
        raise ValueError(f"X has {n} samples but y has {response.shape[0]}")
    weight = job.sample_weight if read else as_weights(job.sample_weight, n)
    numbers = (("y", values) for values in columns_of(response))
    for name, values in (("X", design), *numbers):
        check_size(name, values.min(-1, initial=0.0), values.max(-1, initial=0.0))
    used = weight > 0
    check_response(family, response if used.all() else response[used])
    size = float(weight.sum())
    if size < family.n_free_params and job.prior is None:
        raise ValueError(
            f"n = {size:g} samples cannot determine {family.n_free_params} free parameters;"
            ' prior="weak" adds what they do not tell'
        )
    check_random_effects(family, job.groups, job.prior)
    if not read:
        constant = np.intersect1d(np.flatnonzero(spans(design, used) == 0), family.read)
        if constant.size:
            raise ValueError(
                f"X: column {constant[0]} is constant; its slope cannot be told from the intercept"
            )
    return Problem(family, arranged(design, response, weight, job.groups, whole))


def check_response(family: Family, response: Any) -> None:
    """Responses whose maximum-likelihood estimate would not exist for want of variety."""
    likelihood = family.likelihood
    for one, (own, _) in zip(likelihood.parts, family.marginals, strict=True):
        try:
            check_response(own, response[one.field])
        except ValueError as error:
            raise ValueError(f"response {one.name!r}: {error}") from None
    if likelihood.parts:
        return
    if likelihood.counts:
        assert likelihood.link is not None
        level = float(np.mean(likelihood.level(response)))
        if level == 0.0 and not ("censored" in likelihood.options and np.any(response)):
            raise ValueError("y is 0 everywhere; the predictor of its mean would diverge")
        with np.errstate(divide="ignore"):
            end = np.isinf(likelihood.link(level))
        if level > 0.0 and end:
            raise ValueError("y is the number of trials everywhere; its predictor would diverge")
        return
    if likelihood.support is None:
        if np.ptp(response) == 0:
            raise ValueError("y is constant; its variance would be 0")
        return
    labels = np.asarray(likelihood.decode(likelihood.support(family.n_classes)))
    absent = np.setdiff1d(labels, likelihood.decode(np.unique(response)))
    if absent.size:
        raise ValueError(
            f"y: class {absent[0]} of 1..{family.n_classes} never occurs; its logits would"
            " diverge. Recode y or lower n_classes"
        )


def _variance(data: Sample) -> float:
    """Variance of a continuous response, nan for classes and for several responses."""
    if data.y.dtype.names or np.issubdtype(data.y.dtype, np.integer):
        return float("nan")
    return float(data.covariance[-1, -1])


def default_solver(family: Family) -> Solver:
    """By derivatives, with few or many parameters, by a search over jumps, or least squares."""
    if family.is_regression:
        return least_squares(family)
    if family.has_jumps:
        return Search()
    return QuasiNewton() if family.n_params > MANY else Newton()


def _best(
    solutions: Sequence[Solution], labels: Sequence[str], counts: list[int], seconds: float
) -> Solution:
    """The certified solution of highest likelihood, else the highest, with the batch's record.

    A solution with a collapsed atom is set aside when there is another: its likelihood, which has
    no bound, is high because the atom fits a few samples, or rounded ones on one line.
    """
    heights = np.array([solution.log_likelihood for solution in solutions])
    certified = np.array([solution.certificate.certified for solution in solutions])
    sound = np.array([not solution.certificate.collapsed for solution in solutions])
    heights = np.where(np.isfinite(heights), heights, -np.inf)
    eligible = sound & np.isfinite(heights)
    if not eligible.any():
        eligible = np.ones_like(sound)
    top = float(heights[eligible].max())
    near = eligible & (heights >= top - SAME_HEIGHT)
    # An uncertified fit that is higher shows that no certified one is the maximum.
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


@dataclass(frozen=True)
class FitJob:
    """One data set to be fitted; the arguments are those of `fit`.

    Parameters
    ----------
    family : Family
        The model.
    X, y : array_like of shape (n, d), (n,)
        Data.
    solver : Solver, optional
        As in `fit`.
    starts : sequence of StartRule, optional
        As in `fit`.
    sample_weight : array_like of shape (n,), optional
        As in `fit`.
    rng : numpy.random.Generator, int or None
        Source of the random starts.
    prior : Prior, optional
        As in `fit`.
    groups : array_like of shape (n,), optional
        As in `fit`.
    data : Data, optional
        Where X, y, weights and groups are from, if they have been read and checked.
    by_weight : bool
        Whether experts come in descending order of their mean weight, which needs `data`.
    """

    family: Family
    X: Any
    y: Any
    solver: Solver | None = None
    starts: Sequence[StartRule] | None = None
    sample_weight: Any = None
    rng: Any = None
    prior: Prior | None = None
    groups: Any = None
    data: Data | None = None
    by_weight: bool = False


@dataclass
class BegunFit:
    """A data set with one iteration, on a problem of its own, from each start.

    `counts` says how many runs of a search have come to each start, and `lower` how many ended too
    low to start one.
    """

    original: Problem
    solver: Solver
    standard: Standardised | None = None
    problems: list[Problem] = field(default_factory=list[Problem])
    iterations: list[Iteration[Solution]] = field(default_factory=list[Iteration[Solution]])
    labels: list[str] = field(default_factory=list[str])
    counts: list[int] = field(default_factory=list[int])
    lower: int = 0
    prior: Prior | None = None
    data: Data | None = None
    by_weight: bool = False
    seen: Seen = field(default_factory=Seen)
    risk: float = Agreement.risk
    interrupted: bool = False
    late: bool = False

    def start(
        self,
        rule: StartRule,
        inner: Problem,
        drawing: Standardised | None,
        rng: np.random.Generator,
        threads: int | None,
    ) -> None:
        """Begin from the starts of a rule."""
        seen, problem = 0, inner if drawing is None else drawing.problem
        if isinstance(rule, Agreement):
            seen = rule.rows(problem)
            points = self.search(on_threads(rule, threads), problem, rng)
        else:
            points = drawing.draw(rule, rng) if drawing else drawn(rule, inner, rng)
            self.counts += [1] * len(points)
        self.begin(rule.name, points, replace(inner, seen=seen))

    def search(self, rule: Agreement, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The starts (m, P) of a search; those so far if it is interrupted."""
        try:
            self.risk = rule.risk
            seen = self.seen if rule.is_calibrated else None
            points, counts = rule.find(without_spare_columns(problem), rng, seen)
        except KeyboardInterrupt:
            self.interrupted, points = True, so_far()
            counts = [1] * len(points)
        self.counts += counts[: len(points)]
        self.lower += sum(counts[len(points) :])
        return points

    def begin(self, name: str, points: FloatArray, problem: Problem) -> None:
        """An iteration from each of the starts (m, P) of a rule."""
        for j, point in enumerate(into_box(problem.family, points)):
            self.problems.append(problem.restart())
            self.iterations.append(self.solver.steps(self.problems[-1], point))
            self.labels.append(f"{name} {j}")

    def in_time(self, ends: Sequence[Solution | Unfinished | None]) -> list[Solution | None]:
        """The solutions, None where the time was over; if it was for all, the best in one step."""
        found = [None if isinstance(end, Unfinished) else end for end in ends]
        heights = [end.height if isinstance(end, Unfinished) else -np.inf for end in ends]
        self.late = any(isinstance(end, Unfinished) for end in ends)
        if self.late and all(end is None for end in found):
            at, solver = int(np.argmax(heights)), cast(Any, self.solver)
            best, problem = ends[at], self.problems[at]
            assert isinstance(best, Unfinished)
            steps = "max_iterations" if hasattr(solver, "max_iterations") else "epochs"
            with until(np.inf):
                (end,) = drive(
                    [replace(solver, **{steps: 1}).steps(problem, best.theta)], [problem]
                )
            found[at] = replace(end, certificate=replace(end.certificate, status="time limit"))
        return found

    def judged(self, best: Solution) -> Solution:
        """The best solution with the probability of a higher one, where a search has looked."""
        family, certificate = self.original.family, best.certificate
        alone = family.is_regression or family.n_experts == 1 or self.prior is not None
        if alone or self.interrupted or self.late or not (self.standard and self.seen.pool):
            return best
        runs = certificate.n_starts
        reached = runs * certificate.agreement
        chance = probability_of_higher(self.seen, family.n_experts, reached, runs)
        return replace(best, certificate=replace(certificate, p_higher=chance))

    def ordered(self, result: MoEResults) -> MoEResults:
        """The result with its experts in their final order."""
        return by_weight(result) if self.by_weight else result

    def end(self, ends: Sequence[Solution | None], seconds: float) -> MoEResults:
        """The best of the solutions, one per iteration; None where one was interrupted."""
        ended = [j for j, end in enumerate(ends) if end is not None]
        solutions = [end for end in ends if end is not None]
        labels, counts = [self.labels[j] for j in ended], [self.counts[j] for j in ended]
        best = _best(solutions, labels, [*counts, self.lower], seconds)
        best = self.judged(best)
        found: list[Doubt] = []
        if self.prior is not None:
            assert isinstance(self.problems[0], PenalisedProblem)
            best = replace(
                best,
                log_likelihood=best.log_likelihood + self.problems[0].penalty.value(best.theta),
            )
        if self.standard:
            best = shortest(self.standard.problem, best)
        family, rows = self.original.family, self.original.data
        best = with_positive_factors(family, best)
        result = MoEResults(
            family,
            self.standard.outward(best) if self.standard else best,
            self.solver.name,
            rows.weight if self.data is None else self.data.weight,
            _variance(rows),
            standard=self.standard.fitted(best) if self.standard else None,
            prior=self.prior,
            data=self.data,
        )
        result = self.ordered(result)
        if self.standard:
            found = doubts(self.standard, result, self.risk)
        if self.prior is not None:
            # A mode is finite where the likelihood has no maximum.
            found = [doubt for doubt in found if doubt[0] is not SeparationWarning]
        if self.interrupted or self.late or len(solutions) < len(ends):
            why = "time of the fit was over" if self.late else "fit was interrupted"
            message = (
                f"the {why}: it is the best of the starts that had ended,"
                f" {len(solutions)}, and there may be a higher maximum"
            )
            found = [*found, (InterruptedWarning, message)]
        for kind, message in found:
            warn_caller(message, kind)
        if not found:
            return result
        kinds = tuple(kind.__name__ for kind, _ in found)
        return replace(result, notes=tuple(message for _, message in found), kinds=kinds)


def checked_starts(starts: Any) -> list[StartRule]:
    """The rules of a list of them."""
    rules: list[Any] = list(starts) if is_sequence(starts) else []
    if not rules or not all(hasattr(rule, "draw") and hasattr(rule, "name") for rule in rules):
        raise ValueError(
            "starts must be a list of one or more rules of moestat.estimation.starts, such as"
            " [RandomStarts(4)] or, for values of one's own, [GivenStarts([theta])]; a rule of"
            f" one's own has draw and name, got {short(starts)}"
        )
    return rules


def begin(job: FitJob, target: Target, scaled: bool = False) -> BegunFit:
    """Check a job and draw its starts; `scaled` says whether the data scale coordinates and box."""
    family = job.family
    rules = checked_starts(job.starts) if job.starts is not None else [search_of(searches=1)]
    threads = target.threads if isinstance(target, Cores) else None
    solver = default_solver(family) if job.solver is None else job.solver
    if not (hasattr(solver, "steps") and hasattr(solver, "needs")):
        raise ValueError(
            "solver must be a solver such as moestat.solvers.Newton(), or the result of"
            f" moestat.solvers.make_solver(name), got {short(solver)}"
        )
    solver.needs.check(solver.name, family)
    problem = checked_problem(job, target.whole)
    P, (d, n) = family.n_params, problem.data.X.shape
    check_room(
        8.0 * (_SQUARES * P**2 + _ROWS * n * (d + 2)),
        f"X, n_experts: a fit of {P:,} parameters to {n:,} rows",
        "; take fewer experts or inputs",
    )
    has_two = np.iscomplexobj(problem.data.y)
    given = (family.ties, job.groups is not None, has_two, family.likelihood.parts)
    names = "equal", "groups", "y of two columns", "y of several responses"
    for name, is_given in zip(names, given, strict=True):
        if is_given and not isinstance(target, Cores):
            raise ValueError(f"{name}: such fits run on the processor; leave out target=")
        if is_given and has_kinks(family):
            raise ValueError(f"{name}: the likelihood with gate {family.gate.name!r} has kinks")
    data, least = job.data, dict[str, float]()
    if scaled and data is not None:
        steps = resolution_of(family, problem.data) if data.resolution is None else data.resolution
        data, least = replace(data, resolution=steps), least_variances(family, problem.data, steps)
    standard = standardise(problem, least) if scaled else None
    begun = BegunFit(
        *(problem, solver, standard), prior=job.prior, data=data, by_weight=job.by_weight
    )
    inner = standard.problem if standard else problem
    if job.prior is not None:
        if not isinstance(solver, Newton):
            raise ValueError(f"prior: is for the solver Newton, got solver {solver.name!r}")
        penalty = job.prior.penalty(inner.family, data_units(inner.data))
        inner = PenalisedProblem(inner.family, inner.data, resolved=inner.resolved, penalty=penalty)
        standard = begun.standard = replace(standard, problem=inner) if standard else None
    child = as_generator(job.rng)
    for rule in rules:
        if not begun.interrupted:
            begun.start(rule, inner, standard, child, threads)
    LOG.info("climbing on %d rows from %d starts", inner.data.size, len(begun.problems))
    return begun


def fit_jobs(jobs: Sequence[FitJob], target: Target | None = None) -> list[MoEResults | Exception]:
    """Fit data sets over the compact parameter spaces of their families, in one batch.

    Coordinates and box are those of the family, whatever the data: what theorems about compact
    parameter spaces speak of.  `fit_many` is for data in units of their own.

    Parameters
    ----------
    jobs : sequence of FitJob
        Data sets that share a family are evaluated together.
    target : Target, optional
        Where passes over the data run; all of the processor's cores by default.

    Returns
    -------
    list of MoEResults or Exception
        One per job: a fit, or what went wrong with this one.  ``certificate.seconds`` of a fit is
        the batch's time per job.

    Examples
    --------
    >>> from moestat import family, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, -2], n=300, rng=0)
    >>> good, bad = fit_jobs([FitJob(F, X, y, rng=0), FitJob(F, X, y[:7], rng=0)])
    >>> round(good.log_likelihood), bad
    (-190, ValueError('X has 300 samples but y has 7'))
    """
    where = target or Cores()
    began = time.perf_counter()
    started: list[BegunFit | Exception] = []
    for job in jobs:
        try:
            started.append(begin(job, where))
        except Exception as error:
            started.append(error)
    return end_fits(started, where, began)


def end_fits(
    started: Sequence[BegunFit | Exception], target: Target, began: float
) -> list[MoEResults | Exception]:
    """Run what has begun, all in one batch, and choose the best solution of each."""
    running = [begun for begun in started if isinstance(begun, BegunFit)]
    iterations = [iteration for begun in running for iteration in begun.iterations]
    ended: list[Any] = [None] * len(iterations)

    def kept(place: int, iteration: Iteration[Solution]) -> Iteration[Solution]:
        ended[place] = yield from iteration
        return ended[place]

    try:
        ended = attempt(
            [kept(place, iteration) for place, iteration in enumerate(iterations)],
            [problem for begun in running for problem in begun.problems],
            target,
        )
    except KeyboardInterrupt:
        if answering() is None or all(end is None for end in ended):
            raise
    ends = iter(ended)
    seconds = (time.perf_counter() - began) / max(len(started), 1)
    results: list[MoEResults | Exception] = []
    for begun in started:
        if isinstance(begun, Exception):
            results.append(begun)
            continue
        own = list(islice(ends, len(begun.iterations)))
        errors = [end for end in own if isinstance(end, Exception)]
        results.append(errors[0] if errors else begun.end(begun.in_time(own), seconds))
    return results
