"""Tests of the fitted number of experts against one more."""

from __future__ import annotations

from moestat.estimation.inference.hypotheses import likelihood_ratio
from moestat.estimation.inference.order import bootstrap_lrt
from moestat.estimation.searching import search_of
from moestat.sweep.kinds.inference.observed import Observed, Outcomes

_LEVEL = 0.05


def judge(observed: Observed) -> Outcomes:
    """Whether each test rejects at level 5%; chi-square is what one must not do."""
    small = observed.result
    names = ("bootstrap likelihood ratio", "chi-square by parameters")
    if small is None:
        return {name: {"one more expert": None} for name in names}
    trial = observed.trial
    large = observed.fitted(small.family.with_experts(trial.n_experts + 1))
    starts = [search_of(trial.n_starts, searches=1)]
    rng = observed.rng.spawn(1)[0]
    again = bootstrap_lrt(small, large, trial.n_resamples, rng=rng, threads=1, starts=starts)
    df = large.family.n_free_params - small.family.n_free_params
    naive = likelihood_ratio(small.log_likelihood, large.log_likelihood, df)
    pvalues = again.pvalue, naive.pvalue
    return {
        name: {"one more expert": float(p <= _LEVEL)}
        for name, p in zip(names, pvalues, strict=True)
    }
