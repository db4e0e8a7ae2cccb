"""Terms of score and Hessian: which working rows are multiplied, and where their sums belong.

The compiled loop knows nothing of pairs of channels: it takes the terms of these tables in threes
and sums each with the products of features.  A term is a row of integers,

    products of features, channel or pair of channels of all atoms, sign, working rows ...

Terms with the same number of products stand together, and the last one is repeated with the sign
0 where a group of three is to fill up.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from moestat._types import IntArray

__all__ = ["ONES", "PAIR", "ROWS", "SHARES", "SIGN", "USED", "ZEROS", "build_terms"]

USED, PAIR, SIGN, ROWS = range(4)
"""Columns of a term, the last one that of its first working row."""

ZEROS, ONES, SHARES = range(3)
"""The first rows of weights: 0, 1, and from there on the posterior tau of every atom.

After those comes, of every atom, by how much tau exceeds the prior pi.
"""

Term = tuple[int, ...]


@cache
def build_terms(
    k: int,
    widths: tuple[int, ...],
    n_gate: int,
    first: int,
    n_features: int,
    complete: bool,
    order: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """Terms of the score, of the curvature within an atom, and of that between two atoms.

    Parameters
    ----------
    k : int
        Number of atoms.
    widths : tuple of int
        Number of coefficients of each channel of an atom.
    n_gate, first : int
        Channels that the gate reads, and the first one that the likelihood reads.
    n_features : int
        Number of inputs.
    complete : bool
        Whether responsibilities are given.
    order : int
        Highest derivative wanted; tables that are not are empty.

    Returns
    -------
    score : array (terms, 5)
        With a row of weights and one of slopes: ``tau d(a + l) - pi da``.
    within : array (terms, 7)
        With two rows of slopes, one of weights and one of second derivatives; the same number
        of terms for each atom.
    between : array (terms, 5)
        With two rows of slopes.
    """
    shape = k, widths, n_gate, first, 1 + n_features
    score = list(_score(*shape)) if order > 0 else []
    between = list(_between(*shape, complete)) if order > 1 else []
    within = [
        table for i in range(k if order > 1 else 0) for table in _in_threes(_within(i, *shape))
    ]
    return _array(_in_threes(score), 2), _array(within, 4), _array(_in_threes(between), 2)


def _array(terms: list[Term], n_rows: int) -> IntArray:
    return np.array(terms, dtype=np.intp).reshape(-1, ROWS + n_rows)


def _in_threes(terms: list[Term] | Iterator[Term]) -> list[Term]:
    ordered = sorted(terms, key=lambda term: -term[USED])
    missing = -len(ordered) % 3
    return ordered + [(*ordered[-1][:SIGN], 0, *ordered[-1][ROWS:])] * missing if ordered else []


def _pairs(n: int) -> int:
    return n * (n + 1) // 2


def _used(one: int, other: int, n_phi: int) -> int:
    """Products of two channels: a constant one leaves the first products only."""
    return _pairs(n_phi) if min(one, other) > 1 else n_phi


def _score(k: int, widths: tuple[int, ...], n_gate: int, first: int, n_phi: int) -> Iterator[Term]:
    """Two terms for a channel that gate and likelihood share."""
    n_channels = len(widths)
    for i in range(k):
        for c, width in enumerate(widths):
            to = width, i * n_channels + c, 1
            if c < n_gate:
                yield *to, SHARES + k + i, i * n_gate + c
            if c >= first:
                yield *to, SHARES + i, k * n_gate + i * n_channels + c


def _within(
    i: int, k: int, widths: tuple[int, ...], n_gate: int, first: int, n_phi: int
) -> Iterator[Term]:
    """Pairs of the channels of atom i.

    Slopes are da and du of all atoms, and of this one ``(1 - tau) du`` and the gate's own with
    their spread; seconds are 0, and d2 a and d2 l of all atoms.
    """
    n_channels = len(widths)
    gate, own = i * n_gate, k * n_gate + i * n_channels
    rest = k * (n_gate + n_channels)
    d2a = 1 + i * _pairs(n_gate)
    d2l = 1 + k * _pairs(n_gate) + i * _pairs(n_channels - first)
    for c in range(n_channels):
        for e in range(c + 1):
            slopes = (rest + n_channels + c, gate + e) if c < first else (own + c, rest + e)
            # Second derivatives in channels that gate and likelihood share are weighted already.
            second = ZEROS, 0
            if e >= first:
                weight = ONES if c < n_gate else SHARES + i
                second = weight, d2l + _pairs(c - first) + e - first
            elif c < n_gate:
                second = SHARES + k + i if c < first else ONES, d2a + _pairs(c) + e
            p, q = i * n_channels + c, i * n_channels + e
            yield _used(widths[c], widths[e], n_phi), _pairs(p) + q, 1, *slopes, *second


def _between(
    k: int, widths: tuple[int, ...], n_gate: int, first: int, n_phi: int, complete: bool
) -> Iterator[Term]:
    """Products ``pi_i da pi_j da'`` of two atoms, and less ``tau_i du tau_j du'``.

    Given responsibilities do not vary: of them there are the former only.
    """
    n_channels = len(widths)
    parts = [(n_gate, 0, 1)] if complete else [(n_gate, 0, 1), (n_channels, k * n_gate, -1)]
    for n_own, start, sign in parts:
        for i in range(k):
            for j in range(i):
                for c in range(n_own):
                    for e in range(n_own):
                        p, q = i * n_channels + c, j * n_channels + e
                        rows = start + i * n_own + c, start + j * n_own + e
                        yield _used(widths[c], widths[e], n_phi), _pairs(p) + q, sign, *rows
