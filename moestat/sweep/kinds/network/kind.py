"""Sweeps of networks: accuracy and routing after training on clustered patches."""

from __future__ import annotations

import math

from moestat.sweep.kinds.network.cell import measure_network
from moestat.sweep.kinds.network.spec import FIELDS, NetworkSpec
from moestat.sweep.kinds.runs.kind import kind_of_runs
from moestat.sweep.kinds.runs.places import Metrics

METRICS = Metrics(
    words={
        "test_accuracy": "test accuracy",
        "entropy": "dispatch entropy",
        "specialist_share": "share routed to a specialist",
        "experts_in_use": "experts in use",
        "train_accuracy": "training accuracy",
        "test_loss": "test loss",
    },
    shown=("test_accuracy", "entropy"),
    limits={"test_accuracy": (0.0, 1.0), "entropy": (0.0, math.inf)},
    cut=", cut where an accuracy would be above 1 or an entropy below 0",
    note="; accuracy and entropy are those of a test sample, routed without noise",
)

KIND = kind_of_runs(
    "network",
    "a network of experts that is trained",
    FIELDS,
    NetworkSpec,
    measure_network,
    **METRICS.shows,
)
