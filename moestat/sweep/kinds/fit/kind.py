"""Sweeps of fits: rates of losses in the sample size."""

from __future__ import annotations

from moestat.sweep.kinds.fit.analysis import CurveSummary, summarise
from moestat.sweep.kinds.fit.cell import run_cells_on, run_fit
from moestat.sweep.kinds.fit.display import rates_table
from moestat.sweep.kinds.fit.figure import draw
from moestat.sweep.kinds.fit.keys import KEYS
from moestat.sweep.kinds.fit.parse import parse_fits
from moestat.sweep.kinds.fit.report import latex_table, markdown_report
from moestat.sweep.kinds.fit.spec import Spec
from moestat.sweep.kinds.kind import Kind

KIND = Kind[Spec, CurveSummary](
    name="fit",
    keys=KEYS,
    parse=parse_fits,
    run_cell=run_fit,
    summarise=summarise,
    table=rates_table,
    draw=draw,
    page=markdown_report,
    latex=latex_table,
    sizes=("screen", "single", "double"),
    run_together=run_cells_on,
)
