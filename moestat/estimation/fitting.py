"""The public fit: validate once, start many times, keep the best, certify it."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, cast

import numpy as np

from moestat.base.door import door
from moestat.base.memory import check_room
from moestat.base.types import FloatArray
from moestat.base.validate import (
    as_design,
    as_generator,
    as_weights,
    check_kind,
    is_sequence,
    positive_int,
    short,
)
from moestat.base.warnings import InterruptedWarning, SeparationWarning, warn_caller
from moestat.estimation.data import Data, check_options, check_size, read_data, spans
from moestat.estimation.doubts import doubts
from moestat.estimation.groups import arranged, check_groups, grouped
from moestat.estimation.inference.identified import shortest
from moestat.estimation.inference.misfit import misfits
from moestat.estimation.priors import Prior, data_units
from moestat.estimation.progress import LOG, answering, reported, so_far
from moestat.estimation.relabel import by_weight
from moestat.estimation.results import MoEResults
from moestat.estimation.searching import Agreement, least_squares, on_threads, search_of
from moestat.estimation.standardise import Standardised, standardise
from moestat.estimation.starts import StartRule, into_box
from moestat.model.compression import compress as compressed
from moestat.model.family import Family
from moestat.model.responses import columns_of
from moestat.solvers import Newton, QuasiNewton, Search, Solution, Solver
from moestat.solvers.driver import ONE_THREAD, Cores, Unfinished, attempt, drive, until
from moestat.solvers.penalised import PenalisedProblem
from moestat.solvers.problem import Iteration, Problem, Sample, Target
from moestat.solvers.quasi_newton import MANY
from moestat.solvers.rules import GAIN_LIMIT
from moestat.solvers.trust_region.kinks import has_kinks

__all__ = [
    "BegunFit",
    "FitJob",
    "check_response",
    "checked_starts",
    "end_fits",
    "fit",
    "fit_data",
    "fit_jobs",
    "fit_many",
]

_SAME_OPTIMUM = 1e-2
"""Log-likelihoods closer than this, in natural-log units, count as one optimum."""

_SQUARES, _ROWS = 48, 6
"""Matrices of all parameters, and copies of the data, at the peak of a fit, as measured."""


def _checked_problem(job: FitJob, whole: bool = False) -> Problem:
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
            " prior=moestat.Prior() adds what they do not tell"
        )
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


def _default_solver(family: Family) -> Solver:
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
    near = eligible & (heights >= top - _SAME_OPTIMUM)
    # An uncertified fit that is higher shows that no certified one is the maximum.
    pool = np.flatnonzero(near & certified if np.any(near & certified) else eligible)
    winner = int(pool[np.argmax(heights[pool])])
    runs = sum(counts)
    optima = np.sort(heights[certified])
    n_optima = int(np.sum(np.diff(optima) > _SAME_OPTIMUM) + (optima.size > 0))
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
            points = drawing.draw(rule, rng) if drawing else rule.draw(inner, rng)
            self.counts += [1] * len(points)
        self.begin(rule.name, points, replace(inner, seen=seen))

    def search(self, rule: Agreement, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The starts (m, P) of a search; those so far if it is interrupted."""
        try:
            points, counts = rule.find(problem, rng)
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

    def end(self, ends: Sequence[Solution | None], seconds: float) -> MoEResults:
        """The best of the solutions, one per iteration; None where one was interrupted."""
        ended = [j for j, end in enumerate(ends) if end is not None]
        solutions = [end for end in ends if end is not None]
        labels, counts = [self.labels[j] for j in ended], [self.counts[j] for j in ended]
        best = _best(solutions, labels, [*counts, self.lower], seconds)
        found = []
        if self.prior is not None:
            assert isinstance(self.problems[0], PenalisedProblem)
            best = replace(
                best,
                log_likelihood=best.log_likelihood + self.problems[0].penalty.value(best.theta),
            )
        if self.standard:
            best = shortest(self.standard.problem, best)
        family, rows = self.original.family, self.original.data
        result = MoEResults(
            family,
            self.standard.outward(best) if self.standard else best,
            self.solver.name,
            rows.weight,
            _variance(rows),
            standard=self.standard.fitted(best) if self.standard else None,
            prior=self.prior,
            data=self.data,
        )
        if self.by_weight:
            result = by_weight(result)
        if self.standard:
            assert result.standard is not None
            found = doubts(self.standard, result.standard.solution, self.data)
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
        return replace(result, notes=tuple(message for _, message in found))


