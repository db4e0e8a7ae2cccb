"""From derivatives and searches to an exponent for each block and kind of cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.designs import Design, Uniform
from moestat.model.family import Family
from moestat.theory.explorer._nodes import _bends, _kinks
from moestat.theory.rates._cells import FirstOrder, Moments, Relation, first_order, second_order, write
from moestat.theory.rates._jumps import Jump, find_jumps
from moestat.theory.rates._point import Parameter, Point, draw_samples
from moestat.theory.rates._search import Configuration, Ladder, climb_down, spread

__all__ = ["Analysis", "Rate", "analyse"]

PROVED, CERTIFIED, SEARCHED = "proved", "certified", "searched"
FREE, NONE, OPEN = "not identified", "no such measure", "undecided"

_LADDER = (1e-1, 1e-2, 1e-3)
_SIZES = (1e-1, 3e-2, 1e-2)
_ZERO_DISTANCE = 1e-40
"""A distance below this at a deviation of .1 is 0 to the digits of the arithmetic."""
_NEAR_INTEGER = 0.12
"""How far a local exponent may be from the exponent that it is taken for."""


@dataclass(frozen=True)
class Rate:
    """The exponent of one block in one kind of cell.

    Estimates whose density converges at ``n^(-1/2)`` have errors of this block of the order
    ``n^(-1/(2 r))`` in the worst case near the truth.
    """

    block: str
    cell: str
    """Fitted atoms in the cell, such as ``"2"``; ``"2, 2"`` for two cells at once."""
    r: float
    """The exponent; inf where the block is not identified, NaN where nothing is known."""
    status: str
    reason: str
    at_least: bool = False
    """Whether r is a lower bound: an explicit sequence of measures has it, and a worse one is not
    excluded."""
    n_for: float = math.nan
    """Sample size from which an error of .1 can be told from the truth, ``1 / (2 h^2)`` with the
    Hellinger distance h there."""
    n_seen: float = math.nan
    """Sample size from which the local exponent is within a tenth of r."""

    @property
    def pointwise(self) -> str:
        """The rate at this truth as n grows, where it is known: that of regular estimates."""
        return "n^(-1/2)" if self.cell == "1" and self.r == 1.0 else ""

    @property
    def text(self) -> str:
        """The worst case as a power of n."""
        if math.isinf(self.r):
            return "none"
        if math.isnan(self.r):
            return "?"
        power = 2.0 * self.r
        whole = round(power)
        name = f"1/{whole}" if abs(power - whole) < 1e-9 else f"{1.0 / power:.3g}"
        name = "1" if name == "1/1" else name
        return f"n^(-{name})" if not self.at_least else f"n^(-{name}) or slower"


@dataclass
class Analysis:
    """What was found at a truth."""

    family: Family
    theta: FloatArray
    n_experts: int
    design: Design
    rows: list[Rate] = field(default_factory=list)
    first: FirstOrder | None = None
    second: dict[tuple[int, ...], Moments] = field(default_factory=dict)
    ladders: list[tuple[str, str, Ladder]] = field(default_factory=list)
    """Cell, block and what the search found."""
    point: Point | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Atoms of the largest cell."""
        return self.n_experts - self.family.n_experts + 1


@dataclass
class _Work:
    """An analysis under way: its clock and its reports."""

    found: Analysis
    until: float
    report: Callable[[str], None]
    corners: bool

    @property
    def family(self) -> Family:
        return self.found.family


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
    work = _Work(found, monotonic() + seconds, report, has_corners(family, theta, design))
    n = _rows_needed(family)
    report(f"derivatives at {n} samples in 96 digits")
    found.point = Point(family, theta, draw_samples(family, theta, design, n))
    jumps = find_jumps(family, theta, design, found.point)
    found.first = first_order(found.point, jumps)
    if not found.first.relations.clear:
        found.notes.append("Ranks are not clear in 96 digits: the inputs hardly vary.")
    _cells_of_one(work, jumps)
    for size in range(2, found.size + 1):
        _cells_of_several(work, size)
    if found.size > 2 and family.n_experts > 1:
        _pairs(work)
    return found


