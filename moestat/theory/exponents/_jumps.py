"""Gates that leave experts out: parameters that move the border between active experts.

When a border moves by ε the densities differ by a fixed amount on inputs of mass ε, so that the
Hellinger distance and the L2 distance of regression functions are of the order ``ε^(1/2)``: r is
1/2, faster than any derivative would tell.  Where the densities on both sides are equal, as where
two lines cross, it is not; and finitely many inputs have no border.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.theory.exponents._point import Point
from moestat.theory.exponents._series import fixed
from moestat.theory.exponents._tapes import AtomCode, Group

__all__ = ["Jump", "find_jumps", "is_discrete"]

_GRID = 4001
"""Inputs at which active experts are compared: one that is active on less than a four-thousandth of
the range may be missed."""
_BESIDE = 1e-9
"""Distance from a border at which densities are those of its sides."""
_EQUAL = 1e-6
"""Densities on two sides differ by the order of `_BESIDE` where they are equal at the border."""


@dataclass(frozen=True)
class Jump:
    """A border between sets of active experts, at an input."""

    x: float
    leaves: int
    enters: int
    gradient: dict[int, float]
    """Position of a parameter -> derivative of the difference of the two log-scores."""
    blocks: tuple[str, ...]
    height: float
    """Largest relative difference of the densities, or functions, on its two sides."""

    @property
    def is_seen(self) -> bool:
        """Whether the densities on both sides differ."""
        return self.height > _EQUAL

    def __str__(self) -> str:
        return (
            f"the border of experts {self.leaves + 1} and {self.enters + 1} at x = {self.x:.3g}"
            " moves: d ~ ε^(1/2)"
        )

    def tape(self, point: Point, i: int, y: complex) -> Group:
        """What atom i computes at the border and a response."""
        eta, phi = _channels(point.family, point.theta, self.x, i)
        return point.code.groups(eta[:, None], phi[:, None], [y])[0]

    def told_by(self, point: Point) -> Any:
        """The encoded response, of those of the samples, that most tells the two sides apart."""
        y = np.unique(point.samples.y)
        return y[int(np.argmax(_sides(point, self.x, y)))]

    def changes(self, positions: list[int]) -> np.ndarray:
        """Derivative of the border's place, in fixed point, by each of some parameters."""
        return np.array([fixed(self.gradient.get(p, 0.0)) for p in positions], dtype=object)


def is_discrete(design: Design) -> bool:
    """Whether the inputs are finitely many: then a rule's nodes are they, however many are asked.

    A border between two of them can move and nothing changes.
    """
    few, more = (design.quadrature(1, n)[0].size for n in (4, 8))
    return few == more


def find_jumps(family: Family, theta: FloatArray, design: Design, point: Point) -> list[Jump]:
    """Borders of the active sets inside the inputs' range, of one input.

    Parameters
    ----------
    family, theta : Family and ndarray
        The truth.
    design : Design
        Distribution of the inputs.
    point : Point
        The truth in many digits.
    """
    if not family.has_jumps or family.n_features > 1 or is_discrete(design):
        return []
    X = design.quadrature(1, 64)[0]
    x = np.linspace(float(X.min()), float(X.max()), _GRID)
    active = family.gate_probabilities(theta, x[:, None]) > 0.0
    # At a tie more experts are active than the gate takes.
    alone = active.sum(axis=1) == active.sum(axis=1).min()
    x, active = x[alone], active[alone]
    found = []
    for at in np.flatnonzero(np.any(active[1:] != active[:-1], axis=1)):
        low, high = x[at], x[at + 1]
        for _ in range(60):
            middle = 0.5 * (low + high)
            same = np.array_equal(
                family.gate_probabilities(theta, np.array([[middle]]))[0] > 0.0, active[at]
            )
            low, high = (middle, high) if same else (low, middle)
        leaves = int(np.flatnonzero(active[at] & ~active[at + 1])[0])
        enters = int(np.flatnonzero(~active[at] & active[at + 1])[0])
        found.append(_jump(family, theta, point, 0.5 * (low + high), leaves, enters))
    return found


def _jump(
    family: Family, theta: FloatArray, point: Point, x: float, leaves: int, enters: int
) -> Jump:
    step = 1e-6
    gradient: dict[int, float] = {}
    code = point.code
    for p in [*point.parameters, *_masses(point)]:
        position = p if isinstance(p, int) else p.position
        changes = []
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[position] += sign * step
            changes.append(
                _score(family, code, moved, x, leaves) - _score(family, code, moved, x, enters)
            )
        change = (changes[0] - changes[1]) / (2.0 * step)
        if abs(change) > 1e-9:
            gradient[position] = change
    blocks = {
        name for name, at in family.blocks.items() if set(np.ravel(at).tolist()) & set(gradient)
    }
    mass = family.gate.mass
    named = tuple("mass" if name == mass else name for name in blocks)
    height = float(np.max(_sides(point, x, np.unique(point.samples.y))))
    return Jump(float(x), leaves, enters, gradient, named, height)


def _sides(point: Point, x: float, y: np.ndarray) -> FloatArray:
    """Relative difference (n,) of densities of responses on two sides of an input.

    Of functions, the difference itself.
    """
    family, theta = point.family, point.theta
    X = np.repeat([[x - _BESIDE], [x + _BESIDE]], y.size, axis=0)
    if family.is_regression:
        values = family.regression(theta, X)[0].reshape(2, -1)
        return np.abs(values[0] - values[1])
    decoded = family.likelihood.decode(np.concatenate([y, y]))
    logs = family.log_density(theta, X, decoded).reshape(2, -1)
    return np.abs(np.expm1(logs[0] - logs[1]))


def _masses(point: Point) -> list[int]:
    family = point.family
    mass = family.gate.mass
    return [] if mass is None else np.ravel(family.blocks[mass]).tolist()


def _score(family: Family, code: AtomCode, theta: FloatArray, x: float, i: int) -> float:
    """The log-score of an expert at an input, by its tape."""
    return code.log_weight(*_channels(family, theta, x, i))


def _channels(family: Family, theta: FloatArray, x: float, i: int) -> tuple[FloatArray, FloatArray]:
    """Channels (C,) of an expert at an input, and the features (2,)."""
    phi = np.array([1.0, x, x * x])
    eta = [
        float(
            theta[int(family.index[i, c])]
            + sum(
                theta[int(family.index[i, c]) + w] * phi[int(family.offset[c]) + w - 1]
                for w in range(1, int(family.width[c]))
            )
        )
        for c in range(len(family.channels))
    ]
    return np.array(eta), phi[:2]
