"""A search for starts in parts: a pool, a race, moves, agreement; each a start rule of its own.

Small splits of the one-expert fit grown with a spring to it, fits near planes and to soft clusters,
and wide splits are a pool (`Pool`).  In a race (`Race`) all of them climb some steps on a part of
the rows, and the best third goes on with three times as many rows, until two are left and climb to
their ends.  Then the winner climbs some steps on resamples of the rows and back, and in turn atoms
of it are drawn anew, split or parted from others; such neighbours race, too, until two rounds have
bettered nothing (`Moves`).  Where most starts of a pool agree on a height that no neighbour
betters the search is over; else it is repeated with other random numbers until its ends, which are
independent, leave a probability of a higher maximum that is accepted (`Agreement`).  No size is
treated apart; of a response that is a number planes have widths.

| constant | value | range | why |
|---|---|---|---|
| `Pool.count` | 4 an expert | 3 to 16 | of each kind one an expert |
| `SpringStarts.spring` | 1e-3 a row | 1e-4 to 1e-2 | regions form before the gate saturates |
| `Race.steps` | 20 | 8 to 25 | heights are then about in the order of the ends |
| `Race.kept` | one in 3 | 2 to 4 | as of successive halving |
| `Race.rows` | 30 a parameter, 1000 at least | 20 to 60 | fewer rank a race of classes wrongly |
| `Moves.count`, `Moves.idle` | 3 an expert, 2 rounds | 1 to 4, 1 to 3 | a round of each kind |
| `Agreement.risk` | .15 | .1 to .2 | heights are those of five equal ends; with .2 some are lower |
| `Agreement.searches` | 8, less work | 2 to 40 | a budget of n P^2 = 9e7, some seconds |
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import cycle
from typing import Any, ClassVar, TypeVar

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, real_in
from moestat.estimation.higher import probability_of_higher
from moestat.estimation.neighbours import GrownStarts, SpringStarts, moves, near_planes, resampled
from moestat.estimation.progress import LOG
from moestat.estimation.rules import SAME_HEIGHT, SEARCH
from moestat.estimation.runs import (
    Ended,
    Seen,
    ended,
    heights,
    least_squares,
    some_rows,
)
from moestat.estimation.starts import (
    MOST_STARTS,
    SoftClusterStarts,
    SplitStarts,
    StartRule,
)
from moestat.solvers.problem import Problem

__all__ = [
    "Agreement",
    "GrownStarts",
    "Moves",
    "Pool",
    "Race",
    "SpringStarts",
    "least_squares",
    "on_threads",
    "search_of",
]

Rule = TypeVar("Rule")


@dataclass(frozen=True)
class Pool:
    """Starts of four kinds, in turn: grown with a spring, near planes, of clusters, wide splits.

    Parameters
    ----------
    count : int, optional
        Number of starts; four for each expert by default.
    threads : int or None
        Threads over starts; all cores for None.  The starts do not depend on it.
    more : sequence of StartRule
        Rules whose starts are in the pool, too.
    """

    count: int | None = None
    threads: int | None = 1
    more: tuple[StartRule, ...] = ()
    name: str = "pool"
    in_user_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.count is not None:
            positive_int("pool: count", self.count, maximum=MOST_STARTS)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        count = self.count or 4 * problem.family.n_experts
        # Predictors that differ alike, whatever the number of inputs.
        apart = SplitStarts(noise=0.5 / np.sqrt(problem.family.n_features))
        kinds: list[Any] = [SpringStarts(threads=self.threads), near_planes(problem.family), apart]
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
    steps: int = 20
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
        return self.won(problem, self.begun(self.part(problem, rng), rng), rng)[0][0][None]

    def part(self, problem: Problem, rng: np.random.Generator, times: int = 1) -> Problem:
        """The problem on the rows of a rung, or on so many times as many."""
        rows = max(SEARCH.least, self.rows * problem.family.n_params)
        return some_rows(problem, rng, times * rows)

    def begun(self, part: Problem, rng: np.random.Generator, longer: int = 1) -> list[Ended]:
        """The starts after a rung on its part, of so many times its steps, best first."""
        return ended(part, self.pool.draw(part, rng), longer * self.steps, self.threads)

    def won(self, problem: Problem, ends: list[Ended], rng: np.random.Generator) -> list[Ended]:
        """The finalists, the winner first, from where a first rung has ended."""
        times = 1
        while len(ends) > SEARCH.finalists * self.kept:
            times *= self.kept
            points = np.array([run.theta for run in ends[: -(-len(ends) // self.kept)]])
            ends = ended(self.part(problem, rng, times), points, self.steps, self.threads)
        while True:
            first, ends = ends[: SEARCH.finalists], ends[SEARCH.finalists :]
            points = np.array([run.theta for run in first])
            final = ended(problem, points, SEARCH.to_the_end, self.threads)
            # Where ties draw the leaders to spikes a sound end may be among those behind them.
            if np.isfinite(final[0][1]) or not ends:
                return final


@dataclass(frozen=True)
class Moves:
    """A race, and rounds that improve its winner: on resamples of the rows, or with another atom.

    In every second round the winner climbs some steps on resamples of the rows, each of which then
    climbs on all rows.  In the others, of a response that is a number every second move parts the
    rows of two atoms anew, those near a plane from the others.  Of what is left every second one
    replaces an atom by a fresh one near the one-expert fit and grows with the spring; the others
    replace one by a copy of another and separate the two at random.

    Parameters
    ----------
    race : Race
        Whose winner begins, and how moves race.
    count : int, optional
        Moves of a round; three for each expert by default.
    resamples : int, optional
        Resamples of a round; as many as moves by default.
    idle : int
        Rounds in a row that gain too little after which it ends.
    gain : float
        Log-likelihood that is enough, .01 or more.

    Notes
    -----
    The moves are those of the split and merge EM of Ueda, Nakano, Ghahramani and Hinton (2000), and
    of a greedy one, as of Verbeek, Vlassis and Krose (2003).  Other weights of the data for a while
    are the ratchet of Nixon (1999).
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
                positive_int(f"moves: {key}", getattr(self, key), maximum=MOST_STARTS)

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """The end, shape (1, P)."""
        return self.searched(problem, rng)[0][0][None]

    def searched(
        self,
        problem: Problem,
        rng: np.random.Generator,
        begun: list[Ended] | None = None,
    ) -> list[Ended]:
        """The finalists of the last race that bettered something, the winner first."""
        begun = begun or self.race.begun(self.race.part(problem, rng), rng)
        best, idle = self.race.won(problem, begun, rng), 0
        rounds = cycle((self.resampled, self.moved))
        while problem.family.n_experts > 1 and idle < self.idle:
            ends = next(rounds)(problem, best[0][0], rng)
            idle = 0 if ends[0][1] > best[0][1] + self.gain else idle + 1
            best = ends if ends[0][1] > best[0][1] + SAME_HEIGHT else best
        return best

    def resampled(
        self, problem: Problem, theta: FloatArray, rng: np.random.Generator
    ) -> list[Ended]:
        """The finalists of one round from where theta (P,) comes on resamples of the rows."""
        part, steps, threads = self.race.part(problem, rng), self.race.steps, self.race.threads
        count = self.resamples or self._round(problem)
        points = resampled(part, theta, count, rng, steps, threads)
        return self.race.won(problem, ended(part, points, steps, threads), rng)

    def moved(self, problem: Problem, theta: FloatArray, rng: np.random.Generator) -> list[Ended]:
        """The finalists of one round of moves from theta (P,)."""
        part = self.race.part(problem, rng)
        points = moves(part, theta, self._round(problem), rng)
        return self.race.won(problem, ended(part, points, self.race.steps, self.race.threads), rng)

    def _round(self, problem: Problem) -> int:
        return self.count or 3 * problem.family.n_experts


