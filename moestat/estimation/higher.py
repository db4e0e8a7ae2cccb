"""The probability that a higher maximum exists, from what a search has seen.

A logistic model whose coefficients are those of `benchmarks/calibration.py`: default calls on
problems of every likelihood, half of them held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.rules import HIGHER, SAME_HEIGHT
from moestat.estimation.runs import Seen

__all__ = ["covariates", "expected_distinct", "probability_of_higher"]


def probability_of_higher(seen: Seen, n_experts: int, agreement: float) -> float:
    """Estimated probability that a maximum exists which is higher than the end of a search.

    Parameters
    ----------
    seen : Seen
        What it has seen.
    n_experts : int
        Number of experts k.
    agreement : float
        Share of its runs that reached the best height.

    Examples
    --------
    Eight starts of four kinds that end alike, and eight searches that all end elsewhere:

    >>> alike = Seen(pool=[(kind, -100.0) for kind in "abcdabcd"])
    >>> apart = Seen(pool=[("a", float(j)) for j in range(8)], ends=[float(j) for j in range(8)])
    >>> probability_of_higher(alike, 2, 1.0) < 0.1, probability_of_higher(apart, 2, 0.125) > 0.4
    (True, True)
    """
    score = float(np.dot(HIGHER.coefficients, covariates(seen, n_experts, agreement)))
    return float(1.0 / (1.0 + np.exp(-score)))


def covariates(seen: Seen, n_experts: int, agreement: float) -> FloatArray:
    """What the probability depends on: 1, and three numbers of what a search has seen.

    These are the logarithm of how many heights a pool of four starts an expert comes to, the share
    of runs at the best height, and the share of kinds of starts that came to the best of the pool.
    """
    heights = [height for _, height in seen.pool if np.isfinite(height)]
    counts = _counts(heights)
    best = max(heights, default=0.0)
    kinds = {kind for kind, _ in seen.pool}
    near = {kind for kind, height in seen.pool if height >= best - SAME_HEIGHT}
    distinct = expected_distinct(counts, 4 * n_experts)
    return np.array([1.0, np.log(distinct), agreement, len(near) / max(len(kinds), 1)])


def _counts(heights: Sequence[float]) -> list[int]:
    """How many runs came to each height."""
    counts: list[int] = []
    last = np.inf
    for height in sorted(heights, reverse=True):
        if last - height <= SAME_HEIGHT:
            counts[-1] += 1
        else:
            counts, last = [*counts, 1], height
    return counts


def expected_distinct(counts: Sequence[int], size: int) -> float:
    """Expected number of different heights among so many of the runs; Hurlbert (1971), eq. (5)."""
    total = sum(counts)
    size = min(size, total)
    if size == 0:
        return 1.0

    def log_choose(n: int) -> float:
        return lgamma(n + 1) - lgamma(size + 1) - lgamma(n - size + 1)

    missed = [
        np.exp(log_choose(total - c) - log_choose(total)) if total - c >= size else 0.0
        for c in counts
    ]
    return float(len(counts) - sum(missed))
