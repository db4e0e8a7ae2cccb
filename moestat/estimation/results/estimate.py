"""One parameter of a fit, as tables have it."""

from __future__ import annotations

from dataclasses import dataclass

from moestat.estimation.data.naming import Term

__all__ = ["NOT_A_RATIO", "OF_INTERCEPT", "Estimate"]

OF_INTERCEPT, NOT_A_RATIO = "exp(intercept)", "as estimated"
"""Scales of estimates that are no rate or odds ratio."""


@dataclass(frozen=True)
class Estimate:
    """One parameter of a fit in words, with its error."""

    term: Term  # what it is of
    # estimate, standard error, their ratio, two-sided normal p-value and interval; NaN where there
    # is none.  The logarithm of a scale has no z: that it be 0 depends on the units.
    estimate: float
    error: float
    z: float
    pvalue: float
    lower: float
    upper: float
    # ``"estimated"``, ``"reference"``, ``"fixed"`` with a reason where the user gave none, ``"on a
    # bound"``, ``"not identified"`` or, where it is flat, ``"no finite value"``
    status: str
    scale: str = NOT_A_RATIO  # what it is, where coefficients are exponentiated
