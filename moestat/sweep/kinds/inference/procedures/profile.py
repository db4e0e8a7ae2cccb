"""Profile likelihood intervals of every parameter."""

from __future__ import annotations

from moestat.estimation.inference.profile import profile
from moestat.estimation.results import MoEResults
from moestat.sweep.kinds.inference.observed import Observed, Outcomes
from moestat.sweep.kinds.inference.procedures.procedure import contains


def judge(observed: Observed) -> Outcomes:
    """Whether each interval holds its parameter; no answer where a higher likelihood was met."""
    result = observed.result
    if result is None:
        return {"profile": {"fit": None}}
    return {
        "profile": {
            name: contains(_interval(result, j), value) for name, j, value in observed.targets
        }
    }


def _interval(result: MoEResults, j: int) -> tuple[float, float]:
    try:
        return profile(result, result.param_names[j]).interval
    except ValueError:
        return float("nan"), float("nan")
