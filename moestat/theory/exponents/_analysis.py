"""From derivatives and searches to an exponent for each block and kind of cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from time import monotonic

import numpy as np

from moestat.base.types import FloatArray
from moestat.metrics.information import expected_information
from moestat.model.designs import Design, Uniform
from moestat.model.family import Family
from moestat.theory.explorer._nodes import _bends, _kinks
from moestat.theory.exponents._cells import (
    FirstOrder,
    Moments,
    first_order,
    second_order,
    write,
)
from moestat.theory.exponents._jumps import Jump, find_jumps
from moestat.theory.exponents._point import Parameter, Point, draw_samples
from moestat.theory.exponents._raw import explored_cells, raw_cells
from moestat.theory.exponents._search import (
    LEAST_SHARE,
    Configuration,
    Ladder,
    climb_down,
    spread,
)
from moestat.theory.exponents._series import fixed, to_floats
from moestat.theory.exponents._work import (
    CERTIFIED,
    FREE,
    LADDER,
    NONE,
    OPEN,
    PROVED,
    SEARCHED,
    SIZES,
    Analysis,
    Rate,
    Work,
    exponent_of,
    search_point,
    with_sizes,
    zero_at,
)

_NO_CANCELLATION = "no displacements cancel to second order (witness: a positive definite matrix)"

__all__ = ["analyse", "blocks_of", "has_corners", "no_cells", "rows_needed"]


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
    _cells_of_one(work, jumps)
    if jumps:
        moving = ", ".join(sorted({name for jump in jumps for name in jump.blocks}))
        found.notes.append(
            f"Borders between active experts move with {moving}: along such directions the distance"
            " is of the order of the root of the deviation, r = 1/2, faster than what the rows say."
        )
    for size in range(2, found.size + 1):
        _cells_of_several(work, size)
    if found.size > 2 and family.n_experts > 1:
        _pairs(work)
    return found


def rows_needed(family: Family) -> int:
    """Samples: half as many again as there are functions of second order in two cells."""
    p = family.n_atom_params + 1
    pairs = min(family.n_experts, 2)
    functions = family.n_params + pairs * p * (p + 1) // 2
    return int(1.4 * functions) + 12


def _are_distinct(found: Analysis) -> bool:
    """Whether no two experts of the truth are equal.

    The proof that normal cells of m atoms have no order above 2m needs it: the terms of two equal
    experts are one function, so that their cells mix.
    """
    family = found.family
    channels = range(family.first_expert_channel, len(family.channels))
    places = [
        np.concatenate([family.index[i, c] + np.arange(family.width[c]) for c in channels])
        for i in range(family.n_experts)
    ]
    return len({tuple(found.theta[each].tolist()) for each in places}) == family.n_experts


def has_corners(family: Family, theta: FloatArray, design: Design) -> bool:
    """Whether a corner of the gate or of a mean lies among the inputs."""
    if family.gate.kink is None and not family.has_kinked_mean:
        return False
    if family.n_features > 1:
        return True
    X = design.quadrature(1, 64)[0]
    low, high = float(X.min()), float(X.max())
    return bool(
        _kinks(family, theta, low, high).size or _bends(family, theta, Uniform(low, high)).size
    )


def blocks_of(family: Family) -> list[str]:
    """Blocks of parameters, in the order of the family, but for the masses."""
    mass = family.gate.mass if family.gate.normalised else None
    return [
        name
        for name, at in family.blocks.items()
        if name != mass and np.any(family.lower[np.ravel(at)] < family.upper[np.ravel(at)])
    ]


def _cells_of_one(work: Work, jumps: list[Jump]) -> None:
    """Regular blocks, those that jump, and those that a relation leaves free."""
    found, family = work.found, work.family
    first, point = found.first, found.point
    assert first is not None
    assert point is not None
    touched: dict[str, list[int]] = {}
    for at, blocks in enumerate(first.blocks):
        for block in blocks:
            touched.setdefault(block, []).append(at)
    moved = _moving_only(first, jumps)
    regular = ["mass"] if family.gate.normalised and family.gate.mass is not None else []
    answers = [_along(work, at) for at in range(len(first.found))]
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


def _moving_only(first: FirstOrder, jumps: list[Jump]) -> dict[str, Jump]:
    """Blocks of which no direction leaves all borders where they are, with one that they move.

    The other parameters are free: a block that can change while the borders stay is as slow as
    without jumps.
    """
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


def _along(work: Work, at: int) -> Rate:
    """What happens along a null vector of the first derivatives."""
    found = work.found
    first, point = found.first, found.point
    assert first is not None
    assert point is not None
    relation = str(first.found[at])
    vector = first.relations.null_space[:, at]
    if _declared(found, first, vector):
        return Rate("", "1", math.inf, FREE, f"{relation}, exactly, for every truth")
    if work.corners or found.family.has_jumps:
        if np.count_nonzero(vector) == 1 or found.family.has_jumps:
            return Rate("", "1", math.inf, FREE, f"{relation}: neither density nor border changes")
        return Rate("", "1", math.nan, OPEN, f"{relation}; the function has corners")
    work.report(f"the null direction {relation}")
    ladder = _follow(work, vector)
    if ladder is None:
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


def _follow(work: Work, vector: FloatArray) -> Ladder | None:
    """Distances along a null vector, all else free."""
    found = work.found
    first, point = found.first, found.point
    assert first is not None
    assert point is not None
    own = [(p, float(v)) for p, v in zip(first.parameters, vector, strict=True) if v]
    moving = [(p, v) for p, v in own if isinstance(p, Parameter) and p.atom >= 0]
    if not moving:
        return None
    pin, size = max(moving, key=lambda each: abs(each[1]))
    cells = list(range(found.family.n_experts))
    few = search_point(found, cells)

    def start(h: float) -> Configuration:
        values = [few.values.copy() for _ in cells]
        masses: dict[int, int] = {}
        for p, v in own:
            step = fixed(h * v / size)
            if isinstance(p, int):
                masses[p] = step
            elif p.atom < 0:
                for each in values:
                    each[p.position] += step
            else:
                values[p.atom][p.position] += step
        return Configuration(cells, values, [0] * len(cells), masses)

    return climb_down(few, cells, start, (pin.atom, pin), LADDER, work.until)


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


def _cells_of_several(work: Work, size: int) -> None:
    """Cells of so many atoms, each true atom's in turn; the worst of them is the answer."""
    found, family = work.found, work.family
    blocks, cell = blocks_of(family), str(size)
    reason = no_cells(family, found.n_experts)
    if reason:
        copied = found.n_experts % family.n_experts == 0
        if copied:
            reason += " but by copying all equally often, which is not looked at"
        status = OPEN if copied else NONE
        found.rows += [Rate(block, cell, math.nan, status, reason) for block in blocks]
        return
    shared = {p.block for p in found.point.parameters if p.atom < 0} if found.point else set()
    blocks = [block for block in blocks if block not in shared]
    if not family.gate.normalised:
        raw_cells(work, size, blocks)
        return
    if family.has_jumps or work.corners:
        explored_cells(work, size, blocks)
        return
    if family.is_regression:
        linear = _linear_blocks(family)
        reason = "copies under one gate have any means that average to the true one"
        named = [block for block in blocks if block in linear]
        found.rows += [Rate(block, cell, math.inf, FREE, reason) for block in named]
        blocks = [block for block in blocks if block not in linear]
    rows: dict[str, list[Rate]] = {block: [] for block in blocks}
    for j in range(family.n_experts):
        for block, rate in _one_cell(work, size, j, blocks).items():
            rows[block].append(rate)
    _mass_row(work, cell, [rate for each in rows.values() for rate in each])
    for block in blocks:
        found.rows.append(max(rows[block], key=_badness))
    _inherit(found, cell)