@dataclass(frozen=True)
class Agreement:
    """Searches until they agree.

    Parameters
    ----------
    search : Moves
        What is repeated, with other random numbers.
    risk : float
        Probability of a higher maximum that is accepted.  While most starts of a pool agree, other
        pools are added until the probability is no more, and neighbours decide; else searches are
        added until it is no more.  A fit whose probability is more warns.
    searches : int
        Searches, and pools, at most; in proportion fewer where rows and parameters are many.  Where
        one search is more than the budget, a round of it has one resample for each expert, and more
        in proportion to gain.
    time_limit : float
        No further search begins after so many seconds.

    Notes
    -----
    The probability is `moestat.estimation.higher.probability_of_higher`; it stands where
    Boender and Rinnooy Kan (1987) have the expected share of maxima that none has seen.

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
    risk: float = 0.15
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
        """Whether it is a default search, or looks no less: what `higher` was calibrated for."""
        pool = self.search.race.pool
        return isinstance(pool, Pool) and not pool.more and self.searches >= type(self).searches

    def draw(self, problem: Problem, rng: np.random.Generator) -> FloatArray:
        """Starting values, shape (count, P)."""
        return self.find(problem, rng)[0]

    def rows(self, problem: Problem) -> int:
        """How many of the rows its starts have been fitted to."""
        return SEARCH.in_all * max(SEARCH.least, self.search.race.rows * problem.family.n_params)

    def find(
        self, problem: Problem, rng: np.random.Generator, seen: Seen | None = None
    ) -> tuple[FloatArray, list[int]]:
        """The highest ends (count, P), and how many have come to each height, the highest first.

        What it has seen is added to `seen`.
        """
        seen = seen or Seen()
        deadline, race = time.monotonic() + self.time_limit, self.search.race
        whole = race.part(problem, rng, SEARCH.in_all)
        work, ends = whole.data.size * problem.family.n_params**2, list[Ended]()
        most = int(np.clip(SEARCH.work / work, 1, self.searches))
        begun = self._begun(whole, rng, most)
        seen.pool += [run.height for run in begun]
        found = self._looked(whole, begun, rng, seen)
        if found is not None:
            return found
        search = self.search
        if work > SEARCH.work:
            few = search.resamples or problem.family.n_experts
            search = replace(search, resamples=few, gain=search.gain * work / SEARCH.work)
        while len(ends) < most and not self._accepts(problem, seen, ends):
            LOG.info("search %d of %d at most", len(ends) + 1, most)
            finalists = search.searched(whole, rng, None if ends else begun)
            # Of a single search the finalists are all that can agree.
            ends += finalists[: 1 if most > 1 else None]
            if time.monotonic() > deadline:
                break
        seen.ends += [run.height for run in ends]
        kept, counts = heights(ends)
        # Of dear runs that have seen all rows the lower ones stay lower.
        lower = most < self.searches and whole is problem
        return np.array(kept[: 1 if lower else SEARCH.returned]), counts

    def _begun(self, problem: Problem, rng: np.random.Generator, pools: int) -> list[Ended]:
        """Starts of a pool, and of more while most of them are at the best height, best first."""
        begun, part = list[Ended](), self.search.race.part(problem, rng)
        for _ in range(pools):
            begun += self.search.race.begun(part, rng, 2)
            known = Seen([run.height for run in begun])
            if self._accepts(problem, known, begun) or not _most_agree(begun):
                break
        return sorted(begun, key=lambda run: -run[1])

    def _looked(
        self, problem: Problem, begun: list[Ended], rng: np.random.Generator, seen: Seen
    ) -> tuple[FloatArray, list[int]] | None:
        """As `find`, where starts agree and no resample or move betters; else None."""
        several, race = problem.family.n_experts > 1, self.search.race
        if not several:
            points = np.array([run.theta for run in begun])
            begun = ended(problem, points, SEARCH.to_the_end, race.threads)
        elif not (_most_agree(begun) and self._accepts(problem, seen, begun)):
            return None
        theta, height = race.won(problem, begun[:1], rng)[0]
        look = replace(self.search, count=problem.family.n_experts, resamples=None)
        for near in (look.resampled, look.moved) if several else ():
            if near(problem, theta, rng)[0][1] > height + SAME_HEIGHT:
                return None
        return theta[None], heights(begun)[1]

    def _accepts(self, problem: Problem, seen: Seen, ends: Sequence[Ended]) -> bool:
        """Whether a higher maximum than these ends is no more probable than is accepted."""
        sound = [end for end in ends if np.isfinite(end.height)]
        if not sound:
            return False
        best, k = heights(sound)[1][0], problem.family.n_experts
        return probability_of_higher(seen, k, best, len(ends)) <= self.risk


def _most_agree(runs: Sequence[Ended]) -> bool:
    """Whether most have come to the best height."""
    best = heights(runs)[1][0]
    return best > 1 and 2 * best >= len(runs)


def search_of(
    count: int | None = None,
    searches: int = 8,
    time_limit: float = np.inf,
    more: tuple[StartRule, ...] = (),
    risk: float | None = None,
) -> Agreement:
    """The default search, with so many starts in a pool.

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
        positive_int("n_starts", count, maximum=MOST_STARTS)
    accepted = Agreement.risk if risk is None else risk
    pools = Moves(Race(Pool(count, more=more)))
    return Agreement(pools, accepted, searches=searches, time_limit=time_limit)


def on_threads(rule: Rule, threads: int | None) -> Rule:
    """A rule, and the rules it is made of, with so many threads."""
    if not is_dataclass(rule) or isinstance(rule, type):
        return rule
    own = {f.name: getattr(rule, f.name) for f in fields(rule) if f.init}
    inner = {key: on_threads(value, threads) for key, value in own.items() if is_dataclass(value)}
    return replace(rule, **inner, **({"threads": threads} if "threads" in own else {}))
