"""Cells of several atoms of a gate with masses: from feasibility and searches to a status."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

import numpy as np

from moestat.base.types import FloatArray
from moestat.theory.exponents._cells import Moments
from moestat.theory.exponents._family import are_distinct, blocks_of, heat_block, heat_text
from moestat.theory.exponents._feasible import factor, moments_of, relation_of
from moestat.theory.exponents._orders import search, sizes_by_search
from moestat.theory.exponents._search import Ladder
from moestat.theory.exponents._work import (
    CERTIFIED,
    FREE,
    LADDER,
    PROVED,
    SEARCHED,
    Analysis,
    Rate,
    Work,
    exponent_of,
    inexactness,
    with_sizes,
    zero_at,
)

_NO_CANCELLATION = "no displacements cancel to second order (witness: a positive definite matrix)"

__all__ = ["inherit", "mass_row", "one_cell", "pairs", "worst"]


def one_cell(work: Work, size: int, j: int, blocks: Sequence[str]) -> dict[str, Rate]:
    """The exponents in a cell of true atom j."""
    moments = moments_of(work, (j,))
    if moments.witness((j,)) is not None:
        rates = {b: Rate(b, str(size), 2.0, CERTIFIED, _NO_CANCELLATION) for b in blocks}
        sizes_by_search(work, size, j, rates)
        return rates
    if moments.cancelling(None, size, (j,)) is None:
        reason = "no displacements of so few atoms cancel to second order (searched over ranks)"
        return {b: Rate(b, str(size), 2.0, SEARCHED, reason) for b in blocks}
    ways = {b: M for b in blocks if (M := moments.cancelling(b, size, (j,))) is not None}
    rates: dict[str, Rate] = {}
    ladders: list[Ladder] = []
    for block, M in ways.items():
        rates[block], ladder = _along(work, size, j, block, moments, M)
        ladders += [] if ladder is None else [ladder]
    heat = heat_block(work.family)
    for block in blocks:
        if block in rates:
            continue
        if heat in rates and block == work.family.likelihood.channels[-1].intercept:
            rates[block] = _beside_heat(work, size, block, heat, rates[heat].n_seen)
        else:
            rates[block] = _beside(work, size, j, block, ladders, len(ladders) < len(ways))
    return rates


def _cells(work: Work, size: int, j: int) -> list[int]:
    """True atom of each fitted one: `size` of atom j, one of each other."""
    return [j] * size + [i for i in range(work.family.n_experts) if i != j]


def _along(
    work: Work, size: int, j: int, block: str, moments: Moments, M: FloatArray
) -> tuple[Rate, Ladder | None]:
    """The exponent of a block along displacements that cancel, and the ladder that shows it."""
    found, cell = work.found, str(size)
    text = relation_of(moments, M)
    heat = block == heat_block(found.family)
    ladder = search(work, _cells(work, size, j), j, block, {j: factor(moments, M, j)}, heat)
    if ladder is not None:
        found.ladders.append((cell, block, ladder))
        if zero_at(ladder):
            return Rate(block, cell, math.inf, FREE, f"{text}, and {zero_at(ladder)}"), None
    if heat:
        matched = f"{size} normal distributions match {2 * size - 1} moments of one"
        reason = f"{heat_text(found.family, block)}: {matched}"
        more = not are_distinct(found.family, found.theta)
        rate = Rate(block, cell, 2.0 * size, PROVED, reason, at_least=more)
    elif ladder is None:
        reason = f"{text}: two opposite displacements reach ε^4"
        rate = Rate(block, cell, 4.0, PROVED, reason, at_least=True)
    else:
        r, settled = exponent_of(ladder)
        reason = f"{text}; d ~ ε^{ladder.exponent:.3g} at 96 digits"
        more = not settled or r < 4.0
        rate = Rate(block, cell, max(r, 4.0), SEARCHED, reason, at_least=more)
    return rate if ladder is None else with_sizes(rate, ladder, work.found), ladder


def _beside_heat(work: Work, size: int, block: str, heat: str, n_seen: float) -> Rate:
    """The exponent of the variances, which move with the square of the intercepts."""
    found = work.found
    reason = f"{heat_text(found.family, heat)}: it moves with the square of {heat}"
    more = not are_distinct(found.family, found.theta)
    r = max(2.0, float(size))
    return Rate(block, str(size), r, PROVED, reason, at_least=more, n_seen=n_seen)


def _beside(
    work: Work, size: int, j: int, block: str, ladders: Sequence[Ladder], unsure: bool
) -> Rate:
    """The exponent of a block that no relation holds: opposite displacements, or on other ways."""
    ladder = search(work, _cells(work, size, j), j, block, None, False)
    r, how = 2.0, "opposite displacements"
    for other in ladders:
        power = other.powers().get(block)
        value = _quotient(other, power) if power and exponent_of(other)[1] else None
        if value is not None and value > r:
            r, how = value, f"on the way of {other.pinned.block}"
    if ladder is not None:
        work.found.ladders.append((str(size), block, ladder))
        own, _ = exponent_of(ladder)
        if own > r:
            r, how = own, "searched with this block held"
    reason = f"no relation holds its square; {how}: d ~ ε^{r:g}"
    rate = Rate(block, str(size), r, SEARCHED, reason, at_least=ladder is None or unsure)
    return rate if ladder is None else with_sizes(rate, ladder, work.found)


def pairs(work: Work) -> None:
    """Two cells of two atoms at once, whose displacements may cancel together."""
    found, family = work.found, work.family
    if not family.gate.normalised or family.gate.mass is None:
        return
    if family.has_jumps or work.corners:
        return
    shared = {p.block for p in found.point.parameters if p.atom < 0} if found.point else set()
    blocks = [block for block in blocks_of(family) if block not in shared]
    rows: dict[str, list[Rate]] = {block: [] for block in blocks}
    for i in range(family.n_experts):
        for j in range(i + 1, family.n_experts):
            moments = moments_of(work, (i, j))
            if moments.witness((i, j)) is not None:
                reason = _NO_CANCELLATION
                for block in blocks:
                    rows[block].append(Rate(block, "2, 2", 2.0, CERTIFIED, reason))
                continue
            for block in blocks:
                rows[block].append(_pair(work, moments, i, j, block))
    for block in blocks:
        if rows[block]:
            found.rows.append(worst(rows[block]))
    inherit(found, "2, 2")


def _pair(work: Work, moments: Moments, i: int, j: int, block: str) -> Rate:
    found = work.found
    M = moments.cancelling(block, 2, (i, j))
    if M is None:
        return Rate(
            block, "2, 2", 2.0, SEARCHED, "no relation holds its square (searched over ranks)"
        )
    text = f"{relation_of(moments, M)}: opposite displacements reach ε^4"
    heat = heat_block(found.family) == block
    if heat:
        reason, more = heat_text(found.family, block), not are_distinct(found.family, found.theta)
        return Rate(block, "2, 2", 4.0, PROVED, reason, at_least=more)
    cells = [i, i, j, j, *(k for k in range(found.family.n_experts) if k not in (i, j))]
    directions = {i: factor(moments, M, i), j: factor(moments, M, j)}
    lead = i if np.abs(directions[i]).max() >= np.abs(directions[j]).max() else j
    if monotonic() < work.until:
        ladder = search(work, cells, lead, block, directions, False, LADDER[:2], (0,))
        if ladder is not None and zero_at(ladder):
            reason = f"{relation_of(moments, M)}, and {zero_at(ladder)}"
            return Rate(block, "2, 2", math.inf, FREE, reason)
    return Rate(block, "2, 2", 4.0, PROVED, text, at_least=True)


def mass_row(work: Work, cell: str, rates: Sequence[Rate]) -> None:
    """The exponent of a cell's mass, which is of first order."""
    found = work.found
    if found.family.gate.mass is None:
        return
    if all(rate.status == CERTIFIED for rate in rates):
        reason = "masses and means of cells are of first order beside the witness"
        found.rows.append(Rate("mass", cell, 1.0, CERTIFIED, reason))
        return
    r = 1.0
    for at, _, ladder in found.ladders:
        for name, power in ladder.powers().items():
            if at == cell and name.endswith("cell of one") and exponent_of(ladder)[1]:
                value = _quotient(ladder, power) if power > 0.3 else None
                r = max(r, value or r)
    found.rows.append(
        Rate("mass", cell, r, SEARCHED, "cells of one move no more on the ways found")
    )


