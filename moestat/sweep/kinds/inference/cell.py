"""The cell of a sweep of inference: draw the data, fit, and judge the procedures."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from moestat.sweep.kinds.inference.observed import Observed
from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.kinds.inference.spec import InferenceSpec
from moestat.sweep.run.cell import attempt, settle
from moestat.sweep.spec.plan import Cell
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import Record

__all__ = ["run_inference"]


def run_inference(text: str, cell: Cell) -> Record:
    """Judge the procedures of one cell; a pure function of its arguments.

    Parameters
    ----------
    text : str
        TOML text of the spec.
    cell : Cell
        The cell.

    Returns
    -------
    Record
        Outcomes under ``losses``: procedure -> label -> item -> value; or a failed record with
        the reason.
    """
    began = time.perf_counter()
    found = attempt(cell, lambda: _outcomes(text, cell))
    return settle(cell, found, time.perf_counter() - began)


def _outcomes(text: str, cell: Cell) -> dict[str, Any]:
    spec: Any = parse_spec(text)
    assert isinstance(spec, InferenceSpec)
    trial = spec.run(spec.curve(cell.curve), cell.n)
    observed = Observed(
        trial, np.random.default_rng(cell.data_seed), np.random.default_rng(cell.fit_seed)
    )
    return {
        "losses": {name: PROCEDURES[name].judge(observed) for name in trial.procedures},
    }
