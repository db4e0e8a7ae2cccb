"""A kind of sweep from one function of fields and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from moestat.base.door import door
from moestat.base.validate import check_kind, one_of
from moestat.sweep.kinds.kind import Kind
from moestat.sweep.kinds.runs.kind import kind_of_runs
from moestat.sweep.kinds.runs.places import Metrics, PlacesSummary
from moestat.sweep.kinds.runs.spec import RunsSpec
from moestat.sweep.spec.identity import digest, seed_from
from moestat.sweep.spec.keys import Key
from moestat.sweep.spec.plan import Cell

Fields = Mapping[str, Any]
Measure = Callable[[Fields, np.random.Generator, np.random.Generator], Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class NumbersSpec(RunsSpec[dict[str, Any]]):
    """A sweep whose cells are fields and random numbers; see `RunsSpec`."""

    keys: tuple[Key, ...] = ()

    def build_run(self, fields: Fields) -> dict[str, Any]:
        """The fields, defaults filled in."""
        for key in self.keys:
            if key.required and key.name not in fields:
                raise ValueError(f"{key.name} is missing")
        values = {key.name: fields.get(key.name, key.default) for key in self.keys}
        for key in self.keys:
            if key.choices:
                one_of(key.name, values[key.name], key.choices)
        return values

    def bytes_of(self, run: Fields) -> float:
        """The memory is not known and counts as 0."""
        return 0.0

    def stamp_run(self, run: Fields, fields: Fields, replicate: int) -> tuple[int, int, str]:
        """Curves share the seed of the data at a place, and replicates the other one."""
        data = {self.axis: run[self.axis]}
        return (
            seed_from("data", self.seed, data, replicate),
            seed_from("fit", self.seed, replicate),
            digest([self.kind, self.seed, dict(run), replicate]),
        )


@door()
def kind_of_numbers(
    name: str,
    what: str,
    keys: Sequence[Key],
    measure: Measure,
    metrics: Metrics,
) -> Kind[NumbersSpec, PlacesSummary]:
    """A kind of sweep whose cells are named numbers; `moestat.sweep.KINDS` registers it.

    Parameters
    ----------
    name : str
        What specs call it, ``kind = "..."``.
    what : str
        What a cell is, in words: for the page of keys.
    keys : sequence of Key
        Declarations of its fields; one of them, a number, is on the x-axis of a spec.
    measure : callable
        ``measure(fields, data_rng, rng)``: numbers by name, those of `metrics` at least.  What it
        raises fails the cell.  Cells of one place and replicate have equal `data_rng`, whatever
        their curve, so that curves are compared on the same data.
    metrics : Metrics
        What the numbers are called, and which of them are shown.

    Returns
    -------
    Kind
        The kind: plans, stores, executors, resumption, tables, figures and pages as for all.

    Examples
    --------
    >>> keys = [Key("n", "integer", "Rows.", True, 1, 10_000)]
    >>> def measure(fields, data_rng, rng):
    ...     return {"error": float(data_rng.normal(size=fields["n"]).mean() ** 2)}
    >>> metrics = Metrics({"error": "squared error"}, shown=("error",))
    >>> kind_of_numbers("mean", "a mean", keys, measure, metrics).name
    'mean'
    """
    check_kind("name", name, str, "a name")
    check_kind("what", what, str, "words")
    for key in keys:
        check_kind("keys", key, Key, "declarations moestat.sweep.Key")
    check_kind("metrics", metrics, Metrics, "moestat.sweep.Metrics")

    def measure_cell(spec: NumbersSpec, cell: Cell) -> dict[str, object]:
        fields = spec.run(spec.curve(cell.curve), cell.n)
        seeds = cell.data_seed, cell.fit_seed
        losses = dict(measure(fields, *(np.random.default_rng(seed) for seed in seeds)))
        return {"loss": losses[metrics.shown[0]], "losses": losses}

    build = partial(NumbersSpec, keys=tuple(keys))
    return kind_of_runs(name, what, keys, build, measure_cell, **metrics.shows)
