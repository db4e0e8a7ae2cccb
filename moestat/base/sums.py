"""Sums of numbers, arrays, records and lists of these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import reduce
from typing import Any, TypeVar

__all__ = ["added", "sum_of"]

T = TypeVar("T")


def added(one: Any, other: Any) -> Any:
    """The sum of two numbers, arrays, records or lists of these; None counts as zero.

    Examples
    --------
    >>> added([1, 2.5], [10, 20]), added(None, 3)
    ([11, 22.5], 3)
    """
    if one is None or other is None:
        return other if one is None else one
    items: Any = one
    if isinstance(one, list | tuple):
        return type(items)(added(a, b) for a, b in zip(items, other, strict=True))
    if is_dataclass(one):
        names = [each.name for each in fields(one)]
        return type(one)(*(added(getattr(one, name), getattr(other, name)) for name in names))
    return one + other


def sum_of(values: Iterable[T | None]) -> T | None:
    """The sum of values in their order; None if there are none, or if all are None.

    Examples
    --------
    >>> sum_of([None, 1, 2.5]), sum_of([])
    (3.5, None)
    """
    return reduce(added, values, None)
