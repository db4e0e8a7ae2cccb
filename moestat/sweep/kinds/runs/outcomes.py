"""What summaries of sweeps without rates have in common: cells by curve, counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from moestat.sweep.errors import SweepError
from moestat.sweep.kinds.runs.spec import RunCurve, RunsSpec
from moestat.sweep.store.record import DONE, FAILED, Record
from moestat.sweep.store.store import Store

S = TypeVar("S", bound=RunsSpec[Any])


def spec_of(store: Store, kind: type[S]) -> S:
    """The spec of a store, known to be of a kind."""
    spec = store.spec
    assert isinstance(spec, kind)
    return spec


@dataclass(frozen=True)
class Outcomes:
    """One curve of a sweep and how many of its cells have results."""

    curve: RunCurve  # the curve of the spec
    axis: str  # the field on the x-axis
    planned: int  # cells in all, cells with results, cells that failed
    done: int
    failed: int

    @property
    def drawable(self) -> int:
        """Records that a figure has a use for."""
        return self.done

    def as_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        return {
            "curve": self.curve.name,
            "panel": self.curve.panel,
            "cells": self.planned,
            "done": self.done,
            "failed": self.failed,
            "x": self.axis,
        }


T = TypeVar("T", bound=Outcomes)


def drawable(summaries: Sequence[T]) -> list[T]:
    """The curves that a figure can show, at least one."""
    curves = [summary for summary in summaries if summary.drawable]
    if not curves:
        raise SweepError("there is nothing to plot: no cell has a result yet")
    return curves


def records_by_curve(store: Store) -> Mapping[str, Sequence[Record]]:
    """Records of a store by the name of their curve, in the spec's order."""
    records: dict[str, list[Record]] = {curve.name: [] for curve in store.spec.curves}
    for record in store.records():
        records[record.curve].append(record)
    return records


def counts(spec: RunsSpec[Any], curve: RunCurve, records: Sequence[Record]) -> dict[str, Any]:
    """The fields of `Outcomes` for the records of a curve."""
    return {
        "curve": curve,
        "axis": spec.axis,
        "planned": len(spec.sizes) * spec.replicates,
        "done": sum(record.status == DONE for record in records),
        "failed": sum(record.status == FAILED for record in records),
    }
