"""From derivatives and searches to an exponent for each block and kind of cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic

from moestat.base.types import FloatArray
from moestat.model.designs import Design
from moestat.model.family import Family
from moestat.theory.exponents._cells import first_order
from moestat.theory.exponents._family import (
    blocks_of,
    has_corners,
    linear_blocks,
    no_cells,
    rows_needed,
)
from moestat.theory.exponents._jumps import find_jumps
from moestat.theory.exponents._point import Point, draw_samples
from moestat.theory.exponents._raw import explored_cells, raw_cells
from moestat.theory.exponents._several import inherit, mass_row, one_cell, pairs, worst
from moestat.theory.exponents._single import cells_of_one
from moestat.theory.exponents._work import FREE, NONE, OPEN, Analysis, Rate, Work

__all__ = ["analyse"]


def analyse(
    family: Family,
    theta: FloatArray,
    n_experts: int,
    design: Design,
    seconds: float,
    report: Callable[[str], None],
) -> Analysis:
    """All exponents at a truth.

    Parameters
    ----------
    family : Family
        The family of the truth.
    theta : ndarray of shape (P,)
        The truth, pinned.
    n_experts : int
        Fitted atoms.
    design : Design
        Distribution of the inputs.
    seconds : float
        When searches end.
    report : callable
        Called with lines of progress.
    """
    found = Analysis(family, theta, n_experts, design)
    work = Work(found, monotonic() + seconds, report, has_corners(family, theta, design))
    n = rows_needed(family)
    report(f"derivatives at {n} samples in 96 digits")
    found.point = Point(family, theta, draw_samples(family, theta, design, n))
    jumps = find_jumps(family, theta, design, found.point)
    found.first = first_order(found.point, jumps)
    if not found.first.relations.clear:
        found.notes.append("Ranks are not clear in 96 digits: the inputs hardly vary.")
    cells_of_one(work, jumps)
    if found.first.jumps:
        moving = ", ".join(sorted({name for jump in found.first.jumps for name in jump.blocks}))
        found.notes.append(
            f"Borders between active experts move with {moving}: along such directions the distance"
            " is of the order of the root of the deviation, r = 1/2, faster than what the rows say."
        )
    for size in range(2, found.size + 1):
        _cells_of_several(work, size)
    if found.size > 2 and family.n_experts > 1:
        pairs(work)
    return found


def _cells_of_several(work: Work, size: int) -> None:
    """Cells of so many atoms, each true atom's in turn; the worst of them is the answer."""
    found, family = work.found, work.family
    blocks, cell = blocks_of(family), str(size)
    reason = no_cells(family, found.n_experts)
    if reason:
        copied = found.n_experts == size * family.n_experts
        if copied:
            reason += " but by copying all equally often, which is not looked at"
        status = OPEN if copied else NONE
        found.rows += [Rate(block, cell, math.nan, status, reason) for block in blocks]
        return
    shared = {p.block for p in found.point.parameters if p.atom < 0} if found.point else set()
    blocks = [block for block in blocks if block not in shared]
    if not family.gate.normalised:
        raw_cells(work, size, blocks)
        inherit(found, cell)
        return
    if family.has_jumps or work.corners:
        explored_cells(work, size, blocks)
        inherit(found, cell)
        return
    if family.is_regression:
        linear = linear_blocks(family)
        reason = "copies under one gate have any means that average to the true one"
        named = [block for block in blocks if block in linear]
        found.rows += [Rate(block, cell, math.inf, FREE, reason) for block in named]
        blocks = [block for block in blocks if block not in linear]
    rows: dict[str, list[Rate]] = {block: [] for block in blocks}
    for j in range(family.n_experts):
        for block, rate in one_cell(work, size, j, blocks).items():
            rows[block].append(rate)
    mass_row(work, cell, [rate for each in rows.values() for rate in each])
    for block in blocks:
        found.rows.append(worst(rows[block]))
    inherit(found, cell)