def _linear_blocks(family: Family) -> set[str]:
    """Blocks in which the mean of an expert is linear."""
    if family.expert.block is not None:
        return set(family.expert.symmetry.linear_in)
    first, count = family.layout[1], family.layout[2]
    return {
        name
        for channel in family.channels[first : first + count]
        for name in (channel.intercept, channel.slope)
        if name is not None
    }


def _mass_row(work: Work, cell: str, rates: Sequence[Rate]) -> None:
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
                value = _tidy(ladder.exponent / power) if power > 0.3 else None
                r = max(r, value or r)
    found.rows.append(
        Rate("mass", cell, r, SEARCHED, "cells of one move no more on the ways found")
    )


def _badness(rate: Rate) -> tuple[bool, float, bool]:
    return math.isnan(rate.r), rate.r, rate.at_least


def _inherit(found: Analysis, cell: str) -> None:
    """A block is in larger cells at least as slow as in cells of one."""
    alone = {row.block: row for row in found.rows if row.cell == "1" and row.r > 1.0}
    for at, row in enumerate(found.rows):
        one = alone.get(row.block)
        if row.cell == cell and one is not None and not row.r >= one.r:
            found.rows[at] = replace(one, cell=cell, reason="as in cells of one")


def no_cells(family: Family, n_experts: int) -> str:
    """Why there is no measure of more atoms with the truth's density; empty where there is."""
    if family.gate.normalised and family.gate.mass is None:
        return "the gate has no masses: atoms cannot share that of one"
    return ""


