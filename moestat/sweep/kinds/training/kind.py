"""Sweeps of training runs: methods of routing compared on synthetic tasks."""

from __future__ import annotations

from moestat.sweep.kinds.kind import Kind
from moestat.sweep.kinds.runs.cell import measured
from moestat.sweep.kinds.training.analysis import TrainingSummary, summarise_trainings
from moestat.sweep.kinds.training.cell import measure_training
from moestat.sweep.kinds.training.display import draw_trainings, training_page, trainings_table
from moestat.sweep.kinds.training.spec import KEYS, TrainingSpec, parse_trainings

KIND = Kind[TrainingSpec, TrainingSummary](
    name="training",
    keys=KEYS,
    parse=parse_trainings,
    run_cell=measured(measure_training),
    summarise=summarise_trainings,
    table=trainings_table,
    draw=draw_trainings,
    page=training_page,
)
