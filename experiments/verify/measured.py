"""What sweeps measured, from their stores; without a store there is nothing to read.

A verification keeps what it read beside its page, so that a clone without stores has it too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, singledispatch
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from experiments.claims.kinds import (
    Check,
    Contrast,
    ContrastEvidence,
    Evidence,
    Floored,
    Missing,
    QuantileEvidence,
    Replayed,
    ReplayEvidence,
    Slope,
    SlopeEvidence,
    TunedContrast,
)
from experiments.quantities import Quantity, entering, observed
from experiments.verify.sweeps import CurveRecords, gather_curves, records_digest
from moestat.base.types import FloatArray
from moestat.rates.rate import fit_rate
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.fit.spec import Curve
from moestat.sweep.kinds.runs.pages import Runs, runs_of_records
from moestat.sweep.kinds.training.analysis import TUNED_BY, best_place
from moestat.sweep.spec.experiments import find_spec, shipped
from moestat.sweep.spec.read import load_spec
from moestat.sweep.store.record import DONE, FAILED, Record
from moestat.sweep.store.store import open_store

__all__ = ["READ", "command", "experiment_of", "measured", "slope_evidence"]

READ = (Slope, Floored, Contrast, TunedContrast, Replayed)
"""Checks that read what a sweep found."""
_LATE = 1e-4
"""Sizes from this share of the largest on enter a slope."""


def command(experiment: str) -> str:
    """The command that makes an experiment's store."""
    return (
        f"python -m moestat.sweep run {experiment} --out figures/{experiment}.sqlite,"
        " then python -m experiments.verify"
    )


def experiment_of(check: Check) -> str:
    """Name of the shipped experiment that a check reads."""
    if isinstance(check, Floored):
        return _floored()[check.curve.removesuffix(", no expert near 0")]
    assert isinstance(check, (Slope, Contrast, TunedContrast, Replayed))
    return check.experiment


@cache
def _floored() -> dict[str, str]:
    """Experiment by curve, of the microscopes with floored masses."""
    names = [name for name in shipped() if name.startswith("microscope_floors")]
    return {curve.name: name for name in names for curve in load_spec(find_spec(name)).curves}


def measured(check: Check, folder: Path) -> tuple[Evidence, str] | None:
    """The evidence of a check from the store of its experiment, and where it is from.

    Parameters
    ----------
    check : Check
        One of the kinds in `READ`.
    folder : Path
        Where stores are.

    Returns
    -------
    (Evidence, str) or None
        The evidence, and the store with a digest; None where there is no store.  `Missing` where
        the store cannot be read or lacks what it takes.
    """
    experiment = experiment_of(check)
    if not (folder / f"{experiment}.sqlite").exists():
        return None
    try:
        return _read(check, folder)
    except SweepError as error:
        return Missing(str(error), broken=True), ""


@singledispatch
def _read(check: Any, folder: Path) -> tuple[Evidence, str]:
    raise TypeError(f"nothing to read for a check of kind {type(check).__name__}")


@cache
def _curves(experiment: str, folder: Path, modified: int) -> dict[str, CurveRecords]:
    """Records by curve; a store that was written to since is read again."""
    names = [curve.name for curve in load_spec(find_spec(experiment)).curves]
    return gather_curves(experiment, names, folder) or {}


def _records(experiment: str, curve: str, folder: Path) -> CurveRecords:
    modified = (folder / f"{experiment}.sqlite").stat().st_mtime_ns
    return _curves(experiment, folder, modified)[curve]


@_read.register
def _(check: Slope, folder: Path) -> tuple[Evidence, str]:
    found = _records(check.experiment, check.curve, folder)
    if not found.records:
        return Missing(f"no cell of it: {command(check.experiment)}"), ""
    return slope_evidence(check.quantity, found.curve, found.records), found.source


@_read.register
def _(check: Replayed, folder: Path) -> tuple[Evidence, str]:
    found = _records(check.experiment, check.curve, folder)
    kept = observed(entering(found.curve, found.records), "loss")
    if len({record.n for record, _ in kept}) < 2:
        return Missing(f"no slope of it: {command(check.experiment)}"), ""
    n: FloatArray = np.array([record.n for record, _ in kept], dtype=float)
    rate = fit_rate(n, [error for _, error in kept], n_bootstrap=0)
    return ReplayEvidence(rate.slope, rate.interval), found.source


@_read.register
def _(check: Floored, folder: Path) -> tuple[Evidence, str]:
    from experiments.pages.floors import late_quantile

    path = folder / f"{experiment_of(check)}.sqlite"
    slope = late_quantile(path, check.curve, check.size, check.block)
    if slope is None:
        return Missing("too few cells of several atoms"), ""
    with open_store(path) as store:
        source = f"{path.name}, digest {records_digest(store.records())}"
    return QuantileEvidence(slope.slope, (slope.low, slope.high)), source


def slope_evidence(
    quantity: Quantity, curve: Curve, records: Sequence[Record]
) -> SlopeEvidence | Missing:
    """The slope of a quantity over the last four decades of sample sizes.

    Parameters
    ----------
    quantity : str or (int, str)
        As `experiments.quantities.observed` takes it.
    curve : Curve
        The curve.
    records : sequence of Record
        Its records.

    Returns
    -------
    SlopeEvidence or Missing
        The slope, or why there is none.
    """
    if not records:
        return Missing("no cell has a result")
    first = 0.999 * _LATE * max(record.n for record in records)
    late = [record for record in records if record.n >= first]
    kept = observed(entering(curve, late), quantity)
    sizes = sorted({record.n for record, _ in kept})
    if len(sizes) < 2:
        return Missing(f"estimates with this error at {len(sizes)} sample sizes, a slope takes 2")
    n: FloatArray = np.array([record.n for record, _ in kept], dtype=float)
    rate = fit_rate(n, [error for _, error in kept], n_bootstrap=0)
    done = [record for record in late if record.status == DONE]
    return SlopeEvidence(
        slope=rate.slope,
        interval=rate.interval,
        n=(float(sizes[0]), float(sizes[-1])),
        n_fits=len(kept),
        n_certified=sum(record.certified for record, _ in kept),
        n_left_out=len(done) - len(kept),
        n_failed=sum(record.status == FAILED for record in late),
        curvature_p_value=None if math.isnan(rate.curvature_p_value) else rate.curvature_p_value,
    )


@_read.register(Contrast)
@_read.register(TunedContrast)
def _(check: Contrast | TunedContrast, folder: Path) -> tuple[Evidence, str]:
    path = folder / f"{check.experiment}.sqlite"
    with open_store(path) as store:
        done = [record for record in store.records() if record.status == DONE]
    runs = runs_of_records(done, (check.metric, TUNED_BY))
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
    evidence = ContrastEvidence(mean, (mean - half, mean + half), len(both))
    return evidence, f"{path.name}, digest {records_digest(done)}"


def _places(check: Contrast | TunedContrast, runs: Runs) -> Sequence[tuple[str, float | None]]:
    """Both curves with their places; None where a method has no runs to be tuned by."""
    if isinstance(check, Contrast):
        return [(curve, float(x)) for curve, x in (check.larger, check.smaller)]

    def tuned(curve: str) -> float | None:
        own = {x: [*at.values()] for (c, x, m), at in runs.items() if (c, m) == (curve, TUNED_BY)}
        return best_place(own)

    return [(curve, tuned(curve)) for curve in (check.larger, check.smaller)]
