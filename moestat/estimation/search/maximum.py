"""Starts for the maximum that theorems on over-specified fits speak of: the highest in the box.

With more experts than the truth the likelihood has many maxima: the further atoms share the place
of a true one, or fit noise anywhere in the box with a mass of order n^(-1/2) (Dacunha-Castelle and
Gassiat 1999).  Starts around the truth find those of the first kind, and not always the highest.

Runs of 12 steps do not yet rank as they do at convergence, those of 25 steps mostly do (the rank
correlation of the heights of 20 runs with the final ones is .3 and .6 in the mean over ten data
sets of five families), so a race has one rung of 25 steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement, cycle, islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from moestat.base.door import door, doors
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, positive_int, real_in
from moestat.estimation.rules import MOST_FITS, SAME_HEIGHT, SEARCH
from moestat.estimation.search.higher import expected_distinct
from moestat.estimation.search.runs import RunEnd, group_by_height, run_starts
from moestat.estimation.starts import (
    RandomStarts,
    SplitStarts,
    StartRule,
    TruthStarts,
    into_box,
    make_starts,
)
from moestat.estimation.starts.given import share_masses
from moestat.estimation.starts.scale import Scale
from moestat.model.family import Family
from moestat.solvers import Solution
from moestat.solvers.driver import drive
from moestat.solvers.problem import Evaluation, Iteration, Objective, Problem, Request
from moestat.solvers.rules import NEWTON_STEPS

__all__ = [
    "NEAR",
    "Finalists",
    "MaximumStarts",
    "covariates",
    "judge",
    "make_sweep_starts",
]

NEAR = "near truth"
"""Name of the best start of a race near the truth."""

_STEPS = 25
"""Steps of a run before the better ones go on; see the module."""
_KEPT = 3
"""One run in so many goes on."""
_SIZES = (0.2, 1.5)
"""Smallest and largest size of a split, in units of random predictors (`RandomStarts`): from copies
that have hardly parted to atoms that are nowhere near."""
_SHARES = (0.01, 0.1)
"""Smallest and largest mean weight of a light atom: of the order n^(-1/2) for n from 100 to 1e4."""
_ROWS = 200
"""Rows by which the mean weight of a light atom is set: it is then known to about a tenth."""
_FLATTEST = 3
"""Number of directions of least curvature that a start may move along: copies of an atom part in
as many ways as the atom has parameters, and the flattest ones are where the likelihood rises."""
_RUNS = 13
"""Runs of a race with the default numbers of starts."""
_COEFFICIENTS = (-7.623, 3.342, 0.058, -0.592)
"""Coefficients of the probability of a higher maximum, those of `covariates`:
`benchmarks/sweep_starts.py` fits them to over-specified cells of six families after one race and
after two, half of which it holds out."""
_DRAWS = 64
"""Random predictors from which typical sizes are known to a tenth."""
_FARTHEST, _FINE = 60.0, 0.01
"""Largest change of a logarithm of odds, and how exactly it is found."""


class Finalists(NamedTuple):
    """The runs of a race that go on to the solver of the fit."""

    points: FloatArray
    """Parameters (m, P): of the best run near the truth, and of the highest others."""
    counts: list[int]
    """Number of runs that came to each."""
    lower: int
    """Number of runs that ended lower."""
    ends: list[float]
    """Heights of all runs."""


def judge(races: Sequence[Finalists], best: Solution, near: Solution) -> Solution:
    """The best solution, with what the races say of it.

    That is how far it is above the solution near the truth, and the probability of a higher one.
    """
    heights = [height for race in races for height in race.ends]
    chance = 1.0 / (1.0 + math.exp(-float(np.dot(_COEFFICIENTS, covariates(heights)))))
    above = float(best.log_likelihood - near.log_likelihood)
    certificate = replace(best.certificate, above_near_truth=above, p_higher=chance)
    return replace(best, certificate=certificate)


def covariates(heights: Sequence[float]) -> FloatArray:
    """The covariates of the probability of a higher maximum than the highest of some runs.

    They are 1, the logarithm of the expected number of heights that 13 of the runs come to, the
    share of further runs that reached the best one, and the logarithm of the number of runs, in
    units of 13.
    """
    counts = group_by_height([RunEnd(np.empty(0), height) for height in heights])[1]
    distinct, n_runs = expected_distinct(counts, _RUNS), len(heights)
    share = (counts[0] - 1.0) / (n_runs + 1.0)
    return np.array([1.0, math.log(distinct), share, math.log(n_runs / _RUNS)])


@doors
@dataclass(frozen=True)
class MaximumStarts:
    """The winners of a race from near the truth, from splits of it, and from all over the box.

    The race has `near` starts around the truth, as `TruthStarts` has them, and `count` others of
    five kinds in turn: the fit with the truth's number of experts, its atoms copied in every
    allocation of the further atoms to true ones and moved apart at random, by random sizes, or
    along the directions in which the likelihood is flattest there; that fit with light atoms
    anywhere in the box; random predictors; and splits of the one-expert fit.

    Parameters
    ----------
    truth_family : Family
        Family of the truth, with k* experts.
    truth : ndarray of shape (P*,)
        Its packed parameters.
    count : int
        Number of starts besides those near the truth.
    near : int
        Number of starts near the truth.
    noise : float
        Standard deviation of these, in units of the parameters.
    threads : int or None
        Threads over runs; all cores for None.  The starts do not depend on it.

    Notes
    -----
    Theorems on over-specified mixtures are on the maximum over a compact set, as those of Nguyen et
    al. (2023) and Pham et al. (2026).  No finite number of starts is sure to find it; the
    certificate says how many runs came to the height of the estimate.

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("multinomial", gate="softmax", n_experts=2, n_classes=2)
    >>> theta = [1.0, 3.0, 0.0, 2.0, 0.0, 0.0, 1.0, -1.0]
    >>> X, y = sample(F, theta, n=500, rng=0)
    >>> found = fit(F.with_experts(3), X, y, starts=[MaximumStarts(F, theta)], rng=0)
    >>> found.certificate.n_starts, found.certificate.above_near_truth > -1e-6
    (13, True)
    """

    truth_family: Family
    truth: FloatArray = field(repr=False)
    count: int = 10
    near: int = 3
    noise: float = 0.1
    threads: int | None = 1
    name: str = "maximum"
    in_user_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        as_floats("truth", self.truth, (self.truth_family.n_params,))
        positive_int("starts: maximum", self.count, maximum=MOST_FITS)
        positive_int("starts: near", self.near, maximum=MOST_FITS)
        real_in("starts: noise", self.noise, 0.0)
        if self.threads is not None:
            positive_int("threads", self.threads)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The finalists, shape (m, P)."""
        return self.race(problem, rng).points

    def race(self, problem: Problem, rng: np.random.Generator) -> Finalists:
        """Run all starts for some steps, and the better ones to convergence."""
        neighbours = TruthStarts(self.truth_family, self.truth, self.near, self.noise)
        starts = neighbours.draw(problem, rng), self.draw_others(problem, rng)
        close, far = (run_starts(problem, points, _STEPS, self.threads) for points in starts)
        # The best near the truth goes on in any case: heights are compared with its own.
        others = sorted([*close[1:], *far], key=lambda run: -run.height)
        # Short least-squares runs, of steps without Hessians, say nothing of where they end.
        kept = len(others) if problem.family.is_regression else -(-(len(others) + 1) // _KEPT)
        at = _distinct(others)[:kept]
        points = np.array([close[0].theta, *(others[i].theta for i in at)])
        near, *rest = self._finish(problem, points)
        left = [run for i, run in enumerate(others) if i not in at]
        return _finalists(near, rest, left)

    def _finish(self, problem: Problem, points: FloatArray) -> list[RunEnd]:
        """The converged runs from points (m, P), in their order."""
        return [run_starts(problem, point[None], NEWTON_STEPS, self.threads)[0] for point in points]

    def draw_others(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starts (count, P) that are not near the truth, of all kinds in turn."""
        smaller = _Smaller(problem, self._fit_smaller(problem), self.truth_family.n_experts)
        kinds: list[Callable[[np.random.Generator], FloatArray]] = [
            lambda rng: RandomStarts().draw(problem, rng)[0],
            lambda rng: SplitStarts().draw(problem, rng)[0],
        ]
        if smaller.more > 0:
            kinds = [smaller.split, kinds[0], smaller.part_flatly, kinds[1], smaller.add_light]
        return np.array([draw(rng) for draw in islice(cycle(kinds), self.count)])

    def _fit_smaller(self, problem: Problem) -> FloatArray:
        """Some steps of the fit with the truth's number of experts, from the truth."""
        family = problem.family.with_experts(self.truth_family.n_experts)
        start = family.embed(self.truth_family, self.truth)
        small = Problem(family, problem.data, resolved=problem.resolved)
        return run_starts(small, start[None], _STEPS, self.threads)[0].theta


@door()
def make_sweep_starts(
    options: Mapping[str, Any], truth_family: Family, truth: FloatArray, fitted: Family
) -> list[StartRule]:
    """Start rules of a sweep from their table: those of `make_starts`, and ``"maximum"``.

    Parameters
    ----------
    options : mapping
        As `make_starts` takes it, and ``"maximum"``, the number of starts of a `MaximumStarts`
        besides those near the truth.
    truth_family, truth : Family and ndarray of shape (P*,)
        The truth.
    fitted : Family
        The family that is fitted.

    Returns
    -------
    list of StartRule
        The race for the maximum first.

    Raises
    ------
    ValueError
        As `make_starts`.

    Examples
    --------
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> rules = make_sweep_starts({"maximum": 10, "random": 2}, F, [0.0, 0.0, 1.0, -2.0], F)
    >>> [rule.name for rule in rules]
    ['maximum', 'random']
    """
    name = MaximumStarts.name
    others, count = {k: v for k, v in options.items() if k != name}, options.get(name, 0)
    positive_int(f"starts: {name}", count, 0, MOST_FITS)
    rules: list[StartRule] = [MaximumStarts(truth_family, truth, count)] if count else []
    if others or not count:
        rules += make_starts(others, truth_family, truth, fitted, (name,))
    return rules


@dataclass
class _Smaller:
    """A fit with fewer experts, as the place from which larger fits start."""

    problem: Problem  # of the larger family
    theta: FloatArray  # (P*,): parameters of the smaller fit
    n_experts: int  # k*

    @property
    def family(self) -> Family:
        """The larger family."""
        return self.problem.family

    @property
    def more(self) -> int:
        """Number of further atoms."""
        return self.family.n_experts - self.n_experts

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray]:
        """Atoms (k*, C) and shared parameters."""
        return self.family.with_experts(self.n_experts).split(self.theta)

    @cached_property
    def _scale(self) -> Scale:
        return Scale(self.problem)

    @cached_property
    def _unit(self) -> FloatArray:
        """Typical size of each parameter of random predictors, shape (P,)."""
        return self._scale.noise(self.family, np.random.default_rng(0), _DRAWS).std(axis=0)

    @cached_property
    def _allocations(self) -> Iterator[tuple[int, ...]]:
        """The allocations of the further atoms to the smaller fit's, in turn, without end."""
        return cycle(combinations_with_replacement(range(self.n_experts), self.more))

    @cached_property
    def _flat(self) -> dict[tuple[int, ...], FloatArray]:
        return {}

    def _copy(self, extra: tuple[int, ...]) -> FloatArray:
        """Parameters (P,) with copies of atoms, which share their masses."""
        atoms, shared = self._parts
        cells = np.array([*range(self.n_experts), *extra])
        copied = self.family.join(share_masses(self.family, atoms, cells), shared)
        return into_box(self.family, copied)[0]

    def split(self, rng: np.random.Generator) -> FloatArray:
        """The next allocation, all atoms moved at random by a random size."""
        noise = self._scale.noise(self.family, rng)[0]
        return self._copy(next(self._allocations)) + _size(rng) * noise

    def part_flatly(self, rng: np.random.Generator) -> FloatArray:
        """The next allocation, moved along a direction of least curvature by a random size."""
        extra = next(self._allocations)
        start = self._copy(extra)
        if extra not in self._flat:
            self._flat[extra] = self._flattest(start)
        direction = rng.choice(self._flat[extra])
        return start + rng.choice([-1.0, 1.0]) * _size(rng) * direction

    def _flattest(self, theta: FloatArray) -> FloatArray:
        """Directions (m, P) of least curvature at theta (P,), one typical size long."""
        family = self.family
        objective = Objective.GAUSS_NEWTON if family.is_regression else Objective.OBSERVED
        (evaluation,) = drive([_evaluate(objective, theta)], [self.problem.restart()], threads=1)
        free = np.flatnonzero(family.lower < family.upper)
        unit = self._unit[free]
        vectors = np.linalg.eigh(evaluation.hessian[np.ix_(free, free)] * np.outer(unit, unit))[1]
        directions = np.zeros((min(_FLATTEST, free.size), family.n_params))
        directions[:, free] = unit * vectors[:, : len(directions)].T
        return directions

    def add_light(self, rng: np.random.Generator) -> FloatArray:
        """The smaller fit with random atoms anywhere in the box, of a small mean weight.

        Where the gate has neither masses nor a first channel with an intercept of its own, the
        weight is what it is.
        """
        family, (atoms, shared) = self.family, self._parts
        drawn = self._scale.centre(family) + self._scale.noise(family, rng)[0]
        added = family.split(into_box(family, drawn)[0])[0][: self.more].copy()
        data = self.problem.data
        rows = rng.choice(data.size, min(_ROWS, data.size), replace=False)
        theta = family.join(np.vstack([atoms, added]), shared)
        weights = family.gate_probabilities(theta, data.X[:, rows].T)
        share = np.exp(rng.uniform(*np.log(_SHARES)))
        column = 0 if family.mass_column is None else family.mass_column
        added[:, column] += _log_odds_to(share, weights[:, self.n_experts :].sum(axis=1))
        return family.join(np.vstack([atoms, added]), shared)


def _evaluate(objective: Objective, theta: FloatArray) -> Iteration[Evaluation]:
    """The answer to one request."""
    return (yield Request(objective, theta))


def _size(rng: np.random.Generator) -> float:
    """A size of a split, uniform in its logarithm."""
    return float(np.exp(rng.uniform(*np.log(_SIZES))))


def _log_odds_to(share: float, weights: FloatArray) -> float:
    """What to add to the log-odds of weights (n,) so that their mean is `share`."""
    with np.errstate(divide="ignore"):
        log_odds = np.log(weights) - np.log1p(-np.minimum(weights, 1.0))
    low, high = -_FARTHEST, _FARTHEST
    while high - low > _FINE:
        middle = 0.5 * (low + high)
        mean = float(np.mean(expit(log_odds + middle)))
        low, high = (middle, high) if mean < share else (low, middle)
    return 0.5 * (low + high)


def _distinct(runs: list[RunEnd]) -> list[int]:
    """Positions of one run at each height, of runs in descending order."""
    at, last = list[int](), np.inf
    for i, run in enumerate(runs):
        if last - run.height > SAME_HEIGHT:
            at.append(i)
            last = run.height
    return at


def _finalists(near: RunEnd, rest: list[RunEnd], left: list[RunEnd]) -> Finalists:
    """The best run near the truth, the highest others, and how many runs came to each height."""
    ends = sorted([near, *rest, *left], key=lambda run: -run.height)
    heights, counts = [ends[i].height for i in _distinct(ends)], group_by_height(ends)[1]

    def place(run: RunEnd) -> int:
        """Number of the height that a run came to."""
        return max(i for i, height in enumerate(heights) if height >= run.height)

    rest = sorted(rest, key=lambda run: -run.height)
    # Of two runs at one height the one near the truth stands for both.
    others = [rest[i] for i in _distinct(rest) if place(rest[i]) != place(near)]
    chosen = [near, *others[: SEARCH.returned]]
    of_each = [counts[place(run)] for run in chosen]
    points = np.array([run.theta for run in chosen])
    return Finalists(points, of_each, len(ends) - sum(of_each), [run.height for run in ends])