def checked_starts(starts: Any) -> list[StartRule]:
    """The rules of a list of them."""
    rules: list[Any] = list(starts) if is_sequence(starts) else []
    if not rules or not all(hasattr(rule, "draw") for rule in rules):
        raise ValueError(
            "starts must be a list of one or more rules of moestat.estimation.starts, such as"
            " [RandomStarts(4)] or, for values of one's own, [GivenStarts([theta])],"
            f" got {short(starts)}"
        )
    return rules


def _begin(job: FitJob, target: Target, scaled: bool = False) -> BegunFit:
    """Check a job and draw its starts; `scaled` says whether the data scale coordinates and box."""
    family = job.family
    rules = checked_starts(job.starts) if job.starts is not None else [search_of(searches=1)]
    threads = target.threads if isinstance(target, Cores) else None
    solver = _default_solver(family) if job.solver is None else job.solver
    if not (hasattr(solver, "steps") and hasattr(solver, "needs")):
        raise ValueError(
            "solver must be a solver such as moestat.solvers.Newton(), or what make_solver of that"
            f" module makes of a name, got {short(solver)}"
        )
    solver.needs.check(solver.name, family)
    problem = _checked_problem(job, target.whole)
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
    standard = standardise(problem) if scaled else None
    begun = BegunFit(
        *(problem, solver, standard), prior=job.prior, data=job.data, by_weight=job.by_weight
    )
    inner = standard.problem if standard else problem
    if job.prior is not None:
        if not isinstance(solver, Newton):
            raise ValueError(f"prior: is for the solver Newton, got solver {solver.name!r}")
        penalty = job.prior.penalty(inner.family, data_units(inner.data))
        inner = PenalisedProblem(inner.family, inner.data, penalty=penalty)
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
            started.append(_begin(job, where))
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


@door()
def fit_many(
    family: Family,
    data: Sequence[tuple[Any, Any]],
    *,
    solver: Solver | None = None,
    starts: Sequence[StartRule] | None = None,
    sample_weights: Sequence[Any] | None = None,
    rng: Any = None,
    threads: int | None = None,
    target: Target | None = None,
    prior: Prior | None = None,
) -> list[MoEResults]:
    """Fit one family to many data sets in one batch.

    Parameters
    ----------
    family : Family
        The model, the same for all.
    data : sequence of (X, y)
        X (n, d), y (n,), sizes may differ.
    solver, starts, rng, threads, target, prior
        As in `fit`; each data set draws its starts from its own child of `rng`.
    sample_weights : sequence, optional
        One weight vector (n,) or None per data set.

    Returns
    -------
    list of MoEResults
        One per data set.  Its ``certificate.seconds`` is the batch's time per data set.

    Raises
    ------
    ValueError
        As `fit`, with the position of the data set.

    Examples
    --------
    >>> from moestat import family, fit_many, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> sets = [sample(F, [0, 0, 1, -2], n=300, rng=seed) for seed in range(3)]
    >>> [round(r.log_likelihood) for r in fit_many(F, sets, rng=0)]
    [-190, -196, -188]
    """
    check_kind("data", data, "__iter__", "a list of one or more pairs (X, y)")
    data = list(data)
    if not data or not all(is_sequence(pair) and len(pair) == 2 for pair in data):
        raise ValueError("data must hold at least one (X, y), and such pairs only")
    weights = [None] * len(data) if sample_weights is None else sample_weights
    check_kind("sample_weights", weights, "__iter__", "a list of one weight vector or None each")
    weights = list(weights)
    if len(weights) != len(data):
        raise ValueError(f"sample_weights has {len(weights)} entries for {len(data)} data sets")
    read: list[tuple[Family, Data]] = []
    for position, ((X, y), weight) in enumerate(zip(data, weights, strict=True)):
        with _naming(position, len(data)):
            read.append(read_data(family, X, y, weight, {}))
    return _fit_read(read, solver, starts, rng, threads, target, prior)


