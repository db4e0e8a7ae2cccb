"""Sweeps: fits over sample sizes and replicates, in parallel, into a store that survives anything.

One direction: `load_spec` reads a TOML file, `plan_cells` turns it into cells, an executor runs
`run_cell` on them, a store keeps one durable row per cell, `summarise` reads rates off the store.
`status_of` tells how far a sweep is, `merge` joins stores, `verify` checks one.
From a shell: ``python -m moestat.sweep --help``.

Public names are resolved on first use, so that ``import moestat.sweep`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moestat.sweep.errors import SweepError
    from moestat.sweep.kinds.fit.analysis import CurveSummary, summarise
    from moestat.sweep.kinds.fit.comparison import compare_curves
    from moestat.sweep.kinds.fit.spec import Spec
    from moestat.sweep.run.cell import run_cell
    from moestat.sweep.run.executors import dask_executor
    from moestat.sweep.run.runner import open_cells, run_cells
    from moestat.sweep.run.status import status_of
    from moestat.sweep.spec.plan import Cell, plan_cells
    from moestat.sweep.spec.read import load_spec, parse_spec
    from moestat.sweep.store.merging import merge
    from moestat.sweep.store.record import Record
    from moestat.sweep.store.store import create_store, open_store
    from moestat.sweep.store.verification import verify

_HOMES = {
    "Cell": "spec.plan",
    "CurveSummary": "kinds.fit.analysis",
    "Record": "store.record",
    "Spec": "kinds.fit.spec",
    "SweepError": "errors",
    "compare_curves": "kinds.fit.comparison",
    "create_store": "store.store",
    "dask_executor": "run.executors",
    "load_spec": "spec.read",
    "merge": "store.merging",
    "open_cells": "run.runner",
    "open_store": "store.store",
    "parse_spec": "spec.read",
    "plan_cells": "spec.plan",
    "run_cell": "run.cell",
    "run_cells": "run.runner",
    "status_of": "run.status",
    "summarise": "kinds.fit.analysis",
    "verify": "store.verification",
}

__all__ = [
    "Cell",
    "CurveSummary",
    "Record",
    "Spec",
    "SweepError",
    "compare_curves",
    "create_store",
    "dask_executor",
    "load_spec",
    "merge",
    "open_cells",
    "open_store",
    "parse_spec",
    "plan_cells",
    "run_cell",
    "run_cells",
    "status_of",
    "summarise",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moestat.sweep' has no attribute {name!r}")
    return getattr(import_module(f"moestat.sweep.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
