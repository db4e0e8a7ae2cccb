"""A search for starts in parts: a pool, a race, moves, agreement; each a start rule of its own.

Small splits of the one-expert fit, grown with a spring to it, and clusters of the rows are a pool
(`Pool`).  In a race (`Race`) all of them climb some steps on a part of the rows, and the best third
goes on with three times as many rows, until one is left and climbs to its end.  Then atoms of the
winner are drawn anew or split, and such neighbours race, too, until two rounds have bettered
nothing (`Moves`).  Where the starts of a first pool, or of some, end at few heights the search is
over; else it is repeated with other random numbers until its ends, which are independent, leave
little chance of a maximum that none has seen (`Agreement`).  No family, size or kind of response is
treated apart.

Default fits look at a pool, and end where it agrees; else they go on as
`moestat.estimation.short_runs` says.

| constant | value | of |
|---|---|---|
| starts, moves | 4, 2 for each expert | `Pool.count`, `Moves.count` |
| spring | 1e-3 a row, up to ten times more or less | `SpringStarts.spring` |
| steps | 25 of a run in a rung, half as many with the spring | `Race.steps` |
| kept | one in 3 | `Race.kept` |
| rows | 30 a parameter in the first rung, 1000 at least; 20 times these in all | `Race.rows` |
| idle rounds | 2 | `Moves.idle` |
| risk | .1 | `Agreement.risk` |
| searches | 8; 2 to 7 from 3e7 rows times squared parameters on | `Agreement.searches` |
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.estimation.progress import LOG, keep
from moestat.estimation.starts import (
    MOST_STARTS,
    ClusterStarts,
    SoftClusterStarts,
    SplitStarts,
    StartRule,
    into_box,
    one_expert,
    predictor_noise,
)
from moestat.model.family import Family
from moestat.solvers import GaussNewtonBFGS, Newton, NewtonSquares
from moestat.solvers.bfgs import bfgs_steps
from moestat.solvers.collapse import collapsed_atoms
from moestat.solvers.driver import drive
from moestat.solvers.least_squares.base import LeastSquaresSolver
from moestat.solvers.penalised import SprungProblem
from moestat.solvers.problem import Iteration, Objective, Problem
from moestat.solvers.quasi_newton import MANY
from moestat.solvers.trust_region.newton_loop import newton_steps

__all__ = ["Agreement", "Moves", "Pool", "Race", "SpringStarts", "least_squares", "on_threads"]

_LEAST, _IN_ALL = 1000, 20  # rows of a first rung, and all of a search in these
_TO_THE_END = 300  # steps of a run that nothing cuts off
_BFGS = 4  # steps of BFGS in place of one by a Hessian
_WORK = 3e7  # rows times squared parameters from which on fewer than all searches are made
_RETURNED = 3  # ends that start a fit to all rows
_SAME_HEIGHT = 1e-2  # in natural-log units

Ended = tuple[FloatArray, float]
"""Parameters (P,) of a run, and its log-likelihood; -inf with a collapsed atom."""

Rule = TypeVar("Rule")


@dataclass(frozen=True)
class SpringStarts:
    """Small splits of the one-expert fit, grown with a spring that ties every atom to it.

    Regions of the gate form before any of them saturates.  The spring adds ``s n (theta - c)' M
    (theta - c) / 2`` to minus the log-likelihood, c the one-expert fit in every atom and M the
    mean squares of predictors, with s log-uniform within ten times `spring`.

    Parameters
    ----------
    count : int
        Number of starts.
    noise : float
        Standard deviation of the predictors around the one-expert fit, see `SplitStarts`.
    spring : float
        Stiffness for each row.
    steps : int
        Steps that each grows.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.

    Notes
    -----
    A penalty that is let go is a homotopy, as deterministic annealing is (Ueda and Nakano 1998).
    """

    count: int = 1
    noise: float = 0.1
    spring: float = 1e-3
    steps: int = 12
    threads: int | None = 1
    name: str = "spring"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("starts: spring", self.count, maximum=MOST_STARTS)
        positive_int("steps", self.steps)
        for key in ("noise", "spring"):
            real_in(f"starts: {key}", getattr(self, key), 0.0, open_low=True)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        return self.grown(problem, SplitStarts(self.count, self.noise).draw(problem, rng), rng)

    def grown(self, problem: Problem, points: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Where points (m, P) come with the spring; sums of squares have none."""
        points = into_box(problem.family, points)
        if problem.family.is_regression or not len(points):
            return points
        centre = one_expert(problem)
        unit = self.spring * problem.data.weight.sum() * problem.metric(centre)
        springs = 10.0 ** rng.uniform(-1.0, 1.0, len(points))
        sprung: list[Problem] = [
            SprungProblem(problem.family, problem.data, spring=(centre, s * unit)) for s in springs
        ]
        return np.array([theta for theta, _ in _climbed(sprung, points, self.steps, self.threads)])


