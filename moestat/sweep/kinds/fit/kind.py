"""Sweeps of fits: rates of losses in the sample size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moestat.sweep.kinds.fit.analysis import CurveSummary, summarise
from moestat.sweep.kinds.fit.display import rates_table
from moestat.sweep.kinds.fit.figure import draw
from moestat.sweep.kinds.fit.keys import KEYS
from moestat.sweep.kinds.fit.parse import check_fits, parse_fits
from moestat.sweep.kinds.fit.report import latex_table, markdown_report
from moestat.sweep.kinds.fit.spec import Spec
from moestat.sweep.kinds.kind import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moestat.solvers.problem import Target
    from moestat.sweep.spec.plan import Cell
    from moestat.sweep.store.record import Record


def run_fit(spec: Spec, cell: Cell) -> Record:
    """The record of a cell; what fits is imported here, since reading a store does not need it."""
    from moestat.sweep.kinds.fit.cell import run_fit

    return run_fit(spec, cell)


def run_cells_on(target: Target, spec: Spec, cells: Sequence[Cell]) -> list[Record]:
    """The records of cells that are one batch on a device."""
    from moestat.sweep.kinds.fit.cell import run_cells_on

    return run_cells_on(target, spec, cells)


KIND = Kind[Spec, CurveSummary](
    name="fit",
    keys=KEYS,
    parse=parse_fits,
    check=check_fits,
    run_cell=run_fit,
    summarise=summarise,
    table=rates_table,
    draw=draw,
    page=markdown_report,
    latex=latex_table,
    sizes=("screen", "single", "double"),
    run_together=run_cells_on,
)
