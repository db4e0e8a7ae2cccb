"""What a sweep will take, before it runs: cells, memory and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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

__all__ = ["Expectation", "expect", "expectation_table"]


@dataclass(frozen=True)
class Expectation:
    """What the cells of one curve that have no result yet will take.

    Parameters
    ----------
    curve : str
        Its name.
    cells : int
        Cells without a result.
    memory : float or None
        Bytes of the largest sample while it is fitted, per worker; None where cells hold no rows.
    seconds : float or None
        Computing time of the cells, one after the other; None if it is not known.
    note : str
        Where the time comes from, or why there is none.
    """

    curve: str
    cells: int
    memory: float | None
    seconds: float | None
    note: str


def expect(spec: AnySpec, store: Path) -> list[Expectation]:
    """What each curve of a sweep will take.

    Times are those of the store's cells where it has some.  Of fits without any, one cell of the
    smallest sample size and one of the middle one are computed, and times are taken to lie on the
    line through these two.

    Parameters
    ----------
    spec : Spec
        The spec.
    store : Path
        Its store, which need not exist.  Nothing is written.

    Returns
    -------
    list of Expectation
        One per curve.
    """
    cells, costs = plan_cells(spec), CostModel()
    if store.is_file():
        with open_store(store) as opened:
            cells, costs = open_cells(spec, opened), CostModel.of_sums(opened.timings())
    left = {name: Counter[tuple[str, float]]() for name in (c.name for c in spec.curves)}
    for (name, n), count in cells.counts().items():
        left[name][name, n] = count
    return [_expectation(spec, name, counts, costs) for name, counts in left.items()]


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
        seconds, sizes = _timed(spec, name, counts)
    except SweepError as error:
        return Expectation(name, count, memory, None, str(error))
    return Expectation(name, count, memory, seconds, f"from a cell of n = {sizes} each")


def _timed(spec: AnySpec, name: str, counts: Mapping[tuple[str, float], int]) -> tuple[float, str]:
    """Seconds of the cells, and the sizes they are reckoned from."""
    own = spec.sizes_of(spec.curve(name))
    sizes = sorted({own[0], own[len(own) // 2]})
    at = {n: find_cell(spec, cell_key(name, n, 0, spec.axis)) for n in sizes}
    run_cell(spec.text, at[sizes[0]])  # compiles
    seconds = []
    for n in sizes:
        record = run_cell(spec.text, at[n])
        if record.status == FAILED:
            raise SweepError(f"its cell of n = {n:,} fails: {record.message}")
        seconds.append(record.seconds)
    scale = {n: spec.scale(n) or 0.0 for n in own}
    growth = (seconds[-1] - seconds[0]) / max(scale[sizes[-1]] - scale[sizes[0]], 1.0)
    cost = {n: seconds[0] + max(growth, 0.0) * (scale[n] - scale[sizes[0]]) for _, n in counts}
    shown = " and ".join(f"{n:,}" for n in sizes)
    return sum(cost[n] * count for (_, n), count in counts.items()), shown


def expectation_table(title: str, found: Sequence[Expectation], workers: int) -> ShownTable:
    """The expectations as a table for the terminal, with the time in all below it.

    Parameters
    ----------
    title : str
        Heading.
    found : sequence of Expectation
        The curves.
    workers : int
        Worker processes among which the time is divided.

    Returns
    -------
    rich.table.Table
        The table.
    """
    table = ShownTable(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD)
    table.add_column("curve", overflow="fold")
    for column in ("cells", "memory", "time"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("where the time comes from", overflow="fold")
    for each in found:
        memory = "" if each.memory is None else f"{each.memory / 2**20:,.0f} MiB"
        time = "unknown" if each.seconds is None else duration(each.seconds)
        table.add_row(each.curve, str(each.cells), memory, time, each.note)
    known = [each.seconds for each in found if each.seconds is not None]
    cells = sum(each.cells for each in found)
    total = f"{cells} cells to run"
    if len(known) == len(found):
        total += f", about {duration(sum(known) / workers)} with {workers} workers"
    table.caption = f"{total}; memory is per worker"
    return table
