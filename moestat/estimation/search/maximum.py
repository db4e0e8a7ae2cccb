"""Starts for the maximum that theorems on over-specified fits speak of: the highest in the box.

With more experts than the truth the likelihood has many maxima: the further atoms share the place
of a true one, or fit noise anywhere in the box with a mass of order n^(-1/2) (Dacunha-Castelle and
Gassiat 1999).  Starts around the truth find those of the first kind, and not always the highest;
those of the second kind are looked for along the score process (`moestat.estimation.starts.score`).

Every start is climbed to convergence: heights after 8 to 30 steps say little of the final ones
(keeping the better half or quarter there loses the highest of 40 ends in every second cell, and
saves a third of the time).  Climbs run on the fewest rows that stand for all; on fewer, as on some
hundred quadrature nodes of classes, experts that are steps between two nodes have false maxima.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, islice
from typing import Any, ClassVar, NamedTuple

import numpy as np

from moestat.base.door import door, doors
from moestat.base.types import FloatArray
from moestat.base.validate import as_floats, positive_int, real_in
from moestat.estimation.rules import MOST_FITS, SEARCH
from moestat.estimation.search.higher import expected_distinct
from moestat.estimation.search.runs import (
    RunEnd,
    climb_each,
    group_by_height,
    heights_at,
    places_by_height,
    run_each,
    run_starts,
)
from moestat.estimation.starts import (
    CopyStarts,
    RandomStarts,
    ScoreStarts,
    SplitStarts,
    StartRule,
    TruthStarts,
    make_starts,
)
from moestat.estimation.starts.given import share_masses
from moestat.estimation.starts.scale import Scale, into_box
from moestat.model.family import Family
from moestat.solvers import Solution
from moestat.solvers.problem import Problem
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
"""Name of the best start of a search near the truth."""

_STEPS = 25
"""Most steps of the fit with the truth's number of experts, which is regular."""
_RUNS = 17
"""Runs of a search with the default numbers of starts."""
_COEFFICIENTS = (-0.848, 0.51, -3.445, -0.833)
"""Coefficients of the probability of a higher maximum, those of `covariates`, fitted to 133
over-specified cells of six kinds after one search and after two, from other starts than today's
(`benchmarks/sweep_starts.py`).  In 90 cells of another seed the Brier score is .256 after one
search, that of the mean share .250, and .219 and .218 after two; coefficients that are fitted again
do no better: heights of runs say little about higher ones."""
_BESIDE = 0.01
"""Distance from the truth, in units of random predictors, of runs that begin beside it."""
_FROM_FIT = 6
"""Starts from the fit with the truth's number of experts for each with random predictors."""


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
    truth: float
    """Height of the truth, -inf where the family has no place for it."""


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
    which six in seven begin at the fit with the truth's number of experts and one in seven has
    random predictors.  Where responses are numbers, the former have further experts in whose
    directions the likelihood rises most (`ScoreStarts`).  Those of classes have copies of the
    experts, in every allocation of the further ones to true ones, moved apart at random
    (`CopyStarts`): there all experts move on the way to a high maximum.  Without further atoms
    random predictors and splits of the one-expert fit take turns.  Where all of these end lower
    than the truth is, two more begin at it: the bounds of theorems hold for estimates at least as
    high.

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
        """Run all starts to convergence; the best run near the truth, and the highest others."""
        rows = _condensed(problem)
        neighbours = TruthStarts(self.truth_family, self.truth, self.near, self.noise)
        close = run_each(rows, neighbours.draw(rows, rng), NEWTON_STEPS)
        near = max(range(len(close)), key=lambda place: close[place].height)
        runs = [*close, *run_each(rows, self.draw_others(rows, rng), NEWTON_STEPS)]
        truth = self._truth_within(rows.family)
        least = float(np.max(heights_at(rows, truth), initial=-np.inf))
        if least > max(run.height for run in runs):
            # Derivatives do not lead copies at one place apart.
            beside = truth + _BESIDE * Scale(rows).noise(rows.family, rng)
            runs += climb_each(rows, np.vstack([truth, beside]), NEWTON_STEPS)
        groups = places_by_height(runs)
        (own,) = (group for group in groups if near in group)
        kept = [own, *(group for group in groups if group is not own)][: SEARCH.returned + 1]
        points = np.array([runs[place].theta for place in (near, *(g[0] for g in kept[1:]))])
        counts = [len(group) for group in kept]
        ends = [run.height for run in runs]
        return Finalists(points, counts, len(runs) - sum(counts), ends, least)

    def draw_others(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starts (count, P) that are not near the truth, of all kinds in turn."""
        family, k = problem.family, self.truth_family.n_experts
        rules: dict[str, Callable[[int], StartRule]] = {"random": RandomStarts}
        if family.n_experts > k:
            kinds = ["larger"] * _FROM_FIT + ["random"]
            rule = ScoreStarts if family.likelihood.support is None else CopyStarts
            rules["larger"] = partial(rule, family.with_experts(k), self._fit_smaller(problem))
        else:
            kinds, rules["split"] = ["random", "split"], SplitStarts
        wanted = Counter(islice(cycle(kinds), self.count))
        return np.vstack([rules[kind](n).draw(problem, rng) for kind, n in wanted.items()])

    def _truth_within(self, family: Family) -> FloatArray:
        """The truth in the family that is fitted (1, P), or (0, P) if that has fewer experts.

        Copies of all true atoms, as many of each as can be, that share the masses are the truth if
        it has a place there, also where masses are not free.
        """
        k, true = family.n_experts, self.truth_family.n_experts
        if k < true:
            return np.empty((0, family.n_params))
        small = family.with_experts(true)
        atoms, shared = small.split(small.embed(self.truth_family, self.truth))
        cells = np.arange(k) % true
        return into_box(family, family.join(share_masses(family, atoms, cells), shared)[None])

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


def _condensed(problem: Problem) -> Problem:
    """The problem on the fewest rows that stand for all, see `moestat.model.compression`."""
    level = next(level for level in problem.data.levels if not level.preview)
    return problem if level is problem.data else problem.replace_data(level)
