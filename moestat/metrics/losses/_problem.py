"""A pair of measures along a group of moves of the estimate: cells, values and the best move."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.compiler.jit import compact, compile_loop

TIE = 1e-12  # squared distances this close, relative to the largest, are ties
SIDE = 1e-9  # step to either side of a boundary between cells, relative to the largest distance
_LEADERS = 8  # best translations whose neighbourhoods are searched
_MAX_CELLS = 64  # convex problems solved per round
_ROUNDS = 4
_SWEEPS = 80  # Weiszfeld steps per convex problem
_HALVINGS = 60  # of the interval that the points span


def nearest(squares: FloatArray, largest: FloatArray | float) -> IntArray:
    """Lowest index with the least of squared distances (..., k*), up to ties.

    Ties are meant relative to `largest`, a squared distance that broadcasts with `squares`.
    """
    tied = squares <= np.min(squares, axis=-1, keepdims=True) + TIE * largest
    return np.argmax(tied, axis=-1)


def bisect(points: FloatArray, weight: FloatArray, power: FloatArray) -> FloatArray:
    """Minimiser (S, 1) of ``sum_i weight_i |t - point_i|^power_i / power_i``, arrays (S, k, 1)."""
    low, high = np.min(points, axis=1), np.max(points, axis=1)
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2.0
        gap = middle[:, None] - points
        slope = np.sum(weight * np.sign(gap) * np.abs(gap) ** (power - 1.0), axis=1)
        low, high = np.where(slope < 0.0, middle, low), np.where(slope < 0.0, high, middle)
    return high


@compile_loop
@compact
def _reweighted_means(points, power, weight, ends, lengths, centres):
    """Weiszfeld's iteration for points (S, k, q) into centres (S, q); blocks stop at ends.

    Powers and weights are (S, k, blocks); lengths are the scale and the step, 0 for mixed powers.
    """
    scale, step = lengths
    count, k, q = points.shape
    logs, moves = np.empty(k), np.empty(q)
    for s in range(count):
        for sweep in range(-1, _SWEEPS):
            # At first there is no centre to be far from: the weighted mean.
            width = scale * max(10.0 ** (-2.0 - sweep / 6.0), 1e-14)
            first, total, curved, farthest = 0, 0.0, 0.0, 0.0
            for block in range(ends.size):
                last, largest = ends[block], -math.inf
                for i in range(k):
                    square = width * width
                    for j in range(first, last):
                        gap = points[s, i, j] - centres[s, j]
                        square += gap * gap
                    logs[i] = math.log(weight[s, i, block])
                    if sweep >= 0:
                        logs[i] += 0.5 * (power[s, i, block] - 2.0) * math.log(square)
                    largest = max(largest, logs[i])
                moves[first:last] = 0.0
                share = 0.0
                for i in range(k):
                    relative = math.exp(logs[i] - largest)
                    share += relative
                    total += (last - first) * relative
                    curved += (last - first) * relative * max(1.0, power[s, i, block] - 1.0)
                    for j in range(first, last):
                        moves[j] += relative * points[s, i, j]
                for j in range(first, last):
                    moves[j] = moves[j] / share - (centres[s, j] if sweep >= 0 else 0.0)
                first = last
            if sweep < 0:
                centres[s] = moves
                continue
            length = step if step > 0.0 else total / curved
            for j in range(q):
                centres[s, j] += length * moves[j]
                farthest = max(farthest, abs(length * moves[j]))
            if farthest <= 1e-15 * scale:
                break


@lru_cache(maxsize=16)
def _pairs(count: int) -> tuple[IntArray, IntArray]:
    """Positions of the pairs of so many atoms; all cells of a sweep ask for the same ones."""
    first, second = np.triu_indices(count, 1)
    first.flags.writeable = second.flags.writeable = False
    return first, second


@dataclass(frozen=True)
class Problem:
    """Everything about a pair of measures that does not depend on the move t of the estimate.

    Fitted atoms are i (k of them), true atoms j (k* of them), moves s (S of them).
    """

    masses: FloatArray  # (k,)
    true_masses: FloatArray  # (k*,)
    exponents: FloatArray  # (levels, blocks): of each moving block, per size of the cell
    fixed_squares: FloatArray  # (k, k*): squared distance in the blocks that stay
    fixed_costs: FloatArray  # (levels, k, k*): cost of the blocks that stay, per size of the cell
    moving: FloatArray  # (k, k*, q): estimate less truth in the moving blocks, before the move
    starts: IntArray  # first coordinate of each moving block
    weights: FloatArray  # (k,): of each fitted atom's costs, its mass or 1
    mass_level: int  # level from which on the mass of a cell is compared

    def gaps(self, t: FloatArray) -> FloatArray:
        """Estimate less truth in the moving blocks, shape (S, k, k*, q), after each move."""
        raise NotImplementedError

    def search(self) -> FloatArray:
        """The best move found: an upper bound of the infimum is its value."""
        raise NotImplementedError

    def squares(self, t: FloatArray) -> FloatArray:
        """Squared distance of every pair of atoms, shape (S, k, k*), after each move."""
        return self.fixed_squares + np.sum(self.gaps(t) ** 2, axis=-1)

    @cached_property
    def scale(self) -> float:
        """Largest distance between a fitted and a true atom."""
        largest = np.max(self.fixed_squares + np.sum(self.moving**2, axis=-1))
        return float(np.sqrt(largest)) or 1.0

    def cells(self, t: FloatArray) -> IntArray:
        """True atom nearest to each fitted atom, shape (S, k), after each of S moves."""
        return nearest(self.squares(t), self.scale**2)

    def level(self, cells: IntArray) -> IntArray:
        """How many others share the cell of a fitted atom, up to the last level, shape (S, k)."""
        others = np.sum(cells[:, :, None] == cells[:, None, :], axis=-1) - 1
        return np.minimum(others, len(self.fixed_costs) - 1)

    def norms(self, gaps: FloatArray) -> FloatArray:
        """Euclidean norm of each moving block, (..., q) to (..., blocks)."""
        return np.sqrt(np.add.reduceat(gaps * gaps, self.starts, axis=-1))

    def fixed_part(self, cells: IntArray, level: IntArray) -> FloatArray:
        """Part of the loss that comes from the masses and the fixed blocks, shape (S,)."""
        atom = np.arange(self.masses.size)
        member = cells[:, :, None] == np.arange(self.true_masses.size)
        in_cell = np.sum(np.where(member, self.masses[:, None], 0.0), axis=1)
        cost = self.fixed_costs[level, atom, cells]
        errors = np.abs(in_cell - self.true_masses)
        if self.mass_level > 0:
            errors = np.where(np.sum(member, axis=1) > self.mass_level, errors, 0.0)
        return np.sum(errors, axis=1) + cost @ self.weights

    def moving_part(self, gaps: FloatArray, level: IntArray) -> FloatArray:
        """Part of the loss that comes from the moving blocks, shape (S,).

        The gaps (S, k, q) are those of each fitted atom to the true atom of its cell.
        """
        if not self.starts.size:
            return np.zeros(len(level))
        power = self.exponents[level]
        return np.sum(self.norms(gaps) ** power, axis=-1) @ self.weights

    def values(self, t: FloatArray, cells: IntArray) -> FloatArray:
        """The loss after each move, shape (S,), given its cells."""
        gaps = np.take_along_axis(self.gaps(t), cells[:, :, None, None], axis=2)[:, :, 0]
        level = self.level(cells)
        return self.fixed_part(cells, level) + self.moving_part(gaps, level)


@dataclass(frozen=True)
class Translations(Problem):
    """The moves ``estimate - t``: a common vector t (q,) is taken off the moving blocks."""

    def gaps(self, t: FloatArray) -> FloatArray:
        """Estimate less truth in the moving blocks, shape (S, k, k*, q), for t (S, q)."""
        return self.moving - t[:, None, None, :]

    def minimisers(self, cells: IntArray) -> FloatArray:
        """Minimiser (S, q) over t of the loss with the cells (S, k) held fixed.

        With fixed cells the loss is convex in t, a sum of powers of distances.  Weiszfeld's
        iteration (reweighted means) minimises it.  Distances are smoothed over a width that shrinks
        to rounding, so that the iteration does not stick to the points themselves; those are
        candidates of the search anyway.  Powers above 2 need the shorter step 1 / (power - 1),
        the mean of such steps where powers differ; in one dimension, halving is exact then.
        """
        atom = np.arange(self.masses.size)
        points = np.ascontiguousarray(self.moving[atom, cells])
        power = self.exponents[self.level(cells)]
        weight = self.weights[:, None] * power
        largest = float(np.max(self.exponents))
        mixed = largest > 2.0 and largest > np.min(self.exponents)
        if mixed and points.shape[-1] == 1:
            return bisect(points, weight, power)
        centres = np.empty((len(cells), points.shape[-1]))
        ends = np.array([*self.starts[1:], points.shape[-1]])
        step = 0.0 if mixed else 1.0 / max(1.0, largest - 1.0)
        _reweighted_means(points, power, weight, ends, (self.scale, step), centres)
        return centres

    def boundaries(self, t: FloatArray) -> FloatArray:
        """Both sides of every boundary between cells, at the foot of each translation (S, q).

        Fitted atom i is as near to true atom j as to l where t lies on a hyperplane.  The loss
        jumps there, so its infimum may be approached at a boundary without being attained.
        """
        first, second = _pairs(self.true_masses.size)
        normal = self.moving[:, first] - self.moving[:, second]  # (k, pairs, q)
        squares = self.fixed_squares + np.sum(self.moving**2, axis=-1)
        level = (squares[:, first] - squares[:, second]) / 2.0
        length2 = np.sum(normal**2, axis=-1)
        real = length2 > TIE * self.scale**2
        normal, level, length2 = normal[real], level[real], length2[real]
        height = (level - t @ normal.T) / length2
        foot = t[:, None, :] + height[..., None] * normal
        aside = SIDE * self.scale * normal / np.sqrt(length2)[:, None]
        return np.concatenate([foot - aside, foot + aside]).reshape(-1, t.shape[1])

    def search(self) -> FloatArray:
        """The best translation found, shape (q,).

        Candidates are all differences of a fitted and a true atom and the difference of the
        weighted means.  Each round then solves the convex problem of every set of cells met so
        far and looks at both sides of the boundaries around the best translations.  For q = 1 every
        interval between boundaries is searched to its minimum, so the infimum itself is found.
        """
        k, true_k, q = self.moving.shape
        if q == 0:
            return np.zeros(0)
        share = np.outer(self.masses, self.true_masses) / (
            self.masses.sum() * self.true_masses.sum()
        )
        mean = np.sum(share[..., None] * self.moving, axis=(0, 1))
        pool = np.vstack([mean, self.moving.reshape(k * true_k, q)])
        best, best_value = mean, np.inf
        known: set[bytes] = set()
        for _ in range(_ROUNDS):
            cells = self.cells(pool)
            values = self.values(pool, cells)
            order = np.argsort(values, kind="stable")
            if values[order[0]] < best_value:
                best, best_value = pool[order[0]], float(values[order[0]])
            fresh = []
            for row in cells[order]:
                if row.tobytes() not in known and len(fresh) < _MAX_CELLS:
                    known.add(row.tobytes())
                    fresh.append(row)
            if not fresh:
                break
            centres = self.minimisers(np.array(fresh))
            leaders = np.vstack([pool[order[:_LEADERS]], centres[:_LEADERS]])
            pool = np.vstack([centres, self.boundaries(leaders)])
        return best