@contextmanager
def _naming(position: int, count: int) -> Generator[None]:
    """Say of an error in which of several data sets it lies."""
    try:
        yield
    except ValueError as error:
        if count == 1:
            raise
        raise ValueError(f"data set {position}: {error}") from None


def _fit_read(
    read: Sequence[tuple[Family, Data]],
    solver: Solver | None,
    starts: Sequence[StartRule] | None,
    rng: Any,
    threads: int | None,
    target: Target | None,
    prior: Prior | None,
    by_weight: bool = False,
) -> list[MoEResults]:
    """Fits to data that have been read, each with its family."""
    if target is not None:
        check_kind("target", target, "session", "a target such as moestat.solvers.problem.Cores()")
    if prior is not None:
        check_kind("prior", prior, "penalty", "a moestat.Prior")
        if target is not None:
            raise ValueError("prior: fits with one run on the processor's cores; leave target out")
    where = target or Cores(None if threads is None else positive_int("threads", threads))
    began = time.perf_counter()
    started: list[BegunFit | Exception] = []
    children = as_generator(rng).spawn(len(read))
    # On rows of a few inputs BLAS's threads only wait for each other, at full speed.
    with ONE_THREAD:
        for position, ((own, data), child) in enumerate(zip(read, children, strict=True)):
            job = FitJob(
                *(own, data.X, data.y, solver, starts, data.weight, child, prior),
                groups=data.groups,
                data=data,
                by_weight=by_weight,
            )
            with _naming(position, len(read)):
                started.append(_begin(job, where, scaled=True))
        ended = end_fits(started, where, began)
    results: list[MoEResults] = []
    for result, (_, data) in zip(ended, read, strict=True):
        if isinstance(result, Exception):
            raise result
        results.append(replace(result, data=data, weight=data.weight))
    return results


