"""Starts for the maximum that theorems on over-specified fits speak of: the highest in the box.

With more experts than the truth the likelihood has many maxima: the further atoms share the place
of a true one, or fit noise anywhere in the box with a mass of order n^(-1/2) (Dacunha-Castelle and
Gassiat 1999).  Starts around the truth find those of the first kind, and not always the highest.

Every start is climbed to convergence: heights after 8 to 30 steps say little of the final ones
(keeping the better half or quarter there loses the highest of 40 ends in every second cell, and
saves a third of the time).  With one input and discrete responses climbs run on some hundred
quadrature nodes in place of the rows, where the maxima are the same and a step takes half the time
(`benchmarks/sweep_starts.py`).
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
from moestat.estimation.search.runs import RunEnd, group_by_height, run_each, run_starts
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
from moestat.model.compression import gauss_compress
from moestat.model.family import Family
from moestat.solvers import Solution
from moestat.solvers.driver import drive
from moestat.solvers.problem import Evaluation, Iteration, Objective, Problem, Request
from moestat.solvers.rows import Rows
from moestat.solvers.rules import DETAIL, NEWTON_STEPS

__all__ = [
    "NEAR",
    "Finalists",
    "MaximumStarts",
    "covariates",
    "judge",
    "make_sweep_starts",
]

NEAR = "near truth"
"""Name of the best start of a search near the truth."""

_STEPS = 25
"""Most steps of the fit with the truth's number of experts, which is regular."""
_PANELS = 10
"""Panels of the quadrature that stands for the rows of a class while a search climbs: with 8 to 30
the highest of 45 ends is the same, with 5 it is lost in every second cell."""
_MOST = 50_000
"""Largest n for it: heights on nodes err by more the larger n is, by .1 for n = 16,000."""
_SAVED = 2
"""Rows over nodes from which on the quadrature saves time."""
_REFINED = 8
"""Number of the highest ends on nodes that are climbed on from on all rows: heights there differ
from those on nodes by .1, and by more than 1 where an expert is a step."""
_SIZES = (0.2, 1.5)
"""Smallest and largest size of a split, in units of random predictors (`RandomStarts`): from copies
that have hardly parted to atoms that are nowhere near."""
_SHARES = (0.01, 0.1)
"""Smallest and largest mean weight of an added expert of small weight: of the order n^(-1/2) for n
from 100 to 1e4."""
_ROWS = 200
"""Rows by which this mean weight is set: it is then known to about a tenth."""
_FLATTEST = 3
"""Number of directions of least curvature that a start may move along: copies of an atom part in
as many ways as the atom has parameters, and the flattest ones are where the likelihood rises."""
_RUNS = 17
"""Runs of a search with the default numbers of starts."""
_COEFFICIENTS = (-0.848, 0.51, -3.445, -0.833)
"""Coefficients of the probability of a higher maximum, those of `covariates`, fitted to 133
over-specified cells of six kinds after one search and after two (`benchmarks/sweep_starts.py`).  In
90 cells of another seed the Brier score is .231 after one search, that of the mean share .250, and
.224 and .226 after two: heights of runs say little about higher ones."""
_DRAWS = 64
"""Random predictors from which typical sizes are known to a tenth."""
_FARTHEST, _FINE = 60.0, 0.01
"""Largest change of a logarithm of odds, and how exactly it is found."""


class Finalists(NamedTuple):
    """The runs of a search that go on to the solver of the fit."""

    points: FloatArray
    """Parameters (m, P): of the best run near the truth, and of the highest others."""
    counts: list[int]
    """Number of runs that came to each."""
    lower: int
    """Number of runs that ended lower."""
    ends: list[float]
    """Heights of all runs."""


def judge(searches: Sequence[Finalists], best: Solution, near: Solution) -> Solution:
    """The best solution, with what the searches say of it.

    That is how far it is above the solution near the truth, and the probability of a higher one.
    """
    heights = [height for search in searches for height in search.ends]
    chance = 1.0 / (1.0 + math.exp(-float(np.dot(_COEFFICIENTS, covariates(heights)))))
    above = float(best.log_likelihood - near.log_likelihood)
    certificate = replace(best.certificate, above_near_truth=above, p_higher=chance)
    return replace(best, certificate=certificate)


def covariates(heights: Sequence[float]) -> FloatArray:
    """The covariates of the probability of a higher maximum than the highest of some runs.

    They are 1, the logarithm of the expected number of heights that 17 of the runs come to, the
    share of further runs that reached the best one, and the logarithm of the number of runs, in
    units of 17.
    """
    counts = group_by_height([RunEnd(np.empty(0), height) for height in heights])[1]
    distinct, n_runs = expected_distinct(counts, _RUNS), len(heights)
    share = (counts[0] - 1.0) / (n_runs + 1.0)
    return np.array([1.0, math.log(distinct), share, math.log(n_runs / _RUNS)])


