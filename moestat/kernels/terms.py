"""Terms of score, Hessian and information: which rows are multiplied, where their sums belong.

The compiled loop knows nothing of pairs of channels: it takes the terms of these tables, group by
group, and sums each with the products of features (see `moestat.kernels.tiles`).  Three channels
make a triangle, or a square with those of another atom, where all of its terms take as many steps.
Other terms come in threes, the last one repeated with the sign 0 where a group is to fill up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moestat.compiler.jit import device
from moestat.kernels.rows import pairs
from moestat.kernels.tiles import LARGE, PRODUCTS, ROWS, SQUARE, TRIANGLE, Tile

ZEROS, ONES = range(2)
"""The first working rows: 0, and the features, of which the first one is 1."""

Term = tuple[int, ...]


@device
def first_rows(k, n_gate, n_channels, n_likelihood, n_phi):
    """Where the working rows of each kind begin, and the number of rows.

    They are how much the atom at hand varies, in the channels that the likelihood reads and in the
    others; by how much the posterior tau of each atom exceeds the prior pi; tau and pi themselves;
    the slopes of the gate, and of the density in all channels; and the second derivatives of gate
    and likelihood by pairs.  The first two kinds stand where the values of the channels stood.
    """
    spread = ONES + n_phi
    excess = spread + 2
    tau = spread + max(2 + k, n_channels)
    pi = tau + k
    da = pi + k
    du = da + k * n_gate
    d2a = du + k * n_channels
    d2l = d2a + k * (n_gate * (n_gate + 1) // 2)
    end = d2l + k * (n_likelihood * (n_likelihood + 1) // 2)
    return spread, excess, tau, pi, da, du, d2a, d2l, end


@cache
def build_terms(
    k: int,
    widths: tuple[int, ...],
    n_gate: int,
    first: int,
    n_features: int,
    complete: bool,
    order: int,
) -> tuple[NDArray[np.int32], ...]:
    """Terms of the score, of the curvature within an atom, and of that between two atoms.

    The gate reads the first `n_gate` of an atom's channels, the likelihood those from `first` on,
    with so many coefficients (`widths`); responsibilities may be given (`complete`).  Tables of
    what the order does not ask for, 3 being the information, are empty:

    - score (terms, 7), with a row of weights and one of slopes: ``tau d(a + l) - pi da``;
    - within (terms, 10), with two rows of slopes, how much the atom varies, a row of weights and
      one of second derivatives; the same number of terms for each atom;
    - squares (terms, 9), of two atoms, with two rows of slopes and the two posteriors;
    - weighted (rows, 3), to be replaced, before the last terms, by the product of the two other
      ones;
    - between (terms, 7), of two atoms, with two rows of weighted slopes;
    - outer (terms, 7), of any two channels, numbered atom by atom, as the rows are, too.
    """
    atoms = _Atoms(k, widths, n_gate, first, 1 + n_features)
    score = atoms.score() if order > 0 else []
    within = [term for i in range(k if order > 1 else 0) for term in atoms.within(i)]
    squares, weighted, between = atoms.between(complete) if order > 1 else ([], [], [])
    outer = atoms.outer() if order > 2 else []
    return (
        _array(score, ROWS + 2),
        _array(within, ROWS + 5),
        _array(squares, ROWS + 4),
        _array(weighted, 3),
        _array(between, ROWS + 2),
        _array(outer, ROWS + 2),
    )


def _array(lines: list[tuple[int, ...]], n_columns: int) -> NDArray[np.int32]:
    # Small integers: the tables take room in the first cache level.
    return np.array(lines, dtype=np.int32).reshape(-1, n_columns)


def _fits(terms: list[Term], tile: Tile) -> bool:
    """Whether a tile sums all that a block of terms needs, and hardly more."""
    steps = {-(-used // PRODUCTS) for used, *_ in terms}
    return (
        LARGE
        and len(terms) == len(tile.products)
        and len(steps) == 1
        and all(
            available in (used, PRODUCTS)
            for (used, *_), available in zip(terms, tile.products, strict=True)
        )
    )


def _group(terms: list[Term]) -> list[Term]:
    """The terms of one tile."""
    return [(len(terms), *term) for term in terms]


def _in_threes(terms: list[Term]) -> list[Term]:
    ordered = sorted(terms, key=lambda term: -term[0])
    if ordered:
        used, place, _, *rows = ordered[-1]
        ordered += [(used, place, 0, *rows)] * (-len(ordered) % 3)
    return [term for t in range(0, len(ordered), 3) for term in _group(ordered[t : t + 3])]


def _blocks(channels: Sequence[int]) -> list[Sequence[int]]:
    """Three channels at a time."""
    return [channels[start : start + 3] for start in range(0, len(channels), 3)]


class _Atoms(NamedTuple):
    """The structure that all atoms have, and where their working rows are."""

    k: int
    widths: tuple[int, ...]
    n_gate: int
    first: int
    n_phi: int

    def _rows(self) -> tuple[int, ...]:
        n = len(self.widths)
        return first_rows(self.k, self.n_gate, n, n - self.first, self.n_phi)

    def _used(self, one: int, other: int) -> int:
        """Products of two channels, of which a constant one has the first feature only."""
        n_wide = (self.widths[one] > 1) + (self.widths[other] > 1)
        return (1, self.n_phi, pairs(self.n_phi))[n_wide]

    def _pair(self, i: int, c: int, j: int, e: int) -> int:
        """Number of the pair of channel c of atom i with the earlier channel e of atom j."""
        n = len(self.widths)
        return pairs(i * n + c) + j * n + e

    def score(self) -> list[Term]:
        """Two terms for a channel that gate and likelihood share."""
        _, excess, tau, _, da, du, *_ = self._rows()
        n, terms = len(self.widths), []
        for i in range(self.k):
            for c, width in enumerate(self.widths):
                to = width, i * n + c, 1
                if c < self.n_gate:
                    terms.append((*to, excess + i, da + i * self.n_gate + c))
                if c >= self.first:
                    terms.append((*to, tau + i, du + i * n + c))
        return _in_threes(terms)

    def outer(self) -> list[Term]:
        """Products of the slopes of the log-density in all pairs of channels."""
        n, terms = len(self.widths), []
        for p, q in combinations_with_replacement(range(self.k * n), 2):
            (j, e), (i, c) = divmod(p, n), divmod(q, n)
            terms.append((self._used(c, e), self._pair(i, c, j, e), 1, q, p))
        return _in_threes(terms)

    def within(self, i: int) -> list[Term]:
        """Pairs of the channels of atom i, in triangles of three channels."""
        blocks = _blocks(range(len(self.widths)))
        single_terms = [
            self._within_atom(i, c, e) for b, a in combinations(blocks, 2) for c in a for e in b
        ]
        triangles = []
        for block in blocks:
            terms = [self._within_atom(i, c, e) for c in block for e in block if e <= c]
            if _fits(terms, TRIANGLE):
                triangles += _group(terms)
            else:
                single_terms += terms
        return triangles + _in_threes(single_terms)

    def _slope(self, i: int, c: int) -> int:
        """The row of a channel's slope, which is the gate's where only that reads it."""
        _, _, _, _, da, du, *_ = self._rows()
        return da + i * self.n_gate + c if c < self.first else du + i * len(self.widths) + c

    def _within_atom(self, i: int, c: int, e: int) -> Term:
        """The pair of channels c >= e of one atom.

        Spread and weight depend on c only, which is what a triangle takes for granted.
        """
        spread, excess, tau, _, _, _, d2a, d2l, _ = self._rows()
        n = len(self.widths)
        n_gate = self.n_gate
        first = self.first
        # Second derivatives in channels that gate and likelihood share are weighted already.
        weight = excess + i if c < first else ONES if c < n_gate else tau + i
        second = ZEROS
        if e >= first:
            second = d2l + i * pairs(n - first) + pairs(c - first) + e - first
        elif c < n_gate:
            second = d2a + i * pairs(n_gate) + pairs(c) + e
        to = self._used(c, e), self._pair(i, c, i, e), 1
        slopes = self._slope(i, c), self._slope(i, e)
        return *to, *slopes, spread + (c < first), weight, second

    def between(self, complete: bool) -> tuple[list[Term], list[tuple[int, ...]], list[Term]]:
        """Products ``pi_i da pi_j da'`` of two atoms, and less ``tau_i du tau_j du'``.

        Given responsibilities do not vary: of them there are the former only.
        """
        _, _, tau, pi, da, du, *_ = self._rows()
        n, n_gate = len(self.widths), self.n_gate
        # Channels of the most coefficients first, as a square takes them.
        channels = sorted(range(0 if complete else n), key=lambda c: -self.widths[c])
        squares, single_terms = [], []
        for j, i in combinations(range(self.k), 2):
            for c, e in product(range(n_gate), repeat=2):
                rows = da + i * n_gate + c, da + j * n_gate + e
                single_terms.append((self._used(c, e), self._pair(i, c, j, e), 1, *rows))
            for one, other in product(_blocks(channels), repeat=2):
                pairs = list(product(one, other))
                to = [(self._used(c, e), self._pair(i, c, j, e), -1) for c, e in pairs]
                if _fits(to, SQUARE):
                    rows = [
                        (self._slope(i, c), self._slope(j, e), tau + i, tau + j) for c, e in pairs
                    ]
                    squares += _group([(*t, *r) for t, r in zip(to, rows, strict=True)])
                else:
                    rows = [(du + i * n + c, du + j * n + e) for c, e in pairs]
                    single_terms += [(*t, *r) for t, r in zip(to, rows, strict=True)]
        # The gate's slopes come last: those of the density are made of them.
        sources = {
            du + i * n + c: (tau + i, self._slope(i, c)) for i in range(self.k) for c in range(n)
        } | {
            da + i * n_gate + c: (pi + i, da + i * n_gate + c)
            for i in range(self.k)
            for c in range(n_gate)
        }
        needed = {row for term in single_terms for row in term[3:]}
        weighted = [(row, *source) for row, source in sources.items() if row in needed]
        return squares, weighted, _in_threes(single_terms)