@door()
def fit(
    family: Family | str | Mapping[str, Any] | Sequence[Any],
    X: Any,
    y: Any,
    *,
    solver: Solver | None = None,
    starts: Sequence[StartRule] | None = None,
    n_starts: int | None = None,
    time_limit: float | None = None,
    sample_weight: Any = None,
    rng: Any = None,
    threads: int | None = None,
    target: Target | None = None,
    compress: str | None = None,
    prior: Prior | None = None,
    groups: Any = None,
    classes: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    missing: str = "raise",
    verbose: bool = False,
    **model: Any,
) -> MoEResults:
    """Maximum-likelihood fit of a mixture of experts, with a certificate.

    Parameters
    ----------
    family : Family, str, mapping or sequence
        The model, from `moestat.family`, or the name of a likelihood, such as "gaussian" or
        "multinomial", or its table with options, such as ``{"name": "binomial", "trials": 8}``.
        Numbers of inputs and classes are then those of the data.  A list of these, such as
        ``["gaussian", "poisson"]``, is for several responses, independent within an expert.
    X : array_like or data frame of shape (n, d)
        Inputs; (n,) when d = 1.  Names of columns of a table, of pandas, polars, pyarrow or
        another library that narwhals knows or a mapping, are kept, and the index of its rows.  A
        constant column is held at coefficients 0, with a `ConstantColumnWarning`.
    y : array_like or series of shape (n,), (n, 1) or (n, 2)
        Responses: real numbers, or labels of classes, which may be integers, words or truth
        values.  Classes are in the order of declared categories, else in ascending order of their
        labels, the last one the reference; with K classes given, integers in 1..K are their
        numbers.  A series must have the index of X.  Two columns are a lower and an upper bound
        of each response, infinite where there is none and equal where it is known: censored
        responses of "gaussian", "log-normal", "weibull", "exponential" and "poisson"; of "binomial"
        they are numbers of successes and failures.  Of a list of likelihoods y has one column for
        each; columns of a table name the responses, else they are "y1", "y2" and so on.
    solver : Solver, optional
        By default `moestat.solvers.Newton`, `moestat.solvers.QuasiNewton` for more than 70
        parameters, and `moestat.solvers.Search` for a gate whose likelihood jumps; there other
        solvers stay in the smooth piece where they start, and their fits are not certified.
    starts : sequence of StartRule, optional
        By default `moestat.estimation.searching.Agreement`: a pool of starts, and where these do
        not agree races of such pools, each with moves of single experts, up to eight where they
        do not agree on a best optimum.
    n_starts : int, optional
        Number of starts in a pool, in place of three for each expert.
    time_limit : float, optional
        Seconds after which the fit ends where it is: with a pass or two for the certificate, whose
        status is then "time limit" unless a start has come to its end before, and with an
        `InterruptedWarning`.
    sample_weight : array_like of shape (n,), optional
        Non-negative counts or frequency weights.
    rng : numpy.random.Generator, int or None
        Source of the random starts.
    threads : int, optional
        Threads over starts; all cores by default.  The result does not depend on it.
    target : Target, optional
        Where passes over the data run, such as `moestat.solvers.targets.CudaTarget`, in place of
        the processor's cores.
    compress : {"auto", None}
        With "auto" the fit is one to the data as `moestat.compress` makes them: equal rows as
        one, and classes over one input as Gauss nodes.  It ends on these, without a look at all
        of the data; what that can cost, twice the bound on the error of the log-likelihood, is
        added to the certificate's gain.  Where the sum is not below 1e-4 the data are fitted as
        they are.  Without it solvers climb on compressed data, too, but end on all of them.
    prior : Prior, optional
        A weakly informative prior density, `moestat.Prior`.  The result is then the mode of the
        posterior density, which exists where the likelihood has no maximum, and not the
        maximum-likelihood estimate.
    groups : array_like of shape (n,), optional
        Label of each row's group, such as a subject: an expert is chosen once for all rows of a
        group, ``log L = sum_g log sum_k pi_k(x_g) prod_(i in g) f_k(y_i | x_i)``.  Inputs of the
        gate are the same for all rows of a group, and so are weights.
    classes : sequence or mapping, optional
        Labels of the classes in the order that they are to have, the last one the reference; of
        several responses a table of these by response.
    missing : {"raise", "drop"}
        What to do with rows that have missing values: refuse the data, or leave these rows out;
        ``result.data.dropped`` is their number and ``result.data.kept`` has the places of the
        others.
    verbose : bool
        Whether to say on standard error what the fit does.  The log is ``logging``'s "moestat".
    **model
        ``n_experts``, ``gate``, ``expert``, ``bounds``, ``gate_inputs``, ``expert_inputs``,
        ``offset`` and ``equal`` as in `moestat.family`, for a model by name; its gate is
        "softmax" unless another is given.

    Returns
    -------
    MoEResults
        Parameters, standard errors, log-likelihood, certificate, ``summary()``.

    Raises
    ------
    ValueError
        For missing or infinite values, categorical columns, wrong shapes, an absent class, or
        fewer samples than free parameters.

    Notes
    -----
    Pham et al. (2026), eq. (2); for regression functions least squares, Yan et al. (2025), eq.
    (6), by `moestat.solvers.NewtonSquares`, or `moestat.solvers.GaussNewtonBFGS` for experts with
    kinks and for more than 70 parameters. The fit runs in standardised coordinates of the
    data, with a box about them that is a thousand times as wide as the papers' compact box; a
    variance is at least a millionth of that of the residuals of linear regression. Only
    `bounds` of the family that are the user's own bind as they are. Fits over the papers' box:
    ``bounds=F.box``.

    Experts of a model by name are in descending order of their mean weight over the rows, whatever
    the seed; those of a `Family`, and from given starts, stay in the order of the starts, and with
    parameters on a bound as they were found.  `MoEResults.relabel` puts them into another order.

    An interrupt (Ctrl-C) ends the search: the result is the best of the starts so far, climbed to
    its end, with an `InterruptedWarning`.  Another one, or one before any start was found, raises
    `KeyboardInterrupt`.

    A result that may not be the maximum that it seems warns, with a subclass of
    `moestat.base.warnings.OptimumWarning` for each kind: on a default bound, starts that
    disagree, and separation, where the likelihood has no maximum.  Inputs that are linear
    functions of each other warn with an `AliasedWarning`.  Data that the fitted law does not
    describe warn with a `MisfitWarning` (outliers, spikes, zeros, variance), a
    `DependentRowsWarning` or a `FewRowsWarning`; ``result.notes`` keeps what was said.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> X, y = sample(F, [0, 0, 1, -2], n=500, rng=0)
    >>> result = fit(F, X, y, rng=0)
    >>> result.certificate.certified
    True

    A model by name, of data with names:

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": X[:, 0], "vote": np.where(y == 1, "yes", "no")})
    >>> named = fit("multinomial", frame[["age"]], frame["vote"], n_experts=1, rng=0)
    >>> named.predict(frame[["age"]])[:3].tolist(), named.params.index[3]
    (['no', 'yes', 'yes'], 'a[0,no,age]')
    """
    check_options(model, fit)
    given: Any = compress
    if given is not None and not (isinstance(given, str) and given == "auto"):
        raise ValueError(f'compress must be "auto" or None, got {short(compress)}')
    own, read = read_data(
        family, X, y, sample_weight, model, groups=groups, classes=classes, missing=missing
    )
    with reported("fit", verbose, answers=True):
        result = fit_data(
            *(own, read, solver, starts, n_starts),
            time_limit=time_limit,
            rng=rng,
            threads=threads,
            target=target,
            compress=compress,
            prior=prior,
            by_weight=starts is None and not isinstance(family, Family),
        )
    found = misfits(result)
    for kind, message in found:
        warn_caller(message, kind)
    return replace(result, notes=(*result.notes, *(message for _, message in found)))


