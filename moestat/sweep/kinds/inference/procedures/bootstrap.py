"""Bootstrap intervals of every parameter."""

from __future__ import annotations

from moestat.estimation.inference.bootstrap import bootstrap
from moestat.sweep.kinds.inference.observed import Observed, Outcomes
from moestat.sweep.kinds.inference.procedures.procedure import contains

_INTERVALS = (
    ("pairs", ("percentile", "basic", "bca")),
    ("parametric", ("percentile", "basic")),
    ("bayesian", ("percentile",)),
)


def judge(observed: Observed) -> Outcomes:
    """Whether each interval holds its parameter."""
    labels = {
        (kind, method): f"bootstrap {kind}, {method}"
        for kind, methods in _INTERVALS
        for method in methods
    }
    result = observed.result
    if result is None:
        return {label: {"fit": None} for label in labels.values()}
    found = {}
    for kind, methods in _INTERVALS:
        count = observed.trial.n_resamples
        again = bootstrap(result, count, kind, rng=observed.rng.spawn(1)[0], threads=1)
        for method in methods:
            ends = again.conf_int(method=method)
            found[labels[kind, method]] = {
                name: contains(tuple(ends[j]), value) for name, j, value in observed.targets
            }
    return found
