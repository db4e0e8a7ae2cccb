"""Sample sizes of a spec: a list, or log-spaced between two ends."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from moestat.sweep.errors import SweepError
from moestat.sweep.tables import Table, shown

__all__ = ["read_sizes"]

_LARGEST_SIZE = 1e18


def read_sizes(top: Table) -> tuple[int, ...]:
    """The grid of sample sizes under the key ``n``, in ascending order.

    Examples
    --------
    >>> read_sizes(Table({"n": {"start": 10, "stop": 1000, "num": 3}}, ""))
    (10, 100, 1000)
    """
    value = top.take("n")
    if isinstance(value, Mapping):
        grid = Table(value, "n")
        start, stop = grid.number("start"), grid.number("stop")
        num = grid.integer("num", 1)
        grid.finish()
        if not 1 <= start <= stop <= _LARGEST_SIZE:
            raise SweepError(
                f"n: needs 1 <= start <= stop <= {_LARGEST_SIZE:g}, got {start:g} and {stop:g}"
            )
        return tuple(sorted({round(float(n)) for n in np.geomspace(start, stop, num)}))
    if not isinstance(value, list):
        raise top.error("n", f"must be a list or {{ start, stop, num }}, got {shown(value)}")
    if not value:
        raise top.error("n", "must hold at least one sample size, got []")
    for n in value:
        if isinstance(n, bool) or not isinstance(n, (int, float)) or n < 1 or n % 1 != 0:
            raise top.error("n", f"must hold whole numbers >= 1, got {shown(n)}")
        if n > _LARGEST_SIZE:
            raise top.error("n", f"must hold numbers <= {_LARGEST_SIZE:g}, got {shown(n)}")
    if len(set(value)) < len(value):
        raise top.error("n", f"must not repeat a sample size, got {shown(value)}")
    return tuple(sorted(int(n) for n in value))
