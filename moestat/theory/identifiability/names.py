"""Descriptions of parameters with the distribution of a truth, atom by atom.

The names are read off the functions of the atoms, their weights and means on a grid, after the
parameters were found; the search does not know them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import TypeVar

import numpy as np
from scipy.special import softmax

from moestat.base.types import FloatArray
from moestat.model.family import Family

T = TypeVar("T")

_SAME = 1e-4  # of the largest value of a function
_SATURATED = 1e-8
_LEAST_SHARE = 1e-3  # component of a direction, of the largest, that is worth a word


class _Functions:
    """Weights (k, n), predictors (k, q, n) and shares of classes (k, K, n) at inputs (d, n)."""

    def __init__(self, family: Family, theta: FloatArray, X: FloatArray) -> None:
        self.weights = family.gate_probabilities(theta, X.T).T
        self.means = family.predictors(theta, X)
        self.regression = family.is_regression
        self.raw = family.is_regression and not family.gate.normalised
        self.shares: FloatArray | None = None
        if family.likelihood.support is not None:
            logits = np.concatenate([self.means, np.zeros_like(self.means[:, :1])], axis=1)
            self.shares = self.weights[:, None] * softmax(logits, axis=1)


def _alike(one: FloatArray, other: FloatArray) -> bool:
    size = max(1.0, float(np.abs(other).max()))
    return bool(np.abs(one - other).max() < _SAME * size)


def name_representation(
    family: Family, theta: FloatArray, truth_family: Family, truth: FloatArray, X: FloatArray
) -> str:
    """Describe parameters that have the truth's distribution at X (d, n) by the true atoms.

    A description is, for example, ``"true atoms 0, 1; 1 dead atom"``; atoms are counted from 0.
    """
    fit, true = _Functions(family, theta, X), _Functions(truth_family, truth, X)
    unexplained = list(range(family.n_experts))
    missing = list(range(truth_family.n_experts))

    def same_expert(i: int, j: int) -> bool:
        return _alike(fit.means[i], true.means[j])

    def equal(i: int, j: int) -> bool:
        return _alike(fit.weights[i], true.weights[j]) and same_expert(i, j)

    def name_mirrored(i: int, j: int) -> str:
        """Opposite score and opposite expert of a true atom."""
        opposite = fit.raw and _alike(fit.weights[i], 1.0 - true.weights[j])
        flipped = opposite and _alike(fit.means[i], -true.means[j])
        return f"true atom {j} flipped: opposite score, opposite expert" if flipped else ""

    represented = _take(unexplained, missing, 1, equal)
    dead = [i for i in unexplained if _vanishes(fit, i)]
    unexplained = [i for i in unexplained if i not in dead]
    parts = [*_take(unexplained, missing, 2, partial(_split, fit, true)).values()]
    parts += _take(unexplained, missing, 1, name_mirrored).values()
    same = _take(unexplained, missing, 1, same_expert)
    if represented:
        parts.insert(
            0, f"true atom{'s' * (len(represented) > 1)} {', '.join(map(str, represented))}"
        )
    if same:
        parts.append(f"the experts of true atoms {', '.join(map(str, same))} under other gates")
    if dead:
        kind = "dead atom" if fit.regression else "atom of weight 0 to rounding"
        parts.append(f"{len(dead)} {kind.replace('atom', 'atoms', len(dead) > 1)}")
    constant = [i for i in unexplained if np.ptp(fit.weights[i]) < _SAME]
    if constant:
        unexplained = [i for i in unexplained if i not in constant]
        full = all(fit.weights[i].min() > 1.0 - _SATURATED for i in constant)
        parts.append("an atom with a saturated gate" if full else "an atom with a constant gate")
    if unexplained or missing:
        parts.append("atoms without a name")
    return "; ".join(parts)


def _vanishes(fit: _Functions, i: int) -> bool:
    if fit.regression:
        return bool(np.abs(fit.weights[i] * fit.means[i, 0]).max() < _SAME)
    return bool(fit.weights[i].max() < _SAME)


def _take(
    unexplained: list[int], missing: list[int], size: int, test: Callable[..., T]
) -> dict[int, T]:
    """True atoms j that `size` fitted atoms represent, with the result of ``test(*fitted, j)``.

    The atoms are removed from both lists.
    """
    represented = {}
    for j in list(missing):
        for fitted in combinations(unexplained, size):
            word = test(*fitted, j)
            if word:
                represented[j] = word
                missing.remove(j)
                for i in fitted:
                    unexplained.remove(i)
                break
    return represented


def _split(fit: _Functions, true: _Functions, one: int, two: int, j: int) -> str:
    """How two fitted atoms add up to true atom j, in words; empty if they do not."""
    pair = (one, two)
    same_expert = all(_alike(fit.means[i], true.means[j]) for i in pair)
    if same_expert and _alike(fit.weights[one] + fit.weights[two], true.weights[j]):
        return f"true atom {j} split: one expert, weights that add up"
    same_gate = fit.regression and all(_alike(fit.weights[i], true.weights[j]) for i in pair)
    if same_gate and _alike(fit.means[one] + fit.means[two], true.means[j]):
        return f"true atom {j} split: one gate, experts that add up"
    shares = fit.shares, true.shares
    if shares[0] is None or shares[1] is None:
        return ""
    mixed = _alike(shares[0][one] + shares[0][two], shares[1][j])
    return f"true atom {j} split: two other experts mix to the true one" if mixed else ""


def name_direction(
    names: Sequence[str], direction: FloatArray, at: FloatArray, straight: bool
) -> str:
    """A direction (F,) at a point (F,) in the names of the parameters.

    A straight line on which some blocks are multiplied by a common factor is called so.
    """
    size = float(np.abs(direction).max())
    used = np.flatnonzero(np.abs(direction) > _LEAST_SHARE * size)
    unit = direction / direction[used[0]]
    plain = np.all(np.abs(np.abs(unit[used]) - 1.0) < 1e-6)
    if straight and not plain and np.all(at[used] != 0.0):
        factors = direction[used] / at[used]
        if np.ptp(factors) < 1e-4 * np.abs(factors).max():
            return f"a common factor of {', '.join(names[j] for j in used.tolist())}"
    return ", ".join(f"{unit[j]:+.3g} {names[j]}" for j in used.tolist())