@dataclass(frozen=True)
class Pool:
    """Starts of four kinds: half grown with a spring, the others clusters, soft ones and splits.

    Parameters
    ----------
    count : int, optional
        Number of starts; four for each expert by default.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.
    """

    count: int | None = None
    threads: int | None = 1
    name: str = "pool"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.count is not None:
            positive_int("pool: count", self.count, maximum=MOST_STARTS)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        count = self.count or 4 * problem.family.n_experts
        sprung = SpringStarts(threads=self.threads)
        # Predictors that differ alike, whatever the number of inputs.
        apart = SplitStarts(noise=0.5 / np.sqrt(problem.family.n_features))
        others = ClusterStarts(steps=3), apart, SoftClusterStarts(steps=3)
        kinds: list[Any] = [kind for other in others for kind in (sprung, other)]
        shares = [len(range(j, count, len(kinds))) for j in range(len(kinds))]
        drawn = zip(kinds, shares, strict=True)
        return np.vstack([replace(kind, count=c).draw(problem, rng) for kind, c in drawn if c])


@dataclass(frozen=True)
class Race:
    """The winner of successive halving among starts.

    Parameters
    ----------
    pool : StartRule
        What races.
    steps : int
        Steps of a run in a rung.
    kept : int
        One in so many goes on, on so many times as many rows.
    rows : int
        Rows of the first rung for each parameter, 1000 at least.
    threads : int or None
        Threads over runs; all cores for None.  The winner does not depend on it.

    Notes
    -----
    Jamieson and Talwalkar (2016); the short runs of Biernacki, Celeux and Govaert (2003) have one
    rung.
    """

    pool: StartRule = field(default_factory=Pool)
    steps: int = 25
    kept: int = 3
    rows: int = 30
    threads: int | None = 1
    name: str = "race"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if getattr(self.pool, "in_user_units", True):
            raise ValueError(
                "race: pool must be a rule of its own, such as Pool(); give values of your own"
                " beside it, starts=[GivenStarts(points), Agreement()]"
            )
        for key, least in (("steps", 1), ("kept", 2), ("rows", 1)):
            positive_int(f"race: {key}", getattr(self, key), least)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The winner, shape (1, P)."""
        return self.won(problem, self.begun(problem, rng), rng)[0][None]

    def part(self, problem: Problem, rng: np.random.Generator, times: int = 1) -> Problem:
        """The problem on the rows of a rung, or on so many times as many."""
        rows = max(_LEAST, self.rows * problem.family.n_params)
        return _some_rows(problem, rng, times * rows)

    def begun(self, problem: Problem, rng: np.random.Generator) -> list[Ended]:
        """The starts after the first rung, best first."""
        part = self.part(problem, rng)
        return self.rung(part, self.pool.draw(part, rng))

    def rung(self, part: Problem, points: FloatArray) -> list[Ended]:
        """Points (m, P) after a rung on these rows."""
        return _ended(part, points, self.steps, self.threads)

    def won(self, problem: Problem, ends: list[Ended], rng: np.random.Generator) -> Ended:
        """The winner, from where a first rung has ended."""
        times = 1
        while True:
            points = np.array([theta for theta, _ in ends[: -(-len(ends) // self.kept)]])
            if len(points) == 1:
                return _ended(problem, points, _TO_THE_END, self.threads)[0]
            times *= self.kept
            ends = self.rung(self.part(problem, rng, times), points)


@dataclass(frozen=True)
class Moves:
    """A race and its betterment: atoms of the winner are drawn anew or split, in rounds.

    Every second move replaces an atom by a fresh one near the one-expert fit and grows with the
    spring; the others replace one by a copy of another and pull the two apart at random.

    Parameters
    ----------
    race : Race
        Whose winner begins, and how moves race.
    count : int, optional
        Moves of a round; two for each expert by default.
    idle : int
        Rounds without a better end after which it ends.

    Notes
    -----
    The moves are those of the split and merge EM of Ueda, Nakano, Ghahramani and Hinton (2000).
    """

    race: Race = field(default_factory=Race)
    count: int | None = None
    idle: int = 2
    name: str = "search"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("moves: idle", self.idle, 0)
        if self.count is not None:
            positive_int("moves: count", self.count, maximum=MOST_STARTS)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The end, shape (1, P)."""
        return self.bettered(problem, self.race.begun(problem, rng), rng)[0][None]

    def bettered(self, problem: Problem, begun: list[Ended], rng: np.random.Generator) -> Ended:
        """The end, from where the first rung of a race has ended."""
        race, k, idle = self.race, problem.family.n_experts, 0
        best = race.won(problem, begun, rng)
        while k > 1 and idle < self.idle:
            part = race.part(problem, rng)
            moved = _moves(part, best[0], self.count or 2 * k, rng)
            end = race.won(problem, race.rung(part, moved), rng)
            idle = 0 if end[1] > best[1] + _SAME_HEIGHT else idle + 1
            best = max(best, end, key=lambda run: run[1])
        return best


