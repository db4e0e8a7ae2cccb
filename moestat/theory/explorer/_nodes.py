"""The nodes over x and y at which a distance is taken: fixed, for measures near one truth.

With one uniform input the interval is cut where the truth is not smooth: where its active atoms
change, where a channel of a rectified function vanishes, at a kink of the gate.  Towards a kink
that moves with a parameter, panels shrink by factors, so that what happens within a small
deviation of it is seen at every scale.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from moestat.base.types import FloatArray, IntArray
from moestat.metrics.quadrature import known_responses, response_rules
from moestat.model.designs import Design, Uniform
from moestat.model.family import Family

_GRADES = 4.0 ** -np.arange(1, 10)
_GRADED_ORDER = 5
_SCAN = 2048
_BISECTIONS = 50
_BENT = {"relu", "norm"}


@dataclass(frozen=True)
class Nodes:
    """Rows (x, y) with weights: X is (d, n), y (n,) encoded, a placeholder without a likelihood."""

    X: FloatArray
    y: FloatArray | IntArray
    weight: FloatArray
    """Weight (n,) over the response, given x; 1 without a likelihood."""
    owner: IntArray
    """Input (n,) that each row belongs to."""
    mass: FloatArray
    """Weight (m,) of each input, summing to 1."""


def make_nodes(family: Family, theta: FloatArray, design: Design, order: int) -> Nodes:
    """Nodes for measures near the truth `theta`, with `order` nodes per input and panel."""
    X, mass = _inputs(family, theta, design, order)
    n = mass.size
    if family.likelihood.block is None:
        return Nodes(X, family.placeholder(n), np.ones(n), np.arange(n), mass)
    parts = []
    for chunk, rule in response_rules([(family, theta)], X):
        owner = np.repeat(rule.owner + chunk.start, rule.y.shape[1])
        parts.append((owner, known_responses(family, rule), rule.weight.ravel()))
    owner, y, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Nodes(np.ascontiguousarray(X[:, owner]), y, weight, owner, mass)


def _inputs(
    family: Family, theta: FloatArray, design: Design, order: int
) -> tuple[FloatArray, FloatArray]:
    """Inputs (d, m) and their weights (m,)."""
    if not isinstance(design, Uniform) or family.n_features > 1:
        return design.quadrature(family.n_features, order)
    low, high = design.low, design.high
    moving = _kinks(family, theta, low, high)
    bends = np.concatenate([_bends(family, theta, design), moving, [low, high]])
    edges = np.unique(np.clip(bends, low, high))
    panels = [(a, b, order) for a, b in itertools.pairwise(edges)]
    for kink in moving:
        panels = [piece for panel in panels for piece in _graded(panel, kink)]
    rules = []
    for a, b, count in panels:
        nodes, weights = Uniform(a, b).quadrature(1, count)
        rules.append((nodes[0], weights * (b - a) / (high - low)))
    x, mass = (np.concatenate(column) for column in zip(*rules, strict=True))
    return x[None], mass


def _graded(panel: tuple[float, float, int], kink: float) -> list[tuple[float, float, int]]:
    a, b, order = panel
    if kink not in (a, b):
        return [panel]
    cuts = a + (b - a) * _GRADES[::-1] if kink == a else b - (b - a) * _GRADES
    edges = [a, *cuts, b]
    widest = len(_GRADES) if kink == a else 0
    return [
        (edges[i], edges[i + 1], order if i == widest else _GRADED_ORDER)
        for i in range(len(edges) - 1)
    ]


def _kinks(family: Family, theta: FloatArray, low: float, high: float) -> FloatArray:
    """Places inside the interval where the gate has a kink that moves with a parameter."""
    if family.gate.kink is None:
        return np.empty(0)
    at = np.unique(theta[family.blocks[family.gate.kink]])
    return at[(at > low) & (at < high)]


def _bends(family: Family, theta: FloatArray, design: Uniform) -> FloatArray:
    """Places where the active atoms change, or a channel of a bent function changes its sign."""
    grid = np.linspace(design.low, design.high, _SCAN + 1)
    tests = []
    if family.has_jumps:
        tests.append(lambda x: family.gate_probabilities(theta, x) > 0.0)
    options = {*family.gate.options.values(), *family.expert.options.values()}
    if any(isinstance(option, str) and option in _BENT for option in options):
        tests.append(lambda x: _channels(family, theta, x) > 0.0)
    places = [np.empty(0)]
    for signs in tests:
        before = signs(grid)
        at = np.flatnonzero(np.any(before[1:] != before[:-1], axis=1))
        low, high = grid[at], grid[at + 1]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            same = np.all(signs(middle) == before[at], axis=1)
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        places.append(0.5 * (low + high))
    return np.concatenate(places).astype(np.float64)


def _channels(family: Family, theta: FloatArray, x: FloatArray) -> FloatArray:
    """All channels (n, k C) of the atoms that vary with one input."""
    first = theta[family.index]
    rows = [
        np.polynomial.polynomial.polyval(x, [first[i, c], theta[family.index[i, c] + 1]])
        for i in range(family.n_experts)
        for c in range(len(family.channels))
        if family.width[c] > 1
    ]
    return np.stack(rows, axis=1).astype(np.float64)
