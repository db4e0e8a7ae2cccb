"""Sweeps of training runs: methods of routing compared on synthetic tasks."""

from __future__ import annotations

from moestat.sweep.kinds.runs.kind import kind_of_runs
from moestat.sweep.kinds.training.analysis import summarise_trainings
from moestat.sweep.kinds.training.cell import measure_training
from moestat.sweep.kinds.training.display import draw_trainings, training_page, trainings_table
from moestat.sweep.kinds.training.spec import FIELDS, TrainingSpec

KIND = kind_of_runs(
    "training",
    "a training run of an SMoE layer",
    FIELDS,
    TrainingSpec,
    measure_training,
    summarise=summarise_trainings,
    table=trainings_table,
    draw=draw_trainings,
    page=training_page,
)
