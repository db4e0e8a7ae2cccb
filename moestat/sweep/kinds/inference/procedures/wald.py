"""Wald intervals of every parameter, by each covariance."""

from __future__ import annotations

import numpy as np

from moestat.sweep.kinds.inference.observed import Observed, Outcomes
from moestat.sweep.kinds.inference.procedures.procedure import contains


def covariances(observed: Observed) -> tuple[str, ...]:
    """Those that are judged: by groups where there are groups."""
    kinds = ("observed", "expected", "HC0", "HC1")
    return (*kinds, "cluster") if observed.trial.group_size > 1 else kinds


def judge(observed: Observed) -> Outcomes:
    """Whether each interval holds its parameter."""
    kinds = covariances(observed)
    result = observed.result
    if result is None:
        return {f"Wald, {kind}": {"fit": None} for kind in kinds}
    found = {}
    for kind in kinds:
        groups = observed.groups if kind == "cluster" else None
        # By hand: an interval that should not be trusted would warn.
        half = 1.959963984540054 * result.get_robustcov_results(kind, groups).bse
        ends = np.column_stack([result.theta - half, result.theta + half])
        found[f"Wald, {kind}"] = {
            name: contains(tuple(ends[j]), value) for name, j, value in observed.targets
        }
    return found
