"""The least distance of a density whose deviation is held, in many digits.

One coordinate of one fitted atom is held at h; all others, the shares of the atoms in each cell
and the masses minimise the change of the density at the samples, by damped Gauss-Newton steps in
fixed point.  At decreasing h the local slope of the distance is the exponent r of an explicit
sequence of measures: estimates that converge in density at n^(-1/2) can be n^(-1/(2 r)) away.  The
minimum is searched, not bounded, so that r can be larger than what is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from moestat.base.types import FloatArray
from moestat.theory.exponents._linear import solve
from moestat.theory.exponents._point import Parameter, Point
from moestat.theory.exponents._series import (
    BITS,
    ONE,
    Integers,
    exp_fixed,
    fixed,
    log_fixed,
    space,
    to_floats,
)
from moestat.theory.exponents._series import exponential as series_exponential
from moestat.theory.exponents._series import product as series_product

__all__ = [
    "Configuration",
    "Ladder",
    "climb_down",
    "distance_at",
    "is_near",
    "pinned_atom",
    "spread",
]

_ITERATIONS = 30
"""Steps at each deviation.  15 and 60 end at the same distances, to three digits, on three ladders;
8 at up to twice them."""
_REJECTIONS = 6
"""Shorter steps after one that fails.  12 end at the same distances; after 2 or 3 the ladder of two
normal atoms has the slope 3.74 or 4.24 where it is 4."""
_CORRECTIONS = 4
"""Steps back into the valley.  Without any, distances are 26 times as large, with 2 five times;
with 8 they are within a tenth, and twice as large for two normal atoms."""
_SMALL_GAIN = 500
"""A step that lowers the square by less than a five hundredth ends the descent: slopes are then
wrong by .001 at most.  With 20 or 50 three ladders differ by .003."""
_NOTHING = 1e-95
"""A distance that is 0 in all digits."""
LEAST_SHARE = 0.05
"""Least share of its cell that an atom may have: on a compact space masses are bounded below."""


@dataclass
class Configuration:
    """Fitted atoms: their true atoms, packed values and log-weights in fixed point."""

    cells: list[int]
    """True atom of every fitted one."""
    values: list[Integers]
    """Packed parameters (P*,) of each, of which its true atom's coordinates and the shared ones
    count."""
    logits: list[int]
    """What the share of each in its cell is made from, above the least one."""
    masses: dict[int, int]
    """True atom -> logarithm of the factor of its cell's mass."""
    kept: frozenset[int] = frozenset()
    """Positions of parameters that share out an atom: they are no deviations."""

    def copy(self) -> Configuration:
        """The same, to be changed."""
        return Configuration(
            self.cells,
            [v.copy() for v in self.values],
            list(self.logits),
            dict(self.masses),
            self.kept,
        )

    def members(self, j: int) -> list[int]:
        """Fitted atoms of a cell."""
        return [i for i, cell in enumerate(self.cells) if cell == j]

    def shares(self, j: int) -> tuple[list[int], list[int]]:
        """Shares of a cell's atoms in fixed point, and their parts above the least one."""
        powers = exp_fixed(np.array([self.logits[i] for i in self.members(j)], dtype=object))
        m, total = len(powers), int(sum(powers))
        parts = [(int(p) << BITS) // total for p in powers]
        least = fixed(LEAST_SHARE)
        return [least + ((ONE - m * least) * q >> BITS) for q in parts], parts

    def logs(self) -> list[int]:
        """Logarithm of the weight of each atom, relative to its true atom's mass."""
        found = [0] * len(self.cells)
        for j in set(self.cells):
            mine = self.members(j)
            shares = self.shares(j)[0] if len(mine) > 1 else [ONE]
            for i, log in zip(mine, log_fixed(np.array(shares, dtype=object)), strict=True):
                found[i] = int(log) + self.masses.get(j, 0)
        return found


@dataclass(frozen=True)
class Ladder:
    """Distances at decreasing deviations of one coordinate."""

    pinned: Parameter
    deviations: list[float]
    distances: list[float]
    """Root mean square of the relative change at the samples."""
    moves: list[dict[str, float]]
    """Largest deviation of each block of cells of several atoms, at each of them."""
    steps: list[Configuration] = field(repr=False)
    """The fitted atoms at each deviation."""
    shares: float = 1.0
    """Least share of an atom in its cell."""

    @property
    def slopes(self) -> list[float]:
        """Local exponents of the distance in the deviation."""
        d, h = np.log(self.distances), np.log(self.deviations)
        return (np.diff(d) / np.diff(h)).tolist()

    @property
    def exponent(self) -> float:
        """The last local exponent."""
        return self.slopes[-1] if len(self.distances) > 1 else math.nan

    def powers(self) -> dict[str, float]:
        """Power of the held deviation that each block's follows, from the last two."""
        if len(self.moves) < 2:
            return {}
        one, two = self.moves[-2], self.moves[-1]
        run = math.log(self.deviations[-1] / self.deviations[-2])
        return {
            name: math.log(two[name] / one[name]) / run
            for name in two
            if two[name] > 0.0 and one.get(name, 0.0) > 0.0
        }


class _Problem:
    """Change of the density at the samples, as a function of the fitted atoms."""

    def __init__(
        self, point: Point, cells: Sequence[int], only: frozenset[str] | None = None
    ) -> None:
        self.point, self.cells = point, list(cells)
        family = point.family
        self.free_mass = family.gate.normalised and family.gate.mass is not None
        counts = np.bincount(self.cells, minlength=family.n_experts)
        self.variables: list[tuple[int, Parameter]] = []
        for i, j in enumerate(self.cells):
            pinned_once = i == self.cells.index(j)
            for p in point.parameters:
                if p.atom != j or not p.movable or (only is not None and p.block not in only):
                    continue
                if only is not None and counts[j] == 1:
                    continue
                # The reference of the whole measure: the first atom of its cell holds it.
                if not p.free and (counts[j] == 1 or pinned_once):
                    continue
                self.variables.append((i, p))
        self.shared = [p for p in point.parameters if p.atom < 0 and p.free]
        self.masses = list(range(family.n_experts - 1)) if self.free_mass else []
        self.angles = [
            i for i, j in enumerate(self.cells) if self.free_mass and i != self.cells.index(j)
        ]
        self.size = len(self.variables) + len(self.shared) + len(self.masses) + len(self.angles)

    def residual(
        self, at: Configuration, slopes: bool = True
    ) -> tuple[Integers, np.ndarray | None]:
        """Relative change (n,) at the samples, and its derivatives (n, size)."""
        point, family = self.point, self.point.family
        order = 1 if slopes else 0
        base = space(len(family.channels), order)
        n = point.samples.y.size
        total = np.zeros(n, dtype=object)
        pieces = []
        logs = at.logs() if self.free_mass else [0] * len(self.cells)
        for i, j in enumerate(self.cells):
            eta = point.channels(at.values[i], j)
            weight, value = point.series(eta, point.groups(j), order)
            if family.is_regression and not family.gate.normalised:
                phi = series_product(base, series_exponential(base, weight), value)
            elif family.is_regression:
                change = {**weight, 0: weight[0] - point.atoms[j][0][0] + logs[i]}
                gap = {**value, 0: value[0] - point.function}
                part = series_product(base, series_exponential(base, change), gap)
                phi = {k: (point.shares[0][j] * v) >> BITS for k, v in part.items()}
            else:
                prior, posterior = point.shares[0][j], point.shares[1][j]
                w0, v0 = point.atoms[j][0][0], point.atoms[j][1][0]
                change = {**weight, 0: weight[0] - w0 + logs[i]}
                joint = dict(change)
                for k, v in value.items():
                    moved = v - v0 if k == 0 else v
                    joint[k] = joint[k] + moved if k in joint else moved
                u, w = series_exponential(base, joint), series_exponential(base, change)
                phi = {
                    k: ((posterior * u.get(k, 0)) >> BITS) - ((prior * w.get(k, 0)) >> BITS)
                    for k in {*u, *w}
                }
            pieces.append(phi)
            total = total + phi[0]
        if family.is_regression and not family.gate.normalised:
            total = total - self._truth
        if not slopes:
            return total, None
        phi_rows = point.samples.fixed_features
        zero = np.zeros(n, dtype=object)

        def slope(i: int, p: Parameter) -> Integers:
            unit = tuple(int(c == p.channel) for c in range(base.n_variables))
            return (pieces[i].get(base.place[unit], zero) * phi_rows[p.feature]) >> BITS

        columns = [slope(i, p) for i, p in self.variables]
        columns += [sum((slope(i, p) for i in range(len(self.cells))), zero) for p in self.shared]
        columns += [sum((pieces[i][0] for i in at.members(j)), zero) for j in self.masses]
        for k in self.angles:
            j = self.cells[k]
            shares, parts = at.shares(j)
            mine = at.members(j)
            q = parts[mine.index(k)]
            room = ONE - len(mine) * fixed(LEAST_SHARE)
            column = zero
            for i, share, part in zip(mine, shares, parts, strict=True):
                change = (part * ((ONE if i == k else 0) - q) >> BITS) * room // share
                column = column + ((pieces[i][0] * change) >> BITS)
            columns.append(column)
        return total, np.stack(columns, axis=1)

    @property
    def _truth(self) -> Integers:
        return np.sum([phi[0] for phi in self.point.functions], axis=0)

    def moved(self, at: Configuration, step: Integers) -> Configuration:
        """The configuration after a step (size,)."""
        new = at.copy()
        n = len(self.variables)
        for (i, p), s in zip(self.variables, step[:n], strict=True):
            new.values[i][p.position] += s
        for p, s in zip(self.shared, step[n : n + len(self.shared)], strict=True):
            for values in new.values:
                values[p.position] += s
        rest = step[n + len(self.shared) :]
        for j, s in zip(self.masses, rest, strict=False):
            new.masses[j] = new.masses.get(j, 0) + s
        for i, s in zip(self.angles, rest[len(self.masses) :], strict=True):
            new.logits[i] += s
        return new

    def minimise(
        self, at: Configuration, pin: tuple[int, int], h: float, until: float, iterations: int
    ) -> tuple[Configuration, float]:
        """A local minimum with the coordinate `pin` held; variables move by about h at first."""
        free = [k for k, (i, p) in enumerate(self.variables) if (i, p.position) != pin]
        free += list(range(len(self.variables), self.size))
        moving = [(h if p.position not in at.kept else 0.3) for _, p in self.variables]
        units = np.array([moving[k] if k < len(moving) else 0.3 for k in free], dtype=np.float64)
        scale = np.array([fixed(u) for u in units], dtype=object)
        r, J = self.residual(at)
        value, radius = _square(r), 1.0
        for _ in range(iterations):
            assert J is not None
            A = (J[:, free] * scale) >> BITS
            gram, right = _gram(A), _project(A, r)
            improved = False
            for _ in range(_REJECTIONS):
                step, bound = _restricted(gram, right, radius)
                gain = -2 * int(np.dot(step, right)) - int(
                    np.dot(step, np.array([int(np.dot(row, step)) >> BITS for row in gram]))
                )
                if not bound and gain < value // _SMALL_GAIN:
                    return at, _root(value, r.size)
                whole = np.zeros(self.size, dtype=object)
                whole[free] = (step * scale) >> BITS
                candidate, value1 = self._corrected(at, whole, r, J, free, scale, gram, step)
                if value1 < value:
                    good = 4 * (value - value1) > 3 * gain
                    radius *= 2.5 if good and bound else (1.0 if good else 0.7)
                    improved = value1 < value - value // (2 * _SMALL_GAIN)
                    at, value = candidate, value1
                    break
                radius = 0.3 * min(radius, max(_float(max(abs(int(v)) for v in step)), 1e-30))
            if not improved or monotonic() > until:
                break
            r, J = self.residual(at)
        return at, _root(value, r.size)

    def _corrected(self, at, whole, r, J, free, scale, gram, step):  # type: ignore[no-untyped-def]
        """The configuration after a step, brought back to what the straight step predicted.

        The minimum lies in a narrow curved valley, which a straight step leaves at once.
        """
        predicted = r + (np.array([int(np.dot(row, whole)) for row in J], dtype=object) >> BITS)
        goal = _square(predicted)
        candidate = self.moved(at, whole)
        r1, _ = self.residual(candidate, slopes=False)
        value1 = _square(r1)
        size = max(abs(int(v)) for v in step)
        A = (J[:, free] * scale) >> BITS
        for _ in range(_CORRECTIONS):
            if value1 <= goal + goal // 10:
                break
            size //= 5
            back, _ = _restricted(gram, _project(A, r1 - predicted), _float(size))
            more = np.zeros(self.size, dtype=object)
            more[free] = (back * scale) >> BITS
            trial = self.moved(candidate, more)
            r2, _ = self.residual(trial, slopes=False)
            value2 = _square(r2)
            if value2 >= value1:
                break
            candidate, r1, value1 = trial, r2, value2
        return candidate, value1


def _restricted(gram: np.ndarray, right: Integers, radius: float) -> tuple[Integers, bool]:
    """The Gauss-Newton step, damped until no entry is above the radius; and whether it was."""
    n = len(right)
    limit = fixed(min(radius, 1e6))

    def damped(power: int | None) -> Integers | None:
        lifted = gram.copy()
        if power is not None:
            add = max(int(10 ** (power + 150)) * ONE // 10**150, 1)
            for i in range(n):
                lifted[i, i] += add
        return solve(lifted, -right)

    whole = damped(None)
    if whole is not None and max(abs(int(v)) for v in whole) <= limit:
        return whole, False
    low, high = -110, 4
    best = damped(high)
    while high - low > 1:
        middle = (low + high) // 2
        trial = damped(middle)
        if trial is not None and max(abs(int(v)) for v in trial) <= limit:
            high, best = middle, trial
        else:
            low = middle
    assert best is not None
    return best, True


def _gram(A: np.ndarray) -> np.ndarray:
    n = A.shape[1]
    out = np.zeros((n, n), dtype=object)
    for i in range(n):
        for j in range(i + 1):
            out[i, j] = out[j, i] = int(np.dot(A[:, i], A[:, j])) >> BITS
    return out


def _project(A: np.ndarray, r: Integers) -> Integers:
    return np.array([int(np.dot(A[:, i], r)) >> BITS for i in range(A.shape[1])], dtype=object)


def _square(r: Integers) -> int:
    return int(np.dot(r, r))


def _root(value: int, n: int) -> float:
    return (
        math.isqrt(value // n) / 2.0**BITS
        if value < 1 << 1000
        else float(to_floats(np.array([math.isqrt(value // n)], dtype=object))[0])
    )


def distance_at(point: Point, at: Configuration) -> float:
    """Root mean square of the relative change of the density at the samples."""
    change, _ = _Problem(point, at.cells).residual(at, slopes=False)
    return _root(_square(change), change.size)


def is_near(slope: float, r: float) -> bool:
    """Whether an exponent can be seen in a local one: it is within a tenth."""
    return abs(slope - r) <= 0.1 * r


def climb_down(
    point: Point,
    cells: Sequence[int],
    start: Callable[[float], Configuration],
    pin: tuple[int, Parameter],
    deviations: Sequence[float],
    until: float,
    iterations: int = _ITERATIONS,
    only: frozenset[str] | None = None,
    until_exponent: float | None = None,
) -> Ladder | None:
    """Minima at decreasing deviations of one coordinate of one fitted atom.

    Parameters
    ----------
    point : Point
        The truth.
    cells : sequence of int
        True atom of each fitted one.
    start : callable
        ``start(h)``: a configuration whose pinned coordinate deviates by h.
    pin : tuple of int and Parameter
        The fitted atom and its coordinate.
    deviations : sequence of float
        Decreasing.
    until : float
        Time of `time.monotonic` at which to stop.
    iterations : int
        Steps at each deviation, at most.
    only : frozenset of str, optional
        Blocks that move, in cells of several atoms alone; all by default.
    until_exponent : float, optional
        Deviations end where the local exponent is near this one, see `is_near`.
    """
    problem = _Problem(point, cells, only)
    i, parameter = pin
    values, distances, moves, held = [], [], [], []
    at: Configuration | None = None
    for h in deviations:
        if monotonic() > until:
            break
        at = start(h) if at is None else _shrunk(point, at, h / held[-1])
        at, distance = problem.minimise(at, (i, parameter.position), h, until, iterations)
        distance = max(distance, _NOTHING)
        held.append(h)
        values.append(at)
        distances.append(distance)
        moves.append(_moves(point, at))
        if until_exponent is not None and len(held) > 1:
            slope = math.log(distances[-1] / distances[-2]) / math.log(held[-1] / held[-2])
            if is_near(slope, until_exponent):
                break
    if at is None or not values:
        return None
    return Ladder(parameter, held, distances, moves, values, _least_share(values[-1]))


def _shrunk(point: Point, at: Configuration, factor: float) -> Configuration:
    """The configuration with all displacements multiplied by a factor, shares kept."""
    new = at.copy()
    number = fixed(factor)
    truth = point.values
    counts = np.bincount(new.cells)
    for values, j in zip(new.values, new.cells, strict=True):
        moved = truth + (((values - truth) * number) >> BITS)
        hold = sorted(at.kept) if counts[j] > 1 else []
        moved[hold] = values[hold]
        values[:] = moved
    # Masses of cells follow the square; shares within a cell stay.
    for j, log in new.masses.items():
        new.masses[j] = (log * number >> BITS) * number >> BITS
    return new


def _float(value: int) -> float:
    return float(to_floats(np.array([value], dtype=object))[0])


def _least_share(at: Configuration) -> float:
    found = [1.0]
    for j in set(at.cells):
        if len(at.members(j)) > 1:
            found.append(min(_float(share) for share in at.shares(j)[0]))
    return min(found)


def _moves(point: Point, at: Configuration) -> dict[str, float]:
    found: dict[str, float] = {}
    counts = np.bincount(at.cells)
    for i, j in enumerate(at.cells):
        for p in point.parameters:
            if p.atom != j or not p.movable or (p.position in at.kept and counts[j] > 1):
                continue
            gap = abs(_float(int(at.values[i][p.position] - point.values[p.position])))
            key = p.block if counts[j] > 1 else f"{p.block}, cell of one"
            found[key] = max(found.get(key, 0.0), gap)
    return found


def spread(
    point: Point,
    cells: Sequence[int],
    directions: Mapping[int, FloatArray] | None,
    h: float,
    seed: int,
    pin: tuple[int, Parameter],
) -> Configuration:
    """Fitted atoms about their true ones: along directions, or at random, pinned one at h."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(cells, minlength=point.family.n_experts)
    values = []
    for j in cells:
        own = point.values.copy()
        if counts[j] > 1:
            for p in point.parameters:
                if p.atom == j and p.movable:
                    own[p.position] += fixed(float(h * rng.normal()))
        values.append(own)
    i, parameter = pin
    if directions is not None:
        for j in set(cells):
            mine = [k for k, c in enumerate(cells) if c == j]
            if len(mine) < 2:
                continue
            V = directions[j]
            movable = [p for p in point.parameters if p.atom == j and p.movable]
            # Displacements with mean 0 and products V V': a simplex for as many as there are.
            moves = _simplex(len(mine), V.shape[1], rng) @ V.T
            if cells[i] == j:
                led = moves[mine.index(i), [p.position for p in movable].index(parameter.position)]
                moves = moves / led if abs(led) > 1e-9 else moves
            for k, row in zip(mine, moves, strict=True):
                values[k] = point.values.copy()
                for p, v in zip(movable, row, strict=True):
                    values[k][p.position] += fixed(float(h * v))
    values[i][parameter.position] = point.values[parameter.position] + fixed(h)
    at = _in_gauge(point, Configuration(list(cells), values, [0] * len(values), {}))
    led = _float(int(at.values[i][parameter.position] - point.values[parameter.position]))
    if directions is not None and abs(led) > 1e-9:
        at = _shrunk(point, at, h / led)
    at.values[i][parameter.position] = point.values[parameter.position] + fixed(h)
    return at


def _in_gauge(point: Point, at: Configuration) -> Configuration:
    """The measure whose first atom holds the reference, by translation of all atoms.

    A common translation is no deviation, and the search holds that atom's reference still.
    """
    for p in point.parameters:
        if p.free or not p.movable or p.atom not in at.cells:
            continue
        holder = at.cells.index(p.atom)
        shift = at.values[holder][p.position] - point.values[p.position]
        for q in point.parameters:
            if q.block != p.block or q.channel != p.channel or q.feature != p.feature:
                continue
            for own, j in zip(at.values, at.cells, strict=True):
                if j == q.atom:
                    own[q.position] -= shift
    return at


def pinned_atom(cells: Sequence[int], p: Parameter) -> int:
    """The fitted atom that a coordinate is held in: not the one that holds the reference."""
    first = list(cells).index(p.atom)
    return first if p.free else first + 1


def _simplex(m: int, rank: int, rng: np.random.Generator) -> FloatArray:
    """Points (m, rank) with mean 0 and unit second moments."""
    raw = np.concatenate([np.ones((m, 1)), rng.normal(size=(m, m - 1))], axis=1)
    q, _ = np.linalg.qr(raw)
    return q[:, 1 : rank + 1] * math.sqrt(m)
