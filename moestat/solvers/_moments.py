"""Moments of merging atoms as coordinates.

Two atoms close to each other are one atom of their total mass at their mean, up to terms in their
second moment.  The data determine mass and mean well and the rest hardly, so that the likelihood
has a narrow valley; and in the atoms' own parameters the valley is curved: mass that goes from one
to the other takes both of them along.  With ``u`` the log-ratio of their masses, ``W`` the log of
the total, ``m`` the mean of their other parameters and ``phi = (theta_1 - theta_2) sqrt(w_1 w_2 /
(w_1 + w_2))``, whose outer product is the second central moment times the mass,

    log w_1 = W - log(1 + e^-u)      theta_1 = m + e^(-(u + W)/2) phi
    log w_2 = W - log(1 + e^u)       theta_2 = m - e^((u - W)/2) phi

and the valley is straight in (W, m, phi, u).  Of three close atoms and more the closest two become
one of mass e^W at m, which merges with the next one, and so on: the Jacobi coordinates of celestial
mechanics.  The second moments of all of them are then the sum of the outer products, so that mass
may go from any of them to any other without a change of the first three moments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from moestat._types import FloatArray
from moestat.families import Family

__all__ = ["MomentChart", "Moments", "Path"]

_CLOSE = 1.0  # root-mean-square difference of the predictors of two atoms that count as close
_STEEPEST = 600.0  # beyond this log-ratio of masses the exponentials would overflow


def _clipped(split: float) -> float:
    return min(max(split, -_STEEPEST), _STEEPEST)


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


class Path(NamedTuple):
    """The end (P,) of a path over [0, 1] and its velocity (P,) there."""

    end: FloatArray
    velocity: FloatArray


class _Motion(NamedTuple):
    """Log-mass and location (d,) of an atom, or of several merged ones, and their velocities."""

    mass: float
    location: FloatArray
    growth: float
    drift: FloatArray


class _Merger:
    """Two atoms in moments: split u, share p of the first, sqrt(p (1 - p)), their difference."""

    def __init__(self, one: float, other: float, apart: FloatArray) -> None:
        self.split = _clipped(one - other)
        self.share = math.exp(-_softplus(-self.split))
        # 1 / (e^(u/2) + e^(-u/2))
        size = abs(self.split)
        self.root = math.exp(-0.5 * size - math.log1p(math.exp(-size)))
        self.apart = apart
        self.total = other + _softplus(self.split)

    @property
    def psi(self) -> FloatArray:
        """``e^(-W/2) phi`` (d,), whose outer product is the second central moment."""
        return self.root * self.apart


class Moments:
    """Where the log-masses and the other parameters of a family's atoms are, and their metric.

    Parameters
    ----------
    family : Family
        A family.  Where it has no free masses no atoms are merged.
    metric : ndarray of shape (P, P)
        Metric of the parameters, in which atoms are close or not.
    """

    def __init__(self, family: Family, metric: FloatArray) -> None:
        self.family = family
        self.mass: list[int] = []
        k, width = family.n_experts, family.n_atom_params
        others, column = np.arange(width), family.mass_column
        if column is not None and family.gate.mass in family.gate.translations:
            others = np.delete(others, column)
            self.mass = [i * width + column for i in range(k)]
        self.others: list[Any] = [i * width + others for i in range(k)]
        self.metrics: list[FloatArray] = [metric[np.ix_(at, at)] for at in self.others]

    def _distance(self, apart: FloatArray, atoms: Iterable[int]) -> float:
        """Root-mean-square difference of the predictors of atoms whose parameters are apart."""
        # Each atom has units of its own; the narrowest one says how close they are.
        return math.sqrt(max(float(apart @ self.metrics[i] @ apart) for i in atoms))

    def closest(self, theta: FloatArray) -> float:
        """Distance of the two atoms closest to each other at theta (P,); inf for a single one."""
        k, others = self.family.n_experts, self.others
        return min(
            (
                self._distance(theta[others[i]] - theta[others[j]], (i, j))
                for i in range(k)
                for j in range(i)
            ),
            default=math.inf,
        )

    def merges(
        self, theta: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> list[tuple[int, int]]:
        """Mergers of close atoms, the closest first; the n-th one makes the atom ``k + n``.

        Atoms on a bound of the box take no part: their steps must stay on it.
        """
        if not self.mass:
            return []
        k, width = self.family.n_experts, self.family.n_atom_params
        can_move = self.family.lower < self.family.upper
        held: Any = can_move & ((theta <= lower) | (theta >= upper))
        movable = ~held[: k * width].reshape(k, width).any(axis=1)
        mass = {i: float(theta[self.mass[i]]) for i in range(k) if movable[i]}
        location = {i: theta[self.others[i]] for i in mass}
        members: dict[int, tuple[int, ...]] = {i: (i,) for i in mass}
        distance = {}
        merges: list[tuple[int, int]] = []
        fresh = list(mass)
        while len(mass) > 1:
            for i in fresh:
                for j in mass:
                    if j < i:
                        apart = location[i] - location[j]
                        distance[i, j] = self._distance(apart, members[i] + members[j])
            i, j = min(distance, key=lambda pair: (distance[pair], pair))
            if distance[i, j] >= _CLOSE:
                break
            both = _Merger(mass.pop(i), mass.pop(j), location[i] - location[j])
            new = k + len(merges)
            mass[new], location[new] = both.total, location[j] + both.share * both.apart
            members[new] = members[i] + members[j]
            distance = {pair: d for pair, d in distance.items() if not {i, j} & set(pair)}
            merges.append((i, j))
            fresh = [new]
        return merges

    def chart(self, theta: FloatArray, lower: FloatArray, upper: FloatArray) -> MomentChart:
        """The chart of the close atoms at theta."""
        return MomentChart(self, theta, self.merges(theta, lower, upper))


class MomentChart:
    """Coordinates around theta: the moments of merged atoms, and parameters as they are.

    A chart turns a step, given as the velocity (P,) of the parameters at theta, into a path that
    is straight in these coordinates.  What the path does to the pinned reference atom is undone
    by the symmetry that allows to pin it.

    Parameters
    ----------
    moments : Moments
        The family's atoms.
    theta : ndarray of shape (P,)
        Packed parameters.
    merges : sequence of (int, int)
        Atoms whose moments are coordinates, as `Moments.merges` numbers them.
    """

    def __init__(
        self, moments: Moments, theta: FloatArray, merges: Sequence[tuple[int, int]]
    ) -> None:
        self.moments, self.theta = moments, theta
        k = moments.family.n_experts
        mass, others = moments.mass, moments.others
        self.mergers: list[tuple[int, int, int, _Merger]] = []
        masses = [float(theta[at]) for at in mass]
        locations = [theta[at] for at in others]
        for new, (i, j) in enumerate(merges, start=k):
            both = _Merger(masses[i], masses[j], locations[i] - locations[j])
            masses.append(both.total)
            locations.append(locations[j] + both.share * both.apart)
            self.mergers.append((i, j, new, both))
        self._masses, self._locations = masses, locations

    def curvature(self, gradient: FloatArray) -> FloatArray:
        """What the chart adds to the Hessian (P, P): gradient times the paths' accelerations."""
        size = gradient.size
        added = np.zeros((size, size))
        if not self.mergers:
            return added
        unit = np.eye(size)
        growth = [unit[at] for at in self.moments.mass]
        drift = [unit[at] for at in self.moments.others]
        for i, j, _, both in self.mergers:
            eta = growth[i] - growth[j]
            growth.append(growth[j] + both.share * eta)
            shift = (both.root**2 * both.apart)[:, None] * eta
            drift.append(drift[j] + both.share * (drift[i] - drift[j]) + shift)
        weight = [float(gradient[at]) for at in self.moments.mass]
        force = [gradient[at] for at in self.moments.others]
        for i, j, new, both in self.mergers:
            eta, total, psi = growth[i] - growth[j], growth[new], both.psi
            down, up = math.exp(-0.5 * both.split) * force[i], math.exp(0.5 * both.split) * force[j]
            pull, push = down - up, down + up
            turn = both.root * (drift[i] - drift[j])
            turn += (0.5 * (1.0 - 2.0 * both.share)) * psi[:, None] * eta
            bend = float(pull @ psi)
            mass = weight[i] + weight[j]
            cross = eta[:, None] * ((0.25 * bend - both.root**2 * mass) * eta - push @ turn)
            cross -= total[:, None] * (0.25 * bend * total + pull @ turn)
            added += 0.5 * (cross + cross.T)
            weight.append(mass - 0.5 * bend)
            force.append(force[i] + force[j])
        return added

    def path(self, step: FloatArray) -> Path:
        """The path of a step (P,) at its end."""
        mass, others = self.moments.mass, self.moments.others
        end, velocity = self.theta + step, step.copy()
        if not self.mergers:
            return Path(end, velocity)
        growth = [float(step[at]) for at in mass]
        drift = [step[at] for at in others]
        turns = []
        for i, j, _, both in self.mergers:
            eta, change = growth[i] - growth[j], drift[i] - drift[j]
            turns.append(both.root * change + (0.5 * (1.0 - 2.0 * both.share) * eta) * both.psi)
            growth.append(growth[j] + both.share * eta)
            drift.append(drift[j] + both.share * change + (both.root**2 * eta) * both.apart)
        motions = [
            _Motion(m + g, x + v, g, v)
            for m, x, g, v in zip(self._masses, self._locations, growth, drift, strict=True)
        ]
        for (i, j, new, both), turn in zip(reversed(self.mergers), reversed(turns), strict=True):
            eta = growth[i] - growth[j]
            motions[i], motions[j] = _parted(both, eta, turn, growth[new], motions[new])
        for i, at in enumerate(mass):
            end[at], end[others[i]], velocity[at], velocity[others[i]] = motions[i]
        pin = self.moments.family.pin
        return Path(pin(end), pin(velocity))


def _parted(
    both: _Merger, eta: float, turn: FloatArray, growth: float, motion: _Motion
) -> tuple[_Motion, _Motion]:
    """The ends of two atoms, from that of the atom they make.

    Velocities at the start are `eta` of the split, `turn` (d,) of psi and `growth` of the total
    log-mass; `motion` is at the end.
    """
    # phi is straight: psi shrinks by what the total mass has grown.
    shrink = math.exp(-0.5 * _clipped(motion.mass - both.total))
    straight = turn + (0.5 * growth) * both.psi
    psi = shrink * (both.psi + straight)
    turn = shrink * straight - (0.5 * motion.growth) * psi
    split = _clipped(both.split + eta)
    down, up = math.exp(-0.5 * split), math.exp(0.5 * split)
    share = math.exp(-_softplus(-split))
    return (
        _Motion(
            motion.mass - _softplus(-split),
            motion.location + down * psi,
            motion.growth + (1.0 - share) * eta,
            motion.drift + down * (turn - (0.5 * eta) * psi),
        ),
        _Motion(
            motion.mass - _softplus(split),
            motion.location - up * psi,
            motion.growth - share * eta,
            motion.drift - up * (turn + (0.5 * eta) * psi),
        ),
    )
