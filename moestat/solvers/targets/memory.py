"""The memory plan: how many problems a device holds at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moestat.base.memory import FLOAT_BYTES
from moestat.solvers.problem import Problem, Rows

_GIGABYTE = 10**9


@dataclass(frozen=True)
class MemoryPlan:
    """Problems in the groups that a device holds, one group after the other."""

    groups: tuple[range, ...]
    """Positions of the problems."""
    largest: int
    """Bytes of the largest group."""
    budget: int
    """Bytes that may be used."""

    def summary(self) -> str:
        """One line: how the problems are split, and how much memory that takes.

        Examples
        --------
        >>> MemoryPlan((range(0, 6), range(6, 9)), 3_000_000, 4_000_000).summary()
        '9 problems in 2 groups of 6 at most, 0.003 of 0.004 GB'
        """
        count = sum(map(len, self.groups))
        split = f"{len(self.groups)} group{'s' if len(self.groups) != 1 else ''}"
        if len(self.groups) > 1:
            split += f" of {max(map(len, self.groups))} at most"
        largest, budget = self.largest / _GIGABYTE, self.budget / _GIGABYTE
        return f"{count} problems in {split}, {largest:.3g} of {budget:.3g} GB"


def rows_of(problem: Problem) -> list[Rows]:
    """The data of a problem in every detail that a solver may ask for."""
    return problem.data.levels


def plan_memory(problems: Sequence[Problem], budget: int, workspace: int) -> MemoryPlan:
    """Split problems into groups, as long as they can be, that fit in so many bytes.

    Each launch needs a workspace besides.  Data take ``d + 2`` numbers a sample, responsibilities k
    numbers a sample and problem; problems that share data should follow each other, for data are
    held once.  A problem that does not fit by itself is refused.
    """
    groups: list[range] = []
    begin = 0
    used = workspace
    largest = workspace
    on_device: set[int] = set()
    for i, problem in enumerate(problems):
        shares = FLOAT_BYTES * problem.family.n_experts * max(s.size for s in rows_of(problem))
        fresh = _new_bytes(problem, on_device)
        if used + shares + fresh > budget and i > begin:
            groups.append(range(begin, i))
            begin = i
            used = workspace
            on_device = set()
            fresh = _new_bytes(problem, on_device)
        if used + shares + fresh > budget:
            raise ValueError(
                f"problem {i} with {problem.data.size} samples needs"
                f" {(used + shares + fresh) / _GIGABYTE:.3g} GB of the device's memory, and"
                f" {budget / _GIGABYTE:.3g} GB may be used"
            )
        used += shares + fresh
        on_device.update(id(sample) for sample in rows_of(problem))
        largest = max(largest, used)
    if len(problems):
        groups.append(range(begin, len(problems)))
    return MemoryPlan(tuple(groups), largest, budget)


def _new_bytes(problem: Problem, on_device: set[int]) -> int:
    """Bytes of the data that are not held yet."""
    return FLOAT_BYTES * sum(
        (sample.X.shape[0] + 2) * sample.size
        for sample in rows_of(problem)
        if id(sample) not in on_device
    )