def _rows_needed(family: Family) -> int:
    """Samples: half as many again as there are functions of second order in two cells."""
    p = family.n_atom_params + 1
    pairs = min(family.n_experts, 2)
    functions = family.n_params + pairs * p * (p + 1) // 2
    rows = int(1.4 * functions) + 12
    return rows


def has_corners(family: Family, theta: FloatArray, design: Design) -> bool:
    """Whether a corner of the gate or of a mean lies among the inputs."""
    if family.gate.kink is None and not family.has_kinked_mean:
        return False
    if family.n_features > 1:
        return True
    X = design.quadrature(1, 64)[0]
    low, high = float(X.min()), float(X.max())
    return bool(_kinks(family, theta, low, high).size or _bends(family, theta, Uniform(low, high)).size)


def _blocks(family: Family) -> list[str]:
    """Blocks of parameters, in the order of the family, but for the masses."""
    mass = family.gate.mass if family.gate.normalised else None
    return [
        name
        for name, at in family.blocks.items()
        if name != mass and np.any(family.lower[np.ravel(at)] < family.upper[np.ravel(at)])
    ]


def _cells_of_one(work: _Work, jumps: list[Jump]) -> None:
    """Regular blocks, those that jump, and those that a relation leaves free."""
    found, family = work.found, work.family
    first, point = found.first, found.point
    assert first is not None and point is not None
    touched: dict[str, list[int]] = {}
    for at, blocks in enumerate(first.blocks):
        for block in blocks:
            touched.setdefault(block, []).append(at)
    moved = _moving_only(first, jumps)
    regular = ["mass"] if family.gate.normalised and family.gate.mass is not None else []
    answers = [_along(work, at) for at in range(len(first.found))]
    least = first.relations.least
    for block in [*regular, *_blocks(family)]:
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
    from moestat.theory.rates._series import to_floats

    G = to_floats(np.stack([column[-n:] for column in first.columns], axis=1))
    _, s, vt = np.linalg.svd(G)
    rank = int(np.sum(s > 1e-9 * max(s[0], 1e-300)))
    still = vt[rank:]
    found = {}
    for name in {name for jump in jumps for name in jump.blocks}:
        own = [k for k in columns if name == ("mass" if isinstance(p := first.parameters[k], int) else p.block)]
        if own and not np.any(np.abs(still[:, own]) > 1e-9):
            found[name] = next(jump for jump in jumps if name in jump.blocks)
    return found


def _along(work: _Work, at: int) -> Rate:
    """What happens along a null vector of the first derivatives."""
    found = work.found
    first, point = found.first, found.point
    assert first is not None and point is not None
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
    if min(ladder.distances) < _ZERO_DISTANCE:
        at_h = int(np.argmin(ladder.distances))
        h = ladder.deviations[at_h]
        reason = f"{relation}, and d < 1e-{-math.floor(math.log10(ladder.distances[at_h])) - 1} at {ladder.pinned.name} + {h:g}"
        return Rate("", "1", math.inf, FREE, reason)
    r, settled = _exponent(ladder)
    return Rate("", "1", r, SEARCHED, f"{relation}; d ~ ε^{r:g} along it", at_least=not settled)


def _declared(found: Analysis, first: FirstOrder, vector: FloatArray) -> bool:
    """Whether a null vector is the gate's declared common factor."""
    blocks = {
        p.block for p, v in zip(first.parameters, vector, strict=True) if v and not isinstance(p, int)
    }
    return bool(blocks) and blocks == set(found.family.gate.scaling)


def _follow(work: _Work, vector: FloatArray) -> Ladder | None:
    """Distances along a null vector, all else free."""
    found = work.found
    first, point = found.first, found.point
    assert first is not None and point is not None
    own = [(p, float(v)) for p, v in zip(first.parameters, vector, strict=True) if v]
    moving = [(p, v) for p, v in own if isinstance(p, Parameter) and p.atom >= 0]
    if not moving:
        return None
    pin, size = max(moving, key=lambda each: abs(each[1]))
    cells = list(range(found.family.n_experts))
    few = _search_point(found, cells)

    def start(h: float) -> Configuration:
        from moestat.theory.rates._series import fixed

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

    return climb_down(few, cells, start, (pin.atom, pin), _LADDER, work.until)


