"""The default starts: many short runs, the best of them continued, and moves of single atoms."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, permutations
from typing import ClassVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.estimation.progress import LOG, keep
from moestat.estimation.searching import Agreement, least_squares, on_threads
from moestat.estimation.starts import (
    MOST_STARTS,
    ClusterStarts,
    RandomStarts,
    SoftClusterStarts,
    SplitStarts,
    StartRule,
    into_box,
    predictor_noise,
)
from moestat.model.family import Family
from moestat.solvers import Newton
from moestat.solvers.bfgs import bfgs_steps
from moestat.solvers.collapse import collapsed_atoms
from moestat.solvers.driver import drive
from moestat.solvers.problem import Iteration, Objective, Problem, Request
from moestat.solvers.quasi_newton import MANY
from moestat.solvers.squares import profile_log_likelihood
from moestat.solvers.trust_region.newton_loop import newton_steps

__all__ = ["ShortRuns"]

_ROWS, _MOST_ROWS, _SHARE = 4000, 20_000, 0.1
"""Rows that short runs look at, and for densities of a number the most of them and their share of
all: an expert of one in a thousand has four of 4000.  The starts that the search ends with see all
rows."""

_ROWS_PER_PARAMETER = 1000
"""For classes the runs that are continued look at so many rows for each parameter, and at more
where parameters are few: a label tells less than a number, and the highest of many maxima of fewer
rows is often another one."""

_JUDGED = 100_000
"""Rows by which the optima that a search on fewer has found are ranked: of 4000 the highest is
often not that of all rows."""

_SHORT, _HALF, _LONG = 12, 20, 300
"""Iterations of a short run, of one that is continued, with many parameters and by default."""

_CHEAPER, _ENDED = 4, 1e-3
"""Steps of BFGS in place of one by a Hessian, and the predicted gain at which they end."""

_MOVED = 12
"""Moves of a round."""

_CONTINUED = {True: (16, 6), False: (5, 2)}
"""Short runs, and moves of a round, that are continued, for classes and for numbers: after a few
iterations to classes the heights hardly say where a run will end."""

_ROUNDS, _IDLE = 8, 2
"""Rounds of moves at most, and without a better optimum; with many parameters only one."""

_AGREEING = 3
"""Runs of one search, before its moves, or searches that reach the best optimum and so end all."""

_WORK = 1e7
"""Samples times squared parameters, summed over searches: some seconds.  Above it a search for
numbers is large: it ends when the runs that it continues agree, and drops the worse runs early."""

_CLIMBED_WORK, _CLIMBED_SEARCHES = 3e8, 3
"""The same for classes where runs climb by BFGS, up to which searches are repeated, and how many at
most: 11 of 52 single searches with 80 to 100 parameters ended below the fit that starts at the
truth, and 3 of 52 so repeated."""

_BEGUN_ONCE, _KEPT_ONCE = 8, 2
"""Above that work so many short runs are continued half-way, and of these as many to their ends:
half-way they are about in the order of their ends."""

_CLUSTER_STEPS = 5
"""Newton steps to a start from clusters of 4000 samples or more: the runs go on from there."""

_TRIED_ROWS, _EXPERT_ROWS = 10, 500
"""Rows for each parameter, or each expert, that the first runs of a large search look at."""

_FIRST, _KEPT = 3, 3
"""Iterations after which a large search goes on with one in so many of its short runs."""

_MOVE_NOISE = 0.5
_SAME_OPTIMUM = 1e-2
_RETURNED, _ALL_RETURNED = 3, 120_000
"""Runs that start the fit to all samples: so many, and more while all of them read few rows."""

_WORSE = 1.0
"""Units of log-likelihood below the best run at which one with many parameters is given up, unless
it may be needed in place of one that collapses on all of the rows."""

Ended = tuple[FloatArray, float]
"""Parameters and log-likelihood of a run."""


@dataclass(frozen=True)
class ShortRuns:
    """Starts that a search on a part of the samples ends with.

    Where a first pool of starts agrees (`moestat.estimation.searching`) default fits do not search.
    Else starts of several kinds take a few iterations each, on 4000 of the samples (a tenth of
    them, up to 20,000, for densities of a number), and the best of them are continued, for classes
    on up to 1000 samples for each parameter, or, of one input and of large samples of two, on the
    points (`moestat.model.compression`, `moestat.model.recombination`) that stand for all. Then
    rounds of
    moves try to better the best optimum: one atom is replaced by a copy of another, and the two are
    pulled apart at random, so that a part of the samples that one atom serves poorly gets a second
    one. A round's best moves are continued; the search ends when two rounds have found nothing. Up
    to three runs, more with fewer than 40,000 samples, start the fit to all of them: the best
    optimum on 100,000 samples or on these points, a second run that reached it, and those next in
    height. Where all samples were looked at, every run that was continued is handed back. There, as
    on points, the whole search is repeated when fewer than three of the runs before the moves
    reached the best optimum, until three searches have ended there or `searches` are over, fewer
    where samples and parameters are many; for classes with more than 70 parameters until two have
    ended there, three at most.

    With more than 4000 samples of a number the search consists of moves alone where all of k + 1 of
    2 (k + 1) runs of k experts from clusters agree, and ends if one round betters nothing. Where
    samples and parameters are very many (n P^2 > 1e7) these runs look at 10 samples for each
    parameter, or 500 for each expert, only, the worse of all runs are dropped early, and one round
    is enough also when all runs that are continued agree. With more than 70 parameters runs climb
    by BFGS, all short ones look at these samples, two thirds of those that are continued end
    half-way, one round of moves without a better optimum is the last, and for classes runs that
    ended more than 1 below the best start no fit. A search for classes that is too large to be
    repeated (n P^2 > 3e8) continues 8 of the short runs and, where these do not agree half-way,
    8 of as many again, and the best two of all to their ends.

    Parameters
    ----------
    count : int
        Number of short runs.
    time_limit : float
        No further round of moves begins after so many seconds.
    searches : int
        Searches at most.
    threads : int, optional
        Threads over runs; those of the fit, or all cores, by default.  The starts do not depend
        on it.
    look : bool
        Whether a first pool of starts that agrees ends the search.

    Notes
    -----
    Short runs are the Rndm and emEM strategies of Biernacki, Celeux and Govaert (2003), with
    Newton steps in place of EM's, as flexmix's `initFlexmix` and MoEClust's defaults do with EM;
    the moves are those of the split and merge EM of Ueda, Nakano, Ghahramani and Hinton (2000).

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("gaussian", gate="softmax", n_experts=2)
    >>> theta = F.pack({"beta0": [0, 0], "beta1": [5, 0], "a": [2, -2], "b": [0, 0], "nu": [1, 1]})
    >>> X, y = sample(F, theta, n=300, rng=0)
    >>> fit(F, X, y, starts=[ShortRuns(20)], rng=0).certificate.certified
    True
    """

    count: int = 48
    time_limit: float = np.inf
    searches: int = 1
    threads: int | None = None
    look: bool = False
    name: str = "short run"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("n_starts", self.count, maximum=MOST_STARTS)
        positive_int("searches", self.searches)
        if not (isinstance(self.time_limit, float) and self.time_limit == np.inf):
            real_in("time_limit", self.time_limit, 0.0)
        if self.threads is not None:
            positive_int("threads", self.threads)

    def on(self, threads: int | None) -> ShortRuns:
        """The same with so many threads, unless it names a number itself."""
        return self if self.threads is not None else replace(self, threads=threads)

    def rows(self, problem: Problem) -> int:
        """How many of the rows of numbers its starts have been fitted to."""
        most = _ROWS if problem.family.is_regression else _MOST_ROWS
        return int(np.clip(_SHARE * problem.data.size, _ROWS, most))

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        return self.search(problem, rng)[0]

    def find(self, problem: Problem, rng: np.random.Generator) -> tuple[FloatArray, list[int]]:
        """Starting values (count, P), how many runs came to each, and how many ended too low.

        With `look` a pool of starts that agrees ends it, unless searches are large ones.
        """
        if self.look and self._may_look(problem):
            found = on_threads(Agreement(), self.threads).look(problem, rng.spawn(1)[0])
            if found is not None:
                return found
        points, lower = self.search(problem, rng)
        return points, [*[1] * len(points), lower]

    def _may_look(self, problem: Problem) -> bool:
        """Whether a pool of starts is worth a look: a small search, with metrics that are regular.

        Pools climb by metrics of inputs, which do not know their products, and end short of
        where a certificate holds along columns that repeat each other.
        """
        family, gram = problem.family, problem.data.gram
        if family.is_regression or family.n_experts == 1:
            return False
        small = problem.data.size * family.n_params**2 <= _WORK
        return small and bool(np.linalg.matrix_rank(gram, hermitian=True) == len(gram))

    def search(self, problem: Problem, rng: np.random.Generator) -> tuple[FloatArray, int]:
        """Starting values, shape (count, P), and how many runs ended too low to start a fit."""
        deadline = time.monotonic() + self.time_limit
        few, some, stand_for_all = self._parts(problem, rng)
        most, enough = self._searches(some) if stand_for_all else (1, 1)
        found, agreeing = self._search(few, some, deadline, rng)
        ends = [max(height for _, height in found)]
        while len(ends) < most and time.monotonic() <= deadline:
            LOG.info("search %d of %d at most, %d the best", *(len(ends), most, _reached(ends)))
            if agreeing >= _AGREEING or _reached(ends) >= enough:
                break
            more, _ = self._search(few, some, deadline, rng)
            found, agreeing = found + more, 0
            ends.append(max(height for _, height in more))
        climbed = _is_climbed(problem.family)
        if not stand_for_all:
            found = _judged(problem, found, rng)
        elif some.data is problem.data and not climbed:
            return np.array([theta for theta, _ in found]), 0
        runs = len(found)
        if climbed and problem.family.likelihood.collapse is None:
            best = max(height for _, height in found)
            found = [run for run in found if run[1] >= best - _WORSE]
        return _returned(problem, found), runs - len(found)

    def _searches(self, problem: Problem) -> tuple[int, int]:
        """Searches of a problem that is looked at as a whole: at most, and that must agree."""
        if problem.family.n_experts == 1:
            return 1, 1
        work = problem.data.size * problem.family.n_params**2
        if not _is_climbed(problem.family):
            return int(np.clip(_WORK / work, 1, self.searches)), _AGREEING
        once = not _has_classes(problem.family) or _is_searched_once(problem)
        return min(1 if once else _CLIMBED_SEARCHES, self.searches), 2

    def _search(
        self, few: Problem, some: Problem, deadline: float, rng: np.random.Generator
    ) -> tuple[list[Ended], int]:
        """Runs that were continued, and how many of them reached the best before the moves."""
        family = some.family
        large, (begun, moves) = _is_large(few), _CONTINUED[_has_classes(family)]
        tried, agree, fewer = np.empty((0, family.n_params)), False, few
        if large:
            rows = max(_TRIED_ROWS * family.n_params, _EXPERT_ROWS * family.n_experts)
            fewer = _some_rows(few, rng, rows)
        clusters = {"threads": self.threads}
        if large or (_has_numbers(family) and few.data.size >= _ROWS):
            clusters["steps"] = _CLUSTER_STEPS
            tried, agree = self._tried(fewer, rng)
        few = fewer if _is_climbed(family) else few

        def short(best: int) -> FloatArray:
            drawn = [rule.draw(few, rng) for rule in _rules(family, self.count, clusters)]
            points = into_box(family, np.vstack([tried, *drawn]))
            return _best(self._short(few, points, large), best)

        if _is_searched_once(some):
            half = self._run(some, short(_BEGUN_ONCE), _HALF)
            if _reached([height for _, height in half]) < _KEPT_ONCE:
                half += self._run(some, short(_BEGUN_ONCE), _HALF)
            found = self._run(some, _best(half, _KEPT_ONCE), _LONG)
        else:
            found = self._continued(some, tried[:2] if agree else short(begun))
        first = [height for _, height in found]
        agree = agree or (large and _reached(first) == len(first) >= family.n_experts)
        idle, most_idle = 0, 1 if agree or _is_climbed(family) else _IDLE
        for _ in range(_ROUNDS if family.n_experts > 1 else 0):
            if idle == most_idle or time.monotonic() > deadline:
                break
            height = max(height for _, height in found)
            moved = _moves(some, _best(found, 1)[0], _MOVED, rng)
            found += self._continued(some, _best(self._short(few, moved, large), moves))
            idle = idle + 1 if max(h for _, h in found) <= height + _SAME_OPTIMUM else 0
        return found, _reached(first, max(height for _, height in found))

    def _parts(self, problem: Problem, rng: np.random.Generator) -> tuple[Problem, Problem, bool]:
        """What short and long runs look at, and whether the latter stands for all rows."""
        family, data = problem.family, problem.data
        if not _has_classes(family):
            few = _some_rows(problem, rng, self.rows(problem))
            return few, few, few.data is data
        P = family.n_params
        rows = max(_ROWS, _ROWS_PER_PARAMETER * P, int(_WORK / P**2))
        if len(data.levels) > 1:
            return problem.replace_data(data.levels[0]), problem.replace_data(data.levels[-2]), True
        few, some = _some_rows(problem, rng, _ROWS), _some_rows(problem, rng, rows)
        return few, some, some.data is data

    def _short(self, problem: Problem, points: FloatArray, large: bool) -> list[Ended]:
        """Short runs; in a large search the worse ones are dropped after a few iterations."""
        if large:
            points = _best(self._run(problem, points, _FIRST), len(points) // _KEPT)
        return self._run(problem, points, _SHORT)

    def _continued(self, problem: Problem, points: FloatArray) -> list[Ended]:
        """Long runs; with many parameters the worse ones end half-way."""
        if not _is_climbed(problem.family):
            return self._run(problem, points, _LONG)
        half = self._run(problem, points, _HALF)
        return self._run(problem, _best(half, -(-len(points) // _KEPT)), _LONG)

    def _tried(self, problem: Problem, rng: np.random.Generator) -> tuple[FloatArray, bool]:
        """Ends (k + 1, P) of runs from clusters, best first, and whether all are one optimum."""
        family = problem.family
        asked = family.n_experts + 1
        rule = ClusterStarts(2 * asked, _CLUSTER_STEPS, self.threads)
        points = into_box(family, rule.draw(problem, rng))
        ends = self._run(problem, _best(self._run(problem, points, _SHORT), asked), _LONG)
        return _best(ends, asked), _reached([height for _, height in ends]) == asked

    def _run(self, problem: Problem, points: FloatArray, steps: int) -> list[Ended]:
        """Runs of so many iterations; those with a collapsed atom count as the lowest."""
        problems = [problem.restart() for _ in points]
        iterations = [
            _iteration(p, point, steps) for p, point in zip(problems, points, strict=True)
        ]
        ended = [
            (
                theta,
                height if np.isfinite(height) and not collapsed_atoms(problem, theta) else -np.inf,
            )
            for theta, height in drive(iterations, problems, self.threads)
        ]
        keep(ended, steps, problem.data.size)
        return ended


def _is_large(problem: Problem) -> bool:
    """Whether runs cost so much that the worse ones are dropped early."""
    family = problem.family
    return _has_numbers(family) and problem.data.size * family.n_params**2 > _WORK


def _has_numbers(family: Family) -> bool:
    """Whether a search may end early: runs to classes agree that are not best."""
    return family.n_experts > 1 and not (_has_classes(family) or family.is_regression)


def _reached(heights: Sequence[float], best: float | None = None) -> int:
    """How many of these are the best, that among them unless it is given; no collapsed one is."""
    best = max(heights) if best is None else best
    return sum(-np.inf < height >= best - _SAME_OPTIMUM for height in heights)


def _is_climbed(family: Family) -> bool:
    """Whether runs need no Hessians."""
    return family.n_params > MANY and not (family.is_regression or family.has_jumps)


def _is_searched_once(problem: Problem) -> bool:
    """Whether runs to classes cost so much that their search, moves and all, is not repeated."""
    family = problem.family
    work = problem.data.size * family.n_params**2
    return _is_climbed(family) and _has_classes(family) and work > _CLIMBED_WORK


def _has_classes(family: Family) -> bool:
    return family.likelihood.support is not None


def _rules(family: Family, count: int, clusters: dict[str, int | None]) -> list[StartRule]:
    """Hard clusters find regression lines; for classes soft ones, splits and random gates do."""
    hard, soft = (partial(rule, **clusters) for rule in (ClusterStarts, SoftClusterStarts))
    shares: list[tuple[Callable[[int], StartRule], float]]
    shares = [(SplitStarts, 0.5), (RandomStarts, 0.5)]
    if _has_classes(family):
        shares = [(rule, 1 / 3) for rule in (soft, SplitStarts, RandomStarts)]
    elif not family.is_regression:
        shares = [(hard, 0.5), (SplitStarts, 0.25), (RandomStarts, 0.25)]
    counts = [int(np.ceil(share * count)) for _, share in shares]
    counts = np.diff([0, *np.minimum(np.cumsum(counts), count)])
    return [rule(int(c)) for (rule, _), c in zip(shares, counts, strict=True) if c]


def _some_rows(problem: Problem, rng: np.random.Generator, most: int) -> Problem:
    """The problem on a part of its rows, drawn in proportion to their weights."""
    data = problem.data
    if data.size <= most:
        return problem
    units = data.units
    count = max(1, most * units.size // data.size)
    weight = np.zeros(units.size)
    if np.ptp(units) == 0.0:
        weight[rng.choice(units.size, count, replace=False)] = 1.0
    else:
        np.add.at(weight, rng.choice(units.size, count, p=units / units.sum()), 1.0)
    return problem.replace_data(data.reweighted(weight))


def _iteration(problem: Problem, start: FloatArray, steps: int) -> Iteration[Ended]:
    family = problem.family
    if family.has_jumps:
        ran = yield from newton_steps(problem, Objective.OBSERVED, start, 1e-6, steps)
        return ran.theta, -ran.value
    if _is_climbed(family):
        end, here, _ = yield from bfgs_steps(problem, start, -1, _CHEAPER * steps, _ENDED)
        return end, -here.value
    if family.is_regression:
        solution = yield from replace(least_squares(family), max_iterations=steps).steps(
            problem, start
        )
        return solution.theta, solution.log_likelihood
    end, here, *_ = yield from Newton(max_iterations=steps).climb(problem, start)
    return end, -here.value


def _best(runs: Sequence[Ended], count: int) -> FloatArray:
    """Parameters of the highest runs (count, P)."""
    order = np.argsort([-height for _, height in runs], kind="stable")
    return np.array([runs[i][0] for i in order[:count]])


def _returned(problem: Problem, runs: Sequence[Ended]) -> FloatArray:
    """Parameters of the highest runs (count, P), the best optimum twice at most, others once."""
    kept: list[Ended] = []
    for theta, height in sorted(runs, key=lambda run: -run[1]):
        reached = any(abs(height - other) <= _SAME_OPTIMUM for _, other in kept)
        if not reached or len(kept) == 1:
            kept.append((theta, height))
    few = 0 if _is_climbed(problem.family) else _ALL_RETURNED // problem.data.size
    count = max(_RETURNED, few)
    return np.array([theta for theta, _ in kept[:count]])


def _judged(problem: Problem, runs: Sequence[Ended], rng: np.random.Generator) -> list[Ended]:
    """The runs with their heights on more rows than they have looked at."""
    more, judged = _some_rows(problem, rng, _JUDGED), []
    objective = Objective.RESIDUALS if problem.family.is_regression else Objective.VALUE
    for theta, _ in runs:
        height = -more.restart().evaluate(Request(objective, theta)).value
        if problem.family.is_regression:
            height = profile_log_likelihood(-height, float(more.data.weight.sum()))
        judged.append((theta, height))
    return judged


def _moves(problem: Problem, theta: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Parameters (count, P) in which one atom of theta has given way to a copy of another."""
    family = problem.family
    moved = np.empty((count, family.n_params))
    pairs = rng.permutation(list(permutations(range(family.n_experts), 2)))
    noise = predictor_noise(problem, rng, count)
    before, shared = family.split(theta)
    for row, own, (gone, copied) in zip(moved, noise, cycle(pairs), strict=False):
        atoms = before.copy()
        atoms[gone] = atoms[copied]
        pair = [gone, copied]
        if family.mass_column is not None:
            atoms[pair, family.mass_column] -= np.log(2.0)
        atoms[pair] += _MOVE_NOISE * family.split(own)[0][pair]
        row[:] = family.join(atoms, shared)
    return into_box(family, moved)