def _moments(work: Work, atoms: tuple[int, ...]) -> Moments:
    found = work.found
    if atoms not in found.second:
        assert found.first is not None
        assert found.point is not None
        named = ", ".join(map(str, atoms))
        work.report(f"second derivatives, cells of true atoms {named}")
        found.second[atoms] = second_order(found.point, found.first, atoms)
    return found.second[atoms]


def _one_cell(work: Work, size: int, j: int, blocks: Sequence[str]) -> dict[str, Rate]:
    """The exponents in a cell of true atom j."""
    found, cell = work.found, str(size)
    assert found.first is not None
    moments = _moments(work, (j,))
    heat = _heat_block(found.family)
    witness = moments.witness((j,))
    if witness is not None:
        reason = _NO_CANCELLATION
        rates = {block: Rate(block, cell, 2.0, CERTIFIED, reason) for block in blocks}
        _size_by_search(work, size, j, rates)
        return rates
    any_pair = moments.cancelling(None, size, (j,))
    if any_pair is None:
        reason = "no displacements of so few atoms cancel to second order (searched over ranks)"
        return {block: Rate(block, cell, 2.0, SEARCHED, reason) for block in blocks}
    rates: dict[str, Rate] = {}
    ladders: list[Ladder] = []
    affected = {b: M for b in blocks if (M := moments.cancelling(b, size, (j,))) is not None}
    for block, M in affected.items():
        text = _relation_of(moments, M)
        if block == heat:
            matched = f"{size} normal distributions match {2 * size - 1} moments of one"
            reason = f"{_heat_text(found.family, block)}: {matched}"
            order = 2.0 * size
            more = not _are_distinct(found)
            rates[block] = Rate(block, cell, order, PROVED, reason, at_least=more)
        cells = [j] * size + [i for i in range(found.family.n_experts) if i != j]
        ladder = _search(work, cells, j, block, {j: _factor(moments, M, j)}, block == heat)
        if ladder is None:
            rates.setdefault(
                block,
                Rate(
                    block,
                    cell,
                    4.0,
                    PROVED,
                    f"{text}: two opposite displacements reach ε^4",
                    at_least=True,
                ),
            )
            continue
        found.ladders.append((cell, block, ladder))
        if zero_at(ladder):
            rates[block] = Rate(block, cell, math.inf, FREE, f"{text}, and {zero_at(ladder)}")
            continue
        ladders.append(ladder)
        r, settled = exponent_of(ladder)
        if block not in rates:
            least = max(r, 4.0)
            rates[block] = Rate(
                block,
                cell,
                least,
                SEARCHED,
                f"{text}; d ~ ε^{ladder.exponent:.3g} at 96 digits",
                at_least=not settled or r < 4.0,
            )
        rates[block] = with_sizes(rates[block], ladder)
    for block in blocks:
        if block in rates:
            continue
        if heat in rates and block == found.family.likelihood.channels[-1].intercept:
            reason = f"{_heat_text(found.family, heat)}: it moves with the square of {heat}"
            order, more = max(2.0, float(size)), not _are_distinct(found)
            rates[block] = Rate(block, cell, order, PROVED, reason, at_least=more)
            continue
        cells = [j] * size + [i for i in range(found.family.n_experts) if i != j]
        ladder = _search(work, cells, j, block, None, False)
        r, how = 2.0, "opposite displacements"
        for other in ladders:
            power = other.powers().get(block)
            value = _tidy(other.exponent / power) if power and exponent_of(other)[1] else None
            if value is not None and value > r:
                r, how = value, f"on the way of {other.pinned.block}"
        if ladder is not None:
            found.ladders.append((cell, block, ladder))
            own, _ = exponent_of(ladder)
            if own > r:
                r, how = own, "searched with this block held"
        reason = f"no relation holds its square; {how}: d ~ ε^{r:g}"
        unsure = ladder is None or len(ladders) < len(affected)
        rate = Rate(block, cell, r, SEARCHED, reason, at_least=unsure)
        rates[block] = rate if ladder is None else with_sizes(rate, ladder)
    return rates