def _search_point(found: Analysis, cells: Sequence[int]) -> Point:
    """Samples for a search: half as many again as unknowns."""
    family = found.family
    unknowns = len(cells) * (family.n_atom_params + 1) + 4
    rows = int(1.5 * unknowns) + 6
    return Point(family, found.theta, draw_samples(family, found.theta, found.design, rows, seed=1))


def _exponent(ladder: Ladder) -> tuple[float, bool]:
    """The exponent of a ladder, and whether its local slopes have settled at a whole number."""
    if not ladder.slopes:
        return math.nan, False
    last = ladder.slopes[-1]
    whole = float(round(2.0 * last)) / 2.0
    if abs(last - whole) < _NEAR_INTEGER * 0.5 * max(1.0, whole / 2.0):
        return whole, True
    return float(math.floor(last + 0.05)), False


def _sizes_of_one(found: Analysis) -> None:
    """Sample sizes for an error of .1 in cells of one, from the information."""
    from moestat.metrics.information import expected_information

    family = found.family
    noise = {"noise": 1.0} if family.is_regression else {}
    try:
        information = expected_information(family, found.theta, found.design, **noise)
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


def _cells_of_several(work: _Work, size: int) -> None:
    """Cells of so many atoms, each true atom's in turn; the worst of them is the answer."""
    found, family = work.found, work.family
    blocks, cell = _blocks(family), str(size)
    reason = _no_cells(family, found.n_experts)
    if reason:
        found.rows += [Rate(block, cell, math.nan, NONE, reason) for block in blocks]
        return
    shared = {p.block for p in found.point.parameters if p.atom < 0} if found.point else set()
    blocks = [block for block in blocks if block not in shared]
    if not family.gate.normalised:
        _raw_cells(work, size, blocks)
        return
    if family.has_jumps or work.corners:
        _explored(work, size, blocks)
        return
    rows: dict[str, list[Rate]] = {block: [] for block in blocks}
    for j in range(family.n_experts):
        for block, rate in _one_cell(work, size, j, blocks).items():
            rows[block].append(rate)
    _mass_row(work, cell, [rate for each in rows.values() for rate in each])
    for block in blocks:
        found.rows.append(max(rows[block], key=_badness))
    _inherit(found, cell)


def _mass_row(work: _Work, cell: str, rates: Sequence[Rate]) -> None:
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
            if at == cell and name.endswith("cell of one") and _exponent(ladder)[1]:
                value = _tidy(ladder.exponent / power) if power > 0.3 else None
                r = max(r, value or r)
    found.rows.append(Rate("mass", cell, r, SEARCHED, "cells of one move no more on the ways found"))


def _badness(rate: Rate) -> tuple[bool, float, bool]:
    return math.isnan(rate.r), rate.r, rate.at_least


def _inherit(found: Analysis, cell: str) -> None:
    """A block that is not identified in cells of one is not in larger ones."""
    free = {row.block: row for row in found.rows if row.cell == "1" and math.isinf(row.r)}
    for at, row in enumerate(found.rows):
        if row.cell == cell and row.block in free:
            found.rows[at] = replace(row, r=math.inf, status=FREE, reason="as in cells of one", at_least=False)


def _no_cells(family: Family, n_experts: int) -> str:
    """Why there is no measure of more atoms with the truth's density; empty where there is."""
    if family.is_regression and family.gate.normalised:
        return "regression functions under a normalised gate are not linear in the measure"
    if family.gate.normalised and family.gate.mass is None:
        return "the gate has no masses: atoms cannot share that of one"
    return ""


def _moments(work: _Work, atoms: tuple[int, ...]) -> Moments:
    found = work.found
    if atoms not in found.second:
        assert found.first is not None and found.point is not None
        work.report(f"second derivatives, cell{'s' * (len(atoms) > 1)} of true atom {', '.join(map(str, atoms))}")
        found.second[atoms] = second_order(found.point, found.first, atoms)
    return found.second[atoms]


