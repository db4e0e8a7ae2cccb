"""Exceptional truths: sets near a truth on which the exponents differ.

A set is given by equations between the true atoms' parameters: slopes that are equal, opposite, 0
or integer multiples of each other, and experts that are the other atoms' gates.  The truth is
moved to the nearest point of each, and what derivatives say there is compared with what they say at
the truth itself.  Sets that are not in the list are not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from time import monotonic

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.theory.exponents._cells import first_order, second_order
from moestat.theory.exponents._family import blocks_of, has_corners, no_cells, rows_needed
from moestat.theory.exponents._jumps import find_jumps
from moestat.theory.exponents._point import Point, draw_samples

__all__ = ["Stratum", "nearest_stratum", "strata_near"]

_RATIOS = (2.0, 3.0)


@dataclass(frozen=True)
class Stratum:
    """A set of truths on which exponents differ from those at a truth near it."""

    name: str
    """Its equations."""
    distance: float
    """Euclidean distance of the truth to it, in the blocks."""
    changes: tuple[str, ...]
    """Each block and kind of cell with its exponent off the set and on it."""
    truth: FloatArray = field(repr=False)
    """The nearest point (P,) of the set."""

    def __str__(self) -> str:
        return f"{self.name} (at distance {self.distance:.2g}): {'; '.join(self.changes)}"


Exponents = dict[tuple[str, str], str]
"""Block and kind of cell -> what derivatives say."""


def strata_near(
    family: Family, theta: FloatArray, design: Design, until: float
) -> Iterator[Stratum]:
    """The sets near a truth (P,), nearest first, until a time of `time.monotonic`."""
    compared = _compared(family, theta, design, until)
    return (stratum for _, stratum in compared if stratum is not None)


def nearest_stratum(
    family: Family, theta: FloatArray, design: Design, until: float
) -> tuple[Stratum | None, float]:
    """The nearest set, and the distance up to which the list was looked at."""
    looked = 0.0
    for distance, stratum in _compared(family, theta, design, until):
        if stratum is not None:
            return stratum, distance
        looked = distance
    return None, looked


def _compared(
    family: Family, theta: FloatArray, design: Design, until: float
) -> Iterator[tuple[float, Stratum | None]]:
    """The distance of each set of the list in turn, with the set if the answer differs on it."""
    if monotonic() > until:
        return
    own = exponents_by_derivatives(family, theta, design)
    candidates = [
        (float(np.linalg.norm(moved - theta)), name, moved)
        for name, moved in _candidates(family, theta)
    ]
    for distance, name, moved in sorted(candidates, key=lambda each: each[0]):
        if monotonic() > until:
            return
        if distance == 0.0:
            continue
        there = exponents_by_derivatives(family, moved, design)
        changes = tuple(
            f"{block} ({cell}): {own[block, cell]} off it, {value} on it"
            for (block, cell), value in there.items()
            if own.get((block, cell), value) != value
        )
        yield distance, Stratum(name, distance, changes, moved) if changes else None


def exponents_by_derivatives(family: Family, theta: FloatArray, design: Design) -> Exponents:
    """What first and second derivatives alone say of cells of one, two, and two cells of two.

    Parameters
    ----------
    family, theta, design
        As `moestat.theory.rates` takes them.
    """
    point = Point(family, theta, draw_samples(family, theta, design, rows_needed(family)))
    first = first_order(point, find_jumps(family, theta, design, point))
    free = set().union(*first.blocks) if first.blocks else set()
    blocks = blocks_of(family)
    found: Exponents = {
        (b, "1"): "not seen to first order" if b in free else "r = 1" for b in blocks
    }
    over = not no_cells(family, family.n_experts + 1) and family.gate.normalised
    if not over or family.has_jumps or has_corners(family, theta, design):
        return found
    shared = {p.block for p in point.parameters if p.atom < 0}
    own = [block for block in blocks if block not in shared]
    cells = [((j,), "2") for j in range(family.n_experts)]
    cells += [
        ((i, j), "2, 2") for i in range(family.n_experts) for j in range(i + 1, family.n_experts)
    ]
    for atoms, cell in cells:
        moments = second_order(point, first, atoms)
        certified = moments.witness(atoms) is not None
        for block in own:
            worse = not certified and moments.cancelling(block, 2, atoms) is not None
            if worse or (block, cell) not in found:
                found[block, cell] = "r >= 4" if worse else "r = 2"
    return found


def _slopes(family: Family) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Intercept and slope blocks of the gate's and of the expert's channels that see x."""
    n_gate = len(family.gate.channels(family.n_features))

    def of(channels: tuple) -> list[tuple[str, str]]:  # type: ignore[type-arg]
        return list(dict.fromkeys((c.intercept, c.slope) for c in channels if c.slope is not None))

    expert = family.channels[n_gate : n_gate + family.layout[2]]
    return of(family.channels[:n_gate]), of(expert)


