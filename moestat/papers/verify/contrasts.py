"""Contrasts of metrics, read off the store of a sweep of networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import stats

from moestat.papers.claims.checks import Contrast
from moestat.papers.claims.evidence import ContrastEvidence, Missing
from moestat.sweep.errors import SweepError
from moestat.sweep.record import DONE, Record
from moestat.sweep.store import is_store, open_store

__all__ = ["contrast_evidence"]


def contrast_evidence(check: Contrast, folder: Path) -> ContrastEvidence | Missing:
    """The difference that a check is on.

    Parameters
    ----------
    check : Contrast
        The check.
    folder : Path
        Where the stores of the experiments are.  A sweep of networks is not run for a check.

    Returns
    -------
    ContrastEvidence or Missing
        The difference over the replicates that have both runs.
    """
    path = folder / f"{check.experiment}.sqlite"
    if not is_store(path):
        return Missing(f"there is no store {path.name}: run the experiment")
    try:
        with open_store(path) as store:
            done = [record for record in store.records() if record.status == DONE]
    except SweepError as error:
        return Missing(str(error), broken=True)
    first, second = (_by_replicate(done, check.metric, *at) for at in (check.larger, check.smaller))
    both = sorted(first.keys() & second.keys())
    if len(both) < 2:
        return Missing(f"{len(both)} of the 2 or more replicates that it takes")
    differences = np.array([first[replicate] - second[replicate] for replicate in both])
    mean, error = float(differences.mean()), float(stats.sem(differences))
    reach = float(stats.t.ppf(0.975, len(both) - 1)) * error
    return ContrastEvidence(mean, (mean - reach, mean + reach), len(both))


def _by_replicate(records: list[Record], metric: str, curve: str, x: float) -> dict[int, float]:
    """The metric of the runs of one curve at one place."""
    return {r.replicate: r.losses[metric] for r in records if r.curve == curve and r.n == x}
