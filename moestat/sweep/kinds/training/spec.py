"""Specs of training: the fields of `Settings`, what each method changes, and a grid for all.

The format is that of `moestat.sweep.kinds.network.spec`.  A curve is a method; the x-axis is
``choice`` where ``[values]`` is a grid of learning rates and weights that every method goes
through, or a field such as ``n`` that a figure is drawn against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from moestat.networks.smoe.settings import NAMES, Settings, make_settings
from moestat.sweep.kinds.network.spec import NetworkCurve, NetworkSpec, parse_runs
from moestat.sweep.spec.identity import digest, seed_from
from moestat.sweep.spec.tables import Table

__all__ = ["TrainingSpec", "parse_trainings"]


@dataclass(frozen=True)
class TrainingSpec(NetworkSpec):
    """A sweep of training runs; see `moestat.sweep.kinds.network.spec.NetworkSpec`."""

    kind: str = "training"

    def run(self, curve: NetworkCurve, x: float) -> Settings:  # type: ignore[override]
        """The settings of a curve at one place."""
        return make_settings(self.fields(curve, x))

    def stamp(self, curve: NetworkCurve) -> Callable[[float, int], tuple[int, int, str]]:
        """``stamp(x, replicate)``: data seed, seed of a run and identity of a cell of `curve`.

        All runs of one replicate on one task share both seeds, so that methods are compared on
        the same data from the same starts.
        """
        runs = {x: self.run(curve, x) for x in self.sizes}

        def stamp(x: float, replicate: int) -> tuple[int, int, str]:
            run = runs[x]
            return (
                seed_from("data", self.seed, run.task, replicate),
                seed_from("fit", self.seed, replicate),
                digest([self.seed, asdict(run), replicate]),
            )

        return stamp


def parse_trainings(top: Table, text: str) -> NetworkSpec:
    """Check a spec whose cells are training runs.

    Parameters
    ----------
    top : Table
        The spec's top level, without ``kind``.
    text : str
        The TOML text that it was read from.

    Returns
    -------
    TrainingSpec
        The checked spec.

    Raises
    ------
    SweepError
        If anything is wrong.
    """
    return parse_runs(top, text, NAMES, TrainingSpec)
