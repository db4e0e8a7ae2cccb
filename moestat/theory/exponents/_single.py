"""Cells of one atom: first derivatives, their null space, and what happens along it."""

from __future__ import annotations

import math
from dataclasses import replace
from time import monotonic

import numpy as np

from moestat.base.types import FloatArray
from moestat.metrics.information import expected_information
from moestat.theory.exponents._cells import FirstOrder
from moestat.theory.exponents._family import blocks_of
from moestat.theory.exponents._jumps import Jump
from moestat.theory.exponents._point import Parameter, Point
from moestat.theory.exponents._search import Configuration, Ladder, climb_down, distance_at
from moestat.theory.exponents._series import fixed, to_floats
from moestat.theory.exponents._work import (
    CERTIFIED,
    FREE,
    LADDER,
    OPEN,
    PROVED,
    SEARCHED,
    ZERO_DISTANCE,
    Analysis,
    Rate,
    Work,
    exponent_of,
    search_point,
    zero_at,
)

__all__ = ["cells_of_one"]

Directions = list[tuple[Parameter | int, float]]
"""Coordinates and masses of a null vector, with its entries."""
_FOLLOWED = 10.0
"""Seconds that a null direction has in any case: whether a block is identified hangs on it."""


def cells_of_one(work: Work, jumps: list[Jump]) -> None:
    """Regular blocks, those that jump, and those that a relation leaves free."""
    found, family = work.found, work.family
    first, point = found.first, found.point
    assert first is not None
    assert point is not None
    touched: dict[str, list[int]] = {}
    for at, blocks in enumerate(first.blocks):
        for block in blocks:
            touched.setdefault(block, []).append(at)
    moved = _moving_only(first)
    regular = ["mass"] if family.gate.normalised and family.gate.mass is not None else []
    unseen = _borders_unseen(found, jumps)
    if unseen:
        found.notes.append(f"{unseen}: there r may be smaller than the rows say.")
    answers = [_along(work, at, unseen) for at in range(len(first.found))]
    least = first.relations.least
    for block in [*regular, *blocks_of(family)]:
        if block in touched:
            worst = max((answers[at] for at in touched[block]), key=lambda one: one.r)
            found.rows.append(replace(worst, block=block))
        elif block in moved:
            found.rows.append(Rate(block, "1", 0.5, PROVED, str(moved[block])))
        else:
            reason = f"first derivatives are independent (least pivot {least:.0e})"
            found.rows.append(Rate(block, "1", 1.0, CERTIFIED, reason))
    _sizes_of_one(found)


def _borders_unseen(found: Analysis, jumps: list[Jump]) -> str:
    """Why nothing is known of some borders; empty where all are known."""
    family = found.family
    if not family.has_jumps:
        return ""
    if family.n_features > 1:
        return "Borders between active experts are looked at with one input only"
    equal = [f"{jump.x:.3g}" for jump in jumps if not jump.is_seen]
    if equal:
        return f"The densities on both sides of the border at x = {', '.join(equal)} are equal"
    return ""


def _moving_only(first: FirstOrder) -> dict[str, Jump]:
    """Blocks of which no direction leaves all borders where they are, with one that they move.

    The other parameters are free: a block that can change while the borders stay is as slow as
    without jumps.
    """
    jumps = first.jumps
    if not jumps:
        return {}
    columns = [k for k, p in enumerate(first.parameters)]
    n = len(jumps)
    G = to_floats(np.stack([column[-n:] for column in first.columns], axis=1))
    _, s, vt = np.linalg.svd(G)
    rank = int(np.sum(s > 1e-9 * max(s[0], 1e-300)))
    still = vt[rank:]
    found = {}
    for name in {name for jump in jumps for name in jump.blocks}:
        own = [
            k
            for k in columns
            if name == ("mass" if isinstance(p := first.parameters[k], int) else p.block)
        ]
        if own and not np.any(np.abs(still[:, own]) > 1e-9):
            found[name] = next(jump for jump in jumps if name in jump.blocks)
    return found


