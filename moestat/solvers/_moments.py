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

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from moestat._types import FloatArray
from moestat.families import Family

__all__ = ["MomentChart", "Path", "close_pairs", "has_masses"]

_CLOSE = 1.0  # root-mean-square difference of the predictors of two atoms that count as close
_STEEPEST = 600.0  # beyond this log-ratio of masses the exponentials would overflow


def has_masses(family: Family) -> bool:
    """Whether masses are free, and a common factor of all of them changes nothing."""
    return family.gate.mass is not None and family.gate.mass in family.gate.translations


def close_pairs(
    family: Family, theta: FloatArray, metric: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[tuple[int, int], ...]:
    """Pairs of atoms close to each other, the closest first and none in two pairs.

    Atoms on a bound of the box have no partner: their steps must stay on it.
    """
    k, width = family.n_experts, family.n_atom_params
    atoms = family.split(theta)[0]
    held: Any = (lower < upper) & ((theta <= lower) | (theta >= upper))
    movable = ~held[: k * width].reshape(k, width).any(axis=1)
    others = _others(family)
    found = []
    for i in range(k):
        # Each atom has units of its own; the narrower one says how close they are.
        at = i * width + others
        for j in range(i):
            if movable[i] and movable[j]:
                apart = atoms[i, others] - atoms[j, others]
                to = j * width + others
                square = max(apart @ metric[np.ix_(s, s)] @ apart for s in (at, to))
                found.append((square, i, j))
    pairs: list[tuple[int, int]] = []
    for square, i, j in sorted(found):
        taken = {atom for pair in pairs for atom in pair}
        if square < _CLOSE**2 and not taken & {i, j}:
            pairs.append((i, j))
    return tuple(pairs)


def _others(family: Family) -> np.ndarray:
    """Columns of an atom but for its log-mass."""
    return np.delete(np.arange(family.n_atom_params), _mass(family))


def _mass(family: Family) -> int:
    """Column of an atom's log-mass."""
    assert family.gate.mass is not None
    return int(family.blocks[family.gate.mass].flat[0]) % family.n_atom_params


class Path(NamedTuple):
    """The end (P,) of a path over [0, 1], with velocity and acceleration (P,) there."""

    end: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


@dataclass(frozen=True)
class _Pair:
    """Two atoms in moments: split u, share p of the first, their difference, psi and mean."""

    split: float
    share: float
    root: float
    apart: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, log_mass: FloatArray, first: FloatArray, second: FloatArray) -> _Pair:
        split = float(np.clip(log_mass[0] - log_mass[1], -_STEEPEST, _STEEPEST))
        share = float(np.exp(-np.logaddexp(0.0, -split)))
        # 1 / (e^(u/2) + e^(-u/2)), the root of the product of both shares
        root = float(np.exp(-np.logaddexp(0.5 * split, -0.5 * split)))
        apart = first - second
        return cls(split, share, root, apart, second + share * apart)


@dataclass(frozen=True)
class MomentChart:
    """Coordinates around theta: the moments of pairs of atoms, and parameters as they are.

    A chart turns a step, given as the velocity (P,) of the parameters at theta, into a path that
    is straight in these coordinates.  What the path does to the pinned reference atom is undone
    by the symmetry that allows to pin it.

    Parameters
    ----------
    family : Family
        A family that `has_masses`.
    theta : ndarray of shape (P,)
        Packed parameters.
    pairs : tuple of (int, int)
        Atoms whose moments are coordinates.
    """

    family: Family
    theta: FloatArray
    pairs: tuple[tuple[int, int], ...]

    def curvature(self, gradient: FloatArray) -> FloatArray:
        """What the chart adds to the Hessian (P, P): gradient times the paths' accelerations."""
        family = self.family
        mass, others = _mass(family), _others(family)
        atoms, slopes = family.split(self.theta)[0], family.split(gradient)[0]
        added = np.zeros((gradient.size, gradient.size))
        for i, j in self.pairs:
            at, to = i * family.n_atom_params, j * family.n_atom_params
            pair = _Pair.of(atoms[[i, j], mass], atoms[i, others], atoms[j, others])
            down, up = np.exp(-0.5 * pair.split), np.exp(0.5 * pair.split)
            eta = np.zeros(gradient.size)
            eta[at + mass], eta[to + mass] = 1.0, -1.0
            # d psi = root (v_1 - v_2) + (1 - 2 p) root apart eta / 2
            pull = -0.5 * (down * slopes[i, others] + up * slopes[j, others])
            linear = 0.5 * (1.0 - 2.0 * pair.share) * pair.root * (pair.apart @ pull) * eta
            linear[at + others] += pair.root * pull
            linear[to + others] -= pair.root * pull
            square = 0.25 * pair.root * (
                down * slopes[i, others] - up * slopes[j, others]
            ) @ pair.apart - pair.root**2 * (slopes[i, mass] + slopes[j, mass])
            added += np.outer(eta, linear) + np.outer(linear, eta) + square * np.outer(eta, eta)
        return added

    def path(self, step: FloatArray) -> Path:
        """The path of a step (P,) at its end."""
        family = self.family
        mass, others = _mass(family), _others(family)
        atoms, moves = family.split(self.theta)[0], family.split(step)[0]
        end, velocity, acceleration = self.theta + step, step.copy(), np.zeros_like(step)
        x, v, a = (family.split(part)[0] for part in (end, velocity, acceleration))
        for i, j in self.pairs:
            before = _Pair.of(atoms[[i, j], mass], atoms[i, others], atoms[j, others])
            p, apart = before.share, before.apart
            eta = moves[i, mass] - moves[j, mass]
            turn = before.root * (
                moves[i, others] - moves[j, others] + 0.5 * (1.0 - 2.0 * p) * eta * apart
            )
            psi = before.root * apart + turn
            drift = moves[j, others] + p * (moves[i, others] - moves[j, others])
            drift = drift + before.root**2 * eta * apart
            mean = before.mean + drift
            growth = moves[j, mass] + p * eta
            total = float(np.logaddexp(*atoms[[i, j], mass])) + growth
            split = float(np.clip(before.split + eta, -_STEEPEST, _STEEPEST))
            down, up = np.exp(-0.5 * split), np.exp(0.5 * split)
            x[i, mass] = total - np.logaddexp(0.0, -split)
            x[j, mass] = total - np.logaddexp(0.0, split)
            x[i, others], x[j, others] = mean + down * psi, mean - up * psi
            p = np.exp(-np.logaddexp(0.0, -split))
            v[i, mass], v[j, mass] = growth + (1.0 - p) * eta, growth - p * eta
            v[i, others] = drift + down * (turn - 0.5 * eta * psi)
            v[j, others] = drift - up * (turn + 0.5 * eta * psi)
            a[i, mass] = a[j, mass] = -p * (1.0 - p) * eta**2
            a[i, others] = down * (0.25 * eta**2 * psi - eta * turn)
            a[j, others] = -up * (0.25 * eta**2 * psi + eta * turn)
        return Path(family.pin(end), family.pin(velocity), family.pin(acceleration))
