"""Sample sizes of a spec or curve: a list, or spaced between two ends, by logarithms or evenly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moestat.base.types import FloatArray
from moestat.base.validate import is_mapping, is_sequence, one_of
from moestat.sweep.errors import SweepError
from moestat.sweep.spec.tables import Table, short_text

_LARGEST_SIZE = 1e18
_MOST_SIZES = 10_000
_SPACINGS: dict[str, Callable[[float, float, int], FloatArray]] = {
    "log": np.geomspace,
    "linear": np.linspace,
}


def read_sizes(top: Table) -> tuple[int, ...]:
    """The grid of sample sizes under the key ``n``, in ascending order.

    Examples
    --------
    >>> read_sizes(Table({"n": {"start": 10, "stop": 1000, "num": 3}}, ""))
    (10, 100, 1000)
    >>> grid = {"start": 10, "stop": 30, "num": 3, "spacing": "linear"}
    >>> read_sizes(Table({"n": grid}, ""))
    (10, 20, 30)
    """
    value = top.take("n")
    if is_mapping(value):
        grid = Table(value, f"{top.label}: n" if top.label else "n")
        start, stop = grid.number("start"), grid.number("stop")
        num = grid.integer("num", 1, _MOST_SIZES)
        spacing = grid.build("spacing", one_of, "spacing", grid.text("spacing", "log"), _SPACINGS)
        grid.finish()
        if not 1 <= start <= stop <= _LARGEST_SIZE:
            raise SweepError(
                f"{grid.label}: needs 1 <= start <= stop <= {_LARGEST_SIZE:g}, got {start:g} and"
                f" {stop:g}"
            )
        places = _SPACINGS[spacing](start, stop, num)
        return tuple(sorted({round(float(n)) for n in places}))
    if not is_sequence(value):
        raise top.error("n", f"must be a list or {{ start, stop, num }}, got {short_text(value)}")
    if not value:
        raise top.error("n", "must hold at least one sample size, got []")
    for n in value:
        if isinstance(n, bool) or not isinstance(n, (int, float)) or n < 1 or n % 1 != 0:
            raise top.error("n", f"must hold whole numbers >= 1, got {short_text(n)}")
        if n > _LARGEST_SIZE:
            raise top.error("n", f"must hold numbers <= {_LARGEST_SIZE:g}, got {short_text(n)}")
    if len(set(value)) < len(value):
        raise top.error("n", f"must not repeat a sample size, got {short_text(value)}")
    return tuple(sorted(int(n) for n in value))
