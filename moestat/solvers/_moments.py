"""Moments of merging atoms as coordinates.

Two atoms close to each other are one atom of their total mass at their mean, up to terms in their
second moment.  The data determine mass and mean well and the rest hardly, so that the likelihood
has a narrow valley; and in the atoms' own parameters the valley is curved: mass that goes from one
to the other takes both of them along.  With ``u`` the log-ratio of their masses, ``W`` the log of
the total, ``m`` the mean of their other parameters and ``psi = (theta_1 - theta_2) sqrt(w_1 w_2) /
(w_1 + w_2)``, whose outer product is the second central moment,

    log w_1 = W - log(1 + e^-u)      theta_1 = m + e^(-u/2) psi
    log w_2 = W - log(1 + e^u)       theta_2 = m - e^(u/2) psi

and the valley is straight in (W, m, psi, u).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


class _Pair(NamedTuple):
    """Two atoms in moments: split u, share p of the first, sqrt(p (1 - p)), their difference."""

    split: float
    share: float
    root: float
    apart: FloatArray


class Moments:
    """Where the log-masses and the other parameters of a family's atoms are, and their metric.

    Parameters
    ----------
    family : Family
        A family.  Where it has no free masses no atoms are paired.
    metric : ndarray of shape (P, P)
        Metric of the parameters, in which atoms are close or not.
    """

    def __init__(self, family: Family, metric: FloatArray) -> None:
        self.family = family
        self.mass: list[int] = []
        k, width = family.n_experts, family.n_atom_params
        others, name = np.arange(width), family.gate.mass
        if name is not None and name in family.gate.translations:
            column = int(family.blocks[name].flat[0]) % width
            others = np.delete(others, column)
            self.mass = [i * width + column for i in range(k)]
        self.others: list[Any] = [i * width + others for i in range(k)]
        self.metrics: list[FloatArray] = [metric[np.ix_(at, at)] for at in self.others]

    def _distance(self, theta: FloatArray, i: int, j: int) -> float:
        """Root-mean-square difference of the predictors of two atoms at theta (P,)."""
        apart = theta[self.others[i]] - theta[self.others[j]]
        # Each atom has units of its own; the narrower one says how close they are.
        return math.sqrt(max(float(apart @ self.metrics[at] @ apart) for at in (i, j)))

    def closest(self, theta: FloatArray) -> float:
        """Distance of the two atoms closest to each other at theta (P,); inf for a single one."""
        k = self.family.n_experts
        return min(
            (self._distance(theta, i, j) for i in range(k) for j in range(i)), default=math.inf
        )

    def pairs(
        self, theta: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> list[tuple[int, int]]:
        """Pairs of atoms close to each other, the closest first and none in two pairs.

        Atoms on a bound of the box have no partner: their steps must stay on it.
        """
        if not self.mass:
            return []
        k, width = self.family.n_experts, self.family.n_atom_params
        held: Any = (lower < upper) & ((theta <= lower) | (theta >= upper))
        movable = ~held[: k * width].reshape(k, width).any(axis=1)
        found = []
        for i in range(k):
            for j in range(i):
                if movable[i] and movable[j]:
                    distance = self._distance(theta, i, j)
                    if distance < _CLOSE:
                        found.append((distance, i, j))
        pairs: list[tuple[int, int]] = []
        taken: set[int] = set()
        for _, i, j in sorted(found):
            if not taken & {i, j}:
                pairs.append((i, j))
                taken |= {i, j}
        return pairs

    def chart(self, theta: FloatArray, lower: FloatArray, upper: FloatArray) -> MomentChart:
        """The chart of the close pairs at theta."""
        return MomentChart(self, theta, self.pairs(theta, lower, upper))


class MomentChart:
    """Coordinates around theta: the moments of pairs of atoms, and parameters as they are.

    A chart turns a step, given as the velocity (P,) of the parameters at theta, into a path that
    is straight in these coordinates.  What the path does to the pinned reference atom is undone
    by the symmetry that allows to pin it.

    Parameters
    ----------
    moments : Moments
        The family's atoms.
    theta : ndarray of shape (P,)
        Packed parameters.
    pairs : sequence of (int, int)
        Atoms whose moments are coordinates.
    """

    def __init__(
        self, moments: Moments, theta: FloatArray, pairs: Sequence[tuple[int, int]]
    ) -> None:
        self.moments, self.theta, self.pairs = moments, theta, pairs

    def _pair(self, i: int, j: int) -> _Pair:
        mass, others, theta = self.moments.mass, self.moments.others, self.theta
        split = _clipped(float(theta[mass[i]] - theta[mass[j]]))
        share = math.exp(-_softplus(-split))
        # 1 / (e^(u/2) + e^(-u/2))
        root = math.exp(-0.5 * abs(split) - math.log1p(math.exp(-abs(split))))
        return _Pair(split, share, root, theta[others[i]] - theta[others[j]])

    def curvature(self, gradient: FloatArray) -> FloatArray:
        """What the chart adds to the Hessian (P, P): gradient times the paths' accelerations."""
        mass, others = self.moments.mass, self.moments.others
        added = np.zeros((gradient.size, gradient.size))
        for i, j in self.pairs:
            split, share, root, apart = self._pair(i, j)
            down, up = math.exp(-0.5 * split), math.exp(0.5 * split)
            first, second = down * gradient[others[i]], up * gradient[others[j]]
            eta = np.zeros(gradient.size)
            eta[mass[i]], eta[mass[j]] = 1.0, -1.0
            # d psi = root (v_1 - v_2) + (1 - 2 p) root apart eta / 2
            pull = -0.5 * root * (first + second)
            linear = 0.5 * (1.0 - 2.0 * share) * float(apart @ pull) * eta
            linear[others[i]] += pull
            linear[others[j]] -= pull
            square = 0.25 * root * float((first - second) @ apart)
            square -= root**2 * float(gradient[mass[i]] + gradient[mass[j]])
            cross = eta[:, None] * (linear + 0.5 * square * eta)
            added += cross + cross.T
        return added

    def path(self, step: FloatArray) -> Path:
        """The path of a step (P,) at its end."""
        mass, others, theta = self.moments.mass, self.moments.others, self.theta
        end, velocity = theta + step, step.copy()
        for i, j in self.pairs:
            split, p, root, apart = self._pair(i, j)
            one, other = step[others[i]], step[others[j]]
            eta = float(step[mass[i]] - step[mass[j]])
            turn = root * (one - other + (0.5 * (1.0 - 2.0 * p) * eta) * apart)
            psi = root * apart + turn
            drift = other + p * (one - other) + (root**2 * eta) * apart
            mean = theta[others[j]] + p * apart + drift
            growth = float(step[mass[j]]) + p * eta
            total = float(theta[mass[j]]) + _softplus(split) + growth
            split = _clipped(split + eta)
            down, up = math.exp(-0.5 * split), math.exp(0.5 * split)
            p = math.exp(-_softplus(-split))
            end[mass[i]], end[mass[j]] = total - _softplus(-split), total - _softplus(split)
            end[others[i]], end[others[j]] = mean + down * psi, mean - up * psi
            velocity[mass[i]], velocity[mass[j]] = growth + (1.0 - p) * eta, growth - p * eta
            velocity[others[i]] = drift + down * (turn - (0.5 * eta) * psi)
            velocity[others[j]] = drift - up * (turn + (0.5 * eta) * psi)
        pin = self.moments.family.pin
        return Path(pin(end), pin(velocity)) if self.pairs else Path(end, velocity)
