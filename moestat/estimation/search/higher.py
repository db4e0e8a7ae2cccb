"""The probability that a higher maximum exists, from the heights that a search has seen.

A logistic model whose coefficients are those of `benchmarks/calibration.py`: default calls on
problems of every likelihood, half of them held out, as if they had stopped after each of their
searches.  So a search can stop by it, and a fit can say it.  Posterior modes with the weak prior
have coefficients of their own, which the record of a search holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import lgamma

import numpy as np

from moestat.base.types import FloatArray
from moestat.estimation.rules import HIGHER, SAME_HEIGHT
from moestat.estimation.search.runs import RunEnd

__all__ = ["Mode", "SearchRecord", "covariates", "expected_distinct", "probability_of_higher"]


@dataclass
class Mode:
    """A mode that runs have reached."""

    end: RunEnd
    """Where the first run ended."""
    starts: int = 0
    """Number of starts that reached it."""
    runs: int = 0
    """Number of runs that reached it, from starts and from neighbours of the best mode."""
    collapsed: int = 0
    """Number of higher modes that led to an expert that has collapsed, and were left out."""


@dataclass
class SearchRecord:
    """The record of a search, from which the probability of a higher maximum is estimated."""

    pool: list[float] = field(default_factory=list[float])
    """Heights of the runs of its first pools after a first rung."""
    ends: list[float] = field(default_factory=list[float])
    """Heights of the independent ends of its searches, in turn; none where the pools agreed."""
    coefficients: tuple[float, ...] = HIGHER.coefficients
    """Coefficients of the probability: those of maxima, or of posterior modes."""
    agreeing: tuple[int, int] | None = None
    """Number of runs of the pools that reached the best height, and number of all runs; None if
    most runs do not agree, or a search ended higher."""

    @property
    def modes_on_all(self) -> Sequence[Mode]:
        """None: a search for the highest maximum keeps no modes."""
        return ()

    def chance(self, n_experts: int, reached: float, runs: int) -> float:
        """Estimated probability of a higher maximum; see `probability_of_higher`."""
        return probability_of_higher(self, n_experts, reached, runs)


def probability_of_higher(record: SearchRecord, n_experts: int, reached: float, runs: int) -> float:
    """Estimated probability that a maximum exists which is higher than the end of a search.

    Searches that find nothing higher do not make a higher maximum more probable: where most runs of
    the pools agree on the height at which the searches end, the smaller of the estimates from the
    pools and from the searches counts.

    Parameters
    ----------
    record : SearchRecord
        The heights that the search has seen.
    n_experts : int
        Number of experts k.
    reached, runs : int
        How many of its runs reached the best height, and all of them.

    Examples
    --------
    Eight starts of four kinds that end alike, and eight searches that all end elsewhere:

    >>> alike = SearchRecord(pool=[-100.0] * 8)
    >>> apart = SearchRecord(pool=[float(j) for j in range(8)])
    >>> probability_of_higher(alike, 2, 8, 8) < 0.1, probability_of_higher(apart, 2, 1, 8) > 0.4
    (True, True)
    """
    evidence = [(reached, runs), *([record.agreeing] if record.agreeing else [])]
    scores = [
        float(np.dot(record.coefficients, covariates(record, n_experts, *each)))
        for each in evidence
    ]
    return float(1.0 / (1.0 + np.exp(-min(scores))))


def covariates(record: SearchRecord, n_experts: int, reached: float, runs: int) -> FloatArray:
    """The covariates of the probability: 1, and two numbers from the record of a search.

    These are the logarithm of the expected number of heights that a pool of four starts for each
    expert reaches, and the number of further runs that reached the best height divided by the
    number of runs plus 1.  The additional run makes the share of few runs smaller: a search may
    stop after any run, and few runs that agree are less evidence than many.
    """
    counts = _counts([height for height in record.pool if np.isfinite(height)])
    distinct = expected_distinct(counts, 4 * n_experts)
    return np.array([1.0, np.log(distinct), (reached - 1.0) / (runs + 1.0)])


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
