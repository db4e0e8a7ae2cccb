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
    from moestat.sweep.analysis import CurveSummary, summarise
    from moestat.sweep.cell import run_cell
    from moestat.sweep.comparison import compare_curves
    from moestat.sweep.errors import SweepError
    from moestat.sweep.executors import dask_executor
    from moestat.sweep.merging import merge
    from moestat.sweep.plan import Cell, plan_cells
    from moestat.sweep.record import Record
    from moestat.sweep.runner import open_cells, run_cells
    from moestat.sweep.spec import Spec, load_spec, parse_spec
    from moestat.sweep.status import status_of
    from moestat.sweep.store import create_store, open_store
    from moestat.sweep.verification import verify

_HOMES = {
    "Cell": "plan",
    "CurveSummary": "analysis",
    "Record": "record",
    "Spec": "spec",
    "SweepError": "errors",
    "compare_curves": "comparison",
    "create_store": "store",
    "dask_executor": "executors",
    "load_spec": "spec",
    "merge": "merging",
    "open_cells": "runner",
    "open_store": "store",
    "parse_spec": "spec",
    "plan_cells": "plan",
    "run_cell": "cell",
    "run_cells": "runner",
    "status_of": "status",
    "summarise": "analysis",
    "verify": "verification",
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
