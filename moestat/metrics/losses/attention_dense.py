"""Distance to the set of best approximations, for raw sigmoid gates in the dense regime.

The paper compares a fit of N = N* + 1 atoms with "the" best approximation that has more than N*
atoms, and says that it misses the truth.  It does not: with raw sigmoid gates these measures have
the truth's regression function,

- a dead atom: the truth and one more atom with mean 0, whatever its gate;
- a split: an atom twice, with parameters eta and eta' of the expert whose means add up to the
  atom's own: ``eta + eta' = eta*`` where the mean is linear in eta, ``t eta*`` and
  ``(1 - t) eta*`` with t in [0, 1] where it is positively homogeneous (ReLU);
- a flip, for experts linear in all their parameters: ``sigma(s) g = g - sigma(-s) g``, so that any
  set S of atoms may turn into their negatives, gates and all, with one more atom of gate
  ``A = b = 0`` and any c, whose expert is ``sum_(j in S) eta*_j / sigma(c)``.

The loss is L3 (or L5) to the member of this set that is nearest, atom by atom: no cell can be
empty.  For a positively homogeneous activation that vanishes on half a line, an atom is dead when
it is negative on all of [-1, 1]^d.  The search over kinds, atoms and sets S is complete; within a
kind the member is chosen by least squares, which makes the value an upper bound.

Source: Yan et al. (2025), Sec. 4.2 and eqs. (12), (54), for the loss; the set is our own finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from moestat.base.types import FloatArray, IntArray
from moestat.metrics.losses import attention_l3
from moestat.metrics.losses._gaps import linear_sum_assignment
from moestat.model.measure import MixingMeasure

Mask = NDArray[np.bool_]
_HALVINGS = 100
_MOST_FLIPS = 12  # true atoms: sets of them are enumerated


class _Atoms:
    """Gate (k, blocks) and expert parameters (k, q) of a measure as matrices."""

    def __init__(self, measure: MixingMeasure) -> None:
        k = measure.n_atoms
        expert = measure.expert_blocks
        gate = [name for name in measure.atoms if name not in expert]
        self.gate = [measure.atoms[name].reshape(k, -1) for name in gate]
        self.eta = np.hstack([measure.atoms[name].reshape(k, -1) for name in expert])
        self.centre = gate.index("c")


def _gate_costs(fit: _Atoms, true: _Atoms, sign: float = 1.0) -> FloatArray:
    """Distance of the gates of every fitted and true atom (k, k*), these times `sign`."""
    return np.sum(
        [
            np.linalg.norm(fitted[:, None] - sign * target, axis=-1)
            for fitted, target in zip(fit.gate, true.gate, strict=True)
        ],
        axis=0,
    )


def _dead(eta: FloatArray, positive: tuple[Mask, Mask] | None) -> FloatArray:
    """The nearest parameters (q,) of an expert with mean 0.

    `positive` marks slope and intercept of a rectified expert: then ``beta <= -sum |alpha|`` is a
    cone of dead ones, and the projection on it shrinks alpha as it lowers beta.
    """
    out = np.zeros_like(eta)
    if positive is None:
        return out
    slope, intercept = positive
    alpha, beta = eta[slope], float(eta[intercept][0])

    def excess(shift: float) -> float:
        return beta - shift + float(np.maximum(np.abs(alpha) - shift, 0.0).sum())

    if excess(0.0) <= 0.0:
        return eta.copy()
    low, high = 0.0, max(beta, float(np.abs(alpha).max()), 0.0)
    if excess(high) > 0.0:
        return out
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    out[slope] = np.sign(alpha) * np.maximum(np.abs(alpha) - high, 0.0)
    out[intercept] = min(beta - high, 0.0)
    return out


def _split(pair: FloatArray, eta: FloatArray, linear: Mask, positive: Mask) -> FloatArray:
    """Parameters (2, q) near `pair` whose means add up to that of `eta`.

    Coordinates marked `linear` add up to those of eta; those marked `positive` are shares of them;
    all others are eta's own.
    """
    out = np.stack([eta, eta])
    surplus = pair.sum(axis=0) - eta
    out[:, linear] = (pair - 0.5 * surplus)[:, linear]
    positive_part = eta[positive]
    if positive_part.size and not linear.any():
        size = float(positive_part @ positive_part)
        gap = float((pair[0] - pair[1])[positive] @ positive_part)
        t = float(np.clip(0.5 + 0.5 * gap / size, 0.0, 1.0)) if size > 0.0 else 0.5
        out[0, positive], out[1, positive] = t * positive_part, (1.0 - t) * positive_part
    return out


def nearest_member(estimate: MixingMeasure, truth: MixingMeasure) -> MixingMeasure:
    """The member of the set nearest to the estimate, its atoms in the estimate's order."""
    k, true_k = estimate.n_atoms, truth.n_atoms
    if k - true_k not in (0, 1):
        raise ValueError(
            f"the set of best approximations is known for N* or N* + 1 atoms: got {k} fitted and"
            f" {true_k} true ones"
        )
    fit, true = _Atoms(estimate), _Atoms(truth)
    symmetry = estimate.symmetry
    widths = {name: truth.atoms[name][0].size for name in truth.expert_blocks}

    def mark(names: tuple[str, ...]) -> Mask:
        return np.concatenate(
            [np.full(w, name in names, dtype=np.bool_) for name, w in widths.items()]
        )

    linear, positive = mark(symmetry.linear_in), mark(symmetry.positive_in)
    gate = _gate_costs(fit, true)
    straight = gate + np.linalg.norm(fit.eta[:, None] - true.eta, axis=-1)
    best: tuple[float, list[FloatArray], FloatArray] = (np.inf, [], np.empty(0))

    def propose(cost: float, gates: list[FloatArray], eta: FloatArray) -> None:
        nonlocal best
        if cost < best[0]:
            best = (cost, gates, eta)

    def move_atoms(rows: IntArray, columns: IntArray) -> tuple[list[FloatArray], FloatArray]:
        gates, eta = [block.copy() for block in fit.gate], fit.eta.copy()
        for block, true_block in zip(gates, true.gate, strict=True):
            block[rows] = true_block[columns]
        eta[rows] = true.eta[columns]
        return gates, eta

    if k == true_k:
        rows, columns = linear_sum_assignment(straight)
        return _measure(estimate, *move_atoms(rows, columns))
    rectified = None
    if positive.any() and not symmetry.flips:
        slope = max(symmetry.positive_in, key=lambda name: widths[name])
        # With one input both have one entry; the slope is the first block of an expert.
        slope = slope if widths[slope] > 1 else truth.expert_blocks[0]
        rectified = mark((slope,)), positive & ~mark((slope,))
    if linear.any() or positive.any():
        dead = [_dead(eta, rectified) for eta in fit.eta]
        if linear.any():
            for out, block in zip(dead, fit.eta, strict=True):
                out[~linear] = block[~linear]
        lost = np.linalg.norm(fit.eta - dead, axis=1)
        rows, columns = linear_sum_assignment(np.column_stack([straight, lost]))
        (extra,) = rows[columns == true_k]
        matched = columns < true_k
        gates, eta = move_atoms(rows[matched], columns[matched])
        eta[extra] = dead[extra]
        cost = float(straight[rows[matched], columns[matched]].sum() + lost[extra])
        propose(cost, gates, eta)
    for j in range(true_k):
        for one, two in combinations(range(k), 2):
            pair = [one, two]
            split = _split(fit.eta[pair], true.eta[j], linear, positive)
            cost = float(gate[pair, j].sum() + np.linalg.norm(fit.eta[pair] - split, axis=1).sum())
            if cost >= best[0]:
                continue
            others = np.delete(np.arange(k), pair)
            other_truths = np.delete(np.arange(true_k), j)
            rows, columns = linear_sum_assignment(straight[np.ix_(others, other_truths)])
            cost += float(straight[others[rows], other_truths[columns]].sum())
            if cost < best[0]:
                gates, eta = move_atoms(others[rows], other_truths[columns])
                for block, true_block in zip(gates, true.gate, strict=True):
                    block[pair] = true_block[j]
                eta[pair] = split
                propose(cost, gates, eta)
    if linear.all() and true_k <= _MOST_FLIPS:
        _flips(fit, true, straight, propose)
    return _measure(estimate, best[1], best[2])


