"""The list of shipped experiments, read off their files without building a single family."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table as ShownTable

from moestat.sweep.spec.sizes import read_sizes
from moestat.sweep.spec.tables import Table
from moestat.sweep.terminal import WideTable

_SHORTEST = 20  # characters of a folded title


@dataclass(frozen=True)
class Entry:
    """What the list says about one experiment."""

    name: str  # name of the file, and what the experiment shows
    title: str
    curves: tuple[str, ...]  # names of its curves
    cells: int  # curves times places times replicates
    n: tuple[float, ...]  # places on the x-axis


def entries(paths: Mapping[str, Path]) -> list[Entry]:
    """An entry for each file; what the files hold is checked when they are run."""
    return [_entry(name, path) for name, path in paths.items()]


def _entry(name: str, path: Path) -> Entry:
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    axis = values.get("x")
    places = tuple(values["values"][axis]) if axis else read_sizes(Table(values, ""))
    curves = tuple(curve["name"] for curve in values["curve"])
    sizes_of_curves = [
        read_sizes(Table(curve, "")) for curve in values["curve"] if not axis and "n" in curve
    ]
    each = sum(map(len, sizes_of_curves)) + (len(curves) - len(sizes_of_curves)) * len(places)
    cells, places = (
        each * values["replicates"],
        tuple(sorted({*places, *(n for s in sizes_of_curves for n in s)})),
    )
    return Entry(name, values["title"], curves, cells, places)


def entries_table(experiments: Sequence[Entry]) -> ShownTable:
    """Names, titles and sizes of experiments."""
    table = WideTable("", ["name", "title"], ["curves", "cells", "n"])
    table.columns[0].min_width = max(
        (len(each.name) for each in experiments), default=0
    )  # to be copied
    table.columns[1].min_width = _SHORTEST
    for each in experiments:
        sizes = f"{each.n[0]:,} to {each.n[-1]:,}"
        table.add_row(each.name, each.title, str(len(each.curves)), str(each.cells), sizes)
    return table
