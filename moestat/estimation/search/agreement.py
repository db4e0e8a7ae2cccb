"""The default search for starting values, in four parts that are start rules themselves.

`Pool` draws starts of four kinds: small splits of the one-expert fit that are grown with a spring,
fits near planes, fits to soft clusters, and wide splits.  `Race` runs all starts of a pool for some
steps on a part of the rows, continues the best third on three times as many rows, and so on until
two runs are left, which it runs to convergence.  `Moves` improves the winner: in one round it
refits on resamples of the rows and returns to all rows, in the next it replaces, splits or divides
anew single experts; such neighbours race, too, and two rounds without a gain end it.  `Agreement`
repeats these searches with other random numbers until the estimated probability of a higher maximum
is at most `risk`.  Where most starts of the first pool reach one height that no neighbour exceeds,
it makes no further search.  The same rules hold for data of every size.

| constant | value | range | why |
|---|---|---|---|
| `Pool.count` | 4 an expert | 3 to 16 | one start of each kind for each expert |
| `SpringStarts.spring` | 1e-3 a row | 1e-4 to 1e-2 | regions form before the gate saturates |
| `Race.steps` | 20 | 8 to 25 | runs then rank nearly as they do at convergence |
| `Race.kept` | one in 3 | 2 to 4 | as in successive halving |
| `Race.rows` | 30 a parameter, at least 1000 | 20 to 60 | fewer rank runs of classes wrongly |
| `Moves.count`, `Moves.idle` | 3 an expert, 2 rounds | 1 to 4, 1 to 3 | one round of each kind |
| `Agreement.risk` | .05 | .05 to .15 | with .15 twice as many fits end lower in silence |
| `Agreement.searches` | 8, fewer for large data | 2 to 40 | n P^2 = 9e7 of work, some seconds |
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any, ClassVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.estimation.progress import LOG, so_far
from moestat.estimation.rules import HIGHER, MOST_FITS, SAME_HEIGHT, SEARCH
from moestat.estimation.search.higher import SearchRecord
from moestat.estimation.search.neighbours import (
    GrownStarts,
    SpringStarts,
    climb_on_resamples,
    draw_moves,
    near_planes,
)
from moestat.estimation.search.runs import (
    RunEnd,
    group_by_height,
    least_squares,
    run_starts,
    some_rows,
)
from moestat.estimation.starts import (
    SoftClusterStarts,
    SplitStarts,
    StartRule,
)
from moestat.solvers.driver import is_late
from moestat.solvers.problem import Problem
from moestat.solvers.rules import NEWTON_STEPS

__all__ = [
    "Agreement",
    "GrownStarts",
    "Moves",
    "Pool",
    "Race",
    "SpringStarts",
    "least_squares",
    "search_of",
]


@dataclass(frozen=True)
class Pool:
    """Starts of four kinds, in turn: grown with a spring, near planes, from clusters, wide splits.

    Parameters
    ----------
    count : int, optional
        Number of starts; four for each expert by default.
    more : sequence of StartRule
        Rules whose starts are added to the pool.
    """

    count: int | None = None
    more: tuple[StartRule, ...] = ()
    name: str = "pool"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.count is not None:
            positive_int("pool: count", self.count, maximum=MOST_FITS)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        count = self.count or 4 * problem.family.n_experts
        # The spread of the predictors does not depend on the number of inputs.
        apart = SplitStarts(noise=0.5 / np.sqrt(problem.family.n_features))
        kinds: list[Any] = [SpringStarts(), near_planes(problem.family), apart]
        if not problem.family.is_regression:  # sums of squares have no memberships
            kinds.insert(2, SoftClusterStarts())
        shares = [len(range(j, count, len(kinds))) for j in range(len(kinds))]
        rules = [replace(kind, count=c) for kind, c in zip(kinds, shares, strict=True) if c]
        rules += self.more
        return np.vstack([rule.draw(problem, rng) for rule in rules])


@dataclass(frozen=True)
class Race:
    """The winner of successive halving among starts.

    Parameters
    ----------
    pool : StartRule
        The rule whose starts race.
    steps : int
        Steps of a run in a rung.  With 20 steps, .57 and .50 of real data sets with three and four
        experts reach the best known maximum, with 12 steps .61 and .37 (`benchmarks/search.py`).
    kept : int
        In each rung the best run of every `kept` runs goes on, on `kept` times as many rows.
    rows : int
        Rows of the first rung for each parameter; the rung has at least 1000 rows.

    Notes
    -----
    Jamieson and Talwalkar (2016); the short runs of Biernacki, Celeux and Govaert (2003) have one
    rung.
    """

    pool: StartRule = field(default_factory=Pool)
    steps: int = 20
    kept: int = 3
    rows: int = 30
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
        started = self.start_runs(self.draw_rows(problem, rng), rng)
        return self.run_finals(problem, started, rng)[0].theta[None]

    def draw_rows(self, problem: Problem, rng: np.random.Generator, times: int = 1) -> Problem:
        """The problem on random rows: as many as the first rung has, or `times` as many."""
        rows = max(SEARCH.least, self.rows * problem.family.n_params)
        return some_rows(problem, rng, times * rows)

    def start_runs(self, part: Problem, rng: np.random.Generator, longer: int = 1) -> list[RunEnd]:
        """Run the pool's starts on the rows `part`, with `longer` times the steps; best first."""
        return run_starts(part, self.pool.draw(part, rng), longer * self.steps)

    def run_finals(
        self, problem: Problem, ends: list[RunEnd], rng: np.random.Generator
    ) -> list[RunEnd]:
        """Continue the runs of the first rung through the later ones; finalists, the best first."""
        times = 1
        while len(ends) > SEARCH.finalists * self.kept:
            times *= self.kept
            points = np.array([run.theta for run in ends[: -(-len(ends) // self.kept)]])
            ends = run_starts(self.draw_rows(problem, rng, times), points, self.steps)
        while True:
            first, ends = ends[: SEARCH.finalists], ends[SEARCH.finalists :]
            points = np.array([run.theta for run in first])
            final = run_starts(problem, points, NEWTON_STEPS)
            # Tied responses may lead the best runs to spikes; then one behind them may be sound.
            # After a deadline no run has a height, and the first remain the best.
            if np.isfinite(final[0].height) or not ends or is_late():
                return final


@dataclass(frozen=True)
class Moves:
    """A race, and rounds that improve its winner: on resamples of the rows, or with another expert.

    In every second round the winner runs some steps on resamples of the rows, and then on all rows.
    In the other rounds, if the response is a number, half of the moves divide the rows of two
    experts anew, those near a plane from the others.  Of the remaining moves every second one
    replaces an expert by a new one near the one-expert fit and grows it with the spring; the others
    replace an expert by a copy of another and separate the two at random.

    Parameters
    ----------
    race : Race
        The race whose winner the search starts from, and by which moves are compared.
    count : int, optional
        Moves of a round; three for each expert by default.
    resamples : int, optional
        Resamples of a round; as many as moves by default.  Of real data sets with three and four
        experts .56 and .47 then reach the best known maximum, with six resamples in all .50 and .33
        (in .85 of the time), with six for each expert .49 and .41 (in 1.2 times the time;
        `benchmarks/search.py`).
    idle : int
        Number of successive rounds with too little gain after which the search ends.
    gain : float
        Smallest sufficient gain in log-likelihood, at least .01.

    Notes
    -----
    The moves are those of the split and merge EM algorithm of Ueda, Nakano, Ghahramani and Hinton
    (2000), and of the greedy one of Verbeek, Vlassis and Krose (2003).  Temporary weights of the
    data are the ratchet of Nixon (1999).
    """

    race: Race = field(default_factory=Race)
    count: int | None = None
    resamples: int | None = None
    idle: int = 2
    gain: float = SAME_HEIGHT
    name: str = "search"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("moves: idle", self.idle, 0)
        real_in("moves: gain", self.gain, SAME_HEIGHT)
        for key in ("count", "resamples"):
            if getattr(self, key) is not None:
                positive_int(f"moves: {key}", getattr(self, key), maximum=MOST_FITS)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The end, shape (1, P)."""
        return self.run(problem, rng)[0].theta[None]

    def run(self, problem: Problem, rng: np.random.Generator) -> list[RunEnd]:
        """Search from the winner of a race; the finalists of the best round, highest first."""
        started = self.race.start_runs(self.race.draw_rows(problem, rng), rng)
        return self.improve(problem, self.race.run_finals(problem, started, rng), rng)

    def improve(
        self, problem: Problem, finalists: list[RunEnd], rng: np.random.Generator
    ) -> list[RunEnd]:
        """Improve the best of the finalists by rounds; those of the best round, highest first."""
        best, idle = finalists, 0
        rounds = cycle((self.resample_round, self.move_round))
        while problem.family.n_experts > 1 and idle < self.idle:
            ends = next(rounds)(problem, best[0].theta, rng)
            idle = 0 if ends[0].height > best[0].height + self.gain else idle + 1
            best = ends if ends[0].height > best[0].height + SAME_HEIGHT else best
        return best

    def resample_round(
        self, problem: Problem, theta: FloatArray, rng: np.random.Generator
    ) -> list[RunEnd]:
        """Race the points that theta (P,) reaches on resamples of the rows."""
        part, steps = self.race.draw_rows(problem, rng), self.race.steps
        count = self.resamples or self._round(problem)
        points = climb_on_resamples(part, theta, count, rng, steps)
        return self.race.run_finals(problem, run_starts(part, points, steps), rng)

    def move_round(
        self, problem: Problem, theta: FloatArray, rng: np.random.Generator
    ) -> list[RunEnd]:
        """Race the neighbours of theta (P,) that differ in one or two experts."""
        part = self.race.draw_rows(problem, rng)
        points = draw_moves(part, theta, self._round(problem), rng)
        ends = run_starts(part, points, self.race.steps)
        return self.race.run_finals(problem, ends, rng)

    def _round(self, problem: Problem) -> int:
        return self.count or 3 * problem.family.n_experts


@dataclass(frozen=True)
class Agreement:
    """Repeated searches, until the probability of a higher maximum is small.

    Parameters
    ----------
    search : Moves
        The search that is repeated with other random numbers.
    risk : float
        Largest accepted probability of a higher maximum.  While most starts of a pool agree,
        further pools are run until the probability is at most `risk`, and then neighbours are
        tried; otherwise searches are added until it is.
    searches : int
        Largest number of searches and of pools, which is reduced in proportion if rows and
        parameters are many.  If a single search exceeds the budget, each of its rounds has one
        resample for each expert and must gain more, in proportion.
    time_limit : float
        Number of seconds after which no further search begins.

    Notes
    -----
    The probability is `moestat.estimation.search.higher.probability_of_higher`; it replaces the
    expected share of local maxima that no run has reached, of Boender and Rinnooy Kan (1987).

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
    risk: float = 0.05
    searches: int = 8
    time_limit: float = np.inf
    name: str = "search"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive_int("searches", self.searches)
        real_in("risk", self.risk, 0.0, 1.0)
        if not (isinstance(self.time_limit, float) and self.time_limit == np.inf):
            real_in("time_limit", self.time_limit, 0.0)

    @property
    def is_calibrated(self) -> bool:
        """Whether it searches at least as much as the default, for which `higher` is calibrated."""
        pool = self.search.race.pool
        return isinstance(pool, Pool) and not pool.more and self.searches >= type(self).searches

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        return self.find_starts(problem, rng)[0]

    def rows(self, problem: Problem) -> int:
        """Number of rows that a search runs on; its starts have seen these."""
        return SEARCH.in_all * max(SEARCH.least, self.search.race.rows * problem.family.n_params)

    def new_record(self, on_all: bool, coefficients: tuple[float, ...] | None) -> SearchRecord:
        """A record without heights."""
        return SearchRecord(coefficients=coefficients or HIGHER.coefficients)

    def so_far(self, record: Any, problem: Problem) -> FloatArray:
        """The starts (m, P) of a search that was interrupted."""
        return so_far()

    def find_starts(
        self, problem: Problem, rng: np.random.Generator, record: SearchRecord | None = None
    ) -> tuple[FloatArray, list[int]]:
        """The highest ends (count, P), and how many runs reached each height, the highest first.

        The heights that the search has seen are added to `record`.
        """
        record = record or SearchRecord()
        deadline, race = time.monotonic() + self.time_limit, self.search.race
        sample = race.draw_rows(problem, rng, SEARCH.in_all)
        work, ends = sample.data.size * problem.family.n_params**2, list[RunEnd]()
        n_searches = int(np.clip(SEARCH.work / work, 1, self.searches))
        started = self._start_pools(sample, rng, n_searches, record)
        record.pool += [run.height for run in started]
        if problem.family.n_experts == 1:
            points = np.array([run.theta for run in started])
            started = run_starts(sample, points, NEWTON_STEPS)
            return started[0].theta[None], group_by_height(started)[1]
        finalists, agreed = list[RunEnd](), np.inf
        if _most_agree(started):
            counts = group_by_height(started)[1]
            if not self._accepts(problem, record, started):
                finalists = race.run_finals(sample, started, rng)
                agreed, record.agreeing = finalists[0].height, (counts[0], len(started))
            else:
                best = race.run_finals(sample, started[:1], rng)[0]
                if not self._has_higher_neighbour(sample, best, rng):
                    return best.theta[None], counts
        search = self.search
        if work > SEARCH.work:
            resamples = search.resamples or problem.family.n_experts
            search = replace(search, resamples=resamples, gain=search.gain * work / SEARCH.work)
        while len(ends) < n_searches and not self._accepts(problem, record, ends):
            LOG.info("search %d of %d at most", len(ends) + 1, n_searches)
            if ends:
                finalists = search.run(sample, rng)
            else:
                finalists = finalists or race.run_finals(sample, started, rng)
                finalists = search.improve(sample, finalists, rng)
            # If there is only one search, its finalists are the only ends that can agree.
            ends += finalists[: 1 if n_searches > 1 else None]
            if max(end.height for end in ends) > agreed + SAME_HEIGHT:
                record.agreeing = None
            if time.monotonic() > deadline:
                break
        record.ends += [run.height for run in ends]
        maxima, counts = group_by_height(ends)
        # Where searches are expensive and have used all rows, the lower ends stay lower.
        lower = n_searches < self.searches and sample is problem
        return np.array(maxima[: 1 if lower else SEARCH.returned]), counts

    def _start_pools(
        self, problem: Problem, rng: np.random.Generator, pools: int, record: SearchRecord
    ) -> list[RunEnd]:
        """Run a pool, and further pools while most runs reach the best height; best first."""
        started, part = list[RunEnd](), self.search.race.draw_rows(problem, rng)
        for _ in range(pools):
            started += self.search.race.start_runs(part, rng, 2)
            known = replace(record, pool=[run.height for run in started])
            if self._accepts(problem, known, started) or not _most_agree(started):
                break
        return sorted(started, key=lambda run: -run.height)

    def _has_higher_neighbour(
        self, problem: Problem, end: RunEnd, rng: np.random.Generator
    ) -> bool:
        """Whether one round of each kind, with a move for each expert, ends higher."""
        search = replace(self.search, count=problem.family.n_experts, resamples=None)
        return any(
            find_neighbours(problem, end.theta, rng)[0].height > end.height + SAME_HEIGHT
            for find_neighbours in (search.resample_round, search.move_round)
        )

    def _accepts(self, problem: Problem, record: SearchRecord, ends: Sequence[RunEnd]) -> bool:
        """Whether the probability of a maximum higher than these ends is at most `risk`."""
        sound = [end for end in ends if np.isfinite(end.height)]
        if not sound:
            return False
        best, k = group_by_height(sound)[1][0], problem.family.n_experts
        return record.chance(k, best, len(ends)) <= self.risk


def _most_agree(runs: Sequence[RunEnd]) -> bool:
    """Whether at least half of the runs, and two, reached the best height."""
    best = group_by_height(runs)[1][0]
    return best > 1 and 2 * best >= len(runs)


def search_of(
    count: int | None = None,
    searches: int = Agreement.searches,
    time_limit: float = np.inf,
    more: tuple[StartRule, ...] = (),
    risk: float | None = None,
) -> Agreement:
    """The default search, with `count` starts in a pool.

    Parameters
    ----------
    count : int, optional
        Number of starts; four for each expert by default.
    searches, time_limit
        As of `Agreement`.
    more : sequence of StartRule
        As of `Pool`.
    risk : float, optional
        As of `Agreement`, whose own it is by default.
    """
    if count is not None:
        positive_int("n_starts", count, maximum=MOST_FITS)
    accepted = Agreement.risk if risk is None else risk
    pools = Moves(Race(Pool(count, more=more)))
    return Agreement(pools, accepted, searches=searches, time_limit=time_limit)