def _tidy(value: float) -> float | None:
    """A quotient of exponents as a short fraction, None where it is none."""
    choices = [round(value * n) / n for n in (1, 2, 3)]
    best = min(choices, key=lambda each: abs(each - value))
    return best if abs(best - value) < 0.04 else None


def _size_by_search(work: Work, size: int, j: int, rates: dict[str, Rate]) -> None:
    """Sample sizes of blocks whose exponent needs no search, along what is seen least."""
    found = work.found
    moments = _moments(work, (j,))
    cells = [j] * size + [i for i in range(found.family.n_experts) if i != j]
    few = search_point(found, cells)
    for block, rate in list(rates.items()):
        if monotonic() > work.until - 2.0 or size > 2:
            return
        least = moments.cheapest(block)
        pinned = next((p for p in few.parameters if p.atom == j and p.block == block), None)
        if least is None or pinned is None:
            continue
        work.report(f"sample sizes: {block} in cells of {size} of true atom {j}")
        directions = {j: least[1][:, None]}
        ladder = climb_down(
            few,
            cells,
            lambda h, d=directions, p=pinned: spread(few, cells, d, h, 0, (0, p)),
            (0, pinned),
            SIZES,
            work.until,
            iterations=6,
        )
        if ladder is not None and len(ladder.distances) > 1:
            found.ladders.append((str(size), block, ladder))
            rates[block] = with_sizes(rate, ladder)


def _heat_block(family: Family) -> str | None:
    """The block of a normal mean's intercept, where the density solves a heat equation in it."""
    if family.likelihood.name != "gaussian" or family.expert.block is not None:
        return None
    channel = family.likelihood.channels[-1]
    free = family.lower < family.upper
    at = np.ravel(family.blocks.get(channel.intercept, np.zeros(0, dtype=int)))
    if channel.shared or family.gate.reads_response or not at.size or not free[at].all():
        return None
    return family.channels[family.layout[1]].intercept


def _heat_text(family: Family, block: str) -> str:
    return f"∂²p/∂{block}² = 2 ∂p/∂{family.likelihood.channels[-1].intercept}"


def _relation_of(moments: Moments, M: FloatArray) -> str:
    """The relation whose second-order part is M, written out."""
    pairs = [
        (i, j)
        for i, one in enumerate(moments.parameters)
        for j in range(i, len(moments.parameters))
        if one.atom == moments.parameters[j].atom
    ]
    n_first = len(moments.columns) - len(pairs)
    null = moments.relations.null_space
    target = np.array([M[i, j] for i, j in pairs])
    weights, *_ = np.linalg.lstsq(null[n_first:], target, rcond=None)
    vector = null @ weights
    vector[np.abs(vector) < 1e-6 * np.abs(vector).max()] = 0.0
    order = [*range(n_first, vector.size), *range(n_first)]
    return str(write(vector[order], [moments.labels[k] for k in order]))


def _factor(moments: Moments, M: FloatArray, j: int) -> FloatArray:
    """Displacements (p, rank) whose products are those of atom j in M."""
    on = np.flatnonzero([p.atom == j for p in moments.parameters])
    values, vectors = np.linalg.eigh(M[np.ix_(on, on)])
    used = values > 1e-7
    return vectors[:, used] * np.sqrt(values[used]) if used.any() else np.zeros((on.size, 1))


