"""What a procedure is to a sweep: a function of a data set, and what it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moestat.sweep.kinds.inference.observed import Observed, Outcomes


@dataclass(frozen=True)
class Procedure:
    """Something that statisticians do after a fit, and its promise."""

    judge: Callable[[Observed], Outcomes]  # ``judge(observed)``: outcomes by label and item
    what: str  # what the mean of the outcomes is
    nominal: float | None  # what it should be


def contains(ends: tuple[float, float], value: float) -> float | None:
    """Whether an interval holds a value, 1 or 0; None for an interval with an end that is NaN."""
    low, high = ends
    if low != low or high != high:
        return None
    return float(low <= value <= high)
