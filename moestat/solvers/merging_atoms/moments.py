"""Moments of merging atoms as coordinates.

Two atoms close to each other are one atom of their total mass at their mean, up to terms in their
second moment.  The data determine mass and mean well and the rest hardly, so that the likelihood
has a narrow ridge; and in the atoms' own parameters the ridge is curved: mass that goes from one
to the other takes both of them along.  With ``u`` the log-ratio of their masses, ``W`` the log of
the total, ``m`` the mean of their other parameters and ``phi = (theta_1 - theta_2) sqrt(w_1 w_2 /
(w_1 + w_2))``, whose outer product is the second central moment times the mass,

    log w_1 = W - log(1 + e^-u)      theta_1 = m + e^(-(u + W)/2) phi
    log w_2 = W - log(1 + e^u)       theta_2 = m - e^((u - W)/2) phi

and the ridge is straight in (W, m, phi, u).  Of three close atoms and more the closest two become
one of mass e^W at m, which merges with the next one, and so on: the Jacobi coordinates of celestial
mechanics.  The second moments of all of them are then the sum of the outer products, so that mass
may go from any of them to any other without a change of the first three moments.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.compiler.jit import compact, compile_loop, device
from moestat.compiler.math import exp, softplus
from moestat.kernels.views import empty_rows, keep, part, row
from moestat.model.family import Family
from moestat.solvers.merging_atoms.rules import RIDGE

_STEEPEST = float(0.85 * np.log(np.finfo(np.float64).max))
"""Log-ratio of masses beyond which the exponentials would overflow."""

# Of k atoms, merger r makes the atom k + r.  Its numbers are the log-ratio u of the two masses, the
# first one's share p and the root of p (1 - p).
_SPLIT, _SHARE, _ROOT = range(3)


@device(forceinline=False)
@compact
def _clip(split):
    return min(max(split, -_STEEPEST), _STEEPEST)


@device(forceinline=False)
@compact
def _gather(theta, mass_at, other_at, masses, places):
    """Log-masses (k,) and locations (k, d) of the atoms."""
    for i in range(mass_at.size):
        masses[i] = theta[mass_at[i]]
        for a in range(other_at.shape[1]):
            places[i, a] = theta[other_at[i, a]]


@device(forceinline=False)
@compact
def _merge(i, j, r, new, masses, places, numbers, apart):
    """Make the atom `new` of i and j, with the numbers of merger r."""
    split = _clip(masses[i] - masses[j])
    size = abs(split)
    numbers[r, _SPLIT] = split
    numbers[r, _SHARE] = exp(-softplus(-split))
    numbers[r, _ROOT] = exp(-0.5 * size - softplus(-size))  # 1 / (e^(u/2) + e^(-u/2))
    masses[new] = masses[j] + softplus(split)
    for a in range(places.shape[1]):
        apart[r, a] = places[i, a] - places[j, a]
        places[new, a] = places[j, a] + numbers[r, _SHARE] * apart[r, a]


@device(forceinline=False)
@compact
def _distance(one, other, metric, i):
    """Root-mean-square difference of the predictors of two locations, in the units of atom i."""
    d = one.size
    total = 0.0
    for a in range(d):
        along = 0.0
        for b in range(d):
            along += metric[i * d + a, b] * (one[b] - other[b])
        total += (one[a] - other[a]) * along
    return math.sqrt(total)


@compile_loop
@compact
def _closest_loop(theta, mass_at, other_at, metric):
    """Distance of the two closest atoms."""
    k, d = other_at.shape
    work, places = empty_rows(1, k), empty_rows(k, d)
    masses = row(work, 0)
    _gather(theta, mass_at, other_at, masses, places)
    closest = np.inf
    for i in range(k):
        for j in range(i):
            one, other = row(places, i), row(places, j)
            apart = max(_distance(one, other, metric, i), _distance(one, other, metric, j))
            closest = min(apart, closest)
    keep(work)
    return closest


@compile_loop
@compact
def _merges_loop(theta, atoms, metric, movable, bounds, members, pairs):
    """Fill `pairs`; returns how many atoms merge, the closest two first.

    `members` (2k, k) says which atoms an atom is made of; a row without any is no atom.
    """
    mass_at, other_at = atoms
    lower, upper = bounds
    k, d = other_at.shape
    work, places = empty_rows(1, 2 * k), empty_rows(2 * k, d)
    numbers = empty_rows(k, 3)
    apart = empty_rows(k, d)
    distance = empty_rows(2 * k, 2 * k)
    masses = row(work, 0)
    _gather(theta, mass_at, other_at, masses, places)
    for i in range(k):
        for m in range(k):
            members[i, m] = 0
        # Atoms on a bound of the box are not merged, because their steps must stay on it.
        at = mass_at[i]
        on_bound = movable[at] and not lower[at] < theta[at] < upper[at]
        for a in range(d):
            at = other_at[i, a]
            on_bound = on_bound or (movable[at] and not lower[at] < theta[at] < upper[at])
        members[i, i] = 0 if on_bound else 1
    n_merges, fresh = 0, 0
    while True:
        top = k + n_merges
        for i in range(fresh, top):
            for j in range(i):
                distance[i, j] = np.inf
                farthest = 0.0
                one = 0
                other = 0
                for m in range(k):
                    one += members[i, m]
                    other += members[j, m]
                    if members[i, m] + members[j, m] > 0:
                        # Each has units of its own; the narrowest one says how close they are.
                        apart_by = _distance(row(places, i), row(places, j), metric, m)
                        farthest = max(apart_by, farthest)
                if one > 0 and other > 0:
                    distance[i, j] = farthest
        best = np.inf
        i = 0
        j = 0
        for one in range(top):
            for other in range(one):
                if distance[one, other] < best:
                    best = distance[one, other]
                    i = one
                    j = other
        if not best < RIDGE.close:
            keep(work)
            return n_merges
        _merge(i, j, n_merges, top, masses, places, numbers, apart)
        pairs[n_merges, 0], pairs[n_merges, 1] = i, j
        for m in range(k):
            members[top, m] = members[i, m] + members[j, m]
            members[i, m] = members[j, m] = 0
        for other in range(top):
            distance[max(i, other), min(i, other)] = np.inf
            distance[max(j, other), min(j, other)] = np.inf
        n_merges, fresh = n_merges + 1, top


@compile_loop
@compact
def _chart_loop(theta, mass_at, other_at, pairs, masses, places, numbers, apart):
    """Fill the log-masses and locations of all atoms, and the numbers of their mergers."""
    _gather(theta, mass_at, other_at, masses, places)
    for r in range(pairs.shape[0]):
        _merge(pairs[r, 0], pairs[r, 1], r, mass_at.size + r, masses, places, numbers, apart)


@device(forceinline=False)
@compact
def _find_drifts(r, new, pairs, numbers, apart, growth, drift):
    """Velocities of log-mass and location of the atom `new`, from those of its parts."""
    i, j = pairs[r, 0], pairs[r, 1]
    share, root2 = numbers[r, _SHARE], numbers[r, _ROOT] ** 2
    eta = growth[i] - growth[j]
    growth[new] = growth[j] + share * eta
    for a in range(apart.shape[1]):
        drift[new, a] = (
            drift[j, a] + share * (drift[i, a] - drift[j, a]) + root2 * eta * apart[r, a]
        )


@compile_loop
@compact
def _curvature_loop(gradient, mass_at, other_at, pairs, numbers, apart, added):
    """Add to `added` what the chart adds to the Hessian."""
    k, d = other_at.shape
    n_params, top = gradient.size, 2 * other_at.shape[0]
    growth, drift = empty_rows(n_params, top), empty_rows(n_params * top, d)
    weight, force = empty_rows(1, top), empty_rows(top, d)
    rows, sides = empty_rows(4, n_params), empty_rows(3, d)
    eta = row(rows, 0)
    total = row(rows, 1)
    across = row(rows, 2)
    along = row(rows, 3)
    contrast = row(sides, 0)
    combined = row(sides, 1)
    psi = row(sides, 2)
    for p in range(n_params):
        ours = part(drift, p * top, (p + 1) * top)
        for i in range(k):
            growth[p, i] = 1.0 if mass_at[i] == p else 0.0
            for a in range(d):
                ours[i, a] = 1.0 if other_at[i, a] == p else 0.0
        for r in range(pairs.shape[0]):
            _find_drifts(r, k + r, pairs, numbers, apart, row(growth, p), ours)
    for i in range(k):
        weight[0, i] = gradient[mass_at[i]]
        for a in range(d):
            force[i, a] = gradient[other_at[i, a]]
    for r in range(pairs.shape[0]):
        i = pairs[r, 0]
        j = pairs[r, 1]
        new = k + r
        split = numbers[r, _SPLIT]
        share = numbers[r, _SHARE]
        root = numbers[r, _ROOT]
        down, up = exp(-0.5 * split), exp(0.5 * split)
        mass, moment = weight[0, i] + weight[0, j], 0.0
        for a in range(d):
            psi[a] = root * apart[r, a]
            contrast[a] = down * force[i, a] - up * force[j, a]
            combined[a] = down * force[i, a] + up * force[j, a]
            moment += contrast[a] * psi[a]
            force[new, a] = force[i, a] + force[j, a]
        weight[0, new] = mass - 0.5 * moment
        for p in range(n_params):
            ours = part(drift, p * top, (p + 1) * top)
            eta[p], total[p] = growth[p, i] - growth[p, j], growth[p, new]
            by_contrast, by_total = 0.0, 0.0
            for a in range(d):
                turn = root * (ours[i, a] - ours[j, a]) + (0.5 - share) * psi[a] * eta[p]
                by_contrast += contrast[a] * turn
                by_total += combined[a] * turn
            across[p] = (0.25 * moment - root * root * mass) * eta[p] - by_total
            along[p] = 0.25 * moment * total[p] + by_contrast
        for p in range(n_params):
            for q in range(n_params):
                added[p, q] += 0.5 * (eta[p] * across[q] + eta[q] * across[p])
                added[p, q] -= 0.5 * (total[p] * along[q] + total[q] * along[p])
    keep(rows)
    keep(sides)


@device(forceinline=False)
@compact
def _part_atoms(merged, split, pace, psi, turn, ends, velocities):
    """The ends of atoms i and j from that of the atom `new` they make: log-masses and locations.

    At the end the log-ratio of their masses is `split`, with velocity `pace`, and psi (d,), whose
    outer product is the second central moment, has the velocity `turn` (d,).
    """
    i, j, new = merged
    mass, place = ends
    growth, drift = velocities
    split = _clip(split)
    down = exp(-0.5 * split)
    up = exp(0.5 * split)
    share = exp(-softplus(-split))
    mass[i] = mass[new] - softplus(-split)
    mass[j] = mass[new] - softplus(split)
    growth[i] = growth[new] + (1.0 - share) * pace
    growth[j] = growth[new] - share * pace
    for a in range(psi.size):
        place[i, a] = place[new, a] + down * psi[a]
        place[j, a] = place[new, a] - up * psi[a]
        drift[i, a] = drift[new, a] + down * (turn[a] - 0.5 * pace * psi[a])
        drift[j, a] = drift[new, a] - up * (turn[a] + 0.5 * pace * psi[a])


@compile_loop
@compact
def _path_loop(step, atoms, chart, end, velocity):
    """Fill `end` and `velocity`, both (P,), where a step leads."""
    mass_at, other_at, pairs = atoms
    masses, places, numbers, apart = chart
    k, d = other_at.shape
    n_mergers, top = pairs.shape[0], other_at.shape[0] + pairs.shape[0]
    work = empty_rows(4, top)
    drift = empty_rows(top, d)
    place = empty_rows(top, d)
    psis, turns = empty_rows(top, d), empty_rows(top, d)
    mass = row(work, 0)
    growth = row(work, 1)
    start = row(work, 2)
    pace = row(work, 3)
    _gather(step, mass_at, other_at, growth, drift)
    for r in range(n_mergers):
        i, j = pairs[r, 0], pairs[r, 1]
        share, root = numbers[r, _SHARE], numbers[r, _ROOT]
        pace[r] = growth[i] - growth[j]
        for a in range(d):
            change = drift[i, a] - drift[j, a]
            psis[r, a] = root * apart[r, a]
            turns[r, a] = root * change + (0.5 - share) * pace[r] * psis[r, a]
        _find_drifts(r, k + r, pairs, numbers, apart, growth, drift)
    for i in range(top):
        start[i] = growth[i]
        mass[i] = masses[i] + growth[i]
        for a in range(d):
            place[i, a] = places[i, a] + drift[i, a]
    for r in range(n_mergers - 1, -1, -1):
        new = k + r
        # phi = e^(W/2) psi is straight: psi shrinks by what the total mass has grown.
        shrink = exp(-0.5 * _clip(mass[new] - masses[new]))
        for a in range(d):
            straight = turns[r, a] + 0.5 * start[new] * psis[r, a]
            psis[r, a] = shrink * (psis[r, a] + straight)
            turns[r, a] = shrink * straight - 0.5 * growth[new] * psis[r, a]
        merged, split = (pairs[r, 0], pairs[r, 1], new), numbers[r, _SPLIT] + pace[r]
        psi, turn = row(psis, r), row(turns, r)
        _part_atoms(merged, split, pace[r], psi, turn, (mass, place), (growth, drift))
    for i in range(k):
        end[mass_at[i]], velocity[mass_at[i]] = mass[i], growth[i]
        for a in range(d):
            end[other_at[i, a]], velocity[other_at[i, a]] = place[i, a], drift[i, a]
    keep(work)


class Path(NamedTuple):
    """The end (P,) of a path over [0, 1] and its velocity (P,) there."""

    end: FloatArray
    velocity: FloatArray


class Moments:
    """Positions of the log-masses and the other parameters of a family's atoms.

    Distances between atoms are in the metric (P, P).  Atoms without free masses are not merged.
    """

    def __init__(self, family: Family, metric: FloatArray) -> None:
        self.family = family
        k, width = family.n_experts, family.n_atom_params
        first = width * np.arange(k)
        others = np.arange(width)
        column = family.mass_column
        self.mass_at: IntArray = first
        self.can_merge = column is not None and family.gate.mass in family.gate.translations
        if column is not None and self.can_merge:
            self.mass_at, others = first + column, np.delete(others, column)
        self.other_at: IntArray = np.add.outer(first, others)
        self.metric = np.concatenate([metric[np.ix_(at, at)] for at in self.other_at])
        self._can_move = family.lower < family.upper

    def closest(self, theta: FloatArray) -> float:
        """Distance of the two atoms closest to each other at theta (P,); inf for a single one."""
        return _closest_loop(theta, self.mass_at, self.other_at, self.metric)

    def merges(self, theta: FloatArray, lower: FloatArray, upper: FloatArray) -> IntArray:
        """Mergers (m, 2) of close atoms, the closest first; the n-th one makes the atom ``k + n``.

        Atoms on a bound of the box are not merged, because their steps must stay on it.
        """
        k = self.family.n_experts
        pairs = np.empty((k, 2), np.int64)
        if not self.can_merge:
            return pairs[:0]
        members = np.empty((2 * k, k), np.int64)
        atoms, bounds = (self.mass_at, self.other_at), (lower, upper)
        n_merges = _merges_loop(theta, atoms, self.metric, self._can_move, bounds, members, pairs)
        return pairs[:n_merges]

    def chart(self, theta: FloatArray, lower: FloatArray, upper: FloatArray) -> MomentChart:
        """The chart of the close atoms at theta."""
        return MomentChart(self, theta, self.merges(theta, lower, upper))


class MomentChart:
    """Coordinates around theta: the moments of merged atoms, and parameters as they are.

    A chart turns a step, given as the velocity (P,) of the parameters at theta, into a path that
    is straight in these coordinates.  What the path does to the pinned reference atom is undone
    by the symmetry that allows to pin it.  `pairs` (m, 2) are the atoms whose moments are
    coordinates, as `Moments.merges` numbers them.
    """

    def __init__(self, moments: Moments, theta: FloatArray, pairs: IntArray) -> None:
        self.moments = moments
        self.theta = theta
        self.pairs = pairs
        (n_mergers, _), (k, d) = pairs.shape, moments.other_at.shape
        self._masses, self._places = np.empty(k + n_mergers), np.empty((k + n_mergers, d))
        self._numbers, self._apart = np.empty((n_mergers, 3)), np.empty((n_mergers, d))
        if n_mergers:
            _chart_loop(theta, *self._atoms, self._masses, self._places, self._numbers, self._apart)

    @property
    def _atoms(self) -> tuple[IntArray, IntArray, IntArray]:
        return self.moments.mass_at, self.moments.other_at, self.pairs

    def curvature(self, gradient: FloatArray) -> FloatArray:
        """Term of the Hessian (P, P) that the chart adds: gradient times acceleration of paths."""
        added = np.zeros((gradient.size, gradient.size))
        if len(self.pairs):
            _curvature_loop(gradient, *self._atoms, self._numbers, self._apart, added)
        return added

    def path(self, step: FloatArray) -> Path:
        """The path of a step (P,) at its end."""
        end, velocity = self.theta + step, step.copy()
        if not len(self.pairs):
            return Path(end, velocity)
        chart = self._masses, self._places, self._numbers, self._apart
        _path_loop(step, self._atoms, chart, end, velocity)
        pin = self.moments.family.pin
        return Path(pin(end), pin(velocity))
