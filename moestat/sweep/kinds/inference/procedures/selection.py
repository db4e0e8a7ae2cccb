"""Criteria of the number of experts: whether each chooses that of the truth."""

from __future__ import annotations

import warnings

from moestat.base.warnings import MoEWarning
from moestat.estimation.inference.dendrogram import dendrogram
from moestat.estimation.inference.selection import CRITERIA, select
from moestat.estimation.searching import search_of
from moestat.sweep.kinds.inference.observed import Observed, Outcomes


def judge(observed: Observed) -> Outcomes:
    """For each criterion whether it chooses k*, and whether it chooses more."""
    trial = observed.trial
    true, X, y = trial.truth.family.n_experts, *observed.data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoEWarning)
        table = select(
            trial.family,
            X,
            y,
            k=range(1, trial.n_experts + 1),
            folds=3,
            rng=observed.rng.spawn(1)[0],
            starts=[search_of(trial.n_starts, searches=1)],
            threads=1,
        )
    # The dendrogram is of the fit with the most experts.
    chosen = {name: table.chosen(name) for name in CRITERIA}
    largest = table.results[trial.n_experts]
    chosen["dendrogram"] = dendrogram(largest.family, largest.theta, X, y).n_experts
    return {
        **{f"{name} right": {"k": float(k == true)} for name, k in chosen.items()},
        **{f"{name} too many": {"k": float(k > true)} for name, k in chosen.items()},
    }