@dataclass(frozen=True)
class Agreement:
    """Searches until they agree.

    Parameters
    ----------
    search : Moves
        What is repeated, with other random numbers.
    risk : float
        It ends once the expected share of maxima that none has seen, ``w (w + 1) / (m (m - 1))``
        after m ends at w heights, is no more: at the starts of the first pool, or later at the ends
        of searches.
    searches : int
        Searches at most; in proportion fewer where rows and parameters are many, but two.
    time_limit : float
        No further search begins after so many seconds.

    Notes
    -----
    The share is that of Boender and Rinnooy Kan (1987).

    Examples
    --------
    >>> from moestat import family, fit, sample
    >>> F = family("gaussian", gate="softmax", n_experts=2)
    >>> theta = F.pack({"beta0": [0, 0], "beta1": [5, 0], "a": [2, -2], "b": [0, 0], "nu": [1, 1]})
    >>> X, y = sample(F, theta, n=300, rng=0)
    >>> thorough = Agreement(Moves(Race(Pool(40))), searches=4)
    >>> fit(F, X, y, starts=[thorough], rng=0).certificate.certified
    True
    """

    search: Moves = field(default_factory=Moves)
    risk: float = 0.1
    searches: int = 8
    time_limit: float = np.inf
    name: str = "search"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("searches", self.searches)
        real_in("risk", self.risk, 0.0, 1.0)
        if not (isinstance(self.time_limit, float) and self.time_limit == np.inf):
            real_in("time_limit", self.time_limit, 0.0)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        return self.find(problem, rng)[0]

    def rows(self, problem: Problem) -> int:
        """How many of the rows its starts have been fitted to."""
        return _IN_ALL * max(_LEAST, self.search.race.rows * problem.family.n_params)

    def find(self, problem: Problem, rng: np.random.Generator) -> tuple[FloatArray, list[int]]:
        """The highest ends (count, P), and how many have come to each height, the highest first."""
        deadline = time.monotonic() + self.time_limit
        race = self.search.race
        whole = race.part(problem, rng, _IN_ALL)
        begun = self.begun(whole, rng)
        if problem.family.n_experts == 1 or _unseen(begun) <= self.risk:
            return self.agreed(whole, begun, rng)
        ends = [self.search.bettered(whole, begun, rng)]
        worth = self.searches * _WORK / (whole.data.size * problem.family.n_params**2)
        most = int(np.clip(worth, min(2, self.searches), self.searches))
        while len(ends) < most and _unseen(ends) > self.risk and time.monotonic() <= deadline:
            LOG.info("search %d of %d at most", len(ends), most)
            ends.append(self.search.bettered(whole, race.begun(whole, rng), rng))
        kept, counts = _heights(ends)
        return np.array(kept[:_RETURNED]), counts

    def look(
        self, problem: Problem, rng: np.random.Generator
    ) -> tuple[FloatArray, list[int]] | None:
        """As `find`, where the starts of a pool, or of some, agree; else None."""
        whole = self.search.race.part(problem, rng, _IN_ALL)
        begun = self.begun(whole, rng)
        return self.agreed(whole, begun, rng) if _unseen(begun) <= self.risk else None

    def begun(self, problem: Problem, rng: np.random.Generator) -> list[Ended]:
        """Starts of a pool, or of more as long as most of them are at the best height."""
        begun = self.search.race.begun(problem, rng)
        while self._is_undecided(begun):
            begun += self.search.race.begun(problem, rng)
        return sorted(begun, key=lambda run: -run[1])

    def agreed(
        self, problem: Problem, begun: Sequence[Ended], rng: np.random.Generator
    ) -> tuple[FloatArray, list[int]]:
        """The best of starts that agree, climbed to its end, and how many came to each height."""
        end, _ = self.search.race.won(problem, [begun[0]], rng)
        return end[None], _heights(begun)[1]

    def _is_undecided(self, begun: Sequence[Ended]) -> bool:
        """Whether most starts have come to the best height, and too few starts."""
        return _unseen(begun) > self.risk and 2 * _heights(begun)[1][0] >= len(begun) > 1


def on_threads(rule: Rule, threads: int | None) -> Rule:
    """A rule, and the rules it is made of, with so many threads."""
    if not is_dataclass(rule) or isinstance(rule, type):
        return rule
    own = {f.name: getattr(rule, f.name) for f in fields(rule) if f.init}
    inner = {key: on_threads(value, threads) for key, value in own.items() if is_dataclass(value)}
    return replace(rule, **inner, **({"threads": threads} if "threads" in own else {}))


