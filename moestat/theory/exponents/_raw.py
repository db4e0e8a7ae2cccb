"""Cells of several atoms where second derivatives at one atom do not decide: searches.

A gate that is not normalised has no masses to share.  Copies of a true atom add up to it where its
gate is constant, ``sigma(c_1) + ... = sigma(c)``, or through the expert, of which each copy has a
part; elsewhere no measure of more atoms has the truth's function.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from time import monotonic

import numpy as np

from moestat.base.types import FloatArray
from moestat.metrics.losses import BlockTerm, VoronoiLoss
from moestat.model.family import Family
from moestat.theory.explorer._explore import explore
from moestat.theory.exponents._point import Parameter, Point
from moestat.theory.exponents._search import Configuration, Ladder, climb_down
from moestat.theory.exponents._series import fixed
from moestat.theory.exponents._work import (
    FREE,
    NONE,
    OPEN,
    SEARCHED,
    Rate,
    Work,
    exponent_of,
    search_point,
    with_sizes,
    zero_at,
)

__all__ = ["explored_cells", "raw_cells"]

_LADDER = (2e-1, 5e-2, 1.2e-2, 3e-3)
_SEEDS = (0, 1, 2)
_GATE_SEEDS = 4
_EXPLORER = 40.0
"""Seconds that the explorer needs for one cell of a function with corners."""


def _is_flat(point: Point, j: int) -> bool:
    """Whether the gate of a true atom is constant."""
    family = point.family
    blocks = {c.intercept for c in family.gate.channels(family.n_features)} | {
        name
        for c in family.gate.channels(family.n_features)
        for name in (c.slope, c.products)
        if name is not None
    }
    flat = [p for p in point.parameters if p.atom == j and p.block in blocks - {family.gate.mass}]
    return all(point.theta[p.position] == 0.0 for p in flat)


def raw_cells(work: Work, size: int, blocks: Sequence[str]) -> None:
    """Exponents in cells of so many atoms under a gate without normalisation."""
    found, family = work.found, work.family
    cell = str(size)
    point = found.point
    assert point is not None
    shared = [name for name in family.expert.symmetry.linear_in if name in family.blocks]
    scaled = [name for name in family.expert.symmetry.positive_in if name in family.blocks]
    split = shared or scaled
    for block in blocks:
        if block == family.gate.mass:
            reason = "copies share the gate's constant in infinitely many ways"
            found.rows.append(Rate(block, cell, math.inf, FREE, reason))
        elif block in split:
            reason = "copies of an atom add up whatever their parts of " + ", ".join(split)
            found.rows.append(Rate(block, cell, math.inf, FREE, reason))
    rest = [block for block in blocks if block != family.gate.mass and block not in split]
    flat = [j for j in range(family.n_experts) if _is_flat(point, j)]
    if not flat and not split:
        reason = "no gate of the truth is constant, and no expert is a sum of two"
        found.rows += [Rate(b, cell, math.nan, NONE, reason) for b in rest]
        return
    if flat and not split and not work.corners:
        _by_gates(work, size, flat, rest)
        return
    if work.corners or not split:
        explored_cells(work, size, rest)
        return
    for at, block in enumerate(rest):
        best: Ladder | None = None
        until = monotonic() + (work.until - monotonic()) / (len(rest) - at)
        for j in flat or range(family.n_experts):
            one = _search(work, size, j, block, bool(split), until)
            if one is not None and (best is None or _zero_first(one) > _zero_first(best)):
                best = one
        if best is None:
            found.rows.append(_copies(block, cell, "no time to search"))
            continue
        found.ladders.append((cell, block, best))
        if zero_at(best):
            found.rows.append(Rate(block, cell, math.inf, FREE, zero_at(best)))
            continue
        slopes = best.slopes
        if len(slopes) < 2 or not 0.9 < slopes[-1] < 20.0 or abs(slopes[-1] - slopes[-2]) > 0.5:
            told = ", ".join(f"{v:.2f}" for v in slopes)
            why = f"the search did not settle: local exponents {told}"
            found.rows.append(_copies(block, cell, why))
            continue
        r, settled = exponent_of(best)
        rate = Rate(
            block,
            cell,
            r,
            SEARCHED,
            f"d ~ ε^{best.exponent:.3g} at 96 digits",
            at_least=not settled,
        )
        found.rows.append(with_sizes(rate, best, found))


def _copies(block: str, cell: str, why: str) -> Rate:
    """What opposite displacements of copies of one atom show without a search."""
    reason = f"opposite displacements of copies cancel to first order: d ~ ε^2 ({why})"
    return Rate(block, cell, 2.0, SEARCHED, reason, at_least=True)


def _by_gates(work: Work, size: int, flat: Sequence[int], blocks: Sequence[str]) -> None:
    """Exponents where copies share a constant gate: gates that add up to it to a high order.

    Their experts stay at the true one, so that the function changes by ``(sum of gates) g``; other
    sequences may be worse.  Blocks of the expert that do not move then have opposite displacements.
    """
    found = work.found
    cell = str(size)
    gates = frozenset(b for b in blocks if b in _gate_blocks(found.point))
    ladders = [ladder for j in flat for ladder in _gate_ladders(work, size, j, gates)]
    best = max(ladders, key=lambda one: one.exponent, default=None)
    powers = {} if best is None else {**best.powers(), best.pinned.block: 1.0}
    if best is not None:
        found.ladders.append((cell, best.pinned.block, best))
    for block in blocks:
        if best is None and block in gates:
            reason = "gates of two copies cancel to first order: d ~ ε^2; no search settled"
            found.rows.append(Rate(block, cell, 2.0, SEARCHED, reason, at_least=True))
        elif best is not None and block in gates and powers.get(block, 0.0) > 0.3:
            r = round(2.0 * best.exponent / powers[block]) / 2.0
            reason = (
                f"gates add up to a constant with d ~ ε^{best.exponent:.3g} in {best.pinned.name}"
            )
            rate = Rate(block, cell, r, SEARCHED, reason, at_least=True)
            found.rows.append(with_sizes(rate, best, found) if block == best.pinned.block else rate)
        else:
            reason = "opposite displacements of the experts: d ~ ε^2"
            found.rows.append(Rate(block, cell, 2.0, SEARCHED, reason, at_least=True))


def _gate_ladders(work: Work, size: int, j: int, gates: frozenset[str]) -> Iterator[Ladder]:
    """Ladders that settled, of gates of copies of atom j with each of two coordinates held."""
    cells = [j] * size + [i for i in range(work.family.n_experts) if i != j]
    few = search_point(work.found, cells)
    moving = gates | {str(work.family.gate.mass)}
    for p in [p for p in few.parameters if p.atom == j and p.block in gates][:2]:
        for seed in range(_GATE_SEEDS):
            if monotonic() > work.until:
                return
            work.report(f"gates that add up, {p.block} held, start {seed + 1}")
            start = partial(_gates_apart, few, cells, j, seed, p)
            one = climb_down(few, cells, start, (0, p), _LADDER, work.until, only=moving)
            if one is not None and len(one.slopes) > 1 and _is_settled(one):
                yield one


def _is_settled(ladder: Ladder) -> bool:
    """Whether the last two local exponents agree."""
    one, two = ladder.slopes[-2:]
    return 0.9 < two < 20.0 and abs(one - two) < 0.25


def _gate_blocks(point: Point | None) -> set[str]:
    """Blocks of the gate's channels."""
    assert point is not None
    family = point.family
    n_gate = len(family.gate.channels(family.n_features))
    return {p.block for p in point.parameters if p.channel < n_gate}


