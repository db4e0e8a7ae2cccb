"""Intervals of the conditional mean by the delta method."""

from __future__ import annotations

from moestat.sweep.kinds.inference.observed import Observed, Outcomes
from moestat.sweep.kinds.inference.procedures.procedure import contains


def judge(observed: Observed) -> Outcomes:
    """Whether each interval holds the conditional mean, by place in the design."""
    kinds = ("observed", "HC0")
    result = observed.result
    if result is None:
        return {f"mean, {kind}": {"fit": None} for kind in kinds}
    X, means = observed.places
    found = {}
    for kind in kinds:
        ends = result.get_robustcov_results(kind).get_prediction(X).conf_int()
        found[f"mean, {kind}"] = {
            f"at {X[t].round(2).tolist()}": contains(tuple(ends[t]), float(means[t]))
            for t in range(len(X))
        }
    return found
