"""The one computation of a sweep: a cell, of whatever kind, to its record."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from moestat.sweep.spec.kinds import part_of
from moestat.sweep.spec.plan import Cell
from moestat.sweep.spec.read import parse_spec
from moestat.sweep.store.record import DONE, FAILED, Record, record_of

__all__ = ["attempt", "run_cell", "settle"]

_log = logging.getLogger(__name__)


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
        exception.  It never raises for what happens inside the cell; the logger of this module
        shows tracebacks at level DEBUG.
    """
    return part_of(parse_spec(text).kind, "run_cell")(text, cell)


def settle(cell: Cell, found: Any, seconds: float) -> Record:
    """The record of a cell from its values, or from the exception that they ended with."""
    if isinstance(found, Exception):
        message = f"{type(found).__name__}: {found}"
        return record_of(cell, FAILED, message=message, seconds=seconds)
    return record_of(cell, DONE, **found, seconds=seconds)


def attempt(cell: Cell, compute: Callable[[], Any]) -> Any:
    """What `compute` returns, or the exception that it raises."""
    try:
        return compute()
    except Exception as error:
        _log.debug("the cell %s failed", cell.key, exc_info=True)
        return error
