"""Start rules: where the solvers begin.  A new rule is one class, and a line of `table.py`."""

from moestat.estimation.starts.clusters import ClusterStarts, SoftClusterStarts
from moestat.estimation.starts.given import CopyStarts, GivenStarts, MeasureStarts, TruthStarts
from moestat.estimation.starts.noise import RandomStarts, SplitStarts
from moestat.estimation.starts.planes import LineStarts, PlaneStarts
from moestat.estimation.starts.scale import (
    StartRule,
    draw_starts,
    into_box,
    one_expert,
    predictor_noise,
)
from moestat.estimation.starts.score import ScoreStarts
from moestat.estimation.starts.table import make_starts

__all__ = [
    "ClusterStarts",
    "CopyStarts",
    "GivenStarts",
    "LineStarts",
    "MeasureStarts",
    "PlaneStarts",
    "RandomStarts",
    "ScoreStarts",
    "SoftClusterStarts",
    "SplitStarts",
    "StartRule",
    "TruthStarts",
    "draw_starts",
    "into_box",
    "make_starts",
    "one_expert",
    "predictor_noise",
]


def __dir__() -> list[str]:
    return sorted(__all__)