def _gates_apart(
    point: Point, cells: Sequence[int], j: int, seed: int, pinned: Parameter, h: float
) -> Configuration:
    """Copies with the true expert whose gates share the constant, one of them moved by h."""
    rng = np.random.default_rng(seed)
    size = cells.count(j)
    mass = point.family.gate.mass
    shares = 0.1 + (1.0 - 0.1 * size) * rng.dirichlet(np.ones(size))
    values, kept = [], set()
    chances: list[float] = []
    for i, cell in enumerate(cells):
        own = point.values.copy()
        if cell == j:
            for p in point.parameters:
                if p.atom == j and p.block == mass:
                    chance = float(shares[i]) / (1.0 + math.exp(-float(point.theta[p.position])))
                    chances.append(chance)
                    own[p.position] = fixed(math.log(chance / (1.0 - chance)))
                    kept.add(p.position)
        values.append(own)
    slopes = [c * (1.0 - c) for c in chances]
    values[0][pinned.position] = fixed(h)
    # The first derivatives of the gates cancel.
    for i in range(1, size):
        values[i][pinned.position] = fixed(-h * slopes[0] / slopes[i] / (size - 1))
    return Configuration(list(cells), values, [0] * len(cells), {}, frozenset(kept))


def _zero_first(ladder: Ladder) -> float:
    """The exponent of a ladder, inf where a distance is 0 in all digits."""
    return math.inf if zero_at(ladder) else ladder.exponent


def _search(work: Work, size: int, j: int, block: str, split: bool, until: float) -> Ladder | None:
    """The ladder with the largest exponent in a cell of atom j."""
    found = work.found
    cells = [j] * size + [i for i in range(found.family.n_experts) if i != j]
    few = search_point(found, cells)
    choices = [p for p in few.parameters if p.atom == j and p.block == block and p.movable]
    if not choices:
        return None
    best: Ladder | None = None
    for seed in _SEEDS:
        if monotonic() > until:
            break
        work.report(f"searching {block} in cells of {size}, start {seed + 1}")

        def start(h: float, seed: int = seed) -> Configuration:
            return _shared_out(few, cells, j, h, seed, choices[0].position, split)

        one = climb_down(few, cells, start, (0, choices[0]), _LADDER, until)
        if (
            one is not None
            and len(one.distances) > 1
            and (best is None or _zero_first(one) > _zero_first(best))
        ):
            best = one
    return best


