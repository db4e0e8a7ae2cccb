"""Sweeps of inference: coverage of intervals and levels of tests."""

from __future__ import annotations

from moestat.sweep.kinds.inference.analysis import InferenceSummary, summarise_inference
from moestat.sweep.kinds.inference.cell import measure_trial
from moestat.sweep.kinds.inference.display import draw_inference, inference_page, inference_table
from moestat.sweep.kinds.inference.spec import KEYS, InferenceSpec, parse_inference
from moestat.sweep.kinds.kind import Kind
from moestat.sweep.kinds.runs.cell import measured

KIND = Kind[InferenceSpec, InferenceSummary](
    name="inference",
    keys=KEYS,
    parse=parse_inference,
    run_cell=measured(measure_trial),
    summarise=summarise_inference,
    table=inference_table,
    draw=draw_inference,
    page=inference_page,
)
