"""The cell of a sweep of inference: draw the data, fit, and judge the procedures."""

from __future__ import annotations

from typing import Any

import numpy as np

from moestat.sweep.kinds.inference.observed import Observed
from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.kinds.inference.spec import InferenceSpec
from moestat.sweep.spec.plan import Cell


def measure_trial(spec: InferenceSpec, cell: Cell) -> dict[str, Any]:
    """Judge the procedures of one cell: procedure -> label -> item -> value under ``losses``."""
    trial = spec.run(spec.curve(cell.curve), cell.n)
    observed = Observed(
        trial, np.random.default_rng(cell.data_seed), np.random.default_rng(cell.fit_seed)
    )
    return {
        "losses": {name: PROCEDURES[name].judge(observed) for name in trial.procedures},
    }