def _flips(fit: _Atoms, true: _Atoms, straight: FloatArray, propose: Callable[..., None]) -> None:
    """Members with a set of atoms turned into their negatives and one more atom."""
    k, true_k = straight.shape
    turned = _gate_costs(fit, true, -1.0) + np.linalg.norm(fit.eta[:, None] + true.eta, axis=-1)
    subsets = (np.arange(1, 2**true_k)[:, None] >> np.arange(true_k)) & 1
    flat = np.sum(
        [np.linalg.norm(block, axis=1) for b, block in enumerate(fit.gate) if b != fit.centre],
        axis=0,
    )
    share = 1.0 / (1.0 + np.exp(-fit.gate[fit.centre][:, 0]))
    sums = subsets @ true.eta
    least = np.inf
    for extra in range(k):
        constant = flat[extra] + np.linalg.norm(fit.eta[extra] - sums / share[extra], axis=1)
        others = np.delete(np.arange(k), extra)
        cheapest = np.minimum(straight, turned)[others]
        bound = float(cheapest[linear_sum_assignment(cheapest)].sum())
        for row in np.argsort(constant):
            if constant[row] + bound >= least:
                break
            S = subsets[row] > 0
            costs = np.where(S, turned, straight)[others]
            rows, columns = linear_sum_assignment(costs)
            cost = float(constant[row] + costs[rows, columns].sum())
            if cost >= least:
                continue
            least = cost
            sign = np.where(S, -1.0, 1.0)[columns, None]
            gates, eta = [block.copy() for block in fit.gate], fit.eta.copy()
            for b, (block, true_block) in enumerate(zip(gates, true.gate, strict=True)):
                block[others[rows]] = sign * true_block[columns]
                if b != fit.centre:
                    block[extra] = 0.0
            eta[others[rows]] = sign * true.eta[columns]
            eta[extra] = sums[row] / share[extra]
            propose(cost, gates, eta)


def _measure(like: MixingMeasure, gates: list[FloatArray], eta: FloatArray) -> MixingMeasure:
    """A measure with the blocks of `like` and other values."""
    atoms, used = {}, 0
    gates = list(gates)
    expert = {}
    for name in like.expert_blocks:
        width = like.atoms[name][0].size
        expert[name] = eta[:, used : used + width].reshape(like.atoms[name].shape)
        used += width
    for name, block in like.atoms.items():
        atoms[name] = expert[name] if name in expert else gates.pop(0).reshape(block.shape)
    return replace(like, masses=1.0 / (1.0 + np.exp(-atoms["c"])), atoms=atoms)


LOSS = replace(
    attention_l3.LOSS,
    name="dense-L3",
    source="Yan et al. (2025), eq. (12), to the nearest best approximation",
    represent=nearest_member,
)

PARTIAL = replace(
    attention_l3.PARTIAL,
    name="dense-L5",
    source="Yan et al. (2025), eq. (54), to the nearest best approximation",
    represent=nearest_member,
)