@doors
@dataclass(frozen=True)
class MaximumStarts:
    """The highest ends of climbs from near the truth, from splits of it, and from all over the box.

    There are `near` starts around the truth, as `TruthStarts` has them, and `count` others, of
    which six in seven begin at the fit with the truth's number of experts: with experts of small
    weight added anywhere in the box, or with its atoms copied, in every allocation of the further
    atoms to true ones, and moved apart at random or along the directions in which the likelihood is
    flattest, by random sizes.  One in seven has random predictors.  Without further atoms random
    predictors and splits of the one-expert fit take turns.

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
    (17, True)
    """

    truth_family: Family
    truth: FloatArray = field(repr=False)
    count: int = 14
    near: int = 3
    noise: float = 0.1
    name: str = "maximum"
    in_user_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        as_floats("truth", self.truth, (self.truth_family.n_params,))
        positive_int("starts: maximum", self.count, maximum=MOST_FITS)
        positive_int("starts: near", self.near, maximum=MOST_FITS)
        real_in("starts: noise", self.noise, 0.0)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The finalists, shape (m, P)."""
        return self.search(problem, rng).points

    def search(self, problem: Problem, rng: np.random.Generator) -> Finalists:
        """Run all starts to convergence on few rows, and the highest ends on more."""
        coarse, rows = _coarsest(problem), _condensed(problem)
        neighbours = TruthStarts(self.truth_family, self.truth, self.near, self.noise)
        close = self._climb(coarse, neighbours.draw(coarse, rng))
        near = max(close, key=lambda run: run.height)
        far = self._climb(coarse, self.draw_others(coarse, rng))
        runs = sorted([near, *(run for run in close if run is not near), *far], key=_depth)
        at, counts = _distinct(runs), group_by_height(runs)[1]
        place = max(j for j, i in enumerate(at) if runs[i].height >= near.height)
        others = [j for j in range(min(len(at), _REFINED)) if j != place]
        ends = [near, *(runs[at[j]] for j in others)]
        if rows is not coarse:
            ends = self._climb(rows, np.array([end.theta for end in ends]))
        kept = sorted(range(1, len(ends)), key=lambda i: -ends[i].height)[: SEARCH.returned]
        of_each = [counts[place], *(counts[others[i - 1]] for i in kept)]
        points = np.array([ends[i].theta for i in (0, *kept)])
        heights = [run.height for run in runs]
        return Finalists(points, of_each, len(runs) - sum(of_each), heights)

    def _climb(self, problem: Problem, points: FloatArray) -> list[RunEnd]:
        """The converged runs from points (m, P), in their order."""
        return run_each(problem, points, NEWTON_STEPS)

    def draw_others(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starts (count, P) that are not near the truth, of all kinds in turn."""
        smaller = _Smaller(problem, self._fit_smaller(problem), self.truth_family.n_experts)
        kinds: list[Callable[[np.random.Generator], FloatArray]] = [
            lambda rng: RandomStarts().draw(problem, rng)[0],
            lambda rng: SplitStarts().draw(problem, rng)[0],
        ]
        if smaller.more > 0:
            each = [smaller.add_small, smaller.split, smaller.part_flatly]
            kinds = [*each, *each, kinds[0]]
        return np.array([draw(rng) for draw in islice(cycle(kinds), self.count)])

    def _fit_smaller(self, problem: Problem) -> FloatArray:
        """Some steps of the fit with the truth's number of experts, from the truth."""
        family = problem.family.with_experts(self.truth_family.n_experts)
        start = family.embed(self.truth_family, self.truth)
        small = Problem(family, problem.data, resolved=problem.resolved)
        return run_starts(small, start[None], _STEPS)[0].theta


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
        The search for the maximum first.

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

    def add_small(self, rng: np.random.Generator) -> FloatArray:
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


def _depth(run: RunEnd) -> float:
    """Minus the height of a run."""
    return -run.height


def _condensed(problem: Problem) -> Problem:
    """The problem on the fewest rows that stand for all, see `moestat.model.compression`."""
    level = next(level for level in problem.data.levels if not level.preview)
    return problem if level is problem.data else problem.replace_data(level)


def _coarsest(problem: Problem) -> Problem:
    """The problem on some hundred rows on which runs find the maxima, or the condensed one."""
    data = problem.data
    classes = data.X.shape[0] == 1 and np.issubdtype(data.y.dtype, np.integer)
    few = float(data.weight.sum()) <= _MOST
    if classes and few and data.begin is None and not data.whole:
        x, y, weight = gauss_compress(data.X[0], data.y, data.weight, _PANELS, DETAIL.nodes)
        if _SAVED * len(x) <= data.size:
            return problem.replace_data(Rows(np.ascontiguousarray(x[None]), y, weight))
    return _condensed(problem)
