"""Sweeps of inference: coverage of intervals and levels of tests."""

from __future__ import annotations

import numpy as np

from moestat.sweep.kinds.inference.analysis import summarise_inference
from moestat.sweep.kinds.inference.display import draw_inference, inference_page, inference_table
from moestat.sweep.kinds.inference.observed import Observed
from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.kinds.inference.spec import FIELDS, InferenceSpec
from moestat.sweep.kinds.runs.kind import kind_of_runs
from moestat.sweep.spec.plan import Cell


def measure_trial(spec: InferenceSpec, cell: Cell) -> dict[str, object]:
    """Judge the procedures of one cell: procedure -> label -> item -> value under ``losses``."""
    trial = spec.run(spec.curve(cell.curve), cell.n)
    observed = Observed(
        trial, np.random.default_rng(cell.data_seed), np.random.default_rng(cell.fit_seed)
    )
    return {
        "losses": {name: PROCEDURES[name].judge(observed) for name in trial.procedures},
    }


KIND = kind_of_runs(
    "inference",
    "a trial of intervals and tests",
    FIELDS,
    InferenceSpec,
    measure_trial,
    summarise=summarise_inference,
    table=inference_table,
    draw=draw_inference,
    page=inference_page,
)
