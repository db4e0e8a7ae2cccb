"""Quantities that records hold: losses, distances, and errors within Voronoi cells of one size."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from moestat.sweep.kinds.fit.analysis import ROUNDING
from moestat.sweep.kinds.fit.spec import Curve
from moestat.sweep.store.record import DONE, Record

Quantity = str | tuple[int, str]
"""``loss``, ``hellinger``, ``total_variation`` or the label of a further loss; or the number of
atoms of a Voronoi cell and ``mass``, a block or ``expert``."""

_FEWEST = 2
"""Estimates with a quantity that a sample size needs, so that it enters a slope."""


def quantity(name: Quantity) -> Callable[[Record], float | None]:
    """How a quantity is read off a record.

    It is None where the record does not have it.  The error of a block in cells of one size is the
    mean over the record's cells of that size.

    Examples
    --------
    >>> cells = [{"size": 2, "mass_error": 0.5, "errors": {"a": 0.1}, "expert_error": 0.2}]
    >>> record = Record("k", "c", 10, 0, "done", losses={"cells": cells})
    >>> quantity((2, "a"))(record), quantity((3, "a"))(record)
    (0.1, None)
    """
    if name == "loss":
        return lambda record: record.loss
    if name in ("hellinger", "total_variation"):
        return lambda record: record.losses.get(name)
    if isinstance(name, str):
        return lambda record: record.losses["also"].get(name)
    size, block = name
    return lambda record: _cell_error(record, size, block)


def _cell_error(record: Record, size: int, block: str) -> float | None:
    found = [
        {"mass": cell["mass_error"], **cell["errors"], "expert": cell["expert_error"]}[block]
        for cell in record.losses.get("cells", ())
        if cell["size"] == size
    ]
    return float(np.mean(found)) if found and None not in found else None


def absorbed(records: Iterable[Record], name: Quantity) -> tuple[int, int]:
    """How many records have no more than rounding of an error within cells, and how many have it.

    Examples
    --------
    >>> cells = [{"size": 1, "mass_error": 0.5, "errors": {"a": 1e-15}, "expert_error": 0.2}]
    >>> absorbed([Record("k", "c", 10, 0, "done", losses={"cells": cells})], (1, "a"))
    (1, 1)
    """
    value = quantity(name)
    found = [error for record in records if (error := value(record)) is not None]
    return sum(error <= ROUNDING for error in found), len(found)


def observed(records: Iterable[Record], name: Quantity) -> list[tuple[Record, float]]:
    """The records with a positive value of a quantity, at sizes that have at least two of them.

    Errors within cells up to `ROUNDING` count as 0.  Where most are 0 there are no such records:
    the few estimates in which no translation absorbs the error are not a sample of all.
    """
    records = list(records)
    if not isinstance(name, str):
        zeros, size = absorbed(records, name)
        if 2 * zeros > size:
            return []
    value, least = quantity(name), 0.0 if isinstance(name, str) else ROUNDING
    pairs = [(record, found) for record in records if (found := value(record) or 0.0) > least]
    sizes, counts = np.unique([record.n for record, _ in pairs], return_counts=True)
    enough = set(sizes[counts >= _FEWEST].tolist())
    return [pair for pair in pairs if pair[0].n in enough]


def entering(curve: Curve, records: Iterable[Record]) -> list[Record]:
    """The estimates that enter the rate of a curve: certified ones, unless it takes all."""
    done = (record for record in records if record.status == DONE)
    return [record for record in done if record.certified or not curve.require_certificate]