def _one_cell(work: _Work, size: int, j: int, blocks: Sequence[str]) -> dict[str, Rate]:
    """The exponents in a cell of true atom j."""
    found, cell = work.found, str(size)
    assert found.first is not None
    moments = _moments(work, (j,))
    heat = _heat_block(found.family)
    witness = moments.witness((j,))
    if witness is not None:
        reason = "no displacements cancel to second order (witness: a positive definite matrix)"
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
            reason = f"{_heat_text(found.family, block)}: {size} normal laws match {2 * size - 1} moments of one"
            rates[block] = Rate(block, cell, 2.0 * size, PROVED, reason)
        cells = [j] * size + [i for i in range(found.family.n_experts) if i != j]
        ladder = _search(work, cells, j, block, {j: _factor(moments, M, j)}, block == heat)
        if ladder is None:
            rates.setdefault(
                block,
                Rate(block, cell, 4.0, PROVED, f"{text}: two opposite displacements reach ε^4", at_least=True),
            )
            continue
        found.ladders.append((cell, block, ladder))
        ladders.append(ladder)
        r, settled = _exponent(ladder)
        if block not in rates:
            least = max(r, 4.0)
            rates[block] = Rate(
                block, cell, least, SEARCHED, f"{text}; d ~ ε^{ladder.exponent:.3g} at 96 digits", at_least=not settled or r < 4.0
            )
        rates[block] = _with_sizes(rates[block], ladder)
    for block in blocks:
        if block in rates:
            continue
        if heat in rates and block == found.family.likelihood.channels[-1].intercept:
            reason = f"{_heat_text(found.family, heat)}: it moves with the square of {heat}"
            rates[block] = Rate(block, cell, max(2.0, float(size)), PROVED, reason)
            continue
        cells = [j] * size + [i for i in range(found.family.n_experts) if i != j]
        ladder = _search(work, cells, j, block, None, False)
        r, how = 2.0, "opposite displacements"
        for other in ladders:
            power = other.powers().get(block)
            value = _tidy(other.exponent / power) if power and _exponent(other)[1] else None
            if value is not None and value > r:
                r, how = value, f"on the way of {other.pinned.block}"
        if ladder is not None:
            found.ladders.append((cell, block, ladder))
            own, _ = _exponent(ladder)
            if own > r:
                r, how = own, "searched with this block held"
        reason = f"no relation holds its square; {how}: d ~ ε^{r:g}"
        unsure = ladder is None or len(ladders) < len(affected)
        rate = Rate(block, cell, r, SEARCHED, reason, at_least=unsure)
        rates[block] = rate if ladder is None else _with_sizes(rate, ladder)
    return rates


def _tidy(value: float) -> float | None:
    """A quotient of exponents as a short fraction, None where it is none."""
    choices = [round(value * n) / n for n in (1, 2, 3)]
    best = min(choices, key=lambda each: abs(each - value))
    return best if abs(best - value) < 0.04 else None


def _with_sizes(rate: Rate, ladder: Ladder) -> Rate:
    """The rate with sample sizes from a ladder, whose first deviation is .1."""

    def n(distance: float) -> float:
        # The relative change has mean square chi^2, about 8 h^2 near the truth.
        return 4.0 / distance**2

    seen = math.nan
    for slope, distance in zip(ladder.slopes, ladder.distances, strict=False):
        if abs(slope - rate.r) <= 0.1 * rate.r:
            seen = n(distance)
            break
    return replace(rate, n_for=n(ladder.distances[0]), n_seen=seen)


def _size_by_search(work: _Work, size: int, j: int, rates: dict[str, Rate]) -> None:
    """Sample sizes of blocks whose exponent needs no search, along what is seen least."""
    found = work.found
    moments = _moments(work, (j,))
    cells = [j] * size + [i for i in range(found.family.n_experts) if i != j]
    few = _search_point(found, cells)
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
            _SIZES,
            work.until,
            iterations=6,
        )
        if ladder is not None and len(ladder.distances) > 1:
            found.ladders.append((str(size), block, ladder))
            rates[block] = _with_sizes(rate, ladder)


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
    vector[np.abs(vector) < 1e-7 * np.abs(vector).max()] = 0.0
    order = [*range(n_first, vector.size), *range(n_first)]
    return str(write(vector[order], [moments.labels[k] for k in order]))


def _factor(moments: Moments, M: FloatArray, j: int) -> FloatArray:
    """Displacements (p, rank) whose products are those of atom j in M."""
    on = np.flatnonzero([p.atom == j for p in moments.parameters])
    values, vectors = np.linalg.eigh(M[np.ix_(on, on)])
    used = values > 1e-7
    return vectors[:, used] * np.sqrt(values[used]) if used.any() else np.zeros((on.size, 1))