def _candidates(family: Family, theta: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Equations and the nearest point at which they hold."""
    gates, experts = _slopes(family)
    k = family.n_experts
    free = family.lower < family.upper
    rows = lambda name: [np.ravel(family.blocks[name][i]) for i in range(k)]  # noqa: E731
    for what, pairs in (("gate", gates), ("expert", experts)):
        for _, slope in pairs:
            at = rows(slope)
            for i in range(k):
                if free[at[i]].all():
                    yield f"{slope}[{i + 1}] = 0", _set(theta, at[i], np.zeros(at[i].size))
            for i, j in permutations(range(k), 2):
                if not (free[at[i]].all() and free[at[j]].all()):
                    continue
                for ratio in (1.0, *_RATIOS):
                    if ratio == 1.0 and i > j:
                        continue
                    for sign in (1.0, -1.0):
                        c = sign * ratio
                        t = (c * theta[at[i]] + theta[at[j]]) / (1.0 + c * c)
                        moved = _set(_set(theta, at[i], c * t), at[j], t)
                        text = "" if c == 1.0 else ("-" if c == -1.0 else f"{c:g} ")
                        yield f"{slope}[{i + 1}] = {text}{slope}[{j + 1}] ({what})", moved
    for intercept, slope in gates:
        if intercept != family.gate.mass:
            yield from _alike(family, theta, intercept, slope)
    if k != 2:
        return
    yield from _resonant(family, theta, gates, experts)
    for gate_intercept, gate_slope in gates:
        for expert_intercept, expert_slope in experts:
            if gate_intercept == family.gate.mass:
                continue
            yield from _swapped(
                family, theta, (gate_intercept, gate_slope), (expert_intercept, expert_slope)
            )


def _alike(
    family: Family, theta: FloatArray, intercept: str, slope: str
) -> Iterator[tuple[str, FloatArray]]:
    """Gates of two atoms that are equal or opposite, slope and intercept."""
    for i in range(family.n_experts):
        for j in range(i + 1, family.n_experts):
            for sign, text in ((1.0, ""), (-1.0, "-")):
                moved = theta
                for name in (intercept, slope):
                    a, b = (np.ravel(family.blocks[name][at]) for at in (i, j))
                    middle = 0.5 * (theta[a] + sign * theta[b])
                    moved = _set(_set(moved, a, middle), b, sign * middle)
                names = f"{intercept}, {slope}"
                yield f"({names})[{i + 1}] = {text}({names})[{j + 1}]", moved


def _resonant(
    family: Family,
    theta: FloatArray,
    gates: list[tuple[str, str]],
    experts: list[tuple[str, str]],
) -> Iterator[tuple[str, FloatArray]]:
    """Gate slopes with an integer ratio, opposite experts, all intercepts 0."""
    for gate_intercept, gate in gates:
        for expert_intercept, expert in experts:
            if gate_intercept == family.gate.mass:
                continue
            start = theta
            for name in (gate_intercept, expert_intercept):
                for i in range(2):
                    at = np.ravel(family.blocks[name][i])
                    start = _set(start, at, np.zeros(at.size))
            a, b = (np.ravel(family.blocks[expert][i]) for i in range(2))
            middle = 0.5 * (theta[a] - theta[b])
            start = _set(_set(start, a, middle), b, -middle)
            one, two = (np.ravel(family.blocks[gate][i]) for i in range(2))
            for ratio in (1.0, *_RATIOS):
                for big, small in ((one, two), (two, one)):
                    t = (ratio * theta[big] + theta[small]) / (1.0 + ratio**2)
                    moved = _set(_set(start, big, ratio * t), small, t)
                    i = 1 if big is one else 2
                    text = f"{gate}[{i}] = {ratio:g} {gate}[{3 - i}], {expert}[1] = -{expert}[2]"
                    yield f"{text}, intercepts 0", moved


def _swapped(
    family: Family, theta: FloatArray, gate: tuple[str, str], expert: tuple[str, str]
) -> Iterator[tuple[str, FloatArray]]:
    """Experts that are the other atom's gate, up to one common sign."""
    for sign in (1.0, -1.0):
        moved = theta.copy()
        for one, two in zip(gate, expert, strict=True):
            for i in (0, 1):
                a, b = np.ravel(family.blocks[one][i]), np.ravel(family.blocks[two][1 - i])
                if a.size != b.size:
                    return
                middle = 0.5 * (theta[a] + sign * theta[b])
                moved = _set(_set(moved, a, middle), b, sign * middle)
        text = "" if sign > 0 else "-"
        yield f"{', '.join(expert)} = {text}({', '.join(gate)}) of the other atom", moved


def _set(theta: FloatArray, at: np.ndarray, values: FloatArray) -> FloatArray:
    moved = theta.copy()
    # Short decimals, so that equations hold exactly when floats are taken as they print.
    moved[at] = [float(f"{v:.6g}") for v in values]
    return moved
