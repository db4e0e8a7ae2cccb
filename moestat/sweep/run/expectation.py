"""What a sweep will take, before it runs: cells, memory and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.table import Table as ShownTable

from moestat.sweep.errors import SweepError
from moestat.sweep.run.cell import run_cell
from moestat.sweep.run.cost import CostModel
from moestat.sweep.run.progress import duration
from moestat.sweep.run.runner import open_cells
from moestat.sweep.spec.plan import cell_key, find_cell, plan_cells
from moestat.sweep.spec.protocol import AnySpec
from moestat.sweep.store.record import FAILED
from moestat.sweep.store.store import open_store

_TRIES = 5
_AFFORDED = 2.0  # seconds that are spent on cells of one size


@dataclass(frozen=True)
class Expectation:
    """What the cells of one curve that have no result yet will take."""

    curve: str  # its name
    cells: int  # cells without a result
    # Bytes of the largest sample while it is fitted, per worker; None where cells hold no rows.
    memory: float | None
    # Computing time of the cells, one after the other; None if it is not known.
    seconds: float | None
    note: str  # where the time comes from, or why there is none


def expect(spec: AnySpec, store: Path) -> list[Expectation]:
    """What each curve of a sweep will take.

    Times are those of the store's cells where it has some.  For a curve of fits without results,
    some cells of the smallest and the middle sample size are computed, and some of the largest if
    they are cheap; times are taken to lie on the lines through their medians.

    Nothing is written; the store need not exist.
    """
    cells, costs = plan_cells(spec), CostModel()
    if store.is_file():
        with open_store(store) as opened:
            cells, costs = open_cells(spec, opened), CostModel.from_sums(opened.timings())
    open_counts = {name: Counter[tuple[str, float]]() for name in (c.name for c in spec.curves)}
    for (name, n), count in cells.counts().items():
        open_counts[name][name, n] = count
    return [_expectation(spec, name, counts, costs) for name, counts in open_counts.items()]


def _expectation(
    spec: AnySpec, name: str, counts: Counter[tuple[str, float]], costs: CostModel
) -> Expectation:
    count, memory = counts.total(), spec.memory(spec.curve(name))
    if not count:
        return Expectation(name, 0, memory, 0.0, "all cells have results")
    if costs.knows(counts):
        return Expectation(name, count, memory, costs.total(counts), "from the store's cells")
    if spec.scale(1) is None:
        return Expectation(name, count, memory, None, "known once a cell has run")
    try:
        seconds, sizes = _extrapolate(spec, name, counts)
    except SweepError as error:
        return Expectation(name, count, memory, None, str(error))
    return Expectation(name, count, memory, seconds, f"from cells of n = {sizes}")


def _extrapolate(
    spec: AnySpec, name: str, counts: Mapping[tuple[str, float], int]
) -> tuple[float, str]:
    """Seconds of the cells, and in words the sizes that they are extrapolated from."""
    sizes = spec.sizes_of(spec.curve(name))
    scale, measured = {n: spec.scale(n) or 0.0 for n in sizes}, dict[float, float]()
    run_cell(spec.text, find_cell(spec, cell_key(name, sizes[0], 0, spec.axis)))  # compiles
    for n in sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]}):
        if len(measured) < 2 or _line(scale, measured, n) * _TRIES < _AFFORDED:
            measured[n] = _seconds_of(spec, name, n)
    cost = {n: _line(scale, measured, n) for _, n in counts}
    sizes_text = ", ".join(f"{n:,}" for n in measured)
    return sum(cost[n] * count for (_, n), count in counts.items()), sizes_text


def _seconds_of(spec: AnySpec, name: str, n: float) -> float:
    """Median of some cells of a size."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < _TRIES and sum(seconds) < _AFFORDED):
        replicate = len(seconds) % spec.most_replicates
        cell = find_cell(spec, cell_key(name, n, replicate, spec.axis))
        record = run_cell(spec.text, cell)
        if record.status == FAILED:
            raise SweepError(f"its cell of n = {n:,} fails: {record.message}")
        seconds.append(record.seconds)
    return median(seconds)


def _line(scale: Mapping[float, float], measured: Mapping[float, float], n: float) -> float:
    """Seconds of a cell on the lines through the measured sizes; the lines do not fall."""
    sizes = list(measured)
    if n <= sizes[0] or len(sizes) == 1:
        return measured[sizes[0]]
    after = next((i for i, size in enumerate(sizes) if n <= size), len(sizes) - 1)
    low, high = sizes[after - 1], sizes[after]
    slope = (measured[high] - measured[low]) / max(scale[high] - scale[low], 1e-300)
    return measured[low] + max(slope, 0.0) * (scale[n] - scale[low])


def expectation_table(title: str, expectations: Sequence[Expectation], workers: int) -> ShownTable:
    """The expectations as a table for the terminal, with the time in all below it."""
    table = ShownTable(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD)
    table.add_column("curve", overflow="fold")
    for column in ("cells", "memory", "time"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("where the time comes from", overflow="fold")
    for each in expectations:
        memory = "" if each.memory is None else f"{each.memory / 2**20:,.0f} MiB"
        time = "unknown" if each.seconds is None else duration(each.seconds)
        table.add_row(each.curve, str(each.cells), memory, time, each.note)
    known = [each.seconds for each in expectations if each.seconds is not None]
    cells = sum(each.cells for each in expectations)
    total = f"{cells} cells to run"
    if len(known) == len(expectations):
        total += f", about {duration(sum(known) / workers)} with {workers} workers"
    table.caption = f"{total}; memory is per worker"
    return table