def _search(
    work: _Work,
    cells: Sequence[int],
    j: int,
    block: str,
    directions: dict[int, FloatArray] | None,
    heat: bool,
    ladder: Sequence[float] = _LADDER,
    seeds: Iterable[int] = (0, 1),
) -> Ladder | None:
    """The ladder with the largest exponent of some starts, with a coordinate of a block held."""
    found = work.found
    few = _search_point(found, cells)
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

        pinned = (_hermite_pin(cells, j), choices[0]) if heat else pin
        one = climb_down(few, cells, start, pinned, ladder, work.until)
        if one is not None and len(one.distances) > 1:
            if best is None or one.exponent > best.exponent + 0.02 or (
                abs(one.exponent - best.exponent) <= 0.02 and one.distances[0] < best.distances[0]
            ):
                best = one
        if heat:
            break
    return best


def _hermite_pin(cells: Sequence[int], j: int) -> int:
    return cells.index(j)


def _hermite(point: Point, cells: Sequence[int], j: int, block: str, h: float) -> Configuration:
    """Gauss-Hermite nodes as intercepts, with their weights, and variances that make up for them."""
    from moestat.theory.rates._search import LEAST_SHARE
    from moestat.theory.rates._series import fixed

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


def _pairs(work: _Work) -> None:
    """Two cells of two atoms at once, whose displacements may cancel together."""
    found, family = work.found, work.family
    if not family.gate.normalised or family.gate.mass is None:
        return
    if family.has_jumps or work.corners:
        return
    shared = {p.block for p in found.point.parameters if p.atom < 0} if found.point else set()
    blocks = [block for block in _blocks(family) if block not in shared]
    rows: dict[str, list[Rate]] = {block: [] for block in blocks}
    for i in range(family.n_experts):
        for j in range(i + 1, family.n_experts):
            moments = _moments(work, (i, j))
            if moments.witness((i, j)) is not None:
                reason = "no displacements cancel to second order (witness: a positive definite matrix)"
                for block in blocks:
                    rows[block].append(Rate(block, "2, 2", 2.0, CERTIFIED, reason))
                continue
            for block in blocks:
                rows[block].append(_pair(work, moments, i, j, block))
    for block in blocks:
        if rows[block]:
            found.rows.append(max(rows[block], key=_badness))
    _inherit(found, "2, 2")


def _pair(work: _Work, moments: Moments, i: int, j: int, block: str) -> Rate:
    found = work.found
    M = moments.cancelling(block, 2, (i, j))
    if M is None:
        return Rate(block, "2, 2", 2.0, SEARCHED, "no relation holds its square (searched over ranks)")
    text = f"{_relation_of(moments, M)}: opposite displacements reach ε^4"
    heat = _heat_block(found.family) == block
    if heat:
        return Rate(block, "2, 2", 4.0, PROVED, _heat_text(found.family, block))
    cells = [i, i, j, j, *(k for k in range(found.family.n_experts) if k not in (i, j))]
    directions = {i: _factor(moments, M, i), j: _factor(moments, M, j)}
    lead = i if np.abs(directions[i]).max() >= np.abs(directions[j]).max() else j
    if monotonic() < work.until:
        ladder = _search(work, cells, lead, block, directions, False, _LADDER[:2], (0,))
        if ladder is not None and min(ladder.distances) < _ZERO_DISTANCE:
            h = ladder.deviations[int(np.argmin(ladder.distances))]
            reason = f"{_relation_of(moments, M)}, and d = 0 in all digits at {ladder.pinned.name} + {h:g}"
            return Rate(block, "2, 2", math.inf, FREE, reason)
    return Rate(block, "2, 2", 4.0, PROVED, text, at_least=True)


def _raw_cells(work: _Work, size: int, blocks: Sequence[str]) -> None:
    """Cells of a gate without normalisation: copies share a constant gate, or an expert."""
    from moestat.theory.rates._raw import raw_cells

    raw_cells(work, size, blocks)


def _explored(work: _Work, size: int, blocks: Sequence[str]) -> None:
    """Cells of functions with corners or jumps, by the explorer's search in float64."""
    from moestat.theory.rates._raw import explored_cells

    explored_cells(work, size, blocks)