def _along(work: Work, at: int, unseen: str) -> Rate:
    """What happens along a null vector of the first derivatives."""
    found = work.found
    first, point = found.first, found.point
    assert first is not None
    assert point is not None
    relation = str(first.found[at])
    vector = first.relations.null_space[:, at]
    if _declared(found, first, vector):
        return Rate("", "1", math.inf, FREE, f"{relation}, exactly, for every truth")
    if unseen:
        return Rate("", "1", math.nan, OPEN, f"{relation}; {unseen[0].lower()}{unseen[1:]}")
    if work.corners or found.family.has_jumps:
        if np.count_nonzero(vector) == 1 or found.family.has_jumps:
            return Rate("", "1", math.inf, FREE, f"{relation}: neither density nor border changes")
        return Rate("", "1", math.nan, OPEN, f"{relation}; the function has corners")
    work.report(f"the null direction {relation}")
    own = [(p, float(v)) for p, v in zip(first.parameters, vector, strict=True) if v]
    few = search_point(found, range(found.family.n_experts))
    ladder = _follow(work, own, few)
    if ladder is None:
        # Masses, and what all atoms share, move alone: nothing else needs to make up for them.
        if distance_at(few, _moved(few, own, LADDER[0])) < ZERO_DISTANCE:
            reason = f"{relation}, and d = 0 in all digits along it"
            return Rate("", "1", math.inf, FREE, reason)
        return Rate("", "1", math.nan, OPEN, relation)
    found.ladders.append(("1", ladder.pinned.block, ladder))
    if zero_at(ladder):
        return Rate("", "1", math.inf, FREE, f"{relation}, and {zero_at(ladder)}")
    r, settled = exponent_of(ladder)
    return Rate("", "1", r, SEARCHED, f"{relation}; d ~ ε^{r:g} along it", at_least=not settled)


def _declared(found: Analysis, first: FirstOrder, vector: FloatArray) -> bool:
    """Whether a null vector is the gate's declared common factor."""
    blocks = {
        p.block
        for p, v in zip(first.parameters, vector, strict=True)
        if v and not isinstance(p, int)
    }
    return bool(blocks) and blocks == set(found.family.gate.scaling)


def _follow(work: Work, own: Directions, few: Point) -> Ladder | None:
    """Distances along a null vector, all else free; None where it moves no atom or time is out."""
    moving = [(p, v) for p, v in own if isinstance(p, Parameter) and p.atom >= 0]
    if not moving:
        return None
    pin, size = max(moving, key=lambda each: abs(each[1]))
    cells = list(range(few.family.n_experts))
    until = max(work.until, monotonic() + _FOLLOWED)
    return climb_down(
        few, cells, lambda h: _moved(few, own, h / size), (pin.atom, pin), LADDER, until
    )


def _moved(few: Point, own: Directions, h: float) -> Configuration:
    """The atoms, moved so far along a null vector."""
    cells = list(range(few.family.n_experts))
    values = [few.values.copy() for _ in cells]
    masses: dict[int, int] = {}
    for p, v in own:
        step = fixed(h * v)
        if isinstance(p, int):
            masses[p] = step
        elif p.atom < 0:
            for each in values:
                each[p.position] += step
        else:
            values[p.atom][p.position] += step
    return Configuration(cells, values, [0] * len(cells), masses)


def _sizes_of_one(found: Analysis) -> None:
    """Sample sizes for an error of .1 in cells of one, from the information."""
    family = found.family
    noise = 1.0 if family.is_regression else None
    try:
        information = expected_information(family, found.theta, found.design, noise=noise)
    except ValueError:
        return
    free = np.flatnonzero(family.lower < family.upper)
    values, vectors = np.linalg.eigh(information[np.ix_(free, free)])
    keep = values > 1e-14 * values[-1]
    if not keep.any():
        return
    inverse = np.zeros(family.n_params)
    inverse[free] = np.sum(vectors[:, keep] ** 2 / values[keep], axis=1)
    mass = family.gate.mass
    for at, row in enumerate(found.rows):
        name = mass if row.block == "mass" else row.block
        if row.cell != "1" or row.r != 1.0 or name is None:
            continue
        n = float(np.max(inverse[np.ravel(family.blocks[name])])) / 0.01
        found.rows[at] = replace(row, n_for=n, n_seen=n)