def least_squares(family: Family) -> LeastSquaresSolver:
    """Ended by Hessians where they are small and exist, else by gradients alone."""
    by_hessians = family.n_params <= MANY and not family.has_kinked_mean
    return NewtonSquares() if by_hessians else GaussNewtonBFGS()


def _heights(ends: Sequence[Ended]) -> tuple[list[FloatArray], list[int]]:
    """Parameters of one end at each height, the highest first, and how many ended there."""
    kept: list[FloatArray] = []
    counts: list[int] = []
    last = np.inf
    for theta, height in sorted(ends, key=lambda run: -run[1]):
        if kept and last - height <= _SAME_HEIGHT:
            counts[-1] += 1
        else:
            kept, counts, last = [*kept, theta], [*counts, 1], height
    return kept, counts


def _unseen(ends: Sequence[Ended]) -> float:
    """Expected share of maxima that none has seen, Boender and Rinnooy Kan (1987)."""
    runs, heights = len(ends), len(_heights(ends)[0])
    return heights * (heights + 1) / (runs * (runs - 1)) if runs > 1 else 1.0


def _climbed(
    problems: Sequence[Problem], points: FloatArray, steps: int, threads: int | None
) -> list[Ended]:
    runs = zip(problems, points, strict=True)
    return drive([_iteration(problem, start, steps) for problem, start in runs], problems, threads)


def _ended(problem: Problem, points: FloatArray, steps: int, threads: int | None) -> list[Ended]:
    """Where points (m, P) are after so many steps, best first."""
    starts = into_box(problem.family, points)
    ends = _climbed([problem.restart() for _ in starts], starts, steps, threads)
    sound = [np.isfinite(height) and not collapsed_atoms(problem, theta) for theta, height in ends]
    judged = [(end[0], end[1] if ok else -np.inf) for end, ok in zip(ends, sound, strict=True)]
    keep(judged, steps, problem.data.size)
    return sorted(judged, key=lambda run: -run[1])


def _some_rows(problem: Problem, rng: np.random.Generator, most: int) -> Problem:
    """The problem on so many rows, drawn by their weights, or on points that stand for all."""
    data = problem.data
    if data.size <= most:
        return problem
    standing = [level for level in data.levels[:-1] if not level.preview]
    if standing:
        return problem.replace_data(standing[-1])
    units = data.units
    count, weight = max(1, most * units.size // data.size), np.zeros(units.size)
    if np.ptp(units) == 0.0:
        weight[rng.choice(units.size, count, replace=False)] = 1.0
    else:
        np.add.at(weight, rng.choice(units.size, count, p=units / units.sum()), 1.0)
    return problem.replace_data(data.reweighted(weight))


def _iteration(problem: Problem, start: FloatArray, steps: int) -> Iteration[Ended]:
    """A run of so many steps, by the kind of derivatives that a fit would take."""
    family = problem.family
    if family.has_jumps:
        ran = yield from newton_steps(problem, Objective.OBSERVED, start, 1e-6, steps)
        return ran.theta, -ran.value
    if family.is_regression:
        solver = replace(least_squares(family), max_iterations=steps)
        solution = yield from solver.steps(problem, start)
        return solution.theta, solution.log_likelihood
    near = 0.1 * _SAME_HEIGHT
    if family.n_params > MANY:
        end, here, _ = yield from bfgs_steps(problem, start, -1, _BFGS * steps, near)
        return end, -here.value
    end, here, *_ = yield from Newton(near, steps).climb(problem, start)
    return end, -here.value


def _moves(problem: Problem, theta: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Parameters (count, P) in which an atom of theta is a fresh one, or a copy of another."""
    family = problem.family
    moved, noise = np.empty((count, family.n_params)), predictor_noise(problem, rng, count)
    before, shared = family.split(theta)
    fresh = family.split(one_expert(problem))[0]
    gone = rng.permutation(np.arange(count) % family.n_experts)
    for j, g in enumerate(gone):
        atoms, drawn = before.copy(), 0.5 * family.split(noise[j])[0]
        if j % 2:
            atoms[g] = fresh[g] + drawn[g]
        else:
            pair = [g, rng.choice(np.delete(np.arange(family.n_experts), g))]
            atoms[g] = atoms[pair[1]]
            if family.mass_column is not None:
                atoms[pair, family.mass_column] -= np.log(2.0)
            atoms[pair] += drawn[pair]
        moved[j] = family.join(atoms, shared)
    moved[1::2] = SpringStarts().grown(problem, moved[1::2], rng)
    return moved
