"""Specs of inference: a truth, what is fitted to its data, and the procedures that are judged.

The format is that of `moestat.sweep.kinds.network.spec`, with the fields of
`moestat.sweep.kinds.inference.trial.FIELDS`.  A curve is a truth with a model, the x-axis usually
the sample size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.kinds.inference.trial import FIELDS, Trial, make_trial
from moestat.sweep.kinds.network.spec import NetworkCurve, NetworkSpec, parse_runs
from moestat.sweep.spec.identity import digest, seed_from
from moestat.sweep.spec.tables import Table

__all__ = ["InferenceSpec", "parse_inference"]


@dataclass(frozen=True)
class InferenceSpec(NetworkSpec):
    """A sweep of inference; see `moestat.sweep.kinds.network.spec.NetworkSpec`."""

    kind: str = "inference"

    def run(self, curve: NetworkCurve, x: float) -> Trial:  # type: ignore[override]
        """The trials of a curve at one place."""
        fields = self.fields(curve, x)
        names = fields.get("procedures")
        if not isinstance(names, list) or not names or not set(names) <= set(PROCEDURES):
            known = ", ".join(map(repr, PROCEDURES))
            raise ValueError(f"procedures must be a list of some of {known}, got {names!r}")
        return make_trial(fields)

    def stamp(self, curve: NetworkCurve) -> Callable[[float, int], tuple[int, int, str]]:
        """``stamp(x, replicate)``: data seed, seed of a run and identity of a cell of `curve`.

        Curves on one truth, design and sample size see the same data.
        """

        def stamp(x: float, replicate: int) -> tuple[int, int, str]:
            run, fields = self.run(curve, x), self.fields(curve, x)
            data = [run.truth.law, fields.get("design", {}), run.n, run.group_size, replicate]
            return (
                seed_from("data", self.seed, data),
                seed_from("fit", self.seed, data),
                digest([self.seed, fields, replicate]),
            )

        return stamp


def parse_inference(top: Table, text: str) -> NetworkSpec:
    """Check a spec whose cells are trials of intervals and tests.

    Parameters
    ----------
    top : Table
        The spec's top level, without ``kind``.
    text : str
        The TOML text that it was read from.

    Returns
    -------
    InferenceSpec
        The checked spec.

    Raises
    ------
    SweepError
        If anything is wrong.
    """
    return parse_runs(top, text, FIELDS, InferenceSpec)
