"""Hierarchical gate: a tree of softmax gates, whose leaves are the experts.

``{"name": "hierarchical", "tree": [[1, 2], [3, 4]]}``: the first gate chooses between experts 1, 2
and experts 3, 4, a gate of each pair then one of the two.  Nodes may have two children or more,
and leaves any depth.  The probability of an expert is the product of those of the children on the
way to it, ``exp(s_j) / sum_l exp(s_l)`` with ``s_j = v_j' x + c_j`` and 0 for the last child.

Every expert carries the scores of the nodes on its way, level by level: c1 and v1 of the first
gate, c2 and v2 of the second, with ``_1``, ``_2`` behind them where a node has more than two
children.  Those of one node are equal for the experts below it, and `side` is known: which child
the way takes, the last possible number at the last child, -1 where the way has ended.  With fewer
experts than leaves the further leaves are cut off.

Source: Jordan and Jacobs (1994), eqs. (1) to (4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from moestat.base.validate import is_sequence, short
from moestat.compiler.jit import device
from moestat.compiler.math import exp, log
from moestat.model.constraints import Constraint
from moestat.model.members import Channel, Gate, Units
from moestat.model.reference import log_sum_exp

_NEVER = -1000.0
"""Score of a child that a node does not have; its exponential is 0."""


@cache
def _block(levels: int, size: int) -> Callable[..., None]:
    n = levels * (1 + size)

    @device
    def block(eta, phi, m, order, a, da, d2a):
        """Log-probability, by levels the sum of ``s_side - log(1 + sum exp s)``.

        With the probabilities p of the children: ``d_j = [side = j] - p_j`` and ``d_jl = -p_j
        ([j = l] - p_l)``.  Channels of a level are (side, s_0, s_1 ..).
        """
        for b in range(m):
            a[b] = 0.0
        if order > 1:
            for r in range(n * (n + 1) // 2):
                for b in range(m):
                    d2a[r, b] = 0.0
        for first in range(0, n, 1 + size):
            for b in range(m):
                side = eta[first, b]
                top = 0.0
                for c in range(first + 1, first + 1 + size):
                    top = max(top, eta[c, b])
                total = exp(-top)
                for c in range(first + 1, first + 1 + size):
                    total += exp(eta[c, b] - top)
                on = 1.0 if side >= 0.0 else 0.0
                a[b] -= on * (top + log(total))
                da[first, b] = 0.0
                for c in range(first + 1, first + 1 + size):
                    p = exp(eta[c, b] - top) / total
                    da[c, b] = -on * p
                    if side == c - first - 1:
                        a[b] += eta[c, b]
                        da[c, b] += 1.0
                    if order > 1:
                        for e in range(first + 1, c):
                            q = exp(eta[e, b] - top) / total
                            d2a[c * (c + 1) // 2 + e, b] = on * p * q
                        d2a[c * (c + 1) // 2 + c, b] = -on * p * (1.0 - p)

    return block


def _names(levels: int, size: int) -> list[tuple[str, list[tuple[str, str]]]]:
    """For each level of the tree the block that holds the side of a node, and its channels.

    A node has one score for two children and `size` scores for more; each score has an intercept
    and slopes, which are the pair of names.
    """
    return [
        (
            f"side{level}",
            [
                (f"c{level}{end}", f"v{level}{end}")
                for end in ([""] if size == 1 else [f"_{j}" for j in range(1, size + 1)])
            ],
        )
        for level in range(1, levels + 1)
    ]


def _leaves(tree: Any) -> list[int]:
    return [leaf for part in tree for leaf in _leaves(part)] if is_sequence(tree) else [tree]


def _nodes(tree: Any, level: int = 0) -> Iterator[tuple[int, list[list[int]]]]:
    """Level of each node, and the leaves below each of its children."""
    if is_sequence(tree):
        yield level, [_leaves(part) for part in tree]
        for part in tree:
            yield from _nodes(part, level + 1)


def _cut(tree: Any, k: int) -> Any:
    """The tree with its first k leaves, without nodes of one child; None without leaves."""
    if not is_sequence(tree):
        return tree if tree < k else None
    parts = [part for part in (_cut(child, k) for child in tree) if part is not None]
    return (parts[0] if len(parts) == 1 else tuple(parts)) if parts else None


def _experts(leaves: list[int]) -> str:
    return "expert" + "s" * (len(leaves) > 1) + " " + ", ".join(str(i + 1) for i in leaves)


def _tupled(tree: Any) -> Any:
    if not is_sequence(tree):
        return tree
    if len(tree) < 2:
        raise ValueError(
            f"hierarchical: a node of the tree must have two or more children, got {tree}"
        )
    return tuple(_tupled(part) for part in tree)


def _from_0(tree: Any) -> Any:
    return tuple(map(_from_0, tree)) if is_sequence(tree) else tree - 1


@cache
def _build(tree: Any) -> Gate:
    leaves = _leaves(tree)
    levels = 1 + max(level for level, _ in _nodes(tree))
    size = max(len(children) for _, children in _nodes(tree)) - 1
    names = _names(levels, size)

    def constraints(k: int) -> tuple[Constraint, ...]:
        """Coefficients of k experts that are known, and those that are equal."""
        if k > len(leaves):
            raise ValueError(
                f"hierarchical: the tree has {len(leaves)} leaves, fewer than {k} experts"
            )
        known_constraints: list[Constraint] = []
        past_leaf = {(level, i) for level in range(levels) for i in range(k)}
        for level, children in _nodes(_cut(tree, k)):
            side, scores = names[level]
            below = tuple(sorted(leaf for leaves_below in children for leaf in leaves_below))
            past_leaf -= {(level, i) for i in below}
            for j, leaves_below in enumerate(children):
                code = j if j < len(children) - 1 else len(scores)
                known_constraints += [
                    Constraint(side, experts=(i,), value=float(code)) for i in leaves_below
                ]
            for j, (intercept, slope) in enumerate(scores):
                known, heading = (_NEVER, 0.0), ""
                if j < len(children) - 1:
                    known = None, None
                    heading = f"{_experts(children[j])} against {_experts(children[-1])}"
                known_constraints += [
                    Constraint(intercept, experts=below, value=known[0], heading=heading),
                    Constraint(slope, experts=below, value=known[1], heading=heading),
                ]
        for level, i in sorted(past_leaf):
            side, scores = names[level]
            known_constraints.append(Constraint(side, experts=(i,), value=-1.0))
            known_constraints += [
                Constraint(leaves_below, experts=(i,), value=0.0)
                for pair in scores
                for leaves_below in pair
            ]
        return tuple(known_constraints)

    def channels(n_features: int) -> tuple[Channel, ...]:
        """Sides and scores, level by level."""
        return tuple(
            channel
            for side, scores in names
            for channel in (Channel(side), *(Channel(*pair) for pair in scores))
        )

    def reference(blocks, X, means):
        """Log-probabilities (k, n) at X (n, d)."""
        total = 0.0
        for side, scores in names:
            s = [blocks[v] @ X.T + blocks[c][:, None] for c, v in scores]
            s = np.array([*s, np.zeros_like(s[0])])
            code = blocks[side].real
            chosen = (np.arange(len(s))[:, None] == code)[:, :, None]
            on = (code >= 0.0)[:, None]
            total = total + np.where(on, np.where(chosen, s, 0.0).sum(axis=0) - log_sum_exp(s), 0.0)
        return total

    def typical(rng, n_experts, n_features):
        """Nodes that part the experts."""
        k, blocks = n_experts, {}
        for side, scores in names:
            blocks[side] = np.zeros(k)
            for intercept, slope in scores:
                blocks[intercept] = np.repeat(rng.uniform(-0.5, 0.5), k)
                blocks[slope] = np.repeat(rng.uniform(1.0, 2.0, (1, n_features)), k, axis=0)
        for constraint in constraints(k):
            if constraint.value is not None:
                blocks[constraint.block][list(constraint.experts or ())] = constraint.value
        return blocks

    box = {side: (-1.0, float(len(scores))) for side, scores in names}
    return Gate(
        name="hierarchical",
        channels=channels,
        block=_block(levels, size),
        reference=reference,
        typical=typical,
        mass=None,
        translations=(),
        bounds=box
        | {name: (-30.0, 30.0) for _, scores in names for pair in scores for name in pair},
        source="Jordan and Jacobs (1994), eqs. (1) to (4)",
        units=Units(),
        options={"tree": tree},
        configure=make,
        constraints=constraints,
        nodes=tuple(tuple(intercept for intercept, _ in scores) for _, scores in names),
    )


def make(tree: Any = ((0, 1), (2, 3))) -> Gate:
    """The gate with this tree of experts, from 1; stored trees, and older ones, count from 0."""
    known = _tupled(tree)
    leaves = _leaves(known)
    if all(type(leaf) is int for leaf in leaves) and min(leaves) == 1:
        known = _from_0(known)
        leaves = _leaves(known)
    if not is_sequence(known) or not all(type(leaf) is int for leaf in leaves):
        raise ValueError(f"hierarchical: tree must be lists within a list, got {short(tree)}")
    if sorted(leaves) != list(range(len(leaves))):
        raise ValueError(
            "hierarchical: the leaves of the tree must be the experts 1, 2, ..., each once, got"
            f" {short(tree)}"
        )
    return _build(known)


GATE = make()
