"""Contrasts of metrics, read off the store of a sweep of networks, or off its report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from experiments.claims.checks import Contrast, TunedContrast
from experiments.claims.evidence import ContrastEvidence, Missing
from experiments.verify.sweeps import records_digest
from experiments.verify.tables import command, page_digest
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.runs.single_runs import Runs, runs_of_records, runs_on_page
from moestat.sweep.kinds.training.analysis import TUNED_BY, best_place
from moestat.sweep.report.escape import markdown_text
from moestat.sweep.store.record import DONE
from moestat.sweep.store.store import is_store, open_store

__all__ = ["contrast_evidence"]


def contrast_evidence(
    check: Contrast | TunedContrast, folder: Path
) -> tuple[ContrastEvidence | Missing, str]:
    """The difference that a check is on.

    Parameters
    ----------
    check : Contrast or TunedContrast
        The check.
    folder : Path
        Where the stores of the experiments are, and their reports, which are read where there is
        no store.  A sweep of networks is not run for a check.

    Returns
    -------
    evidence : ContrastEvidence or Missing
        The difference over the replicates that have both runs.
    source : str
        What it was read from, with a digest; empty where it is missing.
    """
    try:
        runs, source = _runs(check, folder)
    except SweepError as error:
        return Missing(str(error), broken=True), ""
    first, second = (
        runs.get((curve, x, check.metric), {}) if x is not None else {}
        for curve, x in _places(check, runs)
    )
    both = sorted(first.keys() & second.keys())
    if len(both) < 2:
        said = f"{len(both)} of the 2 or more replicates that it takes: {command(check.experiment)}"
        return Missing(said), ""
    differences = np.array([first[replicate] - second[replicate] for replicate in both])
    mean, error = float(differences.mean()), float(stats.sem(differences))
    half = float(stats.t.ppf(0.975, len(both) - 1)) * error
    return ContrastEvidence(mean, (mean - half, mean + half), len(both)), source


def _places(check: Contrast | TunedContrast, runs: Runs) -> Sequence[tuple[str, float | None]]:
    """Both curves with their places; None where a method has no runs to be tuned by."""
    if isinstance(check, Contrast):
        return [(markdown_text(curve), float(x)) for curve, x in (check.larger, check.smaller)]
    curves = (markdown_text(check.larger), markdown_text(check.smaller))
    return [
        (
            curve,
            best_place(
                {
                    x: [*values.values()]
                    for (c, x, metric), values in runs.items()
                    if (c, metric) == (curve, TUNED_BY)
                }
            ),
        )
        for curve in curves
    ]


def _runs(check: Contrast | TunedContrast, folder: Path) -> tuple[Runs, str]:
    """Single runs from the store or else the page, with curves as pages name them."""
    path, page = (folder / f"{check.experiment}{suffix}" for suffix in (".sqlite", ".md"))
    if is_store(path):
        with open_store(path) as store:
            done = [record for record in store.records() if record.status == DONE]
        runs = runs_of_records(done, (check.metric, TUNED_BY))
        source = f"{path.name}, digest {records_digest(done)}"
        return {(markdown_text(c), x, metric): at for (c, x, metric), at in runs.items()}, source
    if page.is_file():
        return runs_on_page(
            page.read_text(encoding="utf-8")
        ), f"{page.name}, digest {page_digest(page)}"
    return {}, ""
