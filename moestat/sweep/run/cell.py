"""The one computation of a sweep: a cell, of whatever kind, to its record."""

from __future__ import annotations

from moestat.base.door import door
from moestat.sweep.kinds.kind import kind_of
from moestat.sweep.spec.plan import Cell
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import Record


@door()
def run_cell(text: str, cell: Cell) -> Record:
    """Compute one cell; a pure function of the spec's text and the cell.

    Parameters
    ----------
    text : str
        TOML text of the spec.
    cell : Cell
        The cell.

    Returns
    -------
    Record
        The estimate with its losses, or a failed record with the type and message of the
        exception.  It never raises for what happens inside the cell; the logger of
        `moestat.sweep.store.record` shows tracebacks at level DEBUG.
    """
    spec = parse_spec(text)
    return kind_of(spec.kind).run_cell(spec, cell)
