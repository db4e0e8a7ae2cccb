"""Sums over blocks: a tree whose shape depends on the number of parts alone, here and on workers.

Eight neighbours are added at a time, then eight of these sums, and so on.  On dask the workers add,
so that the client receives one sum for all parts; in this process parts are added as they come, and
only one unfinished sum of each level is in memory.  The order of the additions is the same in both
cases, and so are the bits of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from moestat.base.sums import added, sum_of

__all__ = ["Watch", "sum_in_tree", "sum_on_workers"]

T = TypeVar("T")

Watch = Callable[[Iterable[T], int], Iterator[T]]
"""``watch(steps, count)`` yields the `count` steps of a sum as they come, and reports progress."""

_NEIGHBOURS = 8
"""Number of sums that are added at a time, and that a worker holds in memory.  With a larger
number, fewer sums travel between workers, and fewer additions run in parallel."""


def sum_in_tree(values: Iterable[T | None]) -> T:
    """The sum of values as they come, added as a tree.

    Examples
    --------
    >>> sum_in_tree(range(100))
    4950
    """
    # The unfinished sum of each level, and the number of its summands.
    levels: list[tuple[Any, int]] = []

    def put(value: object, level: int) -> None:
        if level == len(levels):
            levels.append((value, 1))
            return
        total, count = levels[level]
        total, count = (added(total, value) if count else value), count + 1
        levels[level] = total, count
        if count == _NEIGHBOURS:
            levels[level] = None, 0
            put(total, level + 1)

    for value in values:
        put(value, 0)
    for level in range(len(levels) - 1):
        total, count = levels[level]
        if count:
            levels[level] = None, 0
            put(total, level + 1)
    return levels[-1][0]


def sum_on_workers(summands: Sequence[object], client: Any, watch: Watch[Any]) -> Any:
    """The sum of delayed values of dask, which its workers add as the same tree.

    Parameters
    ----------
    summands : sequence of Delayed
        The values.
    client : distributed.Client or None
        The client; None for dask's default scheduler.
    watch : callable
        Receives the first sums of eight as they are complete, and their number.
    """
    from dask.base import compute
    from dask.delayed import delayed

    add = delayed(sum_of, pure=False)

    def above(sums: Sequence[object]) -> list[Any]:
        return [add(list(sums[at : at + _NEIGHBOURS])) for at in range(0, len(sums), _NEIGHBOURS)]

    first = sums = above(summands)
    while len(sums) > 1:
        sums = above(sums)
    if client is None:
        return compute(*sums)[0]
    *futures, total = client.compute([*first, *sums])
    # The client refers to a first sum until it is complete; then it is free once it is added.
    for _ in watch(_as_completed(futures), len(futures)):
        pass
    return total.result()


def _as_completed(futures: list[Any]) -> Iterator[None]:
    """None for each future that is complete, in order; an error of one is raised."""
    from distributed import wait

    for at in range(len(futures)):
        wait(futures[at])
        if futures[at].status != "finished":
            futures[at].result()
        futures[at] = None
        yield None