def _search(
    work: Work,
    cells: Sequence[int],
    j: int,
    block: str,
    directions: dict[int, FloatArray] | None,
    heat: bool,
    ladder: Sequence[float] = LADDER,
    seeds: Iterable[int] = (0, 1),
) -> Ladder | None:
    """The ladder with the largest exponent of some starts, with a coordinate of a block held."""
    found = work.found
    few = search_point(found, cells)
    choices = [p for p in few.parameters if p.atom == j and p.block == block and p.movable]
    if not choices:
        return None
    pin = cells.index(j), choices[0]
    best: Ladder | None = None
    for seed in seeds:
        if monotonic() > work.until:
            break
        work.report(f"searching {block} in cells of {cells.count(j)}, start {seed + 1}")

        def start(h: float, seed: int = seed) -> Configuration:
            if heat:
                return _hermite(few, cells, j, block, h)
            return spread(few, cells, directions, h, seed, pin)

        one = climb_down(few, cells, start, pin, ladder, work.until)
        if (
            one is not None
            and len(one.distances) > 1
            and (
                best is None
                or one.exponent > best.exponent + 0.02
                or (
                    abs(one.exponent - best.exponent) <= 0.02
                    and one.distances[0] < best.distances[0]
                )
            )
        ):
            best = one
        if heat:
            break
    return best


def _hermite(point: Point, cells: Sequence[int], j: int, block: str, h: float) -> Configuration:
    """Gauss-Hermite nodes as intercepts, their weights, and variances that make up for them."""
    mine = [i for i, cell in enumerate(cells) if cell == j]
    nodes, weights = np.polynomial.hermite_e.hermegauss(len(mine))
    order = np.argsort(-np.abs(nodes))
    nodes, weights = nodes[order], weights[order] / weights.sum()
    scale = h / abs(nodes[0])
    nu = point.family.likelihood.channels[-1].intercept
    values = [point.values.copy() for _ in cells]
    logits = [0] * len(cells)
    room = np.maximum((weights - LEAST_SHARE) / (1.0 - len(mine) * LEAST_SHARE), 1e-3)
    for i, node, part in zip(mine, nodes, room, strict=True):
        for p in point.parameters:
            if p.atom != j:
                continue
            if p.block == block and p.feature == 0:
                values[i][p.position] += fixed(float(scale * node * np.sign(nodes[0])))
            if p.block == nu:
                old = float(np.exp(point.theta[p.position]))
                values[i][p.position] += fixed(float(np.log1p(-(scale**2) / old)))
        logits[i] = fixed(float(np.log(part)))
    return Configuration(list(cells), values, logits, {})


def _pairs(work: Work) -> None:
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
            moments = _moments(work, (i, j))
            if moments.witness((i, j)) is not None:
                reason = _NO_CANCELLATION
                for block in blocks:
                    rows[block].append(Rate(block, "2, 2", 2.0, CERTIFIED, reason))
                continue
            for block in blocks:
                rows[block].append(_pair(work, moments, i, j, block))
    for block in blocks:
        if rows[block]:
            found.rows.append(max(rows[block], key=_badness))
    _inherit(found, "2, 2")


def _pair(work: Work, moments: Moments, i: int, j: int, block: str) -> Rate:
    found = work.found
    M = moments.cancelling(block, 2, (i, j))
    if M is None:
        return Rate(
            block, "2, 2", 2.0, SEARCHED, "no relation holds its square (searched over ranks)"
        )
    text = f"{_relation_of(moments, M)}: opposite displacements reach ε^4"
    heat = _heat_block(found.family) == block
    if heat:
        reason, more = _heat_text(found.family, block), not _are_distinct(found)
        return Rate(block, "2, 2", 4.0, PROVED, reason, at_least=more)
    cells = [i, i, j, j, *(k for k in range(found.family.n_experts) if k not in (i, j))]
    directions = {i: _factor(moments, M, i), j: _factor(moments, M, j)}
    lead = i if np.abs(directions[i]).max() >= np.abs(directions[j]).max() else j
    if monotonic() < work.until:
        ladder = _search(work, cells, lead, block, directions, False, LADDER[:2], (0,))
        if ladder is not None and zero_at(ladder):
            reason = f"{_relation_of(moments, M)}, and {zero_at(ladder)}"
            return Rate(block, "2, 2", math.inf, FREE, reason)
    return Rate(block, "2, 2", 4.0, PROVED, text, at_least=True)
