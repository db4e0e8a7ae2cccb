"""Specs of inference: a truth, what is fitted to its data, and the procedures that are judged.

The format is that of `moestat.sweep.kinds.runs.spec`, with the fields of
`moestat.sweep.kinds.inference.trial.Trial`.  A curve is a truth with a model, the x-axis usually
the sample size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moestat.base.validate import first_meant, short
from moestat.sweep.kinds.inference.procedures import PROCEDURES
from moestat.sweep.kinds.inference.trial import Trial, make_trial
from moestat.sweep.kinds.runs.spec import RunsSpec
from moestat.sweep.spec.identity import digest, seed_from
from moestat.sweep.spec.keys import declared
from moestat.sweep.spec.limits import memory_of

FIELDS = declared(
    Trial,
    n={"maximum": 1_000_000_000},
    truth={"kind": "object"},
    design={"kind": "object", "required": False},
    n_experts={"maximum": 1_000, "required": False},
    n_starts={"minimum": 0, "maximum": 100_000},
)


@dataclass(frozen=True, kw_only=True)
class InferenceSpec(RunsSpec[Trial]):
    """A sweep of inference; see `moestat.sweep.kinds.runs.spec.RunsSpec`."""

    def build_run(self, fields: Mapping[str, object]) -> Trial:
        """The trial with these fields."""
        names = fields.get("procedures")
        if not isinstance(names, list) or not names or not set(map(str, names)) <= set(PROCEDURES):
            known = ", ".join(map(repr, PROCEDURES))
            hint = first_meant(names, PROCEDURES)
            raise ValueError(
                f"procedures must be a list of some of {known}, got {short(names)}{hint}"
            )
        trial = make_trial(fields)
        for name in trial.procedures:
            PROCEDURES[name].check(name, trial)
        return trial

    def bytes_of(self, run: Trial) -> float:
        """A sample and its resample while they are fitted."""
        return 2.0 * memory_of(run.n * run.group_size, run.truth.family.n_features)

    def stamp_run(
        self, run: Trial, fields: Mapping[str, object], replicate: int
    ) -> tuple[int, int, str]:
        """Data seed, seed of the run and identity of a cell.

        Trials on one truth, design and sample size see the same data.
        """
        data = [run.truth.law, fields.get("design", {}), run.n, run.group_size, replicate]
        return (
            seed_from("data", self.seed, data),
            seed_from("fit", self.seed, data),
            digest([self.seed, fields, replicate]),
        )