def fit_data(
    own: Family,
    read: Data,
    solver: Solver | None = None,
    starts: Sequence[StartRule] | None = None,
    n_starts: int | None = None,
    *,
    time_limit: float | None = None,
    rng: Any = None,
    threads: int | None = None,
    target: Target | None = None,
    compress: str | None = None,
    prior: Prior | None = None,
    by_weight: bool = False,
) -> MoEResults:
    """The fit to data that have been read; arguments as in `fit` and `FitJob`."""
    if n_starts is not None or time_limit is not None:
        if starts is not None:
            raise ValueError("n_starts and time_limit are for the default starts; got starts, too")
        starts = [search_of(n_starts, time_limit=np.inf if time_limit is None else time_limit)]
    elif starts is None:
        starts = [search_of()]
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    with until(deadline):
        where = threads, target, prior, by_weight
        return _fit_until(own, read, solver, starts, rng, compress, where)


def _fit_until(
    own: Family,
    read: Data,
    solver: Solver | None,
    starts: Sequence[StartRule],
    rng: Any,
    compress: str | None,
    where: tuple[int | None, Target | None, Prior | None, bool],
) -> MoEResults:
    """The fit from start rules, on compressed data if these are asked for and as good."""
    if compress is not None and own.likelihood.parts:
        raise ValueError("compress: is for one response; leave it out")
    if read.groups is not None:
        if compress is not None:
            raise ValueError("compress: rows of groups cannot stand for each other; leave it out")
        check_groups(own, *grouped(read), read.features)
    if compress == "auto":
        # A generator would have moved on if the data are fitted as they are after all.
        rng = as_generator(rng)
        result = _fit_compressed(own, read, solver, starts, rng.spawn(1)[0], *where)
        if result is not None:
            return replace(result, data=read)
    (result,) = _fit_read([(own, read)], solver, starts, rng, *where)
    return result


def _fit_compressed(family: Family, data: Data, *arguments: Any) -> MoEResults | None:
    """The fit to compressed data; None where it is not certain to be as good."""
    short = compressed(data.X, data.y, data.weight)
    read = read_data(family, short.X, short.y, short.weight, {})
    (result,) = _fit_read([read], *arguments)
    if short.lossless:
        return result
    gain = result.certificate.gain + 2.0 * short.error_bound(family, result.params)
    if not gain <= GAIN_LIMIT:
        return None
    certificate = replace(result.certificate, gain=gain)
    return replace(result, solution=replace(result.solution, certificate=certificate))
