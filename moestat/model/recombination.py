"""Compression of classes over two inputs: a few of the rows with the moments of all.

On each cell of a grid the rows of a class are replaced by some of them, with other positive
weights, that integrate every polynomial up to a total degree as all rows do.  Tchakaloff (1957) has
such weights; the recombination of Litterer and Lyons (2012) finds them: rows are joined to twice as
many bundles as there are polynomials, half of the bundles are given up, and the rows of the others
are joined anew.
"""

from __future__ import annotations

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.compiler.jit import compile_loop, device

__all__ = ["DEGREE", "POINTS", "recombine"]

DEGREE = 3
POINTS = (DEGREE + 1) * (DEGREE + 2) // 2
"""Total degree of the polynomials whose sums are kept by default, and how many these are."""

_TAIL, _LOOKED_AT = 1e-3, 10_000
"""Share of the rows beyond the first and last panels, which they belong to, and rows to tell it."""

_SMALLEST = 1e-12
"""Part of the largest pivot from which on polynomials are told apart by the rows."""


def recombine(
    X: FloatArray, y: IntArray, weight: FloatArray, n_panels: int, degree: int = DEGREE
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Rows, classes and positive weights with the moments of the data (2, n), class by cell.

    At most ``(degree + 1) (degree + 2) / 2`` rows per class and cell; panels are of equal width but
    for the outer ones.
    """
    if not weight.all():
        used = weight > 0.0
        X = np.compress(used, X, axis=1)
        y = y[used]
        weight = weight[used]
    step = -(-weight.size // _LOOKED_AT)
    low, high = np.quantile(X[:, ::step], (_TAIL, 1.0 - _TAIL), axis=1)
    width = (high - low) / n_panels
    cell, rows = np.empty((2, weight.size), np.int64)
    borders = np.zeros((int(y.max()) + 1) * n_panels**2 + 1, np.int64)
    _sort(X, y, low, np.where(width > 0.0, width, 1.0), n_panels, cell, borders, rows)
    places, shares = np.take(X, rows, axis=1), weight[rows]
    count = (degree + 1) * (degree + 2) // 2
    _recombine(
        places,
        borders,
        degree,
        shares,
        np.empty(int(np.diff(borders).max()), np.int64),
        *np.empty((2, degree + 1)),
        np.empty((2 * count, count)),
        np.empty((count, 2 * count)),
        *np.empty((2, 2 * count)),
        np.empty(3 * count, np.int64),
    )
    positive = shares > 0.0
    share = shares[positive]
    Z = np.compress(positive, places, axis=1)
    return Z, y[rows[positive]], share * (weight.sum() / share.sum())


@compile_loop
def _sort(X, y, low, width, n_panels, cell, borders, rows):
    """The cell of each row, the rows in the order of the cells, and where each cell begins."""
    for t in range(y.size):
        group = y[t]
        for axis in range(2):
            place = (X[axis, t] - low[axis]) / width[axis]
            group = group * n_panels + int(min(max(place, 0.0), n_panels - 1.0))
        cell[t] = group
        borders[group + 1] += 1
    for group in range(1, borders.size):
        borders[group] += borders[group - 1]
    for t in range(y.size):
        rows[borders[cell[t]]] = t
        borders[cell[t]] += 1
    for group in range(borders.size - 1, 0, -1):
        borders[group] = borders[group - 1]
    borders[0] = 0


@compile_loop
def _recombine(X, borders, degree, shares, live, first, second, sums, tableau, old, new, basis):
    """Set shares (n,) to those that stand for all rows of each group, most of them 0."""
    count = sums.shape[1]
    for group in range(borders.size - 1):
        begin, n = borders[group], borders[group + 1] - borders[group]
        if n <= count:
            continue
        low0 = X[0, begin]
        high0 = X[0, begin]
        low1 = X[1, begin]
        high1 = X[1, begin]
        for i in range(n):
            live[i] = begin + i
            low0, high0 = min(low0, X[0, begin + i]), max(high0, X[0, begin + i])
            low1, high1 = min(low1, X[1, begin + i]), max(high1, X[1, begin + i])
        scale0 = 2.0 / (high0 - low0) if high0 > low0 else 0.0
        scale1 = 2.0 / (high1 - low1) if high1 > low1 else 0.0
        while n > count:
            size = min(2 * count, n)
            for q in range(size):
                old[q] = 0.0
                for j in range(count):
                    sums[q, j] = 0.0
            for q in range(size):
                for i in range(q * n // size, (q + 1) * n // size):
                    t = live[i]
                    share = shares[t]
                    _legendre(scale0 * (X[0, t] - low0) - 1.0, first)
                    _legendre(scale1 * (X[1, t] - low1) - 1.0, second)
                    old[q] += share
                    j = 0
                    for a in range(degree + 1):
                        part = share * first[a]
                        for b in range(degree + 1 - a):
                            sums[q, j + b] += part * second[b]
                        j += degree + 1 - a
            for q in range(size):
                new[q] = old[q]
                for j in range(count):
                    tableau[j, q] = sums[q, j] / old[q]
            _give_up(tableau, size, new, basis)
            n_left = 0
            for q in range(size):
                ratio = new[q] / old[q]
                for i in range(q * n // size, (q + 1) * n // size):
                    t = live[i]
                    shares[t] *= ratio
                    if ratio > 0.0:
                        live[n_left] = t
                        n_left += 1
            n = n_left


@device
def _legendre(u, values):
    """Legendre's polynomials at u."""
    values[0] = 1.0
    values[1] = u
    for j in range(2, values.size):
        values[j] = (2.0 - 1.0 / j) * u * values[j - 1] - (1.0 - 1.0 / j) * values[j - 2]


@device(forceinline=False)
def _give_up(tableau, size, mass, basis):
    """Move the mass of bundles until as many as polynomials are left, with the same means.

    The columns of the tableau are means of the polynomials over bundles.  Each bundle beyond a
    basis gives its mass to the basis, as far as none of that gets negative; where one gets 0 first
    it leaves the basis for the bundle, a pivot of the simplex method.
    """
    count = tableau.shape[0]
    for q in range(size):
        basis[count + q] = 0  # whether in the basis
    for i in range(count):
        best, at = 0.0, -1
        for q in range(size):
            if basis[count + q] == 0 and abs(tableau[i, q]) > best:
                best, at = abs(tableau[i, q]), q
        basis[i] = -1
        if best > _SMALLEST:
            _pivot(tableau, size, i, at)
            basis[i] = at
            basis[count + at] = 1
    for q in range(size):
        if basis[count + q] != 0:
            continue
        step, at = mass[q], -1
        for i in range(count):
            if basis[i] >= 0 and tableau[i, q] < 0.0:
                room = mass[basis[i]] / -tableau[i, q]
                if room < step:
                    step, at = room, i
        for i in range(count):
            if basis[i] >= 0:
                mass[basis[i]] = max(mass[basis[i]] + step * tableau[i, q], 0.0)
        if at < 0:
            mass[q] = 0.0
            continue
        mass[q] -= step
        mass[basis[at]] = 0.0
        _pivot(tableau, size, at, q)
        basis[at] = q


@device(forceinline=False)
def _pivot(tableau, size, i, q):
    """Make column q the unit vector i."""
    factor_of_row = 1.0 / tableau[i, q]
    for c in range(size):
        tableau[i, c] *= factor_of_row
    for k in range(tableau.shape[0]):
        if k != i:
            factor = tableau[k, q]
            if factor != 0.0:
                for c in range(size):
                    tableau[k, c] -= factor * tableau[i, c]
