"""Orders where displacements cancel: searches in many digits, begun along the relation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from time import monotonic

import numpy as np

from moestat.base.types import FloatArray
from moestat.theory.exponents._feasible import moments_of
from moestat.theory.exponents._point import Point
from moestat.theory.exponents._search import (
    LEAST_SHARE,
    Configuration,
    Ladder,
    climb_down,
    pinned_atom,
    spread,
)
from moestat.theory.exponents._series import fixed
from moestat.theory.exponents._work import LADDER, SIZES, Rate, Work, search_point, with_sizes

_LEAST_LEFT = 0.1
"""Least share of a variance that nodes leave over."""

__all__ = ["nodes_apart", "search", "sizes_by_search"]


def search(
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
    pin = pinned_atom(cells, choices[0]), choices[0]
    best: Ladder | None = None
    for seed in seeds:
        if monotonic() > work.until:
            break
        work.report(f"searching {block} in cells of {cells.count(j)}, start {seed + 1}")

        def start(h: float, seed: int = seed) -> Configuration:
            if heat:
                return nodes_apart(few, cells, j, block, h)
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


def nodes_apart(point: Point, cells: Sequence[int], j: int, block: str, h: float) -> Configuration:
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
                left = 1.0 - scale**2 / float(np.exp(point.theta[p.position]))
                # Beyond a standard deviation no variance makes up for the nodes.
                values[i][p.position] += fixed(math.log(max(left, _LEAST_LEFT)))
        logits[i] = fixed(float(np.log(part)))
    return Configuration(list(cells), values, logits, {})


def sizes_by_search(work: Work, size: int, j: int, rates: dict[str, Rate]) -> None:
    """Sample sizes of blocks whose exponent needs no search, along what is seen least."""
    found = work.found
    moments = moments_of(work, (j,))
    cells = [j] * size + [i for i in range(found.family.n_experts) if i != j]
    few = search_point(found, cells)
    for block, rate in list(rates.items()):
        if monotonic() > work.until - 2.0 or size > 2:
            return
        least = moments.cheapest(block)
        pinned = next((p for p in few.parameters if p.atom == j and p.block == block), None)
        if least is None or pinned is None:
            continue
        work.report(f"sample sizes: {block} in cells of {size} of true atom {j + 1}")
        directions, pin = {j: least[1][:, None]}, (pinned_atom(cells, pinned), pinned)
        ladder = climb_down(
            few,
            cells,
            lambda h, d=directions, p=pin: spread(few, cells, d, h, 0, p),
            pin,
            SIZES,
            work.until,
            iterations=6,
            until_exponent=rate.r,
        )
        if ladder is not None and len(ladder.distances) > 1:
            found.ladders.append((str(size), block, ladder))
            rates[block] = with_sizes(rate, ladder, work.found)