def worst(rates: Sequence[Rate]) -> Rate:
    """The slowest of the answers that cells of different true atoms have for a block.

    With the largest sample sizes of those that are as slow, unknown if one of them is.
    """
    slowest = max(rates, key=_badness)
    same = [rate for rate in rates if _badness(rate) == _badness(slowest)]
    n_for, n_seen = (float(np.max([getattr(r, n) for r in same])) for n in ("n_for", "n_seen"))
    return replace(slowest, n_for=n_for, n_seen=n_seen)


def _badness(rate: Rate) -> tuple[bool, float, bool]:
    return math.isnan(rate.r), rate.r, rate.at_least


def _quotient(ladder: Ladder, power: float) -> float | None:
    """Exponent over the power of a block as a fraction of halves or thirds; None far from any.

    Such numbers are a sixth or more apart, so that half of that must be above the inexactness.
    """
    value = ladder.exponent / power
    best = min(round(2.0 * value) / 2.0, round(3.0 * value) / 3.0, key=lambda one: abs(one - value))
    return best if abs(best - value) <= min(value * inexactness(ladder), 1.0 / 12.0) else None


def inherit(found: Analysis, cell: str) -> None:
    """A block is in larger cells at least as slow as in cells of one, and undecided where it is."""
    alone = {row.block: row for row in found.rows if row.cell == "1" and not row.r <= 1.0}
    for at, row in enumerate(found.rows):
        one = alone.get(row.block)
        if row.cell != cell or one is None or math.isinf(row.r) or row.r >= one.r:
            continue
        found.rows[at] = replace(one, cell=cell, reason="as in cells of one")
