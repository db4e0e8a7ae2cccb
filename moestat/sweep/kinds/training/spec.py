"""Specs of training: the fields of `Settings`, what each method changes, and a grid for all.

The format is that of `moestat.sweep.kinds.runs.spec`.  A curve is a method; the x-axis is
``choice`` where ``[values]`` is a grid of learning rates and weights that every method goes
through, or a field such as ``n`` that a figure is drawn against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec

from moestat.networks.smoe.training.settings import CHOICES, Settings, make_settings
from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.runs.spec import RunsSpec
from moestat.sweep.spec.identity import digest, seed_from
from moestat.sweep.spec.keys import declared

_LONGEST = {"maximum": 100_000_000}
FIELDS = declared(
    Settings,
    **{name: {"choices": tuple(names)} for name, names in CHOICES.items()},
    **dict.fromkeys(("n_steps", "n", "n_test", "look_every"), _LONGEST),
    limit={"minimum": 0},
    dense_steps={"minimum": 0, **_LONGEST},
)
_LATER = {
    each.name: each.default
    for each in fields(Settings)
    if each.name in ("reading", "weight_decay", "starts")
}
"""Fields that identities do not name at their defaults: cells from before they were added stay."""


@dataclass(frozen=True, kw_only=True)
class TrainingSpec(RunsSpec[Settings]):
    """A sweep of training runs; see `moestat.sweep.kinds.runs.spec.RunsSpec`."""

    def build_run(self, fields: Mapping[str, object]) -> Settings:
        """The settings with these fields."""
        return make_settings(fields)

    def check_machine(self) -> None:
        """See `RunsSpec.check_machine`; a machine without PyTorch can run nothing."""
        if find_spec("torch") is None:
            raise SweepError("training needs PyTorch: pip install 'moestat[torch]'")
        super().check_machine()

    def bytes_of(self, run: Settings) -> float:
        """The largest batch in every layer, the weights with their moments, and the samples."""
        rows = max(run.batch_size, run.n_test) * (run.context if run.task == "language" else 1)
        wide = run.width + run.n_hidden * run.n_experts
        weights = run.n_layers * run.width * (4 * run.width + 3 * run.n_hidden * run.n_experts)
        return 4.0 * (run.n_layers * rows * wide + 4 * weights + run.n * run.width)

    def stamp_run(
        self, run: Settings, fields: Mapping[str, object], replicate: int
    ) -> tuple[int, int, str]:
        """Data seed, seed of the run and identity of a cell.

        All runs of one replicate on one task share both seeds, so that methods are compared on
        the same data from the same starts.
        """
        named = {k: v for k, v in asdict(run).items() if k not in _LATER or v != _LATER[k]}
        return (
            seed_from("data", self.seed, run.task, replicate),
            seed_from("fit", self.seed, replicate),
            digest([self.seed, named, replicate]),
        )
