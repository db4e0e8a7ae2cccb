"""The one computation of a sweep: sample, fit and score a cell."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from moestat.distances import hellinger
from moestat.fitting import fit
from moestat.generate import sample
from moestat.losses import make_loss, voronoi_terms
from moestat.solvers import make_solver
from moestat.sweep.plan import Cell
from moestat.sweep.record import DONE, FAILED, Record, plain, versions
from moestat.sweep.spec import parse_spec

__all__ = ["run_cell"]


def run_cell(text: str, cell: Cell) -> Record:
    """Sample, fit and score one cell; a pure function of the spec's text and the cell.

    Parameters
    ----------
    text : str
        TOML text of the spec.
    cell : Cell
        The cell.

    Returns
    -------
    Record
        The estimate with its losses, or a failed record with the type and message of the
        exception.  It never raises for what happens inside the cell.
    """
    began = time.perf_counter()
    identity: dict[str, Any] = {
        "key": cell.key,
        "curve": cell.curve,
        "n": cell.n,
        "replicate": cell.replicate,
    }
    try:
        values: dict[str, Any] = {"status": DONE, **_measure(text, cell)}
    except Exception as error:
        values = {"status": FAILED, "message": f"{type(error).__name__}: {error}"}
    seconds = time.perf_counter() - began
    return Record(**identity, **values, seconds=seconds, versions=versions())


def _measure(text: str, cell: Cell) -> dict[str, Any]:
    """What the estimate of `cell` is and how far it lies from the truth."""
    spec = parse_spec(text)
    curve = spec.curve(cell.curve)
    truth = spec.truths[curve.truth]
    model = spec.fitted_family(curve)
    X, y = sample(
        truth.family, truth.theta, cell.n, np.random.default_rng(cell.data_seed), spec.design
    )
    results = fit(
        model,
        X,
        y,
        solver=make_solver(dict(curve.solver)),
        starts=spec.start_rules(curve),
        rng=np.random.default_rng(cell.fit_seed),
        threads=1,
    )
    loss = make_loss(curve.loss)
    terms = voronoi_terms(model.measure(results.params), truth.family.measure(truth.theta), loss)
    if not math.isfinite(terms.value):
        raise ArithmeticError(f"the loss is {terms.value}")
    distance = hellinger(model, results.params, truth.family, truth.theta, spec.design)
    certificate = results.certificate.as_dict()
    return {
        "loss": float(terms.value),
        "log_likelihood": float(results.log_likelihood),
        "certified": bool(certificate["certified"]),
        "params": [float(value) for value in results.params],
        "losses": {
            "cell_sizes": plain(terms.cell_sizes),
            "mass_errors": plain(terms.mass_errors),
            "block_errors": plain(terms.block_errors),
            "empty_cells": int(terms.empty_cells),
            "coverage": plain(terms.coverage),
            "hellinger": plain(distance.value),
            "hellinger_error": plain(distance.error),
        },
        "certificate": plain(certificate),
    }