def _shared_out(
    point: Point, cells: Sequence[int], j: int, h: float, seed: int, pinned: int, split: bool
) -> Configuration:
    """Copies that share atom j, by the gate's constant or by the expert, near their places."""
    rng = np.random.default_rng(seed)
    family = point.family
    mine = [i for i, cell in enumerate(cells) if cell == j]
    shares = 0.15 + (1.0 - 0.15 * len(mine)) * rng.dirichlet(np.ones(len(mine)))
    values = []
    kept: set[int] = set()
    symmetry = family.expert.symmetry
    parts = set(symmetry.linear_in or symmetry.positive_in) if split else set()
    for i, cell in enumerate(cells):
        own = point.values.copy()
        for p in point.parameters:
            if p.atom != cell or not p.movable or cell != j:
                continue
            old = float(point.theta[p.position])
            if p.block == family.gate.mass and not split:
                chance = shares[mine.index(i)] / (1.0 + math.exp(-old))
                own[p.position] = fixed(math.log(chance / (1.0 - chance)))
                kept.add(p.position)
            elif p.block in parts:
                own[p.position] = fixed(old * float(shares[mine.index(i)]))
                kept.add(p.position)
            else:
                own[p.position] += fixed(float(h * rng.normal()))
        values.append(own)
    values[0][pinned] = point.values[pinned] + fixed(h)
    return Configuration(list(cells), values, [0] * len(cells), {}, frozenset(kept))


def explored_cells(work: Work, size: int, blocks: Sequence[str]) -> None:
    """Exponents of functions with corners or jumps, by the explorer in float64.

    The explorer pins one deviation of all; its exponent is that of the worst block, so that each
    block's is no larger as far as the search went.
    """
    found, family = work.found, work.family
    cell = str(size)
    if work.until - monotonic() < _EXPLORER:
        _opposite(work, cell, blocks, f"for the explorer give {2 * _EXPLORER:g} seconds or more")
        return
    work.report(f"the explorer, cells of {size}: functions with corners or jumps")
    sizes = [
        tuple(size if i == j else 1 for i in range(family.n_experts))
        for j in range(family.n_experts)
    ]
    fitted = family.with_experts(family.n_experts + size - 1)

    radii = np.geomspace(0.3, 3e-3, 5).tolist() if not family.gate.normalised else [1e-2, 2e-3]

    def progress(text: str) -> None:
        work.report(text)
        if monotonic() > work.until:
            raise TimeoutError

    try:
        result = explore(
            fitted,
            family,
            found.theta,
            deviations(family, found.theta),
            radii,
            design=found.design,
            starts=1,
            cells=sizes if family.gate.normalised else None,
            progress=progress,
        )
    except (TimeoutError, ValueError) as error:
        _opposite(work, cell, blocks, str(error) or "the explorer ran out of time")
        return
    r = result.exponent
    reason = f"explorer in float64, worst of all blocks: {result.worst_direction}"
    for block in blocks:
        named = f"{block}, cell of {size}"
        power = result.powers.get(named)
        if not result.rungs or math.isnan(r):
            found.rows.append(Rate(block, cell, math.nan, OPEN, "no measure found"))
        elif math.isinf(r):
            found.rows.append(Rate(block, cell, r, SEARCHED, reason))
        else:
            own = r if power is None or power < 0.5 else r / power
            found.rows.append(Rate(block, cell, round(own, 2), SEARCHED, reason, at_least=True))


def _opposite(work: Work, cell: str, blocks: Sequence[str], why: str) -> None:
    """What opposite displacements show without a search, where copies share a true atom."""
    found, family = work.found, work.family
    shares = family.gate.normalised and family.gate.mass is not None and not family.has_jumps
    for block in blocks:
        if not shares:
            found.rows.append(Rate(block, cell, math.nan, OPEN, why))
            continue
        moves_corner = block == family.gate.kink or family.has_kinked_mean
        r, power = (1.5, "3/2, at a corner that moves") if moves_corner else (2.0, "2")
        reason = f"opposite displacements: d ~ ε^{power} ({why})"
        found.rows.append(Rate(block, cell, r, SEARCHED, reason, at_least=True))


def deviations(family: Family, theta: FloatArray) -> VoronoiLoss:
    """The sum of the deviations of all blocks, exponent 1 in every cell.

    Under a raw gate the block of the masses enters in cells of one atom only: several share it, as
    in the losses of Yan et al. (2025).
    """
    blocks = family.measure(theta).atoms
    raw = family.gate.mass
    return VoronoiLoss(
        name="deviations",
        terms=tuple(
            BlockTerm(
                name,
                vector_axes=min(block.ndim - 1, 1),
                summed_axes=max(block.ndim - 2, 0),
                in_cells=name != raw,
                exact_only=name == raw,
            )
            for name, block in blocks.items()
        ),
        exact_exponent=1.0,
        over_exponent=1.0,
        translated=tuple(name for name in family.gate.translations if name in blocks),
        source="the sum of all deviations",
    )
