"""The sweeps that claims rest on: stores that are there are used, missing cells are run.

A quick verification runs a part of a sweep, the same cells that the whole sweep would run.  So a
full one, or ``python -m moestat.sweep run``, goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moestat.sweep.errors import SweepError
from moestat.sweep.experiments import find_spec
from moestat.sweep.plan import Cell, plan_cells
from moestat.sweep.record import Record
from moestat.sweep.runner import open_cells, run_cells
from moestat.sweep.spec import Curve, Spec, load_spec
from moestat.sweep.store import create_store, is_store, open_store

__all__ = ["QUICK", "CurveRecords", "Part", "gather_curves"]


@dataclass(frozen=True)
class Part:
    """Which cells of a sweep a quick verification runs.

    Parameters
    ----------
    smallest, largest : float
        Sample sizes.
    replicates : int
        Replicates per size.
    curves : tuple of str or None
        Names of curves; None for all that claims ask for.
    """

    smallest: float
    largest: float
    replicates: int
    curves: tuple[str, ...] | None = None

    def holds(self, cell: Cell) -> bool:
        """Whether a cell is in it."""
        sized = self.smallest <= cell.n <= self.largest and cell.replicate < self.replicates
        return sized and (self.curves is None or cell.curve in self.curves)


_MICROSCOPE = Part(0.99e10, 1.01e14, 4)
_CHEAP_GAUSSIAN = (
    *(f"competition, free masses, k = {k}" for k in (2, 3)),
    *("competition, unit masses, k = 3", "softmax, k = 3"),
)
# At these sizes the Voronoi losses are far from their rates, and only regression functions tell.
_ATTENTION = Part(
    *(1e3, 1e4, 3),
    tuple(f"sigmoid, {regime}, {x}" for regime in ("sparse", "dense") for x in ("gelu", "linear")),
)
QUICK: Mapping[str, Part] = {
    "microscope_mlmoe": _MICROSCOPE,
    "microscope_gaussian": replace(_MICROSCOPE, curves=_CHEAP_GAUSSIAN),
    "gaussian_competition": Part(1e3, 1e4, 4),
    "gaussian_exact_v1": Part(1e3, 1e4, 4),
    "microscope_attention": replace(_MICROSCOPE, curves=()),
    "attention_table1": _ATTENTION,
    "attention_partial": _ATTENTION,
}
"""Parts of the sweeps that suffice for a first look."""


@dataclass(frozen=True)
class CurveRecords:
    """The records of one curve.

    Parameters
    ----------
    curve : Curve
        The curve.
    records : sequence of Record
        Its records.
    planned : int
        Cells of the whole curve.
    source : str
        The store, and whether its cells were there already.
    """

    curve: Curve
    records: Sequence[Record]
    planned: int
    source: str


def gather_curves(
    experiment: str,
    curves: Iterable[str],
    folder: Path,
    *,
    quick: bool,
    workers: int,
    tell: Callable[[str], None],
) -> dict[str, CurveRecords]:
    """The records of curves of a shipped experiment; cells without a result are run first.

    What counts is the identity of a cell: a store with fewer replicates is extended, and of one
    that belongs to another version of the experiment the cells that are the same are used.

    Parameters
    ----------
    experiment : str
        Name of the experiment; its store is ``folder/experiment.sqlite``.
    curves : iterable of str
        Names of curves.
    folder : Path
        Where stores are.
    quick : bool
        Whether only the experiment's part in `QUICK` is run.
    workers : int
        Worker processes.
    tell : callable
        Told a line about what is done.

    Returns
    -------
    dict of str to CurveRecords
        Curve -> its records.

    Raises
    ------
    SweepError
        If there is no store with cells of the experiment, and none can be made.
    """
    spec, wanted = load_spec(find_spec(experiment)), set(curves)
    path = folder / f"{experiment}.sqlite"
    refused, ran = None, dict[str, int]()
    try:
        ran = _run(spec, path, experiment, wanted, quick, workers, tell)
    except SweepError as error:
        refused = error
        if not is_store(path):
            raise
    records = _own_records(spec, path, wanted)
    if refused is not None:
        if not any(records.values()):
            raise refused
        tell(f"{experiment}: only the cells that are there; {refused}")
    planned = len(spec.sizes) * spec.replicates
    return {
        name: CurveRecords(
            spec.curve(name),
            own,
            planned,
            f"{path.name}, {len(own)} of {planned} cells"
            + (f", {ran[name]} of them run now" if ran.get(name) else ""),
        )
        for name, own in records.items()
    }


def _own_records(spec: Spec, path: Path, wanted: set[str]) -> dict[str, list[Record]]:
    """By curve, the records of cells that are the spec's own, whatever else a store holds."""
    identities = {cell.identity for cell in plan_cells(spec) if cell.curve in wanted}
    records: dict[str, list[Record]] = {name: [] for name in wanted}
    with open_store(path) as store:
        for record in store.records():
            if record.curve in wanted and record.identity in identities:
                records[record.curve].append(record)
    return records


def _run(
    spec: Spec,
    path: Path,
    experiment: str,
    wanted: set[str],
    quick: bool,
    workers: int,
    tell: Callable[[str], None],
) -> dict[str, int]:
    """Run what is missing; how many cells were run, by curve."""
    part = QUICK[experiment] if quick else None
    ran: dict[str, int] = {}
    with create_store(path, spec, extend=True) as store:
        cells = [
            cell
            for cell in open_cells(spec, store)
            if cell.curve in wanted and (part is None or part.holds(cell))
        ]
        if cells:
            tell(f"{experiment}: {len(cells)} cells, store {path}")
        for record in run_cells(spec, store, cells, workers=workers):
            ran[record.curve] = ran.get(record.curve, 0) + 1
    return ran
